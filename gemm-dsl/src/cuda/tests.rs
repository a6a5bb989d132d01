//! Spelling of synchronisation and of lists of arrays. `tests/nvrtc` checks that it compiles, and
//! `tests/printing` that operands keep their meaning.

mod listing;

use super::source;
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, Extent, Geometry, KernelBuilder,
    MemoryOrder, Operand, PointerRef, Requirement, Scope, Special, Stmt, Ty,
};

/// Source of a kernel of 64 threads with a global array `x` and a shared array `s`.
fn text(elem: Elem, body: impl FnOnce(&mut KernelBuilder, BufferId, BufferId)) -> String {
    let mut b = KernelBuilder::new("k");
    let x = b.global("x", elem, Operand::Temp(0));
    b.shape(x, [8.into()], [1.into()]);
    let s = b.shared("s", elem, [8.into()], BufferLayout::row_major(1), "");
    b.geometry(Geometry { block: (64, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: None });
    body(&mut b, x, s);
    source(&b.finish().expect("a sound kernel"))
}

fn at(buffer: BufferId, index: i32) -> Access {
    Access::new(buffer, [index.into()])
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

fn two(elem: Elem) -> Expr {
    match elem {
        Elem::F64 => Expr::F64(2.0),
        Elem::F32 => Expr::F32(2.0),
        Elem::I64 => Expr::I64(2),
        Elem::U64 => Expr::U64(2),
        Elem::U32 => Expr::U32(2),
        _ => Expr::I32(2),
    }
}

/// Atomic operations of an element type, with their C names, PTX names and PTX type suffixes.
fn operations(elem: Elem) -> Vec<(AtomicOp, &'static str, &'static str, &'static str)> {
    let (sum, order, bits) = match elem {
        Elem::I32 => ("u32", "s32", "b32"),
        Elem::U32 => ("u32", "u32", "b32"),
        Elem::I64 => ("u64", "s64", "b64"),
        Elem::U64 => ("u64", "u64", "b64"),
        Elem::F32 => ("", "", "b32"),
        Elem::F64 => ("", "", "b64"),
        _ => return Vec::new(),
    };
    let swap = AtomicOp::CompareExchange { expected: two(elem) };
    let mut all = vec![
        (AtomicOp::Exchange, "exchange", "exch", bits),
        (swap, "compare_exchange", "cas", bits),
    ];
    if !sum.is_empty() {
        all.push((AtomicOp::Add, "add", "add", sum));
        all.push((AtomicOp::Min, "min", "min", order));
        all.push((AtomicOp::Max, "max", "max", order));
    }
    all
}

#[test]
fn a_relaxed_atomic_is_a_function_of_cuda() {
    let spelt = |elem, op: AtomicOp| {
        text(elem, |b, x, _| {
            _ = b.atomic("old", op, at(x, 1), two(elem), MemoryOrder::Relaxed, Scope::Device)
        })
    };
    let swap = |elem| AtomicOp::CompareExchange { expected: two(elem) };
    let (ull, ints) = ("(unsigned long long*)", "(int*)");
    for (elem, op, line) in [
        (Elem::I32, AtomicOp::Add, "const int old = atomicAdd(&x[1], 2);".to_owned()),
        (Elem::U32, AtomicOp::Min, "const unsigned int old = atomicMin(&x[1], 2u);".to_owned()),
        (
            Elem::U32,
            swap(Elem::U32),
            "const unsigned int old = atomicCAS(&x[1], 2u, 2u);".to_owned(),
        ),
        // CUDA C++ has no `atomicAdd` on `long long`, but it has `atomicMax`.
        (Elem::I64, AtomicOp::Add, format!("const long long old = atomicAdd({ull}&x[1], 2ll);")),
        (Elem::I64, AtomicOp::Max, "const long long old = atomicMax(&x[1], 2ll);".to_owned()),
        (Elem::I64, AtomicOp::Exchange, format!("atomicExch({ull}&x[1], 2ll);")),
        (Elem::U64, AtomicOp::Max, format!("const size_t old = atomicMax({ull}&x[1], 2ull);")),
        (Elem::F32, AtomicOp::Exchange, "const float old = atomicExch(&x[1], 2.0f);".to_owned()),
        (
            Elem::F32,
            swap(Elem::F32),
            format!(
                "const float old = __int_as_float(\n        atomicCAS({ints}&x[1], \
                 __float_as_int(2.0f), __float_as_int(2.0f)));"
            ),
        ),
        (
            Elem::F64,
            AtomicOp::Exchange,
            format!(
                "const double old = __longlong_as_double(\n        atomicExch({ull}&x[1], \
                 __double_as_longlong(2.0)));"
            ),
        ),
    ] {
        let text = spelt(elem, op);
        says(&text, &[&line]);
        assert!(!text.contains("asm"), "{text}");
    }
    // Without the previous value, in shared memory, within a block.
    let block = text(Elem::U32, |b, _, s| {
        b.atomic_only(AtomicOp::Add, at(s, 1), Expr::U32(2), MemoryOrder::Relaxed, Scope::Block);
    });
    says(&block, &["\n    atomicAdd_block(&s[1], 2u);"]);
}

#[test]
fn an_atomic_load_is_one_instruction() {
    let load = |elem, is_shared: bool, order, scope| {
        text(elem, |b, x, s| {
            _ = b.atomic_load("found", at(if is_shared { s } else { x }, 1), order, scope)
        })
    };
    let relaxed = load(Elem::U64, false, MemoryOrder::Relaxed, Scope::Device);
    let parts = [
        "// Atomic load of a word in global memory, relaxed at device scope.",
        "size_t atomic_load_relaxed(const size_t* at)",
        "asm volatile(\"ld.relaxed.gpu.global.b64 %0, [%1];\" : \"=l\"(value) : \"l\"(at) \
         : \"memory\");",
        "const size_t found = atomic_load_relaxed(&x[1]);",
    ];
    says(&relaxed, &parts);
    let acquire = load(Elem::F32, true, MemoryOrder::Acquire, Scope::Block);
    let parts = [
        "float atomic_load_acquire_block_shared(const float* at)",
        "ld.acquire.cta.shared.b32 %0, [%1];\" : \"=f\"(value) : \"r\"(word)",
        "const float found = atomic_load_acquire_block_shared(&s[1]);",
    ];
    says(&acquire, &parts);
}

#[test]
fn an_atomic_that_orders_is_one_instruction() {
    let orders = [
        (MemoryOrder::Acquire, "acquire"),
        (MemoryOrder::Release, "release"),
        (MemoryOrder::AcqRel, "acq_rel"),
    ];
    let scopes = [(Scope::Block, "_block", "cta"), (Scope::Device, "", "gpu")];
    for elem in Elem::ALL {
        for (op, name, ptx, ty) in operations(elem) {
            for ((order, ordered), (scope, suffix, spoken)) in
                orders.into_iter().flat_map(|o| scopes.map(|s| (o, s)))
            {
                for (shared, space, place) in [(false, "global", ""), (true, "shared", "_shared")] {
                    let text = text(elem, |b, x, s| {
                        let target = at(if shared { s } else { x }, 1);
                        b.atomic_only(op.clone(), target.clone(), two(elem), order, scope);
                        b.atomic_only(op.clone(), target, two(elem), order, scope);
                    });
                    let function = format!("atomic_{name}_{ordered}{suffix}{place}(");
                    let instruction = format!("\"atom.{ordered}.{spoken}.{space}.{ptx}.{ty} %0, ");
                    says(&text, &[&instruction, &format!("\n    {function}&")]);
                    // Called twice, defined once.
                    assert_eq!(text.matches(&function).count(), 3, "{text}");
                    assert_eq!(text.matches("asm volatile(").count(), 1, "{text}");
                    assert_eq!(text.matches(" : \"memory\");").count(), 1, "{text}");
                    assert_eq!(text.contains("__cvta_generic_to_shared(at)"), shared, "{text}");
                }
            }
        }
    }
}

#[test]
fn fences_and_named_barriers() {
    let fence = |order, scope| text(Elem::U32, |b, _, _| b.fence(order, scope));
    let device = fence(MemoryOrder::SeqCst, Scope::Device);
    let block = fence(MemoryOrder::SeqCst, Scope::Block);
    says(&device, &["\n    __threadfence();\n"]);
    says(&block, &["\n    __threadfence_block();\n"]);
    assert!(!device.contains("asm") && !block.contains("asm"));
    let device = fence(MemoryOrder::AcqRel, Scope::Device);
    says(
        &device,
        &["\n    fence_acq_rel();\n", "asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\")"],
    );
    let block = fence(MemoryOrder::AcqRel, Scope::Block);
    says(
        &block,
        &["\n    fence_acq_rel_block();\n", "asm volatile(\"fence.acq_rel.cta;\" ::: \"memory\")"],
    );
    let both = text(Elem::U32, |b, _, _| {
        b.named_arrive(1, 64);
        b.named_barrier(15, 32);
    });
    says(&both, &["    named_arrive(1, 64);\n    named_barrier(15, 32);\n"]);
    says(&both, &["asm volatile(\"bar.arrive %0, %1;\"", "asm volatile(\"bar.sync %0, %1;\""]);
    let waits = text(Elem::U32, |b, _, _| b.named_barrier(1, 64));
    assert!(!waits.contains("named_arrive") && !waits.contains("bar.arrive"), "{waits}");
}

#[test]
fn clusters_of_blocks() {
    let text = text(Elem::I32, |b, x, _| {
        b.cluster(2);
        let (barriers, own) = (b.mbarriers("empty", 2, ""), b.mbarriers("full", 2, ""));
        b.mbarrier_arrive_remote(barriers, 1, Expr::from(Special::ClusterRank).xor(1));
        b.mbarrier_wait(barriers, 1, 0);
        b.mbarrier_wait(own, 1, 0);
        let alone = b.mbarriers("alone", 1, "");
        b.mbarrier_wait(alone, 0, 0);
        b.cluster_barrier();
        b.store(at(x, 0), Special::ClusterRank);
        let shared = b.shared("y", Elem::F16, [8.into()], BufferLayout::row_major(1), "");
        let bits = b.shared("z", Elem::U16, [8.into()], BufferLayout::row_major(1), "");
        let rank = Expr::from(Special::ClusterRank);
        b.store_remote(rank.clone().xor(1), at(shared, 3), at(shared, 2).load());
        b.store_remote(0, at(bits, 3), at(bits, 2).load());
        b.store_remote(rank, at(shared, 0).vector(), at(shared, 0).vector().load());
        let number = b.shared("w", Elem::I32, [8.into()], BufferLayout::row_major(1), "");
        b.store_async(1, at(number, 0), at(number, 1).load(), (own, 1.into()));
    });
    says(
        &text,
        &[
            "__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64)\n",
            "    mbarrier_arrive_remote(&empty[1], cluster_rank() ^ 1);\n",
            "    mbarrier_wait_cluster(&empty[1], 0);\n    mbarrier_wait_cluster(&full[1], 0);\n",
            "    mbarrier_wait(&alone[0], 0);\n",
            "    store_async(&w[0], 1, w[1], &full[1]);\n",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];",
            "    cluster_barrier();\n",
            "    x[0] = cluster_rank();\n",
            "    store_remote(&y[3], cluster_rank() ^ 1, y[2]);\n",
            "    store_remote(&z[3], 0, z[2]);\n",
            "    store_remote_16(&y[0], cluster_rank(), load16(&y[0]));\n",
            "void store_remote(unsigned short* to, int block, unsigned short value)\n",
            "void store_remote_16(unsigned short* to, int block, uint4 value)\n",
            "asm volatile(\"mapa.u64 %0, %1, %2;\" : \"=l\"(there) : \"l\"(to), \"r\"(block));\n",
            "    *reinterpret_cast<uint4*>(there) = value;\n",
            "mov.u32 %0, %%cluster_ctarank;",
            "barrier.cluster.arrive.release;",
            "barrier.cluster.wait.acquire;",
            "mapa.shared::cluster.u32 %0, %1, %2;",
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];",
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;",
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;",
        ],
    );
    // Types with the same name in CUDA C++ share the function.
    assert_eq!(text.matches("void store_remote(").count(), 1);
}

#[test]
fn arrays_written_by_other_threads_are_not_restrict() {
    let signature = |body: &dyn Fn(&mut KernelBuilder, [Access; 3])| -> String {
        let mut b = KernelBuilder::new("k");
        let arrays = [Operand::Input(0), Operand::Output(0), Operand::Temp(0)];
        let named = ["a", "b", "t"].into_iter().zip(arrays);
        let arrays: Vec<Access> = named
            .map(|(name, operand)| {
                let array = b.global(name, Elem::U32, operand);
                b.shape(array, [8.into()], [1.into()]);
                at(array, 0)
            })
            .collect();
        body(&mut b, arrays.try_into().expect("three"));
        let text = source(&b.finish().expect("a sound kernel"));
        let from = text.find("k(").expect("a signature");
        let signature = text[from..].split(')').next().expect("its end");
        signature.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (alone, input) = (" __restrict__", "const unsigned int* __restrict__ a");
    let of = |b: &str, t: &str| format!("k({input}, unsigned int*{b} b, unsigned int*{t} t");
    // Written but not read; read but not written.
    let apart = signature(&|b, [first, second, t]| b.store(second, first.load() + t.load()));
    let written = "unsigned int* __restrict__ b";
    assert_eq!(apart, format!("k( {input}, {written}, const unsigned int* __restrict__ t"));
    // Written and read, possibly by another thread.
    let read = signature(&|b, [first, second, t]| {
        b.store(t.clone(), first.load());
        b.barrier();
        b.store(second, t.load());
    });
    assert_eq!(read, of(alone, ""));
    // With inter-block synchronisation, every written array may be read by another thread.
    let spoken = signature(&|b, [first, second, t]| {
        b.store(second, first.load());
        b.atomic_only(AtomicOp::Add, t, Expr::U32(1), MemoryOrder::Release, Scope::Device);
    });
    assert_eq!(spoken, of("", ""));
    // Except an array declared exclusive that is not read.
    let own = signature(&|b, [first, second, t]| {
        b.exclusive(second.buffer);
        b.exclusive(t.buffer);
        b.store(second, first.load());
        b.atomic_only(AtomicOp::Add, t, Expr::U32(1), MemoryOrder::Release, Scope::Device);
    });
    assert_eq!(own, of(alone, ""));
}

/// CUDA has no `max` of a `size_t` and an `unsigned long long`, which a literal is.
#[test]
fn extrema_of_64_bits_and_a_literal_are_selections() {
    let printed = |elem, body: &dyn Fn(Expr) -> Expr| {
        text(elem, |b, x, _| {
            let value = Expr::from(b.let_("v", at(x, 0).load()));
            b.store(at(x, 1), body(value));
        })
    };
    says(&printed(Elem::U32, &|v| v.max(Expr::U32(1))), &["x[1] = max(v, 1u);"]);
    says(&printed(Elem::I32, &|v| v.min(1)), &["x[1] = min(v, 1);"]);
    says(&printed(Elem::U64, &|v| v.max(1u64)), &["x[1] = 1 < v ? v : 1ull;"]);
    says(&printed(Elem::U64, &|v| v.clone().max(v + 1u64)), &["x[1] = max(v, v + 1);"]);
}

#[test]
fn the_head_says_what_a_launch_requires() {
    let text = text(Elem::F32, |b, x, _| {
        let [n, m] =
            [("n", Extent::N), ("m", Extent::M)].map(|(name, of)| b.extent(name, Ty::I32, of));
        for (scalar, of) in [(n, 4), (n, 16), (m, 16), (n, 3), (n, 16), (m, 1)] {
            b.require(Requirement::Multiple { scalar, of });
        }
        b.require(Requirement::Aligned { operand: Operand::Temp(0), bytes: 16 });
        // Only a limit far below those of the type is printed.
        for max in [u64::from(u16::MAX) + 2, i32::MAX as u64 - 128] {
            b.require(Requirement::Range { scalar: m, min: 0, max });
        }
        b.store(at(x, 0), Expr::F32(1.0));
    });
    let line = "// Requires: n and m are multiples of 16; n is a multiple of 3; x is aligned to 16 \
                bytes; m <=\n//    65537.\n";
    assert!(text.starts_with(line), "{text}");
}

/// The kernel only reads the pointers of a list, so they are `__restrict__` even if its elements
/// are not.
#[test]
fn a_list_is_an_array_of_pointers() {
    let mut b = KernelBuilder::new("k");
    let a = b.global("A", Elem::F32, Operand::Input(0));
    let c = b.global("C", Elem::F32, Operand::Output(0));
    for list in [a, c] {
        b.list(list, 3.into(), [8.into(), 8.into()], [12.into(), 1.into()]);
    }
    let row = b.let_("row", 5);
    let at = |list| Access::new(list, [1.into(), row.into(), 4.into()]);
    let pointer = b.pointers("src", a, [], "");
    b.push(Stmt::Point { pointer: PointerRef { buffer: pointer, index: Vec::new() }, at: at(a) });
    b.store(at(c).vector(), at(a).vector().load());
    b.store(at(c), at(c).load() + Access::new(pointer, [2.into()]).load());
    let nth = b.let_("nth", 2);
    let (one, other) = (b.choose("one", a, nth), b.choose("other", c, 0));
    let in_one = |of| Access::new(of, [row.into(), 0.into()]);
    b.store(in_one(other), in_one(one).load());
    let old = Access::new(c, [0.into(), 0.into(), 0.into()]);
    b.atomic_only(AtomicOp::Exchange, old, Expr::F32(1.0), MemoryOrder::Relaxed, Scope::Device);
    let text = source(&b.finish().expect("a sound kernel"));
    says(
        &text,
        &[
            "k(const float* const* __restrict__ A, float* const* __restrict__ C)",
            "src = &A[1][(size_t)row * 12 + 4];",
            "store4(&C[1][(size_t)row * 12 + 4], load4(&A[1][(size_t)row * 12 + 4]));",
            "C[1][(size_t)row * 12 + 4] += src[2];",
            "const float* const one = A[nth];",
            "    float* const other = C[0];",
            "other[(size_t)row * 12] = one[(size_t)row * 12];",
            "atomicExch(&C[0][",
        ],
    );
}
