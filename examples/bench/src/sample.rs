//! Small shapes for the simulation of a spec, in which a few blocks represent all.

use crate::cli::Failure;
use crate::data;
use crate::epilogue::launch_products;
use crate::products::Products;
use crate::rows::launch::{Inputs, KernelChoice, ReductionLaunch};
pub use gemm_draw::shapes::Arrays;
use gemm_draw::shapes::{self, SimulationLimits};
use gemm_dsl::plan::{ReducePlan, SgemmPlan};
use gemm_dsl::spec::newer_word;
use gemm_oracle::product::Size;
use gemm_runtime::sim::{Counters, SassCounters};
use gemm_runtime::spec::{Bounds, Over};
use gemm_runtime::{Device, Error, LaunchReport, ReduceSpec, SgemmSpec, StepReport};

/// Seed of the random operands; the counters do not depend on it.
const SEED: u64 = 1;

/// Limits of a simulated problem. Its simulation takes seconds.
const MOST: SimulationLimits = SimulationLimits { elements: 1 << 25, fmas: 1 << 27 };

/// Launch at a small shape.
pub struct SampleLaunch {
    /// Shape in words, such as `m = 64, n = 64, k = 32`.
    pub shape: String,
    pub launched: LaunchReport,
    /// Multiplications and additions of a GEMM; 0 for a reduction.
    pub flops: f64,
    /// Multiply-adds of a GEMM, or the elements of each reduced array.
    pub work: u64,
}

/// Returns the shape of [`shapes::arrays`] within the limits of the example programs.
///
/// # Errors
/// Returns a message if a single block is too large.
pub fn arrays(plan: &ReducePlan) -> Result<Arrays, String> {
    shapes::arrays(plan, MOST)
}

/// Launches a reduction.
///
/// # Errors
/// Returns the errors of the launch.
pub fn reduce(spec: &ReduceSpec, arrays: Arrays, device: &Device) -> Result<SampleLaunch, Failure> {
    let Arrays { size: size @ (outer, len, _), elements } = arrays;
    let chosen = KernelChoice::from_spec(spec.clone())?;
    let inputs = Inputs::new(None, spec.element, elements, spec.inputs().len(), SEED)?;
    let (size, offsets) = match spec.over {
        Over::Segments => {
            let offsets = (0..=outer).map(|segment| (segment * len) as u32).collect::<Vec<u32>>();
            ((outer, elements, 1), Some(offsets))
        }
        _ => (size, None),
    };
    let launched = ReductionLaunch::new(device, &chosen, size, offsets.as_deref())?.run(&inputs)?;
    let mut shape = arrays.in_words(spec.over);
    if launched.passes() > 1 {
        shape += &format!(" (the first of {} launches)", launched.passes());
    }
    Ok(SampleLaunch { shape, launched, flops: 0.0, work: elements as u64 })
}

/// Returns the shape of [`shapes::extents`] and [`shapes::products`] within the limits of the
/// example programs.
///
/// # Errors
/// Returns a message if one tile is too large.
pub fn products(plan: &SgemmPlan) -> Result<Products, String> {
    let (m, n, k) = shapes::extents(plan, MOST)?;
    let size = raised(Size { m, n, k }, multiples(plan), usize::next_multiple_of);
    Ok(so_many(shapes::products(plan), size))
}

fn so_many(count: usize, size: Size) -> Products {
    Products { size, batch: Some(count).filter(|count| *count > 1) }
}

/// Returns the numbers of which the extents (m, n, k) must be multiples. They are 1, unless the
/// spec accepts only whole tiles.
pub fn multiples(plan: &SgemmPlan) -> [usize; 3] {
    let spec = plan.spec();
    match spec.bounds {
        Bounds::Guarded => [1; 3],
        Bounds::Aligned => {
            let (rows, columns) = plan.block_tile();
            [rows * spec.cluster, columns, plan.k_step()].map(|of| of as usize)
        }
        bounds => newer_word(bounds),
    }
}

/// Returns extents that both specs accept, and a number of GEMMs that is sufficient for both.
///
/// The extents are those of [`products`] for the first spec, enlarged if necessary. A spec without
/// a batch is launched once for each GEMM.
///
/// # Errors
/// Returns a message if no such shape is small enough.
pub fn products_of_both(own: &SgemmPlan, other: &SgemmPlan) -> Result<Products, String> {
    let (Products { size, .. }, others) = (products(own)?, multiples(other));
    let both = [own, other];
    let fewest = both.map(shapes::products).into_iter().fold(1, usize::max);
    let fill = |count: &usize| {
        let mut must_be_full = both.iter().filter(|plan| plan.spec().bounds == Bounds::Aligned);
        must_be_full.all(|plan| count.is_multiple_of(plan.products() as usize))
    };
    let count = (fewest..).find(fill).unwrap_or(fewest);
    let lcm = |a: usize, b: usize| (1..=b).map(|n| n * a).find(|of| of.is_multiple_of(b));
    let whole = raised(size, others, |extent, of| lcm(extent, of).unwrap_or(extent * of));
    // These extents need not be multiples of the first spec's tile, if it accepts such extents.
    let ragged = raised(size, others, usize::next_multiple_of);
    let is_taken = |size: &Size| raised(*size, multiples(own), usize::next_multiple_of) == *size;
    let mut taken = [whole, ragged].into_iter().filter(is_taken).map(|size| so_many(count, size));
    taken.find(fits).ok_or_else(|| {
        let [m, n, k] = others;
        format!(
            "no shape that both specs accept is small enough to simulate: the other spec is \
             `bounds: aligned` and takes only multiples of {m} x {n} x {k}"
        )
    })
}

fn raised(size: Size, multiples: [usize; 3], to: impl Fn(usize, usize) -> usize) -> Size {
    let [m, n, k] = multiples;
    Size { m: to(size.m, m), n: to(size.n, n), k: to(size.k, k) }
}

fn fits(products: &Products) -> bool {
    let (Size { m, n, k }, count) = (products.size, products.count());
    let elements = count * (m * k + k * n + m * n);
    elements as u64 <= MOST.elements && (count * m * n * k) as u64 <= MOST.fmas
}

/// Returns the counts of the main kernel of a launch.
///
/// # Errors
/// Returns [`Error::Internal`] if the simulator counted nothing.
pub fn counters(launched: &LaunchReport) -> Result<&Counters, Error> {
    launched.counters().ok_or_else(|| uncounted("its source"))
}

/// Returns the source counters and the compiled-kernel counters of a step. The simulator must count
/// both.
///
/// # Errors
/// Returns [`Error::Internal`] if the simulator did not count one of them.
pub fn compiled<'l>(step: &StepReport<'l>) -> Result<(&'l Counters, &'l SassCounters), Error> {
    let text = step.counters().ok_or_else(|| uncounted("its source"))?;
    Ok((text, step.compiled_counters().ok_or_else(|| uncounted("it as compiled"))?))
}

/// Returns the counters of [`compiled`] for the main kernel of a launch.
///
/// # Errors
/// Returns the errors of [`compiled`], and an error if nothing was launched.
pub fn compiled_of_main(launched: &LaunchReport) -> Result<(&Counters, &SassCounters), Error> {
    compiled(&launched.main_step().ok_or_else(|| uncounted("a launch"))?)
}

fn uncounted(what: &str) -> Error {
    Error::Internal(format!("the simulator counted nothing for {what}"))
}

/// Launches GEMMs.
///
/// # Errors
/// Returns the errors of the launch.
pub fn product(
    spec: &SgemmSpec,
    products: Products,
    device: &Device,
) -> Result<SampleLaunch, Failure> {
    let Size { m, n, k } = products.size;
    let a = data::uniform(SEED, m * k, -1.0, 1.0);
    let b = data::uniform(SEED + 1, k * n, -1.0, 1.0);
    let launched = launch_products(device, spec, &a, &b, products)?;
    let work = products.count() as u64 * m as u64 * n as u64 * k as u64;
    let mut shape = format!("m = {m}, n = {n}, k = {k}");
    if let Some(count) = products.batch {
        shape += &format!(", {count} GEMMs");
    }
    if spec.converts_matrices() {
        shape += &format!(" (the GEMM kernel, of {} launches)", launched.passes());
    }
    Ok(SampleLaunch { shape, launched, flops: 2.0 * work as f64, work })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::stages;
    use gemm_runtime::sim::Simulation;

    /// The kernels that split A and B run first. The kernel that multiplies is the main one, and
    /// the launch report describes it.
    #[test]
    fn the_launch_that_multiplies_is_the_main_one() {
        let stages = stages::sgemm();
        let stage = stages.iter().find(|stage| stage.name == "tma").expect("a stage");
        let size = Size { m: 128, n: 128, k: 64 };
        let simulation = Simulation { compiled: true, ..Simulation::default() };
        let ran = product(&stage.spec, Products::single(size), &Device::simulator_of(simulation))
            .expect("a launch");
        let main: Vec<bool> = ran.launched.steps().map(|step| step.is_main()).collect();
        assert_eq!(main.iter().filter(|is_main| **is_main).count(), 1);
        assert!(main.len() > 1 && main.last() == Some(&true), "{main:?}");
        let (text, compiled) = compiled_of_main(&ran.launched).expect("counts");
        assert_eq!(counters(&ran.launched).expect("counts"), text);
        assert!(text.mma_flops as f64 == ran.flops && compiled.hgmma == text.wgmma, "{compiled:?}");
        let text_alone =
            product(&stage.spec, Products::single(size), &Device::simulator()).expect("a launch");
        assert!(compiled_of_main(&text_alone.launched).is_err());
    }
}
