//! Prints IR statements as CUDA C++ statements.

pub(super) mod section;

use super::expr::{self, element, indexed, operand, text};
use super::helper::{self, sync};
use super::types::{self, dims_of, element_type};
use super::{Printer, WIDTH, asynchronous, atomic};
use crate::ir::{
    Access, Buffer, BufferId, BufferLayout, Change, Expr, Kernel, LoadMatrix, Loop, Mma,
    PointerRef, Stmt, Ty, Unroll, Var, VerifiedKernel,
};

/// Prints a block. A comment starts a new phase of the kernel, so a blank line precedes the
/// comment.
pub(super) fn block(out: &mut Printer<'_>, stmts: &[Stmt]) {
    let mut rest = stmts;
    while let [first, others @ ..] = rest {
        let count = rest.iter().take_while(|stmt| matches!(stmt, Stmt::Comment(_))).count();
        if count == 0 {
            section::functions(out, first, rest.len() < stmts.len());
            if let Some((buffer, at)) = initialised_pointer(out.kernel, rest) {
                let text =
                    format!("{} = &{};", declaration(out.kernel, buffer), element(out.kernel, at));
                out.noted(&rest[..2], |out| out.line_with(&text, &buffer.meaning));
                rest = &rest[2..];
                continue;
            }
            out.noted(std::slice::from_ref(first), |out| print(out, first));
            rest = others;
            continue;
        }
        let (comments, behind) = rest.split_at(count);
        // Functions stand before the comment on the statement that needs them.
        let inside = rest.len() < stmts.len();
        let defined = behind.first().is_some_and(|next| section::functions(out, next, inside));
        if inside && !defined {
            out.line("");
        }
        let lines = comments.iter().filter_map(|stmt| match stmt {
            Stmt::Comment(line) => Some(line.as_str()),
            _ => None,
        });
        out.noted(comments, |out| out.comments(lines));
        rest = behind;
    }
}

fn print(out: &mut Printer<'_>, stmt: &Stmt) {
    let k: &Kernel = out.kernel;
    match stmt {
        Stmt::Comment(_) => unreachable!("block: it prints comments that stand together"),
        Stmt::If { cond, then, otherwise } => branch(out, cond, then, otherwise),
        Stmt::For(l) => counted(out, l),
        Stmt::Section(section) => {
            let call = section::call(out, section);
            out.line(call);
        }
        Stmt::Registers { buffer, zeroed } => {
            let buffer = &k[*buffer];
            let init = if *zeroed { " = {}" } else { "" };
            out.line_with(&format!("{}{init};", declaration(k, buffer)), &buffer.meaning);
        }
        Stmt::Choose { buffer, nth } => {
            let (list, decl) = (k.memory_of(*buffer), &k[*buffer]);
            let (of, constant) = (element_type(decl.elem), constant(out.kernel, list));
            let (name, list) = (&decl.name, &k[list].name);
            out.line(format!("{constant}{of}* const {name} = {list}[{}];", text(k, nth)));
        }
        Stmt::Mbarrier(_)
        | Stmt::ProxyFence(_)
        | Stmt::TensorCopy(_)
        | Stmt::Wgmma(_)
        | Stmt::WgmmaSync(_)
        | Stmt::RegisterLimit(_) => asynchronous::print(out, stmt),
        Stmt::Let { .. }
        | Stmt::Mut { .. }
        | Stmt::Assign { .. }
        | Stmt::Store { .. }
        | Stmt::StoreRemote { .. }
        | Stmt::Barrier(_)
        | Stmt::NamedBarrier { .. }
        | Stmt::Fence { .. }
        | Stmt::Atomic(_)
        | Stmt::CopyAsync { .. }
        | Stmt::Point { .. }
        | Stmt::Advance { .. }
        | Stmt::LoadMatrix(_)
        | Stmt::Mma(_)
        | Stmt::CopyCommit
        | Stmt::CopyWait { .. } => {
            let line = simple(k, stmt);
            out.line(line);
        }
    }
}

/// Text of a store to shared memory of another block; empty for other statements.
fn store_remote(k: &Kernel, stmt: &Stmt) -> String {
    let Stmt::StoreRemote { block, target, value, barrier } = stmt else { return String::new() };
    let (place, block, value) = (element(k, target), text(k, block), text(k, value));
    match barrier {
        None => format!("{}(&{place}, {block}, {value});", helper::cluster::store(target)),
        Some(barrier) => {
            let barrier = asynchronous::barrier(k, barrier);
            format!("{}(&{place}, {block}, {value}, &{barrier});", helper::cluster::STORE)
        }
    }
}

/// Text of a statement that fits on one line.
fn simple(k: &Kernel, stmt: &Stmt) -> String {
    let name = |v: &Var| k[*v].name.as_str();
    match stmt {
        Stmt::Let { var, value } => {
            let ty = if k[*var].is_unsigned { Ty::U32 } else { var.ty };
            format!("const {} {} = {};", types::ty(ty), name(var), text(k, value))
        }
        Stmt::Mut { var, value } => {
            format!("{} {} = {};", types::ty(var.ty), name(var), text(k, value))
        }
        Stmt::Assign { var, value } => assignment(k, name(var).to_owned(), &Expr::Var(*var), value),
        Stmt::Store { target, value } => {
            let place = element(k, target);
            if target.is_vector() {
                let store = helper::vector::store(target.buffer.elem);
                return format!("{store}(&{place}, {});", text(k, value));
            }
            assignment(k, place, &Expr::Load(target.clone()), value)
        }
        Stmt::StoreRemote { .. } => store_remote(k, stmt),
        Stmt::Barrier(scope) => sync::barrier(*scope).into(),
        Stmt::NamedBarrier { id, threads, wait } => {
            format!("{}({id}, {threads});", sync::named_barrier(*wait))
        }
        Stmt::Fence { order, scope } => format!("{}();", sync::fence(*order, *scope)),
        Stmt::Atomic(atomic) => match &atomic.old {
            Some(old) => {
                let (ty, name, call) = (types::ty(old.ty), name(old), atomic::call(k, atomic));
                format!("const {ty} {name} = {call};")
            }
            None => format!("{};", atomic::call(k, atomic)),
        },
        Stmt::CopyAsync { target, source, guard } => {
            let function = helper::copy(target, guard.as_ref());
            let (target, source) = (element(k, target), element(k, source));
            match guard {
                None => format!("{function}(&{target}, &{source});"),
                Some(guard) => {
                    format!("{function}(&{target}, &{source}, {});", text(k, &guard.cond))
                }
            }
        }
        Stmt::Point { pointer: p, at } => format!("{} = &{};", pointer(k, p), element(k, at)),
        Stmt::Advance { pointer: p, by } => format!("{} += {};", pointer(k, p), text(k, by)),
        Stmt::LoadMatrix(LoadMatrix { count, transposed, to, from }) => {
            let function = helper::load_matrix(*count, *transposed);
            format!("{function}(&{}, &{});", element(k, to), element(k, from))
        }
        Stmt::Mma(Mma { format, d, a, b }) => {
            let [d, a, b] = [d, a, b].map(|first| fragment(k, first));
            format!("{}({d}, {a}, {b});", helper::mma(*format))
        }
        Stmt::CopyCommit => format!("{}();", helper::COMMIT),
        Stmt::CopyWait { pending } => {
            let pending = text(k, pending);
            // A `>` outside parentheses would end the template argument.
            let pending = if pending.contains('>') { format!("({pending})") } else { pending };
            format!("{}<{pending}>();", helper::WAIT)
        }
        Stmt::Comment(_)
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Section(_)
        | Stmt::Registers { .. }
        | Stmt::Choose { .. }
        | Stmt::Mbarrier(_)
        | Stmt::ProxyFence(_)
        | Stmt::TensorCopy(_)
        | Stmt::Wgmma(_)
        | Stmt::WgmmaSync(_)
        | Stmt::RegisterLimit(_) => {
            unreachable!("printed by itself")
        }
    }
}

/// Returns `const ` if the kernel only reads the elements of a parameter.
pub(super) fn constant(k: &VerifiedKernel, buffer: BufferId) -> &'static str {
    let name = &k[buffer].name;
    let written = k.contract().arrays().any(|array| array.name == *name && array.is_written);
    if written { "" } else { "const " }
}

/// Array with a lane's part of a matrix.
fn fragment(k: &Kernel, first: &Access) -> String {
    indexed(k, first.buffer, first.index.split_last().map_or(&[], |(_, index)| index))
}

fn pointer(k: &Kernel, p: &PointerRef) -> String {
    indexed(k, p.buffer, &p.index)
}

/// Returns `place = value;`, or `place op= …;` if the left operand of the value is the old content
/// of `place`.
fn assignment(k: &Kernel, place: String, old: &Expr, value: &Expr) -> String {
    if let Expr::Binary(op, left, right) = value
        && **left == *old
        && let Some(sign) = expr::compound(*op)
    {
        return format!("{place} {sign}= {};", expr::right_operand(k, *op, left, right));
    }
    format!("{place} = {};", text(k, value))
}

fn branch(out: &mut Printer<'_>, cond: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
    let k: &Kernel = out.kernel;
    let head = format!("if ({})", text(k, cond));
    if let ([only @ (Stmt::Assign { .. } | Stmt::Store { .. })], []) = (then, otherwise) {
        let line = format!("{head} {}", simple(k, only));
        if 4 * out.level + line.len() <= WIDTH {
            return out.noted(then, |out| out.line(line));
        }
    }
    out.line(format!("{head} {{"));
    out.indented(|out| block(out, then));
    match otherwise {
        [] => {}
        inner @ [Stmt::If { cond, then, otherwise }] => {
            // The output is `} else if (…) {`: the inner branch is printed on the line that closes
            // the outer one.
            let start = out.text.len();
            out.noted(inner, |out| branch(out, cond, then, otherwise));
            let indent = " ".repeat(4 * out.level);
            let own = out.text.split_off(start);
            let own = own.strip_prefix(&indent).unwrap_or(&own).to_owned();
            out.text.push_str(&format!("{indent}}} else {own}"));
            return;
        }
        _ => {
            out.line("} else {");
            out.indented(|out| block(out, otherwise));
        }
    }
    out.line("}");
}

fn counted(out: &mut Printer<'_>, l: &Loop) {
    let k: &Kernel = out.kernel;
    let name = &k[l.var].name;
    let step = match &l.change {
        Change::Add(Expr::I32(1) | Expr::U64(1)) => format!("++{name}"),
        Change::Sub(Expr::I32(1) | Expr::U64(1)) => format!("--{name}"),
        Change::Add(by) => format!("{name} += {}", operand(k, by)),
        Change::Sub(by) => format!("{name} -= {}", operand(k, by)),
        Change::Mul(by) => format!("{name} *= {}", operand(k, by)),
        Change::Div(by) => format!("{name} /= {}", operand(k, by)),
    };
    match l.unroll {
        Unroll::Auto => {}
        Unroll::Full => out.line("#pragma unroll"),
        Unroll::By(u) => out.line(format!("#pragma unroll {u}")),
    }
    let (from, test) = (text(k, &l.from), text(k, &l.test));
    out.line(format!("for ({} {name} = {from}; {test}; {step}) {{", types::ty(l.var.ty)));
    out.indented(|out| block(out, &l.body));
    out.line("}");
}

/// Returns `float name[d0][d1]`, with an alignment if some access has 16 bytes.
pub(super) fn declaration(k: &Kernel, buffer: &Buffer) -> String {
    if let BufferLayout::Pointer { .. } = buffer.layout {
        let dims: String = buffer.dims.iter().map(|d| format!("[{}]", text(k, d))).collect();
        return format!("const {}* {}{dims}", element_type(buffer.elem), buffer.name);
    }
    let align = if is_vector_accessed(k, buffer) { "alignas(16) " } else { "" };
    format!("{align}{} {}{}", element_type(buffer.elem), buffer.name, extents(k, buffer))
}

/// Returns `[d0][d1]`, the physical extents of a C array.
pub(super) fn extents(k: &Kernel, buffer: &Buffer) -> String {
    dims_of(buffer).iter().map(|d| format!("[{}]", text(k, d))).collect()
}

/// Returns the pointer that the first statement declares, and the element to which the second one
/// sets it.
fn initialised_pointer<'k>(k: &'k Kernel, stmts: &'k [Stmt]) -> Option<(&'k Buffer, &'k Access)> {
    match stmts {
        [Stmt::Registers { buffer, .. }, Stmt::Point { pointer, at }, ..]
            if pointer.buffer == *buffer && pointer.index.is_empty() =>
        {
            Some((&k[*buffer], at))
        }
        _ => None,
    }
}

/// Returns true if some statement accesses the buffer 16 bytes at a time.
fn is_vector_accessed(k: &Kernel, buffer: &Buffer) -> bool {
    let mut found = false;
    let mut note = |access: &Access| {
        found |= access.is_vector() && std::ptr::eq(&k[access.buffer], buffer);
    };
    k.visit_exprs(&mut |e| {
        if let Expr::Load(access) = e {
            note(access);
        }
    });
    k.visit(&mut |stmt| match stmt {
        Stmt::Store { target, .. } | Stmt::StoreRemote { target, .. } => note(target),
        Stmt::CopyAsync { target, source, .. } => {
            note(target);
            note(source);
        }
        _ => {}
    });
    found
}
