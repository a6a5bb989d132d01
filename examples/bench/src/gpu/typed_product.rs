//! GEMMs of cuBLAS on matrices of 16-bit elements.

use super::Blas;
use cudarc::cublas::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasGemmEx, cublasOperation_t, cudaDataType,
};
use gemm_dsl::spec::GemmLayout;
use gemm_oracle::product::Size;
use gemm_runtime::{Element, Error};
use std::ffi::c_void;

/// Type of cuBLAS.
fn library_type<T: Element>() -> cudaDataType {
    match T::ELEM.name() {
        "bf16" => cudaDataType::CUDA_R_16BF,
        "f16" => cudaDataType::CUDA_R_16F,
        _ => cudaDataType::CUDA_R_32F,
    }
}

impl Blas {
    /// Enqueues C = A·B with A and B of `T` and C of `R`, given the addresses of A, B and C.
    /// Matrices are packed, and C is row-major. `T` is `bf16` or `f16`, and `R` is one of these or
    /// `f32`.
    ///
    /// # Errors
    /// Returns [`Error::TooLarge`] if an extent exceeds 2^31 − 1, and [`Error::Driver`] if cuBLAS
    /// fails.
    ///
    /// # Safety
    /// The addresses are of such matrices in memory of the GPU of this library.
    #[allow(unsafe_code, reason = "the library checks no lengths")]
    pub unsafe fn typed_product<T: Element, R: Element>(
        &self,
        layout: GemmLayout,
        [a, b, c]: [u64; 3],
        size: Size,
    ) -> Result<(), Error> {
        let extents = [size.n, size.m, size.k].map(|extent| i32::try_from(extent).ok());
        let [Some(rows), Some(cols), Some(terms)] = extents else {
            return Err(Error::TooLarge {
                what: format!("a GEMM of {size} for cuBLAS"),
                limit: i32::MAX.unsigned_abs().into(),
                remedy: "Use a smaller GEMM",
            });
        };
        let (one, zero) = (1f32, 0f32);
        let (of, to) = (library_type::<T>(), library_type::<R>());
        let number = |value: &f32| std::ptr::from_ref(value).cast::<c_void>();
        let memory = |address: u64| address as *const c_void;
        // cuBLAS computes Cᵀ = Bᵀ·Aᵀ. In column-major order, a row-major matrix is its transpose.
        let operation = |is_transposed| match is_transposed {
            true => cublasOperation_t::CUBLAS_OP_T,
            false => cublasOperation_t::CUBLAS_OP_N,
        };
        let [by_rows_a, by_rows_b] = [!layout.transposes_a(), !layout.transposes_b()];
        // SAFETY: the caller passes matrices of these extents and types.
        let status = unsafe {
            cublasGemmEx(
                *self.blas.handle(),
                operation(!by_rows_b),
                operation(!by_rows_a),
                rows,
                cols,
                terms,
                number(&one),
                memory(b),
                of,
                if by_rows_b { rows } else { terms },
                memory(a),
                of,
                if by_rows_a { terms } else { cols },
                number(&zero),
                c as *mut c_void,
                to,
                rows,
                cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        };
        status.result().map_err(|error| Error::Driver {
            doing: "multiplying with cuBLAS".to_owned(),
            code: format!("{error:?}"),
            status: error.0 as i32,
            text: "see cublasStatus_t in cuBLAS's documentation".to_owned(),
        })
    }
}
