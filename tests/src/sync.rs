//! Kernels of what synchronises: every atomic operation, fence and named barrier, built by hand, as
//! no spec asks for them.

use gemm_dsl::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, Geometry, KernelBuilder, MemoryOrder,
    Operand, Scope, Special, VerifiedKernel,
};

/// What an atomic operation may order.
pub const ORDERS: [MemoryOrder; 4] =
    [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel];

/// Whom it may speak to.
pub const SCOPES: [Scope; 2] = [Scope::Block, Scope::Device];

/// The operations on an element, each with the number that is expected where one is.
pub fn operations(elem: Elem) -> Vec<AtomicOp> {
    let moves = [AtomicOp::Exchange, AtomicOp::CompareExchange { expected: number(elem, 1) }];
    let computes = [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max];
    match elem {
        Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64 => [&computes[..], &moves].concat(),
        Elem::F32 | Elem::F64 => moves.into(),
        _ => Vec::new(),
    }
}

/// A small number of a type.
pub fn number(elem: Elem, value: u8) -> Expr {
    match elem {
        Elem::F64 => Expr::F64(value.into()),
        Elem::F32 => Expr::F32(value.into()),
        Elem::I64 => Expr::I64(value.into()),
        Elem::U64 => Expr::U64(value.into()),
        Elem::U32 => Expr::U32(value.into()),
        _ => Expr::I32(value.into()),
    }
}

/// A kernel with every atomic operation on every element in every order, scope and space, once with
/// the former value and once without.
pub fn every_atomic() -> VerifiedKernel {
    let mut k = KernelBuilder::new("every_atomic");
    let one = [1.into()];
    let elems = Elem::ALL.into_iter().filter(|elem| !operations(*elem).is_empty());
    let words: Vec<(BufferId, BufferId)> = elems
        .enumerate()
        .map(|(i, elem)| {
            let global = k.global(&format!("global_{elem}"), elem, Operand::Temp(i));
            k.shape(global, one.clone(), one.clone());
            let (name, layout) = (format!("shared_{elem}"), BufferLayout::row_major(1));
            // Whole vectors, as the compiler aligns what is shorter otherwise than the generator.
            let dims = [i32::from(elem.vector_lanes()).into()];
            (global, k.shared(&name, elem, dims, layout, ""))
        })
        .collect();
    for (global, shared) in words {
        let at = |buffer: BufferId| Access::new(buffer, [0.into()]);
        k.store(at(shared), at(global).load());
        k.barrier();
        for (order, scope) in ORDERS.into_iter().flat_map(|o| SCOPES.map(|s| (o, s))) {
            for (op, word) in operations(global.elem)
                .into_iter()
                .flat_map(|op| [global, shared].map(|w| (op.clone(), w)))
            {
                let value = number(global.elem, 2);
                k.if_(at(word).load().equals(number(global.elem, 3)), |k| {
                    let old = k.atomic("old", op.clone(), at(word), value.clone(), order, scope);
                    k.store(at(word), old);
                    k.atomic_only(op, at(word), value, order, scope);
                });
            }
        }
        k.barrier();
        k.store(at(global), at(shared).load());
    }
    k.finish().expect("a sound kernel")
}

/// A kernel with every fence, and with named barriers that half of the block waits at while the
/// other half arrives.
pub fn every_fence() -> VerifiedKernel {
    let mut k = KernelBuilder::new("every_fence");
    let word = k.global("word", Elem::U32, Operand::Temp(0));
    k.shape(word, [1.into()], [1.into()]);
    k.geometry(Geometry { block: (64, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: 1 });
    let at = || Access::new(word, [0.into()]);
    let first = Expr::from(Special::ThreadX).lt(32);
    k.if_else(
        first,
        |k| {
            k.atomic_only(AtomicOp::Add, at(), Expr::U32(1), MemoryOrder::Relaxed, Scope::Device);
            for order in [MemoryOrder::AcqRel, MemoryOrder::SeqCst] {
                for scope in SCOPES {
                    k.fence(order, scope);
                }
            }
            k.named_arrive(1, 64);
            k.named_barrier(15, 32);
        },
        |k| {
            k.named_barrier(1, 64);
            k.atomic_only(AtomicOp::Add, at(), Expr::U32(1), MemoryOrder::Relaxed, Scope::Device);
        },
    );
    k.finish().expect("a sound kernel")
}
