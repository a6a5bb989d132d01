//! Source before the kernel's body: head comment, device functions, constants, signature and shared
//! arrays.

use super::expr::text;
use super::stmt::{self, declaration, extents};
use super::types::{self, element_type, ty};
use super::{Printer, WIDTH};
use super::{helper, launch};
use crate::ir::contract::ArrayParameter;
use crate::ir::{
    BufferLayout, Expr, Kernel, MemoryOrder, ParamKind, Requirement, Scalar, Space, Stmt, Ty,
    VECTOR_BYTES, Var, VerifiedKernel, listed,
};
use crate::target::arch::{MEMORY_ORDERS, OLDEST};

/// Name of the array for dynamic shared memory.
pub(super) const SHARED: &str = "shared_memory";

/// Type of the struct that contains the arrays in dynamic shared memory.
const SHARED_ARRAYS: &str = "Shared";

pub(super) fn head(out: &mut Printer<'_>) {
    let k: &Kernel = out.kernel;
    for line in &k.title {
        out.line(format!("// {line}"));
    }
    let mut facts = required(k);
    if !k.title.is_empty() {
        facts.splice(0..0, architecture(out.kernel));
    }
    if !facts.is_empty() {
        out.line(format!("// Requires: {}.", facts.join("; ")));
    }
    if !k.title.is_empty() {
        for line in launch::sentences(out.kernel) {
            out.line(format!("// {line}"));
        }
    }
    out.line("");
}

/// Architecture that the kernel requires; `None` if every architecture will do.
fn architecture(k: &VerifiedKernel) -> Option<String> {
    let mut is_ordered = false;
    k.visit(&mut |stmt| {
        is_ordered |= match stmt {
            Stmt::Atomic(atomic) => atomic.order != MemoryOrder::Relaxed,
            Stmt::Fence { order, .. } => *order != MemoryOrder::SeqCst,
            _ => false,
        };
    });
    match k.min_arch() {
        arch if k.contract().is_specific => Some(format!("sm_{arch}a")),
        arch if arch > OLDEST => Some(format!("sm_{arch} or later")),
        _ => is_ordered.then(|| format!("sm_{MEMORY_ORDERS} or later")),
    }
}

/// Maximum value of a scalar parameter of this type.
fn widest(scalar: Scalar) -> u64 {
    if scalar.ty == Ty::I32 { i32::MAX as u64 } else { u64::MAX }
}

/// Prints a limit, in terms of a power of two if it is near one.
fn power(limit: u64) -> String {
    let above = limit.next_power_of_two();
    match above - limit {
        below @ 1..=2 if limit > 1 << 16 => format!("2^{} - {below}", above.ilog2()),
        _ => limit.to_string(),
    }
}

/// Sentences on the divisibility, alignment and limits that a launch must meet, except limits near
/// those of the parameter's type. Parameters with the same
/// requirement share a sentence, and a requirement that another one implies is omitted.
fn required(k: &Kernel) -> Vec<String> {
    let is_implied = |scalar: Scalar, of: u64| {
        k.requires.iter().any(|other| {
            matches!(*other, Requirement::Multiple { scalar: same, of: greater }
                if same.param == scalar.param && greater > of && greater.is_multiple_of(of))
        })
    };
    let mut facts: Vec<([String; 2], Vec<String>)> = Vec::new();
    let mut note = |name: String, is: [String; 2]| match facts.iter_mut().find(|(of, _)| *of == is)
    {
        Some((_, names)) if names.contains(&name) => {}
        Some((_, names)) => names.push(name),
        None => facts.push((is, vec![name])),
    };
    for requirement in &k.requires {
        match *requirement {
            Requirement::Multiple { scalar, of } if of > 1 && !is_implied(scalar, of) => {
                let is = [format!("is a multiple of {of}"), format!("are multiples of {of}")];
                note(k.params[scalar.param].name.clone(), is);
            }
            Requirement::Aligned { operand: aligned, bytes } => {
                let is = ["is", "are"].map(|verb| format!("{verb} aligned to {bytes} bytes"));
                for param in &k.params {
                    if let ParamKind::Buffer { buffer, operand } = param.kind
                        && operand == aligned
                    {
                        let listed = matches!(k[buffer].layout, BufferLayout::Listed { .. });
                        let each = if listed { "[i]" } else { "" };
                        note(format!("{}{each}", param.name), is.clone());
                    }
                }
            }
            Requirement::Range { scalar, min: 0, max } if max < widest(scalar) / 4 => {
                let limit = power(max);
                note(
                    k.params[scalar.param].name.clone(),
                    [&limit, &limit].map(|l| format!("<= {l}")),
                );
            }
            Requirement::Range { scalar, min: min @ 2.., max } => {
                let name = k.params[scalar.param].name.clone();
                note(name, [&min, &min].map(|min| format!(">= {min}")));
                if max < widest(scalar) / 4 {
                    let name = k.params[scalar.param].name.clone();
                    note(name, [&max, &max].map(|max| format!("<= {}", power(*max))));
                }
            }
            Requirement::Multiple { .. }
            | Requirement::Range { .. }
            | Requirement::Piece { .. } => {}
        }
    }
    let sentence = |([one, several], names): ([String; 2], Vec<String>)| {
        let verb = if names.len() > 1 { several } else { one };
        format!("{} {verb}", listed(&names))
    };
    facts.into_iter().map(sentence).collect()
}

/// Prints the device functions that CUDA C++ lacks, once each.
pub(super) fn definitions(out: &mut Printer<'_>) {
    for definition in helper::definitions(out.kernel) {
        out.text.push_str(&definition);
        out.line("");
    }
}

/// Prints the functions of the kernel, in the order of their declaration.
pub(super) fn functions(out: &mut Printer<'_>) {
    let k: &Kernel = out.kernel;
    for function in &k.functions {
        for line in &function.meaning {
            out.line(format!("// {line}"));
        }
        let name = |v: &Var| format!("{} {}", ty(v.ty), k[*v].name);
        let params: Vec<String> = function.params.iter().map(name).collect();
        let result = ty(function.value.ty());
        let params = params.join(", ");
        out.line(format!("__device__ __forceinline__ {result} {}({params})", function.name));
        out.line("{");
        out.indented(|out| {
            stmt::block(out, &function.body);
            out.line(format!("return {};", text(k, &function.value)));
        });
        out.line("}");
        out.line("");
    }
}

pub(super) fn constants(out: &mut Printer<'_>) {
    let k: &Kernel = out.kernel;
    let read = read_constants(k);
    let lines: Vec<(String, &str)> = k
        .consts
        .iter()
        .zip(&read)
        .filter_map(|(c, &read)| read.then_some(c))
        .map(|c| {
            let value = text(k, &c.value);
            (format!("constexpr {} {} = {value};", ty(c.ty), c.name), c.meaning.as_str())
        })
        .collect();
    out.table(&lines);
    if !lines.is_empty() {
        out.line("");
    }
}

/// For each constant, true if the source needs it: the kernel reads it, or another needed constant
/// depends on it.
fn read_constants(k: &Kernel) -> Vec<bool> {
    let mut read = vec![false; k.consts.len()];
    let note = |e: &Expr, read: &mut Vec<bool>| {
        e.visit(&mut |e| {
            if let Expr::Const(c) = e {
                read[c.id] = true;
            }
        });
    };
    k.visit(&mut |stmt| stmt.visit_exprs(&mut |e| note(e, &mut read)));
    for buffer in &k.buffers {
        buffer.dims.iter().for_each(|dim| note(dim, &mut read));
        if let BufferLayout::Array { pad, .. } = &buffer.layout {
            note(pad, &mut read);
        }
    }
    k.mbarriers.iter().for_each(|decl| note(&decl.count, &mut read));
    let head = k.launch_bounds.iter().chain(&k.cluster_name);
    head.for_each(|e| note(e, &mut read));
    // A constant depends only on constants before it.
    for (id, c) in k.consts.iter().enumerate().rev() {
        if read[id] {
            note(&c.value, &mut read);
        }
    }
    read
}

/// Cluster attribute of a kernel; empty if it has no clusters.
fn cluster_attribute(k: &Kernel) -> String {
    match (k.cluster, &k.cluster_name) {
        (1, _) => String::new(),
        (_, Some(named)) => format!(" __cluster_dims__({}, 1, 1)", text(k, named)),
        (blocks, None) => format!(" __cluster_dims__({blocks}, 1, 1)"),
    }
}

pub(super) fn signature(out: &mut Printer<'_>) {
    let k: &Kernel = out.kernel;
    let threads = match &k.launch_bounds {
        Some(named) => text(k, named),
        None => k.geometry.threads().to_string(),
    };
    let bounds = match k.geometry.blocks_per_sm {
        None => threads,
        Some(blocks) => format!("{threads}, {blocks}"),
    };
    let cluster = cluster_attribute(k);
    out.line(format!("extern \"C\" __global__ void{cluster} __launch_bounds__({bounds})"));
    // Text of each parameter, with true for a pointer.
    let params: Vec<(bool, String)> = k
        .params
        .iter()
        .map(|p| match &p.kind {
            ParamKind::Buffer { buffer, .. } => {
                let of = element_type(buffer.elem);
                let constant = stmt::constant(out.kernel, *buffer);
                // The kernel only reads the pointers of a list, even if it writes to the arrays.
                let listed = matches!(k[*buffer].layout, BufferLayout::Listed { .. });
                let list = if listed { " const*" } else { "" };
                let alone = listed || is_alone(out.kernel, &p.name);
                let alone = if alone { " __restrict__" } else { "" };
                (true, format!("{constant}{of}*{list}{alone} {}", p.name))
            }
            ParamKind::TensorMap { .. } => {
                (true, format!("const __grid_constant__ {} {}", types::TENSOR_MAP, p.name))
            }
            ParamKind::Scalar { ty: of, .. } => (false, format!("{} {}", ty(*of), p.name)),
        })
        .collect();
    let all: Vec<&str> = params.iter().map(|(_, text)| text.as_str()).collect();
    let one_line = format!("{}({})", k.name, all.join(", "));
    if one_line.len() <= WIDTH {
        out.line(one_line);
        return;
    }
    out.line(format!("{}(", k.name));
    out.indented(|out| {
        // Parameters stay in launch order, but pointers and numbers are on separate lines.
        let mut line = String::new();
        for (i, (pointer, param)) in params.iter().enumerate() {
            let last = i + 1 == params.len();
            line.push_str(param);
            line.push_str(if last { ")" } else { "," });
            let next = params.get(i + 1);
            let turns = next.is_some_and(|(next, _)| next != pointer);
            let full = next.is_some_and(|(_, next)| line.len() + next.len() + 6 > WIDTH);
            if last || turns || full {
                out.line(std::mem::take(&mut line));
            } else {
                line.push(' ');
            }
        }
    });
}

/// Returns true if no thread reads an element of the array that another thread writes, so the
/// pointer may be `__restrict__`. NVRTC treats the memory of a `__restrict__` pointer as private to
/// the thread: it caches reads, and delays writes across barriers, fences and atomics. With
/// inter-block synchronisation, another thread may later write an element even of a write-only
/// array, unless the kernel declares the array exclusive.
fn is_alone(k: &VerifiedKernel, array: &str) -> bool {
    let declared = k.buffers.iter().any(|buffer| buffer.name == array && buffer.exclusive);
    let speaks = k.communicates() && !declared;
    let shares = |a: &ArrayParameter| a.is_written && (a.is_read || speaks);
    !k.in_place && !k.contract().arrays().any(|a| a.name == array && shares(a))
}

/// Prints shared arrays. If they exceed the static limit, prints references into dynamic shared
/// memory.
pub(super) fn shared(out: &mut Printer<'_>) {
    let k = out.kernel;
    let arrays = k.buffers.iter().zip(k.alignments());
    let arrays: Vec<_> = arrays.filter(|(b, _)| b.space == Space::Shared).collect();
    if arrays.is_empty() && k.mbarriers.is_empty() {
        return;
    }
    if !k.shared_is_dynamic() {
        for (array, alignment) in arrays {
            let mut text = declaration(k, array);
            if alignment > u64::from(VECTOR_BYTES) {
                let plain = text.strip_prefix("alignas(16) ").unwrap_or(&text);
                text = format!("alignas({alignment}) {plain}");
            }
            let text = format!("__shared__ {text};");
            out.line_with(&text, &array.meaning);
        }
        for decl in &k.mbarriers {
            let (of, count) = (types::MBARRIER, text(k, &decl.count));
            out.line_with(&format!("__shared__ {of} {}[{count}];", decl.name), &decl.meaning);
        }
        out.line("");
        return;
    }
    // Every array is aligned to at least 16 bytes, as in `verify::buffers::shared_bytes`.
    let most = arrays.iter().map(|(_, alignment)| *alignment).fold(VECTOR_BYTES.into(), u64::max);
    let (mut names, mut members) = (Vec::new(), Vec::new());
    for (array, alignment) in arrays {
        let (alignment, ty) = (alignment.max(VECTOR_BYTES.into()), element_type(array.elem));
        let text = format!("alignas({alignment}) {ty} {}{};", array.name, extents(k, array));
        members.push((text, array.meaning.as_str()));
        names.push(array.name.as_str());
    }
    for decl in &k.mbarriers {
        let (ty, count) = (types::MBARRIER, text(k, &decl.count));
        let text = format!("alignas({VECTOR_BYTES}) {ty} {}[{count}];", decl.name);
        members.push((text, decl.meaning.as_str()));
        names.push(decl.name.as_str());
    }
    out.line(format!("struct {SHARED_ARRAYS} {{"));
    out.indented(|out| out.table(&members));
    out.line("};");
    out.line(format!("extern __shared__ __align__({most}) unsigned char {SHARED}[];"));
    let arrays = format!("*reinterpret_cast<{SHARED_ARRAYS}*>({SHARED})");
    if k.sections().is_empty() {
        out.line(format!("auto& [{}] = {arrays};", names.join(", ")));
    } else {
        // In C++17, a lambda cannot capture a structured binding.
        out.line(format!("auto& shared = {arrays};"));
        names.iter().for_each(|name| out.line(format!("auto& {name} = shared.{name};")));
    }
    out.line("");
}
