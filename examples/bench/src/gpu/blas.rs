//! cuBLAS, which products are measured against.

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

/// cuBLAS on the stream of a GPU, in plain `f32`: without TF32.
#[derive(Debug)]
pub struct Blas {
    blas: CudaBlas,
    /// What it may use beside the operands; without this an allocation of its own.
    _workspace: Option<CudaSlice<u8>>,
}

/// Bytes of a workspace: what cuBLAS has of its own on the GPUs where that is the most.
const WORKSPACE: usize = 32 << 20;

/// What cuBLAS multiplies: packed matrices, A and B as the layout says, those of a batch one after the other.
#[derive(Debug)]
pub struct Product<'o> {
    /// A.
    pub a: &'o CudaSlice<f32>,
    /// B.
    pub b: &'o CudaSlice<f32>,
    /// C.
    pub c: &'o mut CudaSlice<f32>,
    /// How A and B lie.
    pub layout: GemmLayout,
    /// Alpha and beta.
    pub factors: [f32; 2],
    /// The extents, and how many products there are.
    pub products: Products,
}

impl Blas {
    /// cuBLAS on a GPU.
    ///
    /// # Errors
    /// [`Failure::Missing`] where the library is not installed or refuses.
    #[allow(unsafe_code, reason = "the library's settings have no safe functions")]
    pub fn new(gpu: Gpu<'_>) -> Result<Self, Failure> {
        if !library::is_usable() {
            return Err(Failure::Missing(
                "cuBLAS, which products are compared with, was not found. Install it with `pip \
                 install nvidia-cublas` or with the CUDA toolkit"
                    .to_owned(),
            ));
        }
        let blas = CudaBlas::new(gpu.stream.clone()).map_err(failed("starting"))?;
        // SAFETY: the handle is live. The default mode computes f32 products in f32.
        let mode = unsafe { cublasSetMathMode(*blas.handle(), cublasMath_t::CUBLAS_DEFAULT_MATH) };
        mode.result().map_err(failed("setting its mathematics"))?;
        Ok(Self { blas, _workspace: None })
    }

    /// cuBLAS for launches that are captured: its workspace is given to it, so that no graph allocates one.
    ///
    /// # Errors
    /// As [`new`](Self::new), and those of the allocation.
    #[allow(unsafe_code, reason = "the library's settings have no safe functions")]
    pub fn for_graphs(gpu: Gpu<'_>) -> Result<Self, Failure> {
        let blas = Self::new(gpu)?.blas;
        let workspace = gpu.stream.alloc_zeros::<u8>(WORKSPACE);
        let mut workspace = workspace.map_err(gpu_failed("allocating a workspace"))?;
        let (at, used) = workspace.device_ptr_mut(gpu.stream);
        // SAFETY: the handle is live, and the memory lives as long as it does.
        let set = unsafe { cublasSetWorkspace_v2(*blas.handle(), at as *mut _, WORKSPACE) };
        drop(used);
        set.result().map_err(failed("setting its workspace"))?;
        Ok(Self { blas, _workspace: Some(workspace) })
    }

    /// Puts C = alpha·A·B + beta·C on the stream, all packed, C row-major: of a batch by
    /// `cublasSgemmStridedBatched`.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] where a slice is too short, [`Error::TooLarge`] for an extent beyond
    /// 2^31 − 1, and [`Error::Driver`] for what cuBLAS fails with.
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
        // They are those of matrices that lie in memory.
        let [stride_a, stride_b, stride_c] = [k * n, m * k, m * n].map(|elements| elements as i64);
        let extents = [m, n, k, count].map(|extent| i32::try_from(extent).ok());
        let [Some(m), Some(n), Some(k), Some(batch_size)] = extents else {
            return Err(Error::TooLarge {
                what: format!("a product of {products} for cuBLAS"),
                limit: i32::MAX.unsigned_abs().into(),
                remedy: "Use a smaller one",
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
            // SAFETY: the slices hold the matrices, as was checked above.
            None => unsafe { self.blas.gemm(gemm, *b, *a, *c) },
            Some(_) => {
                let config =
                    StridedBatchedConfig { gemm, batch_size, stride_a, stride_b, stride_c };
                // SAFETY: the same, for as many matrices one after the other.
                unsafe { self.blas.gemm_strided_batched(config, *b, *a, *c) }
            }
        };
        done.map_err(|error| Error::Driver {
            doing: "multiplying with cuBLAS".to_owned(),
            code: format!("{error:?}"),
            text: "see cublasStatus_t in cuBLAS's documentation".to_owned(),
        })
    }
}

fn failed(doing: &'static str) -> impl FnOnce(CublasError) -> Failure {
    move |error| Failure::Missing(format!("cuBLAS failed while {doing}: {error:?}"))
}
