//! The key `batch`.

mod gpu;
mod groups;

use gemm_dsl::spec::{Batch, SgemmSpec};
use gemm_oracle::beside::plain;
use gemm_oracle::product::Size;
use gemm_runtime::error::{Need, Subject};
use gemm_runtime::{ByName, Device, Error, MN, MatrixMut, MatrixRef, Sgemm, sgemm};
use gemm_tests::batch::{Lies, run};
use gemm_tests::product::{Placement, Problem, accepted, is_unaligned};
use gemm_tests::simulator;
use gemm_tests::{arbitrary, bits};
use libtest_mimic::Trial;
use proptest::prelude::*;

fn lies(pitched: bool) -> impl Strategy<Value = [Lies; 4]> {
    let one = move || {
        let padding = if pitched { 0..6usize } else { 0..1 };
        let several = (any::<bool>(), any::<bool>(), proptest::option::of(0..3usize));
        (any::<bool>(), 0..7usize, padding, several).prop_map(
            move |(shared, between, padding, (beside, turned, repeats))| Lies {
                shared,
                between,
                padding,
                beside: beside && pitched,
                turned,
                repeats,
            },
        )
    };
    [one(), one(), one(), one()]
}

proptest! {
    #![proptest_config(gemm_cases::cases(400))]

    fn each_product_has_the_bits_of_its_own(
        (spec, size, count, lies) in
            (arbitrary::sgemm(128), (0..40usize, 0..40usize, 0..20usize), 0..4usize)
            .prop_flat_map(|(spec, (m, n, k), count)| {
                let size = accepted(&spec, Size::new(m, n, k));
                let lies = lies(spec.pitched);
                (Just(spec), Just(size), Just(count), lies)
            }),
        (seed, listed) in any::<(u64, bool)>(),
    ) {
        let batch = if listed { Batch::Pointers } else { Batch::Strided };
        if let Err(error) = run(&simulator(), (&spec, batch), size, &[count], lies, seed) {
            prop_assert!(is_unaligned(&spec, &error), "`{spec}`, {batch}, at {size}: {error}");
        }
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(200))]

    /// A kernel for several axes computes a batch with at most as many.
    fn each_product_of_several_axes_has_the_bits_of_its_own(
        (spec, size, axes, lies) in
            (
                arbitrary::sgemm(128),
                (0..40usize, 0..40usize, 0..20usize),
                proptest::collection::vec(0..4usize, 1..=3usize),
            )
            .prop_flat_map(|(spec, (m, n, k), axes)| {
                let size = accepted(&spec, Size::new(m, n, k));
                let lies = lies(spec.pitched);
                (Just(spec), Just(size), Just(axes), lies)
            }),
        (seed, third) in any::<(u64, bool)>(),
    ) {
        let batch = if third || axes.len() == 3 { Batch::Strided3 } else { Batch::Strided2 };
        if let Err(error) = run(&simulator(), (&spec, batch), size, &axes, lies, seed) {
            let unaligned = error.contains("aligned to") || error.contains("to be a multiple of 4");
            let unguarded = spec.float4 && spec.bounds.to_string() == "aligned";
            prop_assert!(unguarded && unaligned, "`{spec}`, {batch}, {axes:?}: {error}");
        }
    }
}

/// `sgemm` takes the fewest axes that describe all operands: heads of attention as they are stored.
fn sgemm_takes_heads_as_they_are_stored() {
    let device = Device::simulator();
    let (b, t, h, d) = (2, 5, 3, 4);
    let elements: Vec<f32> = (0..b * t * h * d).map(|i| (i * 7 % 11) as f32).collect();
    let x = device.upload(&elements).expect("room");
    let heads = MatrixRef::batch_axes(&x, [(b, t * h * d), (h, d)], t, d, h * d).expect("many");
    // All heads share the keys of the first: a stride of 0.
    let first = MatrixRef::batch_axes(&x, [(b, t * h * d), (h, 0)], t, d, h * d).expect("many");
    let at = |i: usize, row: usize, head: usize, col: usize| {
        elements[((i * t + row) * h + head) * d + col]
    };
    for (keys, of_first) in [(heads, false), (first, true)] {
        let mut room = device.alloc(b * h * t * t).expect("room");
        let mut scores = MatrixMut::batch(&mut room, b * h, t, t).expect("many");
        let keys = keys.t();
        let call = sgemm(&heads, &keys, &mut scores);
        assert_eq!(call.spec(&device).expect("they fit").batch, Some(Batch::Strided2));
        call.run(&device).expect("they fit");
        let scores = device.download(&room).expect("ours");
        for (nth, found) in scores.iter().enumerate() {
            let (i, head) = (nth / (t * t) / h, nth / (t * t) % h);
            let (row, col) = (nth / t % t, nth % t);
            let key = if of_first { 0 } else { head };
            let sum: f32 = (0..d).map(|p| at(i, row, head, p) * at(i, col, key, p)).sum();
            assert_eq!(*found, sum);
        }
        // The result goes to the heads of a tensor, between the rows of the others.
        let values = MatrixRef::batch(&room, b * h, t, t).expect("many");
        let mut out = device.alloc(b * t * h * d).expect("room");
        let mut to =
            MatrixMut::batch_axes(&mut out, [(b, t * h * d), (h, d)], t, d, h * d).expect("many");
        sgemm(&values, &heads, &mut to).run(&device).expect("they fit");
        let out = device.download(&out).expect("ours");
        for (nth, found) in out.iter().enumerate() {
            let (i, row, head, col) = (nth / (t * h * d), nth / (h * d) % t, nth / d % h, nth % d);
            let of = &scores[((i * h + head) * t + row) * t..][..t];
            let sum: f32 = of.iter().enumerate().map(|(p, x)| x * at(i, p, head, col)).sum();
            assert_eq!(*found, sum);
        }
    }
    // Axes that one stride describes are one axis.
    let mut room = device.alloc(b * h * t * t).expect("room");
    let packed = MatrixRef::batch_axes(&x, [(b, h * t * d), (h, t * d)], t, d, d).expect("many");
    let mut to = MatrixMut::batch(&mut room, b * h, t, t).expect("many");
    let spec = sgemm(&packed, &packed.t(), &mut to).spec(&device).expect("they fit");
    assert_eq!(spec.batch, Some(Batch::Strided));
}

/// A kernel with too few axes, batches with other axes, and a C whose matrices overlap are refused.
fn axes_that_do_not_fit_are_errors() {
    let device = Device::simulator();
    let kernel = |line: &str| Sgemm::<()>::new(line.parse().expect("a spec")).expect("a spec");
    let one = kernel("batch: strided, pitched, tile: 16x16x8, thread: 4x4");
    let two = kernel("batch: strided2, pitched, tile: 16x16x8, thread: 4x4");
    let memory = device.upload(&[1.0; 400]).expect("room");
    let heads = |axes| MatrixRef::batch_axes(&memory, axes, 4, 4, 16).expect("many");
    let (mut room, all) = (device.alloc(400).expect("room"), heads([(2, 100), (3, 4)]));
    let mut launch = |kernel: &Sgemm, a: &MatrixRef<'_>, axes, pitch| {
        let mut c = MatrixMut::batch_axes(&mut room, axes, 4, 4, pitch).expect("many");
        kernel.call(&device).launch(a, &all, &mut c).map(drop)
    };
    let apart = [(2, 100), (3, 4)];
    launch(&two, &all, apart, 16).expect("two axes");
    let refused = |found: Result<(), Error>, text: &str| {
        let error = found.expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    };
    let text = "with strides of 100 and 4 elements, but the kernel has `batch: strided`. Use a \
                kernel with `batch: strided2`";
    refused(launch(&one, &all, apart, 16), text);
    let turned = heads([(3, 100), (2, 4)]);
    let text = "`a` is a batch of 3 x 2 matrices, but `c` is one of 2 x 3";
    refused(launch(&two, &turned, apart, 16), text);
    let text = "no element is written twice";
    refused(launch(&two, &all, [(2, 100), (3, 3)], 16), text);
    refused(launch(&two, &all, [(2, 0), (3, 16)], 4), text);
    refused(launch(&two, &all, [(2, 100), (3, 4)], 8), text);
}

/// Views with different extents are refused. A C whose matrices overlap is also refused.
fn a_batch_that_does_not_fit_is_an_error() {
    let device = Device::simulator();
    let spec: SgemmSpec =
        "batch: strided, tile: 16x16x8, thread: 4x4".parse().expect("a sound spec");
    let kernel = Sgemm::<()>::new(spec).expect("a sound spec");
    let (a, b) = (device.alloc(96).expect("room"), device.alloc(96).expect("room"));
    let mut c = device.alloc(96).expect("room");
    let of = |buffer, count| MatrixRef::batch(buffer, count, 4, 4).expect("as many");
    let mut launch = |a: MatrixRef<'_>, b: MatrixRef<'_>, (count, distance)| {
        let mut c = MatrixMut::batch_apart(&mut c, (count, distance), 4, 4, 4).expect("as many");
        kernel.call(&device).launch(&a, &b, &mut c)
    };
    assert!(launch(of(&a, 3), of(&b, 3), (3, 16)).is_ok());
    assert!(launch(of(&a, 3).part(0..4, 0..4).expect("all"), of(&b, 3), (3, 16)).is_ok());
    match launch(of(&a, 2), of(&b, 3), (3, 16)) {
        Err(Error::Extents { extent, first, other }) => {
            assert_eq!(
                (extent.0, first, other),
                ("batch", ("a".to_owned(), 2), ("c".to_owned(), 3))
            );
        }
        other => panic!("{other:?}"),
    }
    for (distance, least) in [(15, 16), (0, 16)] {
        match launch(of(&a, 3), of(&b, 3), (3, distance)) {
            Err(Error::Unmet(unmet)) => {
                assert!(
                    matches!(&unmet.subject, Subject::Stride { name, dim: 0, .. } if name == "c")
                );
                assert_eq!((&unmet.need, unmet.value), (&Need::Distinct(least), distance as i128));
                let text =
                    "the stride between matrices of `c` to be at least 16, so that no element";
                assert!(unmet.to_string().contains(text), "{unmet}");
            }
            other => panic!("{other:?}"),
        }
    }
    // The stride of a single matrix is not checked.
    assert!(launch(of(&a, 1), of(&b, 1), (1, 0)).is_ok());
    // A kernel without the key `batch` refuses a batch.
    let one = Sgemm::<()>::new(SgemmSpec::default()).expect("a sound spec");
    let mut view = MatrixMut::batch(&mut c, 3, 4, 4).expect("as many");
    let refused = one.call(&device).launch(&of(&a, 3), &of(&b, 3), &mut view);
    assert!(
        matches!(&refused, Err(Error::Unmet(unmet)) if unmet.need == Need::Rank(2)),
        "{refused:?}"
    );
}

/// The batch sizes of all operands must agree, for every operand and every form of launch.
fn a_batch_of_another_number_is_an_error() {
    let device = Device::simulator();
    let memory = device.upload(&[1.0; 256]).expect("room");
    let of = |count| MatrixRef::batch(&memory, count, 4, 4).expect("as many");
    let one = MatrixRef::new(&memory, 4, 4).expect("as many");
    let mut room = device.alloc(256).expect("room");
    let mut c = MatrixMut::batch(&mut room, 5, 4, 4).expect("as many");
    let told = |refused: Result<_, Error>, name: &str, count| {
        assert!(
            matches!(&refused, Err(Error::Extents { extent, first, other })
                if (extent.0, first.0.as_str(), first.1) == ("batch", name, count)
                    && (other.0.as_str(), other.1) == ("c", 5)),
            "{refused:?}"
        );
    };
    let plain: SgemmSpec = "batch: strided".parse().expect("a sound spec");
    let plain = Sgemm::<()>::new(plain).expect("a sound spec");
    let residual: SgemmSpec =
        "batch: strided, epilogue: |acc, residual[m, n]| acc + residual".parse().expect("sound");
    let typed = Sgemm::<(MN,)>::new(residual.clone()).expect("a sound spec");
    let named = Sgemm::<ByName>::new(residual).expect("a sound spec");
    for count in [1, 2, 4, 6, 7] {
        let other = of(count);
        told(plain.call(&device).launch(&other, &one, &mut c), "a", count);
        told(plain.call(&device).launch(&one, &other, &mut c), "b", count);
        told(plain.launch(&device, &other, &one, &mut c, (4, 4, 4)), "a", count);
        let call = typed.call(&device).operands((&other,));
        told(call.launch(&of(5), &one, &mut c), "residual", count);
        let call = named.call(&device).operand("residual", &other);
        told(call.launch(&of(5), &one, &mut c), "residual", count);
    }
    // A C that is not a batch counts as a batch of one.
    let mut alone = device.alloc(16).expect("room");
    let refused = plain.call(&device).launch(
        &of(5),
        &of(5),
        &mut MatrixMut::new(&mut alone, 4, 4).expect("room"),
    );
    assert!(
        matches!(
            &refused,
            Err(Error::Extents { first, other, .. }) if (first.1, other.1) == (5, 1)
        ),
        "{refused:?}"
    );
    for right in [of(5), one] {
        let call = typed.call(&device).operands((&right,));
        call.launch(&right, &of(5), &mut c).expect("they fit");
        plain.launch(&device, &right, &of(5), &mut c, (4, 4, 4)).expect("they fit");
    }
}

/// `run` accepts host matrices for a batch of one.
fn a_batch_of_one_runs_on_matrices_of_the_host() {
    let device = Device::simulator();
    let (a, b): (Vec<f32>, Vec<f32>) =
        ((0..6).map(|i| i as f32).collect(), (0..15).map(|i| (i * i) as f32).collect());
    for keys in ["", ", pitched", ", layout: tn", ", layout: tt, pitched", ", layout: nt"] {
        let kernel = |batch: &str| {
            let spec: SgemmSpec = format!("block: 4x4{batch}{keys}").parse().expect("sound");
            Sgemm::<()>::new(spec).expect("a sound spec")
        };
        let expected = kernel("").run(&device, &a, &b, (2, 5, 3)).expect("they fit");
        let found = kernel(", batch: strided").run(&device, &a, &b, (2, 5, 3)).expect("they fit");
        assert_eq!(bits(&found), bits(&expected), "{keys}");
    }
}

/// No view causes an overflow of extents. A view without elements may have any position.
fn views_of_nothing_and_of_much() {
    let device = Device::simulator();
    let (empty, four) = (device.alloc(0).expect("room"), device.upload(&[7.0; 4]).expect("room"));
    let huge = MatrixRef::batch_apart(&four, (0, 1), usize::MAX, 8, 8).expect("of nothing");
    assert_eq!(device.download(&huge).expect("nothing"), [0.0; 0]);
    for rows in [0..3, 5..6, 9..10] {
        let none = MatrixRef::batch(&empty, 0, 10, 8).expect("of nothing");
        let part = none.part(rows, 1..8).expect("inside");
        assert_eq!(device.download(&part).expect("nothing"), [0.0; 0]);
    }
    let far = huge.part(usize::MAX - 1..usize::MAX, 0..8).expect("inside");
    assert_eq!(device.download(&far).expect("nothing"), [0.0; 0]);
    // Elements between matrices belong to no matrix.
    let six = device.upload(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("room");
    let apart = MatrixRef::batch_apart(&six, (2, 4), 1, 2, 2).expect("inside");
    assert_eq!(device.download(&apart).expect("ours"), [0.0, 1.0, 4.0, 5.0]);
    let many = MatrixRef::batch_apart(&four, (1 << 50, 0), 2, 2, 2).expect("one of them");
    let refused = device.download(&many);
    assert!(
        matches!(&refused, Err(Error::OutOfMemory { device, .. }) if device == "the host"),
        "{refused:?}"
    );
}

/// Matrices of C may be interleaved: rows of one alternate with rows of another.
fn matrices_of_c_may_be_interleaved() {
    let device = Device::simulator();
    let spec: SgemmSpec = "batch: strided, pitched".parse().expect("a sound spec");
    let kernel = Sgemm::<()>::new(spec).expect("a sound spec");
    let size = Size::new(3, 4, 5);
    let problems = [Problem::new(size, 1), Problem::new(size, 2)];
    let a: Vec<f32> = problems.iter().flat_map(|p| p.a.clone()).collect();
    let b: Vec<f32> = problems.iter().flat_map(|p| p.b.clone()).collect();
    let (a, b) = (device.upload(&a).expect("room"), device.upload(&b).expect("room"));
    let mut c = device.alloc(2 * 3 * 4).expect("room");
    let mut view = MatrixMut::batch_apart(&mut c, (2, 4), 3, 4, 8).expect("as many");
    let (a, b) = (
        MatrixRef::batch(&a, 2, 3, 5).expect("as many"),
        MatrixRef::batch(&b, 2, 5, 4).expect("as many"),
    );
    kernel.call(&device).launch(&a, &b, &mut view).expect("a launch");
    let c = device.download(&c).expect("ours");
    for (n, problem) in problems.iter().enumerate() {
        let spec = SgemmSpec::default();
        assert!(plain(&spec).is_none());
        let (expected, _) =
            problem.multiply(&device, &spec, Placement::default()).expect("a launch");
        let found: Vec<f32> = (0..12).map(|i| c[i / 4 * 8 + n * 4 + i % 4]).collect();
        assert_eq!(bits(&found), bits(&expected));
    }
}

/// If all GEMMs of a batch share a matrix, it is split and scaled only once.
fn splits_of_a_shared_matrix_are_computed_once() {
    let device = Device::simulator();
    let ones = device.upload(&vec![1.0; 3 * 70 * 70]).expect("room");
    let of = |shared: bool| match shared {
        true => MatrixRef::new(&ones, 70, 70).expect("as many"),
        false => MatrixRef::batch(&ones, 3, 70, 70).expect("as many"),
    };
    for arith in ["bf16x6", "f16x3", "bf16"] {
        let line = format!("batch: strided, tile: 64x16x64, arith: {arith}, mma: wgmma, copy: tma");
        let kernel = Sgemm::<()>::new(line.parse().expect("a line")).expect("a kernel");
        for (a, b) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut c = device.alloc(3 * 70 * 70).expect("room");
            let mut out = MatrixMut::batch(&mut c, 3, 70, 70).expect("as many");
            let launched = kernel.call(&device).launch(&of(a), &of(b), &mut out).expect("fits");
            let matrices = [a, b].map(|shared| if shared { 1 } else { 3 }).iter().sum::<u32>();
            for (name, tiles) in [("_splits", 4), ("_row_max", 2)] {
                let mut steps = launched.steps().filter(|step| step.kernel().ends_with(name));
                let blocks = steps.next().map(|step| step.grid()[0]);
                let expected = (name == "_splits" || arith == "f16x3").then_some(tiles * matrices);
                assert_eq!(blocks, expected, "{line}: {a} {b}");
            }
            assert!(device.download(&c).expect("ours").iter().all(|c| *c == 70.0), "{line}");
        }
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![
            each_product_has_the_bits_of_its_own,
            each_product_of_several_axes_has_the_bits_of_its_own,
            sgemm_takes_heads_as_they_are_stored,
            axes_that_do_not_fit_are_errors,
            a_batch_that_does_not_fit_is_an_error,
            a_batch_of_another_number_is_an_error,
            a_batch_of_one_runs_on_matrices_of_the_host,
            views_of_nothing_and_of_much,
            matrices_of_c_may_be_interleaved,
            splits_of_a_shared_matrix_are_computed_once,
        ],
        gpu::trials(),
        groups::trials(),
        groups::gpu_trials(),
    ];
    trials.into_iter().flatten().collect()
}
