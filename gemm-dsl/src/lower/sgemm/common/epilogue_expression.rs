//! Computation of the stored values from an accumulator: scaling by the rules of BLAS, then the
//! user's expression. [`EpilogueArgs`] loads the operands of both.

use super::epilogue_args;
use super::problem::{GemmProblem, Matrix};
use super::row_folds::RowFolds;
use crate::expr::Lowered;
use crate::ir::{Elem, Expr, Extent, FunctionId, KernelBuilder, Scalar, Ty};
use crate::lower::sgemm::common::epilogue_args::{
    ArgIndex, C, ElementOfC, EpilogueArgs, LoadedArgs,
};
use crate::plan::SgemmPlan;
use crate::spec::SgemmSpec;

/// Computation of the stored values from an accumulator.
pub(crate) struct EpilogueExpression<'p> {
    problem: &'p GemmProblem,
    /// Operands in addition to the accumulator, none of them loaded yet.
    pub operands: EpilogueArgs,
    scaled: Option<Scaled>,
    /// The user's expression, and the indices of its operands after the accumulator.
    closure: Option<(Vec<Lowered>, Vec<ArgIndex>)>,
    /// Matrices for the values of the expression: C, then the others.
    outputs: Vec<Matrix>,
    /// Type of the elements of C and of the other outputs.
    elem: Elem,
    /// Type of the accumulators.
    acc: Elem,
    /// Extent of K, which is the full extent even if alpha is zero.
    depth: Scalar,
    /// Folds of the epilogue over the rows of C.
    pub folds: Option<RowFolds<'p>>,
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
            function: scaled(b, plan.types().acc),
            alpha: operands.nth(SgemmSpec::ALPHA),
            beta: operands.nth(SgemmSpec::BETA),
            c: operands.nth(C),
        });
        let closure = plan.epilogue().map(|epilogue| {
            let elements = epilogue.row_results();
            let taken = elements.params().iter().skip(1).map(|param| operands.nth(&param.name));
            (elements.lower(b), taken.collect())
        });
        let folds = RowFolds::new(plan, problem);
        let others = epilogue_args::outputs(b, plan, problem);
        let outputs = [problem.c()].into_iter().chain(others).collect();
        let (elem, acc) = (plan.types().c, plan.types().acc);
        Self { problem, operands, scaled, closure, outputs, elem, acc, depth, folds }
    }

    /// Returns true if accumulators are stored unchanged.
    pub(crate) fn is_identity(&self) -> bool {
        self.closure.is_none() && self.scaled.is_none() && self.elem == self.acc
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
    pub(crate) fn outputs(&self) -> &[Matrix] {
        &self.outputs
    }

    /// Values to store for the element of C at `at`, one for each output in the type of C, followed
    /// by the arguments of folds. It is the j-th of the elements whose operands are in `held`.
    pub(crate) fn values(
        &self,
        sum: Expr,
        at: ElementOfC<'_>,
        held: &LoadedArgs,
        j: usize,
    ) -> Vec<Expr> {
        let values = self.computed(sum, at, held, j).into_iter().enumerate();
        let stored = |(nth, value): (usize, Expr)| match nth < self.outputs.len() {
            true => value.cast(self.elem),
            false => value,
        };
        values.map(stored).collect()
    }

    /// Value of an operand in the type of the accumulators.
    fn taken(&self, nth: ArgIndex, held: &LoadedArgs, j: usize) -> Expr {
        held.value(nth, j).cast(self.acc)
    }

    /// Values in the type of the accumulators.
    fn computed(&self, sum: Expr, at: ElementOfC<'_>, held: &LoadedArgs, j: usize) -> Vec<Expr> {
        let p = self.problem;
        let sum = match &self.scaled {
            Some(Scaled { function, alpha, beta, c }) => {
                let [c, alpha, beta] = [c, alpha, beta].map(|nth| self.taken(*nth, held, j));
                function.apply([sum, c, alpha, beta, p.k.into()])
            }
            None => sum,
        };
        let Some((closures, taken)) = &self.closure else { return vec![sum] };
        let value = |closure: &Lowered| {
            let sum = [sum.clone()].into_iter();
            let params = sum.chain(taken.iter().map(|nth| self.taken(*nth, held, j)));
            closure.apply(params, |name| match name {
                "m" => p.m.into(),
                "n" => p.n.into(),
                "k" => self.depth.into(),
                "row" => at.row.clone(),
                "col" => at.col.clone(),
                other => unreachable!("EPILOGUE: it has no integer `{other}`"),
            })
        };
        closures.iter().map(value).collect()
    }
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
