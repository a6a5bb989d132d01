//! Where bytes go: what threads ask of each memory, and how often each byte is asked for.

use super::units::SECTOR_BYTES;
use crate::diff::Counts;
use crate::observation::Observation;
use gemm_bench::change::number;
use gemm_bench::cli::Failure;
use gemm_bench::lower_bound::LaunchArrays;
use gemm_draw::metrics::{metric, quantities};
use gemm_runtime::{Counters, SassCounters};
use serde::{Serialize, Serializer};
use std::fmt;

/// Where bytes are, or come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLevel {
    /// The L2 cache.
    L2,
    /// The L1 cache.
    L1,
    /// Shared memory.
    Shared,
    /// Registers.
    Registers,
    /// Either of them, where loads and copies are not told apart.
    RegistersAndShared,
    /// Registers, and what copies bring.
    RegistersAndCopies,
    /// Banks of shared memory.
    Banks,
    /// All that accesses those.
    AllOfShared,
}

impl MemoryLevel {
    /// As it is called.
    pub fn text(self) -> &'static str {
        match self {
            Self::L2 => "L2 cache",
            Self::L1 => "L1 cache",
            Self::Shared => "shared memory",
            Self::Registers => "registers",
            Self::RegistersAndShared => "registers and shared memory",
            Self::RegistersAndCopies => "registers and copies",
            Self::Banks => "banks",
            Self::AllOfShared => "all of shared memory",
        }
    }
}

impl fmt::Display for MemoryLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl Serialize for MemoryLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// Between two places, what moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    /// Where from.
    pub from: MemoryLevel,
    /// Where to.
    pub to: MemoryLevel,
    /// What moves it.
    pub by: &'static str,
    /// How often a warp asks.
    pub requests: TrafficCount,
    /// What that takes: sectors or wavefronts; none of what is not counted in either.
    pub cost: Option<(TrafficCount, &'static str)>,
    /// Bytes.
    pub bytes: u64,
    /// What the profiler calls the counts as compiled; none of what it does not count.
    pub metrics: Vec<String>,
}

/// A count of what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrafficCount {
    /// By the text.
    pub text: u64,
    /// As compiled, where that is known.
    pub compiled: Option<u64>,
}

impl TrafficCount {
    /// A count of the text, for which these stand as compiled; for nothing where there are none.
    fn new(text: u64, counts: &SassCounters, names: &[&str]) -> Self {
        let known: Option<u64> = quantities(names).iter().map(|of| (of.of)(counts)).sum();
        Self { text, compiled: known.filter(|_| !names.is_empty()) }
    }

    /// The count as compiled, as it is written.
    pub fn as_compiled(self) -> String {
        self.compiled.map_or("–".to_owned(), |count| count.to_string())
    }
}

/// All ways of a kernel, and how often bytes are used.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// Those that anything moves along.
    pub ways: Vec<Transfer>,
    /// Bytes of what the launch reads, and of what it writes, each once: no launch moves less.
    pub operands: u64,
    /// Bytes of these that it asks for, as sectors and boxes. The L1 cache answers some of that.
    pub asked: u64,
    /// Bytes that it asks for of what its blocks leave one another, as sectors.
    pub scratch: u64,
    /// Bytes that come to shared memory, and that threads read from there.
    pub shared: [u64; 2],
}

/// The ways of a launch.
///
/// # Errors
/// [`Failure::Runtime`] where it was not counted as compiled.
pub(super) fn traffic(looked: &Observation) -> Result<Memory, Failure> {
    let given = LaunchArrays::new(&looked.kernel, &looked.arguments);
    let scratch = given.scratch_sectors(&looked.kernel, &looked.profile);
    let Counts { text: c, compiled } = &looked.counts()?;
    let asked = |text, names: &[&str]| TrafficCount::new(text, compiled, names);
    let way = |(from, to, by), (requests, names): (u64, &[&str]), cost: Option<Cost<'_>>, bytes| {
        let of_cost = cost.map_or(&[][..], |(_, names, _)| names);
        let metrics = quantities(names).into_iter().chain(quantities(of_cost));
        Transfer {
            from,
            to,
            by,
            requests: asked(requests, names),
            cost: cost.map(|(count, names, unit)| (asked(count, names), unit)),
            bytes,
            metrics: metrics.map(metric).collect(),
        }
    };
    let sectors = ["global_load_sectors", "global_store_sectors"];
    let wavefronts = ["shared_load_wavefronts", "shared_store_wavefronts"];
    let (read, read_counts) = reads(c);
    let all = [
        way(
            (MemoryLevel::L2, MemoryLevel::L1, "loads, stores and copies"),
            (c.global_requests, &["global_load_requests", "global_store_requests"]),
            Some((c.global_sectors, &sectors, "sectors")),
            SECTOR_BYTES * c.global_sectors,
        ),
        way(read, (c.global_loads + c.copies, read_counts), None, c.global_load_bytes),
        way(
            (MemoryLevel::Registers, MemoryLevel::L1, "stores"),
            (c.global_stores, &["global_stores"]),
            None,
            c.global_store_bytes,
        ),
        way(
            (MemoryLevel::L2, MemoryLevel::Shared, "boxes"),
            (c.bulk_copies, &["box_copies"]),
            None,
            c.bulk_bytes,
        ),
        way(
            (MemoryLevel::Shared, MemoryLevel::Shared, "boxes that blocks of a cluster share"),
            (c.bulk_copies, &[]),
            None,
            c.multicast_bytes,
        ),
        way(
            (MemoryLevel::RegistersAndCopies, MemoryLevel::Shared, "stores and copies"),
            (c.shared_stores + c.copies, &["shared_stores", "copies"]),
            None,
            c.shared_store_bytes,
        ),
        way(
            (MemoryLevel::Shared, MemoryLevel::Registers, "loads"),
            (c.shared_loads, &["shared_loads", "matrix_loads"]),
            None,
            c.shared_load_bytes,
        ),
        way(
            (MemoryLevel::Banks, MemoryLevel::AllOfShared, "loads, stores and copies"),
            (c.shared_requests, &[]),
            // Of copies no count as compiled is known.
            Some((c.shared_wavefronts, if c.copies > 0 { &[] } else { &wavefronts }, "wavefronts")),
            c.shared_bytes(),
        ),
    ];
    Ok(Memory {
        ways: all.into_iter().filter(|way| way.bytes > 0).collect(),
        operands: given.least(),
        asked: SECTOR_BYTES * (c.global_sectors - scratch) + c.bulk_bytes,
        scratch: SECTOR_BYTES * scratch,
        shared: [c.shared_store_bytes + c.bulk_arrived_bytes(), c.shared_load_bytes],
    })
}

/// What reads global memory, with the names of the counts: loads and copies are not counted apart.
fn reads(c: &Counters) -> ((MemoryLevel, MemoryLevel, &'static str), &'static [&'static str]) {
    match (c.global_loads, c.copies) {
        (_, 0) => ((MemoryLevel::L1, MemoryLevel::Registers, "loads"), &["global_loads"]),
        (0, _) => ((MemoryLevel::L1, MemoryLevel::Shared, "copies"), &["copies"]),
        _ => (
            (MemoryLevel::L1, MemoryLevel::RegistersAndShared, "loads and copies"),
            &["global_loads", "copies"],
        ),
    }
}

/// A count of the text, those that stand for it as compiled, and its unit.
type Cost<'n> = (u64, &'n [&'n str], &'static str);

impl Memory {
    /// How often each byte of the operands is asked for.
    pub fn asked_often(&self) -> f64 {
        self.asked as f64 / self.operands.max(1) as f64
    }

    /// How often each byte of the operands is asked for, or each of shared memory read, as it is written.
    pub fn times(&self, in_shared: bool) -> String {
        number(if in_shared { self.read_often().unwrap_or(0.0) } else { self.asked_often() })
    }

    /// The bytes of the operands, as they are written.
    pub fn written(&self) -> String {
        written(self.operands)
    }

    /// Those that are asked for of what blocks leave one another; nothing where they leave nothing.
    pub fn left(&self) -> String {
        written(self.scratch)
    }

    /// Whether copies or boxes come to shared memory, past registers.
    pub fn goes_past_registers(&self) -> bool {
        let comes_to = |to| matches!(to, MemoryLevel::Shared | MemoryLevel::RegistersAndShared);
        self.ways
            .iter()
            .any(|way| comes_to(way.to) && matches!(way.from, MemoryLevel::L2 | MemoryLevel::L1))
    }

    /// The bytes that do, as they are written; nothing where there are none.
    pub fn along(&self, from: MemoryLevel, to: MemoryLevel) -> String {
        let ways = self.ways.iter().filter(|way| way.from == from && way.to == to);
        written(ways.map(|way| way.bytes).sum())
    }

    /// The bytes that registers give to and get from global memory.
    pub fn global(&self) -> String {
        let is_between = |way: &&Transfer| match way.from {
            MemoryLevel::L1 => {
                matches!(way.to, MemoryLevel::Registers | MemoryLevel::RegistersAndShared)
            }
            MemoryLevel::L2 => false,
            _ => way.to == MemoryLevel::L1,
        };
        let ways = self.ways.iter().filter(is_between);
        written(ways.map(|way| way.bytes).sum())
    }

    /// The bytes that are written to shared memory and read from there, but for boxes.
    pub fn in_shared(&self) -> String {
        self.along(MemoryLevel::Banks, MemoryLevel::AllOfShared)
    }

    /// How often each byte in shared memory is read by a thread; none where none come there, or none are read by threads.
    pub fn read_often(&self) -> Option<f64> {
        let [come, read] = self.shared;
        (come > 0 && read > 0).then(|| read as f64 / come as f64)
    }
}

fn written(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { number(bytes as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Spec;
    use gemm_bench::family::Family;
    use gemm_dsl::spec::SgemmSpec;
    use gemm_dsl::stages;
    use rayon::prelude::*;

    /// Tiles of 32 x 32 x 32: each word that is copied is read by 32 threads.
    #[test]
    fn what_is_copied_is_read_as_often_as_a_tile_is_wide() {
        let spec = Spec::parse(Family::Sgemm, "tile: 32x32x32").expect("a spec");
        let looked = spec.look(spec.at().expect("a shape")).expect("a launch");
        let memory = traffic(&looked).expect("counts");
        assert_eq!(memory.read_often(), Some(32.0));
        let [come, _] = memory.shared;
        let is_load =
            |way: &&Transfer| way.from == MemoryLevel::L1 && way.to == MemoryLevel::Registers;
        let loaded = memory.ways.iter().find(is_load);
        assert_eq!(loaded.map(|way| way.bytes), Some(come));
        // Of a grid of 2 x 2 blocks two read each element of A and of B, and one stores each of C.
        let elements = memory.operands;
        let c = looked.profile.total.global_store_bytes;
        assert_eq!(memory.asked, 2 * (elements - c) + c);
    }

    fn memory(spec: &Spec) -> Memory {
        traffic(&spec.look(spec.at().expect("a shape")).expect("a launch")).expect("counts")
    }

    /// Nothing is moved that nobody asks for.
    #[test]
    fn every_byte_that_is_moved_at_least_is_asked_for() {
        let lines = stages::reduce().into_iter().map(|of| (Family::Reduce, of.spec.to_string()));
        let products = stages::sgemm().into_iter().map(|of| (Family::Sgemm, of.spec.to_string()));
        let lines: Vec<(Family, String)> = lines.chain(products).collect();
        lines.par_iter().for_each(|(family, line)| {
            let memory = memory(&Spec::parse(*family, line).expect("a spec"));
            assert!(memory.operands > 0 && memory.asked >= memory.operands, "{line}: {memory:?}");
        });
    }

    fn of_stage(index: u32, edit: impl Fn(&mut SgemmSpec)) -> Memory {
        let stage = stages::sgemm().into_iter().find(|stage| stage.index == index);
        let mut spec = stage.expect("a stage").spec;
        edit(&mut spec);
        memory(&Spec::Sgemm(Box::new(spec.plan().expect("a plan"))))
    }

    /// Planes are of numbers of 16 bits; what an epilogue reads, and C that is read in place, counts too.
    #[test]
    fn operands_are_the_arrays_that_the_launch_is_given() {
        // C of 512 x 512, of A 512 x 128 and of B 128 x 512 in planes.
        let splits = of_stage(43, |_| ());
        assert_eq!(splits.operands, 4 * 512 * 512 + 2 * 2 * 512 * 128, "{splits:?}");
        let [with, without] = [28, 27].map(|index| of_stage(index, |_| ()));
        // A residual instead of a bias of C's columns.
        assert!(with.operands > without.operands + 500_000, "{with:?}, {without:?}");
        let scaled = of_stage(25, |_| ());
        let plain = of_stage(25, |spec| spec.scaled = false);
        let c = plain.ways.iter().find(|way| way.by == "stores").expect("C").bytes;
        assert_eq!(scaled.operands, plain.operands + c);
    }

    /// What blocks leave one another is told apart.
    #[test]
    fn parts_of_sums_are_no_operands() {
        let line = "tile: 64x64x16, float4, stages: 3, warp: 32x32, arith: tf32, layout: tn";
        let whole = memory(&Spec::parse(Family::Sgemm, line).expect("a spec"));
        let split = format!("{line}, split_k: 2");
        let split = memory(&Spec::parse(Family::Sgemm, &split).expect("a spec"));
        assert_eq!([whole.operands, whole.asked], [split.operands, split.asked]);
        assert!(whole.scratch == 0 && split.scratch > 0, "{split:?}");
        let shared = of_stage(32, |_| ());
        assert!(shared.scratch > 0 && shared.asked_often() < 6.0, "{shared:?}");
    }
}
