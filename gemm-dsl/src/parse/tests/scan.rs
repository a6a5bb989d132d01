//! Messages about specs of `scan_kernel!`.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    (
        "block: 96",
        &[("96", "`block: 96`: a block has a power of two of threads, from 32 to 1024; use 128")],
    ),
    (
        "block: 256, items: 9",
        &[(
            "9",
            "256 threads · 9 items = 2304 items per block, and a block scans at most 2048; use \
             `items: 8` or less, or a smaller block",
        )],
    ),
    (
        "type: f64, result: f32, items: 5",
        &[(
            "5",
            "256 threads · 5 items = 1280 items per block, and a block scans at most 1024 of 32 \
             bytes in 32768 bytes of shared memory; use `items: 4` or less, or a smaller block",
        )],
    ),
    (
        "over: rows, block: 256, items: 5",
        &[(
            "5",
            "256 threads · 5 items = 1280 items per block, and a block scans at most 1024; use \
             `items: 4` or less, or a smaller block",
        )],
    ),
    (
        "over: rows, group: 64",
        &[(
            "64",
            "`group: 64`: a row is scanned by a power of two of threads up to 32, or by the whole \
             block; use 32, or `group: 256`",
        )],
    ),
    (
        "acc: i32",
        &[(
            "i32",
            "`acc: i32` cannot hold every `f32`; leave `acc` out, or use `acc: f32` or `acc: f64`",
        )],
    ),
    (
        "type: i32, result: f32",
        &[("f32", "`result: f32`: a scan in `i32` can return `i32`; use one of these")],
    ),
    (
        "group: 8",
        &[(
            "group",
            "`group` has no effect: all threads of a block scan the array together; scan each row \
             with `over: rows`, or leave `group` out",
        )],
    ),
];
