//! Groups of rows with a B each: `batch: grouped`.

use crate::{same_bits, trial};
use gemm_dsl::spec::{Batch, Bounds, Epilogue, GemmLayout, SgemmSpec};
use gemm_oracle::random::{Random, values};
use gemm_runtime::bounds::{GroupOffset, Vector};
use gemm_runtime::{
    Buffer, ByName, Device, Error, MatrixMut, MatrixRef, Sgemm, SgemmKernel, SgemmTable, sgemm,
    sgemm_kernel,
};
use gemm_tests::{arbitrary, bits};
use libtest_mimic::{Failed, Trial};
use proptest::prelude::*;

/// Bits of a NaN that no arithmetic produces.
const POISON: u32 = 0x7fc0_dead;

/// Spec for groups, without the keys that do not compose with them.
fn composing(spec: SgemmSpec) -> Option<SgemmSpec> {
    let layout = GemmLayout::from_columns([false, spec.layout.transposes_b()]);
    let padded = spec.pitched;
    let mut spec = spec.for_matrices(layout, padded).split_k(1).stream_k(false).products(1);
    (spec.epilogue, spec.scaled, spec.bounds) = (None, false, Bounds::Guarded);
    spec.clone().batch(Batch::Grouped).plan().is_ok().then_some(spec)
}

/// Rows of each group, and rows before the first and after the last group.
#[derive(Clone, Debug)]
struct Rows {
    before: usize,
    groups: Vec<usize>,
    after: usize,
}

impl Rows {
    fn count(&self) -> usize {
        self.before + self.groups.iter().sum::<usize>() + self.after
    }

    fn offsets(&self) -> Vec<u32> {
        let mut all = vec![self.before as u32];
        for rows in &self.groups {
            all.push(all[all.len() - 1] + *rows as u32);
        }
        all
    }
}

/// Operands of a grouped GEMM. Rows and matrices are surrounded by poison.
struct Grouped {
    rows: Rows,
    n: usize,
    k: usize,
    /// Elements after each row, and between two matrices B.
    padding: usize,
    between: usize,
    by_column: bool,
    a: Buffer,
    b: Buffer,
    c: Vec<f32>,
}

/// Rows of `len` elements with poison after each.
fn padded(seed: u64, rows: usize, len: usize, padding: usize) -> Vec<f32> {
    let of = values(seed, rows * len);
    let mut all = Vec::new();
    for row in 0..rows {
        all.extend(&of[row * len..][..len]);
        all.resize(all.len() + padding, f32::from_bits(POISON));
    }
    all
}

impl Grouped {
    fn new(device: &Device, spec: &SgemmSpec, rows: Rows, [n, k]: [usize; 2], seed: u64) -> Self {
        let mut draw = Random::new(seed);
        let padding = if spec.pitched { draw.bits() as usize % 5 } else { 0 };
        let between = draw.bits() as usize % 5;
        let by_column = spec.layout.transposes_b();
        let (lines, line) = if by_column { (n, k) } else { (k, n) };
        let mut b = Vec::new();
        for _ in &rows.groups {
            b.extend(padded(draw.bits(), lines, line, padding));
            b.resize(b.len() + between, f32::from_bits(POISON));
        }
        let a = padded(draw.bits(), rows.count(), k, padding);
        let c = vec![f32::from_bits(POISON); rows.count() * (n + padding)];
        let (a, b) = (device.upload(&a).expect("room"), device.upload(&b).expect("room"));
        Self { rows, n, k, padding, between, by_column, a, b, c }
    }

    fn a(&self) -> MatrixRef<'_> {
        let view = MatrixRef::pitched(&self.a, self.rows.count(), self.k, self.k + self.padding);
        view.expect("as many")
    }

    fn b(&self) -> MatrixRef<'_> {
        let (lines, line) = if self.by_column { (self.n, self.k) } else { (self.k, self.n) };
        let pitch = line + self.padding;
        let apart = (self.rows.groups.len(), lines * pitch + self.between);
        let view = MatrixRef::batch_apart(&self.b, apart, lines, line, pitch).expect("as many");
        if self.by_column { view.t() } else { view }
    }

    fn b_of(&self, group: usize) -> (Buffer, usize) {
        let (lines, line) = if self.by_column { (self.n, self.k) } else { (self.k, self.n) };
        let all = self.a.device().download(&self.b).expect("ours");
        let start = group * (lines * (line + self.padding) + self.between);
        let of = &all[start..][..lines * (line + self.padding)];
        (self.a.device().upload(of).expect("room"), line)
    }

    fn launch<V>(&self, spec: &SgemmSpec, offsets: &V) -> Result<Vec<f32>, Error>
    where
        V: Vector,
        V::Element: GroupOffset,
    {
        let device = self.a.device();
        let kernel = Sgemm::<()>::new(spec.clone().batch(Batch::Grouped))?;
        let mut c = device.upload(&self.c)?;
        let (rows, pitch) = (self.rows.count(), self.n + self.padding);
        let mut view = MatrixMut::pitched(&mut c, rows, self.n, pitch)?;
        kernel.call(device).groups(offsets).launch(&self.a(), &self.b(), &mut view)?;
        device.download(&c)
    }

    /// C of a separate GEMM for each group.
    fn expected(&self, spec: &SgemmSpec) -> Result<Vec<f32>, Error> {
        let device = self.a.device();
        let kernel = Sgemm::<()>::new(spec.clone())?;
        let mut c = device.upload(&self.c)?;
        let offsets = self.rows.offsets();
        for (group, ends) in offsets.windows(2).enumerate() {
            let rows = ends[0] as usize..ends[1] as usize;
            let (b, line) = self.b_of(group);
            let lines = if self.by_column { self.n } else { self.k };
            let b = MatrixRef::pitched(&b, lines, line, line + self.padding)?;
            let b = if self.by_column { b.t() } else { b };
            let (all, pitch) = (self.rows.count(), self.n + self.padding);
            let mut c = MatrixMut::pitched(&mut c, all, self.n, pitch)?;
            let mut c = c.part(rows.clone(), 0..self.n)?;
            kernel.call(device).launch(&self.a().part(rows, 0..self.k)?, &b, &mut c)?;
        }
        device.download(&c)
    }
}

fn rows() -> impl Strategy<Value = Rows> {
    let groups = proptest::collection::vec(prop_oneof![0..3usize, 0..40usize], 0..7usize);
    (prop_oneof![3 => Just(0), 1 => 0..40usize], groups, prop_oneof![3 => Just(0), 1 => 0..40usize])
        .prop_map(|(before, groups, after)| Rows { before, groups, after })
}

fn specs() -> impl Strategy<Value = SgemmSpec> {
    arbitrary::sgemm(128).prop_filter_map("keys that do not compose", composing)
}

proptest! {
    #![proptest_config(gemm_cases::cases(200))]

    /// A row has the bits of a GEMM of its group alone, and no other element is written.
    fn each_group_has_the_bits_of_its_own(
        spec in specs(),
        rows in rows(),
        n in 0..40usize,
        k in 0..20usize,
        (seed, signed) in any::<(u64, bool)>(),
    ) {
        let device = Device::simulator();
        let offsets = rows.offsets();
        let operands = Grouped::new(&device, &spec, rows, [n, k], seed);
        let found = match signed {
            false => operands.launch(&spec, &device.upload_of(&offsets).expect("room")),
            true => {
                let offsets: Vec<i32> = offsets.iter().map(|offset| *offset as i32).collect();
                operands.launch(&spec, &device.upload_of(&offsets).expect("room"))
            }
        };
        let found = found.map_err(|error| TestCaseError::fail(format!("`{spec}`: {error}")))?;
        let expected = operands.expected(&spec).expect("a GEMM of each group");
        prop_assert_eq!(bits(&found), bits(&expected), "`{}`", spec);
    }

    /// Offsets of any values lead to no access outside the matrices. The simulator reports such
    /// accesses as faults.
    fn wrong_offsets_reach_nothing_else(
        spec in specs(),
        rows in rows(),
        n in 1..20usize,
        k in 0..20usize,
        seed in any::<u64>(),
    ) {
        let device = Device::simulator();
        let mut draw = Random::new(seed);
        let count = rows.count() as u64;
        let offsets: Vec<u32> = (0..=rows.groups.len()).map(|_| match draw.bits() % 4 {
            0 => draw.bits() as u32,
            1 => u32::MAX,
            _ => (draw.bits() % (count + 3)) as u32,
        }).collect();
        let operands = Grouped::new(&device, &spec, rows, [n, k], seed);
        let offsets_on = device.upload_of(&offsets).expect("room");
        let found = match operands.launch(&spec, &offsets_on) {
            Ok(found) => found,
            Err(error) => {
                // Two groups may claim a row.
                prop_assert!(error.to_string().contains("race"), "{offsets:?}: {error}");
                return Ok(());
            }
        };
        for (at, found) in found.iter().enumerate() {
            let is_padding = at % (n + operands.padding) >= n;
            prop_assert!(!is_padding || found.to_bits() == POISON, "{offsets:?}: element {at}");
        }
    }
}

/// Operands of epilogues follow groups and rows, further values too.
fn epilogues_follow_groups_and_rows() {
    let device = Device::simulator();
    let keys = "scaled, tile: 16x16x8, thread: 4x4, float4, stages: 2";
    let whole = "|acc, f[batch], bias[batch, n], s[m], r[m, n], v[n], c[m, n]| \
                 (f * acc * s + bias + r + v + c, acc + f32(m))";
    let alone = "|acc, f, bias[n], s[m], r[m, n], v[n], c[m, n], all| \
                 (f * acc * s + bias + r + v + c, acc + all)";
    let spec: SgemmSpec = keys.parse().expect("a sound spec");
    let of = |text: &str| spec.clone().epilogue(text.parse::<Epilogue>().expect("sound"));
    let grouped = Sgemm::<ByName>::new(of(whole).batch(Batch::Grouped)).expect("a sound spec");
    let single = Sgemm::<ByName>::new(of(alone)).expect("a sound spec");
    let rows = Rows { before: 0, groups: vec![20, 0, 3, 33], after: 0 };
    let (m, n, k, groups) = (rows.count(), 24, 12, rows.groups.len());
    let upload = |seed, len| device.upload(&values(seed, len)).expect("room");
    let (a, b, old) = (upload(1, m * k), upload(2, groups * k * n), values(3, m * n));
    let (f, bias, s, r, v) =
        (values(4, groups), upload(5, groups * n), upload(6, m), upload(7, m * n), upload(8, n));
    let offsets = device.upload_of(&rows.offsets()).expect("room");
    let (of_a, of_r) =
        (MatrixRef::new(&a, m, k).expect("many"), MatrixRef::new(&r, m, n).expect("many"));
    let all_f = device.upload(&f).expect("room");
    let of_bias = MatrixRef::new(&bias, groups, n).expect("many");
    let (mut c, mut c2) = (device.upload(&old).expect("room"), device.alloc(m * n).expect("room"));
    {
        let mut other = MatrixMut::new(&mut c2, m, n).expect("many");
        let call =
            grouped.call(&device).groups(&offsets).operand("alpha", 0.5).operand("beta", 2.0);
        let call = call.operand("f", &all_f).operand("bias", &of_bias).operand("s", &s);
        let call = call.operand("r", &of_r).operand("v", &v).operand("c2", &mut other);
        let b = MatrixRef::batch(&b, groups, k, n).expect("many");
        call.launch(&of_a, &b, &mut MatrixMut::new(&mut c, m, n).expect("many")).expect("fits");
    }
    let (mut one, mut one2) =
        (device.upload(&old).expect("room"), device.alloc(m * n).expect("room"));
    for (group, ends) in rows.offsets().windows(2).enumerate() {
        let (first, end) = (ends[0] as usize, ends[1] as usize);
        let b = b.slice(group * k * n..(group + 1) * k * n).expect("inside");
        let bias = bias.slice(group * n..(group + 1) * n).expect("inside");
        let s = s.slice(first..end).expect("inside");
        let r = of_r.part(first..end, 0..n).expect("inside");
        let mut other = one2.slice_mut(first * n..end * n).expect("inside");
        let mut other = MatrixMut::new(&mut other, end - first, n).expect("many");
        let mut c = one.slice_mut(first * n..end * n).expect("inside");
        let call = single.call(&device).operand("alpha", 0.5).operand("beta", 2.0);
        let call = call.operand("f", f[group]).operand("bias", &bias).operand("s", &s);
        let call = call.operand("r", &r).operand("v", &v).operand("all", m as f32);
        let call = call.operand("c2", &mut other);
        let a = of_a.part(first..end, 0..k).expect("inside");
        let mut c = MatrixMut::new(&mut c, end - first, n).expect("many");
        call.launch(&a, &MatrixRef::new(&b, k, n).expect("many"), &mut c).expect("fits");
    }
    let of = |buffer: &Buffer| bits(&device.download(buffer).expect("ours"));
    assert_eq!((of(&c), of(&c2)), (of(&one), of(&one2)));
}

proptest! {
    #![proptest_config(gemm_cases::cases(60))]

    /// `sgemm` computes groups with the rules for single GEMMs. All sums are exact.
    fn sgemm_computes_groups(
        rows in rows(),
        n in prop_oneof![1..40usize, 60..200usize],
        k in 1..40usize,
        (t, one_b, padding) in (any::<bool>(), any::<bool>(), 0..3usize),
    ) {
        let device = Device::simulator();
        let (m, groups) = (rows.count(), rows.groups.len());
        let a: Vec<f32> = (0..m * (k + padding)).map(|i| (i * 7 % 11) as f32).collect();
        let b: Vec<f32> = (0..groups.max(1) * k * n).map(|i| (i * 5 % 13) as f32).collect();
        let (on_a, on_b) = (device.upload(&a).expect("room"), device.upload(&b).expect("room"));
        let (lines, line) = if t { (n, k) } else { (k, n) };
        let view = match one_b {
            true => MatrixRef::new(&on_b, lines, line),
            false => MatrixRef::batch(&on_b, groups, lines, line),
        };
        let view = view.expect("many");
        let view = if t { view.t() } else { view };
        let view_a = MatrixRef::pitched(&on_a, m, k, k + padding).expect("many");
        let offsets = device.upload_of(&rows.offsets()).expect("room");
        let mut c = device.upload(&vec![-1.0; m * n]).expect("room");
        let mut view_c = MatrixMut::new(&mut c, m, n).expect("many");
        let call = sgemm(&view_a, &view, &mut view_c).groups(&offsets);
        prop_assert_eq!(call.spec(&device).expect("a rule").batch, Some(Batch::Grouped));
        call.run(&device).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut expected = vec![-1.0; m * n];
        for (group, ends) in rows.offsets().windows(2).enumerate() {
            let of_b = if one_b { 0 } else { group * k * n };
            for row in ends[0] as usize..ends[1] as usize {
                for col in 0..n {
                    let at = |p: usize| if t { col * k + p } else { p * n + col };
                    let b = |p: usize| b[of_b + at(p)];
                    let terms = (0..k).map(|p| a[row * (k + padding) + p] * b(p));
                    expected[row * n + col] = terms.sum();
                }
            }
        }
        prop_assert_eq!(device.download(&c).expect("ours"), expected);
    }
}

/// Calls with too few, too many or missing operands are refused.
fn groups_that_do_not_fit_are_errors() {
    static GROUPED: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, batch: grouped);
    const SINGLE: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
    let device = Device::simulator();
    let memory = device.upload(&[1.0; 64]).expect("room");
    let offsets = device.upload_of(&[0_u32, 1, 4]).expect("room");
    let a = MatrixRef::new(&memory, 4, 4).expect("many");
    let b = |count| MatrixRef::batch(&memory, count, 4, 4).expect("many");
    let mut c = device.alloc(16).expect("room");
    let mut c = MatrixMut::new(&mut c, 4, 4).expect("many");
    let call = || GROUPED.call(&device);
    call().groups(&offsets).launch(&a, &b(2), &mut c).expect("two groups");
    let missing = call().launch(&a, &b(2), &mut c);
    assert!(
        matches!(&missing, Err(Error::WrongOperand { operand, .. }) if operand == "offsets"),
        "{missing:?}"
    );
    let other = call().groups(&offsets).launch(&a, &b(3), &mut c);
    assert!(
        matches!(&other, Err(Error::Extents { first, other, .. })
            if (first.1, other.0.as_str(), other.1) == (3, "offsets", 2)),
        "{other:?}"
    );
    let single = SINGLE.call(&device).groups(&offsets).launch(&a, &a, &mut c);
    assert!(matches!(&single, Err(Error::WrongOperand { .. })), "{single:?}");
    let none = device.alloc_of::<u32>(0).expect("room");
    let empty = call().groups(&none).launch(&a, &a, &mut c);
    assert!(
        matches!(&empty, Err(Error::WrongExtent { argument, .. }) if argument == "offsets"),
        "{empty:?}"
    );
    let none = call().groups(&device.upload_of(&[0_u32]).expect("room")).launch(&a, &a, &mut c);
    none.expect("no group");
    let turned = sgemm(&a.t(), &b(2), &mut c).groups(&offsets).run(&device);
    assert!(
        matches!(&turned, Err(Error::WrongShape { argument, .. }) if argument == "a"),
        "{turned:?}"
    );
    let turned = sgemm(&a, &b(2), &mut c.t()).groups(&offsets).run(&device);
    assert!(
        matches!(&turned, Err(Error::WrongShape { argument, .. }) if argument == "c"),
        "{turned:?}"
    );
    // Tables take offsets, too.
    let table: gemm_runtime::KernelTable<SgemmSpec> =
        "n <= 4 => tile: 8x8x8, batch: grouped; else => tile: 16x16x8, batch: grouped;"
            .parse()
            .expect("a sound table");
    let table: SgemmTable = SgemmTable::new(&table).expect("a sound table");
    table.call(&device).groups(&offsets).launch(&a, &b(2), &mut c).expect("two groups");
}

/// On a GPU, groups of many sizes have the bits of their own GEMMs.
fn on_gpu(gpu: &Device, spec: &SgemmSpec, seed: u64) -> Result<(), Failed> {
    let mut draw = Random::new(seed);
    for [n, k] in [[5, 3], [65, 40], [256, 64]] {
        let groups = (0..40).map(|_| (draw.bits() % 300) as usize * (draw.bits() % 2) as usize);
        let rows = Rows { before: 0, groups: groups.collect(), after: 7 };
        let offsets = gpu.upload_of(&rows.offsets())?;
        let operands = Grouped::new(gpu, spec, rows, [n, k], seed);
        let found = operands.launch(spec, &offsets)?;
        same_bits(&format!("`{spec}`"), &found, &operands.expected(spec)?)?;
    }
    Ok(())
}

pub fn gpu_trials() -> Vec<Trial> {
    let specs = arbitrary::sample(arbitrary::sgemm(512), 60).into_iter().filter_map(composing);
    let trials = specs.take(24).enumerate().map(|(i, spec)| {
        trial(format!("batch::groups::{i:02}"), move |gpu| on_gpu(gpu, &spec, i as u64))
    });
    trials.collect()
}

pub fn trials() -> Vec<Trial> {
    simulated![
        each_group_has_the_bits_of_its_own,
        wrong_offsets_reach_nothing_else,
        epilogues_follow_groups_and_rows,
        sgemm_computes_groups,
        groups_that_do_not_fit_are_errors,
    ]
}
