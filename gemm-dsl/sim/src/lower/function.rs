//! Lowering of device functions, once each, and of their calls.

use super::Lowering;
use crate::lower::code::Slots;
use crate::lower::code::expr::{Apply, Datum, Function};
use gemm_dsl::ir::{Expr, FunctionId, Stmt, Ty, Var};

impl Lowering<'_, '_> {
    /// Lowers the kernel's device functions. A function comes after the functions that it calls.
    pub(super) fn functions(&mut self) {
        self.inside = true;
        for function in &self.launch.kernel.functions {
            let mut slots = Slots::default();
            for param in &function.params {
                self.local(&mut slots, *param);
            }
            let mut body = Vec::new();
            for stmt in &function.body {
                let (var, value) = match stmt {
                    Stmt::Let { var, value } | Stmt::Mut { var, value } => {
                        self.local(&mut slots, *var);
                        (var, value)
                    }
                    Stmt::Assign { var, value } => (var, value),
                    _ => continue,
                };
                body.push((self.places[var.id], self.datum(value)));
            }
            let value = self.datum(&function.value);
            let site = self.site();
            self.code.functions.push(Function { slots, body, value, site });
        }
        self.inside = false;
    }

    /// Assigns a slot to a variable of a device function.
    fn local(&mut self, slots: &mut Slots, var: Var) {
        let count = match var.ty {
            Ty::Bool => &mut slots.preds,
            Ty::Scalar(elem) if elem.size() == 8 => &mut slots.wides,
            Ty::Scalar(_) => &mut slots.lanes,
            Ty::Vector(_) => unreachable!("verified: a function has no vectors"),
        };
        self.places[var.id] = *count;
        *count += 1;
    }

    pub(super) fn apply(&mut self, function: FunctionId, args: &[Expr]) -> Box<Apply> {
        let args = args.iter().map(|e| self.datum(e)).collect();
        Box::new(Apply { function: function.id as u32, args })
    }

    fn datum(&mut self, e: &Expr) -> Datum {
        match e.ty() {
            Ty::Bool => Datum::Pred(self.pred(e)),
            Ty::Scalar(elem) if elem.size() == 8 => Datum::Wide(self.wide(e)),
            Ty::Scalar(_) => Datum::Lane(self.lane(e)),
            Ty::Vector(_) => unreachable!("verified: a function has no vectors"),
        }
    }
}
