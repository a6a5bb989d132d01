//! Values of closures: of a row, and at an element.

use super::super::arrays::Parameter;
use super::pass::ElementAt;
use super::{Row, RowKernel};
use crate::expr::{Closure, Lowered};
use crate::ir::{Access, Expr};
use crate::lower::conversions::in_expression;

impl RowKernel<'_> {
    /// Value of a closure at an element, or of the row. Without a function, the closure is its
    /// only parameter.
    pub(super) fn value(
        &self,
        closure: &Closure,
        function: Option<&Lowered>,
        row: &Row,
        at: Option<&ElementAt<'_>>,
    ) -> Expr {
        let mut params = closure.params().iter().map(|param| self.named(&param.name, row, at));
        match function {
            None => params.next().unwrap_or_else(|| unreachable!("is_parameter: it has one")),
            Some(function) => function.apply(params, |name| match name {
                "row" => row.row.clone(),
                "col" => at.map_or_else(|| of_row(), |at| at.col.clone()),
                "m" => self.arrays.m.into(),
                "n" => self.arrays.n.into(),
                other => unreachable!("ELEMENTWISE: it has no integer {other}"),
            }),
        }
    }

    /// Value of a parameter of a closure: an operand, a part, or a kept argument of a fold.
    fn named(&self, name: &str, row: &Row, at: Option<&ElementAt<'_>>) -> Expr {
        let parts = &self.expression.parts;
        if let Some(nth) = parts.iter().position(|part| part.name == name) {
            let Some(var) = row.parts[nth] else {
                unreachable!("RowExpression: a part reads only earlier parts")
            };
            return var.into();
        }
        if let Some(nth) = parts.iter().position(|part| part.kept() == Some(name)) {
            return match (row.kept[nth], at) {
                (Some(kept), Some(at)) => {
                    Access::new(kept, [at.item.clone(), at.lane.clone()]).load()
                }
                _ => self.value(&parts[nth].closure, self.parts[nth].as_ref(), row, at),
            };
        }
        let Some(nth) = self.arrays.names.iter().position(|operand| operand == name) else {
            unreachable!("RowExpression: {name} is an operand")
        };
        in_expression(self.operand(nth, row, at))
    }

    /// Element of an operand.
    fn operand(&self, nth: usize, row: &Row, at: Option<&ElementAt<'_>>) -> Expr {
        let array = match self.arrays.operands[nth] {
            Parameter::Number(number) => return number.into(),
            Parameter::Array(array) => array,
        };
        if let Some(of_row) = row.of_row[nth] {
            return of_row.into();
        }
        let Some(at) = at else { of_row() };
        match (row.elements[nth], at.columns[nth]) {
            (Some(held), _) => Access::new(held, [at.item.clone(), at.lane.clone()]).load(),
            (None, Some(held)) => Access::new(held, [at.lane.clone()]).load(),
            (None, None) => array.at(row.row.clone(), at.col.clone()).load(),
        }
    }
}

fn of_row() -> ! {
    unreachable!("RowExpression: a value of the row does not depend on the column")
}
