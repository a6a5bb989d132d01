//! Atomic operations. Relaxed atomics are CUDA C++ functions, some of which support only some
//! types. The source defines a function for each load and each other atomic, for one element type
//! and one memory space.

use crate::cuda::WIDTH;
use crate::cuda::types::element_type;
use crate::ir::{Atomic, AtomicOp, Elem, Kernel, MemoryOrder, Scope, Space};

/// Name, CUDA C++ function and PTX operation of each atomic operation.
const ATOMICS: [(&str, &str, &str); 6] = [
    ("load", "", "ld"),
    ("add", "atomicAdd", "add"),
    ("min", "atomicMin", "min"),
    ("max", "atomicMax", "max"),
    ("exchange", "atomicExch", "exch"),
    ("compare_exchange", "atomicCAS", "cas"),
];

fn row(op: &AtomicOp) -> (&'static str, &'static str, &'static str) {
    let row = ATOMICS.into_iter().find(|(name, ..)| *name == op.name());
    row.unwrap_or_else(|| unreachable!("the table has every operation"))
}

/// Name of the function that performs an atomic operation.
pub(in crate::cuda) fn name(k: &Kernel, atomic: &Atomic) -> String {
    let (name, cuda, _) = row(&atomic.op);
    match atomic.order {
        MemoryOrder::Relaxed if atomic.op != AtomicOp::Load => relaxed(cuda, atomic.scope),
        order => ordered(name, order, atomic.scope, is_shared(k, atomic)),
    }
}

/// CUDA's built-in function for a relaxed atomic.
fn relaxed(cuda: &str, scope: Scope) -> String {
    format!("{cuda}{}", within(scope))
}

/// Name of the function for an atomic that also orders other accesses.
fn ordered(name: &str, order: MemoryOrder, scope: Scope, shared: bool) -> String {
    let space = if shared { "_shared" } else { "" };
    format!("atomic_{name}_{}{}{space}", qualifier(order), within(scope))
}

fn within(scope: Scope) -> &'static str {
    if scope == Scope::Block { "_block" } else { "" }
}

/// PTX spelling of a memory order.
fn qualifier(order: MemoryOrder) -> &'static str {
    match order {
        MemoryOrder::Relaxed => "relaxed",
        MemoryOrder::Acquire => "acquire",
        MemoryOrder::Release => "release",
        MemoryOrder::AcqRel => "acq_rel",
        MemoryOrder::SeqCst => unreachable!("verified: an atomic is not a fence"),
    }
}

fn is_shared(k: &Kernel, atomic: &Atomic) -> bool {
    k[atomic.target.buffer].space == Space::Shared
}

/// Definition of the function for an atomic operation; empty if it is built into CUDA C++.
pub(in crate::cuda) fn definition(k: &Kernel, atomic: &Atomic) -> String {
    let meaning = match atomic.order {
        MemoryOrder::Relaxed if atomic.op == AtomicOp::Load => "relaxed",
        MemoryOrder::Relaxed => return String::new(),
        MemoryOrder::Acquire => "acquire",
        MemoryOrder::Release => "release",
        MemoryOrder::AcqRel | MemoryOrder::SeqCst => "acquire-release",
    };
    let order = qualifier(atomic.order);
    let (scope, audience) = match atomic.scope {
        Scope::Block => ("cta", "block"),
        _ => ("gpu", "device"),
    };
    let shared = is_shared(k, atomic);
    let space = if shared { "shared" } else { "global" };
    let place = if shared { "\"r\"(word)" } else { "\"l\"(at)" };
    let address = if shared {
        "    const unsigned word = (unsigned)__cvta_generic_to_shared(at);\n"
    } else {
        ""
    };
    let (elem, expects) =
        (atomic.target.buffer.elem, matches!(atomic.op, AtomicOp::CompareExchange { .. }));
    let (ty, c) = (element_type(elem), constraint(elem));
    if atomic.op == AtomicOp::Load {
        let instruction = format!("ld.{order}.{scope}.{space}.b{}", 8 * elem.size());
        return format!(
            "\
// Atomic load of a word in {space} memory, {meaning} at {audience} scope.
__device__ __forceinline__ {ty} {}(const {ty}* at)
{{
{address}    {ty} value;
    asm volatile(\"{instruction} %0, [%1];\" : \"={c}\"(value) : {place} : \"memory\");
    return value;
}}
",
            name(k, atomic)
        );
    }
    let instruction = format!("atom.{order}.{scope}.{space}.{}", operation(&atomic.op, elem));
    let (operands, inputs) = if expects {
        ("%2, %3", format!("\"{c}\"(expected), \"{c}\"(value)"))
    } else {
        ("%2", format!("\"{c}\"(value)"))
    };
    let what = match atomic.op {
        AtomicOp::Load => unreachable!("a load is defined above"),
        AtomicOp::Add => "Atomic add to",
        AtomicOp::Min => "Atomic minimum of",
        AtomicOp::Max => "Atomic maximum of",
        AtomicOp::Exchange => "Atomic exchange of",
        AtomicOp::CompareExchange { .. } => "Atomic compare-and-swap of",
    };
    let head = format!("__device__ __forceinline__ {ty} {}(", name(k, atomic));
    let expected = if expects { format!("{ty} expected, ") } else { String::new() };
    let params = format!("{ty}* at, {expected}{ty} value)");
    let gap = if head.len() + params.len() > WIDTH { "\n    " } else { "" };
    format!(
        "\
// {what} a word in {space} memory, {meaning} at {audience} scope.
{head}{gap}{params}
{{
{address}    {ty} old;
    asm volatile(\"{instruction} %0, [%1], {operands};\"
                 : \"={c}\"(old) : {place}, {inputs} : \"memory\");
    return old;
}}
"
    )
}

/// PTX operation with its type. Signed sums use the unsigned operation, which gives the same bits.
fn operation(op: &AtomicOp, elem: Elem) -> String {
    let kind = match op {
        AtomicOp::Load | AtomicOp::Exchange | AtomicOp::CompareExchange { .. } => 'b',
        AtomicOp::Min | AtomicOp::Max if elem.is_signed() => 's',
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => 'u',
    };
    let (_, _, ptx) = row(op);
    format!("{ptx}.{kind}{}", 8 * elem.size())
}

/// Inline-assembly register constraint of an element.
fn constraint(elem: Elem) -> char {
    match (elem.is_float(), elem.size()) {
        (true, 8) => 'd',
        (true, _) => 'f',
        (false, 8) => 'l',
        (false, _) => 'r',
    }
}
