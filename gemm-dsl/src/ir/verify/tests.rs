//! Each rule of the IR, with a kernel that breaks it and a valid kernel.

use crate::ir::{
    Access, BinaryOp, BufferId, BufferLayout, Elem, Expr, Geometry, Intrinsic, IrError,
    KernelBuilder, LoadMatrix, Mma, Operand, Param, Space, Special, Stmt, Swizzle, Ty, UnaryOp,
    VerifiedKernel,
};
use crate::target::Format;

mod asynchronous;
mod cluster;
mod handles;
mod sync;

/// Kernel with an input and an output of 64 elements.
fn kernel(elem: Elem, body: impl FnOnce(&mut KernelBuilder, BufferId, BufferId)) -> KernelBuilder {
    let mut b = KernelBuilder::new("kernel");
    let input = b.global("in0", elem, Operand::Input(0));
    let output = b.global("out", elem, Operand::Output(0));
    for array in [input, output] {
        b.shape(array, [64.into()], [1.into()]);
    }
    b.geometry(Geometry { block: (32, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: None });
    body(&mut b, input, output);
    b
}

fn rule(k: KernelBuilder) -> Result<(), String> {
    k.finish().map(drop).map_err(|IrError { rule, .. }| rule)
}

fn at(buffer: BufferId, index: impl Into<Expr>) -> Access {
    Access::new(buffer, [index.into()])
}

fn breaks(k: KernelBuilder, says: &str) {
    let broken = rule(k).expect_err(says);
    assert!(broken.contains(says), "`{broken}` does not say `{says}`");
}

fn stored(elem: Elem, value: impl FnOnce(Expr) -> Expr) -> KernelBuilder {
    kernel(elem, |b, input, output| {
        let loaded = at(input, 0).load();
        b.store(at(output, 0), value(loaded));
    })
}

#[test]
fn operands_have_one_type_and_an_operator_suits_it() {
    assert_eq!(rule(stored(Elem::F32, |x| x.clone() + x)), Ok(()));
    assert_eq!(rule(stored(Elem::U32, |x| Expr::binary(BinaryOp::REM, x.clone(), x))), Ok(()));
    breaks(stored(Elem::F32, |x| Expr::binary(BinaryOp::REM, x.clone(), x)), "of f32 and f32");
    breaks(stored(Elem::F32, |x| Expr::binary(BinaryOp::ADD, x, Expr::F64(1.0))), "of f32 and f64");
    // Storage-only types have no arithmetic.
    for elem in Elem::ALL.into_iter().filter(|elem| !elem.computes()) {
        breaks(stored(elem, |x| Expr::binary(BinaryOp::ADD, x.clone(), x)), "Arith(Add) of");
    }
    breaks(stored(Elem::U32, |x| Expr::Unary(UnaryOp::Neg, Box::new(x))), "Neg of u32");
    breaks(stored(Elem::F32, |_| Expr::I32(1)), "a store of another type");
}

#[test]
fn conversions_go_by_the_wide_type() {
    assert_eq!(rule(stored(Elem::F16, |x| x.cast(Elem::F32).cast(Elem::F16))), Ok(()));
    assert_eq!(rule(stored(Elem::I8, |x| x.cast(Elem::I32).cast(Elem::I8))), Ok(()));
    breaks(stored(Elem::F16, |x| x.cast(Elem::I32).cast(Elem::F16)), "a cast of f16 to i32");
    breaks(stored(Elem::Bf16, |x| x.cast(Elem::F16).cast(Elem::Bf16)), "a cast of bf16 to f16");
    breaks(stored(Elem::U8, |x| x.cast(Elem::F32).cast(Elem::U8)), "a cast of u8 to f32");
    assert_eq!(rule(stored(Elem::F32, |x| x.bitcast(Elem::U32).bitcast(Elem::F32))), Ok(()));
    breaks(
        stored(Elem::F32, |x| x.bitcast(Elem::U64).bitcast(Elem::F32)),
        "the bits of f32 as u64",
    );
}

#[test]
fn a_vector_has_its_elements_and_no_more() {
    let packed = |count: usize| {
        kernel(Elem::F64, |b, input, output| {
            let parts = vec![at(input, 0).load(); count];
            b.store(at(output, 0).vector(), Expr::Pack(parts));
        })
    };
    assert_eq!(rule(packed(2)), Ok(()));
    breaks(packed(4), "a vector of");
    let lane = |lane: u8| {
        kernel(Elem::F64, |b, input, output| {
            b.store(at(output, 0), at(input, 0).vector().load().lane(lane));
        })
    };
    assert_eq!(rule(lane(1)), Ok(()));
    breaks(lane(2), "lane 2 of f64x2");
    breaks(
        kernel(Elem::F32, |b, input, output| {
            let odd = Access { lanes: 2, ..at(input, 0) };
            b.store(at(output, 0), odd.load().lane(0));
        }),
        "an access of 2 elements",
    );
}

#[test]
fn exactly_one_stride_is_one() {
    let strided = |strides: [Expr; 2]| {
        kernel(Elem::F32, |b, input, output| {
            b.shape(input, [8.into(), 8.into()], strides);
            b.store(at(output, 0), Access::new(input, [0.into(), 0.into()]).load());
        })
    };
    assert_eq!(rule(strided([8.into(), 1.into()])), Ok(()));
    assert_eq!(rule(strided([1.into(), 8.into()])), Ok(()));
    breaks(strided([1.into(), 1.into()]), "2 strides of in0 are 1");
    breaks(strided([8.into(), 2.into()]), "0 strides of in0 are 1");
}

#[test]
fn global_memory_is_one_parameter() {
    let params = |change: fn(&mut Vec<Param>)| {
        let valid = kernel(Elem::F32, |b, input, output| {
            b.store(at(output, 0), at(input, 0).load());
        });
        let mut k = valid.finish().expect("a copy").into_inner();
        change(&mut k.params);
        VerifiedKernel::new(k).map(drop).map_err(|e| e.rule)
    };
    assert_eq!(params(|_| ()), Ok(()));
    let none = params(|params| drop(params.remove(0)));
    assert_eq!(none, Err("in0 is 0 parameters".into()));
    let twice = params(|params| {
        let again = Param { name: "again".into(), ..params[0].clone() };
        params.push(again);
    });
    assert_eq!(twice, Err("in0 is 2 parameters".into()));
}

#[test]
fn a_kernel_needs_the_architecture_that_has_what_it_does() {
    let arch = |asynchronous: bool| {
        let k = kernel(Elem::F32, |b, input, output| {
            let tile = b.shared("tile", Elem::F32, [4.into()], BufferLayout::row_major(1), "");
            match asynchronous {
                true => {
                    let (target, source) = (at(tile, 0), at(input, 0));
                    b.push(Stmt::CopyAsync { target, source, guard: None });
                    b.push(Stmt::CopyCommit);
                    b.push(Stmt::CopyWait { pending: 0.into() });
                }
                false => b.store(at(tile, 0), at(input, 0).load()),
            }
            b.store(at(output, 0), 1.0);
        });
        k.finish().map(|kernel| kernel.min_arch()).map_err(|e| e.rule)
    };
    assert_eq!((arch(false), arch(true)), (Ok(75), Ok(80)));
}

#[test]
fn shared_memory_beyond_counting_is_too_much() {
    let huge = kernel(Elem::F32, |b, _, _| {
        for name in ["x", "y"] {
            let rows = [(1 << 30).into(), (1 << 30).into(), 4.into()];
            b.shared(name, Elem::F32, rows, BufferLayout::row_major(3), "");
        }
    });
    breaks(huge, "18446744073709551615 bytes of shared memory");
}

#[test]
fn a_swizzle_keeps_rows_and_vectors_together() {
    let swizzled = |columns: i32, swizzle: Swizzle, pad: i32| {
        kernel(Elem::F32, |b, input, output| {
            let layout =
                BufferLayout::Array { order: vec![0, 1], pad: pad.into(), swizzle: Some(swizzle) };
            let tile = b.shared("tile", Elem::F32, [4.into(), columns.into()], layout, "");
            let place = |r: i32| Access::new(tile, [r.into(), 0.into()]).vector();
            b.store(place(0), at(input, 0).vector().load());
            b.barrier();
            b.store(at(output, 0).vector(), place(0).load());
        })
    };
    let by_vectors = Swizzle { bits: 3, base: 2, shift: 0 };
    assert_eq!(rule(swizzled(32, by_vectors, 0)), Ok(()));
    breaks(swizzled(16, by_vectors, 0), "groups of 2^5");
    breaks(swizzled(32, by_vectors, 1), "groups of 2^5");
    breaks(swizzled(32, Swizzle { base: 1, ..by_vectors }, 0), "splits a vector");
}

#[test]
fn a_function_is_pure_and_applies_earlier_ones() {
    let with = |body: fn(&mut KernelBuilder, BufferId, Expr) -> Expr| {
        kernel(Elem::F32, |b, input, output| {
            let f = b.function("twice", &[], &[("x", Ty::F32)], |b, params| {
                body(b, input, params[0].into())
            });
            let value = f.apply([at(input, 0).load()]);
            b.store(at(output, 0), value);
        })
    };
    assert_eq!(rule(with(|_, _, x| x.clone() + x)), Ok(()));
    assert!(rule(with(|_, input, x| x + at(input, 1).load())).is_err(), "a load");
    assert!(rule(with(|_, _, x| Expr::from(Special::ThreadX).cast(Elem::F32) + x)).is_err());
    assert!(
        rule(with(|b, _, x| {
            b.push(Stmt::CopyCommit);
            x
        }))
        .is_err(),
        "an effect"
    );
    // An operand of another type, and one operand too many.
    let applied = |args: Vec<Expr>| {
        kernel(Elem::F32, |b, _, output| {
            let f = b.function("same", &[], &[("x", Ty::F32)], |_, params| params[0].into());
            b.store(at(output, 0), f.apply(args));
        })
    };
    assert_eq!(rule(applied(vec![1.0.into()])), Ok(()));
    assert!(rule(applied(vec![1.into()])).is_err());
    assert!(rule(applied(vec![1.0.into(), 2.0.into()])).is_err());
}

#[test]
fn intrinsics_take_what_their_rows_say() {
    let call = |f, args: fn(Expr) -> Vec<Expr>| stored(Elem::F32, |x| Expr::Call(f, args(x)));
    assert_eq!(rule(call(Intrinsic::Fma, |x| vec![x.clone(), x.clone(), x])), Ok(()));
    breaks(call(Intrinsic::Fma, |x| vec![x.clone(), x]), "Fma of");
    breaks(call(Intrinsic::Sqrt, |_| vec![Expr::I32(4)]), "Sqrt of");
    breaks(call(Intrinsic::ShuffleDown, |x| vec![x.clone(), x]), "ShuffleDown of");
}

/// `const float x = x[0];` would refer to itself.
#[test]
fn shadowing_variables_do_not_use_the_shadowed_one() {
    let hides = |name: &'static str, of: &'static str| {
        kernel(Elem::F32, move |b, _, output| {
            let outer = b.let_("x", 2.0);
            let held = b.zeroed_registers("held", Elem::F32, [1.into()], "");
            b.if_(Expr::I32(0).lt(1), |b| {
                let value = if of == "x" { outer.into() } else { at(held, 0).load() };
                let inner = b.let_(name, value + 1.0);
                b.store(at(output, 0), inner);
            });
        })
    };
    breaks(hides("held", "held"), "held is computed from the variable that it shadows");
    breaks(hides("x", "x"), "x is computed from the variable that it shadows");
    for (name, of) in [("held", "x"), ("x", "held"), ("y", "x")] {
        assert_eq!(rule(hides(name, of)), Ok(()));
    }
}

#[test]
fn groups_in_flight_are_a_constant() {
    let waits = |pending: fn(&mut KernelBuilder) -> Expr| {
        kernel(Elem::F32, |b, _, _| {
            let pending = pending(b);
            b.push(Stmt::CopyWait { pending });
        })
    };
    assert_eq!(rule(waits(|b| b.constant("STAGES", 4, "") - 2)), Ok(()));
    breaks(waits(|b| b.constant("STAGES", 1, "") - 2), "the groups in flight is negative: -1");
    breaks(waits(|b| b.let_("n", 1).into()), "the groups in flight: ");
    breaks(waits(|_| Expr::U64(1)), "the number of groups in flight is not an I32");
}

#[test]
fn a_constant_has_a_value_of_its_type() {
    let constant = |value: Expr| {
        kernel(Elem::F32, |b, _, output| {
            let value = b.constant("VALUE", value, "");
            b.store(at(output, 0), Expr::Cast(Elem::F32, Box::new(value.into())));
        })
    };
    assert_eq!(rule(constant(Expr::I32(i32::MAX) - 1 + 1)), Ok(()));
    breaks(constant(Expr::I32(i32::MAX) + 1), "constant VALUE: the value overflows its type");
    breaks(constant(Expr::I32(1) / 0), "constant VALUE: the value overflows its type");
    let narrowed = |wide: u64| Expr::Cast(Elem::I32, Box::new(Expr::U64(wide)));
    assert_eq!(rule(constant(narrowed(1 << 30))), Ok(()));
    breaks(constant(narrowed(1 << 31)), "constant VALUE: the value overflows its type");
}

/// Matrix instruction on D, A and B with these elements, extents and start indices.
fn multiplied(
    elems: [Elem; 3],
    dims: [&[i32]; 3],
    index: [&[i32]; 3],
    change: impl FnOnce(&mut KernelBuilder, &mut Mma),
) -> KernelBuilder {
    kernel(Elem::F32, |b, _, _| {
        let mut names = ["d", "a", "b"].into_iter().zip(elems).zip(dims).zip(index);
        let mut held = |b: &mut KernelBuilder| {
            let (((name, elem), dims), index) = names.next().expect("three");
            let buffer = b.registers(name, elem, dims.iter().map(|dim| Expr::I32(*dim)), "");
            Access::new(buffer, index.iter().map(|at| Expr::I32(*at)))
        };
        let (d, first, second) = (held(b), held(b), held(b));
        let mut mma = Mma { format: Format::Bf16, d, a: first, b: second };
        change(b, &mut mma);
        b.mma(mma);
    })
}

#[test]
fn matrix_instructions_take_fragments_of_their_own() {
    const ELEMS: [Elem; 3] = [Elem::F32, Elem::U32, Elem::U32];
    let of = |elems, dims, index| multiplied(elems, dims, index, |_, _| {});
    assert_eq!(rule(of(ELEMS, [&[4], &[4], &[2]], [&[0], &[0], &[0]])), Ok(()));
    let many = of(ELEMS, [&[2, 3, 4], &[2, 4], &[3, 2]], [&[1, 2, 0], &[1, 0], &[2, 0]]);
    assert_eq!(many.finish().map(|kernel| kernel.min_arch()), Ok(80));

    let all: [&[i32]; 3] = [&[4], &[4], &[2]];
    let zero: [&[i32]; 3] = [&[0], &[0], &[0]];
    for (place, name) in ["d", "a", "b"].into_iter().enumerate() {
        let mut elems = ELEMS;
        elems[place] = Elem::I32;
        breaks(of(elems, all, zero), &format!("a fragment of {name}, which is no"));
        for other in [&[3], &[5], &[8]] {
            let mut dims = all;
            dims[place] = other;
            breaks(of(ELEMS, dims, zero), &format!("elements in {name}"));
        }
        let mut index = zero;
        index[place] = &[1];
        breaks(of(ELEMS, all, index), &format!("elements in {name}"));
    }
    let shared = multiplied(ELEMS, all, zero, |b, mma| {
        let layout = BufferLayout::row_major(1);
        mma.a = at(b.shared("words", Elem::U32, [4.into()], layout, ""), 0);
    });
    breaks(shared, "a fragment in words");
    let mut padded = multiplied(ELEMS, all, zero, |_, _| {});
    let pad = |b: &mut KernelBuilder| {
        let array = b.kernel.buffers.iter_mut().find(|buffer| buffer.space == Space::Register);
        let layout = BufferLayout::Array { order: vec![0], pad: 1.into(), swizzle: None };
        array.expect("an array").layout = layout;
    };
    pad(&mut padded);
    breaks(padded, "a fragment of 4 elements in d");
    let mut partial = multiplied(ELEMS, all, zero, |_, _| {});
    partial.geometry(Geometry {
        block: (48, 1),
        grid: [const { Expr::U64(1) }; 3],
        blocks_per_sm: None,
    });
    breaks(partial, "a warp that is not whole");
}

/// Load of `count` matrices into an array of these extents, from shared rows of these elements.
fn loaded(count: u8, dims: &[i32], elem: Elem, wide: bool) -> KernelBuilder {
    kernel(Elem::U32, |b, _, _| {
        let held = b.registers("held", Elem::U32, dims.iter().map(|dim| Expr::I32(*dim)), "");
        let rows = b.shared("rows", elem, [64.into()], BufferLayout::row_major(1), "");
        let to = Access::new(held, dims.iter().map(|_| Expr::I32(0)));
        let from = if wide { at(rows, 0).vector() } else { at(rows, 0) };
        b.load_matrix(LoadMatrix { count, transposed: false, to, from });
    })
}

#[test]
fn matrices_are_loaded_from_rows_of_16_bytes() {
    for (count, dims) in [(1, &[1][..]), (2, &[2]), (4, &[4]), (4, &[2, 2]), (4, &[3, 2, 2])] {
        let kernel = loaded(count, dims, Elem::U32, true).finish();
        assert_eq!(kernel.map(|kernel| kernel.min_arch()), Ok(75), "{count} {dims:?}");
    }
    breaks(loaded(3, &[3], Elem::U32, true), "a load of 3 matrices");
    breaks(loaded(8, &[8], Elem::U32, true), "a load of 8 matrices");
    breaks(loaded(4, &[2, 3], Elem::U32, true), "a fragment of 4 elements in held");
    breaks(loaded(2, &[4], Elem::U32, true), "a fragment of 2 elements in held");
    breaks(loaded(4, &[2], Elem::U32, true), "a fragment of 4 elements in held");
    breaks(loaded(4, &[4], Elem::U32, false), "16 bytes of shared memory");
    for elem in [Elem::F16, Elem::Bf16, Elem::F32] {
        assert!(loaded(4, &[4], elem, true).finish().is_ok(), "rows of {elem}");
    }
    breaks(loaded(4, &[4], Elem::F64, true), "words of u32 from rows of f64");
}
