//! Tests of the tensor core keys: one fault has one message at its token, and following its remedy
//! gives a valid spec.

use super::faults;
use crate::spec::SgemmSpec;

/// A spec, the marked tokens, a part of the message, and the spec after the remedy.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    (
        "tile: 128x128x64, arith: bf16x7, mma: wgmma",
        "bf16x7",
        "did you mean `bf16x6`",
        "tile: 128x128x64, arith: bf16x6, mma: wgmma",
    ),
    (
        "tile: 128x128x64, arith: bf61, mma: wgmma, copy: tma, producer, persistent, stages: 2",
        "bf61",
        "did you mean `bf16`",
        "tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, producer, persistent, stages: 2",
    ),
    (
        "tile: 128x128x64, arith: 16, mma: wgmma",
        "16",
        "`arith` takes one of",
        "tile: 128x128x64, arith: f16, mma: wgmma",
    ),
    (
        "tile: 128x128x64, arith: bf16, mma: wgma, copy: tma, producer",
        "wgma",
        "did you mean `wgmma`",
        "tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, producer",
    ),
    (
        "tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma tma",
        "tma",
        "`tma` is given twice; remove one",
        "tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma",
    ),
    (
        "tile: 128x128x64, mma: wgmma, copy: tma, producer, persistent, stages: 2",
        "mma",
        "add an arithmetic such as `arith: bf16x6`",
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, producer, persistent, stages: 2",
    ),
    (
        "tile: 128x128x64, arith: bf16x6, copy: tma, producer, persistent, stages: 2",
        "copy",
        "add `mma: wgmma`, or leave `copy` out",
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, producer, persistent, stages: 2",
    ),
    (
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, persistent",
        "persistent",
        "add `producer`, or leave `persistent` out",
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, producer, persistent",
    ),
    (
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, cluster: 2",
        "cluster",
        "add `copy: tma, producer`, or leave `cluster` out",
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, producer, cluster: 2",
    ),
    (
        "tile: 16x16x16, thread: 4x4, persistent",
        "persistent",
        "add `arith: bf16x6, mma: wgmma, copy: tma, producer`, or leave `persistent` out",
        "tile: 16x16x16, thread: 4x4",
    ),
    (
        "tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, producer, cluster: 16",
        "16",
        "at most 8",
        "tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, producer, cluster: 8",
    ),
    (
        "tile: 128x128x64, arith: f16x3",
        "f16x3",
        "add `mma: wgmma`, or use `arith: bf16x6`",
        "tile: 128x128x64, arith: f16x3, mma: wgmma",
    ),
    (
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, promote: 0",
        "0",
        "use a multiple of 16",
        "tile: 128x128x64, arith: bf16x6, mma: wgmma, promote: 16",
    ),
    (
        "tile: 64x64x64, coarsen: 4, arith: bf16, mma: wgmma",
        "coarsen",
        "leave `coarsen` out",
        "tile: 64x64x64, arith: bf16, mma: wgmma",
    ),
    (
        "tile: 64x64x32, warp: 32x32, arith: f16, batch: strided, products: 12",
        "12",
        "4x8 per thread of `warp: 32x32` is (64/4) · (64/8) = 16 · 8 · 12 GEMMs = 1536 threads, \
         and a block has at most 1024; use `products: 8` or less",
        "tile: 64x64x32, warp: 32x32, arith: f16, batch: strided, products: 8",
    ),
    (
        "tile: 128x256x32, arith: bf16x6, mma: wgmma, copy: tma",
        "128x256x32",
        "= 284, and a thread has at most 255; use a `tile` with fewer columns",
        "tile: 128x128x32, arith: bf16x6, mma: wgmma, copy: tma",
    ),
    (
        "tile: 64x64x32, warp: 32x32, arith: tf32, slices: 256",
        "256",
        "32 / 8 = 4 steps of `arith: tf32`: 4 mod 256 = 4; use a divisor of 4",
        "tile: 64x64x32, warp: 32x32, arith: tf32, slices: 4",
    ),
];

#[test]
fn a_fault_has_one_message_and_a_remedy_that_works() {
    for (line, at, part, sound) in FAULTS {
        let found = faults::<SgemmSpec>(line);
        let [(underlined, message)] = &found[..] else { panic!("{line}: {found:#?}") };
        assert_eq!(underlined, at, "{line}: {message}");
        assert!(message.contains(part), "{line}: {message}");
        assert_eq!(faults::<SgemmSpec>(sound), [], "after the remedy of {line}");
    }
}
