//! GEMMs on matrices of any types. Elements are small integers, so that sums are exact in any
//! order, and each element of C is the exact sum rounded to its type.

mod batches;
mod bits;
mod tables;

use gemm_dsl::spec::{Bounds, GemmLayout, MatrixType, Pairs, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::fp8::{e4m3, e5m2};
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{
    Buffer, BufferView, ByName, Device, Element, Error, Gemm, MatrixMut, MatrixRef,
};
use gemm_tests::product::accepted;
use gemm_tests::{arbitrary, simulator};
use libtest_mimic::{Failed, Trial};
use proptest::prelude::*;
use std::ops::Range;

/// Element type with the rounding of exact numbers.
trait Rounded: Element + PartialEq + std::fmt::Debug {
    /// Returns the nearest number, or a mark that no result equals.
    fn rounded(exact: f64) -> Self;

    fn is_mark(&self) -> bool {
        let number = self;
        #[expect(clippy::eq_op, reason = "a NaN is not equal to itself")]
        let is_nan = number != number;
        is_nan
    }
}

/// Integers have no NaN. The mark is a number above all results.
macro_rules! rounded_integers {
    ($($ty:ident)*) => {
        $(impl Rounded for $ty {
            fn rounded(exact: f64) -> Self {
                if exact.is_nan() { $ty::MAX - 1 } else { exact as $ty }
            }

            fn is_mark(&self) -> bool {
                *self == $ty::MAX - 1
            }
        })*
    };
}

rounded_integers!(i8 u8 i32);

impl Rounded for f64 {
    fn rounded(exact: f64) -> Self {
        exact
    }
}

impl Rounded for f32 {
    fn rounded(exact: f64) -> Self {
        exact as f32
    }
}

impl Rounded for f16 {
    fn rounded(exact: f64) -> Self {
        f16::from_f64(exact)
    }
}

impl Rounded for e4m3 {
    fn rounded(exact: f64) -> Self {
        e4m3::from_f64(exact)
    }
}

impl Rounded for e5m2 {
    fn rounded(exact: f64) -> Self {
        e5m2::from_f64(exact)
    }
}

impl Rounded for bf16 {
    fn rounded(exact: f64) -> Self {
        bf16::from_f64(exact)
    }
}

/// Epilogue whose values are exact, with the values that it stores.
struct TestEpilogue {
    text: &'static str,
    /// Number of columns of C for two columns of A·B.
    width: usize,
    /// Elements of C for a pair of columns, given its sums.
    stored: fn(sums: [f32; 2], beside: [PairOperands; 2]) -> Vec<f32>,
}

/// Operands of the epilogue for an element.
#[derive(Clone, Copy)]
struct PairOperands {
    of_n: f32,
    of_m: f32,
    of_mn: f32,
    /// C before the launch.
    c: f32,
}

const EPILOGUES: [TestEpilogue; 6] = [
    TestEpilogue { text: "", width: 2, stored: |sums, _| sums.into() },
    TestEpilogue {
        text: "|acc, of_n[n], of_m[m]| acc + of_n + of_m",
        width: 2,
        stored: |[x, y], [p, q]| vec![x + p.of_n + p.of_m, y + q.of_n + q.of_m],
    },
    TestEpilogue {
        text: "|acc, of_mn[m, n], of_m[m]| acc * of_m + of_mn",
        width: 2,
        stored: |[x, y], [p, q]| vec![x * p.of_m + p.of_mn, y * q.of_m + q.of_mn],
    },
    TestEpilogue {
        text: "|acc, of_n[n], c[m, n]| acc + of_n + c",
        width: 2,
        stored: |[x, y], [p, q]| vec![x + p.of_n + p.c, y + q.of_n + q.c],
    },
    TestEpilogue { text: "|acc| acc - next(acc)", width: 1, stored: |[x, y], _| vec![x - y] },
    TestEpilogue {
        text: "|acc, of_mn[m, n]| pair(next(acc) + of_mn, acc + next(of_mn))",
        width: 2,
        stored: |[x, y], [p, q]| vec![y + p.of_mn, x + q.of_mn],
    },
];

/// Matrix in memory that is NaN elsewhere.
struct Placed {
    rows: usize,
    cols: usize,
    /// Elements before the matrix, and from the begin of a line to that of the next.
    before: usize,
    pitch: usize,
    by_column: bool,
}

impl Placed {
    /// A random place: most of them at aligned addresses with lines of whole vectors, if padding is
    /// possible.
    fn draw(
        random: &mut Random,
        [rows, cols]: [usize; 2],
        by_column: bool,
        spec: &SgemmSpec,
    ) -> Self {
        let line = if by_column { rows } else { cols };
        let mut next = |most: usize| random.bits() as usize % most;
        let is_aligned = next(4) > 0 || spec.bounds == Bounds::Aligned;
        let padding = match (spec.pitched, is_aligned) {
            (false, _) => 0,
            (true, true) => line.next_multiple_of(16) - line,
            (true, false) => next(9),
        };
        let before = if is_aligned { 16 * next(3) } else { next(9) };
        Self { rows, cols, before, pitch: line + padding, by_column }
    }

    fn len(&self) -> usize {
        let lines = if self.by_column { self.cols } else { self.rows };
        lines * self.pitch
    }

    fn range(&self) -> Range<usize> {
        self.before..self.before + self.len()
    }

    fn at(&self, row: usize, col: usize) -> usize {
        let [line, place] = if self.by_column { [col, row] } else { [row, col] };
        self.before + line * self.pitch + place
    }

    /// Uploads the matrix with the given elements, or with NaN.
    fn upload<T: Rounded>(
        &self,
        device: &Device,
        elements: Option<&[f64]>,
    ) -> Result<Buffer<T>, Error> {
        let mut memory = vec![T::rounded(f64::NAN); self.before + self.len() + 16];
        for (i, value) in elements.into_iter().flatten().enumerate() {
            memory[self.at(i / self.cols, i % self.cols)] = T::rounded(*value);
        }
        device.upload_of(&memory)
    }

    fn view<'b, T: Element>(&self, part: &'b BufferView<'_, T>) -> Result<MatrixRef<'b, T>, Error> {
        match self.by_column {
            true => Ok(MatrixRef::pitched(part, self.cols, self.rows, self.pitch)?.t()),
            false => MatrixRef::pitched(part, self.rows, self.cols, self.pitch),
        }
    }

    /// Compares the matrix with expected elements, and the memory around it with NaN.
    fn compare<T: Rounded>(&self, memory: &[T], expected: &[f64]) -> Result<(), String> {
        let mut places = vec![None; memory.len()];
        for i in 0..self.rows * self.cols {
            places[self.at(i / self.cols, i % self.cols)] = Some(i);
        }
        for (found, place) in memory.iter().zip(places) {
            match place {
                None if !found.is_mark() => return Err(format!("{found:?} beside C")),
                Some(i) if *found != T::rounded(expected[i]) => {
                    let (row, col) = (i / self.cols, i % self.cols);
                    let exact = expected[i];
                    return Err(format!("C[{row}][{col}] is {found:?}, not {exact}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn check(device: &Device, spec: &SgemmSpec, size: Size, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let epilogue = &EPILOGUES[random.bits() as usize % EPILOGUES.len()];
    with_epilogue(device, spec, epilogue, size, random)
}

/// Computes a GEMM with an epilogue, or without it if the spec takes none.
fn with_epilogue(
    device: &Device,
    spec: &SgemmSpec,
    epilogue: &TestEpilogue,
    size: Size,
    random: Random,
) -> Result<(), String> {
    let with = || Some(spec.clone().epilogue(epilogue.text.parse().ok()?));
    let with = with().filter(|spec| spec.plan().is_ok());
    let (spec, epilogue) = with.map_or((spec.clone(), &EPILOGUES[0]), |spec| (spec, epilogue));
    let of = Case { device, spec: &spec, epilogue, size: accepted(&spec, size) };
    match (spec.a, spec.b) {
        (MatrixType::F64, _) => of.from::<f64, f64>(random),
        (MatrixType::F16, _) => of.from::<f16, f16>(random),
        (MatrixType::Bf16, _) => of.from::<bf16, bf16>(random),
        (MatrixType::E4m3, MatrixType::E4m3) => of.from::<e4m3, e4m3>(random),
        (MatrixType::E4m3, _) => of.from::<e4m3, e5m2>(random),
        (MatrixType::E5m2, MatrixType::E5m2) => of.from::<e5m2, e5m2>(random),
        (MatrixType::E5m2, _) => of.from::<e5m2, e4m3>(random),
        (MatrixType::I8, MatrixType::I8) => of.from::<i8, i8>(random),
        (MatrixType::I8, _) => of.from::<i8, u8>(random),
        (MatrixType::U8, MatrixType::U8) => of.from::<u8, u8>(random),
        (MatrixType::U8, _) => of.from::<u8, i8>(random),
        _ => of.from::<f32, f32>(random),
    }
    .map_err(|error| format!("`{spec}` at {size}: {error}"))
}

struct Case<'c> {
    device: &'c Device,
    spec: &'c SgemmSpec,
    epilogue: &'c TestEpilogue,
    size: Size,
}

impl Case<'_> {
    fn from<A: Rounded, B: Rounded>(&self, random: Random) -> Result<(), String> {
        match self.spec.c {
            MatrixType::F64 => self.product::<A, B, f64>(random),
            MatrixType::F16 => self.product::<A, B, f16>(random),
            MatrixType::Bf16 => self.product::<A, B, bf16>(random),
            MatrixType::E4m3 => self.product::<A, B, e4m3>(random),
            MatrixType::E5m2 => self.product::<A, B, e5m2>(random),
            MatrixType::I32 => self.product::<A, B, i32>(random),
            _ => self.product::<A, B, f32>(random),
        }
    }

    fn product<A: Rounded, B: Rounded, R: Rounded>(
        &self,
        mut random: Random,
    ) -> Result<(), String> {
        let Self { device, spec, epilogue, .. } = *self;
        let text = |error: Error| error.to_string();
        let kernel = Gemm::<A, B, R, ByName>::new(spec.clone()).map_err(text)?;
        let Size { m, mut n, k } = self.size;
        if spec.pairs() != Pairs::None {
            n = n.next_multiple_of(2);
        }
        let mut integers = |len: usize| -> Vec<f64> {
            (0..len).map(|_| f64::from(random.bits() as u32 % 17) - 8.0).collect()
        };
        let (mut a, mut b) = (integers(m * k), integers(k * n));
        for (elem, values) in [(A::ELEM, &mut a), (B::ELEM, &mut b)] {
            let is_unsigned = elem.is_integer() && !elem.is_signed();
            values.iter_mut().filter(|_| is_unsigned).for_each(|x| *x = x.abs());
        }
        let (of_n, of_m, of_mn, c) = (integers(n), integers(m), integers(m * n), integers(m * n));
        let mut place =
            |rows, cols, by_column| Placed::draw(&mut random, [rows, cols], by_column, spec);
        let [at_a, at_b] =
            [place(m, k, spec.layout.transposes_a()), place(k, n, spec.layout.transposes_b())];
        let [at_n, at_m] = [n, m].map(|len| Placed { pitch: len, ..place(1, len, false) });
        let at_mn = place(m, n, false);
        let at_c = place(m, n * epilogue.width / 2, false);
        let run = || -> Result<Vec<R>, Error> {
            let (a, b) = (at_a.upload::<A>(device, Some(&a))?, at_b.upload::<B>(device, Some(&b))?);
            let of_n = at_n.upload::<f32>(device, Some(&of_n))?;
            let of_m = at_m.upload::<f32>(device, Some(&of_m))?;
            let of_mn = at_mn.upload::<f32>(device, Some(&of_mn))?;
            let mut c = at_c.upload::<R>(device, spec.reads_c().then_some(&c[..]))?;
            let (a, b) = (a.slice(at_a.range())?, b.slice(at_b.range())?);
            let (a, b) = (at_a.view(&a)?, at_b.view(&b)?);
            let (of_n, of_m) = (of_n.slice(at_n.range())?, of_m.slice(at_m.range())?);
            let of_mn = of_mn.slice(at_mn.range())?;
            let of_mn = at_mn.view(&of_mn)?;
            let mut call = kernel.call(device);
            let has = |name: &str| epilogue.text.contains(name);
            if has("of_n[") {
                call = call.operand("of_n", &of_n);
            }
            if has("of_m[") {
                call = call.operand("of_m", &of_m);
            }
            if has("of_mn[") {
                call = call.operand("of_mn", &of_mn);
            }
            let mut part = c.slice_mut(at_c.range())?;
            let mut view = MatrixMut::pitched(&mut part, at_c.rows, at_c.cols, at_c.pitch)?;
            call.launch(&a, &b, &mut view)?;
            device.download(&c)
        };
        let found = run().map_err(text)?;
        let mut expected = Vec::new();
        for (row, col) in (0..m).flat_map(|row| (0..n).step_by(2).map(move |col| (row, col))) {
            // An odd N has half a pair.
            let cols = [col, (col + 1).min(n - 1)];
            let sum = |col| (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum::<f64>();
            let sums = cols.map(sum);
            let beside = cols.map(|col| PairOperands {
                of_n: of_n[col] as f32,
                of_m: of_m[row] as f32,
                of_mn: of_mn[row * n + col] as f32,
                c: c[row * n + col] as f32,
            });
            let values: Vec<f64> = match epilogue.text {
                "" => sums.into(),
                _ => {
                    let values = (epilogue.stored)(sums.map(|sum| sum as f32), beside);
                    values.into_iter().map(f64::from).collect()
                }
            };
            expected.extend(values.into_iter().take(if col + 1 < n { 2 } else { 1 }));
        }
        at_c.compare(&found, &expected)
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(400))]

    fn sums_are_exact(
        spec in arbitrary::typed(256),
        m in 0..40usize,
        n in prop_oneof![0..40usize, (0..18usize).prop_map(|n| 8 * n)],
        k in prop_oneof![0..90usize, (0..12usize).prop_map(|k| 8 * k)],
        seed in any::<u64>(),
    ) {
        check(&simulator(), &spec, Size::new(m, n, k), seed).map_err(TestCaseError::fail)?;
    }
}

/// Specs on tensor cores that read the matrices and store C in vectors, without types and layout.
const WARPGROUPS: [&str; 8] = [
    "tile: 64x64x64, mma: wgmma, copy: tma, float4",
    "tile: 64x128x64, mma: wgmma, copy: tma, stages: 2, float4, pitched",
    "tile: 128x64x32, mma: wgmma, copy: tma, stages: 3, producer, float4, pitched",
    "tile: 64x128x64, mma: wgmma, copy: tma, stages: 2, producer, persistent, float4",
    "tile: 64x128x64, warp: 16x64, mma: wgmma, copy: tma, stages: 2, float4, split_k: 2",
    "tile: 64x64x64, mma: wgmma, copy: tma, stages: 2, producer, persistent, cluster: 2, float4, \
     pitched",
    "tile: 16x128x64, swap_ab, mma: wgmma, copy: tma, stages: 3, producer, pitched",
    "tile: 48x64x64, swap_ab, mma: wgmma, copy: tma, stages: 2, producer, persistent",
];

/// Each spec for warpgroups with each epilogue and type of C.
fn warpgroups_store_vectors() {
    let device = simulator();
    let mut nth = 0;
    for spec in WARPGROUPS {
        for epilogue in &EPILOGUES {
            for c in [MatrixType::Bf16, MatrixType::F16, MatrixType::F32] {
                nth += 1;
                let layout = GemmLayout::ALL[nth % GemmLayout::ALL.len()];
                let line = format!("a: bf16, b: bf16, layout: {layout}, arith: bf16, {spec}");
                let spec = line.parse::<SgemmSpec>().expect("a sound spec").c(c);
                let size = [(70, 144, 72), (33, 136, 64), (5, 75, 130)][nth % 3];
                let size = Size::new(size.0, size.1, size.2);
                let found = with_epilogue(&device, &spec, epilogue, size, Random::new(nth as u64));
                found.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}

/// Specs for warpgroups that read elements of 8 bits, with each epilogue and type of C.
fn bytes_on_tensor_cores() {
    let device = simulator();
    let types = [
        ("e4m3", "e4m3"),
        ("i8", "i8"),
        ("e5m2", "e5m2"),
        ("u8", "u8"),
        ("e4m3", "e5m2"),
        ("u8", "i8"),
        ("e5m2", "e4m3"),
        ("i8", "u8"),
    ];
    for (nth, (spec, epilogue)) in
        WARPGROUPS.iter().flat_map(|spec| EPILOGUES.iter().map(move |of| (spec, of))).enumerate()
    {
        let (a, b) = types[nth % types.len()];
        let spec = spec.replace("x64, ", "x128, ").replace("x32, ", "x64, ");
        let promote = if nth % 3 == 0 { "promote: 32, " } else { "" };
        let line = format!("a: {a}, b: {b}, layout: nt, {promote}{spec}");
        for c in [MatrixType::Bf16, MatrixType::F32, MatrixType::E4m3, MatrixType::I32] {
            if c == MatrixType::I32 && a.starts_with('e') {
                continue;
            }
            let spec = line.parse::<SgemmSpec>().expect("a sound spec").c(c);
            spec.plan().unwrap_or_else(|faults| panic!("{line}: {faults}"));
            let size = [(70, 144, 80), (33, 136, 64), (5, 75, 130)][nth % 3];
            let size = Size::new(size.0, size.1, size.2);
            let found = with_epilogue(&device, &spec, epilogue, size, Random::new(nth as u64));
            found.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// Sums of integers wrap modulo 2^32, on CUDA cores and on tensor cores.
fn integers_wrap() {
    let device = simulator();
    // 2^17 products of 2^14 are 2^31.
    let k = (1 << 17) + 16;
    let of = |value: i8| device.upload_of(&vec![value; k]).expect("memory");
    for line in ["block: 1x32", "tile: 64x8x128, mma: wgmma, copy: tma, stages: 2"] {
        let line = format!("a: i8, b: i8, c: i32, layout: nt, {line}");
        let kernel = Gemm::<i8, i8, i32>::new(line.parse().expect("a spec")).expect("a kernel");
        let (a, b) = (of(-128i8), of(-128i8));
        let mut c = device.alloc_matrix_of::<i32>(1, 1).expect("memory");
        let a = MatrixRef::new(&a, 1, k).expect("a view");
        let b = MatrixRef::new(&b, 1, k).expect("a view");
        kernel.call(&device).launch(&a, &b.t(), &mut c).expect("no fault");
        let expected = (k as i64 * (1 << 14)) as i32;
        assert_eq!(device.download(&c).expect("C"), [expected], "{line}");
    }
}

/// Random specs at a few sizes on a GPU.
fn on_gpu(device: &Device, spec: &SgemmSpec) -> Result<(), Failed> {
    for (seed, (m, n, k)) in (1..).zip([(7, 5, 3), (130, 70, 64), (33, 257, 104), (64, 64, 0)]) {
        check(device, spec, Size::new(m, n, k), seed)?;
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    let specs = arbitrary::sample(arbitrary::typed(1024), gemm_cases::scaled(96));
    let on_gpus = specs.into_iter().enumerate().map(|(nth, spec)| {
        crate::trial(format!("typed::{nth:02}"), move |device| on_gpu(device, &spec))
    });
    let trials =
        simulated![sums_are_exact, warpgroups_store_vectors, bytes_on_tensor_cores, integers_wrap];
    trials
        .into_iter()
        .chain(bits::trials())
        .chain(tables::trials())
        .chain(on_gpus)
        .chain(batches::trials())
        .collect()
}
