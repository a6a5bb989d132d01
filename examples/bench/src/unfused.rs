//! What a product with an epilogue costs who has cuBLAS and no fusion: the product, then a kernel that goes
//! over C once more.

mod text;

use crate::epilogue::FACTORS;
use crate::gpu::{Blas, Gpu, Product, failed};
use crate::operands::Operands;
use crate::products::Products;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};
use gemm_dsl::spec::{Along, GemmLayout, SgemmSpec};
use gemm_oracle::beside::Beside as OnHost;
use gemm_runtime::Error;
use text::THREADS;

/// Blocks for each multiprocessor: as many threads as it can hold.
const BLOCKS_PER_SM: u32 = 8;

/// The product of cuBLAS, and then a kernel for the epilogue of a spec.
pub struct UnfusedEpilogue<'o> {
    gpu: Gpu<'o>,
    kernel: CudaFunction,
    a: &'o CudaSlice<f32>,
    b: &'o CudaSlice<f32>,
    layout: GemmLayout,
    factors: [f32; 2],
    products: Products,
    /// Where cuBLAS puts the sums, and C itself where the epilogue reads what it was.
    sums: CudaSlice<f32>,
    c: Option<CudaSlice<f32>>,
    operands: Vec<KernelOperand>,
    /// The vectors of C.
    vectors: u32,
    /// m, n and k.
    extents: [i32; 3],
}

/// An operand of the epilogue.
enum KernelOperand {
    Number(f32),
    Array(CudaSlice<f32>),
}

impl<'o> UnfusedEpilogue<'o> {
    /// That of a spec, on operands which have been brought for it. None for a spec without an epilogue,
    /// for one that also needs what C was where cuBLAS puts its sums, and for more than the kernel counts.
    ///
    /// # Errors
    /// Those of [`Gpu::load`], and of the driver.
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
        // The kernel counts a stride beyond the last.
        let vectors = u32::try_from(elements / width as usize).ok().filter(|&v| v < 1 << 31);
        let extents = [size.m, size.n, size.k].map(|extent| i32::try_from(extent).ok());
        let (Some(vectors), [Some(m), Some(n), Some(k)]) = (vectors, extents) else {
            return Ok(None);
        };
        if names_c && spec.scaled {
            return Ok(None);
        }
        // Those of `scaled` are cuBLAS's.
        let named: Vec<_> = spec.clone().scaled(false).operands();
        let source = text::source("separate", epilogue.closure(), &named, names_c, width);
        let upload = |values: &[f32]| {
            gpu.stream.clone_htod(values).map_err(failed("copying an operand to the GPU"))
        };
        let own = on_host.operands.iter().skip(on_host.operands.len() - named.len());
        let given = own.map(|(operand, values)| {
            Ok::<_, Error>(match operand.along {
                Along::Nothing => KernelOperand::Number(values[0]),
                Along::N | Along::M | Along::Mn => KernelOperand::Array(upload(values)?),
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

    /// Puts the product and the kernel on the stream.
    ///
    /// # Errors
    /// Those of [`Blas::product`], and of the driver.
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
        // SAFETY: the arguments are the kernel's parameters, in the order of its text; sums and C have the
        // elements of all vectors, and so has each operand along the axes that it is indexed by.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(failed("launching the kernel of an epilogue"))
    }
}
