//! Memory traffic of a launch: requests at each level, and the reuse of each byte.

use super::units::SECTOR_BYTES;
use crate::diff::Counts;
use crate::observation::Observation;
use gemm_bench::change::number;
use gemm_bench::cli::Failure;
use gemm_bench::lower_bound::LaunchArrays;
use gemm_draw::metrics::{metric, quantities};
use gemm_runtime::sim::{Counters, SassCounters};
use serde::{Serialize, Serializer};
use std::fmt;

/// Source or destination of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLevel {
    L2,
    L1,
    Shared,
    Registers,
    /// Registers and shared memory together, for a transfer in which loads and copies are not
    /// counted separately.
    RegistersAndShared,
    /// Registers and asynchronous copies together, as the source of writes to shared memory.
    RegistersAndCopies,
    Banks,
    /// Shared memory as the destination of a transfer that counts the wavefronts of all accesses.
    AllOfShared,
}

impl MemoryLevel {
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

/// Bytes moved from one memory level to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    pub from: MemoryLevel,
    pub to: MemoryLevel,
    /// Instructions that move the bytes.
    pub by: &'static str,
    /// Number of requests by warps.
    pub requests: TrafficCount,
    /// Cost with its unit, sectors or wavefronts. `None` if neither is counted.
    pub cost: Option<(TrafficCount, &'static str)>,
    pub bytes: u64,
    /// Profiler metrics of the counts of the compiled kernel. Empty if the profiler has none.
    pub metrics: Vec<String>,
}

/// Source count, with its counterpart for the compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrafficCount {
    pub text: u64,
    /// Predicted count of the compiled kernel, if it is known.
    pub compiled: Option<u64>,
}

impl TrafficCount {
    /// Pairs a source count with the sum of the named SASS counters. If there are no names, the
    /// prediction is `None`.
    fn new(text: u64, counts: &SassCounters, names: &[&str]) -> Self {
        let known: Option<u64> = quantities(names).iter().map(|of| (of.of)(counts)).sum();
        Self { text, compiled: known.filter(|_| !names.is_empty()) }
    }

    /// Formats the count of the compiled kernel.
    pub fn as_compiled(self) -> String {
        self.compiled.map_or("–".to_owned(), |count| count.to_string())
    }
}

/// Traffic of a kernel, and the reuse of its bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// Transfers with at least one byte.
    pub ways: Vec<Transfer>,
    /// Minimum traffic of the launch: bytes of all arrays that it reads, plus bytes of all arrays
    /// that it writes.
    pub operands: u64,
    /// Bytes of the operands that sectors and boxes request. The L1 cache serves some of the
    /// requests.
    pub asked: u64,
    /// Bytes of requested sectors of scratch arrays, through which blocks communicate.
    pub scratch: u64,
    /// Bytes written to shared memory, and bytes that threads read from it.
    pub shared: [u64; 2],
}

/// Returns the traffic of a launch.
///
/// # Errors
/// Returns [`Failure::Runtime`] if the launch has no counts of the compiled kernel.
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
            (MemoryLevel::Shared, MemoryLevel::Shared, "boxes multicast within a cluster"),
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
            // The compiler model has no wavefront counts for asynchronous copies.
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

/// Returns the transfer that reads global memory, with the names of its counters. Loads and copies
/// are not counted separately.
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

/// Source count, the corresponding SASS counters, and the unit.
type Cost<'n> = (u64, &'n [&'n str], &'static str);

impl Memory {
    /// Average number of requests for each byte of the operands.
    pub fn asked_often(&self) -> f64 {
        self.asked as f64 / self.operands.max(1) as f64
    }

    /// Formats the average number of reads of each byte in shared memory, or of requests for each
    /// byte of the operands.
    pub fn times(&self, in_shared: bool) -> String {
        number(if in_shared { self.read_often().unwrap_or(0.0) } else { self.asked_often() })
    }

    /// Formats the bytes of the operands.
    pub fn written(&self) -> String {
        written(self.operands)
    }

    /// Formats the bytes of scratch arrays. Empty if there are none.
    pub fn left(&self) -> String {
        written(self.scratch)
    }

    /// True if copies or boxes fill shared memory without passing through registers.
    pub fn goes_past_registers(&self) -> bool {
        let comes_to = |to| matches!(to, MemoryLevel::Shared | MemoryLevel::RegistersAndShared);
        self.ways
            .iter()
            .any(|way| comes_to(way.to) && matches!(way.from, MemoryLevel::L2 | MemoryLevel::L1))
    }

    /// Formats the bytes between two levels. Empty if there are none.
    pub fn along(&self, from: MemoryLevel, to: MemoryLevel) -> String {
        let ways = self.ways.iter().filter(|way| way.from == from && way.to == to);
        written(ways.map(|way| way.bytes).sum())
    }

    /// Formats the bytes between registers and global memory.
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

    /// Formats the bytes read from and written to shared memory, except for boxes.
    pub fn in_shared(&self) -> String {
        self.along(MemoryLevel::Banks, MemoryLevel::AllOfShared)
    }

    /// Average number of reads of each byte in shared memory. `None` if shared memory is not
    /// written or not read.
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
    use crate::observation::{Spec, looked};
    use gemm_bench::family::Family;
    use gemm_dsl::spec::SgemmSpec;
    use gemm_dsl::stages;
    use rayon::prelude::*;

    /// Tiles of 32 x 32 x 32: each copied word is read by 32 threads.
    #[test]
    fn copied_elements_are_read_once_per_tile_column() {
        let looked = looked(Family::Sgemm, "tile: 32x32x32");
        let memory = traffic(&looked).expect("counts");
        assert_eq!(memory.read_often(), Some(32.0));
        let [come, _] = memory.shared;
        let is_load =
            |way: &&Transfer| way.from == MemoryLevel::L1 && way.to == MemoryLevel::Registers;
        let loaded = memory.ways.iter().find(is_load);
        assert_eq!(loaded.map(|way| way.bytes), Some(come));
        // In a grid of 2 x 2 blocks, two blocks read each element of A and B, and one block stores
        // each element of C.
        let elements = memory.operands;
        let c = looked.profile.total.global_store_bytes;
        assert_eq!(memory.asked, 2 * (elements - c) + c);
    }

    fn memory(spec: &Spec) -> Memory {
        traffic(&spec.look(spec.at().expect("a shape")).expect("a launch")).expect("counts")
    }

    /// Every byte of the minimum traffic is requested.
    #[test]
    fn every_byte_that_is_moved_at_least_is_asked_for() {
        let lines = stages::reduce().into_iter().map(|of| (Family::Reduce, of.spec.to_string()));
        let every = if gemm_cases::is_thinned() { 3 } else { 1 };
        let products = stages::sgemm().into_iter().step_by(every);
        let products = products.map(|of| (Family::Sgemm, of.spec.to_string()));
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

    /// The operands include all components of a split, arrays that an epilogue reads, and C if the
    /// kernel reads it.
    #[test]
    fn operands_are_the_arrays_that_the_launch_is_given() {
        // C is 512 x 512. A is 512 x 128 and B 128 x 512, each split into two 16-bit components.
        let splits = of_stage(43, |_| ());
        assert_eq!(splits.operands, 4 * 512 * 512 + 2 * 2 * 512 * 128, "{splits:?}");
        let [with, without] = [28, 27].map(|index| of_stage(index, |_| ()));
        // Stage 28 reads a residual in place of a bias over the columns of C.
        assert!(with.operands > without.operands + 500_000, "{with:?}, {without:?}");
        let scaled = of_stage(25, |_| ());
        let plain = of_stage(25, |spec| spec.scaled = false);
        let c = plain.ways.iter().find(|way| way.by == "stores").expect("C").bytes;
        assert_eq!(scaled.operands, plain.operands + c);
    }

    /// Scratch traffic between blocks is counted separately.
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
