//! What a reduction makes of its elements, as data and arithmetic: a monoid on one or more parts.
//!
//! A thread keeps a variable for each part. An element becomes a value of the type that is folded in
//! (`lift`); a thread folds the values that it has read (`absorb`), and what two of them keep is combined
//! (`combine`) until one has all, of which the results are made (`finish`). Every operator, and the
//! user's, is a value of [`Fold`].

mod arg;
mod compensated;
mod logsumexp;
mod moments;
mod value;

use super::expressions::Expressions;
use super::literal::zero;
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Ty, Var};
use crate::plan::{ReducePlan, Types};
use crate::spec::Op;
use value::Operator;

/// A part of what is kept, as the plan has it, with its identity.
#[derive(Clone, Debug)]
pub(super) struct FoldPart {
    /// The variable that holds it.
    pub(super) name: &'static str,
    /// An array of them.
    pub(super) plural: &'static str,
    /// Its type: one that is computed with.
    pub(super) elem: Elem,
    /// The value that changes no other.
    pub(super) identity: Expr,
}

/// What is made of the elements.
pub(super) struct Fold {
    kind: FoldKind,
    types: Types,
    parts: Vec<FoldPart>,
    keeps_indices: bool,
}

enum FoldKind {
    /// One value.
    Value(Operator),
    /// The greatest value, or the smallest, and its index.
    Arg(arg::Arg),
    /// A sum, and the sum of its rounding errors.
    Compensated,
    /// How many, their mean, and the sum of the squares of what they differ from it.
    Moments,
    /// The greatest value, and the sum of the exponentials of what the others differ from it.
    Logsumexp(logsumexp::Logsumexp),
}

/// Where a thread keeps a part: in a variable or, of several results, in an array of registers.
#[derive(Clone)]
pub(super) enum Cell {
    Var(Var),
    At(Access),
}

impl Cell {
    /// What is kept.
    pub(super) fn get(&self) -> Expr {
        match self {
            Cell::Var(var) => (*var).into(),
            Cell::At(access) => access.clone().load(),
        }
    }

    /// Keeps another value.
    pub(super) fn set(&self, b: &mut KernelBuilder, value: impl Into<Expr>) {
        match self {
            Cell::Var(var) => b.assign(*var, value),
            Cell::At(access) => b.store(access.clone(), value),
        }
    }

    fn elem(&self) -> Elem {
        match self.get().ty() {
            Ty::Scalar(elem) => elem,
            _ => unreachable!("a part is a number"),
        }
    }
}

/// Elements that a thread has read, in registers, in ascending order of their indices.
pub(super) struct LoadedElements {
    /// The values: an array of `items` times `vector`, or times the columns of the thread.
    pub(super) values: BufferId,
    pub(super) items: Const,
    /// Elements of an item.
    pub(super) vector: u32,
    /// Which of its columns it is, where a thread has several.
    pub(super) column: Option<Expr>,
    /// The index of the first one of each item, in terms of the item.
    pub(super) first: Box<dyn Fn(Expr) -> Expr>,
    /// How many elements of the result lie before those that are here, of a shard.
    pub(super) before: Option<Expr>,
    /// How many elements there are in all, where some that are held may be past them.
    pub(super) ragged: Option<Expr>,
}

impl LoadedElements {
    /// The index of an element among all of its result.
    fn position(&self, index: Expr) -> Expr {
        self.before.iter().cloned().fold(index, |index, before| before + index)
    }

    /// Does something with each of them, its value and its index.
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
    /// The fold of a plan; its functions are declared in the kernel.
    pub(super) fn new(b: &mut KernelBuilder, plan: &ReducePlan, expressions: &Expressions) -> Self {
        let types = plan.types();
        let kind = match plan.op() {
            None => FoldKind::Value(Operator::User(expressions.fold())),
            Some(Op::Sum) if plan.spec().compensated => FoldKind::Compensated,
            Some(Op::Sum) => FoldKind::Value(Operator::Sum),
            Some(Op::Prod) => FoldKind::Value(Operator::Prod),
            Some(Op::Max) => FoldKind::Value(Operator::Max),
            Some(Op::Min) => FoldKind::Value(Operator::Min),
            Some(Op::Any) => FoldKind::Value(Operator::Any),
            Some(Op::All) => FoldKind::Value(Operator::All),
            Some(op @ (Op::Argmax | Op::Argmin)) => {
                FoldKind::Arg(arg::Arg::new(b, op == Op::Argmax, types))
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
        Self { kind, types, parts, keeps_indices }
    }

    pub(super) fn parts(&self) -> &[FoldPart] {
        &self.parts
    }

    /// What a thread holds in place of an element that is missing: the identity, or what is not counted.
    pub(super) fn missing(&self) -> Expr {
        match &self.kind {
            FoldKind::Moments => zero(self.types.acc),
            _ => self.parts[0].identity.clone(),
        }
    }

    /// The type of a value that is held.
    pub(super) fn held(&self) -> Elem {
        match &self.kind {
            FoldKind::Moments => self.types.acc,
            _ => self.parts[0].elem,
        }
    }

    /// Whether an element is asked whether it is zero, where no expression makes a truth value of it.
    pub(super) fn is_truth(&self) -> bool {
        matches!(&self.kind, FoldKind::Value(Operator::Any | Operator::All))
    }

    /// Whether what stands for missing elements would be counted: then a thread that may hold some asks
    /// which they are.
    pub(super) fn counts(&self) -> bool {
        matches!(self.kind, FoldKind::Moments)
    }

    /// Whether each value stands once in what is made of two.
    pub(super) fn reads_once(&self) -> bool {
        match &self.kind {
            FoldKind::Value(operator) => operator.reads_once(self.parts[0].elem),
            _ => false,
        }
    }

    /// Whether it keeps indices or counts of elements.
    pub(super) fn keeps_indices(&self) -> bool {
        self.keeps_indices
    }

    /// Prepares what a thread keeps for values of which the first, if it is there, is the element of this index.
    pub(super) fn begin(&self, b: &mut KernelBuilder, kept: &[Cell], is_there: Expr, first: Expr) {
        if let FoldKind::Arg(arg) = &self.kind {
            arg.begin(b, &kept[1], is_there, first);
        }
    }

    /// Folds the values that a thread holds into what it keeps.
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

    /// What two threads keep, as one. Neither has the elements that come first.
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

    /// What is made of two values, where one is all that is kept.
    pub(super) fn of_two(&self, a: Expr, b: Expr) -> Expr {
        match &self.kind {
            FoldKind::Value(operator) => operator.apply(a, b),
            _ => unreachable!("plan: the classic passes fold values"),
        }
    }

    /// Combines what another keeps into variables.
    pub(super) fn combine_into(&self, b: &mut KernelBuilder, kept: &[Cell], right: &[Expr]) {
        let left: Vec<Expr> = kept.iter().map(Cell::get).collect();
        for (part, value) in kept.iter().zip(self.combine(b, &left, right)) {
            part.set(b, value);
        }
    }

    /// The values that results are made of, of everything that was folded: of the type that was folded
    /// in, an index, or a truth value as 0 or 1.
    pub(super) fn values(&self, b: &mut KernelBuilder, all: &[Expr]) -> Vec<Expr> {
        match &self.kind {
            FoldKind::Value(operator) => vec![operator.value(all[0].clone(), self.types)],
            FoldKind::Arg(_) => vec![all[1].clone()],
            FoldKind::Compensated => vec![compensated::value(all)],
            FoldKind::Moments => moments::values(b, all, self.types),
            FoldKind::Logsumexp(fold) => vec![fold.value(b, all)],
        }
    }
}
