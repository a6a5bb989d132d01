//! The user's expressions of a reduction, as device functions, with conversions of their arguments
//! and values.

use crate::expr::{Closure, Lowered};
use crate::ir::{Elem, Expr, KernelBuilder, Scalar};
use crate::lower::conversions::{computed, elem_of, in_expression, of_expression, stored};
use crate::lower::literal::zero;
use crate::plan::ReducePlan;

/// Position of an element: its index in the result, and the number of elements of the result.
pub(super) struct ElementIndex {
    pub(super) index: Expr,
    pub(super) len: Expr,
}

/// Device functions for the user's expressions.
pub(super) struct Expressions {
    map: Option<Lowered>,
    /// Numbers of `map`, by name.
    map_numbers: Vec<String>,
    finish: Option<LoweredFinish>,
    fold: Option<UserFold>,
    identity: Option<Expr>,
    acc: Elem,
    result: Elem,
    /// Element type of each result.
    results: Vec<Elem>,
}

/// The user's `finish`.
struct LoweredFinish {
    function: Lowered,
    /// Number of parameters before the numbers.
    values: usize,
    /// Numbers, by name.
    numbers: Vec<String>,
}

/// The user's fold of two values.
#[derive(Clone)]
pub(super) struct UserFold {
    function: Lowered,
    acc: Elem,
}

/// Expressions that a kernel needs.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    /// True if the kernel reads elements.
    pub(super) map: bool,
    /// True if the kernel stores results.
    pub(super) finish: bool,
}

impl Expressions {
    pub(super) fn new(b: &mut KernelBuilder, plan: &ReducePlan, needs: Needs) -> Self {
        let spec = plan.spec();
        let (acc, result) = (plan.types().acc, plan.types().result);
        let map = spec.map.as_ref().filter(|_| needs.map);
        let map = map.map(|map| map.closure().lower_as(b, "map", &spec.typing_of_map()));
        let fold = spec.fold.as_ref().map(|fold| UserFold {
            function: fold.closure().lower_as(b, "fold", &spec.typing_of_fold()),
            acc,
        });
        let identity = spec.identity.as_ref().map(|identity| {
            let function =
                identity.closure().lower_as(b, "identity_of_fold", &spec.typing_of_identity());
            of_expression(
                function.apply([], |_| unreachable!("ExprScope: it has no integers")),
                acc,
            )
        });
        let finish = spec.finish.as_ref().filter(|_| needs.finish).map(|finish| {
            let closure = finish.closure();
            LoweredFinish {
                function: closure.lower_as(b, "finish", &spec.typing_of_finish()),
                values: closure.value_params().len(),
                numbers: numbers_of(closure),
            }
        });
        let map_numbers = spec.map.as_ref().map(|map| numbers_of(map.closure()));
        let map_numbers = map_numbers.unwrap_or_default();
        let results = spec.results().into_iter().map(|(_, elem)| elem).collect();
        Self { map, map_numbers, finish, fold, identity, acc, result, results }
    }

    pub(super) fn fold(&self) -> UserFold {
        match &self.fold {
            Some(fold) => fold.clone(),
            None => unreachable!("plan: without an operator there is a fold"),
        }
    }

    pub(super) fn identity(&self) -> Expr {
        match &self.identity {
            Some(identity) => identity.clone(),
            None => unreachable!("plan: a fold has an identity"),
        }
    }

    /// Value to fold for the elements at one index, of type `held`. For `any` and `all`, the value
    /// is 0 or 1.
    pub(super) fn lift(
        &self,
        elements: Vec<Expr>,
        numbers: &Numbers,
        at: ElementIndex,
        held: Elem,
        is_truth: bool,
    ) -> Expr {
        let ElementIndex { index, len } = at;
        let Some(map) = &self.map else {
            let Some(element) = elements.into_iter().next() else {
                unreachable!("params: there is an input")
            };
            let element = computed(element);
            if !is_truth {
                return element.cast(self.acc).bitcast(held);
            }
            let Some(elem) = elem_of(&element) else {
                unreachable!("DataType: an element is a number")
            };
            let is_zero = element.equals(zero(elem));
            return is_zero.select(Expr::U32(0), Expr::U32(1));
        };
        let elements = elements.into_iter().chain(numbers.named(&self.map_numbers));
        let elements = elements.map(in_expression);
        let value = map.apply(elements, |name| match name {
            "i" => index.clone(),
            "len" => len.clone(),
            other => unreachable!("MAP: it has no integer {other}"),
        });
        if is_truth {
            return value.select(Expr::U32(1), Expr::U32(0));
        }
        of_expression(value, self.acc).bitcast(held)
    }

    /// Results, computed from the folded values and the number of elements.
    pub(super) fn results(&self, values: Vec<Expr>, numbers: &Numbers, len: Expr) -> Vec<Expr> {
        let finished = match &self.finish {
            None => values,
            Some(finish) => {
                let counted = if self.acc.is_float() { self.acc } else { Elem::I64 };
                let values = values.into_iter().chain([len.cast(counted)]).take(finish.values);
                let values = values.chain(numbers.named(&finish.numbers)).map(in_expression);
                let value = finish
                    .function
                    .apply(values, |_| unreachable!("ExprScope: it has no integers"));
                vec![of_expression(value, self.result_in())]
            }
        };
        finished.into_iter().zip(&self.results).map(|(value, elem)| stored(value, *elem)).collect()
    }

    /// Type in which the result is computed before it is converted.
    fn result_in(&self) -> Elem {
        if self.result.computes() { self.result } else { Elem::F32 }
    }
}

/// Names of the numbers of an expression.
fn numbers_of(closure: &Closure) -> Vec<String> {
    closure.number_params().map(|(number, _)| number.name.clone()).collect()
}

/// Numbers that a launch passes to a kernel, with their names.
#[derive(Default)]
pub(super) struct Numbers(pub(super) Vec<(String, Scalar)>);

impl Numbers {
    /// Values of the numbers with these names.
    fn named(&self, names: &[String]) -> impl Iterator<Item = Expr> {
        names.iter().map(|name| match self.0.iter().find(|(known, _)| known == name) {
            Some((_, number)) => (*number).into(),
            None => unreachable!("params: it declares every number that the kernel reads"),
        })
    }
}

impl UserFold {
    pub(super) fn apply(&self, a: Expr, b: Expr) -> Expr {
        let value = self
            .function
            .apply([a, b].map(in_expression), |_| unreachable!("ExprScope: it has no integers"));
        of_expression(value, self.acc)
    }
}
