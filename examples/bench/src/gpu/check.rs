//! Comparison of GEMM results with `f64` on the GPU. Only errors are copied to the host, which
//! saves time if many kernels compute the same shape.

use super::{Gpu, failed};
use crate::shapes::GemmShape;
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtrMut, LaunchConfig, PushKernelArg, result};
use gemm_dsl::spec::{Arith, GemmLayout};
use gemm_oracle::product::{self, Size};
use gemm_runtime::Error;

/// Kernel that computes one element of A·B and of |A|·|B| per thread, from tiles in shared memory,
/// with any strides of A and B.
const EXPECTED: &str = r#"
extern "C" __global__ void __launch_bounds__(256)
expected(const float *__restrict__ a, const float *__restrict__ b, double *values,
         double *magnitudes, int m, int n, int k, long long a_row, long long a_col,
         long long b_row, long long b_col) {
    __shared__ double as[16][16], bs[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    double value = 0.0, magnitude = 0.0;
    for (int start = 0; start < k; start += 16) {
        const int p = start + threadIdx.x, q = start + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && p < k ? (double)a[row * a_row + p * a_col] : 0.0;
        bs[threadIdx.y][threadIdx.x] = q < k && col < n ? (double)b[q * b_row + col * b_col] : 0.0;
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

/// Kernel that computes the largest error of each block's elements, relative to |A|·|B|. The error
/// is infinite if an element is NaN or a guard element behind the result has changed.
const FURTHEST: &str = r#"
extern "C" __global__ void __launch_bounds__(256)
furthest(const float *__restrict__ c, const double *__restrict__ values,
         const double *__restrict__ magnitudes, double *errors, long long elements,
         long long behind, double underflow) {
    __shared__ double most[256];
    const double infinite = __longlong_as_double(0x7ff0000000000000LL);
    double error = 0.0;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < elements + behind;
         i += stride) {
        double here;
        if (i < elements) {
            const double off = fabs((double)c[i] - values[i]);
            here = off <= underflow ? 0.0 : (off - underflow) / magnitudes[i];
            if (!(here >= 0.0)) here = infinite;
        } else {
            here = __float_as_uint(c[i]) == 0xffffffffu ? 0.0 : infinite;
        }
        error = fmax(error, here);
    }
    most[threadIdx.x] = error;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            most[threadIdx.x] = fmax(most[threadIdx.x], most[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) errors[blockIdx.x] = most[0];
}
"#;

const TILE: u32 = 16;
const THREADS: u32 = 256;
const BLOCKS: usize = 512;

/// Number of elements that the host recomputes, to detect a fault of the kernels above.
const SAMPLED: usize = 5;

/// Byte that fills results before a launch. Floats of these bytes are NaN.
const POISON: u8 = 0xff;

/// Number of guard elements behind a result. No launch may change them.
pub const BEHIND: usize = 1024;

/// Comparison of results with a reference in `f64`.
#[derive(Debug)]
pub struct Verifier<'d> {
    gpu: Gpu<'d>,
    expected: CudaFunction,
    furthest: CudaFunction,
    values: CudaSlice<f64>,
    magnitudes: CudaSlice<f64>,
    errors: CudaSlice<f64>,
}

impl<'d> Verifier<'d> {
    /// Allocates memory for results of at most `most` elements.
    ///
    /// # Errors
    /// Returns the errors of [`Gpu::load`] and of allocations.
    pub fn new(gpu: Gpu<'d>, most: usize) -> Result<Self, Error> {
        let zeros = |len: usize| {
            let zeros = gpu.stream.alloc_zeros::<f64>(len);
            zeros.map_err(failed(format!("allocating {len} elements of the reference")))
        };
        Ok(Self {
            gpu,
            expected: gpu.load("expected", EXPECTED)?,
            furthest: gpu.load("furthest", FURTHEST)?,
            values: zeros(most.max(1))?,
            magnitudes: zeros(most.max(1))?,
            errors: zeros(BLOCKS)?,
        })
    }

    /// Computes the reference of a GEMM. The arrays on the GPU and on the host must contain the
    /// same elements.
    ///
    /// # Errors
    /// Returns [`Error::TooLarge`] for extents beyond the kernel's grid, [`Error::Internal`] if the
    /// host computes another result or an array is too short, and the errors of the driver.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    pub fn expect(
        &mut self,
        a: &CudaSlice<f32>,
        host_a: &[f32],
        b: &CudaSlice<f32>,
        host_b: &[f32],
        shape: GemmShape,
    ) -> Result<(), Error> {
        let Size { m, n, k } = shape.size;
        if a.len() < m * k || b.len() < k * n || self.values.len() < m * n {
            return Err(Error::Internal(format!("not enough memory for the reference of {shape}")));
        }
        let extent = |extent: usize| {
            i32::try_from(extent).ok().filter(|&e| e <= 1 << 20).ok_or_else(|| Error::TooLarge {
                what: format!("extent {extent}"),
                limit: 1 << 20,
                remedy: "The reference does not support it",
            })
        };
        let (rows, cols, depth) = (extent(m)?, extent(n)?, extent(k)?);
        let [a_strides, b_strides] = strides(shape);
        let config = LaunchConfig {
            grid_dim: (cols.unsigned_abs().div_ceil(TILE), rows.unsigned_abs().div_ceil(TILE), 1),
            block_dim: (TILE, TILE, 1),
            shared_mem_bytes: 0,
        };
        let steps = [a_strides, b_strides].map(|steps| steps.map(|step| step as i64));
        let mut launch = self.gpu.stream.launch_builder(&self.expected);
        launch.arg(a).arg(b).arg(&mut self.values).arg(&mut self.magnitudes);
        launch.arg(&rows).arg(&cols).arg(&depth);
        for step in steps.as_flattened() {
            launch.arg(step);
        }
        // SAFETY: the arguments are the kernel's parameters. The arrays hold matrices of these
        // strides, as checked above, and the results hold the elements of C.
        unsafe { launch.launch(config) }.map_err(failed("launching the reference"))?;
        self.sample(host_a, a_strides, host_b, b_strides, shape)
    }

    /// Compares a sample of elements with the host's results.
    fn sample(
        &self,
        a: &[f32],
        a_strides: [usize; 2],
        b: &[f32],
        b_strides: [usize; 2],
        shape: GemmShape,
    ) -> Result<(), Error> {
        let Size { m, n, k } = shape.size;
        let last = m * n - 1;
        for part in 0..SAMPLED {
            let at = last * part / (SAMPLED - 1);
            let (row, col) = (at / n, at % n);
            let (mut value, mut magnitude) = (0.0_f64, 0.0_f64);
            for p in 0..k {
                let term = f64::from(a[row * a_strides[0] + p * a_strides[1]])
                    * f64::from(b[p * b_strides[0] + col * b_strides[1]]);
                value += term;
                magnitude += term.abs();
            }
            let read = |from: &CudaSlice<f64>| {
                let one = self.gpu.stream.clone_dtoh(&from.slice(at..at + 1));
                let one = one.map_err(failed("copying the reference from the GPU"))?;
                Ok::<_, Error>(one.first().copied().unwrap_or(f64::NAN))
            };
            let allowed = 4.0 * k as f64 * f64::EPSILON * magnitude;
            let near = |x: f64, y: f64| (x - y).abs() <= allowed;
            if !near(read(&self.values)?, value) || !near(read(&self.magnitudes)?, magnitude) {
                let what = format!("element {at} of the reference of {shape} is wrong");
                return Err(Error::Internal(what));
            }
        }
        Ok(())
    }

    /// Fills a result and its guard elements with NaN.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if the result is too short, and the errors of the driver.
    #[allow(unsafe_code, reason = "the driver does not check how much it sets")]
    pub fn poison(&self, c: &mut CudaSlice<f32>, shape: GemmShape) -> Result<(), Error> {
        let len = room(c, shape)?;
        let (at, _used) = c.device_ptr_mut(self.gpu.stream);
        let stream = self.gpu.stream.cu_stream();
        // SAFETY: the array has `len` elements, as checked above.
        let set = unsafe { result::memset_d8_async(at, POISON, len * size_of::<f32>(), stream) };
        set.map_err(failed("filling a result with NaN"))
    }

    /// Returns the largest error of a result relative to |A|·|B|, and true if it is within the
    /// bound of the arithmetic.
    ///
    /// The reference is the GEMM of the last call of [`expect`](Self::expect). A changed guard
    /// element counts as an infinite error.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if the result is too short, and the errors of the driver.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    pub fn judge(
        &mut self,
        c: &CudaSlice<f32>,
        shape: GemmShape,
        arith: Arith,
    ) -> Result<(f64, bool), Error> {
        let Size { m, n, k } = shape.size;
        room(c, shape)?;
        let (elements, behind) = ((m * n) as i64, BEHIND as i64);
        let underflow = product::underflow(arith, k as u64);
        let config = LaunchConfig {
            grid_dim: (BLOCKS as u32, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.gpu.stream.launch_builder(&self.furthest);
        launch.arg(c).arg(&self.values).arg(&self.magnitudes).arg(&mut self.errors);
        launch.arg(&elements).arg(&behind).arg(&underflow);
        // SAFETY: the arguments are the kernel's parameters. The result has `elements` and `behind`
        // elements, and there is one error for each block.
        unsafe { launch.launch(config) }.map_err(failed("launching the comparison"))?;
        let errors = self.gpu.stream.clone_dtoh(&self.errors);
        let errors = errors.map_err(failed("copying errors from the GPU"))?;
        let error = errors.into_iter().fold(0.0, f64::max);
        Ok((error, error <= arith.error_bound(k as u64)))
    }
}

/// Returns the length of a result with its guard elements, if the array is long enough.
fn room(c: &CudaSlice<f32>, shape: GemmShape) -> Result<usize, Error> {
    let len = shape.size.m * shape.size.n + BEHIND;
    let short = || Error::Internal(format!("not enough memory for the result of {shape}"));
    (c.len() >= len).then_some(len).ok_or_else(short)
}

/// Returns the row and column strides of A and of B.
fn strides(shape: GemmShape) -> [[usize; 2]; 2] {
    let Size { m, n, k } = shape.size;
    let strides =
        |rows: usize, cols: usize, by_column| if by_column { [1, rows] } else { [cols, 1] };
    let layout: GemmLayout = shape.layout;
    [strides(m, k, layout.transposes_a()), strides(k, n, layout.transposes_b())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_lie_as_their_layout_says() {
        let of = |layout| strides(GemmShape { size: Size::new(2, 3, 5), layout });
        assert_eq!(of(GemmLayout::Nn), [[5, 1], [3, 1]]);
        assert_eq!(of(GemmLayout::Tn), [[1, 2], [3, 1]]);
        assert_eq!(of(GemmLayout::Nt), [[5, 1], [1, 5]]);
        assert_eq!(of(GemmLayout::Tt), [[1, 2], [1, 5]]);
    }
}
