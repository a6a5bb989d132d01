//! Device functions of a kernel, each declared once.

#[cfg(test)]
mod tests;

use super::KernelBuilder;
use crate::ir::{Expr, Function, FunctionId, Ty, Var};

impl KernelBuilder {
    /// Declares a function, or returns the existing function with this name. Both must be
    /// identical, otherwise [`KernelBuilder::finish`] reports an error. Functions that it calls
    /// must be declared before it.
    pub fn function(
        &mut self,
        name: &str,
        meaning: &[&str],
        params: &[(&str, Ty)],
        body: impl FnOnce(&mut Self, &[Var]) -> Expr,
    ) -> FunctionId {
        let Some(id) = self.kernel.functions.iter().position(|f| f.name == name) else {
            let before = self.kernel.vars.len();
            let function = self.define(name, meaning, params, body);
            let result = function.value.ty();
            self.vars_before.push(before);
            self.kernel.functions.push(function);
            return FunctionId { id: self.kernel.functions.len() - 1, result };
        };
        // To compare with an existing function, it is rebuilt as if at the same point. Identical
        // functions then have identical variables.
        let before = self.vars_before[id].min(self.kernel.vars.len());
        let vars = self.kernel.vars.split_off(before);
        let again = self.define(name, meaning, params, body);
        let same_names = vars.starts_with(&self.kernel.vars[before..]);
        self.kernel.vars.truncate(before);
        self.kernel.vars.extend(vars);
        let known = &self.kernel.functions[id];
        // Compares the `Debug` text, because zeros of different signs compare equal as numbers.
        let same = format!("{again:?}") == format!("{known:?}");
        if !(same && same_names) {
            self.fault.get_or_insert_with(|| format!("two functions are called {name}"));
        }
        FunctionId { id, result: known.value.ty() }
    }

    fn define(
        &mut self,
        name: &str,
        meaning: &[&str],
        params: &[(&str, Ty)],
        body: impl FnOnce(&mut Self, &[Var]) -> Expr,
    ) -> Function {
        let params: Vec<Var> = params.iter().map(|(name, ty)| self.var(name, *ty)).collect();
        let mut value = None;
        let body = self.block(|b| value = Some(body(b, &params)));
        let Some(value) = value else {
            unreachable!("KernelBuilder::block: it calls its argument")
        };
        let meaning = meaning.iter().map(|line| (*line).to_owned()).collect();
        Function { name: name.into(), meaning, params, body, value }
    }

    /// Returns the number of operations of a function's value, including those of the functions
    /// that it calls.
    pub(crate) fn operations(&self, of: FunctionId) -> u64 {
        let mut known: Vec<u64> = Vec::new();
        for function in &self.kernel.functions {
            let mut count = 0;
            let mut see = |e: &Expr| {
                e.visit(&mut |e| {
                    count += match e {
                        Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => 1,
                        Expr::Cast(..) | Expr::Call(..) => 1,
                        // Callees are declared earlier, so their counts are known.
                        Expr::Apply(applied, _) => known.get(applied.id).copied().unwrap_or(0),
                        _ => 0,
                    };
                });
            };
            function.body.iter().for_each(|stmt| stmt.visit_exprs(&mut see));
            see(&function.value);
            known.push(count);
        }
        known.get(of.id).copied().unwrap_or(0)
    }
}
