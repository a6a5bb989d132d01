//! No launch accesses a word outside of its views.
//!
//! Each operand is a view inside an allocation of NaN. The view ends with the last element of the
//! matrix, or a few elements later. The matrix may also be the last rows of a larger view. The
//! simulator knows only the view, so that an access outside of it is a fault. The test detects a
//! NaN in a result, and a NaN that was overwritten.

use gemm_dsl::spec::{Along, Bounds, ReduceSpec, SgemmSpec};
use gemm_oracle::beside::plain;
use gemm_oracle::product::Size;
use gemm_runtime::{
    Buffer, ByName, Device, Error, LaunchReport, MatrixMut, MatrixRef, ReduceKernel, Sgemm, Variant,
};
use gemm_tests::product::{Problem, Stored, accepted, accepts};
use gemm_tests::{arbitrary, operands, reduction};
use libtest_mimic::Trial;
use proptest::prelude::*;
use std::ops::Range;

/// Bits of a NaN that no arithmetic produces.
const POISON: u32 = 0x7fc0_dead;

/// Placement of a matrix in its allocation.
#[derive(Clone, Copy, Debug, Default)]
struct Lies {
    /// Elements before the view.
    before: usize,
    /// Rows of the view before the first row of the matrix.
    above: usize,
    /// Elements between two rows.
    padding: usize,
    /// Elements of the view after the last element of the matrix.
    after: usize,
}

impl Lies {
    fn pitch(self, cols: usize) -> usize {
        cols + self.padding
    }

    /// Index of the first element of the matrix in the allocation.
    fn start(self, cols: usize) -> usize {
        self.before + self.above * self.pitch(cols)
    }

    /// Elements of the view, as indices into the allocation.
    fn range(self, rows: usize, cols: usize) -> Range<usize> {
        let rows = self.above + rows;
        let needed = if rows == 0 || cols == 0 { 0 } else { (rows - 1) * self.pitch(cols) + cols };
        self.before..self.before + needed + self.after
    }

    /// Allocation of poison that contains the matrix.
    fn among_poison(self, values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
        let mut all = vec![f32::from_bits(POISON); self.range(rows, cols).end + 8];
        for (row, values) in values.chunks_exact(cols.max(1)).enumerate() {
            all[self.start(cols) + row * self.pitch(cols)..][..cols].copy_from_slice(values);
        }
        all
    }
}

/// Random placements of three matrices with these numbers of columns. In half of the cases, all
/// three placements permit vector accesses.
fn lies(cols: [usize; 3]) -> impl Strategy<Value = [Lies; 3]> {
    let few = || prop_oneof![3 => Just(0usize), 1 => 0..4usize];
    let one = || (0..9usize, few(), 0..9usize, few());
    (any::<bool>(), [one(), one(), one()]).prop_map(move |(aligned, all)| {
        let mut cols = cols.into_iter();
        all.map(|(before, above, padding, after)| {
            let cols = cols.next().unwrap_or(0);
            if !aligned {
                return Lies { before, above, padding, after };
            }
            let padding = cols.next_multiple_of(4) - cols + padding / 4 * 4;
            Lies { before: before / 4 * 4, above, padding, after }
        })
    })
}

/// Random GEMM with a size and placements of its operands. A kernel without guards may have to
/// refuse the size.
fn launches() -> impl Strategy<Value = (SgemmSpec, Size, [Lies; 3])> {
    let any_size = proptest::bool::weighted(0.4);
    (arbitrary::sgemm(128), size(), any_size).prop_flat_map(|(spec, size, any_size)| {
        let size = if any_size { size } else { accepted(&spec, size) };
        let pitched = spec.pitched;
        let a = if spec.layout.transposes_a() { size.m } else { size.k };
        let b = if spec.layout.transposes_b() { size.k } else { size.n };
        let lies = lies([a, b, size.n]).prop_map(move |lies| {
            if pitched { lies } else { lies.map(|l| Lies { padding: 0, ..l }) }
        });
        (Just(spec), Just(size), lies)
    })
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// C after a launch, and the report of the launch.
type Multiplied = Result<(Vec<f32>, LaunchReport), Error>;

/// Launches a GEMM on views with these placements.
///
/// # Errors
/// Returns an error of the runtime as text, or a description of wrong memory contents.
fn multiply(spec: &SgemmSpec, problem: &Problem, lies: [Lies; 3]) -> Result<Multiplied, String> {
    let multiplied = launch(spec, problem, lies)?;
    if let Ok((c, _)) = &multiplied {
        let sums = match plain(spec) {
            Some(plain) => match launch(&plain, problem, lies)? {
                Ok((sums, _)) => sums,
                // With alpha = 0, operands that the launch would otherwise refuse are not read.
                Err(_) if problem.beside(spec).skips_terms() => problem.ascending(&plain),
                Err(error) => return Err(error.to_string()),
            },
            None => c.clone(),
        };
        problem.check_stored(spec, &sums, c)?;
    }
    Ok(multiplied)
}

fn launch(
    spec: &SgemmSpec,
    problem: &Problem,
    [in_a, in_b, in_c]: [Lies; 3],
) -> Result<Multiplied, String> {
    let text = |error: Error| error.to_string();
    let device = Device::simulator();
    let Size { m, n, .. } = problem.size;
    let [a_lines, b_lines] = problem.stored_inputs(spec.layout);
    let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(text)?;
    let beside = problem.beside(spec);
    let c_before = beside.c_or(f32::from_bits(POISON), problem.size);
    let before = [
        in_a.among_poison(&a_lines.values, a_lines.lines, a_lines.line),
        in_b.among_poison(&b_lines.values, b_lines.lines, b_lines.line),
        in_c.among_poison(&c_before, m, n),
    ];
    // Matrices that the epilogue reads have the placement of C.
    let mut memory = Vec::new();
    for (operand, values) in &beside.operands {
        let (lies, rows, cols) = match operand.along {
            Along::Mn => (in_c, m, n),
            _ => (
                Lies { before: in_c.before, after: in_c.after, ..Lies::default() },
                1,
                values.len(),
            ),
        };
        let all = device.upload(&lies.among_poison(values, rows, cols)).map_err(text)?;
        memory.push((all, lies.range(rows, cols)));
    }
    let slices = memory.iter().map(|(all, range)| all.slice(range.clone()));
    let slices = slices.collect::<Result<Vec<_>, Error>>().map_err(text)?;
    let mut matrices = Vec::new();
    for ((operand, _), slice) in beside.operands.iter().zip(&slices) {
        matrices.push(match operand.along {
            Along::Mn => {
                let rows = in_c.above + m;
                let whole = MatrixRef::pitched(slice, rows, n, in_c.pitch(n)).map_err(text)?;
                Some(whole.part(in_c.above..rows, 0..n).map_err(text)?)
            }
            _ => None,
        });
    }
    let [a_memory, b_memory, mut c_memory] = before.each_ref().map(|all| device.upload(all));
    let (a_memory, b_memory) = (a_memory.map_err(text)?, b_memory.map_err(text)?);
    let c_memory = c_memory.as_mut().map_err(|error| error.to_string())?;

    let view = |memory, lies: Lies, rows, cols| {
        Buffer::slice(memory, lies.range(rows, cols)).map_err(text)
    };
    let a = view(&a_memory, in_a, a_lines.lines, a_lines.line)?;
    let b = view(&b_memory, in_b, b_lines.lines, b_lines.line)?;
    let mut c = c_memory.slice_mut(in_c.range(m, n)).map_err(text)?;
    let launched = {
        let lines = |memory, lies: Lies, stored: &Stored| {
            let (rows, cols) = (lies.above + stored.lines, stored.line);
            let whole = MatrixRef::pitched(memory, rows, cols, lies.pitch(cols))?;
            Ok(stored.view(whole.part(lies.above..rows, 0..cols)?))
        };
        let (a, b) = (lines(&a, in_a, &a_lines), lines(&b, in_b, &b_lines));
        let (a, b) = (a.map_err(text)?, b.map_err(text)?);
        let mut c = MatrixMut::pitched(&mut c, in_c.above + m, n, in_c.pitch(n)).map_err(text)?;
        let mut c = c.part(in_c.above..in_c.above + m, 0..n).map_err(text)?;
        let given = (&slices[..], &matrices[..]);
        operands::launch((&kernel, &device), &beside, given, (&a, &b), &mut c)
    };

    let [a, b, c] = [&a_memory, &b_memory, &*c_memory].map(|memory| device.download(memory));
    let (a, b, c) = (a.map_err(text)?, b.map_err(text)?, c.map_err(text)?);
    if !same_bits(&a, &before[0]) || !same_bits(&b, &before[1]) {
        return Err("an input was written".to_owned());
    }
    let launched = match launched {
        Ok(launched) => launched,
        Err(error) if same_bits(&c, &before[2]) => return Ok(Err(error)),
        Err(_) => return Err("a refused launch wrote".to_owned()),
    };
    let mut product = Vec::with_capacity(m * n);
    for (at, value) in c.iter().enumerate() {
        let pitch = in_c.pitch(n).max(1);
        let inside = at.checked_sub(in_c.start(n)).map(|at| (at / pitch, at % pitch));
        if inside.is_some_and(|(row, col)| row < m && col < n) {
            product.push(*value);
        } else if value.to_bits() != POISON {
            return Err(format!("{value} was written outside of C, to element {at}"));
        }
    }
    Ok(Ok((product, launched)))
}

/// The memory of A may end with its last element. The span of a view does not include the padding
/// of the last row.
fn the_last_row_may_end_with_its_last_element() {
    let spec: SgemmSpec =
        "tile: 64x64x8, thread: 4x4, float4, pitched".parse().expect("a sound spec");
    let problem = Problem::new(Size::new(2, 5, 5), 1);
    let eight = |above, after| Lies { before: 0, above, padding: 3, after };
    assert_eq!(eight(0, 0).range(2, 5), 0..13);
    // The span of a part at the end of a matrix is that of the same matrix alone.
    for above in [0, 1, 2] {
        let variant = |after| {
            let outcome =
                multiply(&spec, &problem, [eight(above, after), eight(0, 3), eight(0, 0)]);
            outcome.expect("sound").expect("a launch").1.variant()
        };
        // The last vector of A includes three elements after the end of A.
        let variants = [0, 1, 2, 3, 4].map(variant);
        let scalar = Variant::Scalar;
        assert_eq!(variants, [scalar, scalar, scalar, Variant::Vector, Variant::Vector]);
    }
}

fn size() -> impl Strategy<Value = Size> {
    let extent = || {
        prop_oneof![
            1 => Just(0usize),
            2 => Just(1usize),
            3 => prop::sample::select(vec![2, 3, 5, 7, 11, 13, 31, 37, 61, 67]),
            3 => prop::sample::select(vec![4, 8, 12, 16, 20, 31, 32, 33, 63, 64, 65]),
            2 => 0..70usize,
        ]
    };
    (extent(), extent(), extent()).prop_map(|(m, n, k)| Size::new(m, n, k))
}

proptest! {
    #![proptest_config(gemm_cases::cases(600))]

    fn no_product_leaves_its_views(
        (spec, size, lies) in launches(),
        seed: u64,
    ) {
        let problem = Problem::new(size, seed);
        let outcome = multiply(&spec, &problem, lies);
        let outcome = outcome.map_err(|e| {
            TestCaseError::fail(format!("`{spec}` at {size}, {lies:?}: {e}"))
        })?;
        let refused = match outcome {
            Ok(_) => false,
            Err(Error::Unmet(_)) => true,
            Err(error) => {
                return Err(TestCaseError::fail(format!("`{spec}` at {size}, {lies:?}: {error}")));
            }
        };
        // With alpha = 0, A·B is not computed and K may have any value.
        let skips = problem.beside(&spec).skips_terms();
        let accepts = accepts(&spec, Size { k: if skips { 0 } else { size.k }, ..size });
        // Kernels without guards have no variant for unaligned operands.
        let may_refuse = spec.bounds == Bounds::Aligned && spec.float4;
        prop_assert!(
            refused != accepts || (refused && may_refuse),
            "`{spec}` at {size}, {lies:?}: it was {}",
            if refused { "refused" } else { "accepted" },
        );
    }

    fn no_reduction_leaves_its_views(
        spec in arbitrary::classic(),
        len in prop_oneof![0..70usize, 0..3000usize],
        before in 0..8usize,
        at in 0..4usize,
        seed: u64,
    ) {
        let elements = reduction::elements(spec.op, seed, len);
        let (value, around) = reduce(&spec, &elements, before, at);
        prop_assert!(around, "`{spec}` wrote outside of its output");
        reduction::check(&spec, &elements, value).map_err(TestCaseError::fail)?;
    }
}

/// Returns the result of a reduction, and true if the input and the memory around input and result
/// are unchanged.
fn reduce(spec: &ReduceSpec, elements: &[f32], before: usize, at: usize) -> (f32, bool) {
    let device = Device::simulator();
    let kernel = ReduceKernel::new(spec.clone()).expect("a sound spec");
    let lies = Lies { before, ..Lies::default() };
    let memory = lies.among_poison(elements, 1, elements.len());
    let input = device.upload(&memory).expect("room");
    let mut output = device.upload(&[f32::from_bits(POISON); 5]).expect("room");
    let view = input.slice(lies.range(1, elements.len())).expect("inside");
    let mut value = output.slice_mut(at..at + 1).expect("inside");
    kernel.launch(&device, &view, &mut value).unwrap_or_else(|error| panic!("`{spec}`: {error}"));
    let output = device.download(&output).expect("ours");
    let beside = output.iter().enumerate().filter(|(i, _)| *i != at);
    let untouched = beside.into_iter().all(|(_, value)| value.to_bits() == POISON)
        && same_bits(&device.download(&input).expect("ours"), &memory);
    (output[at], untouched)
}

pub fn trials() -> Vec<Trial> {
    simulated![
        the_last_row_may_end_with_its_last_element,
        no_product_leaves_its_views,
        no_reduction_leaves_its_views,
    ]
}
