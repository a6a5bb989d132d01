//! Messages about specs of `sgemm_kernel!` that exceed the resources of a GPU or the limits of the
//! keys, in the format of the module `sgemm`.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    (
        "tile: 128x128x16, thread: 8x8, stages: 14, stage_c",
        &[(
            "stage_c",
            "`stage_c` stages 2·8 accumulators · 256 threads · 4 bytes = 16384 bytes, and the \
             tiles need 229376: 245760 bytes, and a block has at most 232448 bytes of shared \
             memory; use a smaller tile or fewer buffers, or leave `stage_c` out",
        )],
    ),
    (
        "tile: 128x128x16, thread: 8x8, stages: 7, blocks_per_sm: 2, stage_c",
        &[(
            "stage_c",
            "`stage_c` stages 2·8 accumulators · 256 threads · 4 bytes = 16384 bytes, and the \
             tiles need 114688: 2 blocks · (131072 + 1024 reserved by CUDA) = 264192 bytes of \
             shared memory, and an SM has at most 233472; use a smaller tile or fewer buffers, or \
             leave `stage_c` out",
        )],
    ),
    (
        "tile: 128x128x8, thread: 16x16",
        &[(
            "16x16",
            "a thread needs 16 · 16 = 256 registers for its accumulators + 32 for fragments = \
             288, and a thread has at most 255; use a smaller thread tile or fewer threads",
        )],
    ),
    (
        "tile: 256x256x8, thread: 8x8",
        &[(
            "8x8",
            "a thread needs 8 · 8 = 64 registers for its accumulators + 16 for fragments = 80, and \
             65536 registers shared by 1024 threads · 1 block leave 64 per thread; use a smaller \
             thread tile or fewer threads",
        )],
    ),
    (
        "tile: 128x128x8, thread: 8x8, blocks_per_sm: 4",
        &[(
            "4",
            "a thread needs 8 · 8 = 64 registers for its accumulators + 16 for fragments = 80, and \
             65536 registers shared by 256 threads · 4 blocks leave 64 per thread; use a smaller \
             `blocks_per_sm`",
        )],
    ),
    (
        "partials: 200, block: 32x32",
        &[(
            "200",
            "a thread needs 1 · 1 · 200 partial sums = 200 registers for its accumulators + 2 for \
             fragments = 202, and 65536 registers shared by 1024 threads · 1 block leave 64 per \
             thread; use a smaller `partials`",
        )],
    ),
    (
        "tile: 128x256x16, thread: 8x16, stages: 40",
        &[(
            "40",
            "the block needs 983040 bytes of shared memory: 40 stages · 128·16 elements · 4 bytes \
             = 327680 for A, 40 stages · 16·256 elements · 4 bytes = 655360 for B, and a block has \
             at most 232448 (227 KiB); use `stages: 9` or less, or a smaller tile",
        )],
    ),
    (
        "tile: 256x256x128, thread: 8x8, double_buffer",
        &[(
            "256x256x128",
            "the block needs 524288 bytes of shared memory: 2 buffers · 256·128 elements · 4 bytes \
             = 262144 for A, 2 buffers · 128·256 elements · 4 bytes = 262144 for B, and a block \
             has at most 232448 (227 KiB); use a smaller tile",
        )],
    ),
    (
        "tile: 512x512x64, thread: 8x8",
        &[
            (
                "512x512x64",
                "the block needs 262144 bytes of shared memory: 512·64 elements · 4 bytes = 131072 \
                 for A, 64·512 elements · 4 bytes = 131072 for B, and a block has at most 232448 \
                 (227 KiB); use a smaller tile",
            ),
            (
                "8x8",
                "`tile: 512x512x64` with `thread: 8x8` is (512/8) · (512/8) = 64 · 64 = 4096 \
                 threads, and a block has at most 1024; use a larger thread tile or a smaller tile",
            ),
        ],
    ),
    (
        "tile: 256x256x256, thread: 8x16",
        &[(
            "256x256x256",
            "the block needs 524288 bytes of shared memory: 256·256 elements · 4 bytes = 262144 \
             for A, 256·256 elements · 4 bytes = 262144 for B, and a block has at most 232448 (227 \
             KiB); use a smaller tile",
        )],
    ),
    (
        "tile: 32x32x32, pad_a: 4294967295",
        &[(
            "4294967295",
            "the block needs 549755821952 bytes of shared memory: 32·4294967327 elements · 4 bytes \
             = 549755817856 for A, 32·32 elements · 4 bytes = 4096 for B, and a block has at most \
             232448 (227 KiB); use less padding",
        )],
    ),
    (
        "tile: 128x128x128, thread: 8x8, double_buffer",
        &[(
            "double_buffer",
            "the block needs 262144 bytes of shared memory: 2 buffers · 128·128 elements · 4 bytes \
             = 131072 for A, 2 buffers · 128·128 elements · 4 bytes = 131072 for B, and a block \
             has at most 232448 (227 KiB); leave `double_buffer` out, or use a smaller tile",
        )],
    ),
    (
        "tile: 66x70x330, thread: 6x7, slices: 3, stream_k, pad_a: 1",
        &[(
            "3",
            "the block needs 235248 bytes of shared memory: 66·331 elements · 4 bytes = 87384 for \
             A, 330·70 elements · 4 bytes = 92400 for B, 4 for the ticket of the block, 18480 for \
             the partial sums, 36960 for the accumulators of the slices, 20 to align arrays to 16 \
             bytes, and a block has at most 232448 (227 KiB); leave `slices` out, or use a smaller \
             tile",
        )],
    ),
    (
        "tile: 4294967295x4294967295x4294967295",
        &[
            (
                "4294967295x4294967295x4294967295",
                "`tile: 4294967295x4294967295x4294967295` with `thread: 1x1` is (4294967295/1) · \
                 (4294967295/1) = 4294967295 · 4294967295 = 18446744065119617025 threads, and a \
                 block has at most 1024; use a larger thread tile or a smaller tile",
            ),
            (
                "4294967295x4294967295x4294967295",
                "the block needs 147573952520956936212 bytes of shared memory: \
                 4294967295·4294967295 elements · 4 bytes = 73786976260478468100 for A, \
                 4294967295·4294967295 elements · 4 bytes = 73786976260478468100 for B, 12 to \
                 align arrays to 16 bytes, and a block has at most 232448 (227 KiB); use a smaller \
                 tile",
            ),
        ],
    ),
    (
        "tile: 128x128x64, thread: 8x8, blocks_per_sm: 4",
        &[(
            "4",
            "`blocks_per_sm: 4` needs 4 · (65536 + 1024 reserved by CUDA) = 266240 bytes of shared \
             memory, and an SM has at most 233472 (228 KiB); use 3 or less",
        )],
    ),
    (
        "blocks_per_sm: 33",
        &[("33", "`blocks_per_sm: 33`: an SM holds at most 32 blocks; use 32 or less")],
    ),
    (
        "blocks_per_sm: 9",
        &[(
            "9",
            "`blocks_per_sm: 9` with 256 threads per block is 2304 threads, and an SM holds at \
             most 2048; use 8 or less",
        )],
    ),
    (
        "coarsen: 4294967295",
        &[(
            "4294967295",
            "`coarsen: 4294967295` · 16 columns = 68719476720 columns, more than 2^30 = \
             1073741824; use 67108864 or less",
        )],
    ),
    (
        "raster: 4294967295",
        &[(
            "4294967295",
            "`raster: 4294967295` · 16 rows = 68719476720 rows, more than 2^30 = 1073741824; use \
             67108864 or less",
        )],
    ),
    (
        "unroll: 5000",
        &[("5000", "`unroll: 5000`: the loop body would be too long to compile; use 1024 or less")],
    ),
    (
        "block: 64x64",
        &[(
            "64x64",
            "`block: 64x64` is 64 · 64 = 4096 threads, and a block has at most 1024; use a smaller \
             block such as `block: 32x32`",
        )],
    ),
];
