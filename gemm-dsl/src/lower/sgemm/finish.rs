//! What becomes of a sum before it is stored: it is scaled as BLAS says, then the user's expression is
//! applied. Both read operands beside the sum; where those lie is known here alone.

use super::{Matrix, Problem, batched};
use crate::ir::{
    Access, BinaryOp, BufferId, Cmp, Elem, Expr, Extent, FunctionId, KernelBuilder, Operand,
    Requirement, Scalar, Source, Ty, Var,
};
use crate::plan::{SgemmPlan, Shape};
use crate::spec::{Along, Named, SgemmSpec};
use crate::value::Lowered;

/// What becomes of a sum before it is stored.
pub(super) struct Finish<'p> {
    problem: &'p Problem,
    /// What is read beside the sum, in the order of the spec's operands; then C, if it is read.
    operands: Vec<Beside>,
    scaled: Option<FunctionId>,
    /// The expression, and which of the operands it takes.
    closure: Option<(Lowered, Vec<usize>)>,
    /// The extent of K, also where none of the terms counts.
    depth: Scalar,
}

/// An operand beside the sum.
pub(super) struct Beside {
    /// What a thread's own part of it is called.
    own: String,
    place: Place,
}

enum Place {
    /// It is passed by value.
    Number(Scalar),
    /// An element for each column of C.
    Column(Line),
    /// An element for each row.
    Row(Line),
    /// An element for each element; where it is read under a condition only, 0 stands for it elsewhere.
    Element(Matrix, Option<Expr>),
}

/// What has an element for each column or row of C, of a batch for those of each product.
#[derive(Clone, Copy)]
pub(super) struct Line {
    buffer: BufferId,
    batch: Option<Var>,
}

impl Line {
    pub(super) fn at(&self, i: impl Into<Expr>) -> Access {
        let batch = self.batch.map(Expr::from);
        Access::new(self.buffer, batch.into_iter().chain([i.into()]))
    }
}

/// The values of the operands at hand, each where it has been read already.
pub(super) type Held = Vec<Option<Expr>>;

impl<'p> Finish<'p> {
    /// Declares the parameters behind those of the product, and the functions.
    pub(super) fn declare(k: &mut KernelBuilder, plan: &SgemmPlan, problem: &'p Problem) -> Self {
        let spec = plan.spec();
        let vectors = matches!(plan.shape(), Shape::Tiled(t) if t.epilogue().width() == 4);
        let mut operands = declare(k, spec, problem, vectors);
        let named: Vec<_> = plan.epilogue().iter().flat_map(|e| e.named()).collect();
        let names_c = named.iter().any(|(_, named)| *named == Named::Output);
        let c = operands.len();
        if spec.reads_c() {
            let when = match operands.get(1).map(|beta| &beta.place) {
                Some(Place::Number(beta)) if spec.scaled && !names_c => {
                    let ne = BinaryOp::Cmp(Cmp::Ne);
                    Some(Expr::binary(ne, (*beta).into(), Expr::F32(0.0)))
                }
                _ => None,
            };
            operands.push(Beside { own: "own_c".into(), place: Place::Element(problem.c, when) });
        }
        let depth = match spec.names_depth() {
            true => k.extent("DEPTH", Ty::I32, Extent::DEPTH),
            false => problem.k,
        };
        let scaled = spec.scaled.then(|| scaled(k));
        // The factors come before what the expression names.
        let mut next = if spec.scaled { SgemmSpec::FACTORS.len() } else { 0 };
        let mut take = |named| match named {
            Named::Output => c,
            Named::Operand(_) => {
                next += 1;
                next - 1
            }
        };
        let taken = named.iter().map(|(_, named)| take(*named)).collect();
        let closure = plan.epilogue().map(|epilogue| (epilogue.closure().lower(k), taken));
        Self { problem, operands, scaled, closure, depth }
    }

    /// Whether a sum is stored as it is.
    pub(super) fn is_identity(&self) -> bool {
        self.closure.is_none() && self.scaled.is_none()
    }

    /// What a thread reads of an operand along the columns of C, before it goes through its rows: arrays
    /// of registers for `count` columns each, filled by `fill` with what lies in memory.
    pub(super) fn columns(
        &self,
        k: &mut KernelBuilder,
        count: Expr,
        mut fill: impl FnMut(&mut KernelBuilder, &[(Line, BufferId)]),
    ) -> Vec<Option<BufferId>> {
        let mut filled = Vec::new();
        if self.operands.iter().any(|operand| matches!(operand.place, Place::Column(_))) {
            k.comment("What the epilogue reads along the columns of this thread.");
        }
        let kept = self.operands.iter().map(|operand| {
            let Place::Column(memory) = operand.place else { return None };
            let kept = k.registers(&operand.own, Elem::F32, [count.clone()], "");
            filled.push((memory, kept));
            Some(kept)
        });
        let kept: Vec<_> = kept.collect();
        if !filled.is_empty() {
            fill(k, &filled);
        }
        kept
    }

    /// Reads what belongs to a row of C.
    pub(super) fn row(&self, k: &mut KernelBuilder, row: &Expr) -> Held {
        let read = self.operands.iter().map(|operand| match operand.place {
            Place::Row(memory) => {
                let value = memory.at(row.clone()).load();
                Some(k.let_(&operand.own, value).into())
            }
            _ => None,
        });
        read.collect()
    }

    /// Reads what belongs to an element of C, or to four of a row; what belongs to their columns too, if
    /// it has not been read.
    pub(super) fn elements(
        &self,
        k: &mut KernelBuilder,
        (row, col): (&Expr, &Expr),
        vector: bool,
        columns: bool,
    ) -> Held {
        let read = self.operands.iter().map(|operand| {
            let (place, when) = match &operand.place {
                Place::Element(matrix, when) => {
                    (matrix.at(row.clone(), col.clone()), when.as_ref())
                }
                Place::Column(line) if columns => (line.at(col.clone()), None),
                _ => return None,
            };
            let (value, none) = match vector {
                true => (place.vector().load(), Expr::Pack(vec![Expr::F32(0.0); 4])),
                false => (place.load(), Expr::F32(0.0)),
            };
            let value = match when {
                Some(when) => when.clone().select(value, none),
                None => value,
            };
            Some(k.let_(&operand.own, value).into())
        });
        read.collect()
    }

    /// The number of operands.
    pub(super) fn operands(&self) -> usize {
        self.operands.len()
    }

    /// What is stored for the sum of an element of C. `held` gives the value of an operand that has been
    /// read already.
    pub(super) fn value(
        &self,
        sum: Expr,
        (row, col): (&Expr, &Expr),
        held: impl Fn(usize) -> Option<Expr>,
    ) -> Expr {
        let p = self.problem;
        let read = |n: usize| {
            held(n).unwrap_or_else(|| match &self.operands[n].place {
                Place::Number(number) => (*number).into(),
                Place::Column(memory) => memory.at(col.clone()).load(),
                Place::Row(memory) => memory.at(row.clone()).load(),
                Place::Element(..) => unreachable!("elements: it is held"),
            })
        };
        let sum = match self.scaled {
            Some(scaled) => {
                let c = self.operands.len() - 1;
                scaled.apply([sum, read(c), read(0), read(1), p.k.into()])
            }
            None => sum,
        };
        let Some((closure, taken)) = &self.closure else { return sum };
        let params = [sum].into_iter().chain(taken.iter().map(|&n| read(n)));
        closure.apply(params, |name| match name {
            "m" => p.m.into(),
            "n" => p.n.into(),
            "k" => self.depth.into(),
            "row" => row.clone(),
            "col" => col.clone(),
            other => unreachable!("the environment of an epilogue has no `{other}`"),
        })
    }
}

/// Declares the parameters for the operands of a spec, and what a launch must satisfy for them.
fn declare(
    k: &mut KernelBuilder,
    spec: &SgemmSpec,
    problem: &Problem,
    vectors: bool,
) -> Vec<Beside> {
    // A and B are the first arrays.
    let (mut arrays, mut numbers) = (2, 0);
    let mut declared = Vec::new();
    for operand in spec.operands() {
        let name = &*operand.name;
        if operand.along == Along::Nothing {
            let number = k.scalar(name, Ty::F32, Source::Argument(numbers));
            numbers += 1;
            k.named_by_user();
            declared.push(Beside { own: name.to_owned(), place: Place::Number(number) });
            continue;
        }
        let of = Operand::Input(arrays);
        arrays += 1;
        let memory = k.global(name, Elem::F32, of);
        k.named_by_user();
        let outer = problem.batch.map(|count| {
            let source = Source::Stride { operand: of, dim: 0 };
            let apart = k.scalar(&format!("stride_{name}"), Ty::U64, source);
            k.named_by_user();
            if vectors && operand.along != Along::M {
                k.require(Requirement::Multiple { scalar: apart, of: 4 });
            }
            (count, apart)
        });
        let (m, n) = (Expr::from(problem.m), Expr::from(problem.n));
        let batch = problem.c.batch;
        let line = Line { buffer: memory, batch };
        let place = match operand.along {
            Along::Mn => {
                let stride = match spec.pitched {
                    true => {
                        let source =
                            Source::Stride { operand: of, dim: usize::from(outer.is_some()) };
                        let stride = k.scalar(&format!("ld_{name}"), Ty::I32, source);
                        k.named_by_user();
                        stride
                    }
                    false => problem.n,
                };
                batched(k, memory, outer, [m, n], [stride.into(), 1.into()]);
                if vectors && spec.pitched {
                    k.require(Requirement::Multiple { scalar: stride, of: 4 });
                }
                Place::Element(Matrix { buffer: memory, stride, batch }, None)
            }
            Along::M => {
                batched(k, memory, outer, [m], [1.into()]);
                Place::Row(line)
            }
            _ => {
                batched(k, memory, outer, [n], [1.into()]);
                Place::Column(line)
            }
        };
        if vectors && operand.along != Along::M {
            k.require(Requirement::Aligned { operand: of, bytes: 16 });
        }
        declared.push(Beside { own: format!("own_{name}"), place });
    }
    declared
}

/// alpha * acc + beta * c by the rules of BLAS.
fn scaled(k: &mut KernelBuilder) -> FunctionId {
    let meaning = [
        "alpha * acc + beta * c as BLAS has it: what is multiplied by beta = 0 does not count, nor does a",
        "sum without terms.",
    ];
    let [alpha, beta] = SgemmSpec::FACTORS;
    let params =
        [("acc", Ty::F32), ("c", Ty::F32), (alpha, Ty::F32), (beta, Ty::F32), ("terms", Ty::I32)];
    k.function("scaled", &meaning, &params, |k, vars| {
        let [acc, c, alpha, beta, terms] = [0, 1, 2, 3, 4].map(|n| Expr::from(vars[n]));
        let product = Expr::from(k.let_("product", alpha * acc));
        let kept = Expr::from(k.let_("kept", beta.clone() * c));
        let none = terms.equals(0);
        let alone = k.let_("alone", none.clone().select(Expr::F32(0.0), product.clone()));
        let both = k.let_("both", none.select(kept.clone(), product + kept));
        beta.equals(0.0).select(alone, both)
    })
}
