//! cuBLAS, the speed reference for GEMMs.

use super::{Gpu, failed as gpu_failed, library};
use crate::cli::Failure;
use crate::products::Products;
use cudarc::cublas::result::CublasError;
use cudarc::cublas::sys::{
    cublasMath_t, cublasOperation_t, cublasSetMathMode, cublasSetWorkspace_v2,
};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig};
use cudarc::driver::{CudaSlice, DevicePtrMut};
use gemm_dsl::spec::GemmLayout;
use gemm_oracle::product::Size;
use gemm_runtime::Error;

/// cuBLAS on the stream of a GPU, in plain `f32`, without TF32.
#[derive(Debug)]
pub struct Blas {
    pub(super) blas: CudaBlas,
    /// Workspace on the device. If it is `None`, cuBLAS allocates a workspace.
    _workspace: Option<CudaSlice<u8>>,
}

/// Size of the workspace in bytes: the largest default of cuBLAS on any GPU.
const WORKSPACE: usize = 32 << 20;

/// Arguments of a cuBLAS GEMM. Matrices are packed, A and B have the given layout, and the matrices
/// of a batch are contiguous.
#[derive(Debug)]
pub struct Product<'o> {
    pub a: &'o CudaSlice<f32>,
    pub b: &'o CudaSlice<f32>,
    pub c: &'o mut CudaSlice<f32>,
    /// Layout of A and B.
    pub layout: GemmLayout,
    /// Alpha and beta of C = alpha·A·B + beta·C.
    pub factors: [f32; 2],
    /// Extents of a GEMM, and number of GEMMs.
    pub products: Products,
}

impl Blas {
    /// Starts cuBLAS on a GPU.
    ///
    /// # Errors
    /// Returns [`Failure::Missing`] if the library is not installed or fails to start.
    #[allow(unsafe_code, reason = "the library's settings have no safe functions")]
    pub fn new(gpu: Gpu<'_>) -> Result<Self, Failure> {
        if !library::is_usable() {
            return Err(Failure::Missing(
                "cuBLAS, the reference for GEMMs, was not found. Install it with `pip install \
                 nvidia-cublas` or with the CUDA toolkit"
                    .to_owned(),
            ));
        }
        let blas = CudaBlas::new(gpu.stream.clone()).map_err(failed("starting"))?;
        // SAFETY: the handle is live. The default mode computes f32 GEMMs in f32.
        let mode = unsafe { cublasSetMathMode(*blas.handle(), cublasMath_t::CUBLAS_DEFAULT_MATH) };
        mode.result().map_err(failed("setting the math mode"))?;
        Ok(Self { blas, _workspace: None })
    }

    /// Starts cuBLAS for launches that are captured in a graph. cuBLAS gets a workspace, so that no
    /// graph allocates one.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new) and of the allocation.
    #[allow(unsafe_code, reason = "the library's settings have no safe functions")]
    pub fn for_graphs(gpu: Gpu<'_>) -> Result<Self, Failure> {
        let blas = Self::new(gpu)?.blas;
        let workspace = gpu.stream.alloc_zeros::<u8>(WORKSPACE);
        let mut workspace = workspace.map_err(gpu_failed("allocating a workspace"))?;
        let (at, used) = workspace.device_ptr_mut(gpu.stream);
        // SAFETY: the handle is live, and the memory lives as long as the handle.
        let set = unsafe { cublasSetWorkspace_v2(*blas.handle(), at as *mut _, WORKSPACE) };
        drop(used);
        set.result().map_err(failed("setting the workspace"))?;
        Ok(Self { blas, _workspace: Some(workspace) })
    }

    /// Enqueues C = alpha·A·B + beta·C, all packed, C row-major. A batch uses
    /// `cublasSgemmStridedBatched`.
    ///
    /// # Errors
    /// Returns [`Error::WrongExtent`] if a slice is too short, [`Error::TooLarge`] if an extent
    /// exceeds 2^31 − 1, and [`Error::Driver`] if cuBLAS fails.
    #[allow(unsafe_code, reason = "the library checks no lengths")]
    pub fn product(&self, product: &mut Product<'_>) -> Result<(), Error> {
        let Product { a, b, c, layout, factors, products } = product;
        let Size { m, n, k } = products.size;
        let count = products.count();
        let all = |rows: usize, cols: usize| rows.saturating_mul(cols).saturating_mul(count);
        for (argument, has, need) in
            [("a", a.len(), all(m, k)), ("b", b.len(), all(k, n)), ("c", c.len(), all(m, n))]
        {
            if has < need {
                let need = format!("{products} needs {need}");
                let argument = argument.to_owned();
                return Err(Error::WrongExtent { argument, has: has as u64, need });
            }
        }
        // cuBLAS computes Cᵀ = Bᵀ·Aᵀ, so its first operand is B.
        let [stride_a, stride_b, stride_c] = [k * n, m * k, m * n].map(|elements| elements as i64);
        let extents = [m, n, k, count].map(|extent| i32::try_from(extent).ok());
        let [Some(m), Some(n), Some(k), Some(batch_size)] = extents else {
            return Err(Error::TooLarge {
                what: format!("a GEMM of {products} for cuBLAS"),
                limit: i32::MAX.unsigned_abs().into(),
                remedy: "Use a smaller GEMM",
            });
        };
        // In column-major order the same memory holds the transposes: Cᵀ = Bᵀ·Aᵀ.
        let taken = |by_column, line: i32, column: i32| match by_column {
            false => (cublasOperation_t::CUBLAS_OP_N, line.max(1)),
            true => (cublasOperation_t::CUBLAS_OP_T, column.max(1)),
        };
        let (transa, lda) = taken(layout.transposes_b(), n, k);
        let (transb, ldb) = taken(layout.transposes_a(), k, m);
        let gemm = GemmConfig {
            transa,
            transb,
            m: n,
            n: m,
            k,
            alpha: factors[0],
            lda,
            ldb,
            beta: factors[1],
            ldc: n.max(1),
        };
        let done = match products.batch {
            // SAFETY: the slices hold the matrices, as checked above.
            None => unsafe { self.blas.gemm(gemm, *b, *a, *c) },
            Some(_) => {
                let config =
                    StridedBatchedConfig { gemm, batch_size, stride_a, stride_b, stride_c };
                // SAFETY: the slices hold all matrices of the batch, as checked above.
                unsafe { self.blas.gemm_strided_batched(config, *b, *a, *c) }
            }
        };
        done.map_err(|error| Error::Driver {
            doing: "multiplying with cuBLAS".to_owned(),
            code: format!("{error:?}"),
            status: error.0 as i32,
            text: "see cublasStatus_t in cuBLAS's documentation".to_owned(),
        })
    }
}

fn failed(doing: &'static str) -> impl FnOnce(CublasError) -> Failure {
    move |error| Failure::Missing(format!("cuBLAS failed while {doing}: {error:?}"))
}
