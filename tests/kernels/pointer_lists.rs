//! `batch: pointers`: lists of matrices, and the restrictions on lists.

use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_runtime::error::{Need, Subject};
use gemm_runtime::{
    Buffer, ByName, Device, Error, MatrixList, MatrixListMut, MatrixMut, MatrixRef, ReduceKernel,
    Sgemm, Variant, sgemm,
};
use gemm_tests::product::Problem;
use libtest_mimic::Trial;

const TILED: &str = "tile: 16x16x8, thread: 4x4, float4";

fn kernel(keys: &str) -> Sgemm<ByName> {
    let spec: SgemmSpec = format!("{TILED}, {keys}").parse().expect("a sound spec");
    Sgemm::new(spec).expect("a sound spec")
}

fn buffers<const N: usize>(device: &Device, len: usize) -> [Buffer; N] {
    [(); N].map(|()| device.alloc(len).expect("room"))
}

/// 4 × 4 matrices, one in each buffer.
fn squares(buffers: &[Buffer]) -> Vec<MatrixRef<'_>> {
    buffers.iter().map(|buffer| MatrixRef::new(buffer, 4, 4).expect("room")).collect()
}

fn squares_mut(buffers: &mut [Buffer]) -> Vec<MatrixMut<'_>> {
    buffers.iter_mut().map(|buffer| MatrixMut::new(buffer, 4, 4).expect("room")).collect()
}

/// A launch whose arguments do not match the kind of the kernel returns an error.
fn a_kernel_takes_lists_where_it_has_pointers_and_nowhere_else() {
    let device = Device::simulator();
    let (a, mut c): ([Buffer; 3], [Buffer; 3]) = (buffers(&device, 48), buffers(&device, 16));
    let in_a = squares(&a);
    let list = MatrixList::new(&device, &in_a).expect("alike");
    let batch = MatrixRef::batch(&a[0], 3, 4, 4).expect("room");
    let mut whole = device.alloc(48).expect("room");
    let mut lone = device.alloc_matrix(4, 4).expect("room");

    let pointers = kernel("batch: pointers");
    let strided = kernel("batch: strided");
    let one = kernel("");
    let mut views = squares_mut(&mut c);
    let mut listed = MatrixListMut::new(&device, &mut views).expect("alike");
    pointers.call(&device).launch(&list, &list, &mut listed).expect("three lists");
    let mut batch_c = MatrixMut::batch(&mut whole, 3, 4, 4).expect("room");
    strided.call(&device).launch(&batch, &batch, &mut batch_c).expect("three batches");

    type Outcome = gemm_runtime::error::Result<gemm_runtime::LaunchReport>;
    let refused = |outcome: Outcome, name: &str, need: Need, text: &str| match outcome {
        Err(Error::Unmet(unmet)) => {
            assert!(matches!(&unmet.subject, Subject::Array { name: of, .. } if of == name));
            assert_eq!(unmet.need, need);
            assert!(unmet.to_string().contains(text), "{unmet}");
        }
        other => panic!("{other:?}"),
    };
    let outcome = pointers.call(&device).launch(&batch, &list, &mut listed);
    refused(outcome, "a", Need::List, "a list of matrices as `a`, but it is one view. Make a list");
    let outcome = pointers.call(&device).launch(&list, &in_a[0], &mut listed);
    refused(outcome, "b", Need::List, "a list of matrices as `b`");
    let outcome = pointers.call(&device).launch(&list, &list, &mut batch_c);
    refused(outcome, "c", Need::List, "a list of matrices as `c`");
    // The error names C. It does not say that A has too many matrices for a single C.
    let outcome = pointers.call(&device).launch(&list, &list, &mut lone.view_mut());
    refused(outcome, "c", Need::List, "a list of matrices as `c`");
    let spec = "batch: pointers, pitched, epilogue: |acc, res[m, n]| acc + res";
    let beside = Sgemm::<ByName>::new(spec.parse().expect("sound")).expect("a kernel");
    let outcome = beside.call(&device).operand("res", &list).launch(&list, &list, &mut listed);
    refused(outcome, "res", Need::One, "an operand of a batch has a fixed stride between GEMMs");
    let outcome = strided.call(&device).launch(&batch, &list, &mut batch_c);
    refused(outcome, "b", Need::One, "one view as `b`, but it is a list of 3. Pass");
    let outcome = one.call(&device).launch(&list, &list, &mut listed);
    refused(outcome, "a", Need::One, "`batch: pointers`");

    // An empty list needs no shape, for any extents.
    let empty = MatrixList::<f32>::new(&device, [] as [&MatrixRef<'_>; 0]).expect("nothing");
    let mut to_nothing =
        MatrixListMut::<f32>::new(&device, [] as [&mut MatrixMut<'_>; 0]).expect("nothing");
    for line in ["batch: pointers", "batch: pointers, pitched"] {
        let spec: SgemmSpec = line.parse().expect("a sound spec");
        let kernel = Sgemm::<()>::new(spec).expect("a sound spec");
        let launched = kernel.launch(&device, &empty, &empty, &mut to_nothing, (3, 4, 5));
        launched.unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    // The row stride of rows without elements does not matter.
    let rows = [0, 7].map(|pitch| MatrixRef::pitched(&a[0], 3, 0, pitch).expect("of nothing"));
    MatrixList::new(&device, &rows).expect("alike");

    // If no view determines the extents, the lengths of the lists are also compared.
    let fewer = MatrixList::new(&device, &in_a[..2]).expect("alike");
    let spec: SgemmSpec = "batch: pointers".parse().expect("a sound spec");
    let plain = Sgemm::<()>::new(spec).expect("a sound spec");
    let outcome = plain.launch(&device, &list, &fewer, &mut listed, (4, 4, 4));
    refused(outcome, "b", Need::Count(3), "3 matrices in the list `b`, but it has 2");
    match pointers.call(&device).launch(&fewer, &list, &mut listed) {
        Err(Error::Extents { extent, first, other }) => {
            assert_eq!(
                (extent.0, first, other),
                ("batch", ("a".to_owned(), 2), ("c".to_owned(), 3))
            );
        }
        other => panic!("{other:?}"),
    }
    // Epilogue operands are arrays, as in every batch.
    let residual = kernel("batch: pointers, epilogue: |acc, residual[m, n]| acc + residual");
    let call = residual.call(&device).operand("residual", &list);
    refused(call.launch(&list, &list, &mut listed), "residual", Need::One, "a list of 3");
    let call = residual.call(&device).operand("residual", &batch);
    call.launch(&list, &list, &mut listed).expect("a batch beside lists");
    // Reductions do not accept lists.
    let sum = ReduceKernel::new("op: sum".parse().expect("sound")).expect("sound");
    let mut value = device.alloc(1).expect("room");
    let outcome = sum.launch(&device, &fewer, &mut value);
    assert!(
        matches!(&outcome, Err(Error::List { argument }) if argument == "input"),
        "{outcome:?}"
    );
    let outcome = sum.launch(&device, &whole, &mut listed);
    assert!(
        matches!(&outcome, Err(Error::List { argument }) if argument == "output"),
        "{outcome:?}"
    );
}

fn the_matrices_of_a_list_are_alike() {
    let device = Device::simulator();
    let a: [Buffer; 2] = buffers(&device, 64);
    let first = || MatrixRef::new(&a[0], 4, 5).expect("room");
    let pitched = |rows, cols, pitch| MatrixRef::pitched(&a[1], rows, cols, pitch).expect("room");
    let list = |second: MatrixRef<'_>| {
        let both = [first(), second];
        let list = MatrixList::new(&device, &both)?;
        Ok::<_, Error>((list.len(), list.rows()))
    };
    assert_eq!(list(pitched(4, 5, 5)).expect("alike"), (2, 4));
    for (second, expected) in [
        (pitched(3, 5, 5), (1, "the number of rows", 3, 4)),
        (pitched(4, 4, 5), (1, "the number of columns", 4, 5)),
        (pitched(4, 5, 6), (1, "the stride between rows", 6, 5)),
        (pitched(5, 4, 5).t(), (1, "the stride between rows", 1, 5)),
    ] {
        match list(second) {
            Err(error @ Error::Unlike { nth, what, found, expected: first }) => {
                assert_eq!((nth, what, found, first), expected);
                assert!(error.to_string().contains("in matrix 1 of the list"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    // A matrix with one row has no row stride.
    let row = |buffer, pitch| MatrixRef::pitched(buffer, 1, 5, pitch).expect("room");
    let rows = [row(&a[0], 5), row(&a[1], 9)];
    assert!(MatrixList::new(&device, &rows).is_ok());
    let batch = MatrixRef::batch(&a[1], 1, 4, 5).expect("room");
    assert!(matches!(list(batch), Err(Error::BatchInList { nth: 1 })));
    let other = Device::simulator();
    match MatrixList::new(&other, [&first()]) {
        Err(Error::WrongDevice { argument, .. }) => assert_eq!(argument, "matrix 0 of the list"),
        other => panic!("{other:?}"),
    }
}

fn a_list_belongs_to_its_device() {
    let (device, other) = (Device::simulator(), Device::simulator());
    let a: [Buffer; 1] = buffers(&device, 16);
    let views = squares(&a);
    let list = MatrixList::new(&device, &views).expect("alike");
    assert!(matches!(
        other.download(&list),
        Err(Error::WrongDevice { argument, .. }) if argument == "array"
    ));
}

/// The parts of one matrix are side by side, one above the other, or overlapping.
fn no_two_matrices_of_c_share_an_element() {
    let device = Device::simulator();
    let mut memory = device.upload(&[f32::NAN; 80]).expect("room");
    let mut whole = MatrixMut::pitched(&mut memory, 8, 9, 10).expect("room");
    let apart = [(0, 0), (0, 4), (4, 5), (3, 0), (3, 2)];
    let rows = 3;
    let list = MatrixListMut::parts(&device, &mut whole, (rows, 2), apart).expect("apart");
    assert_eq!((list.len(), list.rows(), list.cols()), (5, 3, 2));
    drop(list);
    for (firsts, shared) in [
        ([(0, 0), (0, 0)], true),
        ([(0, 0), (2, 1)], true),
        ([(2, 1), (0, 0)], true),
        ([(0, 1), (2, 0)], true),
        ([(0, 1), (3, 0)], false),
        ([(0, 7), (1, 0)], false),
        ([(0, 7), (1, 8 - 2)], true),
        ([(5, 0), (2, 0)], false),
    ] {
        let list = MatrixListMut::parts(&device, &mut whole, (3, 2), firsts).map(drop);
        match list {
            Ok(()) => assert!(!shared, "{firsts:?}"),
            Err(Error::Overlap { written, other }) => {
                assert!(shared, "{firsts:?}");
                assert_eq!((&*written, &*other), ("matrix 1 of the list", "matrix 0 of the list"));
            }
            Err(error) => panic!("{error}"),
        }
        // The same holds for parts of the transpose.
        let turned = firsts.map(|(row, col)| (col, row));
        let list = MatrixListMut::parts(&device, &mut whole.t(), (2, 3), turned).map(drop);
        assert_eq!(list.is_err(), shared, "{turned:?}");
    }
    for first in [(6, 0), (0, 8), (usize::MAX, 0)] {
        let list = MatrixListMut::parts(&device, &mut whole, (3, 2), [first]).map(drop);
        assert!(matches!(list, Err(Error::OutOfRange { .. })), "{list:?}");
    }
    let none = MatrixListMut::parts(&device, &mut whole, (3, 2), []).expect("nothing");
    assert_eq!((none.len(), none.rows(), none.cols()), (0, 3, 2));
}

/// Elements between the rows of one part belong to another part. Elements that belong to no part
/// are unchanged.
fn parts_of_one_matrix_are_written_and_nothing_else() {
    let device = Device::simulator();
    let size = Size::new(3, 4, 5);
    let problems = [1, 2, 3].map(|seed| Problem::new(size, seed));
    let [a, b] = [problems.each_ref().map(|p| &p.a), problems.each_ref().map(|p| &p.b)];
    let a = a.map(|values| device.upload_matrix_padded(values, 3, 5).expect("room"));
    let b = b.map(|values| device.upload_matrix_padded(values, 5, 4).expect("room"));
    for line in ["", ", scaled"] {
        let mut c = device.upload(&[f32::NAN; 9 * 12]).expect("room");
        let mut whole = MatrixMut::pitched(&mut c, 9, 11, 12).expect("room");
        let firsts = [(0, 0), (1, 4), (5, 7)];
        let (list_a, list_b) = (MatrixList::new(&device, &a), MatrixList::new(&device, &b));
        let (list_a, list_b) = (list_a.expect("alike"), list_b.expect("alike"));
        let mut list = MatrixListMut::parts(&device, &mut whole, (3, 4), firsts).expect("apart");
        let kernel = kernel(&format!("pitched, batch: pointers{line}"));
        let call = match line {
            "" => kernel.call(&device),
            _ => kernel.call(&device).operand("alpha", 1.0).operand("beta", 0.0),
        };
        let launched = call.launch(&list_a, &list_b, &mut list).expect("a launch");
        assert_eq!(launched.variant(), Variant::Scalar, "not all start on 16 bytes");
        let each = device.download(&list).expect("ours");
        drop(list);
        let all = device.download(&c).expect("ours");
        let mut written = vec![false; all.len()];
        for (nth, (problem, (row, col))) in problems.iter().zip(firsts).enumerate() {
            let expected = problem.ascending(&SgemmSpec::default());
            for i in 0..12 {
                let at = (row + i / 4) * 12 + col + i % 4;
                written[at] = true;
                let found = [all[at], each[nth * 12 + i]].map(f32::to_bits);
                assert_eq!(found, [expected[i].to_bits(); 2]);
            }
        }
        assert!(all.iter().zip(&written).all(|(value, written)| *written || value.is_nan()));
    }
}

/// If one matrix of a list is not aligned to 16 bytes, the kernel uses no vector accesses.
fn vectors_are_for_lists_that_are_aligned_throughout() {
    let device = Device::simulator();
    let a: [Buffer; 3] = buffers(&device, 32);
    let mut c: [Buffer; 3] = buffers(&device, 32);
    let kernel = kernel("batch: pointers");
    let mut variant = |operand: usize, nth: usize, start: usize| {
        let first = |of: usize, n: usize| if (of, n) == (operand, nth) { start } else { 4 };
        let slices = [0, 1].map(|of| {
            let slices = a.iter().enumerate().map(|(n, buffer)| buffer.slice(first(of, n)..));
            slices.collect::<Result<Vec<_>, _>>().expect("inside")
        });
        let views = slices.each_ref().map(|slices| {
            let views = slices.iter().map(|slice| MatrixRef::new(slice, 4, 4).expect("room"));
            views.collect::<Vec<_>>()
        });
        let [a, b] = views.each_ref().map(|views| MatrixList::new(&device, views));
        let to = c.iter_mut().enumerate();
        let to = to.map(|(n, buffer)| buffer.slice_mut(first(2, n)..).expect("inside"));
        let mut to: Vec<_> = to.collect();
        let mut to: Vec<_> =
            to.iter_mut().map(|slice| MatrixMut::new(slice, 4, 4).expect("room")).collect();
        let mut c = MatrixListMut::new(&device, &mut to).expect("apart");
        let launched = kernel.call(&device).launch(&a.expect("alike"), &b.expect("alike"), &mut c);
        launched.expect("a launch").variant()
    };
    for operand in 0..3 {
        for nth in 0..3 {
            assert_eq!(variant(operand, nth, 8), Variant::Vector);
            assert_eq!(variant(operand, nth, 5), Variant::Scalar, "matrix {nth} of {operand}");
        }
    }
}

fn a_list_has_transposes_but_no_parts() {
    let device = Device::simulator();
    let a = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]].map(|v| device.upload(&v).expect("room"));
    let views = a.each_ref().map(|buffer| MatrixRef::new(buffer, 2, 2).expect("room"));
    let list = MatrixList::new(&device, &views).expect("alike");
    assert_eq!(device.download(&list.t()).expect("ours"), [1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0]);
    assert!(matches!(list.t().part(0..1, 0..1), Err(Error::PartOfList)));
    let eye = device.upload(&[1.0, 0.0, 0.0, 1.0]).expect("room");
    let eye = MatrixRef::new(&eye, 2, 2).expect("room");
    let eyes = MatrixList::new(&device, [&eye, &eye]).expect("alike");
    let mut c: [Buffer; 2] = buffers(&device, 4);
    let mut views = c.each_mut().map(|buffer| MatrixMut::new(buffer, 2, 2).expect("room"));
    let mut to = MatrixListMut::new(&device, &mut views).expect("alike");
    // C is row-major, then column-major; A is column-major.
    sgemm(&list.t(), &eyes, &mut to).run(&device).expect("a launch");
    assert_eq!(device.download(&to).expect("ours"), [1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0]);
    let launched = sgemm(&eyes, &list, &mut to.t()).alpha(2.0).run(&device).expect("a launch");
    assert_eq!(launched.passes(), 1);
    let expected = [2.0, 6.0, 4.0, 8.0, 10.0, 14.0, 12.0, 16.0];
    assert_eq!(device.download(&to).expect("ours"), expected);
    // One view beside lists is an error that names the operand.
    let refused = sgemm(&list, &eye, &mut to).run(&device);
    assert!(matches!(refused, Err(Error::Unlisted { list: "a", other: "b" })), "{refused:?}");
}

fn an_empty_list_is_no_product() {
    let device = Device::simulator();
    let none = || MatrixList::<f32>::new(&device, [] as [&MatrixRef<'_>; 0]).expect("nothing");
    let nothing: [&mut MatrixMut<'_>; 0] = [];
    let mut c = MatrixListMut::<f32>::new(&device, nothing).expect("nothing");
    assert!(none().is_empty() && c.is_empty());
    assert_eq!(device.download(&c).expect("ours"), [0.0; 0]);
    assert_eq!(sgemm(&none(), &none(), &mut c).run(&device).expect("nothing").passes(), 0);
    let a: [Buffer; 1] = buffers(&device, 16);
    let views = squares(&a);
    let one = MatrixList::new(&device, &views).expect("alike");
    let refused = sgemm(&one, &one, &mut c).run(&device);
    assert!(
        matches!(&refused, Err(Error::Extents { extent, .. }) if extent.0 == "batch"),
        "{refused:?}"
    );
}

/// A list serves many launches and may be dropped right after the last one.
fn a_list_serves_many_launches() {
    let device = Device::simulator();
    let problem = Problem::new(Size::new(5, 6, 7), 3);
    let a = device.upload_matrix_padded(&problem.a, 5, 7);
    let b = device.upload_matrix_padded(&problem.b, 7, 6);
    let (a, b) = (a.expect("room"), b.expect("room"));
    let [mut first, mut second] = [(); 2].map(|()| device.alloc_matrix_padded(5, 6).expect("room"));
    let kernel = kernel("pitched, batch: pointers");
    {
        let lists = (MatrixList::new(&device, [&a; 2]), MatrixList::new(&device, [&b; 2]));
        let (a, b) = (lists.0.expect("alike"), lists.1.expect("alike"));
        for _ in 0..3 {
            let mut c = MatrixListMut::new(&device, [&mut first, &mut second]).expect("alike");
            kernel.call(&device).launch(&a, &b, &mut c).expect("a launch");
        }
    }
    let expected = problem.ascending(&SgemmSpec::default());
    for c in [first, second] {
        assert_eq!(device.download(&c).expect("ours"), expected);
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![
        a_kernel_takes_lists_where_it_has_pointers_and_nowhere_else,
        the_matrices_of_a_list_are_alike,
        a_list_belongs_to_its_device,
        no_two_matrices_of_c_share_an_element,
        parts_of_one_matrix_are_written_and_nothing_else,
        vectors_are_for_lists_that_are_aligned_throughout,
        a_list_has_transposes_but_no_parts,
        an_empty_list_is_no_product,
        a_list_serves_many_launches,
    ]
}
