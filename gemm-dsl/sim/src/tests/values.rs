//! Values: IEEE arithmetic, NaN, integers, control flow.

use super::*;
use gemm_dsl::ir::{BinaryOp, Elem, Extent, For, Intrinsic, Ty, UnaryOp, Unroll};
use gemm_dsl::target::intrinsic::CANONICAL_NAN;

/// One thread computes `value` from `in[0]`, `in[1]`, `in[2]`.
fn compute(input: [u32; 3], value: impl Fn([Expr; 3]) -> Expr) -> u32 {
    let mut b = bench(1, 1, [3, 1]);
    let value = value([0, 1, 2].map(|i| b.read(i)));
    b.write(0, value);
    let buffers = [Buffer::from_f32(&input.map(f32::from_bits)), Buffer::zeros(1)];
    launch(&b.finish(), &buffers, &[]).expect("the kernel is right");
    buffers[1].to_vec()[0].to_bits()
}

fn bits(value: f32) -> u32 {
    value.to_bits()
}

const PAYLOAD: u32 = 0xffc1_2345;

#[test]
fn arithmetic_makes_the_canonical_nan() {
    let nan = [PAYLOAD, bits(1.0), bits(2.0)];
    for op in [BinaryOp::ADD, BinaryOp::SUB, BinaryOp::MUL, BinaryOp::DIV] {
        let value = compute(nan, |[a, b, _]| Expr::binary(op, a, b));
        assert_eq!(value, CANONICAL_NAN, "{op:?}");
    }
    let fma = |[a, b, c]: [Expr; 3]| Expr::Call(Intrinsic::Fma, vec![b, c, a]);
    assert_eq!(compute(nan, fma), CANONICAL_NAN);
    let neg = |[a, ..]: [Expr; 3]| Expr::Unary(UnaryOp::Neg, Box::new(a));
    assert_eq!(compute(nan, neg), CANONICAL_NAN);
    let zero = [0; 3];
    assert_eq!(compute(zero, |[a, b, _]| a / b), CANONICAL_NAN);
}

#[test]
fn moves_keep_payloads() {
    let nan = [PAYLOAD, 0, 0];
    assert_eq!(compute(nan, |[a, ..]| a), PAYLOAD);
    let select = |[a, b, c]: [Expr; 3]| b.equals(c).select(a, 1.0);
    assert_eq!(compute(nan, select), PAYLOAD);
    let shuffle = |[a, ..]: [Expr; 3]| Expr::Call(Intrinsic::ShuffleDown, vec![a, 0.into()]);
    assert_eq!(compute(nan, shuffle), PAYLOAD);
}

#[test]
fn multiply_add_rounds_once_and_keeps_subnormals() {
    let (a, b, c) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON, -1.0);
    let fused = |[a, b, c]: [Expr; 3]| Expr::Call(Intrinsic::Fma, vec![a, b, c]);
    let input = [a, b, c].map(bits);
    assert_eq!(compute(input, fused), bits(a.mul_add(b, c)));
    assert_eq!(compute(input, |[a, b, c]| a * b + c), bits(a * b + c));
    assert_ne!(bits(a.mul_add(b, c)), bits(a * b + c));
    let tiny = [1, 2, 0];
    assert_eq!(compute(tiny, |[a, b, _]| a + b), 3);
}

#[test]
fn maximum_orders_zeros() {
    let zeros = [bits(-0.0), bits(0.0), 0];
    let max = |[a, b, _]: [Expr; 3]| Expr::Call(Intrinsic::Maximum, vec![a, b]);
    let min = |[a, b, _]: [Expr; 3]| Expr::Call(Intrinsic::Minimum, vec![a, b]);
    assert_eq!(compute(zeros, max), bits(0.0));
    assert_eq!(compute(zeros, min), bits(-0.0));
}

#[test]
fn shuffle_takes_from_above_or_itself() {
    let mut b = bench(32, 1, [32, 32]);
    let value = Expr::Call(Intrinsic::ShuffleDown, vec![b.read(tid()), 5.into()]);
    b.write(tid(), value);
    let (out, _) = b.run().expect("the kernel is right");
    let expected = |i: usize| if i + 5 < 32 { i + 5 } else { i } as f32;
    assert!((0..32).all(|i| out[i] == expected(i)), "{out:?}");
}

#[test]
fn shuffle_takes_from_below_or_itself() {
    let mut b = bench(32, 1, [32, 32]);
    let value = Expr::Call(Intrinsic::ShuffleUp, vec![b.read(tid()), 5.into()]);
    b.write(tid(), value);
    let (out, _) = b.run().expect("the kernel is right");
    assert!((0..32).all(|i| out[i] == if i < 5 { i } else { i - 5 } as f32), "{out:?}");
}

#[test]
fn shuffle_takes_from_the_lane_with_other_bits() {
    for bits in [0, 1, 5, 16, 31] {
        let mut b = bench(64, 1, [64, 64]);
        let value = Expr::Call(Intrinsic::ShuffleXor, vec![b.read(tid()), bits.into()]);
        b.write(tid(), value);
        let (out, _) = b.run().expect("the kernel is right");
        assert!((0..64).all(|i| out[i] == (i ^ bits as usize) as f32), "{bits}: {out:?}");
    }
}

/// Each lane reads the lane that it names.
#[test]
fn a_shuffle_reads_the_named_lane() {
    let mut b = bench(64, 1, [64, 64]);
    let from = (tid() * 7 + 3) % 32;
    let value = Expr::Call(Intrinsic::ShuffleFrom, vec![b.read(tid()), from]);
    b.write(tid(), value);
    let (out, _) = b.run().expect("the kernel is right");
    let from = |i: usize| i / 32 * 32 + (i * 7 + 3) % 32;
    assert!((0..64).all(|i| out[i] == from(i) as f32), "{out:?}");
}

/// A ballot has a bit for each lane of the warp, and all lanes count its ones.
#[test]
fn a_ballot_collects_the_booleans_of_a_warp() {
    let mut b = bench(64, 1, [64, 64]);
    let votes = Expr::Call(Intrinsic::Ballot, vec![(tid() % 3).equals(0)]);
    let votes = b.k.let_("votes", votes);
    let below = Expr::Call(Intrinsic::CountOnes, vec![votes & Expr::U32(0xffff)]);
    b.write(tid(), below.cast(Elem::F32));
    let (out, _) = b.run().expect("the kernel is right");
    let ones = |warp: usize| (32 * warp..32 * warp + 16).filter(|i| i % 3 == 0).count() as f32;
    assert!((0..64).all(|i| out[i] == ones(i / 32)), "{out:?}");
}

/// The sum over 0 .. tid agrees for a divergent loop, a loop with a parameter as bound, and an
/// unrolled loop.
#[test]
fn loops_agree() {
    for unroll in [Unroll::Auto, Unroll::Full] {
        let mut b = bench(40, 1, [64, 40]);
        let n = b.k.extent("n", Ty::I32, Extent::LENGTH);
        let input = b.input;
        let sum = b.k.mut_("sum", 0.0);
        b.k.loop_("i", For::below(0, tid()).unroll(unroll), |k, i| {
            k.assign(sum, Expr::from(sum) + load(input, i));
        });
        b.k.loop_("j", For::below(0, n).unroll(unroll), |k, j| {
            k.if_(Expr::from(j).lt(tid()), |k| {
                k.assign(sum, Expr::from(sum) + load(input, j));
            });
        });
        b.k.unrolled("u", 40, |k, u| {
            k.if_else(
                Expr::from(u).lt(tid()),
                |k| k.assign(sum, Expr::from(sum) + load(input, u)),
                |k| k.assign(sum, Expr::from(sum) + 0.0),
            );
        });
        b.write(tid(), sum);
        let input: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let buffers = [Buffer::from_f32(&input), Buffer::zeros(40)];
        launch(&b.finish(), &buffers, &[40]).expect("the kernel is right");
        let expected = |t: usize| (0..t).sum::<usize>() as f32 * 3.0;
        let out = buffers[1].to_vec();
        assert!((0..40).all(|t| out[t] == expected(t)), "{out:?}");
    }
}

/// One variable is uniform until a divergent assignment, and another stays uniform.
#[test]
fn assignments_under_divergence_stay_in_their_lanes() {
    let mut b = bench(32, 1, [64, 64]);
    let (varied, switched) = (b.k.mut_("varied", 1), b.k.mut_("switched", 0));
    let (input, output) = (b.input, b.output);
    b.k.loop_("round", For::below(0, 3), |k, _| {
        k.assign(switched, Expr::from(switched).xor(1));
        k.if_(tid().lt(7), |k| k.assign(varied, Expr::from(varied) + 1));
    });
    b.k.store(at(output, tid()), load(input, varied));
    b.k.store(at(output, tid() + 32), load(input, switched));
    let (out, _) = b.run().expect("the kernel is right");
    assert!((0..32).all(|t| out[t] == if t < 7 { 4.0 } else { 1.0 }), "{out:?}");
    assert!(out[32..].iter().all(|&v| v == 1.0), "{out:?}");
}

/// A per-lane boolean is a variable; an assignment in a branch affects only the lanes of that
/// branch.
#[test]
fn truth_values_are_kept_lane_by_lane() {
    let mut b = bench(40, 1, [1, 40]);
    let low = b.k.let_("low", tid().lt(20));
    let odd = b.k.mut_("odd", (tid() % 2).equals(1));
    b.k.if_(low.into(), |k| k.assign(odd, Expr::Unary(UnaryOp::Not, Box::new(odd.into()))));
    b.write(tid(), Expr::from(odd).select(1.0, 0.0));
    let (out, _) = b.run().expect("the kernel is right");
    let expected = |t| f32::from((t % 2 == 1) != (t < 20));
    assert!((0..40).all(|t| out[t] == expected(t)), "{out:?}");
}

#[test]
fn operands_are_evaluated_where_they_are_needed() {
    let mut b = bench(32, 1, [8, 32]);
    let inside = tid().lt(8);
    let value = inside.clone().and(b.read(tid()).gt(2.0)).or(tid().equals(31));
    let guarded = inside.select(b.read(tid()), 0.5);
    b.write(tid(), value.select(guarded, -1.0));
    let (out, _) = b.run().expect("the guard protects the loads");
    let expected = |t| match t {
        3..8 => t as f32,
        31 => 0.5,
        _ => -1.0,
    };
    assert!((0..32).all(|t| out[t] == expected(t)), "{out:?}");
}

#[test]
fn register_arrays_take_indices_that_differ() {
    let mut b = bench(32, 1, [1, 32]);
    let r = b.k.registers("r", Elem::F32, [4.into(), 2.into()], "");
    let place = |i: Expr, j: i32| Access::new(r, [i, j.into()]);
    b.k.loop_("i", For::below(0, 4), |k, i| {
        for j in 0..2 {
            k.store(place(i.into(), j), j as f32);
        }
    });
    b.k.store(place(tid() % 4, 0), 5.0);
    b.write(tid(), place(1.into(), 0).load() + place((tid() + 1) % 4, 1).load());
    let (out, _) = b.run().expect("the kernel is right");
    let expected = |t| if t % 4 == 1 { 6.0 } else { 1.0 };
    assert!((0..32).all(|t| out[t] == expected(t)), "{out:?}");
}

#[test]
fn integers_that_do_not_fit_are_faults() {
    let fault = |index: Expr| {
        let mut b = bench(32, 1, [1, 1]);
        let value = b.read(index);
        b.write(0, value);
        b.kind()
    };
    let big = tid() + i32::MAX - 3;
    assert!(matches!(fault(big), FaultKind::Overflow { op: BinaryOp::ADD, .. }));
    assert!(matches!(fault(tid() / tid()), FaultKind::DivisionByZero));
    let uniform = Expr::from(Special::BlockX);
    assert!(matches!(fault(uniform.clone() % uniform), FaultKind::DivisionByZero));
    let negative = Expr::Cast(Elem::U64, Box::new(tid() - 1));
    assert!(matches!(fault(negative), FaultKind::Conversion { value: -1, .. }));
    let large = Expr::Cast(Elem::I32, Box::new(tid().wide() + Expr::U64(1 << 40)));
    assert!(matches!(fault(large), FaultKind::Conversion { .. }));
}

/// Values of inactive lanes cause no fault.
#[test]
fn inactive_lanes_do_not_fault() {
    let mut b = bench(32, 1, [32, 32]);
    let input = b.input;
    let output = b.output;
    b.k.if_(tid().lt(4), |k| {
        let scaled = k.let_("scaled", tid() * (1 << 28));
        k.store(at(output, tid()), load(input, Expr::from(scaled) / (1 << 28)));
    });
    let (out, _) = b.run().expect("only lanes 0 to 3 multiply");
    assert_eq!(out[..5], [0.0, 1.0, 2.0, 3.0, 0.0]);
}

#[test]
fn wide_integers_wrap() {
    let mut b = bench(32, 1, [32, 32]);
    let offset = tid().wide() - Expr::U64(1) + Expr::U64(1);
    let value = b.read(offset);
    b.write(tid(), value);
    let (out, _) = b.run().expect("the difference wraps and comes back");
    assert!((0..32).all(|t| out[t] == t as f32));
}
