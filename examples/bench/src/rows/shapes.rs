//! Problems of each table, for a GPU, and smaller problems for the simulator.

use super::check::ONE_BY_ONE;
use super::problem::{Along, Fold, Kind, ReductionProblem};
use super::segments::Lengths;
use gemm_runtime::spec::DataType;

/// Operations on whole arrays other than the sum.
const FOLDS: [Fold; 7] = [
    Fold::Max,
    Fold::Dot,
    Fold::Norm,
    Fold::Argmax,
    Fold::MeanVar,
    Fold::Logsumexp,
    Fold::Compensated,
];

/// Element types of sums other than `f32`.
const ELEMENTS: [DataType; 5] =
    [DataType::F16, DataType::Bf16, DataType::I8, DataType::I32, DataType::F64];

/// Sizes of a device's problems.
struct Sizes {
    /// Lengths of summed arrays, as exponents of two.
    sums: &'static [u32],
    /// Lengths for the other operations, as exponents of two.
    folds: &'static [u32],
    /// Length for the other element types, as an exponent of two.
    elements: u32,
    /// Tensors, each with the axes that are reduced.
    tensors: &'static [(&'static [usize], &'static [usize])],
    /// Matrices from whose rows 64 elements are selected, and the length of such an array.
    selections: (&'static [[usize; 2]], usize),
    /// Number of elements of segmented arrays.
    segments: usize,
    /// Mean numbers of elements in a segment.
    averages: &'static [usize],
}

const GPU: Sizes = Sizes {
    sums: &[10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30],
    folds: &[12, 16, 20, 24, 28],
    elements: 28,
    tensors: &[
        (&[128, 4096, 4095], &[1, 2]),
        (&[1 << 20, 128], &[0, 1]),
        (&[128, 1 << 20], &[0, 1]),
        (&[4096, 4096], &[0, 1]),
        (&[65536, 1000], &[1]),
        (&[1 << 24, 8], &[1]),
        (&[8, 1 << 24], &[0]),
        (&[1024, 1024], &[0, 1]),
        (&[64, 1024], &[0, 1]),
    ],
    selections: (&[[8192, 4096], [1024, 1 << 16], [64, 1 << 20]], 1 << 24),
    segments: 1 << 26,
    averages: &[8, 64, 1024, 32768],
};

const SIMULATOR: Sizes = Sizes {
    sums: &[10, 12, 14, 16],
    folds: &[12, 16],
    elements: 14,
    tensors: &[
        (&[4, 64, 33], &[1, 2]),
        (&[512, 128], &[0, 1]),
        (&[8, 33000], &[0, 1]),
        (&[64, 64], &[0, 1]),
        (&[100, 1000], &[1]),
        (&[4096, 8], &[1]),
        (&[8, 4096], &[0]),
    ],
    selections: (&[[20, 300], [3, 5000]], 1 << 14),
    segments: 1 << 14,
    averages: &[8, 64, 1024],
};

/// Returns the problems of a table. Problems of the same shape and element type are adjacent.
pub fn problems(kind: Kind, simulator: bool) -> Vec<ReductionProblem> {
    let sizes = if simulator { &SIMULATOR } else { &GPU };
    let problem = |shape: &[usize], along, fold, element| ReductionProblem {
        shape: shape.to_vec(),
        along,
        fold,
        element,
        how: None,
    };
    let mut all = Vec::new();
    match kind {
        Kind::Whole => {
            for power in sizes.sums {
                let shape = [1 << power];
                all.push(problem(&shape, Along::Whole, Fold::Sum, DataType::F32));
                for fold in FOLDS.iter().filter(|_| sizes.folds.contains(power)) {
                    let heavy = matches!(fold, Fold::MeanVar | Fold::Logsumexp);
                    if !heavy || shape[0] <= ONE_BY_ONE {
                        all.push(problem(&shape, Along::Whole, *fold, DataType::F32));
                    }
                }
            }
            all.push(problem(&[sizes.selections.1], Along::Whole, Fold::Topk, DataType::F32));
            for element in ELEMENTS {
                all.push(problem(&[1 << sizes.elements], Along::Whole, Fold::Sum, element));
            }
        }
        Kind::Rows => {
            for (shape, axes) in sizes.tensors {
                for &axis in *axes {
                    for fold in Fold::OF_ROWS {
                        all.push(problem(shape, Along::Axis(axis), fold, DataType::F32));
                    }
                }
            }
            for shape in sizes.selections.0 {
                all.push(problem(shape, Along::Axis(1), Fold::Topk, DataType::F32));
            }
        }
        Kind::Segments => {
            for lengths in Lengths::ALL {
                for &average in sizes.averages {
                    let along = Along::Segments(lengths, average);
                    all.push(problem(&[sizes.segments], along, Fold::Sum, DataType::F32));
                }
            }
        }
    }
    all
}
