//! Parts and transposes of matrices. A download returns the elements of the view, and writes change
//! only these elements.

use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, ReduceKernel, ReduceSpec, SgemmKernel};
use libtest_mimic::Trial;
use proptest::prelude::*;
use std::ops::Range;

/// Expected elements of a view, row by row.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    rows: usize,
    cols: usize,
    at: Vec<usize>,
}

impl Shown {
    fn new(rows: usize, cols: usize, at: impl Fn(usize, usize) -> usize) -> Self {
        let places = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
        Self { rows, cols, at: places.map(|(row, col)| at(row, col)).collect() }
    }

    fn of(&self, row: usize, col: usize) -> usize {
        self.at[row * self.cols + col]
    }

    fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        let at = |row, col| self.of(rows.start + row, cols.start + col);
        Self::new(rows.len(), cols.len(), at)
    }

    fn t(&self) -> Self {
        Self::new(self.cols, self.rows, |row, col| self.of(col, row))
    }
}

/// Step from a view to a part of it or to its transpose.
#[derive(Clone, Copy, Debug)]
enum Step {
    Transpose,
    /// Starts and ends of rows and columns, as shares of the extents.
    Part([prop::sample::Index; 4]),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let part = any::<[prop::sample::Index; 4]>().prop_map(Step::Part);
    prop::collection::vec(prop_oneof![1 => Just(Step::Transpose), 2 => part], 0..5)
}

/// Range from two random numbers. It is rarely empty.
fn range(len: usize, from: prop::sample::Index, to: prop::sample::Index) -> Range<usize> {
    let (from, to) = (from.index(len / 2 + 1), len - to.index(len / 2 + 1));
    from.min(to)..from.max(to)
}

/// Rows, columns and row stride of a matrix, and the number of elements after its last one.
fn matrix() -> impl Strategy<Value = (usize, usize, usize, usize)> {
    (0..9usize, 0..9usize, 0..5usize, 0..4usize)
        .prop_map(|(rows, cols, padding, after)| (rows, cols, cols + padding, after))
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| i as f32).collect()
}

/// Expected elements of a view, its download, and the result of a reduction that writes to it.
type Walked = (Shown, Vec<f32>, Result<(), Error>);

/// Applies the steps to a view, writes a reduction to the final view, and downloads the view.
fn walk(
    device: &Device,
    view: &mut MatrixMut<'_>,
    shown: Shown,
    steps: &[Step],
) -> Result<Walked, Error> {
    let Some((step, rest)) = steps.split_first() else {
        let before = device.download(view)?;
        let sum = ReduceKernel::new(ReduceSpec::default())?;
        let ones = device.upload(&[1.0; 3])?;
        let written = sum.launch(device, &ones, view).map(drop);
        return Ok((shown, before, written));
    };
    match step {
        Step::Transpose => walk(device, &mut view.t(), shown.t(), rest),
        Step::Part([top, bottom, left, right]) => {
            let (rows, cols) = (range(shown.rows, *top, *bottom), range(shown.cols, *left, *right));
            let shown = shown.part(rows.clone(), cols.clone());
            walk(device, &mut view.part(rows, cols)?, shown, rest)
        }
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(500))]

    fn a_view_is_downloaded_row_by_row((rows, cols, pitch, after) in matrix(), steps in steps()) {
        let device = Device::simulator();
        let values = numbers(rows * pitch + after);
        let buffer = device.upload(&values).expect("room");
        let mut view = MatrixRef::pitched(&buffer, rows, cols, pitch).expect("room");
        let mut shown = Shown::new(rows, cols, |row, col| row * pitch + col);
        for step in steps {
            (view, shown) = match step {
                Step::Transpose => (view.t(), shown.t()),
                Step::Part([top, bottom, left, right]) => {
                    let (rows, cols) =
                        (range(shown.rows, top, bottom), range(shown.cols, left, right));
                    (view.part(rows.clone(), cols.clone()).expect("inside"), shown.part(rows, cols))
                }
            };
        }
        prop_assert_eq!((view.rows(), view.cols()), (shown.rows, shown.cols));
        let expected: Vec<f32> = shown.at.iter().map(|at| values[*at]).collect();
        prop_assert_eq!(device.download(&view).expect("ours"), expected.clone());
        // A reduction reads the same elements, or reports that they are not contiguous.
        let sum = ReduceKernel::new(ReduceSpec::default()).expect("sound");
        let mut to = device.alloc(1).expect("room");
        match sum.launch(&device, &view, &mut to) {
            Ok(_) => {
                let total: f32 = expected.iter().sum();
                prop_assert_eq!(device.download(&to).expect("ours"), [total]);
            }
            Err(error) => {
                let apart = expected.len() > 1 && shown.at.windows(2).any(|at| at[1] != at[0] + 1);
                prop_assert!(apart && matches!(error, Error::Padded { .. }), "{}", error);
            }
        }
    }

    fn writes_to_a_view_stay_inside(
        (rows, cols, pitch, after) in matrix(),
        steps in steps(),
    ) {
        let device = Device::simulator();
        let values = numbers(rows * pitch + after);
        let mut buffer = device.upload(&values).expect("room");
        let mut view = MatrixMut::pitched(&mut buffer, rows, cols, pitch).expect("room");
        let shown = Shown::new(rows, cols, |row, col| row * pitch + col);
        let (shown, before, written) = walk(&device, &mut view, shown, &steps).expect("inside");
        let expected: Vec<f32> = shown.at.iter().map(|at| values[*at]).collect();
        prop_assert_eq!(before, expected);
        let mut expected = values;
        match shown.at.first() {
            Some(first) => expected[*first] = 3.0,
            None => {
                let refused = matches!(written, Err(Error::WrongExtent { has: 0, .. }));
                prop_assert!(refused, "{:?}", written);
            }
        }
        prop_assert_eq!(device.download(&buffer).expect("ours"), expected);
    }
}

fn a_product_is_written_to_its_part_alone() {
    let device = Device::simulator();
    let mut matrix = device.upload_matrix(&numbers(64), 8, 8).expect("room");
    let ones = device.upload(&[1.0; 16]).expect("room");
    let ones = MatrixRef::new(&ones, 4, 4).expect("room");
    let spec = "tile: 16x16x8, thread: 4x4, float4, pitched".parse().expect("sound");
    let kernel = SgemmKernel::new(spec).expect("sound");
    {
        let mut whole = matrix.view_mut();
        let mut part = whole.part(4..8, 3..7).expect("inside");
        kernel.call(&device).launch(&ones, &ones, &mut part).expect("sound");
        assert_eq!(device.download(&part).expect("ours"), [4.0; 16]);
    }
    let inside = |at: usize| (4..8).contains(&(at / 8)) && (3..7).contains(&(at % 8));
    let expected: Vec<f32> = (0..64).map(|at| if inside(at) { 4.0 } else { at as f32 }).collect();
    assert_eq!(device.download(&matrix).expect("ours"), expected);
}

pub fn trials() -> Vec<Trial> {
    simulated![
        a_view_is_downloaded_row_by_row,
        writes_to_a_view_stay_inside,
        a_product_is_written_to_its_part_alone,
    ]
}
