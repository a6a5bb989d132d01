//! Declarations whose names a user chose.

use super::KernelBuilder;
use crate::ir::{BufferId, FunctionId, Kernel, Names, Param, ParamKind, Var};
use std::collections::BTreeSet;

/// Index of a declaration. The order is that in which declarations get names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    Function(usize),
    Var(usize),
    Buffer(usize),
    Param(usize),
}

impl From<FunctionId> for Named {
    fn from(function: FunctionId) -> Self {
        Self::Function(function.id)
    }
}

impl From<Var> for Named {
    fn from(var: Var) -> Self {
        Self::Var(var.id)
    }
}

/// A shared or register buffer.
impl From<BufferId> for Named {
    fn from(buffer: BufferId) -> Self {
        Self::Buffer(buffer.id)
    }
}

impl KernelBuilder {
    /// Marks the last declared parameter as named by the user. The source keeps this name, or uses
    /// a similar name if the generated source already contains it.
    pub fn mark_user_named(&mut self) {
        self.of_user.extend(self.kernel.params.len().checked_sub(1).map(Named::Param));
    }

    /// Marks a declaration of this kernel whose name contains a name that the user chose. The
    /// source keeps it, or uses a similar name if the generated source already contains it.
    pub(crate) fn named_by_user(&mut self, declaration: impl Into<Named>) {
        self.of_user.push(declaration.into());
    }
}

/// Renames variables of functions if another function has the same name. Variables of a user's
/// expression keep their names, because the user does not know the other names.
pub(super) fn show_functions(k: &mut Kernel) {
    let own = k.own_variables();
    let functions: BTreeSet<&str> = k.functions.iter().map(|f| f.name.as_str()).collect();
    let hides = |n: &usize| !own[*n] && functions.contains(k.vars[*n].name.as_str());
    let hiding: Vec<usize> = (0..k.vars.len()).filter(hides).collect();
    if hiding.is_empty() {
        return;
    }
    let taken = functions.into_iter().chain(k.vars.iter().map(|var| var.name.as_str()));
    let mut names = Names::without(taken);
    for n in hiding {
        k.vars[n].name = names.fresh(&k.vars[n].name);
    }
}

/// Renames these declarations so that their names are unique in the source. Parameters give way to
/// all others.
pub(super) fn give_way(k: &mut Kernel, of_user: &[Named]) {
    if of_user.is_empty() {
        return;
    }
    let of_user: BTreeSet<Named> = of_user.iter().copied().collect();
    let taken: Vec<String> = own_names(k, &of_user).into_iter().cloned().collect();
    let mut names = Names::without(taken);
    for named in of_user {
        let name = match named {
            Named::Function(n) => &mut k.functions[n].name,
            Named::Var(n) => &mut k.vars[n].name,
            Named::Buffer(n) => &mut k.buffers[n].name,
            Named::Param(n) => &mut k.params[n].name,
        };
        *name = names.fresh(name);
        if let Named::Param(n) = named
            && let Some(buffer) = buffer_of(&k.params[n])
        {
            k.buffers[buffer.id].name = k.params[n].name.clone();
        }
    }
}

/// Names in the source that the generator chose.
fn own_names<'k>(k: &'k Kernel, of_user: &BTreeSet<Named>) -> Vec<&'k String> {
    let is_own = |named: Named| !of_user.contains(&named);
    let given = k.params.iter().enumerate().filter(|(n, _)| !is_own(Named::Param(*n)));
    let given: BTreeSet<usize> =
        given.filter_map(|(_, param)| Some(buffer_of(param)?.id)).collect();
    let params = k.params.iter().map(|param| &param.name).enumerate();
    let params = params.filter(|(n, _)| is_own(Named::Param(*n)));
    let functions = k.functions.iter().map(|function| &function.name).enumerate();
    let functions = functions.filter(|(n, _)| is_own(Named::Function(*n)));
    let in_kernel = k.own_variables();
    let vars = k.vars.iter().map(|decl| &decl.name).enumerate();
    let vars = vars.filter(|(n, _)| in_kernel[*n] && is_own(Named::Var(*n)));
    let buffers = k.buffers.iter().map(|buffer| &buffer.name).enumerate();
    let buffers = buffers.filter(|(n, _)| !given.contains(n) && is_own(Named::Buffer(*n)));
    let numbered = params.chain(functions).chain(vars).chain(buffers).map(|(_, name)| name);
    let consts = k.consts.iter().map(|decl| &decl.name);
    let mbarriers = k.mbarriers.iter().map(|decl| &decl.name);
    let sections = k.sections().into_iter().map(|section| &section.name);
    let others = consts.chain(mbarriers).chain(sections).chain([&k.name]);
    numbered.chain(others).collect()
}

/// Global buffer of a parameter.
fn buffer_of(param: &Param) -> Option<BufferId> {
    match param.kind {
        ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. } => Some(buffer),
        ParamKind::Scalar { .. } => None,
    }
}
