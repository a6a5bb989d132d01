//! Sections, which the source has as calls of functions. The functions are lambdas that capture the
//! variables of the kernel by reference.

use crate::cuda::Printer;
use crate::cuda::expr::text;
use crate::cuda::types::ty;
use crate::ir::{Expr, Kernel, Section, Stmt, Var, VerifiedKernel};
use std::collections::HashMap;
use std::ops::Range;
use std::ptr;

/// Functions of a kernel's sections.
#[derive(Default)]
pub(in crate::cuda) struct SectionFunctions<'k> {
    names: HashMap<*const Section, String>,
    /// For each statement: the functions that are defined before it, each with its sections.
    before: HashMap<*const Stmt, Vec<Vec<&'k Section>>>,
}

impl<'k> SectionFunctions<'k> {
    /// Finds the functions of a kernel. Sections share one if they have the same name and text, and
    /// capture the same variables.
    pub fn of_kernel(kernel: &'k VerifiedKernel) -> Self {
        let mut found = Self::default();
        let mut groups: Vec<(String, Captured, Vec<&'k Section>)> = Vec::new();
        for section in kernel.sections() {
            let of_section = (definition(kernel, section, ""), captured(section));
            let same = |(text, captured, _): &(String, Captured, Vec<_>)| {
                (text, captured) == (&of_section.0, &of_section.1)
            };
            match groups.iter_mut().find(|group| same(group)) {
                Some((.., sections)) => sections.push(section),
                None => groups.push((of_section.0, of_section.1, vec![section])),
            }
        }
        for (n, (.., sections)) in groups.iter().enumerate() {
            let name = &sections[0].name;
            let earlier = groups[..n].iter().filter(|(.., other)| other[0].name == *name).count();
            let name = if earlier == 0 { name.clone() } else { format!("{name}_{}", earlier + 1) };
            for section in sections {
                found.names.insert(ptr::from_ref(*section), name.clone());
            }
            if let Some(anchor) = anchor(&kernel.body, sections) {
                found.before.entry(ptr::from_ref(anchor)).or_default().push(sections.clone());
            }
        }
        found
    }

    fn name<'s>(&'s self, section: &'s Section) -> &'s str {
        self.names.get(&ptr::from_ref(section)).unwrap_or(&section.name)
    }
}

/// First statement with one of the sections, in the innermost block that contains all of them.
fn anchor<'k>(block: &'k [Stmt], sections: &[&Section]) -> Option<&'k Stmt> {
    let has = |stmts: &[Stmt], section: &Section| {
        let mut found = false;
        stmts.iter().for_each(|stmt| {
            stmt.visit(&mut |stmt| {
                found |= matches!(stmt, Stmt::Section(own) if ptr::eq(own, section));
            });
        });
        found
    };
    let all = |stmts: &[Stmt]| sections.iter().all(|section| has(stmts, section));
    for stmt in block {
        let inner: [&[Stmt]; 2] = match stmt {
            Stmt::If { then, otherwise, .. } => [then, otherwise],
            Stmt::For(l) => [&l.body, &[]],
            _ => continue,
        };
        if let Some(inner) = inner.into_iter().find(|inner| all(inner)) {
            return anchor(inner, sections);
        }
    }
    let first = sections.first()?;
    block.iter().find(|stmt| has(std::slice::from_ref(stmt), first))
}

/// Variables of the kernel that a section reads or changes.
type Captured = Vec<Var>;

fn captured(section: &Section) -> Captured {
    let (mut own, mut captured): (Vec<Var>, Captured) = (Vec::new(), Vec::new());
    let (params, body) = section.body.split_at(section.params);
    own.extend(params.iter().filter_map(declared));
    let mut note = |own: &[Var], var: Var| {
        if !own.contains(&var) && !captured.contains(&var) {
            captured.push(var);
        }
    };
    for stmt in body {
        stmt.visit(&mut |stmt| {
            if let Stmt::For(l) = stmt {
                own.push(l.var);
            }
            stmt.visit_exprs(&mut |e| {
                if let Expr::Var(var) = e {
                    note(&own, *var);
                }
            });
            if let Stmt::Assign { var, .. } = stmt {
                note(&own, *var);
            }
            own.extend(declared(stmt));
        });
    }
    captured
}

fn declared(stmt: &Stmt) -> Option<Var> {
    match stmt {
        Stmt::Let { var, .. } | Stmt::Mut { var, .. } => Some(*var),
        Stmt::Atomic(atomic) => atomic.old,
        _ => None,
    }
}

/// Text of a function definition, for comparison.
fn definition(kernel: &VerifiedKernel, section: &Section, name: &str) -> String {
    let mut out = Printer::new(kernel);
    define(&mut out, section, name);
    section.name.clone() + &out.text
}

/// Prints the functions that are defined before a statement. Returns true if there are any.
pub(super) fn functions(out: &mut Printer<'_>, before: &Stmt, inside: bool) -> bool {
    let Some(functions) = out.sections.before.remove(&ptr::from_ref(before)) else { return false };
    for (n, sections) in functions.iter().enumerate() {
        if inside || n > 0 {
            out.line("");
        }
        let first = out.text.matches('\n').count();
        for (n, section) in sections.iter().enumerate() {
            let mut own = Printer::new(out.kernel);
            own.level = out.level;
            own.places = out.places.as_ref().map(|_| HashMap::new());
            define(&mut own, section, out.sections.name(section));
            if n == 0 {
                out.text.push_str(&own.text);
            }
            if let (Some(places), Some(own)) = (&mut out.places, own.places) {
                let shifted = |Range { start, end }| start + first..end + first;
                places.extend(own.into_iter().map(|(stmt, lines)| (stmt, shifted(lines))));
            }
        }
    }
    if !functions.is_empty() {
        out.line("");
    }
    !functions.is_empty()
}

fn define(out: &mut Printer<'_>, section: &Section, name: &str) {
    let k: &Kernel = out.kernel;
    let (params, body) = section.body.split_at(section.params);
    let texts = params.iter().filter_map(declared).map(|v| format!("{} {}", ty(v.ty), k[v].name));
    let texts = texts.collect::<Vec<_>>().join(", ");
    out.comments(section.meaning.lines());
    out.noted(params, |out| out.line(format!("const auto {name} = [&]({texts}) {{")));
    out.indented(|out| super::block(out, body));
    out.line("};");
}

/// Text of the call of a section's function.
pub(super) fn call(out: &Printer<'_>, section: &Section) -> String {
    let args = section.body.iter().take(section.params).filter_map(|stmt| match stmt {
        Stmt::Let { value, .. } => Some(text(out.kernel, value)),
        _ => None,
    });
    format!("{}({});", out.sections.name(section), args.collect::<Vec<_>>().join(", "))
}
