//! What is kept of the elements that were folded: by a thread in registers, by a block in shared memory, and
//! by blocks in partials.

use super::Types;
use crate::ir::Elem;
use crate::spec::{Op, ReduceSpec};

/// A part of what is kept of some elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulatorPart {
    /// What it is called.
    pub name: &'static str,
    /// What an array of them is called.
    pub plural: &'static str,
    /// Its type: one that is computed with.
    pub elem: Elem,
}

/// The parts of a reduction, whose types are these.
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

/// Sums and products of integers wrap, which only those without a sign do.
fn wrapping(acc: Elem) -> Elem {
    match acc {
        Elem::I32 => Elem::U32,
        Elem::I64 => Elem::U64,
        other => other,
    }
}
