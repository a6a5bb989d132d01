//! Parts of an accumulator. A thread keeps them in registers, a block in shared memory, and several
//! blocks in partial results.

use super::Types;
use crate::ir::Elem;
use crate::spec::{Op, ReduceSpec};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulatorPart {
    pub name: &'static str,
    /// Name of an array of such parts.
    pub plural: &'static str,
    /// Type of the part; it must support arithmetic.
    pub elem: Elem,
}

/// Returns the accumulator parts of a reduction with these types.
pub(super) fn parts(spec: &ReduceSpec, types: Types) -> Vec<AccumulatorPart> {
    let Types { acc, index, .. } = types;
    let part = |name, plural, elem| AccumulatorPart { name, plural, elem };
    let value = |name, elem| vec![part(name, "x", elem)];
    match spec.operator() {
        None => value("folded", acc),
        Some(Op::Sum) if spec.compensated => {
            vec![part("sum", "sums", acc), part("error", "errors", acc)]
        }
        Some(Op::Sum) => value("sum", wrapping(acc)),
        Some(Op::Prod) => value("product", wrapping(acc)),
        Some(Op::Max | Op::Min) if spec.topk.is_some() => vec![part("best", "values", acc)],
        Some(Op::Max) => value("largest", acc),
        Some(Op::Min) => value("smallest", acc),
        Some(Op::Any) => value("any", Elem::U32),
        Some(Op::All) => value("all", Elem::U32),
        Some(Op::Argmax | Op::Argmin) => {
            vec![part("best", "values", acc), part("best_at", "indices", index)]
        }
        Some(Op::MeanVar) => vec![
            part("count", "counts", index),
            part("mean", "means", acc),
            part("squares", "squared", acc),
        ],
        Some(Op::Logsumexp) => vec![part("top", "tops", acc), part("sum", "sums", acc)],
    }
}

/// Returns the unsigned type of the same size, because sums and products of integers must wrap.
fn wrapping(acc: Elem) -> Elem {
    match acc {
        Elem::I32 => Elem::U32,
        Elem::I64 => Elem::U64,
        other => other,
    }
}
