//! GEMMs captured into CUDA graphs: replays on changed operands have the bits of direct launches.

use crate::{alone, equal_bits, on_gpu, own_gpu};
use gemm_dsl::spec::{Along, EpilogueArg, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_oracle::{random, sharing};
use gemm_runtime::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use gemm_runtime::cudarc::driver::{CudaGraph, CudaSlice, CudaStream};
use gemm_runtime::{
    ByName, Device, Error, LaunchReport, Matrix, MatrixMut, MatrixRef, Sgemm, SgemmKernel, sgemm,
    sgemm_kernel,
};
use gemm_tests::bits;
use libtest_mimic::{Failed, Trial};
use std::sync::Arc;

/// Capture mode that allows allocations by other threads.
const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

/// Name, spec, size and batch size of each captured GEMM.
const CASES: [(&str, &str, Size, Option<usize>); 6] = [
    ("plain", "tile: 64x64x8, thread: 4x4, float4", Size::new(200, 132, 40), None),
    (
        "operands",
        "tile: 64x64x16, thread: 8x4, float4, stages: 3, \
         epilogue: |acc, bias[n], scale[m], residual[m, n], slope| \
         { let t = acc * scale + bias; (if t < 0.0 { slope * t } else { gelu(t) }) + residual }",
        Size::new(130, 200, 70),
        None,
    ),
    ("scaled", "tile: 32x32x8, thread: 4x4, scaled", Size::new(65, 33, 31), None),
    (
        "in_place",
        "tile: 32x64x8, thread: 4x8, float4, epilogue: |acc, bias[n], c[m, n]| tanh(acc + bias) - \
         0.5 * c",
        Size::new(100, 260, 24),
        None,
    ),
    ("batch", "tile: 16x16x16, thread: 2x4, float4, batch: strided", Size::square(16), Some(300)),
    (
        "batch_in_place",
        "tile: 32x32x8, thread: 4x4, batch: strided, scaled, \
         epilogue: |acc, bias[n], residual[m, n]| relu(acc + bias) + residual",
        Size::new(33, 20, 9),
        Some(7),
    ),
];

/// Size and batch size for kernels with split-K or stream-K.
const SHARED: (Size, usize) = (Size::new(130, 200, 204), 3);

pub fn trials() -> Vec<Trial> {
    let shared = sharing::LINES.iter().map(|(name, line)| {
        let count = line.contains("batch").then_some(SHARED.1);
        (name, line, SHARED.0, count)
    });
    let cases = CASES.iter().map(|(name, line, size, batch)| (name, line, *size, *batch));
    let cases = cases.chain(shared).map(|(name, line, size, batch)| {
        on_gpu(format!("capture::{name}"), move || replayed(line, size, batch))
    });
    cases.chain([on_gpu("capture::chain", chain)]).collect()
}

/// Captures the work that a closure submits to a device's stream.
pub fn captured(
    stream: &Arc<CudaStream>,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<CudaGraph, Failed> {
    let _alone = alone();
    stream.begin_capture(MODE)?;
    let done = work();
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?;
    done?;
    Ok(graph.ok_or("an empty graph")?)
}

/// Operands of a GEMM in memory that the user allocated.
struct Memory {
    size: Size,
    batch: Option<usize>,
    operands: Vec<EpilogueArg>,
    /// A, B, C, then the operands of the epilogue. A scalar operand is an array of one element.
    arrays: Vec<CudaSlice<f32>>,
}

impl Memory {
    fn new(
        stream: &Arc<CudaStream>,
        spec: &SgemmSpec,
        size: Size,
        batch: Option<usize>,
    ) -> Result<Self, Failed> {
        let Size { m, n, k } = size;
        let count = batch.unwrap_or(1);
        let operands = spec.operands();
        let beside = operands.iter().map(|operand| match operand.along {
            Along::Nothing => 1,
            Along::N => n,
            Along::M => m,
            Along::Mn => count * m * n,
            Along::Pairs => count * m * (n / 2),
            Along::Batch => count,
            Along::BatchN => count * n,
            Along::BatchM => count * m,
        });
        let lengths = [count * m * k, count * k * n, count * m * n].into_iter().chain(beside);
        let arrays = lengths.map(|len| stream.alloc_zeros(len)).collect::<Result<_, _>>()?;
        Ok(Self { size, batch, operands, arrays })
    }

    /// Fills all arrays with new elements, including C.
    fn fill(&mut self, stream: &Arc<CudaStream>, seed: u64) -> Result<(), Failed> {
        for (number, array) in self.arrays.iter_mut().enumerate() {
            let values = random::values(seed * 100 + number as u64, array.len());
            stream.memcpy_htod(&values, array)?;
        }
        Ok(())
    }

    /// Launches the kernel on these operands.
    fn launch(&mut self, kernel: &Sgemm<ByName>, device: &Device) -> Result<LaunchReport, Error> {
        self.launch_with(kernel, device, 0.625)
    }

    /// Launches with one value for all scalar operands. Scalars are arguments of the launch, so
    /// replays of a graph use the same values.
    fn launch_with(
        &mut self,
        kernel: &Sgemm<ByName>,
        device: &Device,
        number: f32,
    ) -> Result<LaunchReport, Error> {
        let Self { size: Size { m, n, k }, batch, .. } = *self;
        let [a, b, c, beside @ ..] = &mut self.arrays[..] else {
            return Err(Error::Internal("there are three matrices".to_owned()));
        };
        let view = |array, rows, cols| match batch {
            None => MatrixRef::new(array, rows, cols),
            Some(count) => MatrixRef::batch(array, count, rows, cols),
        };
        let matrices =
            self.operands.iter().zip(&*beside).map(|(operand, array)| match operand.along {
                Along::Mn => view(array, m, n).map(Some),
                Along::BatchN => MatrixRef::new(array, array.len() / n, n).map(Some),
                Along::BatchM => MatrixRef::new(array, array.len() / m, m).map(Some),
                _ => Ok(None),
            });
        let matrices = matrices.collect::<Result<Vec<_>, _>>()?;
        let mut call = kernel.call(device);
        for ((operand, array), matrix) in self.operands.iter().zip(&*beside).zip(&matrices) {
            call = match (operand.along, matrix) {
                (Along::Nothing, _) => call.operand(&operand.name, number),
                (_, Some(matrix)) => call.operand(&operand.name, matrix),
                (_, None) => call.operand(&operand.name, array),
            };
        }
        let mut c = match batch {
            None => MatrixMut::new(c, m, n)?,
            Some(count) => MatrixMut::batch(c, count, m, n)?,
        };
        call.launch(&view(a, m, k)?, &view(b, k, n)?, &mut c)
    }

    fn c(&self, stream: &Arc<CudaStream>) -> Result<Vec<f32>, Failed> {
        Ok(stream.clone_dtoh(&self.arrays[2])?)
    }
}

/// Captures two launches once and replays them on changing operands. Each replay has the bits of
/// direct launches. The second launch reads the results of the first from C.
fn replayed(line: &str, size: Size, batch: Option<usize>) -> Result<(), Failed> {
    // The stream is separate, because launches of other tests on a capturing stream would also be
    // captured.
    let gpu = own_gpu()?;
    let (_, stream) = gpu.cudarc().ok_or("a GPU has a stream")?;
    let spec: SgemmSpec = line.parse()?;
    let kernel = Sgemm::<ByName>::new(spec.clone())?;
    let mut memory = Memory::new(stream, &spec, size, batch)?;
    // The first launch compiles and allocates, which a capture forbids. This is so even with alpha
    // = 0, which computes no sums.
    memory.launch_with(&kernel, &gpu, 0.0)?;
    memory.fill(stream, 0)?;
    let before = memory.c(stream)?;
    let graph = captured(stream, || memory.launch(&kernel, &gpu).map(drop))?;
    let after = memory.c(stream)?;
    equal_bits(&format!("`{line}`"), ("after the capture", &after), ("before it", &before))?;

    let mut last = before;
    for seed in 1..4 {
        let mut both = Vec::new();
        for replays in [true, false] {
            memory.fill(stream, seed)?;
            for _ in 0..2 {
                if replays { graph.launch()? } else { memory.launch(&kernel, &gpu).map(drop)? }
            }
            both.push(memory.c(stream)?);
        }
        let replayed = ("after replays", &both[0][..]);
        equal_bits(&format!("`{line}`, operands {seed}"), replayed, ("after launches", &both[1]))?;
        if bits(&both[0]) == bits(&last) {
            return Err(format!(
                "`{line}`: a replay did not change the results of the previous replay"
            )
            .into());
        }
        last = both.swap_remove(0);
    }
    Ok(())
}

const FIRST: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 4x4, float4);
sgemm_kernel! {
    struct Layer;
    tile: 64x64x8, thread: 8x4, double_buffer, epilogue: |acc, bias[n]| relu(acc + bias)
}

/// One graph contains several GEMMs. Each uses the result of the previous one, in buffers of the
/// runtime.
fn chain() -> Result<(), Failed> {
    const N: usize = 96;
    let gpu = own_gpu()?;
    let (_, stream) = gpu.cudarc().ok_or("a GPU has a stream")?;
    let mut a = stream.alloc_zeros::<f32>(N * N)?;
    let b = gpu.upload_matrix(&random::values(1, N * N), N, N)?;
    let bias = gpu.upload(&random::values(2, N))?;
    let mut written = [gpu.alloc_matrix(N, N)?, gpu.alloc_matrix(N, N)?, gpu.alloc_matrix(N, N)?];
    let all = |a: &CudaSlice<f32>, [once, twice, thrice]: &mut [Matrix; 3]| {
        FIRST.call(&gpu).launch(&MatrixRef::new(a, N, N)?, &b, once)?;
        Layer::launch(&gpu, once, &b, twice, LayerOperands { bias: &bias })?;
        sgemm(&twice.view().t(), once, thrice).alpha(0.5).run(&gpu).map(drop)
    };
    all(&a, &mut written)?;
    let graph = captured(stream, || all(&a, &mut written))?;
    let mut last = Vec::new();
    for seed in 10..13 {
        stream.memcpy_htod(&random::values(seed, N * N), &mut a)?;
        graph.launch()?;
        let replayed = gpu.download(&written[2])?;
        if bits(&replayed) == bits(&last) {
            return Err("a replay did not change the previous results".into());
        }
        all(&a, &mut written)?;
        let direct = gpu.download(&written[2])?;
        let (replayed, launched) = (("replayed", &replayed[..]), ("launched", &direct[..]));
        equal_bits(&format!("operands {seed}"), replayed, launched)?;
        last = direct;
    }
    Ok(())
}
