//! Tuning of tables on the simulator: predicted times, rules, bits and errors.

use super::values;
use gemm_runtime::compile::Arch;
use gemm_runtime::spec::{Accuracy, GemmLayout};
use gemm_runtime::tuning::{Basis, Candidate, Tuned};
use gemm_runtime::{
    ByName, Device, Epilogue, Error, KernelTable, MatrixMut, MatrixRef, N, Sgemm, SgemmCall,
    SgemmShape, SgemmSpec, SgemmTable, epilogue, sgemm, sgemm_table, sgemm_tables,
};
use std::collections::HashSet;
use std::time::Duration;

/// More time than any tuning of these tests takes.
const ENOUGH: Duration = Duration::from_secs(3600);

/// The last rule is too slow for all but small shapes.
const GEMM: SgemmTable = sgemm_table! {
    invariant;
    m * n >= 2000000 => tile: 64x64x8, thread: 8x8;
    nt => tile: 16x16x8, thread: 2x2, transpose;
    else => tile: 8x8x8, thread: 1x1;
};

fn lines<E>(tuned: &Tuned<E>) -> Vec<&str> {
    tuned.candidates().iter().map(|candidate| candidate.spec.as_str()).collect()
}

fn table(text: &str) -> SgemmTable {
    let table: KernelTable<SgemmSpec> = text.parse().unwrap_or_else(|faults| panic!("{faults}"));
    SgemmTable::new(&table).expect("no operands")
}

#[test]
fn the_fastest_prediction_is_chosen() -> Result<(), Error> {
    let device = Device::simulator();
    let shape = (1001, 1000, 300);
    let tuned = GEMM.autotune(&device, shape, ENOUGH)?;
    assert_eq!(tuned.basis(), Basis::Predicted);
    assert!(tuned.is_complete() && !tuned.is_cached());
    // The table's choice is first, then the others in their order.
    assert_eq!(tuned.of_table().rule, 2);
    let rules: Vec<usize> = tuned.candidates().iter().map(|candidate| candidate.rule).collect();
    assert_eq!(rules, [2, 0, 1]);
    let times: Vec<Duration> = tuned.candidates().iter().filter_map(Candidate::time).collect();
    assert_eq!(times.len(), 3, "{tuned:?}");
    assert_eq!(tuned.chosen().time(), times.iter().min().copied());
    assert_ne!(tuned.chosen().rule, 2, "{tuned:?}");
    let unmeasured = |candidate: &Candidate| candidate.measured.is_none() && candidate.samples == 0;
    assert!(tuned.candidates().iter().all(unmeasured), "{tuned:?}");
    assert_eq!(tuned.kernel().spec_line(), tuned.spec());

    // The rule is a rule of a table, and chooses the spec for this problem only.
    let parsed = table(&format!("invariant; {tuned} else => tile: 8x8x8, thread: 1x1"));
    assert_eq!(parsed.choice(shape, &device)?.spec, tuned.spec());
    let changed = tuned.table()?;
    assert_eq!(changed.rules_text(), format!("{};\n{}", tuned.rule(), GEMM.rules_text()));
    assert_eq!(changed.choice(shape, &device)?.spec, tuned.spec());
    let nt = SgemmShape::from(shape).layout(GemmLayout::Nt);
    for other in [
        (1002, 1000, 300).into(),
        (1001, 999, 300).into(),
        (1001, 1000, 301).into(),
        (64, 64, 64).into(),
        nt,
        SgemmShape::from(shape).padded(true),
        SgemmShape::from(shape).aligned(false),
    ] {
        let other: SgemmShape = other;
        let [new, old] = [changed.choice(other, &device)?, GEMM.choice(other, &device)?];
        assert_eq!((new.rule, new.spec), (old.rule + 1, old.spec), "{other:?}");
    }

    // A table with the answer keeps it, and an answer for the same problem replaces it.
    let again = changed.autotune(&device, shape, ENOUGH)?;
    assert_eq!((again.spec(), again.chosen().rule), (tuned.spec(), 0));
    assert_eq!(again.table()?.text(), changed.text());
    let slow = format!("invariant;\n{};\n{}", tuned.rule(), GEMM.rules_text());
    let slow = table(&slow.replacen(&tuned.rule(), &slowed(&tuned), 1));
    let mended = slow.autotune(&device, shape, ENOUGH)?;
    assert_eq!(mended.table()?.text(), changed.text());
    Ok(())
}

/// Rule of the problem of an answer, with the spec of the slowest candidate.
fn slowed(tuned: &Tuned) -> String {
    let slowest = tuned.candidates().iter().max_by_key(|candidate| candidate.time());
    let slowest = slowest.expect("candidates");
    tuned.rule().replace(tuned.spec(), &slowest.spec)
}

trait RulesText {
    /// Text without the header.
    fn rules_text(&self) -> &str;
}

impl RulesText for SgemmTable {
    fn rules_text(&self) -> &str {
        self.text().strip_prefix("invariant;\n").expect("an invariant table")
    }
}

#[test]
fn a_budget_bounds_the_candidates() -> Result<(), Error> {
    let device = Device::simulator();
    let tuned = GEMM.autotune(&device, (1001, 1000, 300), Duration::ZERO)?;
    assert_eq!((tuned.basis(), tuned.chosen().rule), (Basis::Table, 2));
    assert!(!tuned.is_complete());
    assert!(tuned.candidates().iter().all(|candidate| candidate.time().is_none()), "{tuned:?}");
    assert_eq!(tuned.table()?.text(), GEMM.text());

    let tuned = GEMM.autotune(&device, (1001, 1000, 300), Duration::from_nanos(1))?;
    assert_eq!((tuned.basis(), tuned.chosen().rule), (Basis::Predicted, 2));
    assert!(!tuned.is_complete());
    let timed = tuned.candidates().iter().map(|candidate| candidate.time().is_some());
    assert_eq!(timed.collect::<Vec<_>>(), [true, false, false]);

    // Nothing is computed, so nothing is timed.
    let empty = GEMM.autotune(&device, (0, 8, 8), Duration::MAX)?;
    assert_eq!((empty.basis(), empty.is_complete()), (Basis::Table, true));
    Ok(())
}

#[test]
fn layouts_determine_the_candidates() -> Result<(), Error> {
    let device = Device::simulator();
    let nt = SgemmShape::from((64, 64, 64)).layout(GemmLayout::Nt);
    let tuned = GEMM.autotune(&device, nt, ENOUGH)?;
    assert!(lines(&tuned).iter().all(|line| line.starts_with("layout: nt")), "{tuned:?}");
    assert!(tuned.rule().contains(" && nt && "), "{tuned}");
    let table = tuned.table()?;
    assert_eq!(table.choice(nt, &device)?.spec, tuned.spec());

    // A spec that occurs in several rules is one candidate.
    let table = self::table(
        "m > 7 => tile: 8x8x8; m > 5 => tile: 16x16x8; else => tile: 8x8x8, thread: 1x1",
    );
    let tuned = table.autotune(&device, (1, 8, 8), ENOUGH)?;
    assert_eq!(lines(&tuned), ["tile: 8x8x8", "tile: 16x16x8"]);
    assert_eq!(tuned.candidates()[0].rule, 2);
    Ok(())
}

/// A candidate that cannot be launched for the shape is left out, with the reason.
#[test]
fn candidates_that_do_not_fit_are_told() -> Result<(), Error> {
    let device = Device::simulator();
    let table = table(
        "m % 16 == 0 && n % 16 == 0 && k % 8 == 0 => tile: 16x16x8, bounds: aligned; \
         else => tile: 8x8x8",
    );
    let tuned = table.autotune(&device, (100, 100, 100), ENOUGH)?;
    let error = tuned.candidates()[1].error.as_deref().expect("not a multiple");
    assert!(error.contains("16"), "{error}");
    assert_eq!((tuned.chosen().rule, tuned.is_complete()), (1, true));
    assert!(table.autotune(&device, (64, 64, 64), ENOUGH)?.candidates()[1].error.is_none());
    Ok(())
}

/// Before and after the tuning of an invariant table, C has the same bits.
#[test]
fn tuning_an_invariant_table_changes_no_bits() -> Result<(), Error> {
    let device = Device::simulator();
    let (mut random, mut changed) = (fastrand::Rng::with_seed(7), 0);
    for _ in 0..12 {
        let [m, n, k] = [1, 2, 3].map(|_| random.usize(1..70));
        let numbers = |len: usize| (0..len).map(|_| random.f32() - 0.5).collect::<Vec<f32>>();
        let mut numbers = numbers;
        let (a, b) = (device.upload(&numbers(m * k))?, device.upload(&numbers(k * n))?);
        let (a, b) = (MatrixRef::new(&a, m, k)?, MatrixRef::new(&b, k, n)?);
        let bits = |table: &SgemmTable| {
            let mut c = device.alloc(m * n)?;
            let report = table.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, m, n)?)?;
            let kernel = report.steps().next().expect("a launch").kernel().to_owned();
            let c: Vec<u32> = device.download(&c)?.into_iter().map(f32::to_bits).collect();
            Ok::<_, Error>((kernel, c))
        };
        let table = GEMM.autotune(&device, (m, n, k), ENOUGH)?.table()?;
        let (before, after) = (bits(&GEMM)?, bits(&table)?);
        changed += usize::from(before.0 != after.0);
        assert_eq!(before.1, after.1, "{m} x {n} x {k}");
    }
    assert!(changed > 0, "no shape got another kernel");
    Ok(())
}

#[test]
fn operands_and_batches_are_allocated() -> Result<(), Error> {
    const LAYERS: SgemmTable<(N, f32)> = sgemm_table! {
        m <= 2000 => tile: 8x8x8, epilogue: |acc, bias[n], slope| max(acc, slope * acc) + bias;
        else => tile: 32x32x8, thread: 4x4,
            epilogue: |acc, bias[n], slope| max(acc, slope * acc) + bias;
    };
    let device = Device::simulator();
    let tuned = LAYERS.autotune(&device, (1000, 900, 40), ENOUGH)?;
    assert!(tuned.candidates().iter().all(|candidate| candidate.time().is_some()), "{tuned:?}");
    // The kernel has the operands of the table.
    let (x, bias, mut y) =
        (device.upload(&values(4))?, device.upload(&values(2))?, device.alloc(4)?);
    let x = MatrixRef::new(&x, 2, 2)?;
    let mut c = MatrixMut::new(&mut y, 2, 2)?;
    tuned.kernel().call(&device).operands((&bias, 0.5)).launch(&x, &x, &mut c)?;

    for (keys, batch) in [
        ("scaled, ", 1),
        ("batch: strided, ", 5),
        ("batch: pointers, scaled, ", 5),
        (
            "batch: strided, epilogue: |acc, f[batch], v[batch, n], s[batch, m], c[m, n]| \
          (f * acc + v + s + c, acc), ",
            3,
        ),
        ("batch: strided, epilogue: |acc, f| (f * acc * next(acc), acc, pair(next(acc), f)), ", 3),
    ] {
        let text = format!(
            "m <= 20 => {keys}tile: 8x8x8, thread: 1x2; else => {keys}tile: 16x16x8, thread: 2x2"
        );
        let table: KernelTable<SgemmSpec> = text.parse()?;
        let table = SgemmTable::<ByName>::new(&table)?;
        let shape = SgemmShape::from((30, 40, 20)).batch(batch);
        let tuned = table.autotune(&device, shape, ENOUGH)?;
        assert!(tuned.candidates().iter().all(|one| one.time().is_some()), "{tuned:?}");
        assert_eq!(tuned.table()?.choice(shape, &device)?.spec, tuned.spec());
    }
    Ok(())
}

#[test]
fn faulty_shapes_are_refused() {
    let device = Device::simulator();
    let told = |shape: SgemmShape| GEMM.autotune(&device, shape, ENOUGH).map(drop);
    let batch = told(SgemmShape::from((8, 8, 8)).batch(2));
    assert!(matches!(&batch, Err(Error::WrongShape { argument, .. }) if argument == "shape"));
    let aligned = told(SgemmShape::from((9, 9, 9)).aligned(true));
    assert!(matches!(&aligned, Err(Error::WrongShape { argument, .. }) if argument == "shape"));
    assert!(matches!(told((1 << 31, 1, 1).into()), Err(Error::TooLarge { .. })));
}

/// Tunings in several threads do not disturb each other.
#[test]
fn threads_may_tune_at_once() -> Result<(), Error> {
    let device = Device::simulator();
    let expected = GEMM.autotune(&device, (70, 60, 50), ENOUGH)?;
    std::thread::scope(|scope| {
        let tune = || GEMM.autotune(&device, (70, 60, 50), ENOUGH);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(tune)).collect();
        for thread in threads {
            let tuned = thread.join().expect("no panic")?;
            assert_eq!(tuned.candidates(), expected.candidates());
            assert_eq!(tuned.rule(), expected.rule());
        }
        Ok(())
    })
}

/// A table of the greatest number of rules has no room for the answer.
#[test]
fn a_full_table_is_told() -> Result<(), Error> {
    let device = Device::simulator();
    let rules: String = (1..256).map(|m| format!("m == {m} => tile: 8x8x8;")).collect();
    let full = table(&format!("{rules} else => tile: 32x32x8, thread: 4x4"));
    let tuned = full.autotune(&device, (255, 8000, 300), ENOUGH)?;
    assert_eq!(tuned.candidates().len(), 2);
    assert!(matches!(tuned.table(), Err(Error::Spec(_))), "{tuned:?}");
    assert!(tuned.spec().contains("32x32"), "{tuned:?}");
    Ok(())
}

/// The tables of `sgemm` have a candidate for each of their specs that is valid for the layouts.
#[test]
fn shipped_tables_have_candidates() -> Result<(), Error> {
    let device = Device::simulator();
    for arch in [75, 90] {
        let tables = sgemm_tables(Some(Arch::sm(arch)), Accuracy::Ieee);
        for (shipped, batch) in tables.into_iter().zip([1, 8]) {
            for layout in [GemmLayout::Nn, GemmLayout::Nt] {
                let shape = SgemmShape::from((1000, 768, 500)).batch(batch).layout(layout);
                let tuned = shipped.autotune(&device, shape, Duration::ZERO)?;
                let choice = shipped.choice(shape, &device)?;
                assert_eq!((tuned.chosen().rule, tuned.spec()), (choice.rule, &*choice.spec));
                let specs: HashSet<&str> = lines(&tuned).into_iter().collect();
                assert_eq!(specs.len(), tuned.candidates().len());
                assert!(specs.len() >= 4, "sm_{arch}, {shape:?}: {specs:?}");
            }
        }
    }
    Ok(())
}

/// The answer for a call of `sgemm` is used by the same GEMM only, and computes the same.
#[test]
fn calls_use_the_answer_for_the_same_gemm() -> Result<(), Error> {
    const LAYER: Epilogue<(N,)> = epilogue!(|acc, bias[n]| relu(acc + bias));
    let (device, mut changed) = (Device::simulator(), 0);
    let other = device.alloc_matrix(4, 4)?;
    for (m, n, k) in [(64, 64, 64), (128, 96, 40), (33, 200, 50), (200, 7, 90)] {
        let (of_a, of_b) = (values(m * k), values(k * n));
        let product = super::product(&of_a, &of_b, (m, n, k));
        let (a, b) = (device.upload_matrix(&of_a, m, k)?, device.upload_matrix(&of_b, k, n)?);
        // Each call computes C by columns: the transposed GEMM, whose rows are the columns of C.
        let mut c = device.upload_matrix(&vec![1.0; m * n], n, m)?;
        let mut c = c.view_mut();
        let mut c = c.t();
        let scale = device.upload(&values(n))?;
        let table = sgemm(&a, &b, &mut c).beta(2.0).choice(&device)?;
        let answer = sgemm(&a, &b, &mut c).beta(2.0).autotune(&device, ENOUGH)?;
        assert_eq!((answer.of_table().rule, &answer.of_table().spec), (table.rule, &table.spec));
        assert_eq!(answer.basis(), Basis::Predicted);
        let times: Vec<_> = answer.candidates().iter().filter_map(Candidate::time).collect();
        assert!(times.len() >= 3, "{answer:?}");
        let call = sgemm(&a, &b, &mut c).beta(2.0).tuned(&answer);
        let choice = call.choice(&device)?;
        assert_eq!((choice.rule, &*choice.spec), (answer.chosen().rule, answer.spec()));
        changed += usize::from(choice.spec != table.spec);
        let report = call.run(&device)?;
        let kernel = <Sgemm<ByName>>::new(answer.spec().parse()?)?;
        let name = report.steps().next().expect("a launch").kernel().to_owned();
        assert!(kernel.source().contains(&name), "{name} is not of {kernel}");
        let expected: Vec<f32> = product.iter().map(|sum| sum + 2.0).collect();
        let mut found = vec![0.0; m * n];
        c.read_into(&mut found)?;
        assert_eq!(found, expected, "{m} x {n} x {k}");

        // Other GEMMs: without beta, with an epilogue, of another class, transposed.
        let same = |spec: String, plain: String| assert_eq!(spec, plain, "{m} x {n} x {k}");
        let spec = |call: SgemmCall<'_>| Ok::<_, Error>(call.choice(&device)?.spec);
        same(spec(sgemm(&a, &b, &mut c).tuned(&answer))?, spec(sgemm(&a, &b, &mut c))?);
        let class = Accuracy::Bound;
        same(
            spec(sgemm(&a, &b, &mut c).beta(2.0).accuracy(class).tuned(&answer))?,
            spec(sgemm(&a, &b, &mut c).beta(2.0).accuracy(class))?,
        );
        let layer = |call: SgemmCall<'_>| {
            Ok::<_, Error>(call.epilogue(LAYER).operands(&scale).choice(&device)?.spec)
        };
        same(
            layer(sgemm(&a, &b, &mut c).beta(2.0).tuned(&answer))?,
            layer(sgemm(&a, &b, &mut c).beta(2.0))?,
        );
        let mut small = device.alloc_matrix(4, 4)?;
        same(
            spec(sgemm(&other, &other, &mut small).beta(2.0).tuned(&answer))?,
            spec(sgemm(&other, &other, &mut small).beta(2.0))?,
        );

        // A fused call has candidates with its epilogue.
        let call = sgemm(&a, &b, &mut c).epilogue(LAYER).operands(&scale);
        let fused = call.autotune(&device, ENOUGH)?;
        let has_epilogue = |one: &Candidate| one.spec.contains("epilogue: |acc, bias[m]|");
        assert!(fused.candidates().iter().all(has_epilogue), "{fused:?}");
        call.tuned(&fused).run(&device)?;
        let stored = |(i, sum): (usize, &f32)| f32::max(sum + values(n)[i % n], 0.0);
        let expected: Vec<f32> = product.iter().enumerate().map(stored).collect();
        c.read_into(&mut found)?;
        assert_eq!(found, expected, "{m} x {n} x {k}");
    }
    assert!(changed > 0, "no call got another kernel");
    Ok(())
}
