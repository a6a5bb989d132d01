//! The key `batch`.

use gemm_dsl::spec::SgemmSpec;
use gemm_reference::beside::plain;
use gemm_reference::product::Size;
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, Need, Sgemm, Subject};
use gemm_tests::batch::{Lies, run};
use gemm_tests::product::{Placement, Problem, accepted};
use gemm_tests::{arbitrary, bits};
use proptest::prelude::*;

fn lies(pitched: bool) -> impl Strategy<Value = [Lies; 4]> {
    let one = move || {
        let padding = if pitched { 0..6usize } else { 0..1 };
        (any::<bool>(), 0..7usize, padding).prop_map(|(shared, between, padding)| Lies {
            shared,
            between,
            padding,
        })
    };
    [one(), one(), one(), one()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 250, ..Default::default() })]

    #[test]
    fn each_product_has_the_bits_of_its_own(
        (spec, size, count, lies) in (arbitrary::sgemm(128), (0..40usize, 0..40usize, 0..20usize), 0..4usize)
            .prop_flat_map(|(spec, (m, n, k), count)| {
                let size = accepted(&spec, Size::new(m, n, k));
                let lies = lies(spec.pitched);
                (Just(spec), Just(size), Just(count), lies)
            }),
        seed: u64,
    ) {
        if let Err(error) = run(&Device::simulator(), &spec, size, count, lies, seed) {
            // A kernel without guards has no variant for operands that are not aligned.
            let unaligned = error.contains("aligned to") || error.contains("to be a multiple of 4");
            prop_assert!(spec.float4 && spec.bounds.to_string() == "aligned" && unaligned, "`{spec}` at {size}: {error}");
        }
    }
}

/// Views that do not fit each other, or whose products would be written over one another.
#[test]
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
            assert_eq!((extent.0, first, other), ("batch", ("a", 2), ("c", 3)));
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
                    "the distance between matrices of `c` to be at least 16, so that no element";
                assert!(unmet.to_string().contains(text), "{unmet}");
            }
            other => panic!("{other:?}"),
        }
    }
    // One product may lie anywhere.
    assert!(launch(of(&a, 1), of(&b, 1), (1, 0)).is_ok());
    // A kernel of one product takes no batch.
    let one = Sgemm::<()>::new(SgemmSpec::default()).expect("a sound spec");
    let mut view = MatrixMut::batch(&mut c, 3, 4, 4).expect("as many");
    let refused = one.call(&device).launch(&of(&a, 3), &of(&b, 3), &mut view);
    assert!(
        matches!(&refused, Err(Error::Unmet(unmet)) if unmet.need == Need::Rank(2)),
        "{refused:?}"
    );
}

/// Interleaved matrices: what lies between the elements of one are those of another.
#[test]
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
