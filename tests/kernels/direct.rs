//! Direct kernels, in which several threads share a sum. The tests remove each part of the code
//! that combines the threads' values, and must then see a fault.

use crate::planted_faults::*;
use gemm_dsl::ir::{Scope, VerifiedKernel};
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_oracle::random;
use gemm_oracle::sharing::{SIMULATED, Sharing};
use gemm_sim::Buffer;
use libtest_mimic::Trial;

/// The kernels in which faults are planted have at least two blocks along rows and along columns,
/// and a partial last round along K.
const SIZE: Size = Size { m: 20, n: 20, k: 292 };

const SLICES: [&str; 3] = [
    "block: 4x4, thread: 2x2, slices: 3",
    "block: 2x4, lanes: m, thread: 4x4, float4, slices: 4, unroll: 2",
    "block: 2x2, lanes: k, thread: 4x1, float4, slices: 2",
];

fn spec(line: &str) -> SgemmSpec {
    line.parse().expect("a line")
}

fn shown(spec: &SgemmSpec, kernel: &VerifiedKernel) -> Shown {
    let Size { m, n, k } = SIZE;
    let (a, b) = (random::values(1, m * k), random::values(2, k * n));
    let buffers =
        [Buffer::from_f32(&a), Buffer::from_f32(&b), Buffer::from_f32(&vec![f32::NAN; m * n])];
    if let Err(error) = gemm_sim::launch(kernel, &buffers, &[m as u64, n as u64, k as u64]) {
        return Shown::by(error);
    }
    let sharing = Sharing::new(spec, SIZE, 1, SIMULATED);
    let expected =
        |at: usize| sharing.sum(0, (at / n, at % n), |p| (a[at / n * k + p], b[p * n + at % n]));
    let same = |(at, c): (usize, &f32)| c.to_bits() == expected(at).to_bits();
    if buffers[2].to_vec().iter().enumerate().all(same) { Shown::Not } else { Shown::Wrong }
}

fn slices_hand_over_behind_a_barrier_and_all_are_added() {
    for line in SLICES {
        let spec = spec(line);
        let sound = kernel(&spec);
        assert_eq!(shown(&spec, &sound), Shown::Not, "{line}");
        let planted = each(|n| without_barrier(&sound, Scope::Block, n));
        assert_eq!(planted.len(), 1, "{line}");
        let found = shown(&spec, &planted[0]);
        let told = [Shown::Race, Shown::Uninitialised].contains(&found);
        assert!(told, "`{line}` without its barrier: {found:?}");
        let silent = without_store(&sound, "handed_over", 0).expect("a store");
        assert_eq!(shown(&spec, &silent), Shown::Uninitialised, "{line}");
        let fewer = with_other_end(&sound, "other", -1).expect("the other slices");
        assert_eq!(shown(&spec, &fewer), Shown::Wrong, "{line}");
    }
}

fn the_lanes_of_a_warp_are_added_by_a_tree() {
    for line in ["lanes: k", "lanes: k, block: 2x1, thread: 4x4, float4, unroll: 2", SLICES[2]] {
        let spec = spec(line);
        let sound = kernel(&spec);
        assert_eq!(shown(&spec, &sound), Shown::Not, "{line}");
        let halfway = with_other_end(&sound, "s", 1).expect("a tree");
        assert_eq!(shown(&spec, &halfway), Shown::Wrong, "{line}");
    }
}

/// The bits of a sum depend on the partition of K, not on the number of elements per thread.
fn shares_alone_decide_the_bits() {
    let all = |lines: &[&str]| {
        let of = |line: &&str| {
            let (spec, Size { m, n, k }) = (spec(line), SIZE);
            let (a, b) = (random::values(1, m * k), random::values(2, k * n));
            let c = Buffer::zeros(m * n);
            let buffers = [Buffer::from_f32(&a), Buffer::from_f32(&b), c];
            let scalars = [m as u64, n as u64, k as u64];
            gemm_sim::launch(&kernel(&spec), &buffers, &scalars).expect("a sound kernel");
            buffers[2].bits()
        };
        let bits: Vec<_> = lines.iter().map(of).collect();
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]), "{lines:?}");
        bits[0].clone()
    };
    let plain =
        all(&["block: 16x16", "thread: 4x4", "thread: 2x8, float4, unroll: 2", "lanes: m, float4"]);
    let lanes = all(&["lanes: k, float4", "lanes: k, thread: 4x2, float4, unroll: 2"]);
    let slices = all(&["thread: 4x4, slices: 2", "block: 2x2, slices: 2, unroll: 4"]);
    assert!(plain != lanes && lanes != slices && slices != plain);
}

pub fn trials() -> Vec<Trial> {
    simulated![
        slices_hand_over_behind_a_barrier_and_all_are_added,
        the_lanes_of_a_warp_are_added_by_a_tree,
        shares_alone_decide_the_bits,
    ]
}
