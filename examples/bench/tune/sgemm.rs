//! GEMMs as the target of a search, compared with cuBLAS.

use gemm_bench::cli::Failure;
use gemm_bench::data;
use gemm_bench::epilogue::{as_small, first_launch};
use gemm_bench::operands::Operands;
use gemm_bench::products::Products;
use gemm_bench::timing::{Fusion, GemmBench};
use gemm_bench::tune::target::{SpecTime, Target};
use gemm_oracle::product::Size;
use gemm_runtime::compile::Resources;
use gemm_runtime::spec::Batch;
use gemm_runtime::{ByName, Device, Error, Sgemm as SgemmOf, SgemmSpec};

/// Size at which every spec is checked. It is a multiple of most tiles, because some specs accept
/// only multiples.
const PROOF: usize = 768;
/// Maximum number of GEMMs in the check.
const PROOF_BATCH: usize = 3;

/// Matrices on the host: first for the check, then for each size.
pub struct Problems(Vec<(Products, Vec<f32>, Vec<f32>)>);

impl Problems {
    /// Draws random matrices for the check and for each GEMM.
    pub fn new(products: &[Products], seed: u64) -> Self {
        let batch = products.first().and_then(|products| products.batch);
        let batch = batch.map(|count| count.min(PROOF_BATCH));
        let proof = Products { size: Size::square(PROOF), batch };
        let problem = |&products: &Products| {
            let Size { m, n, k } = products.size;
            let uniform = |seed, rows: usize, cols: usize| {
                data::uniform(seed, products.count() * rows * cols, -1.0, 1.0)
            };
            (products, uniform(seed, m, k), uniform(seed.wrapping_add(1), k, n))
        };
        Self(std::iter::once(&proof).chain(products).map(problem).collect())
    }
}

/// GEMMs of all sizes, ready to be timed.
pub struct Sgemm<'p> {
    device: Device,
    bench: GemmBench<'p>,
    proof: Operands<'p>,
    problems: Vec<Operands<'p>>,
}

impl<'p> Sgemm<'p> {
    /// Uploads the operands.
    ///
    /// # Errors
    /// Returns the errors of the driver, and [`Failure::Missing`] without a GPU.
    pub fn new(device: &'p Device, problems: &'p Problems) -> Result<Self, Failure> {
        let bench = GemmBench::new(device)?;
        let bench = bench.ok_or_else(|| Failure::Missing("a search needs a GPU".to_owned()))?;
        let uploaded = problems.0.iter();
        let uploaded = uploaded.map(|(products, a, b)| Operands::new(device, a, b, *products));
        let all: Result<Vec<_>, Error> = uploaded.collect();
        let mut problems = all?;
        let proof = problems.remove(0);
        Ok(Self { device: device.clone(), bench, proof, problems })
    }
}

impl Target for Sgemm<'_> {
    type Spec = SgemmSpec;

    const UNIT: &'static str = "GFLOP/s";
    const BASELINE: &'static str = "cuBLAS";

    fn sizes(&self) -> Vec<String> {
        self.problems.iter().map(|operands| operands.products().to_string()).collect()
    }

    fn spec(&self, line: &str) -> Option<SgemmSpec> {
        let spec: Option<SgemmSpec> = line.parse().ok();
        if self.proof.products().batch.is_none() {
            return spec;
        }
        // Other keys may require the key `batch`, so the spec may be invalid without it.
        match spec.filter(|spec| spec.batch.is_some()) {
            Some(spec) => (spec.batch == Some(Batch::Strided)).then_some(spec),
            None => format!("{line}, batch: strided").parse().ok(),
        }
    }

    fn compiler(&self) -> impl Fn(&SgemmSpec) -> Result<Resources, Error> + Sync {
        let device = self.device.clone();
        // The scalar variant handles rows whose length is not a multiple of four.
        let any = |aligned: bool| {
            let mut widths = self.problems.iter().map(|operands| operands.products().size.n);
            widths.any(|n| n.is_multiple_of(4) == aligned)
        };
        let (vector, scalar) = (any(true), any(false));
        move |spec| {
            let mut worst = Resources::default();
            for odd in [vector.then_some(0), scalar.then_some(1)].into_iter().flatten() {
                let size = as_small(spec, Size::square(4 + odd))?;
                let found = first_launch(&device, spec, size)?;
                worst.registers = worst.registers.max(found.registers);
                worst.stack = worst.stack.max(found.stack);
            }
            Ok(worst)
        }
    }

    fn check(&mut self, size: Option<usize>, spec: &SgemmSpec) -> Result<(f64, bool), Error> {
        let operands = match size {
            None => &mut self.proof,
            Some(size) => &mut self.problems[size],
        };
        let kernel = SgemmOf::<ByName>::new(spec.clone())?;
        operands.bring(&self.device, spec)?;
        let mut launchable = operands.launchable(&self.device, spec)?;
        let (verdict, _) = operands.check(&mut launchable, &kernel, &self.device)?;
        Ok((verdict.error, verdict.ok))
    }

    fn fusion(
        &mut self,
        size: usize,
        spec: &SgemmSpec,
        rounds: usize,
    ) -> Result<Option<Fusion>, Failure> {
        let operands = &mut self.problems[size];
        operands.bring(&self.device, spec)?;
        Ok(self.bench.fusion(spec, operands, rounds)?)
    }

    fn time(&mut self, size: usize, spec: &SgemmSpec, rounds: usize) -> Result<SpecTime, Failure> {
        let operands = &mut self.problems[size];
        let products = operands.products();
        let kernel = SgemmOf::<ByName>::new(spec.clone())?;
        operands.bring(&self.device, spec)?;
        let mut blas_c = operands.blas_c.take();
        let times = operands.launchable(&self.device, spec).and_then(|mut launchable| {
            let peer = operands.product(spec, blas_c.as_mut());
            self.bench.times(&kernel, &mut launchable, peer, rounds)
        });
        operands.blas_c = blas_c;
        let times = times?;
        let time = times.kernel;
        let rate = products.flops() / time / 1e6;
        Ok(SpecTime { time, rate, ratio: times.vs_blas().unwrap_or(f64::NAN) })
    }
}
