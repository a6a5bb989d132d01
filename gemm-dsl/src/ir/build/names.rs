//! Parameters and variables whose names a user chose.

use super::KernelBuilder;
use crate::ir::{Kernel, Names, ParamKind};
use std::collections::BTreeSet;

impl KernelBuilder {
    /// Marks the last declared parameter as named by the user. The source keeps this name, or uses
    /// a similar name if the generated source already contains it.
    pub fn mark_user_named(&mut self) {
        self.of_user.extend(self.kernel.params.len().checked_sub(1));
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

/// Renames these parameters so that their names are unique in the source.
pub(super) fn give_way(k: &mut Kernel, of_user: &[usize]) {
    if of_user.is_empty() {
        return;
    }
    let own = k.params.iter().enumerate().filter(|(n, _)| !of_user.contains(n));
    let own = own.map(|(_, param)| &param.name);
    let consts = k.consts.iter().map(|decl| &decl.name);
    let vars = k.vars.iter().zip(k.own_variables()).filter(|(_, own)| *own);
    let vars = vars.map(|(decl, _)| &decl.name);
    let functions = k.functions.iter().map(|function| &function.name);
    let is_given = |id: usize| {
        of_user.iter().any(|&n| {
            matches!(
                &k.params[n].kind,
                ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. }
                    if buffer.id == id
            )
        })
    };
    let buffers = k.buffers.iter().enumerate().filter(|(id, _)| !is_given(*id));
    let buffers = buffers.map(|(_, buffer)| &buffer.name);
    let buffers = buffers.chain(k.mbarriers.iter().map(|decl| &decl.name));
    let sections = k.sections().into_iter().map(|section| &section.name);
    let functions = functions.chain(sections);
    let taken = own.chain(consts).chain(vars).chain(functions).chain(buffers).chain([&k.name]);
    let mut names = Names::without(taken.cloned().collect::<Vec<_>>());
    for &n in of_user {
        let param = &mut k.params[n];
        param.name = names.fresh(&param.name);
        if let ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. } = param.kind {
            k.buffers[buffer.id].name = param.name.clone();
        }
    }
}
