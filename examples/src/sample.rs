//! Small shapes at which a spec is simulated: as few blocks as show what each does.

use crate::beside::launch_once;
use crate::cli::Failure;
use crate::data;
use crate::rows::launch::{Chosen, Inputs, Launch};
pub use gemm_draw::shapes::Arrays;
use gemm_draw::shapes::{self, Most};
use gemm_dsl::plan::{ReducePlan, SgemmPlan, Shape};
use gemm_reference::product::Size;
use gemm_runtime::spec::Over;
use gemm_runtime::{Compiled, Device, Launched, ReduceSpec, SgemmSpec};

/// The operands are random; the counters do not depend on them.
const SEED: u64 = 1;

/// The most that is simulated.
const MOST: Most = Most { elements: 1 << 25, fmas: 1 << 27 };

/// A launch at a small shape.
pub struct Ran {
    /// The shape, in words.
    pub shape: String,
    /// The launch.
    pub launched: Launched,
    /// Multiplications and additions of a product; 0 of a reduction.
    pub flops: f64,
    /// Bytes of all operands, each once.
    pub bytes: usize,
}

/// As [`shapes::arrays`], with all that a program takes the time for.
///
/// # Errors
/// Says that a single block is too large.
pub fn arrays(plan: &ReducePlan) -> Result<Arrays, String> {
    shapes::arrays(plan, MOST)
}

/// Launches a reduction.
///
/// # Errors
/// Those of the launch.
pub fn reduce(spec: &ReduceSpec, arrays: Arrays, device: &Device) -> Result<Ran, Failure> {
    let Arrays { size: size @ (outer, len, _), elements } = arrays;
    let chosen = Chosen::of(spec.clone())?;
    let inputs = Inputs::new(None, (spec.element, elements), spec.inputs().len(), SEED)?;
    let (size, offsets) = match spec.over {
        Over::Segments => {
            let offsets = (0..=outer).map(|segment| (segment * len) as u32).collect::<Vec<u32>>();
            ((outer, elements, 1), Some(offsets))
        }
        _ => (size, None),
    };
    let launched = Launch::new(device, &chosen, size, offsets.as_deref())?.run(&inputs)?;
    let mut shape = arrays.in_words(spec.over);
    if launched.passes() > 1 {
        shape += &format!(" (the first of {} launches)", launched.passes());
    }
    let bytes = elements * spec.inputs().len() * spec.element.elem().size() as usize;
    Ok(Ran { shape, launched, flops: 0.0, bytes })
}

/// As [`shapes::extents`], likewise.
///
/// # Errors
/// Says that one tile is too large.
pub fn extents(plan: &SgemmPlan) -> Result<Size, String> {
    let (m, n, k) = shapes::extents(plan, MOST)?;
    Ok(Size { m, n, k })
}

/// What the profiler would count of the kernel that does most of a launch, given the same launch where that is counted.
pub fn compiled_of_main<'l>(launched: &Launched, compiled: &'l Launched) -> Option<&'l Compiled> {
    let main = launched.steps().position(|step| step.counters() == launched.counters())?;
    compiled.steps().nth(main)?.compiled_counters()
}

/// Launches a product.
///
/// # Errors
/// Those of the launch.
pub fn product(spec: &SgemmSpec, size: Size, device: &Device) -> Result<Ran, Failure> {
    let Size { m, n, k } = size;
    let a = data::uniform(SEED, m * k, -1.0, 1.0);
    let b = data::uniform(SEED + 1, k * n, -1.0, 1.0);
    let launched = launch_once(device, spec, (&a, &b), size)?;
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    let mut shape = format!("m = {m}, n = {n}, k = {k}");
    if let Shape::Tensor(_) = spec.plan()?.shape() {
        shape += &format!(" (the kernel that multiplies, of {} launches)", launched.passes());
    }
    let bytes = (m * k + k * n + m * n) * size_of::<f32>();
    Ok(Ran { shape, launched, flops, bytes })
}
