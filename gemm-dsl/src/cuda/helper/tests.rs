//! No kernel may declare a name that the source uses for something else.

use crate::cuda;
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, Geometry, Guard, Intrinsic,
    KernelBuilder, LoadMatrix, MemoryOrder, Mma, Operand, ProxyFence, Scope, Special, Stmt,
    TensorMap, TensorSwizzle, VerifiedKernel, Wgmma, is_free,
};
use crate::target::Format;
use crate::target::reserved::CUDA;
use std::collections::BTreeSet;

/// Kernel with an array in each space; `None` if the IR rejects the body.
fn kernel(
    elem: Elem,
    body: impl FnOnce(&mut KernelBuilder, [BufferId; 2]),
) -> Option<VerifiedKernel> {
    let mut b = KernelBuilder::new("k");
    let global = b.global("g", elem, Operand::Temp(0));
    b.shape(global, [64.into()], [1.into()]);
    let shared = b.shared("s", elem, [64.into()], BufferLayout::row_major(1), "");
    body(&mut b, [global, shared]);
    b.finish().ok()
}

fn in_scopes(order: MemoryOrder) -> [(MemoryOrder, Scope); 2] {
    [(order, Scope::Block), (order, Scope::Device)]
}

fn at(buffer: BufferId) -> Access {
    Access::new(buffer, [0.into()])
}

/// Kernels that together use all device functions and types that a source can contain.
fn kernels() -> Vec<VerifiedKernel> {
    let mut kernels = Vec::new();
    for elem in Elem::ALL {
        kernels.push(kernel(elem, |b, [global, shared]| {
            b.store(at(shared).vector(), at(global).vector().load());
            let parts = vec![at(global).load(); elem.vector_lanes().into()];
            b.store(at(global).vector(), Expr::Pack(parts));
        }));
        for from in Elem::ALL {
            kernels.push(kernel(from, |b, [global, _]| {
                _ = b.let_("x", at(global).load().cast(elem));
            }));
            kernels.push(kernel(from, |b, [global, _]| {
                _ = b.let_("x", at(global).load().bitcast(elem));
            }));
        }
        for f in Intrinsic::ALL {
            kernels.push(kernel(elem, |b, [global, _]| {
                let x = at(global).load();
                let operands = match f {
                    Intrinsic::ShuffleDown
                    | Intrinsic::ShuffleUp
                    | Intrinsic::ShuffleXor
                    | Intrinsic::ShuffleFrom => vec![x, 1.into()],
                    Intrinsic::Ballot => vec![Expr::truth()],
                    _ => vec![x; f.info().arity],
                };
                _ = b.let_("y", Expr::Call(f, operands));
            }));
        }
        let orders =
            [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel];
        for (order, scope) in orders.into_iter().flat_map(in_scopes) {
            let expected = Expr::from(1).cast(elem);
            let swap = AtomicOp::CompareExchange { expected };
            for op in [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::Exchange, swap] {
                for shared in [false, true] {
                    kernels.push(kernel(elem, |b, [global, held]| {
                        let word = at(if shared { held } else { global });
                        b.atomic_only(op.clone(), word.clone(), word.load(), order, scope);
                    }));
                }
            }
        }
        for (or_zero, wide) in
            [None, Some(true), Some(false)].into_iter().flat_map(|g| [(g, true), (g, false)])
        {
            kernels.push(kernel(elem, |b, [global, shared]| {
                let wide = |access: Access| if wide { access.vector() } else { access };
                let (target, source) = (wide(at(shared)), wide(at(global)));
                let cond = || Expr::from(1).lt(2);
                let guard = or_zero.map(|or_zero| Guard { cond: cond(), or_zero });
                b.push(Stmt::CopyAsync { target, source, guard });
            }));
        }
    }
    kernels.push(kernel(Elem::F32, |b, _| {
        for (order, scope) in
            [MemoryOrder::AcqRel, MemoryOrder::SeqCst].into_iter().flat_map(in_scopes)
        {
            b.fence(order, scope);
        }
        b.named_arrive(1, 32);
        b.named_barrier(1, 32);
    }));
    kernels.push(kernel(Elem::F32, |b, _| {
        b.push(Stmt::CopyCommit);
        b.push(Stmt::CopyWait { pending: 0.into() });
        _ = b.let_("x", Expr::from(Special::BlockX).min(2));
    }));
    for format in Format::FROM_F32 {
        kernels.push(kernel(Elem::F32, |b, _| {
            let mut held = |name, elem, count: usize| {
                let buffer = b.registers(name, elem, [Expr::I32(count as i32)], "");
                Access::new(buffer, [0.into()])
            };
            let d = held("d", Elem::F32, Mma::OF_D);
            let (first, second) =
                (held("a", Elem::U32, Mma::OF_A), held("b", Elem::U32, Mma::OF_B));
            b.mma(Mma { format, d, a: first, b: second });
        }));
    }
    for (count, transposed) in [1, 2, 4].into_iter().flat_map(|n| [(n, false), (n, true)]) {
        for rows in [Elem::U32, Elem::Bf16] {
            kernels.push(kernel(rows, |b, [_, shared]| {
                let held = b.registers("to", Elem::U32, [i32::from(count).into()], "");
                let (to, from) = (Access::new(held, [0.into()]), at(shared).vector());
                b.load_matrix(LoadMatrix { count, transposed, to, from });
            }));
        }
    }
    kernels.push(kernel(Elem::F32, |b, _| {
        let large = b.shared("large", Elem::F32, [40_000.into()], BufferLayout::row_major(1), "");
        b.store(at(large), 0.0);
    }));
    kernels.extend(Format::ALL.map(|format| warpgroups([format; 2])));
    kernels.push(warpgroups([Format::E4m3, Format::E5m2]));
    kernels.into_iter().flatten().collect()
}

/// Kernel that uses all asynchronous units.
fn warpgroups(formats: [Format; 2]) -> Option<VerifiedKernel> {
    let [elem, other] = formats.map(Elem::from_format);
    let acc = if formats[0].is_integer() { Elem::U32 } else { Elem::F32 };
    let mut b = KernelBuilder::new("k");
    let grid = [Expr::U64(2), Expr::U64(1), Expr::U64(1)];
    b.geometry(Geometry { block: (128, 1), grid, blocks_per_sm: Some(1) });
    b.cluster(2);
    let (barriers, heard) = (b.mbarriers("m", 1, ""), b.mbarriers("r", 1, ""));
    b.mbarrier_init(barriers, 0, 1);
    b.proxy_fence(ProxyFence::MbarrierInit);
    b.proxy_fence(ProxyFence::Async);
    b.mbarrier_arrive(barriers, 0);
    b.mbarrier_arrive_remote(heard, 0, Special::ClusterRank);
    b.mbarrier_arrive_relaxed(heard, 0, Special::ClusterRank);
    b.mbarrier_wait(heard, 0, 0);
    b.cluster_barrier();
    let y = b.shared("y", elem, [8.into()], BufferLayout::row_major(1), "");
    let first = || Access::new(y, [0.into()]);
    b.store_remote(0, first(), first().load());
    b.store_remote(0, first().vector(), first().vector().load());
    let word = b.shared("w", Elem::U32, [8.into()], BufferLayout::row_major(1), "");
    b.store_async(0, Access::new(word, [0.into()]), Expr::U32(0), (heard, 0.into()));
    b.fewer_registers(24);
    b.more_registers(24);
    for (n, swizzle) in TensorSwizzle::ALL.into_iter().enumerate() {
        let row = swizzle.bytes()? / elem.size();
        let (rank, row) = (2 + n % 2, Expr::I32(row as i32));
        let mut dims = vec![Expr::I32(256); rank];
        *dims.last_mut()? = row;
        let mut tile = vec![1; rank];
        *tile.last_mut()? = swizzle.bytes()? / elem.size();
        let map = TensorMap { tile: tile.into(), swizzle };
        let from = b.tensor_map(&format!("g{n}"), elem, Operand::Input(n), map);
        let strides = [Expr::I32(1 << 16), Expr::I32(256), 1.into()];
        b.shape(from, dims.clone(), strides[3 - rank..].to_vec());
        let lines = Expr::I32(256);
        let layout = BufferLayout::Array {
            order: vec![0, 1, 2],
            pad: 0.into(),
            swizzle: swizzle.layout(elem),
        };
        let row = dims.last()?.clone();
        let dims = [1.into(), lines, row];
        let shared = b.shared(&format!("s{n}"), elem, dims.clone(), layout.clone(), "");
        let second = b.shared(&format!("t{n}"), other, dims, layout, "");
        let [first, second] = [shared, second]
            .map(|shared| move || Access::new(shared, [0.into(), 0.into(), 0.into()]));
        b.tensor_copy(from, vec![0.into(); rank], first(), (barriers, 0.into()));
        b.tensor_multicast(from, vec![0.into(); rank], first(), (barriers, 0.into()), 1);
        b.mbarrier_arrive_expect(barriers, 0, 16);
        b.mbarrier_wait(barriers, 0, 0);
        let known = |columns: &u32| Wgmma::has_columns(formats, *columns);
        for columns in (8..=Wgmma::MOST_COLUMNS).filter(known) {
            let accumulate = Expr::from(1).lt(2);
            b.if_(accumulate.clone(), |b| {
                let sums = [Expr::I32(columns as i32 / 2)];
                let acc = b.zeroed_registers("d", acc, sums, "");
                let d = Access::new(acc, [0.into()]);
                b.wgmma_fence([acc]);
                b.wgmma(Wgmma {
                    formats,
                    columns,
                    d,
                    a: first(),
                    b: second(),
                    mn_major: [false; 2],
                    accumulate,
                });
                b.wgmma_commit();
                b.wgmma_wait(0, [acc]);
            });
        }
    }
    b.finish().ok()
}

/// Identifiers that are followed by a parenthesis, a bracket, a star or another identifier. They
/// are names of functions, arrays and types.
fn taken(text: &str) -> BTreeSet<&str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut taken = BTreeSet::new();
    // Lines with quotes are PTX, or the first line of the signature.
    for line in code.filter(|line| !line.contains('"')) {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = line;
        while let Some(start) = rest.find(word) {
            let after = &rest[start..];
            let end = after.find(|c| !word(c)).unwrap_or(after.len());
            let (name, next) = after.split_at(end);
            let is_type = next.strip_prefix(' ').is_some_and(|next| next.starts_with(word));
            if next.starts_with(['(', '<', '[', '*', '.']) || is_type {
                taken.insert(name);
            }
            rest = next;
        }
    }
    taken
}

#[test]
fn names_used_by_the_source_are_reserved() {
    // Names that the kernels above and the device functions declare, and `pragma`, which is no
    // name.
    const OWN: [&str; 24] = [
        "k", "g", "s", "w", "x", "y", "large", "from", "to", "bits", "d", "a", "b", "m", "r", "s0",
        "s1", "s2", "t0", "t1", "t2", "words", "complete", "pragma",
    ];
    let kernels = kernels();
    let mut all = BTreeSet::new();
    for kernel in &kernels {
        let text = cuda::source(kernel);
        for name in taken(&text) {
            let free = is_free(name) && !OWN.contains(&name);
            assert!(!free, "`{name}` is free for a kernel, and a text has it:\n{text}");
            all.insert(name.to_owned());
        }
    }
    // Every reserved name occurs in some printed source, or is listed here.
    const UNSEEN: &str = "blockDim dim3 float2 float3 gridDim main shared threadIdx warpSize";
    let unseen: Vec<&str> = CUDA.split(' ').filter(|name| !all.contains(*name)).collect();
    assert_eq!(unseen.join(" "), UNSEEN);
}

#[test]
fn a_kernel_that_declares_such_a_name_breaks_a_rule() {
    for name in ["load16", "store16", "copy_async_8_or_zero", "to_f16", "from_bf16", "make_uint4"] {
        let mut b = KernelBuilder::new("k");
        _ = b.constant(name, 1, "");
        let rule = b.finish().expect_err(name).rule;
        assert_eq!(rule, format!("`{name}` is not a C++ identifier"));
    }
    assert!(Elem::ALL.iter().all(|elem| !is_free(super::vector_type(*elem))));
    assert!(is_free("copy_async_2") && is_free("row"));
}
