use super::answer::{Basis, Candidate, Outcome};
use super::loads::of_product;
use super::operands::TrialOperands;
use super::record::{self, Record};
use super::{condition, fastest};
use crate::cache::{Cache, Entry};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::problem;
use gemm_dsl::plan::SgemmPlan;
use gemm_dsl::spec::{GemmLayout, SgemmSpec};
use gemm_dsl::tables::SgemmShape;
use gemm_perf::LaunchLoad;
use std::fs;
use std::time::Duration;

fn candidate(rule: usize, ns: Option<u64>) -> Candidate {
    let measured = ns.map(Duration::from_nanos);
    let spec = format!("block: {rule}x8");
    Candidate { rule, spec, predicted: None, measured, samples: 3, error: None }
}

#[test]
fn a_spec_must_save_a_hundredth_to_replace_that_of_the_table() {
    let chosen = |times: &[Option<u64>]| {
        let times = times.iter().enumerate().map(|(rule, ns)| candidate(rule, *ns));
        fastest(&times.collect::<Vec<_>>(), Basis::Measured)
    };
    assert_eq!(chosen(&[Some(1000), Some(991), Some(2000)]), 0);
    assert_eq!(chosen(&[Some(1000), Some(990), Some(2000)]), 1);
    assert_eq!(chosen(&[Some(1000), None, Some(500), Some(400)]), 3);
    assert_eq!(chosen(&[Some(1000), Some(1000)]), 0);
    // Predictions do not compete with measurements.
    let mut predicted = candidate(1, None);
    predicted.predicted = Some(Duration::from_nanos(1));
    assert_eq!(fastest(&[candidate(0, Some(1000)), predicted], Basis::Measured), 0);
}

#[test]
fn a_condition_has_all_facts_of_a_problem() {
    let device = Device::simulator();
    let shape = SgemmShape::from((7, 8, 9)).batch(3).layout(GemmLayout::Nt).padded(true);
    assert_eq!(
        condition(&problem(shape.aligned(true), &device)),
        "m == 7 && n == 8 && k == 9 && batch == 3 && nt && padded && aligned && arch == 90 && \
         sms == 132"
    );
    assert_eq!(
        condition(&problem(SgemmShape::from((7, 1, 9)), &device)),
        "m == 7 && n == 1 && k == 9 && batch == 1 && nt && !padded && !aligned && arch == 90 && \
         sms == 132"
    );
}

/// The allocated matrices have the layouts, the padding and the alignment of the shape, so the
/// table chooses for them as for the shape.
#[test]
fn operands_have_the_shape_of_the_problem() -> Result<()> {
    let device = Device::simulator();
    let mut seen = 0;
    for (m, n, k) in [(8, 12, 4), (7, 12, 4), (8, 5, 3), (1, 8, 4), (8, 1, 4), (1, 1, 1)] {
        for (layout, batch, keys) in [
            (GemmLayout::Nn, 1, ""),
            (GemmLayout::Tn, 1, ""),
            (GemmLayout::Nt, 3, "batch: strided, "),
            (GemmLayout::Tt, 2, "batch: pointers, "),
        ] {
            for (padded, aligned) in [
                (false, None),
                (false, Some(true)),
                (false, Some(false)),
                (true, Some(true)),
                (true, Some(false)),
            ] {
                let mut shape = SgemmShape::from((m, n, k)).layout(layout).padded(padded);
                (shape.batch, shape.aligned) = (batch, aligned);
                let keys =
                    format!("{keys}epilogue: |acc, x[m, n], y[n], z| (acc + x + y * z, acc)");
                let spec: SgemmSpec = keys.parse()?;
                let spec = spec.for_matrices(shape.lies(), padded);
                let mut operands = match TrialOperands::new(&device, &spec, &shape) {
                    Err(Error::WrongShape { .. }) if !padded && aligned == Some(true) => continue,
                    operands => operands?,
                };
                let mut views = operands.views()?;
                let found = views.shape()?;
                let context = format!("{shape:?} {found:?}");
                // Padding, and the layout of padded matrices, cannot be seen in a single row.
                let is_seen = m > 1 && n > 1 && k > 1;
                if is_seen || !padded {
                    assert_eq!(found.lies(), shape.lies(), "{context}");
                }
                assert!(found.padded == padded || !is_seen, "{context}");
                assert_eq!(found.is_aligned(), shape.is_aligned(), "{context}");
                assert_eq!((found.m, found.n, found.k), (shape.m, shape.n, shape.k), "{context}");
                assert_eq!(found.batch, batch, "{context}");
                let program = device.programs().get::<SgemmSpec>(&spec.to_string())?;
                views.launch(&program)?;
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "{seen}");
    Ok(())
}

#[test]
fn impossible_shapes_are_refused() -> Result<()> {
    let device = Device::simulator();
    let told = |shape: SgemmShape| {
        let operands = TrialOperands::new(&device, &SgemmSpec::default(), &shape);
        operands.map(drop).expect_err("impossible").to_string()
    };
    let batch = told(SgemmShape::from((4, 4, 4)).batch(2));
    assert!(batch.contains("a batch of 2") && batch.contains("`batch: strided`"), "{batch}");
    let aligned = told(SgemmShape::from((5, 3, 7)).aligned(true));
    assert!(aligned.contains("5 x 3 x 7, packed and declared as aligned"), "{aligned}");
    let huge = SgemmShape::from((usize::MAX, usize::MAX, 1));
    assert!(told(huge).contains("would have"), "{}", told(huge));
    Ok(())
}

fn record() -> Record {
    let mut failed = candidate(2, None);
    failed.error = Some("it failed\non two lines: \\n".to_owned());
    let mut predicted = candidate(1, Some(900));
    predicted.predicted = Some(Duration::from_nanos(850));
    let candidates = vec![candidate(4, Some(1000)), failed, predicted];
    let budget = Duration::from_secs(2);
    let outcome = Outcome { chosen: 2, basis: Basis::Measured, is_complete: false, budget };
    Record { outcome, candidates }
}

/// Candidates of the table of [`record`], in the order before any was tried.
fn specs() -> Vec<Candidate> {
    [4, 1, 2].map(|rule| Candidate { samples: 0, ..candidate(rule, None) }).to_vec()
}

#[test]
fn an_answer_is_found_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let cache = Cache::in_dir(Some(dir.path().to_owned()));
    let key = record::key(&["a GPU", "sm_90"], "else => tile: 8x8x8", "m == 1");
    let find =
        |oldest, seconds| record::find(&cache, key, oldest, Duration::from_secs(seconds), &specs());
    assert_eq!(find((0, 0, 0), 1), None);
    record::store(&cache, key, (13, 0, 88), &record());
    assert_eq!(find((0, 0, 0), 1), Some(record()));
    assert_eq!(find((13, 0, 88), 2), Some(record()));
    // A larger budget, or a newer compiler, asks for a new measurement.
    assert_eq!(find((0, 0, 0), 3), None);
    assert_eq!(find((13, 1, 0), 1), None);
    let mut complete = record();
    complete.outcome.is_complete = true;
    record::store(&cache, key, (13, 0, 88), &complete);
    assert_eq!(find((0, 0, 0), 3), Some(complete));
    let other = record::key(&["a GPU", "sm_90"], "else => tile: 8x8x8", "m == 2");
    assert_eq!(record::find(&cache, other, (0, 0, 0), Duration::ZERO, &specs()), None);
}

#[test]
fn a_damaged_or_foreign_answer_is_ignored() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let cache = Cache::in_dir(Some(dir.path().to_owned()));
    let key = record::key(&["a GPU"], "else => tile: 8x8x8", "m == 1");
    let find = |specs: &[Candidate]| record::find(&cache, key, (0, 0, 0), Duration::ZERO, specs);
    record::store(&cache, key, (13, 0, 88), &record());
    // Candidates of another table.
    assert_eq!(find(&specs()[..2]), None);
    assert_eq!(find(&[4, 1, 3].map(|rule| candidate(rule, None))), None);
    assert_eq!(find(&specs()), Some(record()));
    let entry = fs::read_dir(dir.path()).expect("the cache").next().expect("an entry");
    let path = entry.expect("an entry").path();
    let whole = fs::read(&path).expect("the entry");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).expect("writable");
        assert_eq!(find(&specs()), None, "the damage of byte {at} was not detected");
    }
    // A whole entry that is no answer.
    for text in [
        "",
        "2 1",
        "x 1 5",
        "2 1 5\n4",
        "2 1 5\n4 - 10 1 \n2 - - 0 \n9 - 1 1 ",
        "9 1 5\n",
        // The chosen candidate has no time.
        "1 1 5\n4 - 10 1 \n2 - - 0 \n1 - 9 1 ",
        // The table's choice is not first.
        "2 1 5\n2 - 10 1 \n4 - 5 1 \n1 - 9 1 ",
    ] {
        let entry = Entry { compiler: (13, 0, 88), payload: text.into() };
        cache.put(key, &entry);
        assert_eq!(find(&specs()), None, "{text}");
    }
    let none = Cache::in_dir(None);
    record::store(&none, key, (13, 0, 88), &record());
    assert_eq!(record::find(&none, key, (0, 0, 0), Duration::ZERO, &specs()), None);
}

/// Up to the size of the samples, the loads have the counts of a simulated launch.
#[test]
fn loads_of_small_shapes_are_counted() -> Result<()> {
    let device = Device::simulator_compiled();
    for (line, batch) in [
        ("tile: 16x16x8, thread: 4x4", 1),
        ("tile: 16x16x8, thread: 4x4, split_k: 2", 1),
        ("tile: 16x16x8, thread: 4x4, batch: strided", 5),
    ] {
        let spec: SgemmSpec = line.parse()?;
        let shape = SgemmShape::from((24, 40, 16)).batch(batch);
        let loads = super::gemm_loads(&spec, &shape, 132)?;
        let program = device.programs().get::<SgemmSpec>(&spec.to_string())?;
        let report = TrialOperands::new(&device, &spec, &shape)?.views()?.launch(&program)?;
        let steps: Vec<_> = report.steps().collect();
        assert_eq!(loads.len(), steps.len());
        for (load, step) in loads.iter().zip(&steps) {
            assert_eq!(load.kernel, step.kernel());
            let counted = super::compiled_work(step)?;
            let found = load.launch.work;
            assert_eq!(found.fma, counted.fma);
            // The counts of a batch are those of its first GEMM.
            let relative = found.instructions / counted.instructions;
            let exact = if batch == 1 { 0.0 } else { 0.03 };
            assert!((relative - 1.0).abs() <= exact, "{line}: {relative}");
            let blocks: f64 = step.grid().iter().map(|n| f64::from(*n)).product();
            assert_eq!(load.launch.blocks, blocks);
        }
    }
    Ok(())
}

/// The strips of A and B contain all components of the split of an element, in the bytes of their
/// format.
#[test]
fn strips_have_the_bytes_of_their_format() {
    let bytes = |arith: &str| {
        let line = format!("tile: 64x128x32, mma: wgmma, arith: {arith}");
        let plan: SgemmPlan = line.parse().expect("a sound spec");
        let mut launch =
            LaunchLoad { blocks: 4.0, threads: plan.threads(), ..LaunchLoad::default() };
        of_product(&mut launch, &plan, &(128, 256, 96).into());
        launch.reads.strips.map(|strip| strip / 96.0)
    };
    assert_eq!(bytes("bf16"), [64.0 * 2.0, 128.0 * 2.0]);
    assert_eq!(bytes("tf32"), [64.0 * 4.0, 128.0 * 4.0]);
    assert_eq!(bytes("tf32x3"), [64.0 * 8.0, 128.0 * 8.0]);
    assert_eq!(bytes("bf16x6"), [64.0 * 6.0, 128.0 * 6.0]);
}
