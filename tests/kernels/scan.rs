//! Scans of arrays and rows against folds of each prefix, on the simulator.

use crate::trial;
use gemm_dsl::spec::{AccType, DataType, ResultType, ScanOp, ScanOver, ScanSpec};
use gemm_dsl::target::element::Element;
use gemm_oracle::random::{Random, values};
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{
    BufferView, BufferViewMut, Device, Error, InPlace, LaunchReport, MatrixMut, MatrixRef, Scan,
    Variant, scan_kernel,
};
use libtest_mimic::{Failed, Trial};

/// Number of which every type here represents all sums that the tests compute, except overflows of
/// integers, which wrap.
trait Small: Element + PartialEq {
    fn of(value: i64) -> Self;
    fn value(self) -> f64;
}

macro_rules! small {
    ($($ty:ty: |$v:ident| $of:expr, |$s:ident| $value:expr;)*) => {$(
        impl Small for $ty {
            fn of($v: i64) -> Self {
                $of
            }

            fn value(self) -> f64 {
                let $s = self;
                $value
            }
        }
    )*};
}
small! {
    f32: |v| v as f32, |s| s.into();
    f64: |v| v as f64, |s| s;
    f16: |v| f16::from_f32(v as f32), |s| s.to_f64();
    bf16: |v| bf16::from_f32(v as f32), |s| s.to_f64();
    i8: |v| v as i8, |s| s.into();
    u8: |v| v as u8, |s| s.into();
    i32: |v| v as i32, |s| s.into();
    u32: |v| v as u32, |s| s.into();
    i64: |v| v, |s| s as f64;
    u64: |v| v as u64, |s| s as f64;
}

/// A matrix in poisoned memory: `start` elements before it, `padding` after each row.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    padding: usize,
    by_column: bool,
}

impl Place {
    fn random(random: &mut Random, over: ScanOver) -> Self {
        let mut below = |n: u64| (random.bits() % n) as usize;
        let step = [1, 16][below(2)];
        let padding = if over == ScanOver::All { 0 } else { below(3) * step };
        Self { start: below(4) * step, padding, by_column: over == ScanOver::Rows && below(4) == 0 }
    }

    /// Distance between rows and between columns.
    fn strides(self, [rows, cols]: [usize; 2]) -> [usize; 2] {
        match self.by_column {
            true => [1, rows + self.padding],
            false => [cols + self.padding, 1],
        }
    }

    fn len(self, [rows, cols]: [usize; 2]) -> usize {
        let [row, col] = self.strides([rows, cols]);
        if rows * cols == 0 { 0 } else { (rows - 1) * row + (cols - 1) * col + 1 }
    }

    /// Index of an element in the memory.
    fn at(self, size: [usize; 2], row: usize, col: usize) -> usize {
        let strides = self.strides(size);
        self.start + row * strides[0] + col * strides[1]
    }
}

/// Elements after the array.
const BEHIND: usize = 3;

/// Scans a random matrix of small integers, whose sums are exact in every order.
fn scan<T: Small, R: Small>(spec: &ScanSpec, random: &mut Random) -> Vec<Variant> {
    let device = Device::simulator();
    let kernel = Scan::<T, R>::new(spec.clone()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let mut below = |n: u64| (random.bits() % n) as usize;
    let cols = match below(4) {
        0 => [0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097][below(11)],
        1 => below(9000),
        _ => below(200),
    };
    let rows = if spec.over == ScanOver::All { 1 } else { below(5000 / (cols as u64 + 1) + 2) };
    let size = [rows, cols];
    let (input, output) = (Place::random(random, spec.over), Place::random(random, spec.over));
    let poison = 99;
    let mut memory = vec![T::of(poison); input.start + input.len(size) + BEHIND];
    // Products of 1, -1 and 2 stay small if 2 is rare.
    let element = |random: &mut Random| match (spec.op, random.bits() % 8) {
        (ScanOp::Prod, bits) => [1, 1, 1, 1, 1, 1, 0, 1][bits as usize],
        (ScanOp::Sum, bits) => i64::from(bits == 0),
        (_, bits) => bits as i64,
    };
    for row in 0..rows {
        for col in 0..cols {
            memory[input.at(size, row, col)] = T::of(element(random));
        }
    }
    let x = device.upload_of(&memory).expect("room");
    let len = output.start + output.len(size) + BEHIND;
    let mut y = device.upload_of(&vec![R::of(poison); len]).expect("room");
    let from = input.start..input.start + input.len(size);
    let to = output.start..output.start + output.len(size);
    let (from, mut to) = (x.slice(from).expect("inside"), y.slice_mut(to).expect("inside"));
    let launched = match spec.over {
        ScanOver::All => kernel.launch(&device, &from, &mut to),
        _ => launch_rows(&kernel, &device, (&from, input), (&mut to, output), size),
    };
    let launched = launched.unwrap_or_else(|error| panic!("{spec} of {size:?}: {error}"));
    let found = device.download(&y).expect("ours");
    let mut expected = vec![R::of(poison); len];
    for row in 0..rows {
        let mut folded = None;
        for col in 0..cols {
            let value = memory[input.at(size, row, col)].value();
            let next = Some(folded.map_or(value, |folded| fold(spec.op, folded, value)));
            let result = if spec.exclusive { folded } else { next };
            let result = result.map_or_else(|| identity(spec), |result| R::of(result as i64));
            expected[output.at(size, row, col)] = result;
            folded = next;
        }
    }
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let same = found.into_bits() == expected.into_bits();
        assert!(
            same,
            "{spec} of {size:?}, {input:?}, {output:?}: {at}: {found:?}, not {expected:?}"
        );
    }
    launched.steps().map(|step| step.variant()).collect()
}

/// Launches a scan of rows, on views in row-major or column-major order.
fn launch_rows<T: Small, R: Small>(
    kernel: &Scan<T, R>,
    device: &Device,
    (from, input): (&BufferView<'_, T>, Place),
    (to, output): (&mut BufferViewMut<'_, R>, Place),
    [rows, cols]: [usize; 2],
) -> Result<LaunchReport, Error> {
    let shape = |place: Place| match place.by_column {
        true => (cols, rows, rows + place.padding),
        false => (rows, cols, cols + place.padding),
    };
    let (m, n, stride) = shape(input);
    let from = MatrixRef::pitched(from, m, n, stride)?;
    let from = if input.by_column { from.t() } else { from };
    let (m, n, stride) = shape(output);
    let mut to = MatrixMut::pitched(to, m, n, stride)?;
    match output.by_column {
        true => kernel.launch(device, &from, &mut to.t()),
        false => kernel.launch(device, &from, &mut to),
    }
}

fn fold(op: ScanOp, a: f64, b: f64) -> f64 {
    match op {
        ScanOp::Sum => a + b,
        ScanOp::Prod => a * b,
        ScanOp::Max => a.max(b),
        _ => a.min(b),
    }
}

/// First result of an exclusive scan.
fn identity<R: Small>(spec: &ScanSpec) -> R {
    let acc = spec.acc_elem();
    let least = |bits: u32, signed: bool| if signed { 1_u64 << (bits - 1) } else { 0 };
    let bits = 8 * acc.size();
    let mask = u64::MAX >> (64 - bits);
    let float = |value: f64| -> R {
        let all = [(f16::from_f64(value).to_bits()).into(), bf16::from_f64(value).to_bits().into()];
        let bits: u64 = match R::ELEM {
            gemm_dsl::ir::Elem::F16 => all[0],
            gemm_dsl::ir::Elem::Bf16 => all[1],
            gemm_dsl::ir::Elem::F32 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        };
        R::from_bits(bits)
    };
    match (spec.op, acc.is_float()) {
        (ScanOp::Sum, true) => float(-0.0),
        (ScanOp::Sum, false) => R::of(0),
        (ScanOp::Prod, _) => R::of(1),
        (ScanOp::Max, true) => float(f64::NEG_INFINITY),
        (ScanOp::Min, true) => float(f64::INFINITY),
        (ScanOp::Max, false) => R::from_bits(least(bits, acc.is_signed())),
        (_, _) => R::from_bits(if acc.is_signed() { mask >> 1 } else { mask }),
    }
}

/// Specs of all keys.
fn specs(random: &mut Random) -> ScanSpec {
    let mut below = |n: u64| (random.bits() % n) as usize;
    let mut spec = ScanSpec::default().op(ScanOp::ALL[below(4)]).exclusive(below(2) == 0);
    let block = 32 << below(4);
    spec = spec.block(block);
    if below(2) == 0 {
        spec = spec.over(ScanOver::Rows);
        let group = [1, 4, 32, block, 32][below(5)];
        spec = spec.group(group);
    }
    if below(2) == 0 {
        spec = spec.items(1 + below(u64::from((1024 / block).min(5))) as u32);
    }
    spec
}

fn scans_are_folds_of_prefixes() {
    let mut variants = Vec::new();
    for seed in gemm_cases::seeds(60) {
        let mut random = Random::new(seed);
        let of = |element: DataType, random: &mut Random| specs(random).element(element);
        let random = &mut random;
        variants.extend(scan::<f32, f32>(&of(DataType::F32, random), random));
        variants.extend(scan::<f64, f64>(&of(DataType::F64, random), random));
        variants
            .extend(scan::<f64, f32>(&of(DataType::F64, random).result(ResultType::F32), random));
        variants.extend(scan::<f16, f32>(&of(DataType::F16, random), random));
        variants.extend(scan::<bf16, bf16>(
            &of(DataType::Bf16, random).result(ResultType::Bf16),
            random,
        ));
        variants.extend(scan::<i8, i32>(&of(DataType::I8, random), random));
        variants.extend(scan::<u8, u32>(&of(DataType::U8, random), random));
        variants.extend(scan::<u8, u64>(&of(DataType::U8, random).acc(AccType::U64), random));
        variants.extend(scan::<i32, i32>(&of(DataType::I32, random), random));
        variants.extend(scan::<u32, u32>(&of(DataType::U32, random), random));
        variants.extend(scan::<i64, i64>(&of(DataType::I64, random), random));
        variants.extend(scan::<u64, u64>(&of(DataType::U64, random), random));
    }
    assert!([Variant::Vector, Variant::Scalar].iter().all(|variant| variants.contains(variant)));
}

/// Several groups of 32 tiles, and more than one section of 32 groups, for words with and without
/// their values.
fn prefixes_pass_from_group_to_group() {
    fn check<T: Small>(tile: usize, spec: &str) {
        let device = Device::simulator();
        let kernel = Scan::<T, T>::new(spec.parse().expect("sound")).expect("its type");
        let x: Vec<T> = (0..(1024 + 67) * tile + 7).map(|i| T::of(i as i64 % 3)).collect();
        let found = kernel.run(&device, &x).expect("sound");
        let mut sum = 0;
        for (at, (x, found)) in x.iter().zip(found).enumerate() {
            sum += x.value() as i64;
            assert_eq!(found.into_bits(), T::of(sum).into_bits(), "{at}");
        }
    }
    check::<f32>(128, "block: 32, items: 1");
    check::<f64>(64, "type: f64, block: 32, items: 1");
}

/// The bits do not depend on the alignment, and NaN and zeros follow IEEE 754.
fn bits_follow_the_order() {
    let device = Device::simulator();
    let x: Vec<f32> = (0..5000).map(|i| 1.0 / (1 + i * 7 % 1000) as f32).collect();
    let kernel = <Scan>::new("block: 64".parse().expect("sound")).expect("its type");
    let first = kernel.run(&device, &x).expect("sound");
    let shifted: Vec<f32> = [9.0].into_iter().chain(x.iter().copied()).collect();
    let shifted = device.upload(&shifted).expect("room");
    let mut out = device.alloc(5001).expect("room");
    let launched = kernel.launch(
        &device,
        &shifted.slice(1..).expect("inside"),
        &mut out.slice_mut(1..).expect("inside"),
    );
    launched.expect("sound");
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&device.download(&out).expect("ours")[1..]), bits(&first));
    let max = <Scan>::new("op: max".parse().expect("sound")).expect("its type");
    let found = max.run(&device, &[-0.0, 0.0, f32::NAN, 1.0]).expect("sound");
    assert_eq!(bits(&found[..2]), bits(&[-0.0, 0.0]));
    assert!(found[2].is_nan() && found[3].is_nan());
}

const OFFSETS: Scan<u8, u32> = scan_kernel!(type: u8, exclusive);

fn misuse_is_an_error() {
    let device = Device::simulator();
    assert_eq!(OFFSETS.run(&device, &[200, 100, 1]).expect("sound"), [0, 200, 300]);
    assert_eq!(OFFSETS.run(&device, &[]).expect("sound"), []);
    let refused = Scan::<f32>::new("type: i8".parse().expect("sound")).expect_err("its type");
    let text = refused.to_string();
    assert!(
        text.ends_with("its type is `Scan<i8, i32>`, not `Scan<f32>`. Use `Scan<i8, i32>`"),
        "{text}"
    );
    let kernel = <Scan>::new("".parse().expect("sound")).expect("its type");
    let x = device.upload_matrix(&[1.0; 6], 2, 3).expect("room");
    let mut y = device.alloc_matrix(2, 3).expect("room");
    let found = kernel.launch(&device, &x, &mut y);
    assert!(matches!(found, Err(Error::Unmet(_))), "{found:?}");
    let mut short = device.alloc_matrix(2, 2).expect("room");
    let found = kernel.launch(&device, &x, &mut short);
    assert!(matches!(found, Err(Error::Extents { .. })), "{found:?}");
    let mut own = device.upload(&[1.0, 2.0, 3.0]).expect("room");
    kernel.launch(&device, InPlace::first(), &mut own).expect("sound");
    assert_eq!(device.download(&own).expect("ours"), [1.0, 3.0, 6.0]);
    let rows = <Scan>::new("over: rows".parse().expect("sound")).expect("its type");
    let found = rows.run(&device, &[1.0]);
    assert!(matches!(found, Err(Error::WrongOperand { .. })), "{found:?}");
}

/// Arrays of several sections, with random elements. Each launch has the simulator's bits.
fn on_gpu<T: Small>(gpu: &Device, spec: &str, of: fn(f32) -> T) -> Result<(), Failed> {
    let kernel = Scan::<T, T>::new(spec.parse()?)?;
    // Tiles of 64 or 128 elements.
    for n in [1, 1000, (1024 + 67) * 128 + 7] {
        let x: Vec<T> = values(n as u64, n).into_iter().map(of).collect();
        let expected = kernel.run(&Device::simulator(), &x)?;
        for round in 0..20 {
            let found = kernel.run(gpu, &x)?;
            let differs =
                found.iter().zip(&expected).position(|(a, b)| a.into_bits() != b.into_bits());
            if let Some(at) = differs {
                let what = format!("{spec} of {n}, launch {round}: element {at}");
                return Err(format!("{what}: {:?}, not {:?}", found[at], expected[at]).into());
            }
        }
    }
    Ok(())
}

fn gpu_trials() -> Vec<Trial> {
    vec![
        trial("scan::f32".to_owned(), |gpu| on_gpu::<f32>(gpu, "block: 32, items: 1", |x| x)),
        trial("scan::default".to_owned(), |gpu| on_gpu::<f32>(gpu, "exclusive", |x| x)),
        trial("scan::max".to_owned(), |gpu| on_gpu::<f32>(gpu, "op: max, block: 64", |x| x)),
        trial("scan::f64".to_owned(), |gpu| {
            on_gpu::<f64>(gpu, "type: f64, block: 32, items: 1", f64::from)
        }),
        trial("scan::i32".to_owned(), |gpu| {
            on_gpu::<i32>(gpu, "type: i32, block: 128", |x| (x * 1e9) as i32)
        }),
    ]
}

pub fn trials() -> Vec<Trial> {
    let mut trials = gpu_trials();
    trials.extend(simulated![
        scans_are_folds_of_prefixes,
        prefixes_pass_from_group_to_group,
        bits_follow_the_order,
        misuse_is_an_error,
    ]);
    trials
}
