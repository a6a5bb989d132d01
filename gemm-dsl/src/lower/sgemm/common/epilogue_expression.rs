//! Computation of the stored values from an accumulator: scaling by the rules of BLAS, then the
//! user's expression. [`EpilogueArgs`] loads the operands of both.

use super::epilogue_args;
use super::problem::{GemmProblem, Matrix};
use super::row_folds::RowFolds;
use crate::expr::Lowered;
use crate::ir::{Elem, Expr, Extent, FunctionId, KernelBuilder, Scalar, Ty};
use crate::lower::sgemm::common::epilogue_args::{ArgIndex, C, ElementOfC, EpilogueArgs};
use crate::plan::SgemmPlan;
use crate::spec::SgemmSpec;

/// Computation of the stored values from an accumulator.
pub(crate) struct EpilogueExpression<'p> {
    problem: &'p GemmProblem,
    /// Operands in addition to the accumulator, none of them loaded yet.
    pub operands: EpilogueArgs,
    scaled: Option<Scaled>,
    closure: Option<LoweredClosure>,
    /// Matrices for the values of the expression: C, then the others.
    outputs: Vec<OutputMatrix>,
    /// Number of adjacent columns that the expression is computed for at once.
    pub span: usize,
    /// Type of the elements of C and of the other outputs.
    elem: Elem,
    /// Type of accumulators after their conversion, and of operands.
    value: Elem,
    /// True if accumulators are stored without conversion.
    is_plain: bool,
    /// Extent of K, which is the full extent even if alpha is zero.
    depth: Scalar,
    /// Folds of the epilogue over the rows of C.
    pub folds: Option<RowFolds<'p>>,
}

/// The user's expression.
struct LoweredClosure {
    /// Functions of the values.
    values: Vec<Lowered>,
    /// Parameters of each function.
    inputs: Vec<ClosureInput>,
}

/// Parameter of an expression that is computed for one or two columns.
struct ClosureInput {
    /// Index of the operand; `None` for the accumulator.
    operand: Option<ArgIndex>,
    /// Column: 1 for the odd column of a pair, else 0.
    column: usize,
}

/// Matrix for the values of an expression.
#[derive(Clone, Copy)]
pub(crate) struct OutputMatrix {
    pub matrix: Matrix,
    /// Number of values that are stored at once, in adjacent columns.
    pub count: usize,
}

/// Function and operands of `alpha * acc + beta * c`.
struct Scaled {
    function: FunctionId,
    alpha: ArgIndex,
    beta: ArgIndex,
    c: ArgIndex,
}

impl<'p> EpilogueExpression<'p> {
    /// Declares the parameters after those of the GEMM, and the device functions.
    pub(crate) fn declare(
        b: &mut KernelBuilder,
        plan: &'p SgemmPlan,
        problem: &'p GemmProblem,
    ) -> Self {
        let spec = plan.spec();
        let operands = EpilogueArgs::declare(b, plan, problem);
        let depth = match spec.names_depth() {
            true => b.extent("DEPTH", Ty::I32, Extent::DEPTH),
            false => problem.k,
        };
        let scaled = spec.scaled.then(|| Scaled {
            function: scaled(b, plan.types().value()),
            alpha: operands.nth(SgemmSpec::ALPHA),
            beta: operands.nth(SgemmSpec::BETA),
            c: operands.nth(C),
        });
        let closure = plan.epilogue().map(|epilogue| {
            let elements = epilogue.row_results();
            let inputs = elements.inputs().map(|(name, column)| ClosureInput {
                operand: name.map(|name| operands.nth(name)),
                column,
            });
            let inputs = inputs.collect();
            (LoweredClosure { values: elements.lower(b), inputs }, elements)
        });
        let (closure, elements) = closure.unzip();
        let span = if elements.as_ref().is_some_and(|of| of.has_pairs) { 2 } else { 1 };
        let counts = elements.map_or(vec![1], |of| of.stored);
        let folds = RowFolds::new(plan, problem);
        let others = epilogue_args::outputs(b, plan, problem);
        let matrices = [problem.c()].into_iter().chain(others);
        let outputs = matrices.zip(counts).map(|(matrix, count)| OutputMatrix { matrix, count });
        let outputs = outputs.collect();
        let (types, elem, value) = (plan.types(), plan.types().c, plan.types().value());
        let is_plain = types.acc == types.c;
        Self {
            problem,
            operands,
            scaled,
            closure,
            outputs,
            span,
            elem,
            value,
            is_plain,
            depth,
            folds,
        }
    }

    /// Returns true if accumulators are stored unchanged.
    pub(crate) fn is_identity(&self) -> bool {
        self.closure.is_none() && self.scaled.is_none() && self.is_plain
    }

    /// Verb of a kernel's comments for the treatment of accumulators.
    pub(crate) fn verb(&self) -> &'static str {
        match (&self.closure, &self.scaled) {
            (Some(_), _) => "apply the epilogue expression and store",
            (None, Some(_)) => "scale by alpha and beta, and store",
            (None, None) => "store",
        }
    }

    /// Matrices for the values of an element, in order. The first is C.
    pub(crate) fn outputs(&self) -> &[OutputMatrix] {
        &self.outputs
    }

    /// Values to store for adjacent columns, the first of which is at `at`, in the type of C,
    /// followed by the arguments of folds. There is an accumulator for each of the columns, and
    /// each output takes its [`count`](OutputMatrix::count) of values. `held` returns the value of
    /// an operand in a column.
    pub(crate) fn values(
        &self,
        sums: &[Expr],
        at: ElementOfC<'_>,
        held: impl Fn(ArgIndex, usize) -> Expr,
    ) -> Vec<Expr> {
        let stored: usize = self.outputs.iter().map(|output| output.count).sum();
        let values = self.computed(sums, at, held).into_iter().enumerate();
        let stored = |(nth, value): (usize, Expr)| match nth < stored {
            true => value.cast(self.elem),
            false => value,
        };
        values.map(stored).collect()
    }

    /// Values in the type of [`value`](Self::value), as [`values`](Self::values) returns them.
    pub(crate) fn computed(
        &self,
        sums: &[Expr],
        at: ElementOfC<'_>,
        held: impl Fn(ArgIndex, usize) -> Expr,
    ) -> Vec<Expr> {
        let p = self.problem;
        let sums = sums.iter().map(|sum| converted(sum.clone(), self.value));
        let sums: Vec<Expr> = sums.collect();
        let scaled = sums.iter().enumerate().map(|(column, sum)| match &self.scaled {
            Some(Scaled { function, alpha, beta, c }) => {
                let [c, alpha, beta] =
                    [c, alpha, beta].map(|nth| held(*nth, column).cast(self.value));
                function.apply([sum.clone(), c, alpha, beta, p.k.into()])
            }
            None => sum.clone(),
        });
        let sums: Vec<Expr> = scaled.collect();
        let Some(LoweredClosure { values, inputs }) = &self.closure else { return sums };
        let value = |closure: &Lowered| {
            let params = inputs.iter().map(|ClosureInput { operand, column }| match operand {
                None => sums[*column].clone(),
                Some(nth) => held(*nth, *column).cast(self.value),
            });
            closure.apply(params, |name| match name {
                "m" => p.m.into(),
                "n" => p.n.into(),
                "k" => self.depth.into(),
                "row" => at.row.clone(),
                "col" => at.col.clone(),
                other => unreachable!("EPILOGUE: it has no integer `{other}`"),
            })
        };
        values.iter().map(value).collect()
    }
}

/// Converts an accumulator. That of integers has the bits of an `i32`.
fn converted(sum: Expr, to: Elem) -> Expr {
    let sum = if sum.ty() == Ty::U32 { sum.bitcast(Elem::I32) } else { sum };
    sum.cast(to)
}

/// Declares the device function for `alpha * acc + beta * c` by the rules of BLAS.
fn scaled(b: &mut KernelBuilder, elem: Elem) -> FunctionId {
    let meaning = [
        "alpha * acc + beta * c by the rules of BLAS: c is ignored if beta is 0, and acc is \
         ignored",
        "if there are no terms (K = 0).",
    ];
    let [alpha, beta] = SgemmSpec::FACTORS;
    let of = Ty::Scalar(elem);
    let params = [("acc", of), ("c", of), (alpha, of), (beta, of), ("terms", Ty::I32)];
    b.function("scaled", &meaning, &params, |b, vars| {
        let [acc, c, alpha, beta, terms] = [0, 1, 2, 3, 4].map(|n| Expr::from(vars[n]));
        let product = Expr::from(b.let_("product", alpha * acc));
        let kept = Expr::from(b.let_("kept", beta.clone() * c));
        let (none, zero) = (terms.equals(0), Expr::F32(0.0).cast(elem));
        let alone = b.let_("alone", none.clone().select(zero.clone(), product.clone()));
        let both = b.let_("both", none.select(kept.clone(), product + kept));
        beta.equals(zero).select(alone, both)
    })
}
