//! Conditions on GEMMs: the kernels on which certain keys act.

use super::{Arith, Copies, Fragment, Instruction, SgemmSpec};
use crate::spec::table::{ActsOn, Prerequisite, Suggestion};

/// GEMMs that stage tiles of A and B in shared memory.
pub(super) const TILE: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.tile.is_some(),
    rests_on: &["tile"],
    because: "without `tile` nothing is staged in shared memory",
    suggestion: Suggestion::Or("add a tile such as `tile: 64x64x8`"),
};

/// GEMMs whose threads keep partial sums while they multiply staged tiles.
pub(super) const PARTIAL_SUMS: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.tile.is_some() && spec.partials > 1,
    rests_on: &["partials", "tile"],
    because: "an element of C has no partial sums in a tile",
    suggestion: Suggestion::Add(&[
        ("tile: 64x64x8", |spec| spec.tile.is_some()),
        ("partials: 2", |spec| spec.partials > 1),
    ]),
};

/// GEMMs whose threads compute strided elements of one row, without a warp tile or a pipeline.
pub(super) const STRIDED_ROW: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| {
        let one_row = spec.thread.m == 1 && spec.fragment == Fragment::Strided;
        let no_pipeline = !spec.prefetch && !spec.double_buffer && spec.stages.is_none();
        spec.tile.is_some() && one_row && spec.warp.is_none() && no_pipeline
    },
    rests_on: &["tile", "thread", "fragment", "warp", "prefetch", "double_buffer", "stages"],
    because: "parts of a tile of B hold one column per thread, which needs `fragment: strided` and \
              one row in `thread`, and excludes `warp`, `prefetch`, `double_buffer` and `stages`",
    suggestion: Suggestion::Leave,
};

/// GEMMs that stage tiles by loads and stores of single elements.
pub(super) const SCALAR_COPIES: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| {
        let scalar = !spec.float4 && spec.stages.is_none() && !spec.converts_matrices();
        spec.tile.is_some() && scalar
    },
    rests_on: &["tile", "float4", "stages", "convert", "mma", "arith"],
    because: "a kernel without `tile`, or with `float4`, `stages` or converted matrices, copies no \
              tile by scalar loads and stores",
    suggestion: Suggestion::Leave,
};

/// GEMMs that multiply staged tiles on CUDA cores.
pub(super) const CUDA_CORES: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.tile.is_some() && spec.arith == Arith::F32,
    rests_on: &["tile", "arith"],
    because: "it stages the accumulators of tiles that CUDA cores multiply, which needs `tile` and \
              excludes tensor cores",
    suggestion: Suggestion::Leave,
};

/// GEMMs whose multiplications run on tensor cores.
pub(super) const TENSOR_CORES: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.arith != Arith::F32,
    rests_on: &["arith"],
    because: "under `arith: f32` no tensor core is used",
    suggestion: Suggestion::Or("add an arithmetic such as `arith: bf16x6`"),
};

/// GEMMs on tensor cores that read their operands from shared memory.
pub(super) const WARPGROUPS: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.is_wgmma(),
    rests_on: &["mma", "arith"],
    because: "under `mma: sync` the lanes of a warp load the operands themselves",
    suggestion: Suggestion::Add(&[ARITH, WGMMA]),
};

/// Prerequisites of the keys that act on only a few kernels.
const ARITH: Prerequisite<SgemmSpec> = ("arith: bf16x6", |spec| spec.arith != Arith::F32);
const WGMMA: Prerequisite<SgemmSpec> = ("mma: wgmma", |spec| spec.mma == Instruction::Wgmma);
const TMA: Prerequisite<SgemmSpec> = ("copy: tma", |spec| spec.copy == Copies::Tma);
const PRODUCER_KEY: Prerequisite<SgemmSpec> = ("producer", |spec| spec.producer);

/// GEMMs whose tiles are copied asynchronously by TMA.
pub(super) const TMA_COPIES: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.is_wgmma() && spec.copy == Copies::Tma,
    rests_on: &["copy", "mma", "arith"],
    because: "without `copy: tma` all threads copy a tile, and then all multiply it",
    suggestion: Suggestion::Add(&[ARITH, WGMMA, TMA]),
};

/// GEMMs with producer warps, which load tiles while other warps run the epilogue.
pub(super) const PRODUCER: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.is_wgmma() && spec.producer,
    rests_on: &["producer", "copy", "mma", "arith"],
    because: "the kernel has no producer warps",
    suggestion: Suggestion::Add(&[ARITH, WGMMA, TMA, PRODUCER_KEY]),
};

/// GEMMs that do not stage operands in shared memory.
pub(super) const fn untiled(because: &'static str) -> ActsOn<SgemmSpec> {
    ActsOn {
        includes: |spec| spec.tile.is_none(),
        rests_on: &["tile"],
        because,
        suggestion: Suggestion::Leave,
    }
}
