//! GEMMs in `f64` on the GPU. The host would take minutes for a large GEMM.

use super::{Gpu, failed};
use cudarc::driver::{CudaFunction, CudaSlice, CudaView, LaunchConfig, PushKernelArg};
use gemm_oracle::product::{Size, Truth};
use gemm_runtime::Error;
use std::cell::OnceCell;

/// Kernel that computes one element of A·B and of |A|·|B| per thread, from tiles in shared memory.
const TRUTH: &str = r#"
extern "C" __global__ void __launch_bounds__(256) truth(const float *__restrict__ a,
                                                        const float *__restrict__ b,
                                                        double *values, double *magnitudes,
                                                        int m, int n, int k) {
    __shared__ double as[16][16], bs[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    double value = 0.0, magnitude = 0.0;
    for (int start = 0; start < k; start += 16) {
        const int p = start + threadIdx.x, q = start + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && p < k ? (double)a[(size_t)row * k + p] : 0.0;
        bs[threadIdx.y][threadIdx.x] = q < k && col < n ? (double)b[(size_t)q * n + col] : 0.0;
        __syncthreads();
        for (int i = 0; i < 16; ++i) {
            const double x = as[threadIdx.y][i], y = bs[i][threadIdx.x];
            value = fma(x, y, value);
            magnitude = fma(fabs(x), fabs(y), magnitude);
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        values[(size_t)row * n + col] = value;
        magnitudes[(size_t)row * n + col] = magnitude;
    }
}
"#;

const TILE: u32 = 16;

/// Number of rows that the host recomputes, to detect a fault of the kernel above.
const CHECKED_ROWS: usize = 2;

/// Reference GEMMs in `f64`, on the GPU or on the host.
pub struct GpuReference<'d> {
    gpu: Gpu<'d>,
    /// Compiled at the first use.
    kernel: OnceCell<CudaFunction>,
}

impl<'d> GpuReference<'d> {
    /// Creates a reference that uses the GPU for large GEMMs and the host for small ones.
    pub fn new(gpu: Gpu<'d>) -> Self {
        Self { gpu, kernel: OnceCell::new() }
    }

    fn kernel(&self) -> Result<&CudaFunction, Error> {
        if self.kernel.get().is_none() {
            // The cell is still empty, because no other thread can access it.
            let _ = self.kernel.set(self.gpu.load("truth", TRUTH)?);
        }
        self.kernel.get().ok_or_else(|| Error::Internal("an unexpected kernel".to_owned()))
    }

    /// Computes A·B and |A|·|B|. `a` and `b` must contain the same elements on the GPU and on the
    /// host.
    ///
    /// # Errors
    /// Returns [`Error::TooLarge`] for extents beyond the kernel's grid, [`Error::Internal`] if the
    /// host computes another result, and the errors of the driver.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    pub fn product(
        &self,
        a: &CudaView<'_, f32>,
        host_a: &[f32],
        b: &CudaView<'_, f32>,
        host_b: &[f32],
        size: Size,
    ) -> Result<Truth, Error> {
        let gpu = self.gpu;
        let Size { m, n, k } = size;
        let elements = m * n;
        if elements == 0 || k == 0 || elements * k <= 1 << 24 {
            return Ok(Truth::on_host(host_a, host_b, size));
        }
        let extent = |extent: usize| {
            i32::try_from(extent).ok().filter(|&e| e <= 1 << 20).ok_or_else(|| Error::TooLarge {
                what: format!("extent {extent}"),
                limit: 1 << 20,
                remedy: "The reference does not support it",
            })
        };
        let (rows, cols, depth) = (extent(m)?, extent(n)?, extent(k)?);
        let kernel = self.kernel()?;
        let zeros = || {
            let zeros = gpu.stream.alloc_zeros::<f64>(elements);
            zeros.map_err(failed(format!("allocating {elements} elements of the reference")))
        };
        let (mut values, mut magnitudes) = (zeros()?, zeros()?);
        let config = LaunchConfig {
            grid_dim: (cols.unsigned_abs().div_ceil(TILE), rows.unsigned_abs().div_ceil(TILE), 1),
            block_dim: (TILE, TILE, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = gpu.stream.launch_builder(kernel);
        launch
            .arg(a)
            .arg(b)
            .arg(&mut values)
            .arg(&mut magnitudes)
            .arg(&rows)
            .arg(&cols)
            .arg(&depth);
        // SAFETY: the arguments are the kernel's parameters. `a` has m·k elements and `b` has k·n,
        // as do the copies on the host. The results have m·n elements.
        unsafe { launch.launch(config) }.map_err(failed("launching the reference"))?;
        let read = |slice: &CudaSlice<f64>| {
            gpu.stream.clone_dtoh(slice).map_err(failed("copying the reference from the GPU"))
        };
        let truth = Truth { k, values: read(&values)?, magnitudes: read(&magnitudes)? };
        check(&truth, host_a, host_b, size)?;
        Ok(truth)
    }
}

/// Compares the first and the last row with the results of the host.
fn check(truth: &Truth, a: &[f32], b: &[f32], size: Size) -> Result<(), Error> {
    let Size { m, n, k } = size;
    for row in [0, m - 1].into_iter().take(CHECKED_ROWS.min(m)) {
        let host = Truth::on_host(&a[row * k..(row + 1) * k], b, Size { m: 1, n, k });
        let range = row * n..(row + 1) * n;
        let rows = truth.values[range.clone()].iter().zip(&truth.magnitudes[range]);
        let host_rows = host.values.iter().zip(&host.magnitudes);
        let agree = |(gpu, host): ((&f64, &f64), (&f64, &f64))| {
            let allowed = 4.0 * k as f64 * f64::EPSILON * host.1;
            (gpu.0 - host.0).abs() <= allowed && (gpu.1 - host.1).abs() <= allowed
        };
        if !rows.zip(host_rows).all(agree) {
            return Err(Error::Internal(format!("row {row} of the reference is wrong")));
        }
    }
    Ok(())
}
