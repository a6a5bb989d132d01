//! Comments on FP32 emulation: the products of splits that are summed, and the promotion of
//! accumulators.

use crate::ir::KernelBuilder;
use crate::spec::Arith;
use crate::target::Format;

/// Emits a comment on the products of splits, if a value has several splits.
pub(crate) fn products_comment(b: &mut KernelBuilder, arith: Arith) {
    let format = arith.format().filter(|_| arith.splits() > 1);
    let Some(layout) = format.and_then(Format::layout) else { return };
    // A split is rounded to a significand with an implicit bit, so half of its unit in the last
    // place bounds the next split.
    let bits = layout.fraction + 1;
    let splits = arith.splits();
    let sum = |letter: &str| {
        let names: Vec<String> = (0..splits).map(|i| format!("{letter}{i}")).collect();
        names.join(" + ")
    };
    let (of_a, of_b) = (sum("A"), sum("B"));
    let pairs = (0..splits).flat_map(|i| (0..splits).map(move |j| [i, j]));
    let dropped = pairs.filter(|pair| !arith.products().contains(pair)).map(|[i, j]| i + j);
    let (count, largest) = (dropped.clone().count(), dropped.min());
    let all = number(splits * splits);
    let products = match largest {
        None => format!("All {all} products are added, smallest first."),
        Some(order) => {
            let summed = number(arith.products().len() as u32);
            let dropped = match count {
                1 => "the one dropped is".to_owned(),
                count => format!("each of the {} dropped is", number(count as u32)),
            };
            format!(
                "{} of the {all} products are added, smallest first; {dropped} at most about \
                 2^-{} of A0 B0.",
                capitalised(summed),
                order * bits,
            )
        }
    };
    b.comment(format!(
        "A = {of_a} and B = {of_b}, each term at most about 2^-{bits} of the one before. {products}"
    ));
}

/// Emits a comment on the promotion of accumulators that sum `part` of K.
pub(crate) fn promotion_comment(b: &mut KernelBuilder, part: &str) {
    b.comment(format!(
        "Promotion: tensor cores truncate their sums, so {part} is summed separately and then \
         added in IEEE f32."
    ));
}

/// Word for a number up to nine.
pub(crate) fn number(n: u32) -> &'static str {
    ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"][n as usize]
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
