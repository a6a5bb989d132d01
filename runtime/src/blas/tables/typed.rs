//! Rules for matrices of `bf16`, `f16` and `f64`. Each list has the rules for single GEMMs, then
//! the rules for batches.

/// Rules for CUDA cores. They were not measured. No spec needs an instruction or an amount of
/// shared memory that some GPU lacks.
pub(in super::super) const HALVES: [&str; 2] = [
    "\
    waves(128x128) > 0.75 =>
        tile: 128x128x16, thread: 8x8, fragment: split, transpose, pad_a: 4, pad_b: 4,
        double_buffer, order: row_serpentine;
    waves(64x64) > 0.75 =>
        tile: 64x64x16, thread: 4x4, fragment: split, transpose, pad_a: 4, pad_b: 4, double_buffer;
    else => tile: 32x32x16, thread: 4x4;
",
    "\
    waves(128x128) > 0.75 =>
        tile: 128x128x16, thread: 8x8, fragment: split, transpose, pad_a: 4, pad_b: 4,
        double_buffer, order: row_serpentine, batch: strided;
    waves(64x64) > 0.75 =>
        tile: 64x64x16, thread: 4x4, fragment: split, transpose, pad_a: 4, pad_b: 4, double_buffer,
        batch: strided;
    else => tile: 32x32x16, thread: 4x4, batch: strided;
",
];

/// Rules for an H200, fitted to the times of 22 specs at 24 sizes in the layouts `nn` and `nt`.
///
/// A large GEMM takes the tile with the lowest cost: the number of waves, rounded up, times the
/// time of a wave relative to that of 128x256 tiles. Tiles whose rows in memory are no multiples of
/// 128 bytes are read from the L2 cache with more traffic. Clusters share these reads.
///
/// With `bf16` in all three matrices, `typed --shipped --layout nn,nt,tn,tt --random 200` measured
/// these speeds over cuBLAS on 2026-11-28: 1.014 in the geometric mean and at least 0.996 at 2048,
/// 4096 and 8192; 0.80 and at least 0.42 at 200 random sizes, which are multiples of 8 from 512 to
/// 8192. Most of the loss is at rows that are no multiples of 128 bytes.
pub(in super::super) fn halves_sm_90() -> [String; 2] {
    let wgmma = "raster: 8, float4, mma: wgmma, copy: tma, producer";
    let cost = |tile: &str, wave: f64| format!("{wave:?} * floor(waves({tile}) + 0.999)");
    let lines = |of: &str| {
        let multiple = format!("% {of} != 0");
        format!(
            "((nn || nt || tt) && k {multiple} || (nn || tn) && n {multiple} || (tn || tt) && m \
             {multiple})"
        )
    };
    let (unaligned, ragged) = (lines("8"), lines("64"));
    // The number of tiles in clusters of two along M is even.
    let pairs = |tile: &str, wave: f64| format!("{wave:?} * floor(2.0 * waves({tile}) + 0.999)");
    let [p256, p192, p128] = [("256x256", 0.936), ("256x192", 0.86), ("256x128", 0.65)]
        .map(|(tile, wave)| pairs(tile, wave));
    let [alone_256, alone_192] = [cost("128x256", 1.2), cost("128x192", 1.05)];
    let best_pairs = format!("min({p192}, {p256})");
    let [c256, c224] = [cost("128x256", 1.0), cost("128x224", 0.9)];
    let [c192, c160, c64] = [("128x192", 0.86), ("128x160", 0.75), ("64x256", 0.583)]
        .map(|(tile, wave)| cost(tile, wave));
    let one = format!(
        "\
        {unaligned} && waves(64x64) <= 0.75 => tile: 32x32x16, thread: 4x4;
        {unaligned} && waves(128x128) <= 0.75 =>
            tile: 64x64x16, thread: 4x4, fragment: split, transpose, pad_a: 4, pad_b: 4,
            double_buffer;
        k >= 2048 && waves(64x64) <= 1.0 =>
            tile: 64x64x64, stages: 6, blocks_per_sm: 2, split_k: auto, {wgmma};
        k >= 4096 && waves(64x128) <= 1.0 => tile: 128x256x64, stages: 4, split_k: auto, {wgmma};
        waves(64x64) <= 1.0 => tile: 64x64x64, stages: 6, blocks_per_sm: 2, persistent, {wgmma};
        waves(64x128) <= 1.0 => tile: 64x128x64, stages: 4, blocks_per_sm: 2, persistent, {wgmma};
        {ragged} && {p128} <= min({best_pairs}, min({alone_192}, {alone_256})) =>
            tile: 128x128x64, stages: 6, persistent, cluster: 2, {wgmma};
        {ragged} && {p192} <= min({p256}, min({alone_192}, {alone_256})) =>
            tile: 128x192x64, stages: 5, persistent, cluster: 2, {wgmma};
        {ragged} && {p256} <= min({alone_192}, {alone_256}) =>
            tile: 128x256x64, stages: 4, persistent, cluster: 2, {wgmma};
        {ragged} && {alone_192} <= {alone_256} =>
            tile: 128x192x64, stages: 5, persistent, {wgmma};
        {ragged} => tile: 128x256x64, stages: 4, persistent, {wgmma};
        {c64} <= min({c160}, min({c192}, {c256})) =>
            tile: 64x256x64, stages: 4, persistent, {wgmma};
        {c160} <= min({c192}, {c256}) => tile: 128x160x64, stages: 6, persistent, {wgmma};
        (nt || tt) && {c224} <= min({c192}, {c256}) =>
            tile: 128x224x64, stages: 4, persistent, {wgmma};
        {c192} <= {c256} => tile: 128x192x64, stages: 5, persistent, {wgmma};
        else => tile: 128x256x64, stages: 4, persistent, {wgmma};
        "
    );
    [one, HALVES[1].to_owned()]
}

/// Rules for `f64`, not measured.
pub(in super::super) const DOUBLES: [&str; 2] = [
    "\
    waves(64x64) > 0.75 =>
        tile: 64x64x16, thread: 4x4, fragment: split, transpose, pad_a: 2, pad_b: 2, double_buffer;
    else => tile: 32x32x16, thread: 4x4;
",
    "\
    waves(64x64) > 0.75 =>
        tile: 64x64x16, thread: 4x4, fragment: split, transpose, pad_a: 2, pad_b: 2, double_buffer,
        batch: strided;
    else => tile: 32x32x16, thread: 4x4, batch: strided;
",
];
