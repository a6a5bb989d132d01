//! What synchronises: barriers, fences, atomics. CUDA C spells the common ones; for the others the
//! text defines device functions of one PTX instruction each.

use super::WIDTH;
use super::expr::{element, element_type, text};
use crate::ir::{Atomic, AtomicOp, Elem, Kernel, Order, Scope, Space};

/// Whether a function that is called here, or defined, may have this name. Those of atomics are made of
/// an operation, an order, a scope and a space.
pub(super) fn takes(name: &str) -> bool {
    let barriers = [true, false].map(named_barrier);
    let fences = [Scope::Block, Scope::Device].map(|scope| fence(Order::AcqRel, scope));
    name.starts_with("atomic") || barriers.contains(&name) || fences.contains(&name)
}

/// The statement of a barrier of all threads of a scope.
pub(super) fn barrier(scope: Scope) -> &'static str {
    match scope {
        Scope::Warp => "__syncwarp();",
        Scope::Block => "__syncthreads();",
        Scope::Device => unreachable!("verified: no barrier of all blocks"),
    }
}

/// The function of a barrier with an id and a number of threads.
pub(super) fn named_barrier(wait: bool) -> &'static str {
    if wait { "named_barrier" } else { "named_arrive" }
}

pub(super) fn named_barrier_definition(wait: bool) -> &'static str {
    if wait { NAMED_BARRIER } else { NAMED_ARRIVE }
}

const NAMED_BARRIER: &str = "\
// Waits at a barrier of the block until so many threads have come, by whole warps.
__device__ __forceinline__ void named_barrier(int id, int threads)
{
    asm volatile(\"bar.sync %0, %1;\" :: \"r\"(id), \"r\"(threads) : \"memory\");
}
";

const NAMED_ARRIVE: &str = "\
// Comes to a barrier of the block, by whole warps, and does not wait for the others.
__device__ __forceinline__ void named_arrive(int id, int threads)
{
    asm volatile(\"bar.arrive %0, %1;\" :: \"r\"(id), \"r\"(threads) : \"memory\");
}
";

/// The function of a fence.
pub(super) fn fence(order: Order, scope: Scope) -> &'static str {
    match (order == Order::SeqCst, scope == Scope::Block) {
        (true, true) => "__threadfence_block",
        (true, false) => "__threadfence",
        (false, true) => "fence_acq_rel_block",
        (false, false) => "fence_acq_rel",
    }
}

/// The definition of the function of a fence; empty where CUDA C has it.
pub(super) fn fence_definition(order: Order, scope: Scope) -> &'static str {
    match (order == Order::SeqCst, scope == Scope::Block) {
        (true, _) => "",
        (false, true) => FENCE_BLOCK,
        (false, false) => FENCE_DEVICE,
    }
}

const FENCE_DEVICE: &str = "\
// Acquire and release: orders this thread's accesses around it, for all threads of the launch.
__device__ __forceinline__ void fence_acq_rel()
{
    asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\");
}
";

const FENCE_BLOCK: &str = "\
// Acquire and release: orders this thread's accesses around it, for all threads of the block.
__device__ __forceinline__ void fence_acq_rel_block()
{
    asm volatile(\"fence.acq_rel.cta;\" ::: \"memory\");
}
";

/// The call of an atomic operation.
pub(super) fn atomic(k: &Kernel, atomic: &Atomic) -> String {
    let place = format!("&{}", element(k, &atomic.target));
    let expected = match &atomic.op {
        AtomicOp::CompareExchange { expected } => Some(text(k, expected)),
        _ => None,
    };
    let operands: Vec<String> = expected.into_iter().chain([text(k, &atomic.value)]).collect();
    if atomic.order != Order::Relaxed {
        return format!("{}({place}, {})", ordered(k, atomic), operands.join(", "));
    }
    let name = match atomic.op {
        AtomicOp::Add => "atomicAdd",
        AtomicOp::Min => "atomicMin",
        AtomicOp::Max => "atomicMax",
        AtomicOp::Exchange => "atomicExch",
        AtomicOp::CompareExchange { .. } => "atomicCAS",
    };
    let scope = if atomic.scope == Scope::Block { "_block" } else { "" };
    let call = |ty: &str, operands: Vec<String>| {
        format!("{name}{scope}({ty}{place}, {})", operands.join(", "))
    };
    // By the bits, where CUDA C has no function of the type itself.
    let by_bits = |ty: &str, to: &str, back: &str| {
        let bits = operands.iter().map(|e| format!("{to}({e})")).collect();
        format!("{back}({})", call(ty, bits))
    };
    let swaps = matches!(atomic.op, AtomicOp::CompareExchange { .. });
    let orders = matches!(atomic.op, AtomicOp::Min | AtomicOp::Max);
    match atomic.target.buffer.elem {
        Elem::F32 if swaps => by_bits("(int*)", "__float_as_int", "__int_as_float"),
        Elem::F64 => {
            let ty = "(unsigned long long*)";
            by_bits(ty, "__double_as_longlong", "__longlong_as_double")
        }
        // Sums and moves are those of unsigned numbers; `size_t` is no `unsigned long long` in C++.
        Elem::U64 => call("(unsigned long long*)", operands),
        Elem::I64 if !orders => call("(unsigned long long*)", operands),
        _ => call("", operands),
    }
}

/// The function of an atomic operation that orders more than itself.
fn ordered(k: &Kernel, atomic: &Atomic) -> String {
    let order = match atomic.order {
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::Relaxed | Order::SeqCst => unreachable!("verified, and relaxed ones are CUDA's own"),
    };
    let scope = if atomic.scope == Scope::Block { "_block" } else { "" };
    let space = if is_shared(k, atomic) { "_shared" } else { "" };
    format!("atomic_{}_{order}{scope}{space}", atomic.op.name())
}

fn is_shared(k: &Kernel, atomic: &Atomic) -> bool {
    k[atomic.target.buffer].space == Space::Shared
}

/// The definition of the function of an atomic operation; empty where CUDA C has it.
pub(super) fn atomic_definition(k: &Kernel, atomic: &Atomic) -> String {
    let (order, meaning) = match atomic.order {
        Order::Relaxed => return String::new(),
        Order::Acquire => ("acquire", "what follows comes after it"),
        Order::Release => ("release", "what precedes comes before it"),
        Order::AcqRel => ("acq_rel", "nothing passes it"),
        Order::SeqCst => unreachable!("verified: an atomic is no fence"),
    };
    let (scope, audience) = match atomic.scope {
        Scope::Block => ("cta", "for the block"),
        _ => ("gpu", "for all blocks"),
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
    let instruction = format!("atom.{order}.{scope}.{space}.{}", operation(&atomic.op, elem));
    let (operands, inputs) = if expects {
        ("%2, %3", format!("\"{c}\"(expected), \"{c}\"(value)"))
    } else {
        ("%2", format!("\"{c}\"(value)"))
    };
    let what = match atomic.op {
        AtomicOp::Add => "Adds to a word",
        AtomicOp::Min => "Takes the smaller for a word",
        AtomicOp::Max => "Takes the greater for a word",
        AtomicOp::Exchange => "Replaces a word",
        AtomicOp::CompareExchange { .. } => "Replaces a word that is as expected",
    };
    let head = format!("__device__ __forceinline__ {ty} {}(", ordered(k, atomic));
    let expected = if expects { format!("{ty} expected, ") } else { String::new() };
    let params = format!("{ty}* at, {expected}{ty} value)");
    let gap = if head.len() + params.len() > WIDTH { "\n    " } else { "" };
    format!(
        "\
// {what}, in {space} memory, {audience}; {meaning}.
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

/// An operation of PTX with its type. A sum of signed numbers has the bits of one of unsigned ones.
fn operation(op: &AtomicOp, elem: Elem) -> String {
    let signed = if elem.is_signed() { 's' } else { 'u' };
    let (name, kind) = match op {
        AtomicOp::Add => ("add", 'u'),
        AtomicOp::Min => ("min", signed),
        AtomicOp::Max => ("max", signed),
        AtomicOp::Exchange => ("exch", 'b'),
        AtomicOp::CompareExchange { .. } => ("cas", 'b'),
    };
    format!("{name}.{kind}{}", 8 * elem.size())
}

/// The registers that hold an element, as inline assembly names them.
fn constraint(elem: Elem) -> char {
    match (elem.is_float(), elem.size()) {
        (true, 8) => 'd',
        (true, _) => 'f',
        (false, 8) => 'l',
        (false, _) => 'r',
    }
}
