//! Tables of kernels on matrices of any types, and calls of `gemm`.

use super::{Placed, Rounded, check};
use gemm_dsl::spec::{Arith, GemmLayout, MatrixType, SgemmSpec, Spec};
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::bounds::GemmElement;
use gemm_runtime::compile::Arch;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::spec::Batch;
use gemm_runtime::{
    Device, Epilogue, Error, GemmTable, KernelTable, MatrixMut, MatrixRef, N, SgemmShape, epilogue,
    gemm, gemm_tables,
};
use gemm_tests::{arbitrary, simulator};
use libtest_mimic::Trial;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Size, and the matrices of A, B and C that are column-major.
#[derive(Clone, Copy, Debug)]
struct Shape {
    size: Size,
    by_column: [bool; 3],
}

impl Shape {
    fn draw(random: &mut Random, most: u64) -> Self {
        let mut extent = || {
            let bits = random.bits();
            let extent = (bits >> 8) % most;
            // Half of the extents are multiples of 8.
            (if bits & 1 == 0 { extent } else { extent.next_multiple_of(8) }) as usize
        };
        let size = Size::new(extent(), extent(), extent());
        let bits = random.bits();
        Self { size, by_column: [0, 1, 2].map(|nth| bits >> nth & 1 == 1) }
    }
}

/// Small integers.
fn integers(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| f64::from(random.bits() as u32 % 17) - 8.0).collect()
}

/// Runs a GEMM of matrices in random places, with NaN around them. Compares C with the values that
/// `stored` computes of the sum, the column and the previous C.
fn product<T: Rounded, R: Rounded + Debug>(
    device: &Device,
    Shape { size: Size { m, n, k }, by_column }: Shape,
    random: &mut Random,
    run: impl FnOnce([&MatrixRef<'_, T>; 2], &mut MatrixMut<'_, R>) -> Result<(), Error>,
    stored: impl Fn(f64, usize, f64) -> f64,
) -> Result<(), String> {
    let pitched = SgemmSpec::default().pitched(true);
    let (a, b) = (integers(random, m * k), integers(random, k * n));
    let c = integers(random, m * n);
    let mut place =
        |rows, cols, nth: usize| Placed::draw(random, [rows, cols], by_column[nth], &pitched);
    let (at_a, at_b, at_c) = (place(m, k, 0), place(k, n, 1), place(m, n, 2));
    let launched = || -> Result<Vec<R>, Error> {
        let of_a = at_a.upload::<T>(device, Some(&a))?;
        let of_b = at_b.upload::<T>(device, Some(&b))?;
        let mut of_c = at_c.upload::<R>(device, Some(&c))?;
        let (a, b) = (of_a.slice(at_a.range())?, of_b.slice(at_b.range())?);
        let (a, b) = (at_a.view(&a)?, at_b.view(&b)?);
        let mut part = of_c.slice_mut(at_c.range())?;
        if by_column[2] {
            run([&a, &b], &mut MatrixMut::pitched(&mut part, n, m, at_c.pitch)?.t())?;
        } else {
            run([&a, &b], &mut MatrixMut::pitched(&mut part, m, n, at_c.pitch)?)?;
        }
        device.download(&of_c)
    };
    let found = launched().map_err(|error| error.to_string())?;
    let element = |i: usize| {
        let (row, col) = (i / n, i % n);
        let sum = (0..k).map(|at| a[row * k + at] * b[at * n + col]).sum::<f64>();
        stored(sum, col, c[i])
    };
    at_c.compare(&found, &(0..m * n).map(element).collect::<Vec<_>>())
}

/// Random specs that are valid for any layout, by their types.
fn specs() -> BTreeMap<(String, String), Vec<SgemmSpec>> {
    let sound =
        arbitrary::typed_floats(256).prop_filter_map("valid for some layouts", |mut spec| {
            ["layout", "pitched", "name", "bounds"].into_iter().for_each(|key| spec.reset(key));
            let plans = |layout: &GemmLayout| {
                [false, true]
                    .map(|padded| spec.clone().for_matrices(*layout, padded).plan().is_ok())
            };
            // Emulations need a header with their accuracy class.
            let is_exact = spec.arith == Arith::F32 || spec.reads_matrices();
            let is_single = spec.batch.is_none() && is_exact;
            let is_sound = is_single && GemmLayout::ALL.iter().flat_map(plans).all(|is| is);
            is_sound.then_some(spec)
        });
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for spec in arbitrary::sample(sound, 160) {
        all.entry((spec.a.to_string(), spec.c.to_string())).or_default().push(spec);
    }
    all
}

/// The first rule whose condition holds is launched, on matrices anywhere in memory.
fn random_tables_choose_and_compute() {
    let (device, mut random) = (simulator(), Random::new(5));
    let mut types = BTreeSet::new();
    for ((a, c), specs) in specs() {
        for rules in specs.chunks(3) {
            let mut lines = vec![format!("a: {a}, b: {a}, c: {c}")];
            let bounds: Vec<u64> = rules.iter().map(|_| 1 + random.bits() % 40).collect();
            for (nth, (rule, bound)) in rules.iter().zip(&bounds).enumerate() {
                let (of, name) = (rule.clone(), ["m", "n"][nth % 2]);
                let line = of.a(MatrixType::F32).b(MatrixType::F32).c(MatrixType::F32);
                let condition = format!("{name} < {bound} && k > {nth}");
                let is_last = nth + 1 == rules.len();
                let condition = if is_last { "else".to_owned() } else { condition };
                lines.push(format!("{condition} => {line}"));
            }
            let text = lines.join(";\n");
            let table: KernelTable<SgemmSpec> =
                text.parse().unwrap_or_else(|faults| panic!("{text}: {faults}"));
            let printed = table.to_string();
            assert_eq!(printed.parse::<KernelTable<SgemmSpec>>().expect(&printed), table);
            types.insert((a.clone(), c.clone()));
            for _ in 0..4 {
                let mut shape = Shape::draw(&mut random, 70);
                shape.by_column[2] = false;
                let Size { m, n, k } = shape.size;
                let extents = [m as u64, n as u64];
                let rule = bounds.iter().enumerate().position(|(nth, bound)| {
                    nth + 1 == rules.len() || extents[nth % 2] < *bound && k > nth
                });
                let of = OfTypes { device: &device, table: &table, shape, rule };
                of.checked(&a, &c, &mut random).unwrap_or_else(|e| panic!("{shape:?} {text}: {e}"));
            }
        }
    }
    assert!(types.len() > 6, "{types:?}");
}

/// Table for a shape, with the rule that it must choose.
struct OfTypes<'t> {
    device: &'t Device,
    table: &'t KernelTable<SgemmSpec>,
    shape: Shape,
    rule: Option<usize>,
}

impl OfTypes<'_> {
    fn checked(&self, a: &str, c: &str, random: &mut Random) -> Result<(), String> {
        match a {
            "f64" => self.result::<f64>(c, random),
            "f16" => self.result::<f16>(c, random),
            "bf16" => self.result::<bf16>(c, random),
            _ => self.result::<f32>(c, random),
        }
    }

    fn result<T: Rounded>(&self, c: &str, random: &mut Random) -> Result<(), String> {
        match c {
            "f64" => self.launched::<T, f64>(random),
            "f16" => self.launched::<T, f16>(random),
            "bf16" => self.launched::<T, bf16>(random),
            _ => self.launched::<T, f32>(random),
        }
    }

    fn launched<T: Rounded, R: Rounded + Debug>(&self, random: &mut Random) -> Result<(), String> {
        let table = GemmTable::<T, T, R>::new(self.table).map_err(|error| error.to_string())?;
        let Size { m, n, k } = self.shape.size;
        let choice = table.choice((m, n, k), self.device).map_err(|error| error.to_string())?;
        if Some(choice.rule) != self.rule {
            return Err(format!("{choice:?}, not {:?}", self.rule));
        }
        let run = |[a, b]: [&MatrixRef<'_, T>; 2], c: &mut MatrixMut<'_, R>| {
            table.call(self.device).launch(a, b, c).map(drop)
        };
        product(self.device, self.shape, random, run, |sum, _, _| sum)
    }
}

/// Each kernel that the table of an H200 chooses is right at small sizes.
fn kernels_of_the_shipped_table_are_right() {
    let device = simulator();
    let [table, _] = gemm_tables::<bf16, f16>(Some(Arch::sm(90)));
    let mut specs = BTreeSet::new();
    for size in [
        (64, 64, 64),
        (512, 512, 8192),
        (904, 904, 6000),
        (1024, 1024, 1024),
        (3000, 800, 1200),
        (1400, 3000, 1000),
        (1000, 3000, 2000),
        (6000, 5000, 1000),
        (1280, 1280, 1280),
        (1536, 1536, 1536),
        (2560, 2560, 512),
        (768, 4096, 512),
        (4096, 4096, 4096),
        (900, 901, 903),
        (33, 35, 37),
    ] {
        let shape = SgemmShape::from(size).layout(GemmLayout::ALL[specs.len() % 4]);
        specs.insert(table.choice(shape, &device).expect("a choice").spec);
    }
    assert!(specs.len() > 10, "{specs:?}");
    for (spec, seed) in specs.into_iter().zip(1..) {
        let spec: SgemmSpec = spec.parse().expect("a sound spec");
        let found = check(&device, &spec, Size::new(130, 264, 136), seed);
        found.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// `gemm` computes alpha·A·B + beta·C and epilogues on views of any layout, also of C.
fn calls<T: GemmElement<R> + gemm_runtime::bounds::F32Sums + Rounded, R: Rounded + Debug>() {
    const LAYER: Epilogue<(N,)> = epilogue!(|acc, bias[n]| relu(acc + bias));
    let (device, mut random) = (simulator(), Random::new(9));
    for nth in 0..24 {
        let shape = Shape::draw(&mut random, 50);
        let bias = integers(&mut random, shape.size.n);
        let on_device: Vec<f32> = bias.iter().map(|value| *value as f32).collect();
        let on_device = device.upload(&on_device).expect("a vector");
        let (alpha, beta) = [(1.0, 0.0), (0.5, 2.0), (2.0, 0.0)][nth % 3];
        let is_layer = nth % 2 == 0;
        let run = |[a, b]: [&MatrixRef<'_, T>; 2], c: &mut MatrixMut<'_, R>| {
            let call = gemm(a, b, c).alpha(alpha).beta(beta);
            match is_layer {
                true => call.epilogue(LAYER).operands(&on_device).run(&device).map(drop),
                false => call.run(&device).map(drop),
            }
        };
        let stored = |sum: f64, col: usize, c: f64| {
            let acc = f64::from(alpha) * sum + if beta == 0.0 { 0.0 } else { f64::from(beta) * c };
            if is_layer { (acc + bias[col]).max(0.0) } else { acc }
        };
        let found = product(&device, shape, &mut random, run, stored);
        found.unwrap_or_else(|error| panic!("{shape:?}: {error}"));
    }
}

fn calls_of_any_types() {
    calls::<bf16, bf16>();
    calls::<bf16, f32>();
    calls::<f16, f16>();
    calls::<f16, bf16>();
    calls::<f32, f32>();
    let (device, mut random) = (simulator(), Random::new(3));
    for _ in 0..12 {
        let shape = Shape::draw(&mut random, 50);
        let run = |[a, b]: [&MatrixRef<'_, f64>; 2], c: &mut MatrixMut<'_, f64>| {
            gemm(a, b, c).run(&device).map(drop)
        };
        let found = product(&device, shape, &mut random, run, |sum, _, _| sum);
        found.unwrap_or_else(|error| panic!("{shape:?}: {error}"));
    }
}

/// A batch takes the table whose specs have `batch: strided`.
fn batches_are_multiplied() {
    let device = simulator();
    let ones = device.upload_of(&[bf16::ONE; 3 * 4 * 5]).expect("elements");
    let mut c = device.alloc_of::<f32>(3 * 4 * 4).expect("elements");
    let a = MatrixRef::batch(&ones, 3, 4, 5).expect("a batch");
    let b = MatrixRef::batch(&ones, 3, 4, 5).expect("a batch").t();
    let mut to = MatrixMut::batch(&mut c, 3, 4, 4).expect("a batch");
    let call = gemm(&a, &b, &mut to);
    let spec: SgemmSpec = call.spec(&device).expect("a spec");
    assert_eq!(spec.batch, Some(Batch::Strided));
    call.run(&device).expect("a launch");
    assert_eq!(device.download(&c).expect("elements"), [5.0; 48]);
}

pub(super) fn trials() -> Vec<Trial> {
    simulated![
        random_tables_choose_and_compute,
        kernels_of_the_shipped_table_are_right,
        calls_of_any_types,
        batches_are_multiplied
    ]
    .into_iter()
    .collect()
}
