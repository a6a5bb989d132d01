//! Tables of GEMMs. Every rule of random tables is correct, in typed tables and in tables by name.
//! If all rules sum in ascending K, a row of C has the same bits alone and in any batch.

use gemm_dsl::spec::{Bounds, GemmLayout, SgemmSpec, Spec};
use gemm_oracle::product::Size;
use gemm_oracle::random::{Hard, Random};
use gemm_runtime::{
    ByName, Device, Error, KernelTable, MatrixMut, MatrixRef, SgemmShape, SgemmTable, Variant,
};
use gemm_tests::arbitrary::{sample, sgemm};
use gemm_tests::product::{Problem, accepted};
use libtest_mimic::Trial;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Bits of each value, with all NaNs mapped to one.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| if v.is_nan() { f32::NAN.to_bits() } else { v.to_bits() }).collect()
}

/// Random specs of plain GEMMs that are valid for any layout.
fn lines(count: usize, is_fit: impl Fn(&SgemmSpec) -> bool + Copy) -> Vec<SgemmSpec> {
    let plain = sgemm(256).prop_filter_map("another product", move |mut spec| {
        ["epilogue", "scaled", "layout", "pitched"].into_iter().for_each(|key| spec.reset(key));
        let is_sound = |layout: &GemmLayout| {
            [false, true].map(|padded| spec.clone().for_matrices(*layout, padded).plan().is_ok())
        };
        let sound = GemmLayout::ALL.iter().flat_map(is_sound).all(|is| is);
        (is_fit(&spec) && spec.arith.accuracy().is_some() && sound).then_some(spec)
    });
    let lines = sample(plain, count);
    assert!(lines.len() > count / 2, "{}", lines.len());
    lines
}

fn table(text: &str) -> KernelTable<SgemmSpec> {
    text.parse().unwrap_or_else(|faults| panic!("{text}: {faults}"))
}

/// Returns C as computed by a table for this layout, and the access variant that ran.
fn launch(
    device: &Device,
    table: &SgemmTable<ByName>,
    (problem, layout): (&Problem, GemmLayout),
) -> Result<(Vec<f32>, Variant), Error> {
    let Size { m, n, .. } = problem.size;
    let [a, b] = problem.stored_inputs(layout);
    let (on_a, on_b) = (device.upload(&a.values)?, device.upload(&b.values)?);
    let mut c = device.upload(&vec![f32::NAN; m * n])?;
    let a = a.view(MatrixRef::new(&on_a, a.lines, a.line)?);
    let b = b.view(MatrixRef::new(&on_b, b.lines, b.line)?);
    let launched = table.call(device).launch(&a, &b, &mut MatrixMut::new(&mut c, m, n)?)?;
    Ok((device.download(&c)?, launched.variant()))
}

fn every_row_of_random_tables_gives_right_results() {
    let device = Device::simulator();
    let (mut random, mut emulated) = (Random::new(11), 0);
    for rows in lines(60, |_| true).chunks(6) {
        let mut extent = |most: u64| random.bits() % most;
        let mut sizes: Vec<Size> = Vec::new();
        for (n, row) in rows.iter().enumerate() {
            // Each rule is chosen for a different K.
            let [rows, cols, terms] = [70, 70, 9].map(&mut extent).map(|n| n as usize);
            sizes.push(accepted(row, Size::new(rows, cols, 40 * n + terms)));
        }
        // Kernels without guards require multiples of the tile, so two rules may get the same K.
        let distinct: BTreeSet<usize> = sizes.iter().map(|size| size.k).collect();
        if distinct.len() < rows.len() {
            continue;
        }
        let text = rows.iter().zip(&sizes).map(|(row, size)| format!("k == {} => {row};", size.k));
        let rows_of_text = text.collect::<String>();
        let text = format!("accuracy: norm; {rows_of_text}else => {}", rows[0]);
        let dsl = table(&text);
        let by_name = SgemmTable::<ByName>::new(&dsl).expect("no operands");
        let typed = SgemmTable::<()>::new(&dsl).expect("no operands");
        for (n, (row, &size)) in rows.iter().zip(&sizes).enumerate() {
            let problem = Problem::new(size, n as u64);
            let layout = GemmLayout::ALL[random.bits() as usize % GemmLayout::ALL.len()];
            let shape = SgemmShape::from(size.extents()).layout(layout);
            let row = &row.clone().for_matrices(shape.lies(), false);
            let choice = typed.choice(shape, &device).expect("in range");
            assert_eq!((choice.rule, &choice.spec), (n, &row.to_string()), "{text}");
            assert_eq!(choice.why, format!("k = {}", size.k));
            let (c, _) = launch(&device, &by_name, (&problem, layout))
                .unwrap_or_else(|error| panic!("{row} at {size}: {error}"));
            problem.check(&device, row, Default::default(), &c).expect("right");
            let alone = typed.kernel(shape, &device).expect("in range");
            assert_eq!(alone.spec_line(), row.to_string());
            if row.is_invariant() {
                assert_eq!(bits(&c), bits(&problem.ascending(row)), "{row} at {size}");
            }
            emulated += usize::from(row.arith.is_emulation());
        }
    }
    assert!(emulated > 5, "{emulated}");
}

/// The condition `aligned` is true if and only if a vector kernel reads 16 bytes at once.
fn aligned_is_whether_16_bytes_are_read_at_once() {
    let device = Device::simulator();
    let line = "tile: 8x8x8, thread: 4x4, float4";
    let text = format!("aligned => {line}, raster: 1; else => {line}");
    let of = SgemmTable::<()>::new(&table(&text)).expect("no operands");
    let values = device.upload(&[1.0; 4096]).expect("room");
    let mut random = Random::new(3);
    let mut seen = [0; 2];
    for _ in 0..200 {
        let mut below = |n: u64| (random.bits() % n) as usize;
        let [m, n, k] = [2 + below(5), 1 + below(12), 1 + below(12)];
        let [at_a, at_b, at_c] = [4, 4, 4].map(|n| if below(6) == 0 { below(n) } else { 0 });
        let [pad_a, pad_b, pad_c] = [k, n, n].map(|line| match below(6) {
            0 => line,
            1 => line + below(5),
            _ => line.next_multiple_of(4),
        });
        // The padding makes all kernels `pitched`. Otherwise a row would have to consist of whole
        // vectors.
        let pad_c = pad_c + 4;
        let memory = |at: usize| values.slice(at..).expect("inside");
        let (a, b) = (memory(at_a), memory(at_b));
        let a = MatrixRef::pitched(&a, m, k, pad_a).expect("room");
        let b = MatrixRef::pitched(&b, k, n, pad_b).expect("room");
        let mut c = device.alloc(4096).expect("room");
        let mut c = c.slice_mut(at_c..).expect("inside");
        let mut c = MatrixMut::pitched(&mut c, m, n, pad_c).expect("room");
        let launched = of.call(&device).launch(&a, &b, &mut c).expect("sound");
        let step = launched.steps().next().expect("it ran");
        let is_aligned = step.kernel().contains("raster");
        let reads_vectors = launched.variant() == Variant::Vector;
        assert_eq!(
            is_aligned,
            reads_vectors,
            "{m}x{n}x{k} {:?}",
            [at_a, at_b, at_c, pad_a, pad_b, pad_c]
        );
        seen[usize::from(is_aligned)] += 1;
    }
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
}

/// A strided batch and a pointer list with the same GEMMs select the same rule.
fn a_table_of_batches_counts_the_products() {
    let device = Device::simulator();
    let text = "batch <= 2 => batch: strided, tile: 8x8x8; waves(8x8) * f64(sms) == 12.0 => batch: \
        strided, unroll: 2; else => batch: strided, block: 8x8";
    let of = SgemmTable::<()>::new(&table(text)).expect("no operands");
    for (count, row) in [(1, 0), (2, 0), (3, 1), (4, 2)] {
        let (a, b) = (device.upload(&[1.0; 400]), device.upload(&[2.0; 800]));
        let (a, b, mut c) = (a.expect("room"), b.expect("room"), device.alloc(2000).expect("room"));
        let a = MatrixRef::batch(&a, count, 9, 3).expect("room");
        let b = MatrixRef::new(&b, 3, 10).expect("room");
        let mut to = MatrixMut::batch(&mut c, count, 9, 10).expect("room");
        let launched = of.call(&device).launch(&a, &b, &mut to).expect("sound");
        let name = launched.steps().next().expect("it ran").kernel().to_owned();
        let ran = [name.contains("8x8x8"), name.contains("unroll2"), name.contains("naive_8x8")];
        assert!(ran[row], "{count}: {name}");
        assert_eq!(device.download(&c).expect("ours")[..count * 90], vec![6.0; count * 90]);
    }
}

/// A row of C has the same bits whether the table's rule for one row computes it, or another rule
/// in a batch of rows.
fn a_row_of_c_has_the_same_bits_alone_and_in_any_batch() {
    let device = Device::simulator();
    let fit = |spec: &SgemmSpec| spec.is_invariant() && spec.bounds == Bounds::Guarded;
    let (mut seed, mut zeros) = (0, [0; 2]);
    for layout in [GemmLayout::Nn, GemmLayout::Nt] {
        let lines = lines(36, fit);
        for three in lines.chunks_exact(3) {
            let [one, few, many] = three else { unreachable!("chunks of 3") };
            let text = format!("invariant; m <= 1 => {one}; m <= 4 => {few}; else => {many}");
            let of = SgemmTable::<ByName>::new(&table(&text)).expect("no operands");
            seed += 1;
            let mut random = Random::new(seed);
            let mut below = |n: u64| (random.bits() % n) as usize;
            let (m, n, k) = (5 + below(30), 1 + below(40), below(50));
            let what = Hard::ALL[seed as usize % Hard::ALL.len()];
            let whole = Problem::hard(Size::new(m, n, k), seed, what);
            let (c, _) = launch(&device, &of, (&whole, layout)).expect("sound");
            let values = c.iter().filter(|value| **value == 0.0);
            values.for_each(|zero| zeros[usize::from(zero.is_sign_negative())] += 1);
            assert_eq!(bits(&c), bits(&whole.ascending(many)), "{text} at {}", whole.size);
            for rows in [1, 3] {
                let first = below((m - rows) as u64 + 1);
                let a = whole.a[first * k..(first + rows) * k].to_vec();
                let part = Problem::of(Size::new(rows, n, k), a, whole.b.clone());
                let (alone, _) = launch(&device, &of, (&part, layout)).expect("sound");
                let in_batch = &c[first * n..(first + rows) * n];
                assert_eq!(
                    bits(&alone),
                    bits(in_batch),
                    "{text}: rows {first} on of {}",
                    whole.size
                );
            }
        }
    }
    // An ascending sum from +0 is never −0.
    assert!(zeros[0] > 20, "{zeros:?}");
}

/// Other orders of summation compute other bits, so the test above can fail.
fn several_accumulators_give_other_bits() {
    let device = Device::simulator();
    let text = "m <= 1 => block: 8x8, unroll: 4, partials: 4; else => block: 8x8";
    let of = SgemmTable::<ByName>::new(&table(text)).expect("no operands");
    let whole = Problem::new(Size::new(9, 30, 40), 5);
    let part = Problem::of(Size::new(1, 30, 40), whole.a[..40].to_vec(), whole.b.clone());
    let (c, _) = launch(&device, &of, (&whole, GemmLayout::Nn)).expect("sound");
    let (alone, _) = launch(&device, &of, (&part, GemmLayout::Nn)).expect("sound");
    assert_ne!(bits(&alone), bits(&c[..30]));
    assert!(format!("invariant; {text}").parse::<KernelTable<SgemmSpec>>().is_err());
}

pub fn trials() -> Vec<Trial> {
    simulated![
        every_row_of_random_tables_gives_right_results,
        aligned_is_whether_16_bytes_are_read_at_once,
        a_table_of_batches_counts_the_products,
        a_row_of_c_has_the_same_bits_alone_and_in_any_batch,
        several_accumulators_give_other_bits,
    ]
}
