//! Pure functions: what a kernel computes in several places, with a name of its own.
//!
//! A function is straight-line arithmetic on its parameters. It reads nothing else: no memory, no
//! coordinate, no constant and no parameter of the kernel. Applying it means what its body means
//! with the parameters replaced; the text has it once, above the kernel.

#[cfg(test)]
mod tests;

use super::{Expr, Kernel, KernelBuilder, Stmt, Ty, Var};

/// A function: a handle that carries the type of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId {
    /// Index into [`Kernel::functions`](super::Kernel::functions).
    pub id: usize,
    /// The type of its value.
    pub result: Ty,
}

impl FunctionId {
    /// The value of the function at these operands.
    pub fn apply(self, args: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::Apply(self, args.into_iter().collect())
    }
}

/// The definition of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name in the text.
    pub name: String,
    /// What it computes, line by line, for the comment above it.
    pub meaning: Vec<String>,
    /// Its parameters, variables of its own.
    pub params: Vec<Var>,
    /// Declarations and assignments of variables of its own, and comments.
    pub body: Vec<Stmt>,
    /// Its value.
    pub value: Expr,
}

impl KernelBuilder {
    /// How many operations the value of a function takes, those of the functions that it applies included.
    pub(crate) fn operations(&self, of: FunctionId) -> u64 {
        let mut known: Vec<u64> = Vec::new();
        for function in &self.kernel.functions {
            let mut count = 0;
            let mut see = |e: &Expr| {
                e.visit(&mut |e| {
                    count += match e {
                        Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => 1,
                        Expr::Cast(..) | Expr::Call(..) => 1,
                        // It is declared before.
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

impl Kernel {
    /// For each variable, whether it is the kernel's own and no function's.
    pub fn own_variables(&self) -> Vec<bool> {
        let mut own = vec![true; self.vars.len()];
        for function in &self.functions {
            let declared = function.body.iter().filter_map(|stmt| match stmt {
                Stmt::Let { var, .. } | Stmt::Mut { var, .. } => Some(var),
                _ => None,
            });
            for var in function.params.iter().chain(declared) {
                if let Some(own) = own.get_mut(var.id) {
                    *own = false;
                }
            }
        }
        own
    }
}

impl KernelBuilder {
    /// Declares a function, or finds the one of this name, which must be the same: another one is a
    /// mistake that [`KernelBuilder::finish`] tells. Functions that it applies are declared before it.
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
        // Made again where the first one was made, the same function has the same variables.
        let before = self.vars_before[id].min(self.kernel.vars.len());
        let vars = self.kernel.vars.split_off(before);
        let again = self.define(name, meaning, params, body);
        let same_names = vars.starts_with(&self.kernel.vars[before..]);
        self.kernel.vars.truncate(before);
        self.kernel.vars.extend(vars);
        let known = &self.kernel.functions[id];
        // In words: two zeros of different signs are equal.
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
        let Some(value) = value else { unreachable!("a block runs what it is given") };
        let meaning = meaning.iter().map(|line| (*line).to_owned()).collect();
        Function { name: name.into(), meaning, params, body, value }
    }
}
