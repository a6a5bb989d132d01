//! Messages about the keys of published kernels, in the format of the module `sgemm`.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    (
        "tile: 32x30x8, adjacent: 4",
        &[(
            "4",
            "`adjacent: 4` does not divide a row of B, which has N = 30 elements in `tile: \
             32x30x8`: 30 mod 4 = 2; use a divisor of 30",
        )],
    ),
    (
        "tile: 32x32x8, float4, adjacent: 4",
        &[(
            "adjacent",
            "`adjacent` has no effect: a kernel without `tile`, or with `float4`, `stages` or \
             converted matrices, copies no tile by scalar loads and stores; leave `adjacent` out",
        )],
    ),
    (
        "tile: 16x64x16, thread: 4x4, fragment: strided, b_in_parts",
        &[(
            "b_in_parts",
            "`b_in_parts` has no effect: parts of a tile of B hold one column per thread, which \
             needs `fragment: strided` and one row in `thread`, and excludes `warp`, `prefetch`, \
             `double_buffer` and `stages`; leave `b_in_parts` out",
        )],
    ),
    (
        "tile: 16x40x16, thread: 1x4, fragment: strided, b_in_parts, float4",
        &[(
            "16x40x16",
            "`float4` moves 4 elements of a row of B at once, and a row has N / 4 = 10 elements in \
             `tile: 16x40x16`: 10 mod 4 = 2; use a multiple of 4 as N / 4, such as 12, or leave \
             `float4` out",
        )],
    ),
    (
        "tile: 32x32x8, fold_tiles",
        &[(
            "fold_tiles",
            "`fold_tiles` has no effect: an element of C has no partial sums in a tile; add \
             `partials: 2`, or leave `fold_tiles` out",
        )],
    ),
    (
        "tile: 64x64x8, thread: 4x2, fragment: split_n",
        &[(
            "split_n",
            "`fragment: split_n` divides the columns of `thread: 4x2` into vectors of four: 2 mod \
             4 = 2; use a multiple of 4 such as `thread: 8x8`, or another `fragment`",
        )],
    ),
];
