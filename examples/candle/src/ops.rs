//! Operations of candle whose kernels are those of gemm-runtime: a linear layer with bias and
//! activation, and a softmax over the results of a linear layer.

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Error, Layout, Result, Shape};
#[cfg(feature = "cuda")]
use candle_core::{CudaDevice, CudaStorage, backend::BackendStorage};
use gemm_runtime::bounds::{Vector, VectorOf};
use gemm_runtime::{
    Buffer, Device, Epilogue, MN, Map, MatrixMut, MatrixRef, N, epilogue, row_kernel, sgemm,
};
use std::sync::OnceLock;

const BIAS_AND_GELU: Epilogue<(N,)> = epilogue!(|acc, bias[n]| gelu(acc + bias));
const SOFTMAX: Map<(MN,)> = row_kernel!(|x[m, n]| {
    let e = exp(x - max(x));
    e / sum(e)
});

/// `gelu(x · wᵀ + bias)` of `x` (m, k), `w` (n, k) and `bias` (n), in one kernel.
#[derive(Default)]
pub struct LinearGelu {
    devices: Devices,
}

/// `softmax(x · wᵀ)` over rows, of `x` (m, k) and `w` (n, k), in two kernels.
#[derive(Default)]
pub struct LinearSoftmax {
    devices: Devices,
}

impl CustomOp3 for LinearGelu {
    fn name(&self) -> &'static str {
        "linear-gelu"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        w: &CpuStorage,
        w_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let device = self.devices.simulator();
        let (x, w) = (
            upload(device, x, x_layout.start_offset())?,
            upload(device, w, w_layout.start_offset())?,
        );
        let (x, w) = (matrix(&x, x_layout)?, matrix(&w, w_layout)?);
        let bias = upload(device, bias, vector(bias_layout)?.start)?;
        let (rows, cols) = (x.rows(), w.rows());
        let mut y = device.alloc_matrix(rows, cols).map_err(Error::wrap)?;
        linear_gelu(device, [x, w], &bias, &mut y.view_mut())?;
        let y = device.download(&y).map_err(Error::wrap)?;
        Ok((CpuStorage::F32(y), (rows, cols).into()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        w: &CudaStorage,
        w_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let candle = x.device();
        let device = self.devices.gpu(candle)?;
        let x = x.as_cuda_slice::<f32>()?.slice(x_layout.start_offset()..);
        let w = w.as_cuda_slice::<f32>()?.slice(w_layout.start_offset()..);
        let bias = bias.as_cuda_slice::<f32>()?.slice(vector(bias_layout)?);
        let (x, w) = (matrix(&x, x_layout)?, matrix(&w, w_layout)?);
        let (rows, cols) = (x.rows(), w.rows());
        let mut y = candle.alloc_zeros::<f32>(rows * cols)?;
        let mut view = MatrixMut::new(&mut y, rows, cols).map_err(Error::wrap)?;
        linear_gelu(device, [x, w], &bias, &mut view)?;
        Ok((CudaStorage::wrap_cuda_slice(y, candle.clone()), (rows, cols).into()))
    }
}

impl CustomOp2 for LinearSoftmax {
    fn name(&self) -> &'static str {
        "linear-softmax"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        w: &CpuStorage,
        w_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let device = self.devices.simulator();
        let (x, w) = (
            upload(device, x, x_layout.start_offset())?,
            upload(device, w, w_layout.start_offset())?,
        );
        let (x, w) = (matrix(&x, x_layout)?, matrix(&w, w_layout)?);
        let (rows, cols) = (x.rows(), w.rows());
        let alloc = || device.alloc_matrix(rows, cols).map_err(Error::wrap);
        let (mut logits, mut y) = (alloc()?, alloc()?);
        linear_softmax(device, [x, w], &mut logits.view_mut(), &mut y.view_mut())?;
        let y = device.download(&y).map_err(Error::wrap)?;
        Ok((CpuStorage::F32(y), (rows, cols).into()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        w: &CudaStorage,
        w_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let candle = x.device();
        let device = self.devices.gpu(candle)?;
        let x = x.as_cuda_slice::<f32>()?.slice(x_layout.start_offset()..);
        let w = w.as_cuda_slice::<f32>()?.slice(w_layout.start_offset()..);
        let (x, w) = (matrix(&x, x_layout)?, matrix(&w, w_layout)?);
        let (rows, cols) = (x.rows(), w.rows());
        let mut logits = candle.alloc_zeros::<f32>(rows * cols)?;
        let mut y = candle.alloc_zeros::<f32>(rows * cols)?;
        let mut logits = MatrixMut::new(&mut logits, rows, cols).map_err(Error::wrap)?;
        let mut view = MatrixMut::new(&mut y, rows, cols).map_err(Error::wrap)?;
        linear_softmax(device, [x, w], &mut logits, &mut view)?;
        Ok((CudaStorage::wrap_cuda_slice(y, candle.clone()), (rows, cols).into()))
    }
}

fn linear_gelu(
    device: &Device,
    [x, w]: [MatrixRef<'_>; 2],
    bias: &impl VectorOf<f32>,
    y: &mut MatrixMut<'_>,
) -> Result<()> {
    let w = w.t();
    let call = sgemm(&x, &w, y).epilogue(BIAS_AND_GELU).operands(bias);
    call.run(device).map(drop).map_err(Error::wrap)
}

fn linear_softmax(
    device: &Device,
    [x, w]: [MatrixRef<'_>; 2],
    logits: &mut MatrixMut<'_>,
    y: &mut MatrixMut<'_>,
) -> Result<()> {
    sgemm(&x, &w.t(), logits).run(device).map_err(Error::wrap)?;
    SOFTMAX.launch(device, &*logits, y).map(drop).map_err(Error::wrap)
}

/// Uploads the elements of a tensor, starting at `first`.
fn upload(device: &Device, of: &CpuStorage, first: usize) -> Result<Buffer> {
    device.upload(&of.as_slice::<f32>()?[first..]).map_err(Error::wrap)
}

/// Matrix of a layout, in elements that start with its first one. One of its strides must be 1.
fn matrix<'a>(elements: &'a impl Vector<Element = f32>, layout: &Layout) -> Result<MatrixRef<'a>> {
    let (rows, cols) = layout.shape().dims2()?;
    match *layout.stride() {
        [pitch, 1] => MatrixRef::pitched(elements, rows, cols, pitch),
        [1, pitch] => MatrixRef::pitched(elements, cols, rows, pitch).map(|of| of.t()),
        _ => candle_core::bail!("rows or columns of a matrix must be contiguous: {layout:?}"),
    }
    .map_err(Error::wrap)
}

/// Elements of a contiguous vector.
fn vector(layout: &Layout) -> Result<std::ops::Range<usize>> {
    match (layout.dims(), layout.contiguous_offsets()) {
        ([_], Some((first, end))) => Ok(first..end),
        _ => candle_core::bail!("a bias must be a contiguous vector: {layout:?}"),
    }
}

/// Devices of an operation, which keep its compiled kernels. They are created at the first use.
#[derive(Default)]
struct Devices {
    simulator: OnceLock<Device>,
    #[cfg(feature = "cuda")]
    gpu: OnceLock<Device>,
}

impl Devices {
    /// Device of candle's CPU tensors. It returns the same bits as a GPU.
    fn simulator(&self) -> &Device {
        self.simulator.get_or_init(Device::simulator)
    }

    /// The GPU and the stream of a device of candle. An operation serves one device.
    #[cfg(feature = "cuda")]
    fn gpu(&self, candle: &CudaDevice) -> Result<&Device> {
        let stream = candle.cuda_stream();
        let context = stream.context().clone();
        if self.gpu.get().is_none() {
            let device = Device::from_cudarc(context.clone(), stream).map_err(Error::wrap)?;
            let _ = self.gpu.set(device); // another thread may have been first
        }
        let Some(device) = self.gpu.get() else { unreachable!("it was set above") };
        match device.cudarc() {
            Some((own, _)) if own.ordinal() == context.ordinal() => Ok(device),
            _ => candle_core::bail!("the operation serves another GPU: create one for each"),
        }
    }
}
