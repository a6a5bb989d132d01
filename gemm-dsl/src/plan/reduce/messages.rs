//! Messages for invalid reduction specs.

use crate::error::SpecError;
use crate::expr::NodeSpan;
use crate::ir::Elem;
use crate::plan::MAX_BLOCK_ELEMENTS;
use crate::spec::{Over, Tree};
use crate::target::arch::{BLOCK_THREADS, WARP};

pub(crate) fn block_zero() -> SpecError {
    SpecError::at_value(
        &["block"],
        format!(
            "`block: 0`: a block needs threads; use a power of two from {WARP} to {BLOCK_THREADS}, \
             such as 256"
        ),
    )
}

pub(crate) fn block_small(block: u32) -> SpecError {
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is less than one warp of {WARP} threads; use a power of two from \
             {WARP} to {BLOCK_THREADS}"
        ),
    )
}

pub(crate) fn block_large(block: u32) -> SpecError {
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is more than the {BLOCK_THREADS} threads a block may have; use \
             a power of two from {WARP} to {BLOCK_THREADS}"
        ),
    )
}

pub(crate) fn block_not_power_of_two(block: u32) -> SpecError {
    let below = 1u32 << block.max(1).ilog2();
    let above = u64::from(below) * 2;
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is not a power of two: the tree halves the block at every step; \
             use {below} or {above}"
        ),
    )
}

pub(crate) fn too_many_elements(block: u32, items: u32, vector: u32) -> SpecError {
    let width = if vector == 1 { "" } else { " · 4" };
    let elements = u128::from(block) * u128::from(items) * u128::from(vector);
    let most = MAX_BLOCK_ELEMENTS / (u128::from(block.max(1)) * u128::from(vector));
    SpecError::at_value(
        &["items", "block", "float4"],
        format!(
            "a block of {block} · {items} items{width} = {elements} elements is more than \
             2^30 = {MAX_BLOCK_ELEMENTS}; use `items: {most}` or less"
        ),
    )
}

pub(crate) fn last_warp_without_tree(block: u32) -> SpecError {
    SpecError::at_value(
        &["unroll_last_warp", "block"],
        format!(
            "`unroll_last_warp` starts when the last warp folds 64 values, and `block: {block}` \
             has only {block}; use `block: 64` or more, or leave `unroll_last_warp` out"
        ),
    )
}

pub(crate) fn last_warp_and_shuffle() -> SpecError {
    SpecError::at_value(
        &["unroll_last_warp", "shuffle"],
        "`unroll_last_warp` and `shuffle` cannot be combined: both replace the last steps of the \
         tree; leave one of them out"
            .into(),
    )
}

pub(crate) fn last_warp_of_divergent_tree() -> SpecError {
    SpecError::at_value(
        &["unroll_last_warp", "tree"],
        "`unroll_last_warp` needs the last 32 active threads in one warp, and \
         `tree: interleaved_divergent` spreads them over all warps; use `tree: interleaved` or \
         `tree: sequential`"
            .into(),
    )
}

pub(crate) fn too_many_held(items: u32, vector: u32, most: u64) -> SpecError {
    let width = if vector == 1 { String::new() } else { format!(" · {vector}") };
    let held = u64::from(items) * u64::from(vector);
    SpecError::at_value(
        &["items", "float4", "coarsen"],
        format!(
            "{items} items{width} = {held} elements are more than the {most} that a thread holds \
             in its registers at once; use {} or less",
            match most / u64::from(vector) {
                0 => format!("`coarsen: {most}`"),
                items => format!("`items: {items}`"),
            }
        ),
    )
}

pub(crate) fn tree_without_block(tree: Tree) -> SpecError {
    SpecError::at_value(
        &["tree", "over"],
        format!(
            "`tree: {tree}` applies only if a whole block folds a result: groups of up to a warp \
             use shuffles, and columns have a tree of their own; leave `tree` out"
        ),
    )
}

pub(crate) fn group_of_row(group: u32, block: u32) -> SpecError {
    SpecError::at_value(
        &["group", "block"],
        format!(
            "`group: {group}`: a group that combines by shuffles has 1, 2, 4, 8, 16 or {WARP} \
             threads; use one of these, or the whole block of {block}"
        ),
    )
}

pub(crate) fn group_of_column(group: u32, block: u32) -> SpecError {
    SpecError::at_value(
        &["group", "block"],
        format!(
            "`group: {group}` threads per column: use a power of two, at most the {block} threads \
             of the block"
        ),
    )
}

pub(crate) fn too_many_blocks(blocks: u32, most: u32) -> SpecError {
    SpecError::at_value(
        &["blocks"],
        format!("`blocks: {blocks}`: a grid has at most {most} blocks along y; use {most} or less"),
    )
}

/// `key` is the key that makes several blocks fold one result.
pub(crate) fn blocks_of_groups(key: &'static str, group: u32, block: u32) -> SpecError {
    SpecError::at_value(
        &[key, "group"],
        format!(
            "`{key}` makes several blocks fold a row, but here {group} threads fold each row; use \
             `group: {block}`, or leave `{key}` out"
        ),
    )
}

pub(crate) fn run_and_blocks(run: u32) -> SpecError {
    SpecError::at_value(
        &["run", "blocks"],
        format!(
            "`run` and `blocks` cannot be combined: each run of {run} elements has a block of its \
             own, and `blocks` sets the number of blocks; leave one of them out"
        ),
    )
}

/// The parts of `round` are the threads, the items per thread and the elements per item that a
/// block reads at once.
pub(crate) fn run_of_rounds(run: u32, round: (u32, u32, u32)) -> SpecError {
    let (threads, items, vector) = round;
    let width = if vector == 1 { String::new() } else { format!(" · {vector}") };
    let round = u64::from(threads) * u64::from(items) * u64::from(vector);
    let run = u64::from(run);
    let below = run / round * round;
    let better = match (below, below + round) {
        (0, above) => format!("`run: {above}`"),
        (below, above) if u128::from(above) > MAX_BLOCK_ELEMENTS => format!("`run: {below}`"),
        (below, above) => format!("`run: {below}` or `run: {above}`"),
    };
    SpecError::at_value(
        &["run", "items", "block", "group", "float4"],
        format!(
            "`run: {run}`: a block reads {threads} threads · {items} items{width} = {round} \
             elements of a result at once, and a run must be a multiple of {round}: {run} mod \
             {round} = {}; use {better}",
            run % round,
        ),
    )
}

pub(crate) fn run_long(run: u32, round: u64) -> SpecError {
    let most = MAX_BLOCK_ELEMENTS as u64 / round * round;
    SpecError::at_value(
        &["run"],
        format!(
            "`run: {run}` is more than the 2^30 = {MAX_BLOCK_ELEMENTS} elements that a block may \
             fold; use `run: {most}` or less"
        ),
    )
}

/// `round` is the number of elements that a block reads at once.
pub(crate) fn shards_without_runs(over: Over, round: u64) -> SpecError {
    let remedy = match over {
        Over::Segments => {
            "but the length of a segment is unknown at launch; cut the array between segments \
             instead"
                .to_owned()
        }
        _ => {
            let example = (1 << 20) / round.max(1) * round;
            format!(
                "but without `run` each block folds elements from the whole array; add a `run`, a \
                 multiple of the {round} elements that a block reads at once, such as \
                 `run: {example}`"
            )
        }
    };
    SpecError::at_key(
        &["run", "over"],
        format!("shards give the same bits only if each shard has whole runs, {remedy}"),
    )
}

/// `beyond` is a key that `launch: tiles` does not support.
pub(crate) fn beyond_tiles(beyond: &'static str) -> SpecError {
    SpecError::at_value(
        &["launch", beyond],
        format!(
            "`launch: tiles` folds a whole array of `f32` by `sum`, `prod`, `max` or `min`, and \
             chooses the numbers of launches and blocks itself, so it cannot be combined with \
             `{beyond}`; leave one of the two out"
        ),
    )
}

pub(crate) fn fold_without_identity() -> SpecError {
    // An identity that could not be parsed counts as given.
    SpecError::at_key(
        &["fold", "identity"],
        "`fold` needs its identity, the value that replaces missing elements; add it, such as \
         `identity: 0.0`"
            .into(),
    )
}

pub(crate) fn acc_narrow(element: Elem, acc: Elem) -> SpecError {
    // No function converts floats to integers.
    let map = match element.is_float() && !acc.is_float() {
        true => "add a `map` that returns integers, such as `|x| if x > 0.0 { 1 } else { 0 }`",
        false => "convert the elements with a `map`",
    };
    SpecError::at_value(
        &["acc", "type"],
        format!("`acc: {acc}` cannot hold every `{element}`; {map}, or use {}", widths(element)),
    )
}

/// Accumulator types that represent every element.
pub(in crate::plan) fn widths(element: Elem) -> &'static str {
    match element {
        Elem::F64 => "`acc: f64`",
        Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2 => {
            "`acc: f32` or `acc: f64`"
        }
        Elem::I8 | Elem::I16 | Elem::I32 => "`acc: i32`, `acc: i64`, `acc: f32` or `acc: f64`",
        Elem::U8 | Elem::U16 => {
            "`acc: i32`, `acc: u32`, `acc: i64`, `acc: u64`, `acc: f32` or `acc: f64`"
        }
        Elem::U32 => "`acc: u32`, `acc: i64`, `acc: u64`, `acc: f32` or `acc: f64`",
        Elem::I64 => "`acc: i64`, `acc: f32` or `acc: f64`",
        Elem::U64 => "`acc: u64`, `acc: f32` or `acc: f64`",
    }
}

pub(crate) fn no_float(what: &'static str, acc: Elem, remedy: &str) -> SpecError {
    SpecError::at_value(
        &[what, "acc", "type"],
        format!(
            "`{what}` computes with floating-point numbers, and these elements are folded in \
             `{acc}`; add {remedy}"
        ),
    )
}

pub(crate) fn logsumexp_of_f64(element: Elem) -> SpecError {
    let remedy = match element {
        Elem::F64 => "use `acc: f32` with a `map` such as `|x| f32(x)`",
        _ => "use `acc: f32`",
    };
    SpecError::at_value(
        &["op", "acc", "type"],
        format!(
            "`op: logsumexp` folds in `f32`, the type in which it computes exponentials; {remedy}"
        ),
    )
}

/// Reports an identity that is out of range for its type.
pub(crate) fn identity_range(acc: Elem, value: i128, least: i128, most: i128) -> SpecError {
    SpecError::at_value(
        &["identity"],
        format!(
            "the identity {value} is out of range for `{acc}`, which holds {least} to {most}; use \
             a number in this range"
        ),
    )
}

/// Reports an array whose name another argument already has.
pub(crate) fn taken_name(at: NodeSpan, name: &str, of: &str) -> SpecError {
    SpecError::at_tokens(
        "map",
        at,
        format!(
            "`{name}` is the name of {of}; use another name for the array, such as `{name}_in`"
        ),
    )
}

/// Reports a number of `finish` whose name another argument already has.
pub(crate) fn taken_number(at: NodeSpan, name: &str, of: &str) -> SpecError {
    let message = format!(
        "`{name}` is the name of {of}; use another name for the number, such as `{name}_of`"
    );
    SpecError::at_tokens("finish", at, message)
}

/// Reports the first number beyond the maximum.
pub(crate) fn many_numbers(
    key: &'static str,
    at: NodeSpan,
    name: &str,
    has: usize,
    most: usize,
) -> SpecError {
    let message = format!(
        "`{name}` is number {} of {has}, and a launch passes at most {most} numbers; put constants \
         into the expression, or several numbers into an array",
        most + 1
    );
    SpecError::at_tokens(key, at, message)
}

/// Reports a number that `map` and `finish` state with different types.
pub(crate) fn number_of_two_types(at: NodeSpan, name: &str, map: Elem, finish: Elem) -> SpecError {
    let message = format!(
        "`{name}` is an `{map}` in `map` and an `{finish}` here, and a launch passes one number \
         for both; state the same type, or use another name"
    );
    SpecError::at_tokens("finish", at, message)
}

pub(crate) fn wrong_result(acc: Elem, result: Elem, finish: bool) -> SpecError {
    let results = match acc {
        Elem::F32 => "`f32`, `f16` and `bf16`".to_owned(),
        Elem::F64 => "`f64` and `f32`".to_owned(),
        _ if finish => format!("`{acc}`, `f32` and `f64`"),
        _ => format!("`{acc}`, and with a `finish` also `f32` and `f64`"),
    };
    SpecError::at_value(
        &["result", "acc", "type"],
        format!("`result: {result}`: a fold in `{acc}` can return {results}; use one of these"),
    )
}

pub(crate) fn expression_of_u64(key: &'static str) -> SpecError {
    SpecError::at_value(
        &[key, "type", "acc"],
        format!(
            "`{key}` computes with signed 64-bit integers, which do not hold every `u64`; use \
             `i64`, or leave `{key}` out"
        ),
    )
}

pub(crate) fn finish_values(has: usize, least: usize, example: &str) -> SpecError {
    let folded = if least == 2 { "the mean, the variance" } else { "the folded value" };
    let s = if has == 1 { "" } else { "s" };
    SpecError::at_value(
        &["finish"],
        format!(
            "`finish` has {has} parameter{s}, but takes {folded} and optionally the number of \
             elements, as in `finish: {example}`"
        ),
    )
}

pub(crate) fn too_much_shared(
    block: u32,
    width: u64,
    kept: u64,
    word: u64,
    most: u64,
) -> SpecError {
    let columns = if width == 1 { String::new() } else { format!(" · {width} columns") };
    let ticket =
        if word == 0 { String::new() } else { format!(" + {word} for the block's ticket") };
    SpecError::at_value(
        &["block", "coarsen", "float4"],
        format!(
            "a block needs {block} threads{columns} · {kept} bytes{ticket} = {} bytes of shared \
             memory, and has at most {most}; use a smaller block, or fewer columns per thread",
            u64::from(block) * width * kept + word
        ),
    )
}

pub(crate) fn too_many_kept(k: u32, most: u32) -> SpecError {
    SpecError::at_value(
        &["topk"],
        format!(
            "`topk: {k}`: a warp keeps at most {most} elements in its registers; use {most} or \
             less, or sort the elements"
        ),
    )
}

pub(crate) fn topk_over(over: Over) -> SpecError {
    SpecError::at_value(
        &["over", "topk"],
        format!(
            "`topk` selects from arrays and rows, not under `over: {over}`; use `over: rows` on a \
             transposed copy, or leave `topk` out"
        ),
    )
}

pub(crate) fn topk_of_group(group: u32, block: u32) -> SpecError {
    SpecError::at_value(
        &["group", "block", "topk"],
        format!(
            "`group: {group}`: under `topk`, whole warps select together; use `group: {WARP}`, or \
             the whole block of {block}"
        ),
    )
}

pub(crate) fn beside_topk(key: &'static str, entry: &str, because: &str) -> SpecError {
    SpecError::at_key(
        &[key, "topk"],
        format!("`{entry}` and `topk` cannot be combined: {because}; leave one of them out"),
    )
}
