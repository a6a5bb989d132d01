//! The user's expressions of a reduction, as device functions, with conversions of their arguments
//! and values.

use super::literal::zero;
use crate::expr::Lowered;
use crate::ir::{Elem, Expr, KernelBuilder};
use crate::lower::conversions::{computed, elem_of, in_expression, of_expression, stored};
use crate::plan::ReducePlan;

/// Position of an element: its index in the result, and the number of elements of the result.
pub(super) struct ElementIndex {
    pub(super) index: Expr,
    pub(super) len: Expr,
}

/// Device functions for the user's expressions.
pub(super) struct Expressions {
    map: Option<Lowered>,
    finish: Option<(Lowered, usize)>,
    fold: Option<UserFold>,
    identity: Option<Expr>,
    acc: Elem,
    result: Elem,
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
            (closure.lower_as(b, "finish", &spec.typing_of_finish()), closure.params().len())
        });
        Self { map, finish, fold, identity, acc, result }
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
        let elements = elements.into_iter().map(in_expression);
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
    pub(super) fn results(&self, values: Vec<Expr>, len: Expr) -> Vec<Expr> {
        let finished = match &self.finish {
            None => values,
            Some((finish, takes)) => {
                let counted = if self.acc.is_float() { self.acc } else { Elem::I64 };
                let values = values.into_iter().map(in_expression);
                let values = values.chain([len.cast(counted)]).take(*takes);
                let value = finish.apply(values, |_| unreachable!("ExprScope: it has no integers"));
                vec![of_expression(value, self.result_in())]
            }
        };
        finished.into_iter().map(|value| stored(value, self.result)).collect()
    }

    /// Type in which the result is computed before it is converted.
    fn result_in(&self) -> Elem {
        if self.result.computes() { self.result } else { Elem::F32 }
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
