use super::expr::{element, text};
use super::helper::atomic::name;
use crate::ir::{Atomic, AtomicOp, Elem, Kernel, MemoryOrder};

/// Prints the call of an atomic operation.
pub(super) fn call(k: &Kernel, atomic: &Atomic) -> String {
    let place = format!("&{}", element(k, &atomic.target));
    if atomic.op == AtomicOp::Load {
        return format!("{}({place})", name(k, atomic));
    }
    let expected = match &atomic.op {
        AtomicOp::CompareExchange { expected } => Some(text(k, expected)),
        _ => None,
    };
    let operands: Vec<String> = expected.into_iter().chain([text(k, &atomic.value)]).collect();
    let function = name(k, atomic);
    let call = |ty: &str, operands: Vec<String>| {
        format!("{function}({ty}{place}, {})", operands.join(", "))
    };
    if atomic.order != MemoryOrder::Relaxed {
        return call("", operands);
    }
    // Performs the operation on the bits if CUDA C++ has no function for the type itself.
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
        // Sums and exchanges use the unsigned function. It needs the cast, because `size_t` and
        // `unsigned long long` are different types in C++.
        Elem::U64 => call("(unsigned long long*)", operands),
        Elem::I64 if !orders => call("(unsigned long long*)", operands),
        _ => call("", operands),
    }
}
