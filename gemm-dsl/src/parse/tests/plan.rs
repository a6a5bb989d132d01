//! Messages about specs of `sgemm_kernel!` that have no plan, in the format of the module `sgemm`.
//! The module `rows` tests messages that follow from the rows of the key table.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    (
        "warp: 32x32",
        &[(
            "warp",
            "`warp` has no effect: without `tile` nothing is staged in shared memory; add a tile \
             such as `tile: 64x64x8`, or leave `warp` out",
        )],
    ),
    (
        "tile: 32x32x32, slices: 2",
        &[(
            "2",
            "`tile: 32x32x32` with `thread: 1x1` is (32/1) · (32/1) = 32 · 32 · 2 slices = 2048 \
             threads, and a block has at most 1024; leave `slices` out, or use a larger thread \
             tile",
        )],
    ),
    (
        "tile: 32x32x32, thread: 2x2, slices: 8",
        &[(
            "8",
            "`tile: 32x32x32` with `thread: 2x2` is (32/2) · (32/2) = 16 · 16 · 8 slices = 2048 \
             threads, and a block has at most 1024; use `slices: 4` or less, or a larger thread \
             tile",
        )],
    ),
    (
        "tile: 32x32x32, thread: 4x4, slices: 3",
        &[(
            "3",
            "`slices: 3` does not divide the 32 steps along K of a tile: 32 mod 3 = 2; use a \
             divisor of 32",
        )],
    ),
    (
        "tile: 32x32x6, thread: 4x4, slices: 2, stages: 3",
        &[(
            "32x32x6",
            "`stages` alternates between two fragments from one step along K to the next, and a \
             tile with K = 6 has an odd number of steps for each of 2 slices; use K = 8",
        )],
    ),
    (
        "tile: 32x32x8, thread: 4x4, split_k: auto, stream_k",
        &[(
            "split_k",
            "`split_k` has no effect: under `stream_k` blocks share the K steps of all tiles \
             evenly; leave one of the two out",
        )],
    ),
    (
        "tile: 128x128x16, warp: 32x32, arith: bf16, stage_c",
        &[(
            "stage_c",
            "`stage_c` has no effect: it stages the accumulators of tiles that CUDA cores \
             multiply, which needs `tile` and excludes tensor cores; leave `stage_c` out",
        )],
    ),
    (
        "tile: 32x32x8, thread: 4x4, split_k: some",
        &[("some", "`split_k` takes a whole number or `auto`, not `some`")],
    ),
    (
        "stream_k",
        &[(
            "stream_k",
            "`stream_k` has no effect: without `tile` nothing is staged in shared memory; add a \
             tile such as `tile: 64x64x8`, or leave `stream_k` out",
        )],
    ),
    (
        "slices: 3, partials: 2",
        &[(
            "partials",
            "`partials` has no effect: it applies to threads that compute one element at a time, \
             and with `slices` a thread computes all its elements at once; use more `slices`, or \
             leave `partials` out",
        )],
    ),
    (
        "lanes: k, coarsen: 4",
        &[(
            "coarsen",
            "`coarsen` has no effect: it applies to threads that compute one element at a time, \
             and with `lanes` a thread computes all its elements at once; use `thread: 1x4` for \
             four elements of a row",
        )],
    ),
    (
        "lanes: k, slices: 8",
        &[(
            "8",
            "`block: 8x1` is 8 · 1 warps · 32 · 8 slices = 2048 threads, and a block has at most \
             1024; use `slices: 4` or less",
        )],
    ),
    (
        "block: 8x8, lanes: k",
        &[(
            "8x8",
            "`block: 8x8` is 8 · 8 warps · 32 = 2048 threads, and a block has at most 1024; use a \
             smaller block such as `block: 8x1`",
        )],
    ),
    (
        "layout: tn, thread: 2x2, float4",
        &[(
            "float4",
            "`float4` has no effect: under `layout: tn` neither matrix is K-major, and `thread: \
             2x2` has no four adjacent rows or columns; use a multiple of 4 such as `thread: 4x4`, \
             or leave `float4` out",
        )],
    ),
    (
        "thread: 4x4, unroll: 64",
        &[(
            "64",
            "a thread needs 4 · 4 = 16 registers for its accumulators + 512 for fragments = 528, \
             and a thread has at most 255; use a smaller `unroll`",
        )],
    ),
    (
        "thread: 16x16",
        &[(
            "16x16",
            "a thread needs 16 · 16 = 256 registers for its accumulators + 32 for fragments = \
             288, and a thread has at most 255; use a smaller thread tile or fewer threads",
        )],
    ),
    (
        "tile: 32x32x32, fragment: strided",
        &[(
            "fragment",
            "`fragment: strided` has no effect: a thread computes one element; use a larger \
             `thread` such as `thread: 4x4`, or leave `fragment` out",
        )],
    ),
    (
        "tile: 32x32x32, thread: 1x4, order: column",
        &[(
            "order",
            "`order: column` has no effect: the elements of `thread: 1x4` form one row or column, \
             which every order visits in the same way; use a `thread` with more rows and columns, \
             or leave `order` out",
        )],
    ),
    (
        "tile: 32x32x32, thread: 4x1, order: column",
        &[(
            "order",
            "`order: column` has no effect: the elements of `thread: 4x1` form one row or column, \
             which every order visits in the same way; use a `thread` with more rows and columns, \
             or leave `order` out",
        )],
    ),
    (
        "tile: 32x32x32, spread: 4",
        &[(
            "spread",
            "`spread` has no effect: it spreads the asynchronous copies of `stages`; add `stages: \
             3`, or leave `spread` out",
        )],
    ),
    (
        "tile: 32x32x32, prefetch, double_buffer, stages: 3",
        &[
            (
                "double_buffer",
                "`double_buffer` and `prefetch` are two pipelines, and a kernel has one; leave one \
                 of them out",
            ),
            (
                "stages",
                "`stages` and `prefetch` are two pipelines, and a kernel has one; leave one of \
                 them out",
            ),
        ],
    ),
    (
        "tile: 64x64x8, thread: 3x5",
        &[(
            "3x5",
            "`thread: 3x5` does not divide `tile: 64x64x8`: 64 rows mod 3 = 1, 64 columns mod 5 = \
             4; use divisors of 64 for `thread`",
        )],
    ),
    (
        "tile: 64x64x8",
        &[(
            "64x64x8",
            "`tile: 64x64x8` with `thread: 1x1` is (64/1) · (64/1) = 64 · 64 = 4096 threads, and a \
             block has at most 1024; use a larger thread tile or a smaller tile",
        )],
    ),
    (
        "tile: 64x64x8, thread: 4x4, warp: 24x16",
        &[(
            "24x16",
            "`warp: 24x16` with `thread: 4x4` is (24/4) · (16/4) = 6 · 4 = 24 lanes, and a warp \
             has 32; use a warp tile of 32 thread tiles, such as `warp: 32x16`",
        )],
    ),
    (
        "tile: 64x64x8, thread: 4x4, warp: 30x16",
        &[(
            "30x16",
            "`thread: 4x4` does not divide `warp: 30x16`: 30 rows mod 4 = 2; use multiples of 4 \
             for `warp`",
        )],
    ),
    (
        "tile: 64x64x8, thread: 4x4, warp: 16x16",
        &[(
            "16x16",
            "`warp: 16x16` with `thread: 4x4` is (16/4) · (16/4) = 4 · 4 = 16 lanes, and a warp \
             has 32; use a warp tile of 32 thread tiles, such as `warp: 32x16`",
        )],
    ),
    (
        "tile: 16x64x8, thread: 4x4, warp: 16x16",
        &[(
            "16x16",
            "`warp: 16x16` with `thread: 4x4` is (16/4) · (16/4) = 4 · 4 = 16 lanes, and a warp \
             has 32; use a warp tile of 32 thread tiles, such as `warp: 16x32`",
        )],
    ),
    (
        "tile: 48x48x8, thread: 4x4, warp: 16x16",
        &[(
            "16x16",
            "`warp: 16x16` with `thread: 4x4` is (16/4) · (16/4) = 4 · 4 = 16 lanes, and a warp \
             has 32; no arrangement of 32 such thread tiles divides the block tile; leave `warp` \
             out, or change `thread`",
        )],
    ),
    (
        "tile: 32x32x6, float4",
        &[(
            "32x32x6",
            "`float4` moves 4 elements of a row of A at once, and a row has K = 6 elements in \
             `tile: 32x32x6`: 6 mod 4 = 2; use a multiple of 4 as K, such as 8, or leave `float4` \
             out",
        )],
    ),
    (
        "tile: 32x30x8, float4",
        &[(
            "32x30x8",
            "`float4` moves 4 elements of a row of B at once, and a row has N = 30 elements in \
             `tile: 32x30x8`: 30 mod 4 = 2; use a multiple of 4 as N, such as 32, or leave \
             `float4` out",
        )],
    ),
    (
        "tile: 32x32x6, transpose, stages: 2, float4, pad_b: 1",
        &[(
            "float4",
            "`float4` has no effect: with these paddings, `thread` and `fragment`, no access of \
             `tile: 32x32x6` covers 16 aligned bytes; make the padding a multiple of 4, or leave \
             `float4` out",
        )],
    ),
    (
        "tile: 64x64x8, thread: 4x2, fragment: split",
        &[(
            "split",
            "`fragment: split` divides the rows and columns of `thread: 4x2` into vectors of four: \
             2 columns mod 4 = 2; use multiples of 4 such as `thread: 8x8`, or another `fragment`",
        )],
    ),
    (
        "tile: 32x32x8, stages: 2, spread: 9",
        &[(
            "9",
            "`spread: 9`: a tile has only 8 steps along K, and the last waits instead of copying; \
             use 7 or less",
        )],
    ),
    (
        "tile: 32x32x8, partials: 3",
        &[(
            "3",
            "`partials: 3` does not divide the 8 steps along K of a tile: 8 mod 3 = 2; use a \
             divisor of 8",
        )],
    ),
    (
        "tile: 32x32x16, thread: 4x4, slices: 2, partials: 3",
        &[(
            "3",
            "`partials: 3` does not divide the 8 steps along K of a slice: 8 mod 3 = 2; use a \
             divisor of 8",
        )],
    ),
    (
        "tile: 32x32x8, partials: 4, unroll: 6",
        &[(
            "6",
            "`unroll: 6` is not a multiple of `partials: 4`, and an iteration of the unrolled loop \
             adds to each partial sum equally often: 6 mod 4 = 2; use a multiple of 4",
        )],
    ),
    (
        "partials: 4, unroll: 6",
        &[(
            "6",
            "`unroll: 6` is not a multiple of `partials: 4`, and an iteration of the unrolled loop \
             adds to each partial sum equally often: 6 mod 4 = 2; use a multiple of 4",
        )],
    ),
];
