//! Products have the bits of one device.

use crate::draw;
use fastrand::Rng;
use gemm_runtime::world::World;
use gemm_runtime::{Device, Error, SgemmKernel};

/// Lines without operands. Those that are not `pitched` take columns of C at once.
const LINES: [&str; 10] = [
    "block: 16x16",
    "tile: 16x16x8, thread: 2x2, pitched",
    "tile: 32x16x8, thread: 4x2, double_buffer, pitched",
    "tile: 32x32x8, thread: 4x4, stages: 3, float4, pitched",
    "tile: 16x16x8, thread: 2x2, slices: 2, pitched",
    "tile: 16x16x8, thread: 2x2, split_k: 3, pitched",
    "tile: 32x32x16, arith: bf16x6, warp: 16x32, pitched",
    "tile: 64x32x32, arith: bf16x6, mma: wgmma, pitched",
    "tile: 64x16x32, arith: f16x3, mma: wgmma, pitched",
    "tile: 64x32x32, arith: bf16, mma: wgmma, pitched",
];

fn bits(elements: &[f32]) -> Vec<u32> {
    // Which NaN it is says nothing of who has computed it: all are canonical in the simulator.
    elements.iter().map(|element| element.to_bits()).collect()
}

/// The product on one device.
fn alone(kernel: &SgemmKernel, a: &[f32], b: &[f32], size: (usize, usize, usize)) -> Vec<f32> {
    let device = Device::simulator();
    kernel.run(&device, a, b, size).expect("one device computes it")
}

#[test]
fn the_bits_are_those_of_one_device() {
    let mut rng = Rng::with_seed(14);
    let mut refused = 0;
    for round in 0..240 {
        let ranks = *rng.choice(&[1, 2, 3, 4, 7, 8]).expect("there are some");
        let line = LINES[round % LINES.len()];
        let most = if line.contains("wgmma") { 100 } else { 60 };
        let [m, n, k] = [0; 3].map(|_| draw::extent(&mut rng, most));
        let mut values = draw::numbers(&mut rng, m * k);
        if rng.bool() {
            // Nothing that planes do not hold.
            values.iter_mut().for_each(|value| *value = value.clamp(-4.0, 4.0).max(0.25));
        }
        let (a, b) = (values, draw::numbers(&mut rng, k * n));
        let kernel = SgemmKernel::new(line.parse().expect("a line")).expect("a kernel");
        let expected = alone(&kernel, &a, &b, (m, n, k));
        let [of_a, of_b, of_c] =
            [(m, k), (k, n), (m, n)].map(|(rows, cols)| draw::layout(&mut rng, rows, cols, ranks));
        let way = draw::way(&mut rng);
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let (a, b) = (rank.upload(&of_a, &a)?, rank.upload(&of_b, &b)?);
            let mut c = rank.upload(&of_c, &vec![f32::NAN; m * n])?;
            let call = kernel.on(rank);
            let call = if let Some(way) = way { call.way(way) } else { call };
            call.launch(&a, &b, &mut c)?;
            rank.gather(&c, ranks - 1)
        });
        let what = format!("{line}, {m}x{n}x{k}, A {of_a}, B {of_b}, C {of_c}, {way:?}");
        let found = match found {
            // Parts of columns lie apart, and the message says what to do.
            Err(error @ Error::Unmet(_)) if !line.contains("pitched") => {
                assert!(error.to_string().contains("Add `pitched`"), "{what}: {error}");
                refused += 1;
                continue;
            }
            found => found.unwrap_or_else(|error| panic!("{what}: {error}")),
        };
        let found = found.last().cloned().flatten().expect("the last rank has them");
        let differ = bits(&found).into_iter().zip(bits(&expected)).position(|(f, e)| f != e);
        assert_eq!((found.len(), differ), (expected.len(), None), "{what}");
    }
    assert!(refused < 12, "{refused} of 24 products by the line that is not pitched were refused");
}
