//! Unfused epilogue, for comparison: a GEMM of cuBLAS, and a kernel that then reads and writes C.

mod text;

use crate::epilogue::FACTORS;
use crate::gpu::{Blas, Gpu, Product, failed};
use crate::operands::Operands;
use crate::products::Products;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};
use gemm_dsl::spec::{Along, GemmLayout, Pairs, SgemmSpec};
use gemm_oracle::beside::Beside as OnHost;
use gemm_runtime::Error;
use text::THREADS;

/// Blocks per SM. Together they have the maximum number of resident threads.
const BLOCKS_PER_SM: u32 = 8;

/// GEMM of cuBLAS, followed by a kernel for the epilogue of a spec.
pub struct UnfusedEpilogue<'o> {
    gpu: Gpu<'o>,
    kernel: CudaFunction,
    a: &'o CudaSlice<f32>,
    b: &'o CudaSlice<f32>,
    layout: GemmLayout,
    factors: [f32; 2],
    products: Products,
    /// Results of cuBLAS, and a separate C if the epilogue reads its previous value.
    sums: CudaSlice<f32>,
    c: Option<CudaSlice<f32>>,
    operands: Vec<KernelOperand>,
    /// Number of vectors in C.
    vectors: u32,
    /// Extents m, n and k.
    extents: [i32; 3],
}

/// Epilogue operand in the form of a kernel argument.
enum KernelOperand {
    Number(f32),
    Array(CudaSlice<f32>),
}

impl<'o> UnfusedEpilogue<'o> {
    /// Creates the unfused epilogue of a spec. The operands of the spec must have been uploaded.
    ///
    /// Returns `None` for a spec without an epilogue, for a scaled spec whose epilogue reads C, for
    /// an epilogue over pairs of columns, and for sizes that exceed the kernel's 32-bit counters.
    ///
    /// # Errors
    /// Returns the errors of [`Gpu::load`] and of the driver.
    pub fn new(
        gpu: Gpu<'o>,
        operands: &'o Operands<'_>,
        spec: &SgemmSpec,
        on_host: &OnHost,
    ) -> Result<Option<Self>, Error> {
        let (Some(epilogue), Some((a, b))) = (&spec.epilogue, operands.slices(spec.layout)) else {
            return Ok(None);
        };
        let products = operands.products();
        let size = products.size;
        let names_c = spec.names_c();
        let width = if size.n.is_multiple_of(4) { 4 } else { 1 };
        let elements = products.count() * size.m * size.n;
        // The kernel's loop counter may exceed the index of the last vector by up to one stride.
        let vectors = u32::try_from(elements / width as usize).ok().filter(|&v| v < 1 << 31);
        let extents = [size.m, size.n, size.k].map(|extent| i32::try_from(extent).ok());
        let (Some(vectors), [Some(m), Some(n), Some(k)]) = (vectors, extents) else {
            return Ok(None);
        };
        if names_c && spec.scaled
            || epilogue.pairs() != Pairs::None
            || spec.operands().iter().any(|o| o.along.is_of_batch() || o.is_output())
        {
            return Ok(None);
        }
        // cuBLAS applies the factors of `scaled`.
        let named: Vec<_> = spec.clone().scaled(false).operands();
        let source = text::source("separate", epilogue.closure(), &named, names_c, width);
        let upload = |values: &[f32]| {
            gpu.stream.clone_htod(values).map_err(failed("copying an operand to the GPU"))
        };
        let own = on_host.operands.iter().skip(on_host.operands.len() - named.len());
        let given = own.map(|(operand, values)| {
            Ok::<_, Error>(match operand.along {
                Along::Nothing => KernelOperand::Number(values[0]),
                _ => KernelOperand::Array(upload(values)?),
            })
        });
        let zeros = || {
            let zeros = gpu.stream.alloc_zeros::<f32>(elements.max(1));
            zeros.map_err(failed("allocating a result"))
        };
        Ok(Some(Self {
            gpu,
            kernel: gpu.load("separate", &source)?,
            a,
            b,
            layout: spec.layout,
            factors: if spec.scaled { FACTORS } else { [1.0, 0.0] },
            products,
            sums: zeros()?,
            c: if names_c { Some(zeros()?) } else { None },
            operands: given.collect::<Result<_, _>>()?,
            vectors,
            extents: [m, n, k],
        }))
    }

    /// Enqueues the GEMM and the kernel.
    ///
    /// # Errors
    /// Returns the errors of [`Blas::product`] and of the driver.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    pub fn launch(&mut self, blas: &Blas) -> Result<(), Error> {
        blas.product(&mut Product {
            a: self.a,
            b: self.b,
            c: &mut self.sums,
            layout: self.layout,
            factors: self.factors,
            products: self.products,
        })?;
        let blocks = self.vectors.div_ceil(THREADS).min(self.gpu.multiprocessors * BLOCKS_PER_SM);
        let mut launch = self.gpu.stream.launch_builder(&self.kernel);
        match &mut self.c {
            None => launch.arg(&mut self.sums),
            Some(c) => launch.arg(c).arg(&self.sums),
        };
        for operand in &self.operands {
            match operand {
                KernelOperand::Number(number) => launch.arg(number),
                KernelOperand::Array(array) => launch.arg(array),
            };
        }
        let [m, n, k] = &self.extents;
        launch.arg(&self.vectors).arg(m).arg(n).arg(k);
        let config = LaunchConfig {
            grid_dim: (blocks.max(1), 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are the kernel's parameters, in the order of its source. The
        // results of cuBLAS and C contain the elements of all vectors. Each operand has an element
        // for every index along its axes.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(failed("launching the kernel of an epilogue"))
    }
}
