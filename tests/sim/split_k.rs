//! Ranges of K that blocks of their own sum: what makes one of them add what all have left is needed.

use crate::plant::*;
use gemm_dsl::ir::{Elem, Order, Scope, VerifiedKernel};
use gemm_dsl::sim::{self, Buffer};
use gemm_dsl::spec::SgemmSpec;
use gemm_reference::product::Size;
use gemm_tests::product::in_order;
use gemm_tests::random;

/// Kernels of three ranges in every pipeline, with several products a block.
const LINES: [&str; 4] = [
    "tile: 16x16x8, thread: 2x2, split_k: 3",
    "tile: 16x16x8, thread: 4x4, split_k: 3, double_buffer, float4",
    "tile: 16x16x8, thread: 4x4, split_k: 3, stages: 3, fragment: split",
    "tile: 8x8x8, thread: 2x2, split_k: 3, prefetch, batch: strided, products: 2",
];

/// Two tiles along rows and along columns at least; six of K, the last of which is ragged: three ranges of two.
const SIZE: Size = Size { m: 20, n: 24, k: 44 };
const BATCH: usize = 3;

fn spec(line: &str) -> SgemmSpec {
    line.parse().expect("a line")
}

/// What is multiplied: of a batch each product of its own numbers.
fn factors(spec: &SgemmSpec) -> (usize, Vec<f32>, Vec<f32>) {
    let Size { m, n, k } = SIZE;
    let count = if spec.batch.is_some() { BATCH } else { 1 };
    (count, random::values(1, count * m * k), random::values(2, count * k * n))
}

/// Each sum by ranges of whole tiles of K, added in their order.
fn expected(spec: &SgemmSpec) -> Vec<f32> {
    let Size { m, n, k } = SIZE;
    let (count, a, b) = factors(spec);
    let products = a.chunks(m * k).zip(b.chunks(k * n));
    let all = products.flat_map(|(a, b)| {
        let at = move |at: usize| in_order(spec, k, |p| (a[at / n * k + p], b[p * n + at % n]));
        (0..m * n).map(at)
    });
    let all: Vec<f32> = all.collect();
    assert_eq!(all.len(), count * m * n);
    all
}

fn shown(spec: &SgemmSpec, kernel: &VerifiedKernel) -> Shown {
    let Size { m, n, k } = SIZE;
    let (count, a, b) = factors(spec);
    let tile = spec.tile.expect("a tile");
    let tiles = m.div_ceil(tile.m as usize) * n.div_ceil(tile.n as usize);
    let tiles = tiles * count.div_ceil(spec.products as usize);
    let sums = (tile.m * tile.n * spec.products * spec.split_k) as usize;
    let c = Buffer::from_f32(&vec![f32::NAN; count * m * n]);
    let partials = Buffer::from_f32(&vec![f32::NAN; tiles * sums]);
    let tickets = Buffer::zeros_of(Elem::U32, tiles);
    let buffers = [Buffer::from_f32(&a), Buffer::from_f32(&b), c, partials, tickets];
    let mut scalars = vec![m as u64, n as u64, k as u64];
    if spec.batch.is_some() {
        scalars.push(count as u64);
        scalars.extend([m * k, k * n, m * n].map(|apart| apart as u64));
    }
    match sim::launch(kernel, &buffers, &scalars) {
        Ok(_) if buffers[4].bits().iter().any(|word| *word != 0) => Shown::NotKept,
        Ok(_) => {
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
            let all = buffers[2].to_vec();
            if all.iter().zip(&expected(spec)).all(same) { Shown::Not } else { Shown::Wrong }
        }
        Err(error) => Shown::by(error),
    }
}

#[test]
fn ranges_are_added_in_their_order_and_every_barrier_is_needed() {
    for line in LINES {
        let spec = spec(line);
        let sound = kernel(&spec);
        assert_eq!(shown(&spec, &sound), Shown::Not, "{line}");
        let planted = each(|n| without_barrier(&sound, Scope::Block, n));
        assert!(planted.len() >= 4, "{line}: {}", planted.len());
        for (n, kernel) in planted.iter().enumerate() {
            let found = shown(&spec, kernel);
            let told = [Shown::Race, Shown::Uninitialised].contains(&found);
            assert!(told, "`{line}` without barrier {n}: {found:?}");
        }
    }
}

#[test]
fn tickets_order_what_ranges_leave_and_are_put_back() {
    for line in LINES {
        let spec = spec(line);
        let sound = kernel(&spec);
        for order in [Order::Relaxed, Order::Acquire, Order::Release] {
            let weak = with_ticket(&sound, order, 1).expect("a ticket");
            assert_eq!(shown(&spec, &weak), Shown::Race, "`{line}`, {order:?}");
        }
        let forgotten = without_store(&sound, "tickets", 0).expect("a reset");
        assert_eq!(shown(&spec, &forgotten), Shown::NotKept, "{line}");
        let early = with_ticket(&sound, Order::AcqRel, 2).expect("a ticket");
        let found = shown(&spec, &early);
        let told = [Shown::Race, Shown::Uninitialised, Shown::Order, Shown::NotKept, Shown::Wrong];
        assert!(told.contains(&found), "`{line}` that does not wait: {found:?}");
        let fewer = with_other_end(&sound, "other", -1).expect("the other ranges");
        assert_eq!(shown(&spec, &fewer), Shown::Wrong, "{line}");
    }
}
