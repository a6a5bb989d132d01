//! The operator of a reduction, as data and arithmetic: a monoid with one or more parts.
//!
//! A thread keeps a variable for each part. `lift` converts an element to the accumulator type, and
//! `absorb` folds the values that a thread has read. `combine` combines the accumulators of two
//! threads, until one is left. `finish` computes the results from this one. Every operator,
//! including the user's, is a value of [`Fold`].

mod arg;
mod compensated;
mod logsumexp;
mod moments;
mod value;

use super::expressions::Expressions;
use crate::expr::FoldOp;
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Ty, Var};
use crate::lower::literal::zero;
use crate::plan::{ReducePlan, Types};
use crate::spec::Op;
use value::Operator;

/// Part of an accumulator, as in the plan, with its identity.
#[derive(Clone, Debug)]
pub(super) struct FoldPart {
    /// Name of the variable for the part.
    pub(super) name: &'static str,
    /// Name of an array of such parts.
    pub(super) plural: &'static str,
    /// Type of the part; it supports arithmetic.
    pub(super) elem: Elem,
    pub(super) identity: Expr,
}

/// Operator of a reduction.
pub(super) struct Fold {
    kind: FoldKind,
    types: Types,
    parts: Vec<FoldPart>,
    keeps_indices: bool,
    /// True if `argmax` and `argmin` also return the value.
    with_value: bool,
}

enum FoldKind {
    Value(Operator),
    /// Greatest or smallest value, and its index.
    Arg(arg::Arg),
    /// Sum, and the sum of its rounding errors.
    Compensated,
    /// Count, mean, and sum of squared deviations from the mean.
    Moments,
    /// Greatest value, and the sum of the exponentials of the differences from it.
    Logsumexp(logsumexp::Logsumexp),
}

/// Storage of a part in a thread: a variable, or an element of a register array if the thread has
/// several results.
#[derive(Clone)]
pub(super) enum Cell {
    Var(Var),
    At(Access),
}

impl Cell {
    pub(super) fn get(&self) -> Expr {
        match self {
            Cell::Var(var) => (*var).into(),
            Cell::At(access) => access.clone().load(),
        }
    }

    pub(super) fn set(&self, b: &mut KernelBuilder, value: impl Into<Expr>) {
        match self {
            Cell::Var(var) => b.assign(*var, value),
            Cell::At(access) => b.store(access.clone(), value),
        }
    }

    fn elem(&self) -> Elem {
        match self.get().ty() {
            Ty::Scalar(elem) => elem,
            _ => unreachable!("AccumulatorPart: a part is a number"),
        }
    }
}

/// Elements that a thread has read into registers, in ascending order of their indices.
pub(super) struct LoadedElements {
    /// Array of values, with extents `items` and `vector`, or `items` and the thread's columns.
    pub(super) values: BufferId,
    pub(super) items: Const,
    pub(super) vector: u32,
    /// Index of the column, if a thread has several.
    pub(super) column: Option<Expr>,
    /// Function that returns the index of the first element of an item.
    pub(super) first: Box<dyn Fn(Expr) -> Expr>,
    /// For a shard, the number of elements of the result in earlier shards.
    pub(super) before: Option<Expr>,
    /// Total number of elements, if some of the loaded elements may be past the end.
    pub(super) ragged: Option<Expr>,
}

impl LoadedElements {
    /// Index of an element in the whole result.
    pub(super) fn position(&self, index: Expr) -> Expr {
        self.before.iter().cloned().fold(index, |index, before| before + index)
    }

    /// Calls `f` with the value and the index of each element.
    fn each(&self, b: &mut KernelBuilder, mut f: impl FnMut(&mut KernelBuilder, Expr, Expr)) {
        let value = |index: Vec<Expr>| Access::new(self.values, index).load();
        b.unrolled("item", self.items, |b, item| {
            let first = (self.first)(item.into());
            if self.vector == 1 {
                let column = self.column.iter().cloned();
                return f(b, value([item.into()].into_iter().chain(column).collect()), first);
            }
            b.unrolled("j", self.vector as i32, |b, j| {
                f(b, value(vec![item.into(), j.into()]), first + j);
            });
        });
    }
}

impl Fold {
    /// Creates the operator of a plan, and declares its functions in the kernel.
    pub(super) fn new(b: &mut KernelBuilder, plan: &ReducePlan, expressions: &Expressions) -> Self {
        let types = plan.types();
        let kind = match plan.op() {
            None => FoldKind::Value(Operator::User(expressions.fold())),
            Some(Op::Sum) if plan.spec().compensated => FoldKind::Compensated,
            Some(Op::Sum) => FoldKind::Value(Operator::Fold(FoldOp::Sum)),
            Some(Op::Prod) => FoldKind::Value(Operator::Fold(FoldOp::Prod)),
            Some(op @ (Op::Max | Op::Min)) if plan.topk().is_some() => {
                FoldKind::Arg(arg::Arg::new(b, op == Op::Max, types, false))
            }
            Some(Op::Max) => FoldKind::Value(Operator::Fold(FoldOp::Max)),
            Some(Op::Min) => FoldKind::Value(Operator::Fold(FoldOp::Min)),
            Some(Op::Any) => FoldKind::Value(Operator::Any),
            Some(Op::All) => FoldKind::Value(Operator::All),
            Some(op @ (Op::Argmax | Op::Argmin)) => {
                FoldKind::Arg(arg::Arg::new(b, op == Op::Argmax, types, true))
            }
            Some(Op::MeanVar) => FoldKind::Moments,
            Some(Op::Logsumexp) => FoldKind::Logsumexp(logsumexp::Logsumexp::new(b)),
        };
        let identity = |(n, elem)| match &kind {
            FoldKind::Value(operator) => operator.identity(elem, expressions),
            FoldKind::Arg(arg) => arg.identity(n, elem),
            FoldKind::Compensated => compensated::identity(n, elem),
            FoldKind::Moments => zero(elem),
            FoldKind::Logsumexp(_) => logsumexp::identity(n, elem),
        };
        let parts = plan.parts().iter().enumerate().map(|(n, part)| FoldPart {
            name: part.name,
            plural: part.plural,
            elem: part.elem,
            identity: identity((n, part.elem)),
        });
        let (parts, keeps_indices) = (parts.collect(), plan.spec().keeps_indices());
        let with_value = plan.spec().with_value;
        Self { kind, types, parts, keeps_indices, with_value }
    }

    pub(super) fn parts(&self) -> &[FoldPart] {
        &self.parts
    }

    /// Returns true if the operator adds values.
    pub(super) fn is_sum(&self) -> bool {
        matches!(&self.kind, FoldKind::Value(Operator::Fold(FoldOp::Sum)) | FoldKind::Compensated)
    }

    /// Verb of a kernel's comments for folding in a value, for one thread and for several.
    pub(super) fn verbs(&self) -> [&'static str; 2] {
        if self.is_sum() { ["adds", "add"] } else { ["folds in", "fold in"] }
    }

    /// Comments on the identity of a kernel if it is -0 or infinite.
    pub(super) fn identity_comment(&self, b: &mut KernelBuilder) {
        let identity = match self.parts[0].identity {
            Expr::F32(value) => f64::from(value),
            Expr::F64(value) => value,
            _ => return,
        };
        if identity.to_bits() == (-0.0_f64).to_bits() {
            b.comment("Adding -0 changes no value; adding +0 would turn -0 into +0.");
        } else if identity.is_infinite() {
            b.comment(if identity > 0.0 { "+infinity" } else { "-infinity" });
        }
    }

    /// Value that replaces a missing element: the identity, or a value that the operator does not
    /// count.
    pub(super) fn missing(&self) -> Expr {
        match &self.kind {
            FoldKind::Moments => zero(self.types.acc),
            _ => self.parts[0].identity.clone(),
        }
    }

    /// Comment on the values that replace missing elements.
    pub(super) fn tail_text(&self) -> &'static str {
        match &self.kind {
            FoldKind::Moments => "Tail: elements past the end are zeros, which are not counted.",
            FoldKind::Logsumexp(_) => {
                "Tail: elements past the end count as -infinity. falling_exp_f32 clamps e^-inf to \
                 e^-87 (1.6e-38), too small to change the final sum, which is at least 1."
            }
            FoldKind::Value(_) | FoldKind::Arg(_) | FoldKind::Compensated => {
                "Tail: elements past the end count as the identity."
            }
        }
    }

    /// Type of the values in [`LoadedElements`].
    pub(super) fn held(&self) -> Elem {
        match &self.kind {
            FoldKind::Moments => self.types.acc,
            _ => self.parts[0].elem,
        }
    }

    /// Returns true for `any` and `all`, which compare elements with zero if there is no `map`.
    pub(super) fn is_truth(&self) -> bool {
        matches!(&self.kind, FoldKind::Value(Operator::Any | Operator::All))
    }

    /// Returns true if the operator would count the values that replace missing elements. A thread
    /// that may have such values must then check the indices.
    pub(super) fn counts(&self) -> bool {
        matches!(self.kind, FoldKind::Moments)
    }

    /// Returns true if combining two values reads each of the two only once.
    pub(super) fn reads_once(&self) -> bool {
        match &self.kind {
            FoldKind::Value(operator) => operator.reads_once(self.parts[0].elem),
            _ => false,
        }
    }

    /// Returns true if accumulators contain indices or counts of elements.
    pub(super) fn keeps_indices(&self) -> bool {
        self.keeps_indices
    }

    /// Initialises an accumulator. `first` is the index of the thread's first element, if it has
    /// one.
    pub(super) fn begin(&self, b: &mut KernelBuilder, kept: &[Cell], is_there: Expr, first: Expr) {
        if let FoldKind::Arg(arg) = &self.kind {
            arg.begin(b, &kept[1], is_there, first);
        }
    }

    /// Folds the values that a thread has loaded into its accumulator.
    pub(super) fn absorb(&self, b: &mut KernelBuilder, kept: &[Cell], held: &LoadedElements) {
        match &self.kind {
            FoldKind::Value(operator) => held.each(b, |b, value, _| {
                kept[0].set(b, operator.apply(kept[0].get(), value));
            }),
            FoldKind::Arg(arg) => held.each(b, |b, value, index| {
                arg.absorb(b, kept, value, held.position(index));
            }),
            FoldKind::Compensated => {
                held.each(b, |b, value, _| compensated::absorb(b, kept, value))
            }
            FoldKind::Moments => moments::absorb(b, kept, held, self.types),
            FoldKind::Logsumexp(fold) => fold.absorb(b, kept, held),
        }
    }

    /// Combines the accumulators of two threads, whose elements may be in any order.
    pub(super) fn combine(
        &self,
        b: &mut KernelBuilder,
        left: &[Expr],
        right: &[Expr],
    ) -> Vec<Expr> {
        match &self.kind {
            FoldKind::Value(operator) => vec![operator.apply(left[0].clone(), right[0].clone())],
            FoldKind::Arg(arg) => arg.combine(b, left, right),
            FoldKind::Compensated => compensated::combine(b, left, right),
            FoldKind::Moments => moments::combine(b, left, right, self.types),
            FoldKind::Logsumexp(fold) => fold.combine(b, left, right),
        }
    }

    /// Combines two values of an accumulator that has only one part.
    pub(super) fn of_two(&self, a: Expr, b: Expr) -> Expr {
        match &self.kind {
            FoldKind::Value(operator) => operator.apply(a, b),
            _ => unreachable!("plan: the classic passes fold values"),
        }
    }

    /// Returns true if an element beats another one, each with its index if the operator keeps
    /// indices.
    pub(super) fn wins(&self, element: &[Expr], best: &[Expr]) -> Expr {
        match &self.kind {
            FoldKind::Arg(arg) => arg.wins(element, best),
            _ => unreachable!("plan: `topk` has an operator that compares elements"),
        }
    }

    /// Combines another accumulator into the variables of this one.
    pub(super) fn combine_into(&self, b: &mut KernelBuilder, kept: &[Cell], right: &[Expr]) {
        let left: Vec<Expr> = kept.iter().map(Cell::get).collect();
        for (part, value) in kept.iter().zip(self.combine(b, &left, right)) {
            part.set(b, value);
        }
    }

    /// Values from which results are computed, given the final accumulator. They have the
    /// accumulator type, or are an index, or a boolean as 0 or 1.
    pub(super) fn values(&self, b: &mut KernelBuilder, all: &[Expr]) -> Vec<Expr> {
        match &self.kind {
            FoldKind::Value(operator) => vec![operator.value(all[0].clone(), self.types)],
            FoldKind::Arg(_) if self.with_value || all.len() == 1 => all.to_vec(),
            FoldKind::Arg(_) => vec![all[1].clone()],
            FoldKind::Compensated => vec![compensated::value(all)],
            FoldKind::Moments => moments::values(b, all, self.types),
            FoldKind::Logsumexp(fold) => vec![fold.value(b, all)],
        }
    }
}
