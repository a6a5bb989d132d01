//! The simulator as a device: memory of the process, launches that finish before they return.

use crate::error::{Error, Result};
use crate::launch::Argument;
use crate::operand::Place;
use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::sim::{self, Counters};

pub(crate) fn upload(elements: &[f32]) -> Result<sim::Buffer> {
    check_room(elements.len())?;
    Ok(sim::Buffer::from_f32(elements))
}

pub(crate) fn zeros(len: usize) -> Result<sim::Buffer> {
    check_room(len)?;
    Ok(sim::Buffer::zeros(len))
}

/// Scratch memory of one launch.
pub(crate) fn scratch(len: u64) -> Result<Place> {
    let buffer = zeros(usize::try_from(len).unwrap_or(usize::MAX))?;
    Ok(Place::Simulated { buffer, offset: 0 })
}

/// Refuses what the process's allocator would abort on.
fn check_room(len: usize) -> Result<()> {
    Vec::<f32>::new().try_reserve_exact(len).map_err(|_| Error::OutOfMemory {
        bytes: (len as u64).saturating_mul(size_of::<f32>() as u64),
        device: "the simulator (memory of this process)".to_owned(),
    })
}

pub(crate) fn launch(kernel: &VerifiedKernel, arguments: Vec<Argument>) -> Result<Counters> {
    let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
    for argument in arguments {
        match argument {
            Argument::Word(bits) => scalars.push(bits.into()),
            Argument::Double(bits) => scalars.push(bits),
            Argument::Buffer(Place::Simulated { buffer, .. }) => buffers.push(buffer),
            Argument::Buffer(Place::Gpu(_)) => {
                return Err(Error::Internal("GPU memory in the simulator".to_owned()));
            }
        }
    }
    Ok(sim::launch(kernel, &buffers, &scalars)?)
}
