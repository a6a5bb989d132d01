//! Compilation of kernels before their first launch.

use super::tables::{CallFeatures, Tables};
use crate::device::Device;
use crate::error::Result;
use crate::kernel::problem;
use crate::warm_up::warm_up;
#[cfg(doc)]
use crate::{SgemmCall, error::Error, sgemm};
use gemm_dsl::spec::{Accuracy, Batch, SgemmSpec};
use gemm_dsl::tables::SgemmShape;

/// Compiles the kernels that [`sgemm`] would launch on a device for these shapes, in parallel. A
/// shape is `(m, n, k)`, or an [`SgemmShape`] with layouts and `batch`.
///
/// Each kernel that the device has not loaded is compiled once, for aligned and for unaligned
/// arrays, without `alpha` and `beta`. A `batch` of more than 1 is a strided batch. Later, a GEMM
/// of such a shape compiles nothing if no [`accuracy`](SgemmCall::accuracy) is set. For unaligned
/// or padded matrices the table may choose other kernels; describe such matrices in the
/// [`SgemmShape`]. To cover a call with its views, factors and lists, use [`SgemmCall::warm`].
///
/// On the simulator nothing is compiled: this function only generates the kernels.
///
/// ```
/// use gemm_runtime::{Device, SgemmShape, spec::GemmLayout, warm};
///
/// let device = Device::simulator();
/// warm(&device, [(64, 64, 64), (1, 128, 512)])?;
/// warm(&device, [SgemmShape::from((8, 8, 8)).batch(100).layout(GemmLayout::Nt)])?;
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// # Errors
/// * [`Error::Ahead`] with the first spec that failed and its error, after all others have been
///   tried.
/// * [`Error::TooLarge`] for an extent of 2^31 or more.
pub fn warm<I>(device: &Device, shapes: I) -> Result<()>
where
    I: IntoIterator,
    I::Item: Into<SgemmShape>,
{
    let tables = Tables::<f32, f32>::on(device, Accuracy::Ieee);
    let lines = shapes.into_iter().map(|shape| {
        let shape: SgemmShape = shape.into();
        let batch = (shape.batch != 1).then_some(Batch::Strided);
        let asked = CallFeatures { batch, ..CallFeatures::default() };
        let (_, line) = tables.table(asked).chosen(&problem(shape, device), asked)?;
        Ok(line)
    });
    warm_up::<SgemmSpec>(device, lines.collect::<Result<Vec<_>>>()?)
}
