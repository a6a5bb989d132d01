//! What a product reads beside its sums, the operands of its spec and C in place: how they are declared, and
//! when a thread reads which. What belongs to its columns may be read before all else, what belongs to a row
//! before the row's sums; the rest is read for each store, and then there is a [`Held`], which has all.

use super::problem::{Matrix, Problem, batched};
use crate::ir::{
    Access, BufferId, Elem, Expr, KernelBuilder, Operand, Requirement, Scalar, Source, Ty, joined,
};
use crate::plan::SgemmPlan;
use crate::spec::{Along, SgemmOperand, SgemmSpec, Slot};

/// What is read beside the sums, as far as a thread has read it: the spec's operands in their order, then C.
#[derive(Clone)]
pub(crate) struct Operands(Vec<Beside>);

#[derive(Clone)]
struct Beside {
    name: String,
    /// What a thread's own part of it is called.
    own: String,
    value: Value,
}

/// One of the operands, or C.
#[derive(Clone, Copy)]
pub(crate) struct Nth(usize);

/// Where the value for a sum is.
#[derive(Clone)]
enum Value {
    /// It is passed by value.
    Number(Scalar),
    /// In memory, an element for each column of C.
    Column(Line),
    /// In an array of registers, an element for each column of the thread.
    Kept(BufferId),
    /// In memory, an element for each row.
    Row(Line),
    /// It has been read, for all sums of a row.
    OfRow(Expr),
    /// In memory, an element for each element; where it is read under a condition only, 0 stands for it elsewhere.
    Element(Matrix, Option<Expr>),
}

/// What has an element for each column or row of C, of a batch the same for all products.
#[derive(Clone, Copy)]
pub(crate) struct Line(BufferId);

impl Line {
    pub(crate) fn at(&self, i: impl Into<Expr>) -> Access {
        Access::new(self.0, [i.into()])
    }
}

/// What the text calls a part of the n-th array, such as `own_bias`. Names that differ in underscores only,
/// of which C++ takes no two in a row, are told apart by their numbers.
fn called(what: &str, name: &str, nth: usize) -> String {
    match joined(name) {
        plain if plain == name => format!("{what}_{name}"),
        plain => format!("{what}_{nth}_{plain}"),
    }
}

impl Operands {
    /// Declares the parameters behind those of the product, and what a launch must satisfy for them.
    pub(crate) fn declare(b: &mut KernelBuilder, plan: &SgemmPlan, problem: &Problem) -> Self {
        let spec = plan.spec();
        let vectors = plan.epilogue_plan().is_some_and(|epilogue| epilogue.width() == 4);
        let declared = spec.operands().into_iter().map(|operand| {
            let (value, own) = match operand.slot {
                Slot::Number(nth) => {
                    let number = b.scalar(&operand.name, Ty::F32, Source::Argument(nth));
                    b.named_by_user();
                    (Value::Number(number), String::new())
                }
                Slot::Array(nth) => {
                    let value = array(b, (spec, problem), &operand, (nth, vectors));
                    (value, called("own", &operand.name, nth))
                }
            };
            Beside { name: operand.name.into_owned(), own, value }
        });
        let mut operands = Self(declared.collect());
        if spec.reads_c() {
            // For beta alone it is read only where that counts.
            let beta = match operands.named(SgemmSpec::BETA) {
                Some((_, Value::Number(beta))) if spec.scaled && !spec.names_c() => Some(*beta),
                _ => None,
            };
            let when = beta.map(|beta| Expr::from(beta).differs(Expr::F32(0.0)));
            let value = Value::Element(problem.c(), when);
            operands.0.push(Beside { name: C.into(), own: "own_c".into(), value });
        }
        operands
    }

    fn named(&self, name: &str) -> Option<(Nth, &Value)> {
        let nth = self.0.iter().position(|beside| beside.name == name)?;
        Some((Nth(nth), &self.0[nth].value))
    }

    /// The one that the spec names so; C is `c`.
    pub(crate) fn nth(&self, name: &str) -> Nth {
        let found = self.named(name);
        found.map_or_else(|| unreachable!("declare: `{name}` is there"), |(nth, _)| nth)
    }

    /// Reads what belongs to the columns of a thread, before it goes through its rows: into arrays of
    /// registers for `count` columns each, filled by `fill` with what lies in memory.
    pub(crate) fn columns(
        &self,
        b: &mut KernelBuilder,
        count: Expr,
        fill: impl FnOnce(&mut KernelBuilder, &[(Line, BufferId)]),
    ) -> Self {
        if !self.0.iter().any(|beside| matches!(beside.value, Value::Column(_))) {
            return self.clone();
        }
        b.comment("What the epilogue reads along the columns of this thread.");
        let mut filled = Vec::new();
        let mut read = self.clone();
        for beside in &mut read.0 {
            if let Value::Column(memory) = beside.value {
                let kept = b.registers(&beside.own, Elem::F32, [count.clone()], "");
                filled.push((memory, kept));
                beside.value = Value::Kept(kept);
            }
        }
        fill(b, &filled);
        read
    }

    /// Reads what belongs to a row of C.
    pub(crate) fn row(&self, b: &mut KernelBuilder, row: &Expr) -> Self {
        let mut read = self.clone();
        for beside in &mut read.0 {
            if let Value::Row(memory) = beside.value {
                let own = b.let_(&beside.own, memory.at(row.clone()).load());
                beside.value = Value::OfRow(own.into());
            }
        }
        read
    }

    /// Reads all that has not been read, for an element of C or for four of a row, the first of which belongs
    /// to column `n` of the thread.
    pub(crate) fn rest(
        &self,
        b: &mut KernelBuilder,
        (row, col): (&Expr, &Expr),
        n: Expr,
        vector: bool,
    ) -> Held {
        let mut read = |own: &str, from: Access, when: Option<&Expr>| {
            let (value, none) = match vector {
                true => (from.vector().load(), Expr::Pack(vec![Expr::F32(0.0); 4])),
                false => (from.load(), Expr::F32(0.0)),
            };
            let value = match when {
                Some(when) => when.clone().select(value, none),
                None => value,
            };
            let own = b.let_(own, value).into();
            if vector { Read::Lanes(own) } else { Read::Same(own) }
        };
        let each = self.0.iter().map(|Beside { own, value, .. }| match value {
            Value::Number(number) => Read::Same((*number).into()),
            Value::OfRow(value) => Read::Same(value.clone()),
            Value::Kept(kept) => Read::Kept(*kept),
            Value::Column(memory) => read(own, memory.at(col.clone()), None),
            Value::Row(memory) => Read::Same(memory.at(row.clone()).load()),
            Value::Element(memory, when) => {
                read(own, memory.at(row.clone(), col.clone()), when.as_ref())
            }
        });
        Held { each: each.collect(), n }
    }
}

/// What the language calls C.
pub(crate) const C: &str = "c";

/// All operands for an element of C or for adjacent ones.
pub(crate) struct Held {
    each: Vec<Read>,
    /// The first of their columns, among those of the thread.
    n: Expr,
}

enum Read {
    /// One value.
    Same(Expr),
    /// A vector with a lane for each of them.
    Lanes(Expr),
    /// An array of registers, with an element for each column of the thread.
    Kept(BufferId),
}

impl Held {
    /// The value for the j-th element.
    pub(crate) fn value(&self, Nth(nth): Nth, j: usize) -> Expr {
        match &self.each[nth] {
            Read::Same(value) => value.clone(),
            Read::Lanes(vector) => vector.clone().lane(j as u8),
            Read::Kept(kept) => Access::new(*kept, [self.n.clone() + j as i32]).load(),
        }
    }
}

/// Declares an array, and what a launch must satisfy for it.
fn array(
    b: &mut KernelBuilder,
    (spec, problem): (&SgemmSpec, &Problem),
    operand: &SgemmOperand,
    (nth, vectors): (usize, bool),
) -> Value {
    let (name, of) = (&*operand.name, Operand::Input(nth));
    let memory = b.global(name, Elem::F32, of);
    b.named_by_user();
    let (m, n) = (Expr::from(problem.m), Expr::from(problem.n));
    let value = match operand.along {
        Along::Nothing => unreachable!("SgemmSpec::operands: what has no axis is no array"),
        Along::N => {
            b.shape(memory, [n], [1.into()]);
            Value::Column(Line(memory))
        }
        // It is never read by vectors.
        Along::M => {
            b.shape(memory, [m], [1.into()]);
            return Value::Row(Line(memory));
        }
        Along::Mn => {
            let outer = problem.batch.map(|count| {
                let source = Source::Stride { operand: of, dim: 0 };
                let apart = b.scalar(&called("stride", name, nth), Ty::U64, source);
                b.named_by_user();
                if vectors {
                    b.require(Requirement::Multiple { scalar: apart, of: 4 });
                }
                (count, apart)
            });
            let stride = match spec.pitched {
                true => {
                    let source = Source::Stride { operand: of, dim: usize::from(outer.is_some()) };
                    let stride = b.scalar(&called("ld", name, nth), Ty::I32, source);
                    b.named_by_user();
                    stride
                }
                false => problem.n,
            };
            batched(b, memory, outer, [m, n], [stride.into(), 1.into()]);
            if vectors && spec.pitched {
                b.require(Requirement::Multiple { scalar: stride, of: 4 });
            }
            Value::Element(Matrix { buffer: memory, stride, batch: problem.product }, None)
        }
    };
    if vectors {
        b.require(Requirement::Aligned { operand: of, bytes: 16 });
    }
    value
}
