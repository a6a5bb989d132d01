//! A launch: the choice of the access variant, the binding of parameters, the passes.
//!
//! Everything up to the bound arguments is the same on a GPU and in the simulator.

mod bind;
#[cfg(test)]
mod tests;

pub(crate) use bind::{Argument, Bound, Extents, Grid};

use crate::compile::Resources;
use crate::device::cuda::Workspace;
use crate::device::{Backend, Device, simulator};
use crate::error::{Error, Result};
use crate::operand::Place;
use crate::program::Prepared;
use bind::Slots;
use gemm_dsl::ir::{Extent, Fill, Passes, Scratch};
use gemm_dsl::sim::Counters;
use std::fmt;
use std::sync::Arc;

/// What a launch did.
#[derive(Clone)]
#[non_exhaustive]
pub struct Launched {
    program: Arc<Prepared>,
    variant: usize,
    passes: usize,
    counters: Option<Box<Counters>>,
}

impl Launched {
    /// The access variant that ran: `vector` or `scalar`, or empty where the kernel has only one.
    /// Of a reduction, the one of the first pass.
    pub fn variant(&self) -> &str {
        self.program.variants.get(self.variant).map_or("", |v| &v.kernel.variant)
    }

    /// The number of kernel launches: more than one where a reduction took several passes, 0 where
    /// there was nothing to compute.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Registers of a thread, its stack and the static shared memory of a block, as the driver
    /// reports them of the machine code of the variant that ran. Spilled registers lie on the
    /// stack; the driver does not tell them apart, so their fields are 0. None in the simulator.
    pub fn resources(&self) -> Option<Resources> {
        self.program.variants.get(self.variant)?.resources()
    }

    /// What the simulator counted in the first pass; none on a GPU.
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_deref()
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("variant", &self.variant())
            .field("passes", &self.passes)
            .finish_non_exhaustive()
    }
}

/// Launches a program on operands whose lengths suffice for the extents.
pub(crate) fn launch(
    device: &Device,
    program: &Arc<Prepared>,
    inputs: &[Bound],
    outputs: &[Bound],
    extents: Extents,
) -> Result<Launched> {
    let passes = match program.program.passes {
        Passes::Once => vec![extents],
        Passes::Fold { per_block } => {
            let length = extents.get(Extent::Length).unwrap_or(0);
            let lengths = Passes::fold_lengths(per_block, length);
            lengths.into_iter().map(Extents::Length).collect()
        }
    };
    let last = passes.len().saturating_sub(1);
    let (scratch, _held) = scratch(device, program, inputs, outputs, &passes)?;
    let intermediate = |pass: usize| {
        let buffer = scratch.get(pass % 2).map(std::slice::from_ref);
        buffer.ok_or_else(|| Error::Internal("a fold has no scratch buffers".to_owned()))
    };
    let mut launched =
        Launched { program: Arc::clone(program), variant: 0, passes: 0, counters: None };
    for (pass, extents) in passes.into_iter().enumerate() {
        let slots = Slots {
            inputs: if pass == 0 { inputs } else { intermediate(pass - 1)? },
            outputs: if pass == last { outputs } else { intermediate(pass)? },
            scratch: &scratch,
            extents,
        };
        let chosen = slots.choose(program)?;
        if pass == 0 {
            launched.variant = chosen.index;
        }
        let Some(grid) = chosen.grid()? else {
            continue;
        };
        let arguments = slots.arguments(&chosen)?;
        let counters = match device.backend() {
            Backend::Gpu(gpu) => {
                gpu.launch(chosen.variant, grid, &arguments)?;
                None
            }
            Backend::Simulator => {
                Some(Box::new(simulator::launch(&chosen.variant.kernel, arguments)?))
            }
        };
        if launched.passes == 0 {
            launched.counters = counters;
        }
        launched.passes += 1;
    }
    Ok(launched)
}

/// The scratch buffers of a launch. On a GPU they are shared by all launches of the device, one
/// after the other on its stream: the guard keeps other threads from launching in between.
fn scratch<'d>(
    device: &'d Device,
    program: &Prepared,
    inputs: &[Bound],
    outputs: &[Bound],
    passes: &[Extents],
) -> Result<(Vec<Bound>, Option<Workspace<'d>>)> {
    let declared = &program.program.scratch;
    let folds = program.program.passes != Passes::Once;
    let Some(&extents) = passes.first() else {
        return Ok((Vec::new(), None));
    };
    // A reduction that takes one pass has no intermediate values.
    if declared.is_empty() || (folds && passes.len() == 1) {
        return Ok((Vec::new(), None));
    }
    let slots = Slots { inputs, outputs, scratch: &[], extents };
    let first = slots.choose(program)?;
    let mut workspace = match device.backend() {
        Backend::Gpu(gpu) => Some((gpu, gpu.workspace())),
        Backend::Simulator => None,
    };
    let mut buffers = Vec::with_capacity(declared.len());
    for (number, Scratch { len, fill }) in declared.iter().enumerate() {
        let len = first.eval(len)?;
        let place = match &mut workspace {
            None => simulator::scratch(len)?,
            Some((gpu, workspace)) => {
                let address = workspace.scratch(number, len)?;
                if *fill == Fill::Zero {
                    gpu.zero(address, len)?;
                }
                Place::Gpu(address)
            }
        };
        if folds {
            // Pass p writes the values that pass p + 1 reads to buffer p mod 2.
            let values = passes.iter().skip(1 + number).step_by(2);
            let most = values.filter_map(|e| e.get(Extent::Length)).max().unwrap_or(0);
            if most > len {
                return Err(Error::Internal(format!(
                    "scratch buffer {number} has {len} elements, but a pass writes {most}"
                )));
            }
        }
        buffers.push(Bound::packed("scratch", place, len));
    }
    Ok((buffers, workspace.map(|(_, workspace)| workspace)))
}
