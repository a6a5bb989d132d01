//! Specs whose CUDA source is pinned in the top-level folder `snapshots/`: every stage of both
//! ladders, stages as published kernels have them, reductions of segments and of runs, GEMMs with
//! an epilogue, and batches.

use super::Stage;
use crate::error::SpecErrors;
use crate::ir::{KernelFamily, Variant, VerifiedKernel};
use crate::spec::{Fragment, MapSpec, ReduceSpec, ScanSpec, SgemmSpec};
use crate::{Family, Plan, cuda};

/// Spec with its kernels, and the names of their files.
#[derive(Clone, Debug)]
pub struct PinnedSpec {
    /// Folder of the files: that of the ladder, or one of a kind of specs, such as `published`.
    pub folder: &'static str,
    /// Base name of the files, for example `04_unroll_last_warp`.
    pub stem: String,
    /// True for a GEMM, false for a reduction or an elementwise kernel.
    pub is_gemm: bool,
    /// Spec as text of the DSL.
    pub line: String,
    /// Kernels of the spec: the preferred kernel, its fallback, then kernels of the other launches
    /// of a GEMM or of runs, and kernels of shards.
    pub kernels: Vec<VerifiedKernel>,
}

impl PinnedSpec {
    fn new(
        folder: &'static str,
        stem: impl Into<String>,
        spec: &impl Family,
    ) -> Result<Self, SpecErrors> {
        let program = spec.plan()?.program()?;
        let others = program.launched().filter(|other| {
            // The passes of a reduction differ only in their loads, so only one kernel is pinned.
            // Rows of another block or cluster differ only in constants.
            folder != "reduce"
                && !other.name.ends_with("_cluster_8")
                && !other.name.ends_with("_cluster_longer")
                && !other.name.ends_with("_wide")
                && !other.name.ends_with("_narrow")
                && program.variants().all(|kernel| kernel.name != other.name)
        });
        let kernels = program.variants().chain(others).cloned().collect();
        let is_gemm = program.launched().any(|kernel| kernel.family == KernelFamily::Gemm);
        Ok(Self { folder, stem: stem.into(), is_gemm, line: spec.to_string(), kernels })
    }

    /// Returns the suffix of a kernel's file name, for example `.scalar`.
    pub fn suffix(kernel: &VerifiedKernel) -> &'static str {
        match kernel.variant {
            Variant::Scalar if kernel.name.ends_with("_of_shard") => ".shard.scalar",
            Variant::Scalar => ".scalar",
            _ if kernel.name.ends_with("_of_shard") => ".shard",
            _ if kernel.name.ends_with("_of_partials") => ".partials",
            _ if kernel.name.ends_with("_row_max") => ".row_max",
            _ if kernel.name.ends_with("_rows") => ".rows",
            _ if kernel.name.ends_with("_short") => ".short",
            _ if kernel.name.ends_with("_long") => ".long",
            _ if kernel.name.ends_with("_cluster_4") => ".cluster",
            _ if kernel.name.ends_with("_splits") => ".splits",
            _ if kernel.name.ends_with("_f32") => ".f32",
            _ => "",
        }
    }

    /// Returns the file suffix and the CUDA source of each kernel.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.kernels.iter().map(|kernel| (Self::suffix(kernel), cuda::source(kernel)))
    }
}

/// Returns all pinned specs.
///
/// # Errors
/// Returns an error if the generator has a bug. None of the specs is faulty.
pub fn all() -> Result<Vec<PinnedSpec>, SpecErrors> {
    fn ladder<S: Family>(
        folder: &'static str,
        stages: Vec<Stage<S>>,
    ) -> impl Iterator<Item = Result<PinnedSpec, SpecErrors>> {
        stages.into_iter().map(move |stage| PinnedSpec::new(folder, stage.stem(), &stage.spec))
    }
    let ladders = ladder("reduce", super::reduce()).chain(ladder("sgemm", super::sgemm()));
    let mut all = ladders.collect::<Result<Vec<_>, _>>()?;
    all.extend(published()?);
    all.extend(reductions()?);
    all.extend(products()?);
    Ok(all)
}

/// Returns the pinned specs whose kernels the program `texts` does not time: an elementwise kernel
/// over arrays of any shape, one with operands of rows and columns and with results of two types,
/// two that fold over rows, a scan that computes offsets, a selection of 64 elements of each row by
/// several blocks, a GEMM of groups of rows, one over pairs of columns, and GEMMs on matrices of
/// `f64`, `bf16` and `f16`, one in a batch and one in groups. The lanes of three of these exchange
/// outputs.
///
/// # Errors
/// Returns an error if the generator has a bug.
pub fn untimed() -> Result<[PinnedSpec; 19], SpecErrors> {
    let gelu: MapSpec = "|x[m, n]| gelu(x), name: gelu".parse()?;
    let norm: MapSpec = "|x[m, n], mean[m], rstd[m], gamma[n]| -> (bf16, f32) \
                         { let t = (x - mean) * rstd; (t * gamma, t) }, name: norm"
        .parse()?;
    let softmax: MapSpec = "|x[m, n]| { let top = max(x); let e = exp(x - top); e / sum(e) }, \
                            name: softmax"
        .parse()?;
    let layer_norm: MapSpec = "|x[m, n]: bf16, gamma[n], beta[n]| -> (bf16, f32[m]) \
                               { let mean = sum(x) / f32(n); let d = x - mean; \
                               let rstd = rsqrt(sum(d * d) / f32(n) + 1e-5); \
                               (d * rstd * gamma + beta, rstd) }, name: layer_norm"
        .parse()?;
    let scan: ScanSpec = "exclusive, type: u8, name: offsets".parse()?;
    let topk: ReduceSpec = "op: argmax, with_value, topk: 64, over: rows, group: 256, items: 2, \
                            float4, blocks: 8, name: top64"
        .parse()?;
    let grouped: SgemmSpec =
        "tile: 64x64x8, thread: 8x4, fragment: split, float4, stages: 3, raster: 8, \
                   blocks_per_sm: 1, batch: grouped, epilogue: |acc, bias[batch, n]| relu(acc + \
                   bias)"
            .parse()?;
    let pairs: SgemmSpec =
        "tile: 64x64x8, thread: 4x8, fragment: split, float4, double_buffer, pitched, \
                 epilogue: |acc, bias[n], rotor[m, n]| { let t = acc + bias; (t * sigmoid(t) * \
                 next(t), pair(acc * rotor - next(acc) * next(rotor), acc * next(rotor) + \
                 next(acc) * rotor)) }"
            .parse()?;
    let f64s: SgemmSpec =
        "a: f64, b: f64, c: f64, tile: 32x32x8, thread: 4x4, float4, layout: tn".parse()?;
    let linear: SgemmSpec = "a: bf16, b: bf16, c: bf16, layout: nt, tile: 128x256x64, raster: 8, \
                             arith: bf16, mma: wgmma, copy: tma, stages: 4, producer, persistent, \
                             cluster: 2, epilogue: |acc, bias[n]| gelu(acc + bias), name: linear"
        .parse()?;
    let swiglu: SgemmSpec =
        "a: f16, b: f16, c: f16, layout: tn, tile: 64x128x64, arith: f16, mma: \
                             wgmma, copy: tma, stages: 3, producer, float4, pitched, epilogue: \
                             |acc| acc * sigmoid(acc) * next(acc), name: swiglu"
            .parse()?;
    let product: SgemmSpec = "a: bf16, b: bf16, c: f32, layout: nn, tile: 128x256x64, raster: 8, \
                              float4, arith: bf16, mma: wgmma, copy: tma, stages: 4, producer, \
                              persistent, name: product"
        .parse()?;
    let decode: SgemmSpec = "a: bf16, b: bf16, c: bf16, layout: nt, tile: 16x128x64, swap_ab, \
                             arith: bf16, mma: wgmma, copy: tma, stages: 8, producer, epilogue: \
                             |acc, bias[n]| acc + bias, name: decode"
        .parse()?;
    let heads: SgemmSpec =
        "a: bf16, b: bf16, c: f32, layout: nn, tile: 64x128x64, pitched, arith: \
                            bf16, mma: wgmma, copy: tma, stages: 2, batch: strided2, name: heads"
            .parse()?;
    let experts: SgemmSpec = "a: bf16, b: bf16, c: bf16, layout: nt, tile: 128x128x64, float4, \
                              arith: bf16, mma: wgmma, copy: tma, stages: 4, producer, \
                              persistent, cluster: 2, batch: grouped, epilogue: |acc, \
                              bias[batch, n]| relu(acc + bias), name: experts"
        .parse()?;
    let fp8: SgemmSpec = "a: e4m3, b: e5m2, c: bf16, layout: nt, tile: 128x128x128, raster: 8, \
                          float4, promote: 128, mma: wgmma, copy: tma, stages: 4, producer, \
                          persistent, epilogue: |acc, scale_a[m], scale_b[n]| acc * scale_a * \
                          scale_b, name: fp8"
        .parse()?;
    let int8: SgemmSpec =
        "a: i8, b: i8, c: f32, layout: nt, tile: 128x128x128, float4, mma: wgmma, \
                           copy: tma, stages: 3, producer, split_k: 2, epilogue: |acc, \
                           scale_a[m], scale_b[n]| acc * scale_a * scale_b, name: int8"
            .parse()?;
    let bytes: SgemmSpec =
        "a: u8, b: i8, c: i32, layout: nn, tile: 32x32x16, thread: 4x4, float4, name: bytes"
            .parse()?;
    Ok([
        PinnedSpec::new("map", "gelu", &gelu)?,
        PinnedSpec::new("map", "norm", &norm)?,
        PinnedSpec::new("rows", "softmax", &softmax)?,
        PinnedSpec::new("rows", "layer_norm", &layer_norm)?,
        PinnedSpec::new("scans", "offsets", &scan)?,
        PinnedSpec::new("topk", "top64", &topk)?,
        PinnedSpec::new("batch", "grouped", &grouped)?,
        PinnedSpec::new("epilogue", "pairs", &pairs)?,
        PinnedSpec::new("typed", "f64", &f64s)?,
        PinnedSpec::new("typed", "linear", &linear)?,
        PinnedSpec::new("typed", "linear_float4", &linear.float4(true).name("linear_float4"))?,
        PinnedSpec::new("typed", "swiglu", &swiglu)?,
        PinnedSpec::new("typed", "product", &product)?,
        PinnedSpec::new("typed", "decode", &decode)?,
        PinnedSpec::new("typed", "heads", &heads)?,
        PinnedSpec::new("typed", "experts", &experts)?,
        PinnedSpec::new("typed", "fp8", &fp8)?,
        PinnedSpec::new("typed", "int8", &int8)?,
        PinnedSpec::new("typed", "bytes", &bytes)?,
    ])
}

/// Change that turns a stage into the published kernel that it follows.
type Change = fn(SgemmSpec) -> SgemmSpec;

/// Stages with such changes, by name.
const PUBLISHED: [(&str, Change); 4] = [
    ("private_row", |stage| stage.b_in_parts(true)),
    ("padded_prefetch", |stage| stage.fold_tiles(true)),
    ("split_fragment", |stage| stage.fragment(Fragment::SplitN)),
    ("guarded_scalar", |stage| stage.adjacent(4)),
];

/// Stages as published kernels have them.
fn published() -> Result<Vec<PinnedSpec>, SpecErrors> {
    let mut all = Vec::new();
    for stage in super::sgemm() {
        for (_, change) in PUBLISHED.iter().filter(|(name, _)| *name == stage.name) {
            all.push(PinnedSpec::new("published", stage.stem(), &change(stage.spec.clone()))?);
        }
    }
    Ok(all)
}

/// Reductions of segments and of runs. For segments, groups reduce short segments and blocks reduce
/// long ones; the bits depend on the limit between them. For runs, the kernel for runs of a shard
/// is included. A reduction with a number returns values with their indices.
fn reductions() -> Result<[PinnedSpec; 3], SpecErrors> {
    let groups: ReduceSpec = "over: segments, block: 128, group: 8, items: 4, shuffle".parse()?;
    let argmax: ReduceSpec =
        "op: argmax, block: 128, items: 2, shuffle, float4, run: 2048".parse()?;
    let mut runs = PinnedSpec::new("runs", "argmax", &argmax)?;
    runs.kernels.extend(argmax.plan()?.program_of_shard()?.variants().cloned());
    let farthest: ReduceSpec =
        "op: argmax, map: |x, mu: f32| abs(x - mu), with_value, over: rows, \
                                group: 8, float4, name: farthest"
            .parse()?;
    let numbers = PinnedSpec::new("numbers", "farthest", &farthest)?;
    Ok([PinnedSpec::new("segments", "groups", &groups)?, runs, numbers])
}

/// GEMMs: a small one whose expression uses most features, one with two values, one with a fold of
/// each row, the fastest stage with a library function, a batch with several GEMMs per block, a
/// batch of pointer lists, a batch with epilogue operands of each GEMM, and a batch with three
/// axes.
fn products() -> Result<Vec<PinnedSpec>, SpecErrors> {
    let small = "tile: 32x32x8, thread: 4x4, float4, epilogue: |acc| { let t = 0.5 * acc; \
                 if row == col { fma(t, t, f32(m * n)) } else { max(t, -1.0) } }";
    // This spec and others spill registers without `blocks_per_sm: 1`.
    let several = "tile: 16x16x16, thread: 4x4, float4, pad_a: 1, blocks_per_sm: 1, \
                   batch: strided, products: 4";
    let pointers = "tile: 32x32x16, thread: 4x4, float4, stages: 3, pitched, batch: pointers, \
                    epilogue: |acc, c[m, n], bias[n]| relu(acc + bias) + c";
    let operands = "tile: 32x32x16, thread: 4x4, float4, batch: strided, epilogue: |acc, \
                    factor[batch], bias[batch, n], scale[batch, m]| factor * acc * scale + bias";
    let axes = "tile: 32x32x16, thread: 4x4, float4, blocks_per_sm: 1, pitched, batch: strided3, \
                epilogue: |acc, factor[batch], mask[m, n]| factor * acc + mask";
    let values = "tile: 32x32x16, thread: 4x4, float4, stages: 3, pitched, split_k: 4, \
                  epilogue: |acc, bias[n]| { let t = acc + bias; (relu(t), t) }";
    let folds = "tile: 64x64x16, warp: 32x32, float4, mma: sync, arith: bf16, epilogue: |acc, \
                 bias[n], eps| { let y = acc + bias; (y, rsqrt(sum(y * y) / f32(n) + eps)) }";
    let mut specs: Vec<(&str, &str, SgemmSpec)> =
        vec![("epilogue", "small", small.parse()?), ("epilogue", "values", values.parse()?)];
    specs.push(("epilogue", "row_folds", folds.parse()?));
    for stage in super::sgemm().into_iter().filter(|stage| stage.name == "fastest") {
        let gelu = format!("{}, epilogue: |acc| gelu(acc)", stage.spec);
        specs.push(("epilogue", "fastest_gelu", gelu.parse()?));
    }
    specs.push(("batch", "several_a_block", several.parse()?));
    specs.push(("batch", "pointers", pointers.parse()?));
    specs.push(("batch", "operands", operands.parse()?));
    specs.push(("batch", "axes", axes.parse()?));
    specs.iter().map(|(folder, stem, spec)| PinnedSpec::new(folder, *stem, spec)).collect()
}
