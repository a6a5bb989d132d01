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
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Ty, Var};
use crate::plan::{ReducePlan, Types};
use crate::spec::Op;
use value::Operator;

/// A part of what is kept, as the plan has it, with its identity.
#[derive(Clone, Debug)]
pub(super) struct Part {
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
    kind: Kind,
    types: Types,
    parts: Vec<Part>,
    keeps_indices: bool,
}

enum Kind {
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
pub(super) struct Held {
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

impl Held {
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
            None => Kind::Value(Operator::User(expressions.fold())),
            Some(Op::Sum) if plan.spec().compensated => Kind::Compensated,
            Some(Op::Sum) => Kind::Value(Operator::Sum),
            Some(Op::Prod) => Kind::Value(Operator::Prod),
            Some(Op::Max) => Kind::Value(Operator::Max),
            Some(Op::Min) => Kind::Value(Operator::Min),
            Some(Op::Any) => Kind::Value(Operator::Any),
            Some(Op::All) => Kind::Value(Operator::All),
            Some(op @ (Op::Argmax | Op::Argmin)) => {
                Kind::Arg(arg::Arg::new(b, op == Op::Argmax, types))
            }
            Some(Op::MeanVar) => Kind::Moments,
            Some(Op::Logsumexp) => Kind::Logsumexp(logsumexp::Logsumexp::new(b)),
        };
        let identity = |(n, elem)| match &kind {
            Kind::Value(operator) => operator.identity(elem, expressions),
            Kind::Arg(arg) => arg.identity(n, elem),
            Kind::Compensated => compensated::identity(n, elem),
            Kind::Moments => zero(elem),
            Kind::Logsumexp(_) => logsumexp::identity(n, elem),
        };
        let parts = plan.parts().iter().enumerate().map(|(n, part)| Part {
            name: part.name,
            plural: part.plural,
            elem: part.elem,
            identity: identity((n, part.elem)),
        });
        let (parts, keeps_indices) = (parts.collect(), plan.spec().keeps_indices());
        Self { kind, types, parts, keeps_indices }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What a thread holds in place of an element that is missing: the identity, or what is not counted.
    pub(super) fn missing(&self) -> Expr {
        match &self.kind {
            Kind::Moments => zero(self.types.acc),
            _ => self.parts[0].identity.clone(),
        }
    }

    /// The type of a value that is held.
    pub(super) fn held(&self) -> Elem {
        match &self.kind {
            Kind::Moments => self.types.acc,
            _ => self.parts[0].elem,
        }
    }

    /// Whether an element is asked whether it is zero, where no expression makes a truth value of it.
    pub(super) fn is_truth(&self) -> bool {
        matches!(&self.kind, Kind::Value(Operator::Any | Operator::All))
    }

    /// Whether what stands for missing elements would be counted: then a thread that may hold some asks
    /// which they are.
    pub(super) fn counts(&self) -> bool {
        matches!(self.kind, Kind::Moments)
    }

    /// Whether each value stands once in what is made of two.
    pub(super) fn reads_once(&self) -> bool {
        match &self.kind {
            Kind::Value(operator) => operator.reads_once(self.parts[0].elem),
            _ => false,
        }
    }

    /// Whether it keeps indices or counts of elements.
    pub(super) fn keeps_indices(&self) -> bool {
        self.keeps_indices
    }

    /// Prepares what a thread keeps for values of which the first, if it is there, is the element of this index.
    pub(super) fn begin(&self, b: &mut KernelBuilder, kept: &[Cell], is_there: Expr, first: Expr) {
        if let Kind::Arg(arg) = &self.kind {
            arg.begin(b, &kept[1], is_there, first);
        }
    }

    /// Folds the values that a thread holds into what it keeps.
    pub(super) fn absorb(&self, b: &mut KernelBuilder, kept: &[Cell], held: &Held) {
        match &self.kind {
            Kind::Value(operator) => held.each(b, |b, value, _| {
                kept[0].set(b, operator.apply(kept[0].get(), value));
            }),
            Kind::Arg(arg) => held.each(b, |b, value, index| {
                arg.absorb(b, kept, value, held.position(index));
            }),
            Kind::Compensated => held.each(b, |b, value, _| compensated::absorb(b, kept, value)),
            Kind::Moments => moments::absorb(b, kept, held, self.types),
            Kind::Logsumexp(fold) => fold.absorb(b, kept, held),
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
            Kind::Value(operator) => vec![operator.apply(left[0].clone(), right[0].clone())],
            Kind::Arg(arg) => arg.combine(b, left, right),
            Kind::Compensated => compensated::combine(b, left, right),
            Kind::Moments => moments::combine(b, left, right, self.types),
            Kind::Logsumexp(fold) => fold.combine(b, left, right),
        }
    }

    /// What is made of two values, where one is all that is kept.
    pub(super) fn of_two(&self, a: Expr, b: Expr) -> Expr {
        match &self.kind {
            Kind::Value(operator) => operator.apply(a, b),
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
            Kind::Value(operator) => vec![operator.value(all[0].clone(), self.types)],
            Kind::Arg(_) => vec![all[1].clone()],
            Kind::Compensated => vec![compensated::value(all)],
            Kind::Moments => moments::values(b, all, self.types),
            Kind::Logsumexp(fold) => vec![fold.value(b, all)],
        }
    }
}

/// The zero of a type that is computed with.
pub(super) fn zero(elem: Elem) -> Expr {
    number(elem, 0)
}

/// A whole number as a literal of a type that is computed with.
pub(super) fn number(elem: Elem, value: u32) -> Expr {
    match elem {
        Elem::F32 => Expr::F32(value as f32),
        Elem::F64 => Expr::F64(value.into()),
        Elem::I32 => Expr::I32(value as i32),
        Elem::U32 => Expr::U32(value),
        Elem::I64 => Expr::I64(value.into()),
        Elem::U64 => Expr::U64(value.into()),
        other => unreachable!("nothing is computed in {other}"),
    }
}

/// The greatest value of a type of indices: no element has it.
pub(super) fn nowhere(index: Elem) -> Expr {
    if index == Elem::U64 { Expr::U64(u64::MAX) } else { Expr::U32(u32::MAX) }
}
