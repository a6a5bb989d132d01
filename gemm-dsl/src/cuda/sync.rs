//! What synchronises: barriers, fences, atomics. CUDA C spells the common ones; for the others the
//! text defines device functions of one PTX instruction each.

use super::expr::{element, element_type, text};
use crate::ir::{Atomic, AtomicOp, Elem, Kernel, Order, Scope, Space};

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
        Order::Acquire => ("acquire", "what follows comes after what it reads"),
        Order::Release => ("release", "what precedes comes before what it writes"),
        Order::AcqRel => ("acq_rel", "what precedes comes before it, what follows after it"),
        Order::SeqCst => unreachable!("verified: an atomic is no fence"),
    };
    let (scope, audience) = match atomic.scope {
        Scope::Block => ("cta", "for the block"),
        _ => ("gpu", "for all blocks"),
    };
    let elem = atomic.target.buffer.elem;
    let (ty, wide) = (element_type(elem), elem.size() == 8);
    let bits = 8 * elem.size();
    // A sum of signed numbers has the bits of one of unsigned numbers.
    let kind = match (&atomic.op, elem.is_signed()) {
        (AtomicOp::Exchange | AtomicOp::CompareExchange { .. }, _) => 'b',
        (AtomicOp::Min | AtomicOp::Max, true) => 's',
        _ => 'u',
    };
    let register = match (elem.is_float(), wide) {
        (true, true) => 'd',
        (true, false) => 'f',
        (false, true) => 'l',
        (false, false) => 'r',
    };
    let (verb, op) = match atomic.op {
        AtomicOp::Add => ("Adds to", "add"),
        AtomicOp::Min => ("Takes the smaller for", "min"),
        AtomicOp::Max => ("Takes the greater for", "max"),
        AtomicOp::Exchange => ("Replaces", "exch"),
        AtomicOp::CompareExchange { .. } => ("Replaces, where it is as expected,", "cas"),
    };
    let (params, operands, inputs) = match atomic.op {
        AtomicOp::CompareExchange { .. } => (
            format!("{ty} expected, {ty} value"),
            "%2, %3",
            format!("\"{register}\"(expected), \"{register}\"(value)"),
        ),
        _ => (format!("{ty} value"), "%2", format!("\"{register}\"(value)")),
    };
    let name = ordered(k, atomic);
    let (space, what, prepare, place) = if is_shared(k, atomic) {
        let prepare = "const unsigned word = (unsigned)__cvta_generic_to_shared(at);\n    ";
        ("shared", "shared", prepare, "\"r\"(word)")
    } else {
        ("global", "global", "", "\"l\"(at)")
    };
    format!(
        "\
// {verb} a word of {what} memory in one step; {audience}, {meaning}.
__device__ __forceinline__ {ty} {name}({ty}* at, {params})
{{
    {prepare}{ty} old;
    asm volatile(\"atom.{order}.{scope}.{space}.{op}.{kind}{bits} %0, [%1], {operands};\"
                 : \"={register}\"(old) : {place}, {inputs} : \"memory\");
    return old;
}}
"
    )
}
