//! Every message about a spec of `reduce_kernel!`: the text, and the tokens and the message of each
//! fault.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    ("blok: 64", &[("blok", "unknown key `blok`; did you mean `block`?")]),
    (
        "tile: 8x8x8",
        &[(
            "tile",
            "unknown key `tile`: it belongs to `sgemm_kernel!`, not to `reduce_kernel!`; leave it \
             out",
        )],
    ),
    ("zzz", &[("zzz", "unknown key `zzz`; the keys of `reduce_kernel!` are {keys}")]),
    (
        "interleaved",
        &[("interleaved", "unknown key `interleaved`; did you mean `tree: interleaved`?")],
    ),
    ("block", &[("block", "`block` needs a value: a whole number")]),
    ("block:", &[("block", "`block` needs a value: a whole number")]),
    ("block: items: 4", &[("block", "`block` needs a value: a whole number")]),
    (
        "block: 64, block: 128",
        &[("block", "`block` is given twice, first as `block: 64`; leave one out")],
    ),
    ("shuffle, shuffle", &[("shuffle", "`shuffle` is given twice; leave one out")]),
    (
        "float4: 4",
        &[("4", "`float4` is a flag and takes no value; write `float4` alone, or leave it out")],
    ),
    ("block: big", &[("big", "`block` takes a whole number, not `big`")]),
    ("block: \"64\"", &[("\"64\"", "`block` takes a whole number, not `\"64\"`")]),
    ("block: -8", &[("-8", "`block: -8` is negative; use a positive number")]),
    ("block: 1.5", &[("1.5", "`block: 1.5` is a fraction; use a whole number")]),
    ("block: 1_024", &[("1_024", "`block: 1_024` has `_` within a number; write `1024`")]),
    (
        "block: 5000000000",
        &[("5000000000", "`block: 5000000000` is too large; use at most 4294967295")],
    ),
    ("block: 16x16", &[("16x16", "`block` takes one whole number, not the size `16x16`")]),
    (
        "block: 12u32",
        &[("12u32", "`block: 12u32` is not a plain decimal number; use only the digits 0 to 9")],
    ),
    ("block: (4)", &[("(4)", "`block` takes a whole number, not `(4)`")]),
    (
        "op: sun",
        &[(
            "sun",
            "`op` takes one of `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, \
             `mean_var`, `logsumexp`, not `sun`; did you mean `sum`?",
        )],
    ),
    (
        "op: quux",
        &[(
            "quux",
            "`op` takes one of `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, \
             `mean_var`, `logsumexp`, not `quux`",
        )],
    ),
    (
        "op: 4",
        &[(
            "4",
            "`op` takes one of `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, \
             `mean_var`, `logsumexp`, not `4`",
        )],
    ),
    (
        "op: Op::Sum",
        &[(
            "Op::Sum",
            "`op` takes one of `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, \
             `mean_var`, `logsumexp`, not `Op::Sum`",
        )],
    ),
    ("op: sum block: 64", &[("block", "expected `,` before `block`")]),
    ("shuffle float4", &[("float4", "expected `,` before `float4`")]),
    ("block 64", &[("64", "expected `:` after `block`, found `64`")]),
    ("block = 64", &[("=", "expected `:` after `block`, found `=`")]),
    ("op sum", &[("sum", "expected `:` after `op`, found `sum`")]),
    ("block: 64;", &[(";", "expected `,`, found `;`")]),
    ("block: 64; items: 2", &[(";", "expected `,`, found `;`")]),
    (", block: 64", &[(",", "expected a key before `,`; leave the comma out")]),
    ("block: 64,, items: 2", &[(",", "expected a key before `,`; leave the comma out")]),
    (",", &[(",", "expected a key before `,`; leave the comma out")]),
    ("3: 4", &[("3", "expected a key, found `3`; write `key: value`, or a flag")]),
    ("<block: 64", &[("<", "`<` is not closed; end the spec with `>`, or leave `<` out")]),
    ("block: 64>", &[(">", "`>` has no matching `<`; start the spec with `<`, or leave `>` out")]),
    (
        "block: 128e",
        &[("128e", "`block: 128e` is not a plain decimal number; use only the digits 0 to 9")],
    ),
    (
        "block: 0x100",
        &[("0x100", "`block: 0x100` is hexadecimal; write one number in decimal, as in `256`")],
    ),
    ("(block", &[("(", "`(` is not closed; close it, or leave it out")]),
    ("block)", &[(")", "`)` closes nothing; open it, or leave it out")]),
    ("block: (64]", &[("]", "`]` does not close `(`; pair the brackets")]),
    ("name: \"sum", &[("\"", "`\"` is not closed; close it, or leave it out")]),
    ("op: max /* or min", &[("/*", "`/*` is not closed; close it, or leave it out")]),
    ("block: 64 €", &[("€", "'€' does not start a Rust token; leave it out")]),
    ("last warp", &[("last", "unknown key `last`; did you mean `unroll_last_warp`?")]),
    ("foo = 4", &[("foo", "unknown key `foo`; the keys of `reduce_kernel!` are {keys}")]),
    (
        "unroll-last warp",
        &[("unroll-last warp", "unknown key `unroll-last warp`; did you mean `unroll_last_warp`?")],
    ),
    ("block: 64 128", &[("64 128", "`block` takes a whole number, not `64 128`")]),
    (
        "block: 0",
        &[(
            "0",
            "`block: 0`: a block needs threads; use a power of two from 32 to 1024, such as 256",
        )],
    ),
    (
        "block: 96",
        &[(
            "96",
            "`block: 96` is not a power of two: the tree halves the block at every step; use 64 or \
             128",
        )],
    ),
    (
        "block: 16",
        &[(
            "16",
            "`block: 16` is less than one warp of 32 threads; use a power of two from 32 to 1024",
        )],
    ),
    (
        "block: 2048",
        &[(
            "2048",
            "`block: 2048` is more than the 1024 threads a block may have; use a power of two from \
             32 to 1024",
        )],
    ),
    (
        "block: 3000",
        &[(
            "3000",
            "`block: 3000` is more than the 1024 threads a block may have; use a power of two from \
             32 to 1024",
        )],
    ),
    ("items: 0", &[("0", "`items: 0`: a thread folds at least one item; use 1 or more")]),
    (
        "items: 4294967295",
        &[(
            "4294967295",
            "a block of 256 · 4294967295 items = 1099511627520 elements is more than 2^30 = \
             1073741824; use `items: 4194304` or less",
        )],
    ),
    (
        "items: 2097153, float4, block: 512",
        &[(
            "2097153",
            "a block of 512 · 2097153 items · 4 = 4294969344 elements is more than 2^30 = \
             1073741824; use `items: 524288` or less",
        )],
    ),
    (
        "block: 32, unroll_last_warp",
        &[(
            "unroll_last_warp",
            "`unroll_last_warp` starts when the last warp folds 64 values, and `block: 32` has \
             only 32; use `block: 64` or more, or leave `unroll_last_warp` out",
        )],
    ),
    (
        "unroll_last_warp, shuffle",
        &[(
            "unroll_last_warp",
            "`unroll_last_warp` and `shuffle` cannot be combined: both replace the last steps of \
             the tree; leave one of them out",
        )],
    ),
    (
        "tree: interleaved, shuffle",
        &[(
            "tree",
            "`tree` has no effect: `shuffle` replaces the shared-memory tree; leave one of them \
             out",
        )],
    ),
    (
        "tree: interleaved_divergent, unroll_last_warp",
        &[(
            "unroll_last_warp",
            "`unroll_last_warp` needs the last 32 active threads in one warp, and `tree: \
             interleaved_divergent` spreads them over all warps; use `tree: interleaved` or `tree: \
             sequential`",
        )],
    ),
    (
        "launch: tiles, map: |x| x * x",
        &[(
            "tiles",
            "`launch: tiles` folds a whole array of `f32` by `sum`, `prod`, `max` or `min`, and \
             chooses the numbers of launches and blocks itself, so it cannot be combined with \
             `map`; leave one of the two out",
        )],
    ),
    (
        "launch: tiles, over: rows, group: 256, blocks: 2",
        &[(
            "tiles",
            "`launch: tiles` folds a whole array of `f32` by `sum`, `prod`, `max` or `min`, and \
             chooses the numbers of launches and blocks itself, so it cannot be combined with \
             `over`; leave one of the two out",
        )],
    ),
    (
        "blocks: 8, launch: tiles",
        &[(
            "tiles",
            "`launch: tiles` folds a whole array of `f32` by `sum`, `prod`, `max` or `min`, and \
             chooses the numbers of launches and blocks itself, so it cannot be combined with \
             `blocks`; leave one of the two out",
        )],
    ),
    (
        "launch: tiles, run: 1024",
        &[(
            "tiles",
            "`launch: tiles` folds a whole array of `f32` by `sum`, `prod`, `max` or `min`, and \
             chooses the numbers of launches and blocks itself, so it cannot be combined with \
             `run`; leave one of the two out",
        )],
    ),
    (
        "blocks: 8, run: 1024",
        &[(
            "1024",
            "`run` and `blocks` cannot be combined: each run of 1024 elements has a block of its \
             own, and `blocks` sets the number of blocks; leave one of them out",
        )],
    ),
    (
        "items: 4, float4, run: 10000",
        &[(
            "10000",
            "`run: 10000`: a block reads 256 threads · 4 items · 4 = 4096 elements of a result at \
             once, and a run must be a multiple of 4096: 10000 mod 4096 = 1808; use `run: 8192` or \
             `run: 12288`",
        )],
    ),
    (
        "type: f64, float4, run: 100",
        &[(
            "100",
            "`run: 100`: a block reads 256 threads · 1 items · 2 = 512 elements of a result at \
             once, and a run must be a multiple of 512: 100 mod 512 = 100; use `run: 512`",
        )],
    ),
    (
        "over: columns, float4, group: 4, items: 3, run: 13",
        &[(
            "13",
            "`run: 13`: a block reads 4 threads · 3 items = 12 elements of a result at once, and a \
             run must be a multiple of 12: 13 mod 12 = 1; use `run: 12` or `run: 24`",
        )],
    ),
    (
        "items: 3, run: 1073741823",
        &[(
            "1073741823",
            "`run: 1073741823`: a block reads 256 threads · 3 items = 768 elements of a result at \
             once, and a run must be a multiple of 768: 1073741823 mod 768 = 255; use `run: \
             1073741568`",
        )],
    ),
    (
        "items: 3, run: 4294967295",
        &[(
            "4294967295",
            "`run: 4294967295` is more than the 2^30 = 1073741824 elements that a block may fold; \
             use `run: 1073741568` or less",
        )],
    ),
    (
        "over: rows, run: 32",
        &[(
            "32",
            "`run` makes several blocks fold a row, but here 32 threads fold each row; use `group: \
             256`, or leave `run` out",
        )],
    ),
    (
        "over: segments, run: 4096",
        &[(
            "run",
            "`run` has no effect: the length of a segment is unknown at launch; leave `run` out",
        )],
    ),
    (
        "over: rows, launch: passes",
        &[(
            "launch",
            "`launch` has no effect: one block folds a result unless `blocks` or `run` is given; \
             leave `launch` out",
        )],
    ),
    (
        "over: rows, block: 64, shuffle",
        &[(
            "shuffle",
            "`shuffle` has no effect: groups of up to a warp always use shuffles, and columns \
             always use a tree; leave `shuffle` out",
        )],
    ),
    (
        "finish: |s, len, more| s",
        &[(
            "|s, len, more| s",
            "`finish` has 3 parameters, but takes the folded value and optionally the number of \
             elements, as in `finish: |s, len| s / len`",
        )],
    ),
    (
        "finish: |s, len| s",
        &[("len", "`len` is never read; read it, or write `_len` to ignore it")],
    ),
    (
        "type: f16, acc: f16",
        &[("f16", "`acc` takes one of `f32`, `f64`, `i32`, `u32`, `i64`, `u64`, not `f16`")],
    ),
    (
        "name: __",
        &[("__", "`name: __` has no letter; use a name with a letter, or leave `name` out")],
    ),
    (
        "name: ünder",
        &[(
            "ünder",
            "`name: ünder` is not a CUDA C++ identifier: use only ASCII letters, digits and `_`, \
             and no digit first",
        )],
    ),
    ("name: 3x", &[("3x", "`name` takes an identifier, not `3x`")]),
    (
        "block: 96,\n  items: 0,\n  blok: 3",
        &[
            (
                "96",
                "`block: 96` is not a power of two: the tree halves the block at every step; use \
                 64 or 128",
            ),
            ("0", "`items: 0`: a thread folds at least one item; use 1 or more"),
            ("blok", "unknown key `blok`; did you mean `block`?"),
        ],
    ),
    ("shufle, tree: interleaved", &[("shufle", "unknown key `shufle`; did you mean `shuffle`?")]),
    (
        "block: 9é",
        &[("9é", "`block: 9é` is not a plain decimal number; use only the digits 0 to 9")],
    ),
    (
        "r#block: 3",
        &[("r#block", "unknown key `r#block`; the keys of `reduce_kernel!` are {keys}")],
    ),
    (
        "struct: 3",
        &[(
            "struct",
            "unknown key `struct`; only `sgemm_kernel!` declares a type; leave `struct` out",
        )],
    ),
    (
        "axis: 1, dtype: f16",
        &[
            (
                "axis",
                "unknown key `axis`; write `over: rows` to fold each row of a matrix, or `over: \
                 columns` to fold each column",
            ),
            ("dtype", "unknown key `dtype`; write `type`, as in `type: f16`"),
        ],
    ),
    // A name with an ending is nearer to its stem than to another key.
    ("grouped: 32", &[("grouped", "unknown key `grouped`; did you mean `group`?")]),
    ("blocked: 3", &[("blocked", "unknown key `blocked`; did you mean `block`?")]),
    ("block_size: 64", &[("block_size", "unknown key `block_size`; did you mean `block`?")]),
    (
        "block: 0x10",
        &[("0x10", "`block: 0x10` is hexadecimal; write one number in decimal, as in `16`")],
    ),
    ("block: - 8", &[("- 8", "`block: -8` is negative; use a positive number")]),
    ("block: 64 + 64", &[("64 + 64", "`block` takes a whole number, not `64+64`")]),
    (
        "op: -sum",
        &[(
            "-sum",
            "`op` takes one of `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, \
             `mean_var`, `logsumexp`, not `-sum`",
        )],
    ),
    (
        "blok: 96, block: 96",
        &[
            ("blok", "unknown key `blok`; did you mean `block`?"),
            (
                "96",
                "`block: 96` is not a power of two: the tree halves the block at every step; use \
                 64 or 128",
            ),
        ],
    ),
    (
        "shuffle: 1, tree: interleaved, unroll_last_warp",
        &[("1", "`shuffle` is a flag and takes no value; write `shuffle` alone, or leave it out")],
    ),
    (
        "op sum, blok: 3, block: 7, block: 8 items: 0",
        &[
            ("sum", "expected `:` after `op`, found `sum`"),
            ("blok", "unknown key `blok`; did you mean `block`?"),
            ("block", "`block` is given twice, first as `block: 7`; leave one out"),
            ("items", "expected `,` before `items`"),
            ("0", "`items: 0`: a thread folds at least one item; use 1 or more"),
        ],
    ),
];
