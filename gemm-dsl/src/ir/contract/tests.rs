//! Launches that violate a contract: the remedy in the message leads to a valid launch.

use super::{Arguments, ArrayAxis, ArrayPlace, BoundArray, ContractError, MappedArray, Region};
use crate::Plan;
use crate::ir::{
    Elem, Expr, Extent, Geometry, KernelBuilder, Operand, Source, TensorMap, TensorSwizzle, Ty,
};
use crate::spec::SgemmSpec;
use smallvec::smallvec;

const A: Operand = Operand::Input(0);
const B: Operand = Operand::Input(1);
const C: Operand = Operand::Output(0);

/// Rows and columns of a matrix: extents and strides.
type Lies = [(u64, u64); 2];

/// Message of a kernel for a 4x8x12 GEMM in which one matrix has the given shape. Optionally, there
/// is a batch of 3 with the given stride.
fn told(line: &str, (operand, lies): (Operand, Lies), batch: Option<u64>) -> Result<(), String> {
    let spec: SgemmSpec = line.parse().expect("a sound line");
    let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
    let (m, n, k) = (4, 8, 12);
    let packed = |rows, cols, by_column| match by_column {
        true => [(rows, 1), (cols, rows)],
        false => [(rows, cols), (cols, 1)],
    };
    let layout = spec.layout;
    let matrices = [
        (A, "a", packed(m, k, layout.transposes_a())),
        (B, "b", packed(k, n, layout.transposes_b())),
        (C, "c", packed(m, n, false)),
    ];
    let shapes = matrices.map(|(of, name, packed)| {
        let lines = if of == operand { lies } else { packed };
        let apart = if of == operand { batch } else { batch.map(|_| 96) };
        let outer = apart.map(|stride| ArrayAxis { extent: 3, stride });
        let axes = lines.map(|(extent, stride)| ArrayAxis { extent, stride });
        (of, name, outer.into_iter().chain(axes).collect::<Vec<_>>())
    });
    let arrays: Vec<_> = shapes
        .iter()
        .map(|(of, name, axes)| {
            let place = ArrayPlace::One(Region { address: 0, len: 1 << 20 });
            let array = BoundArray { name, elem: Elem::F32, place, axes: Some(&axes[..]) };
            (*of, array)
        })
        .collect();
    let mut extents = vec![(Extent::M, m), (Extent::N, n), (Extent::K, k)];
    extents.extend(batch.map(|_| (Extent::BATCH, 3)));
    let given = Arguments { extents: &extents, arguments: &[], arrays: &arrays };
    let told = |unmet: ContractError| {
        let text = unmet.to_string();
        let (_, needs) = text.split_once(" needs ").expect("it says what is needed");
        needs.to_owned()
    };
    program.preferred().contract().bind(&given).map(drop).map_err(told)
}

const TILE: &str = "tile: 16x16x8, thread: 4x4";

#[test]
fn a_matrix_that_lies_the_other_way_needs_another_layout() {
    let neighbours = |line, name, apart, remedy| {
        Err(format!(
            "contiguous {line}s of `{name}`, but neighbours in a {line} are {apart} elements \
             apart. {remedy}"
        ))
    };
    let layouts = |other, one, two| {
        format!(
            "If it is {other}-major, use a kernel with `layout: {one}` or `layout: {two}`; \
             otherwise copy the elements"
        )
    };
    // Padding does not matter: the layout is reported first.
    for pad in [0, 4] {
        let (a_rows, a_cols) = ([(4, 12 + pad), (12, 1)], [(4, 1), (12, 4 + pad)]);
        let (b_rows, b_cols) = ([(12, 8 + pad), (8, 1)], [(12, 1), (8, 12 + pad)]);
        for pitched in ["", ", pitched"] {
            for layout in ["nn", "nt", "tn", "tt"] {
                let line = format!("{TILE}{pitched}, layout: {layout}");
                let told = |operand, lies| told(&line, (operand, lies), None);
                match &layout[..1] {
                    "n" => {
                        let remedy = layouts("column", "tn", "tt");
                        assert_eq!(told(A, a_cols), neighbours("row", "a", 4 + pad, remedy));
                    }
                    _ => {
                        let remedy = layouts("row", "nn", "nt");
                        assert_eq!(told(A, a_rows), neighbours("column", "a", 12 + pad, remedy));
                    }
                }
                match &layout[1..] {
                    "n" => {
                        let remedy = layouts("column", "nt", "tt");
                        assert_eq!(told(B, b_cols), neighbours("row", "b", 12 + pad, remedy));
                    }
                    _ => {
                        let remedy = layouts("row", "nn", "tn");
                        assert_eq!(told(B, b_rows), neighbours("column", "b", 8 + pad, remedy));
                    }
                }
                let copy = "Copy the elements to a row-major matrix".to_owned();
                let c = [(4, 1), (8, 4 + pad)];
                assert_eq!(told(C, c), neighbours("row", "c", 4 + pad, copy));
            }
        }
    }
}

/// Remedies depend on the family of a kernel, whatever its name is.
#[test]
fn a_typed_gemm_has_the_remedies_of_gemms() {
    let program = |line: &str| {
        let spec: SgemmSpec = line.parse().expect("a sound line");
        spec.plan().and_then(|plan| plan.program()).expect("a sound spec")
    };
    for (keys, elem) in [("", Elem::F32), ("a: f64, b: f64, c: f64, ", Elem::F64)] {
        for name in ["", ", name: reduce"] {
            let kernel = program(&format!("{keys}{TILE}{name}")).preferred().clone();
            let told = |axes: &[(u64, u64)]| {
                let axis = |(extent, stride)| ArrayAxis { extent, stride };
                let axes: Vec<_> = axes.iter().copied().map(axis).collect();
                let place = ArrayPlace::One(Region { address: 0, len: 1 << 20 });
                let a = BoundArray { name: "a", elem, place, axes: Some(&axes) };
                let extents = [(Extent::M, 4), (Extent::N, 8), (Extent::K, 12)];
                let arrays = [(A, a), (B, BoundArray { name: "b", elem, place, axes: None })];
                let given = Arguments { extents: &extents, arguments: &[], arrays: &arrays };
                kernel.contract().bind(&given).map(drop).expect_err("other axes").to_string()
            };
            let by_column = told(&[(4, 1), (12, 4)]);
            let remedy = "use a kernel with `layout: tn` or `layout: tt`; otherwise copy";
            assert!(by_column.contains(remedy), "{by_column}");
            let batch = told(&[(3, 48), (4, 12), (12, 1)]);
            assert!(batch.contains("Use a kernel with `batch: strided`"), "{batch}");
        }
    }
}

#[test]
fn padded_lines_need_a_pitched_kernel() {
    let packed = |lines, name, packed, apart| {
        Err(format!(
            "packed {lines} of `{name}` with a stride of {packed}, but the stride is {apart}. Add \
             `pitched` to the kernel, or use a matrix without padding"
        ))
    };
    for (layout, operand, lies, expected) in [
        ("nn", A, [(4, 16), (12, 1)], packed("rows", "a", 12, 16)),
        ("tn", A, [(4, 1), (12, 8)], packed("columns", "a", 4, 8)),
        ("nn", B, [(12, 12), (8, 1)], packed("rows", "b", 8, 12)),
        ("nt", B, [(12, 1), (8, 16)], packed("columns", "b", 12, 16)),
        ("tt", C, [(4, 12), (8, 1)], packed("rows", "c", 8, 12)),
    ] {
        for (batch, of) in [("", None), (", batch: strided", Some(192))] {
            let line = format!("{TILE}, layout: {layout}{batch}");
            assert_eq!(told(&line, (operand, lies), of), expected, "{line}");
            assert_eq!(told(&format!("{line}, pitched"), (operand, lies), of), Ok(()), "{line}");
        }
    }
}

/// Message of a kernel for a batch of 3 GEMMs of 4x8x12, in the kernel's layout. `lists` is true
/// for each of A, B and C that is a list.
fn told_of_form(line: &str, lists: [bool; 3]) -> Result<(), String> {
    let spec: SgemmSpec = line.parse().expect("a sound line");
    let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
    let axis = |(extent, stride)| ArrayAxis { extent, stride };
    let shapes = [
        (A, "a", (4, 12), spec.layout.transposes_a()),
        (B, "b", (12, 8), spec.layout.transposes_b()),
        (C, "c", (4, 8), false),
    ];
    let regions = [Region { address: 0, len: 1 << 20 }; 3];
    let axes = shapes.map(|(.., (rows, cols), by_column)| {
        let of_matrix = match by_column {
            true => [(rows, 1), (cols, rows)],
            false => [(rows, cols), (cols, 1)],
        };
        [(3, 96), of_matrix[0], of_matrix[1]].map(axis)
    });
    let arrays: Vec<_> = shapes
        .iter()
        .zip(lists)
        .zip(&axes)
        .map(|(((of, name, ..), is_list), axes)| {
            let (place, axes) = match is_list {
                true => (ArrayPlace::List(&regions), &axes[1..]),
                false => (ArrayPlace::One(regions[0]), &axes[..]),
            };
            (*of, BoundArray { name, elem: Elem::F32, place, axes: Some(axes) })
        })
        .collect();
    let extents = [(Extent::M, 4), (Extent::N, 8), (Extent::K, 12), (Extent::BATCH, 3)];
    let given = Arguments { extents: &extents, arguments: &[], arrays: &arrays };
    let told = |unmet: ContractError| unmet.to_string();
    program.preferred().contract().bind(&given).map(drop).map_err(told)
}

/// The form of an argument is reported before its strides, which belong to another form.
#[test]
fn batches_and_lists_need_their_kernels() {
    for keys in ["", ", pitched", ", layout: nt", ", layout: nt, pitched", ", layout: tt, pitched"]
    {
        let line = |batch: &str| format!("{TILE}{keys}{batch}");
        let needs = |batch: &str, lists, needed: String| {
            let told = told_of_form(&line(batch), lists).expect_err("another form");
            assert!(told.ends_with(&needed), "{keys}{batch}: {told}");
        };
        assert_eq!(told_of_form(&line(", batch: strided"), [false; 3]), Ok(()));
        assert_eq!(told_of_form(&line(", batch: pointers"), [true; 3]), Ok(()));
        let remedy = "Use a kernel with `batch: strided`, or pass one matrix";
        let needed = format!(" needs one matrix as `a`, but it is a batch. {remedy}");
        needs("", [false; 3], needed);
        let one = |name: &str| {
            format!(
                " needs one view as `{name}`, but it is a list of 3. Pass a view, or use a kernel \
                 with `batch: pointers`"
            )
        };
        needs("", [true; 3], one("a"));
        needs(", batch: strided", [true; 3], one("a"));
        needs(", batch: strided", [true, true, false], one("a"));
        needs(", batch: strided", [false, true, false], one("b"));
        let remedy = "Make a list of views, or use a kernel with `batch: strided`";
        let needed = format!(" needs a list of matrices as `b`, but it is one view. {remedy}");
        needs(", batch: pointers", [true, false, true], needed);
    }
}

/// A kernel without guards has no variant for such strides.
#[test]
fn distances_that_are_no_multiple_are_told_apart() {
    let multiple = |what, apart: u64, remedy| {
        let (fours, rest) = (apart / 4, apart % 4);
        Err(format!(
            "the stride between {what} to be a multiple of 4, but it is {apart} = {fours}·4 + \
             {rest}. {remedy}"
        ))
    };
    let place = "Use a stride that is a multiple of 4 elements";
    let line = "tile: 4x8x4, thread: 1x4, float4, bounds: aligned, pitched";
    for (keys, operand, lies, batch, expected) in [
        ("layout: nn", A, [(4, 14), (12, 1)], None, ("rows of `a`", 14, "Pad the rows")),
        ("layout: tn", A, [(4, 1), (12, 5)], None, ("columns of `a`", 5, "Pad the columns")),
        ("layout: nt", B, [(12, 1), (8, 15)], None, ("columns of `b`", 15, "Pad the columns")),
        ("batch: strided", A, [(4, 12), (12, 1)], Some(50), ("matrices of `a`", 50, place)),
        ("batch: strided", C, [(4, 8), (8, 1)], Some(33), ("matrices of `c`", 33, place)),
    ] {
        let (what, apart, remedy) = expected;
        let remedy = match batch {
            None => format!("{remedy}, or start from a packed matrix"),
            Some(_) => remedy.to_owned(),
        };
        let line = format!("{line}, {keys}");
        assert_eq!(told(&line, (operand, lies), batch), multiple(what, apart, remedy), "{line}");
    }
}

/// Message for a launch with a tensor map of an array of `rows` rows and 64 columns, or else the
/// shapes of the map.
fn mapped(address: u64, rows: u64, pitch: u64, blocks: u64) -> Result<Vec<MappedArray>, String> {
    let mut b = KernelBuilder::new("boxes");
    let map = TensorMap { tile: vec![8, 64].into(), swizzle: TensorSwizzle::Bytes128 };
    let from = b.tensor_map("from", Elem::Bf16, A, map);
    let m = Expr::from(b.extent("m", Ty::U64, Extent::M));
    let stride = Source::Stride { operand: A, dim: 0 };
    let pitch_of = Expr::from(b.scalar("pitch", Ty::U64, stride));
    b.shape(from, [m, 64.into()], [pitch_of, 1.into()]);
    let grid = [Expr::U64(blocks), Expr::U64(1), Expr::U64(1)];
    b.geometry(Geometry { block: (32, 1), grid, blocks_per_sm: None });
    let kernel = b.finish().expect("a sound kernel");
    let place = ArrayPlace::One(Region { address, len: u64::MAX });
    let axes = None;
    let array = BoundArray { name: "a", elem: Elem::Bf16, place, axes };
    let call = kernel.contract().bind_in_order(&[array], &[rows, pitch]);
    call.map(|call| call.maps).map_err(|unmet| unmet.to_string())
}

#[test]
fn invalid_tensor_maps_are_reported_before_the_driver_call() {
    let (position, extents, strides) = (0, smallvec![100, 64], smallvec![72, 1]);
    let expected = MappedArray { position, extents, strides };
    assert_eq!(mapped(16, 100, 72, 1), Ok(vec![expected]));
    let says = |outcome: Result<Vec<MappedArray>, String>, what: &str| {
        let told = outcome.expect_err(what);
        assert!(told.contains(what), "`{told}` does not say `{what}`");
    };
    says(mapped(8, 100, 72, 1), "`a` aligned to 16 bytes, but it starts 8 bytes after");
    says(mapped(0, 100, 68, 1), "the stride between rows of `a` to be a multiple of 8");
    says(mapped(0, 0, 72, 1), "the extent of `a` along dimension 0 to be at least 1");
    says(mapped(0, (1 << 32) + 1, 72, 1), "along dimension 0 to be at most 4294967296");
    says(mapped(0, 100, 1 << 39, 1), "the stride between rows of `a` to be at most 549755813887");
    // The driver accepts no stride of 0, with which rows would repeat.
    says(mapped(0, 100, 0, 1), "the stride between rows of `a` to be at least 8, but it is 0");
    let single = MappedArray { position, extents: smallvec![1, 64], strides: smallvec![0, 1] };
    assert_eq!(mapped(0, 1, 0, 1), Ok(vec![single]));
    // An empty launch has no requirements.
    assert_eq!(mapped(8, 0, 72, 0), Ok(Vec::new()));
}
