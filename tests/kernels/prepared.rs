//! GEMMs with prepared operands, which are split in advance: bits, launches, and kernels that use
//! prepared operands.

use gemm_dsl::spec::{Arith, GemmLayout, SgemmSpec};
use gemm_dsl::target::Format;
use gemm_oracle::product::Size;
use gemm_oracle::random::{Hard, Random};
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, Sgemm};
use gemm_tests::prepared::compare;
use gemm_tests::product::Problem;
use libtest_mimic::Trial;

fn spec(line: &str) -> SgemmSpec {
    line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"))
}

/// Elements of a 128-byte row.
fn terms(arith: Arith) -> u32 {
    if arith.format() == Some(Format::Tf32) { 32 } else { 64 }
}

fn given_splits_give_the_same_bits() {
    let device = Device::simulator();
    let mut random = Random::new(17);
    let (mut whole, mut lost) = (0, 0);
    for (nth, arith) in Arith::ALL.iter().filter(|arith| arith.format().is_some()).enumerate() {
        for (turn, layout) in GemmLayout::ALL.iter().enumerate() {
            let rest = [
                "",
                "float4, copy: tma, stages: 2, producer, persistent",
                "copy: tma, split_k: 2, epilogue: |acc| acc * 2.0",
            ];
            let is_tested = |rest: usize| gemm_cases::is_in_turn(rest, 3, nth + turn);
            let rest = rest.into_iter().zip([false, true, false]).enumerate();
            for (_, (rest, pitched)) in rest.filter(|(rest, _)| is_tested(*rest)) {
                let of =
                    format!("tile: 64x16x{}, arith: {arith}, mma: wgmma, {rest}", terms(*arith));
                let spec = spec(&of).layout(*layout).pitched(pitched);
                let mut extent = |most: u64| (random.bits() % most) as usize;
                let size = Size::new(extent(130), extent(70), extent(150));
                let (seed, pitch) = (extent(1000) as u64, if pitched { extent(5) } else { 0 });
                let mut problem = match extent(3) {
                    0 => Problem::hard(size, seed, Hard::ALL[extent(4)]),
                    _ => Problem::new(size, seed),
                };
                if let (true, Some(first)) = (extent(4) == 0, problem.b.first_mut()) {
                    *first = f32::NAN;
                }
                let found = compare(&device, &spec, &problem, pitch)
                    .unwrap_or_else(|error| panic!("{error}"));
                let (rows, columns) = (size.m.div_ceil(64), size.n.div_ceil(64));
                let [without, ref with @ ..] = found.blocks;
                let (rows, columns) = (rows as u64, columns as u64);
                if without == 0 {
                    assert!([size.m, size.n, size.k].contains(&0), "{spec} at {size}");
                    assert_eq!(with, &[0; 3], "{spec} at {size}");
                    continue;
                }
                // The launch splits an operand unless it is prepared and its split represents all
                // numbers.
                let per_line = without / (rows + columns);
                for (found_blocks, given) in
                    with.iter().zip([[false, true], [true, false], [true, true]])
                {
                    let takes = [0, 1].map(|nth| given[nth] && found.is_whole[nth]);
                    let of_a = if takes[0] { 0 } else { rows };
                    let of_b = if takes[1] { 0 } else { columns };
                    assert_eq!(*found_blocks, per_line * (of_a + of_b), "{spec} at {size}");
                }
                match found.is_whole {
                    [true, true] => whole += 1,
                    _ => lost += 1,
                }
            }
        }
    }
    let [most_whole, some_lost] = if gemm_cases::is_thinned() { [12, 1] } else { [40, 5] };
    assert!(whole > most_whole && lost > some_lost, "{whole} {lost}");
}

/// Values that the split cannot represent are found when an operand is prepared.
fn unrepresentable_values_are_found() {
    let device = Device::simulator();
    for arith in Arith::ALL.iter().filter(|arith| arith.is_emulation()) {
        let spec = spec(&format!("tile: 64x8x{}, arith: {arith}, mma: wgmma", terms(*arith)));
        let ordinary = Problem::new(Size::new(65, 9, 70), 5);
        for special in [f32::INFINITY, f32::NAN, 1e-42] {
            let (mut of_a, mut of_b) = (ordinary.clone(), ordinary.clone());
            of_a.a[100] = special;
            of_b.b[100] = special;
            for (problem, is_whole) in [(&of_a, [false, true]), (&of_b, [true, false])] {
                let found = compare(&device, &spec, problem, 0);
                let found = found.unwrap_or_else(|error| panic!("{special}: {error}"));
                // With f16x3, a tiny number in a row with ordinary numbers is excluded from the
                // error bound.
                let counts = !(arith.is_scaled() && special == 1e-42);
                let holds = is_whole.map(|is_whole| is_whole || !counts);
                assert_eq!(found.is_whole, holds, "{arith}: {special}");
            }
        }
        let found = compare(&device, &spec, &ordinary, 0).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.is_whole, [true, true], "{arith}");
    }
}

/// Kernels with another arithmetic, and kernels of batches, read the original matrix instead of its
/// split.
fn others_read_the_matrix() -> Result<(), Error> {
    let device = Device::simulator();
    let (a, b) = (device.upload(&[1.0; 12])?, device.upload(&[2.0; 12])?);
    let (a, b) = (MatrixRef::new(&a, 3, 4)?, MatrixRef::new(&b, 4, 3)?);
    let prepared = device.prepare(Arith::Bf16x6, &b)?;
    assert_eq!((prepared.arith(), prepared.is_whole()), (Arith::Bf16x6, true));
    let lines = [
        ("tile: 64x8x64, arith: bf16x9, mma: wgmma", 2),
        ("tile: 64x8x64, arith: bf16x6, mma: wgmma", 1),
        ("tile: 16x16x16, warp: 16x16, arith: bf16x6", 0),
        ("tile: 16x16x16, warp: 16x16, arith: bf16x6, convert: matrix", 2),
        ("tile: 8x8x8", 0),
    ];
    for (line, blocks) in lines {
        let mut c = device.alloc(9)?;
        let kernel = Sgemm::<()>::new(spec(line))?;
        let mut out = MatrixMut::new(&mut c, 3, 3)?;
        let launched = kernel.call(&device).launch(&a, &prepared, &mut out)?;
        let made: u32 = launched
            .steps()
            .filter(|step| step.kernel().ends_with("_splits"))
            .map(|step| step.grid()[0])
            .sum();
        assert_eq!(made, blocks, "{line}");
        assert_eq!(device.download(&c)?, [8.0; 9]);
    }
    // A matrix prepared as B is not valid as A.
    let square = device.upload(&[1.0; 16])?;
    let square = device.prepare(Arith::Bf16x6, &MatrixRef::new(&square, 4, 4)?)?;
    let mut c = device.alloc(16)?;
    let kernel = Sgemm::<()>::new(spec("tile: 64x8x64, arith: bf16x6, mma: wgmma"))?;
    let launched =
        kernel.call(&device).launch(&square, &square, &mut MatrixMut::new(&mut c, 4, 4)?)?;
    let made = launched.steps().find(|step| step.kernel().ends_with("_splits"));
    assert_eq!(made.map(|step| step.grid()[0]), Some(1));
    assert_eq!(device.download(&c)?, [4.0; 16]);
    let batch = Sgemm::<()>::new(spec("tile: 64x8x64, arith: bf16x6, mma: wgmma, batch: strided"))?;
    let mut c = device.alloc(9)?;
    batch.call(&device).launch(&a, &prepared, &mut MatrixMut::new(&mut c, 3, 3)?)?;
    assert_eq!(device.download(&c)?, [8.0; 9]);
    // A matrix of another device and an arithmetic without a split are errors.
    let other = Device::simulator();
    let elsewhere = other.prepare(Arith::Bf16x6, &b);
    assert!(matches!(elsewhere, Err(Error::WrongDevice { .. })), "{elsewhere:?}");
    let none = device.prepare(Arith::F32, &b);
    assert!(matches!(none, Err(Error::Spec(_))), "{none:?}");
    // A matrix with K = 0 has no elements, and more columns than a kernel can count.
    let empty = device.upload(&[1.0; 12])?;
    for arith in Arith::ALL.iter().filter(|arith| arith.format().is_some()) {
        let wide = device.prepare(*arith, &MatrixRef::new(&empty, 0, 1 << 62)?).map(|_| ());
        assert!(
            matches!(
                wide,
                Err(Error::Unmet(_) | Error::OutOfMemory { .. } | Error::TooLarge { .. })
            ),
            "{wide:?}"
        );
    }
    let many = device.upload(&[1.0; 12])?;
    let many = device.prepare(Arith::Bf16, &MatrixRef::batch(&many, 3, 2, 2)?).map(|_| ());
    assert!(matches!(many, Err(Error::Unmet(_))), "{many:?}");
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    simulated![
        given_splits_give_the_same_bits,
        unrepresentable_values_are_found,
        others_read_the_matrix,
    ]
}
