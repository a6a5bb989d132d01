//! Counters of a simulated launch at a small shape, and the busiest unit of a GPU. The counters are
//! those of the source and those predicted for the compiled kernel.

use gemm_bench::change::number;
use gemm_bench::cli::Failure;
use gemm_bench::lower_bound::LowerBound;
use gemm_bench::sample;
use gemm_bench::sample::SampleLaunch;
use gemm_bench::table::percent;
use gemm_book::units::{Unit, issuing_fmas, load as load_of, wavefronts};
use gemm_dsl::plan::{ReducePlan, SgemmPlan};
use gemm_runtime::Device;
use gemm_runtime::sim::watch::Watch;
use gemm_runtime::sim::{Counters, SassCounters, Simulation};
use std::sync::Arc;

/// Minimum share of wasted work that is reported.
const WORTH_NAMING: f64 = 0.05;

pub enum Sample {
    Counted(SampleCounters),
    /// Why the problem is not simulated.
    TooLarge(String),
}

pub struct SampleCounters {
    pub shape: String,
    pub lines: Vec<(&'static str, String)>,
    /// Sentences about the load of an SM.
    pub load: Vec<String>,
}

/// Simulates a reduction of a few blocks.
///
/// # Errors
/// Returns the error of the launch or of the simulator.
pub fn reduce(plan: &ReducePlan) -> Result<Sample, Failure> {
    match sample::arrays(plan) {
        Ok(arrays) => counted(None, |device| sample::reduce(plan.spec(), arrays, device)),
        Err(why) => Ok(Sample::TooLarge(why)),
    }
}

/// Simulates a GEMM of a few tiles, or a batch of several GEMMs.
///
/// # Errors
/// Returns the error of the launch or of the simulator.
pub fn product(plan: &SgemmPlan) -> Result<Sample, Failure> {
    let bits = plan.spec().arith.format().map(|format| format.bits());
    match sample::products(plan) {
        Ok(products) => counted(bits, |device| sample::product(plan.spec(), products, device)),
        Err(why) => Ok(Sample::TooLarge(why)),
    }
}

/// Counts the work of a launch on the simulator, from source and as predicted for the compiled
/// kernel. If the program has several kernels, only the main one is counted.
fn counted(
    bits: Option<u32>,
    launch: impl Fn(&Device) -> Result<SampleLaunch, Failure>,
) -> Result<Sample, Failure> {
    let least = Arc::new(LowerBound::default());
    let watch: Option<Arc<dyn Watch>> = Some(least.clone());
    let compiled = Simulation { compiled: true, watch, ..Simulation::default() };
    let SampleLaunch { shape, launched, flops, .. } = launch(&Device::simulator_of(compiled))?;
    let (counters, compiled) = sample::compiled_of_main(&launched)?;
    Ok(Sample::Counted(count(shape, counters, compiled, flops, bits, least.bytes())))
}

/// Describes the counters. `flops` is 0 for a reduction; `bits` is the width of tensor-core
/// operands, if tensor cores are used.
fn count(
    shape: String,
    c: &Counters,
    compiled: &SassCounters,
    flops: f64,
    bits: Option<u32>,
    bytes: u64,
) -> SampleCounters {
    let per = |a: u64, b: u64| number(a as f64 / b as f64);
    let mut lines = vec![
        ("blocks", number(c.blocks as f64)),
        ("warp instructions", number(c.instructions as f64)),
        ("block barriers", format!("up to {} per block", c.block_barriers)),
        ("warp barriers", format!("up to {} per block", c.warp_barriers)),
        ("divergent branches", number(c.divergent_branches as f64)),
        ("global sectors", sectors(c)),
        ("shared wavefronts", number(c.shared_wavefronts as f64)),
        ("bank conflicts", number(c.shared_bank_conflicts as f64)),
    ];
    let global_bytes = (c.global_bytes() + c.bulk_bytes) as f64;
    if c.mma_flops > 0 {
        lines.push(("matrix instructions", number((c.mma + c.wgmma) as f64)));
        let times = number(c.mma_flops as f64 / flops);
        lines.push(("tensor-core FLOPs", format!("{times} per FLOP of the GEMM")));
        if c.bulk_copies > 0 {
            let (copies, bytes) = (number(c.bulk_copies as f64), number(c.bulk_bytes as f64));
            lines.push(("TMA copies", format!("{copies}, {bytes} bytes in total")));
            lines.push(("mbarrier waits", number(c.mbarrier_waits as f64)));
        }
    } else if flops > 0.0 {
        let share = percent(c.fma as f64 / c.instructions as f64);
        lines.push(("multiply-adds", format!("{share} of the instructions")));
        lines.push(("FMAs per sector", per(c.fmas, c.global_sectors)));
        lines.push(("FMA instructions per shared load", per(c.fma, c.shared_loads)));
    }
    if flops > 0.0 {
        let intensity = number(flops / global_bytes);
        lines.push(("arithmetic intensity", format!("{intensity} FLOP per global byte")));
    }
    SampleCounters { shape, lines, load: load(c, compiled, bits, bytes) }
}

fn sectors(c: &Counters) -> String {
    format!("{} in {} requests", number(c.global_sectors as f64), number(c.global_requests as f64))
}

/// Describes the cycles that each unit of an SM needs, busiest first, then the wasted work. L2 and
/// memory are units too, each with an SM's share of the bandwidth. The counts are predicted for the
/// compiled kernel, followed by source counts if these differ. Cache hits are not modelled.
fn load(c: &Counters, compiled: &SassCounters, bits: Option<u32>, bytes: u64) -> Vec<String> {
    let units = load_of(c, Some(compiled), bits, bytes);
    let cycles = |unit: &Unit| {
        let (cycles, from_source) = (number(unit.cycles), number(unit.from_source));
        let text = match unit.is_from_source {
            true => "; from source, because the compiled count is unknown".to_owned(),
            false if cycles == from_source => String::new(),
            false => format!("; from source {from_source}"),
        };
        format!("{:22}{cycles:>6} cycles, at {}{text}", unit.name, unit.rate)
    };
    let mut lines: Vec<String> = units.iter().map(cycles).collect();
    let (most, unit) = (units[0].cycles, units[0].name);
    if c.fma > 0 {
        let share = percent(issuing_fmas(c) / most);
        lines.push(format!(
            "issuing the multiply-adds takes {share} of the cycles of the busiest unit"
        ));
    }
    let wavefronts = wavefronts(c, Some(compiled));
    let share = wavefronts.conflicts as f64 / wavefronts.all.max(1) as f64;
    if share > WORTH_NAMING {
        let from_source = if wavefronts.is_from_source { ", from source" } else { "" };
        let share = percent(share);
        lines.push(format!(
            "bank conflicts cost {share} of the wavefronts of shared memory{from_source}"
        ));
    }
    let used = c.global_bytes() as f64 / (32.0 * c.global_sectors as f64);
    if used < 1.0 - WORTH_NAMING {
        let bytes = number(32.0 * used);
        lines.push(format!("{bytes} of the 32 bytes of a global sector are requested, on average"));
    }
    if c.divergent_branches as f64 > WORTH_NAMING * c.branch as f64 {
        let share = percent(c.divergent_branches as f64 / c.branch as f64);
        lines.push(format!("{share} of the branches diverge"));
    }
    lines.push(String::new());
    lines.push(format!(
        "According to a model of the compiler, {unit} is the bottleneck. A GPU may need fewer \
         cycles: L1 hits do not reach L2, and L2 hits do not reach memory."
    ));
    lines
}
