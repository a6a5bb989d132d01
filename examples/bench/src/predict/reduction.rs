//! Counts of a whole-array reduction that is too large to simulate.

use super::LaunchCounts;
use crate::cli::Failure;
use crate::rows::launch::{Inputs, KernelChoice, ReductionLaunch};
use crate::sample::compiled;
use gemm_dsl::Plan;
use gemm_dsl::plan::Blocks;
use gemm_dsl::spec::{Over, ReduceSpec};
use gemm_perf::Waits;
use gemm_runtime::internal::{compiled_work, samples_along};
use gemm_runtime::{Device, Error};

/// Seed of the operands; counts do not depend on the elements.
const SEED: u64 = 1;

/// Number of simulated blocks, if each block reduces a fixed number of elements.
const BLOCKS: u64 = 16;

/// Counts the launches of a reduction of an array, without their registers. A pass has one element
/// for each block of the previous pass.
///
/// Returns `None` if the spec does not reduce the whole array.
///
/// # Errors
/// Returns the errors of the simulator.
pub fn passes(spec: &ReduceSpec, len: usize) -> Result<Option<Vec<LaunchCounts>>, Failure> {
    if spec.over != Over::All {
        return Ok(None);
    }
    let plan = spec.plan().map_err(Error::from)?;
    let program = plan.program().map_err(Error::from)?;
    let unit = match plan.blocks() {
        Blocks::One => plan.elements_per_block() * BLOCKS,
        Blocks::InTurn(most) => plan.elements_per_round() * u64::from(most),
        Blocks::Runs(run) => u64::from(run) * BLOCKS,
    };
    let device = Device::simulator_compiled();
    let chosen = KernelChoice::from_spec(spec.clone())?;
    let (mut all, mut left) = (Vec::new(), len);
    loop {
        let mut pass: Option<LaunchCounts> = None;
        let mut passes = 1;
        for (len, times) in samples_along(left as u64, [unit, 2 * unit]) {
            let len = len as usize;
            let inputs = Inputs::new(None, spec.element, len, spec.inputs().len(), SEED)?;
            let launched =
                ReductionLaunch::new(&device, &chosen, (1, len, 1), None)?.run(&inputs)?;
            passes = passes.max(launched.passes());
            if let Some(step) = launched.steps().next() {
                let (counters, _) = compiled(&step)?;
                let counted =
                    pass.get_or_insert_with(|| LaunchCounts::new(&program, step.kernel()));
                counted.launch.blocks += times * f64::from(step.grid()[0]);
                counted.launch.work += compiled_work(&step)? * times;
                counted.launch.waits.barriers = counters.block_barriers as f64;
            }
        }
        let Some(mut pass) = pass else { break };
        let launch = &mut pass.launch;
        let blocks = launch.blocks.max(1.0);
        let rounds = (left as f64 / blocks / plan.elements_per_round() as f64).ceil().max(1.0);
        launch.waits =
            Waits { rounds, barriers: launch.waits.barriers / rounds, ..Waits::default() };
        launch.reads.once = left as f64 * f64::from(spec.element.elem().size());
        all.push(pass);
        let fewer = blocks.round() as usize;
        if passes == 1 || fewer >= left {
            break;
        }
        left = fewer;
    }
    Ok(Some(all))
}
