//! Repeated launches of a spec on a device. Several devices of one GPU can share the inputs.

use super::cases::{GemmCase, Operands, ReductionCase};
use crate::data;
use crate::epilogue::EpilogueArgs;
use crate::gpu::Gpu;
use crate::operands::DeviceArray;
use crate::products::{Matrices, Products, turned};
use crate::rows::launch::{Inputs, KernelChoice, ReductionLaunch, poison};
use crate::rows::segments::Lengths;
use gemm_dsl::ir::{Variant, VerifiedKernel};
use gemm_dsl::spec::{Batch, DataType, ReduceSpec, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_runtime::{Device, Error, LaunchReport, MatrixList, MatrixListMut, MatrixRef, Sgemm};

/// Seed of all elements.
const SEED: u64 = 7;

/// Launches a spec once. On a GPU the call returns before the work is done.
pub type Launch<'l> = dyn FnMut() -> Result<LaunchReport, Error> + 'l;

/// Return value of the closure that uses a launch, and the bits of all results afterwards.
pub type Launched<R> = (R, Vec<u64>);

/// Kernels that were launched, by name and variant.
#[derive(Clone, Debug, Default)]
pub struct LaunchedKernels(Vec<(String, Variant)>);

impl LaunchedKernels {
    /// Adds all kernels of a launch.
    pub fn add(&mut self, report: &LaunchReport) {
        self.0.extend(report.steps().map(|step| (step.kernel().to_owned(), step.variant())));
    }

    pub fn contains(&self, kernel: &VerifiedKernel) -> bool {
        self.0.iter().any(|(name, variant)| *name == kernel.name && *variant == kernel.variant)
    }
}

/// Matrices A and B, large enough for all GEMMs.
pub struct GemmInputs {
    a: DeviceArray,
    /// A with an infinity as the first element.
    infinite: DeviceArray,
    b: DeviceArray,
}

impl GemmInputs {
    /// Draws the elements and uploads them.
    ///
    /// # Errors
    /// Returns the errors of uploads.
    pub fn new(device: &Device, cases: &[GemmCase]) -> Result<Self, Error> {
        let most = |elements: fn(Size) -> usize| {
            let all = cases.iter().map(|case| case.products.count() * elements(case.products.size));
            all.max().unwrap_or_default()
        };
        let mut a = data::uniform(SEED, most(|size| size.m * size.k), -1.0, 1.0);
        let b = data::uniform(SEED + 1, most(|size| size.k * size.n), -1.0, 1.0);
        let (finite, b) = (DeviceArray::new(device, &a)?, DeviceArray::new(device, &b)?);
        a.iter_mut().take(1).for_each(|first| *first = f32::INFINITY);
        Ok(Self { a: finite, infinite: DeviceArray::new(device, &a)?, b })
    }

    /// Returns views of A and B, for a GEMM, a batch, or one GEMM of a list.
    fn views(
        &self,
        spec: &SgemmSpec,
        case: &GemmCase,
    ) -> Result<(MatrixRef<'_>, MatrixRef<'_>), Error> {
        let Products { size: Size { m, n, k }, batch } = case.products;
        let batch = batch.filter(|_| spec.batch != Some(Batch::Pointers));
        let a = if case.operands == Operands::Infinite { &self.infinite } else { &self.a };
        let [a_by_column, b_by_column] = [spec.layout.transposes_a(), spec.layout.transposes_b()];
        let lines = |rows, cols, by_column| if by_column { (cols, rows) } else { (rows, cols) };
        let (a_lines, a_line) = lines(m, k, a_by_column);
        let (b_lines, b_line) = lines(k, n, b_by_column);
        let a = turned(a.view(batch, a_lines, a_line)?, a_by_column);
        Ok((a, turned(self.b.view(batch, b_lines, b_line)?, b_by_column)))
    }
}

/// Prepares a GEMM on a device, with every element of C set to NaN, and passes its launch to
/// `then`.
///
/// # Errors
/// Returns the errors of uploads and downloads, and of `then`.
pub fn with_gemm<R>(
    device: &Device,
    spec: &SgemmSpec,
    case: &GemmCase,
    inputs: &GemmInputs,
    then: impl FnOnce(&mut Launch<'_>) -> Result<R, Error>,
) -> Result<Launched<R>, Error> {
    let (a, b) = inputs.views(spec, case)?;
    let Products { size, batch } = case.products;
    let is_list = spec.batch == Some(Batch::Pointers);
    let own = batch.filter(|_| !is_list);
    let mut args = EpilogueArgs::new(device, spec, Products { size, batch: own })?;
    let before = args.c_before();
    let room = || Matrices::new(device, &before, own, size.m, size.n, spec.pitched);
    let kernel = Sgemm::new(spec.clone())?;
    if !is_list {
        let mut c = room()?;
        let mut view = c.view_mut()?;
        let of_user = then(&mut || args.launch(&kernel, device, &a, &b, &mut view))?;
        return Ok((of_user, bits(device, [&c])?));
    }
    let count = case.products.count();
    let mut all = (0..count).map(|_| room()).collect::<Result<Vec<_>, _>>()?;
    let views = all.iter_mut().map(Matrices::view_mut);
    let mut views = views.collect::<Result<Vec<_>, _>>()?;
    let mut c = MatrixListMut::new(device, &mut views)?;
    let list = |matrix| MatrixList::new(device, std::iter::repeat_n(matrix, count));
    let (a, b) = (list(&a)?, list(&b)?);
    let of_user = then(&mut || args.launch(&kernel, device, &a, &b, &mut c))?;
    Ok((of_user, bits(device, &all)?))
}

fn bits<'m>(
    device: &Device,
    matrices: impl IntoIterator<Item = &'m Matrices>,
) -> Result<Vec<u64>, Error> {
    let mut bits = Vec::new();
    for matrices in matrices {
        let elements = device.download(&matrices.view()?)?;
        bits.extend(elements.iter().map(|element| u64::from(element.to_bits())));
    }
    // No kernel computes this NaN. In a computed NaN all bits of the mantissa are set.
    written(bits, u64::from(f32::NAN.to_bits()))
}

fn written(bits: Vec<u64>, poison: u64) -> Result<Vec<u64>, Error> {
    match bits.contains(&poison) {
        true => Err(Error::Internal("an element of the result was not written".to_owned())),
        false => Ok(bits),
    }
}

/// Prepares a reduction of `f32` on a device, with poisoned results, and passes its launch to
/// `then`.
///
/// # Errors
/// Returns the errors of uploads and downloads, and of `then`.
pub fn with_reduction<R>(
    device: &Device,
    spec: &ReduceSpec,
    case: &ReductionCase,
    inputs: &Inputs,
    then: impl FnOnce(&mut Launch<'_>) -> Result<R, Error>,
) -> Result<Launched<R>, Error> {
    let kernel = KernelChoice::from_spec(spec.clone())?;
    let offsets = case.segments.map(|average| {
        let [len, average] = [case.len, average].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Lengths::Uniform.offsets(SEED, len, average)
    });
    let size = (case.outer, case.len, case.inner);
    let mut launch = ReductionLaunch::new(device, &kernel, size, offsets.as_deref())?;
    let of_user = then(&mut || launch.run(inputs))?;
    let mut bits = Vec::new();
    for (results, (_, elem)) in launch.results()?.into_iter().zip(spec.results()) {
        bits.extend(written(results, poison(elem))?);
    }
    Ok((of_user, bits))
}

/// Draws the inputs of a reduction, on a GPU or for the simulator.
///
/// # Errors
/// Returns the errors of uploads.
pub fn reduction_inputs(
    device: &Device,
    spec: &ReduceSpec,
    case: &ReductionCase,
) -> Result<Inputs, Error> {
    let len = case.outer * case.len * case.inner;
    Inputs::new(Gpu::new(device), DataType::F32, len, spec.inputs().len(), SEED)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{self, Sizes};
    use super::super::folder::key;
    use super::*;
    use gemm_dsl::stages::pinned::{self, PinnedSpec};

    /// Kernels that no case launches: variants for arrays that are not aligned to a vector, GEMMs
    /// with K = 0, and shards, which `gemm-world` launches.
    const NEVER: [&str; 11] = [
        "reduce/07_grid_stride.scalar",
        "runs/argmax.scalar",
        "runs/argmax.shard",
        "runs/argmax.shard.scalar",
        "sgemm/37_wgmma.f32",
        "sgemm/38_tma.f32",
        "sgemm/39_warp_specialised.f32",
        "sgemm/40_persistent.f32",
        "sgemm/43_cluster_multicast.f32",
        "sgemm/44_mma_converted.f32",
        "sgemm/45_mma_converted_bf16x6.f32",
    ];

    fn launched(spec: &PinnedSpec) -> LaunchedKernels {
        let device = Device::simulator();
        let sizes = Sizes { sides: vec![68], lengths: vec![20_000] };
        let mut launched = LaunchedKernels::default();
        let mut run = |launch: &mut Launch<'_>| {
            launched.add(&launch()?);
            Ok(())
        };
        if spec.is_gemm {
            let gemm: SgemmSpec = spec.line.parse().expect("a GEMM");
            let cases = cases::gemm(&gemm, &sizes);
            let inputs = GemmInputs::new(&device, &cases).expect("room");
            for case in &cases {
                with_gemm(&device, &gemm, case, &inputs, &mut run).expect(&spec.line);
            }
        } else {
            let reduction: ReduceSpec = spec.line.parse().expect("a reduction");
            for case in cases::reduction(&reduction, &sizes) {
                let inputs = reduction_inputs(&device, &reduction, &case).expect("room");
                with_reduction(&device, &reduction, &case, &inputs, &mut run).expect(&spec.line);
            }
        }
        launched
    }

    /// A case launches every pinned kernel, except for those in `NEVER`, and every result is
    /// written.
    #[test]
    fn cases_launch_every_pinned_kernel() {
        let specs = pinned::all().expect("sound");
        let mut never = Vec::new();
        for spec in &specs {
            let launched = launched(spec);
            let missing = spec.kernels.iter().filter(|kernel| !launched.contains(kernel));
            never.extend(missing.map(|kernel| key(spec, PinnedSpec::suffix(kernel))));
        }
        never.sort();
        assert_eq!(never, NEVER);
    }
}
