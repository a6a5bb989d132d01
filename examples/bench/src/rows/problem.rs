//! Reduction problem: an operation on a whole array, on its rows or columns, or on its segments.

use super::segments::Lengths;
use clap::ValueEnum;
use gemm_runtime::error::SpecErrors;
use gemm_runtime::spec::{DataType, Over, ReduceSpec};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fold {
    /// Sum
    Sum,
    /// Largest element
    Max,
    /// Index of the largest element
    Argmax,
    /// Square root of the sum of squares
    Norm,
    /// Dot product of two arrays
    Dot,
    /// Mean and variance
    #[value(name = "mean_var")]
    MeanVar,
    /// Logarithm of the sum of exponentials
    Logsumexp,
    /// Compensated sum, which also adds up its rounding errors
    Compensated,
    /// The 64 largest elements and their indices
    Topk,
}

impl Fold {
    /// Operations on rows and columns.
    pub const OF_ROWS: [Self; 7] =
        [Self::Sum, Self::Max, Self::Argmax, Self::Norm, Self::Dot, Self::MeanVar, Self::Logsumexp];

    /// Number of elements of each result.
    pub fn kept(self) -> usize {
        if self == Self::Topk { 64 } else { 1 }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Argmax => "argmax",
            Self::Norm => "norm",
            Self::Dot => "dot",
            Self::MeanVar => "mean_var",
            Self::Logsumexp => "logsumexp",
            Self::Compensated => "compensated",
            Self::Topk => "topk",
        }
    }

    /// Spec keys of the operation.
    fn keys(self) -> &'static str {
        match self {
            Self::Sum => "op: sum",
            Self::Max => "op: max",
            Self::Argmax => "op: argmax",
            Self::Norm => "map: |x| x * x, finish: |s| sqrt(s)",
            Self::Dot => "map: |x, y| x * y",
            Self::MeanVar => "op: mean_var",
            Self::Logsumexp => "op: logsumexp",
            Self::Compensated => "op: sum, compensated",
            Self::Topk => "op: argmax, with_value, topk: 64",
        }
    }
}

/// Table that a problem belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Whole arrays
    Whole,
    /// Tensors along an axis
    Rows,
    /// Segments of an array
    Segments,
}

impl Kind {
    /// All tables in the order of the output.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Rows, Self::Segments];

    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Rows => "rows",
            Self::Segments => "segments",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    Whole,
    /// Reduction over an axis of the shape.
    Axis(usize),
    /// Reduction over segments with this distribution of lengths, and this mean length.
    Segments(Lengths, usize),
}

/// Reduction of an array. The elements are not part of the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionProblem {
    /// Extents of the array, the outermost first.
    pub shape: Vec<usize>,
    pub along: Along,
    pub fold: Fold,
    pub element: DataType,
    /// Spec keys of the kernel, instead of the shipped table's choice.
    pub how: Option<String>,
}

impl ReductionProblem {
    /// Returns the table that the problem belongs to.
    pub fn kind(&self) -> Kind {
        match self.along {
            Along::Whole => Kind::Whole,
            Along::Axis(_) => Kind::Rows,
            Along::Segments(..) => Kind::Segments,
        }
    }

    /// Returns the number of elements of one input.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the array's extents as (outer, length, inner): `length` elements form one result.
    /// For segments the length is the whole array.
    pub fn size(&self) -> (usize, usize, usize) {
        match self.along {
            Along::Axis(axis) => {
                let (outer, rest) = self.shape.split_at(axis.min(self.shape.len()));
                let (length, inner) =
                    rest.split_first().map_or((1, &[][..]), |(n, rest)| (*n, rest));
                (outer.iter().product(), length, inner.iter().product())
            }
            Along::Whole => (1, self.len(), 1),
            Along::Segments(_, average) => {
                (self.len().div_ceil(average.max(1)).max(1), self.len(), 1)
            }
        }
    }

    /// Returns the value of the DSL's key `over`: the elements that form one result.
    pub fn over(&self) -> Over {
        match (self.along, self.size()) {
            (Along::Whole, _) => Over::All,
            (Along::Segments(..), _) => Over::Segments,
            (Along::Axis(_), (_, _, 1)) => Over::Rows,
            (Along::Axis(_), (1, _, _)) => Over::Columns,
            (Along::Axis(_), _) => Over::Middle,
        }
    }

    /// Returns the spec, including the keys of [`how`](Self::how).
    ///
    /// # Errors
    /// Returns the faults of a spec that is not valid DSL.
    pub fn spec(&self) -> Result<ReduceSpec, SpecErrors> {
        let (keys, element, over) = (self.fold.keys(), self.element, self.over());
        let how = self.how.iter().fold(String::new(), |_, how| format!(", {how}"));
        format!("{keys}, type: {element}, over: {over}{how}").parse()
    }

    /// Returns the number of input arrays.
    pub fn inputs(&self) -> usize {
        if self.fold == Fold::Dot { 2 } else { 1 }
    }

    /// Returns the number of results of each output, given the number of segments.
    pub fn results(&self, segments: Option<usize>) -> usize {
        let (outer, _, inner) = self.size();
        segments.unwrap_or(outer * inner) * self.fold.kept()
    }

    /// Returns the bytes of all inputs.
    pub fn bytes_read(&self) -> u64 {
        self.len() as u64 * self.inputs() as u64 * u64::from(self.element.elem().size())
    }

    /// Formats the shape in the notation of `--shape`: `2^20x128`.
    pub fn shape_text(&self) -> String {
        shape_text(&self.shape)
    }

    /// Formats the reduced direction: the axis, `all`, or the lengths of the segments.
    pub fn along_text(&self) -> String {
        match self.along {
            Along::Whole => "all".to_owned(),
            Along::Axis(axis) => axis.to_string(),
            Along::Segments(lengths, average) => format!("{} of {average}", lengths.name()),
        }
    }
}

/// Writes `sum of 2^20x128 along axis 1`.
impl fmt::Display for ReductionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fold, shape, along) = (self.fold.name(), self.shape_text(), self.along_text());
        match self.along {
            Along::Whole => write!(f, "{fold} of {shape}")?,
            Along::Axis(_) => write!(f, "{fold} of {shape} along axis {along}")?,
            Along::Segments(..) => write!(f, "{fold} of {shape} by segments, {along}")?,
        }
        if self.element == DataType::F32 { Ok(()) } else { write!(f, ", {}", self.element) }
    }
}

/// Formats extents. Powers of two of at least 2^13 are written as powers: `2^20x128`.
pub fn shape_text(shape: &[usize]) -> String {
    let extent = |&n: &usize| {
        let power = n.is_power_of_two() && n >= 1 << 13;
        if power { format!("2^{}", n.ilog2()) } else { n.to_string() }
    };
    shape.iter().map(extent).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(shape: &[usize], axis: usize) -> ReductionProblem {
        let (shape, along) = (shape.to_vec(), Along::Axis(axis));
        ReductionProblem { shape, along, fold: Fold::Sum, element: DataType::F32, how: None }
    }

    #[test]
    fn an_axis_is_seen_in_three_dimensions() {
        for (shape, axis, size, over) in [
            (&[3, 4, 5][..], 0, (1, 3, 20), Over::Columns),
            (&[3, 4, 5], 1, (3, 4, 5), Over::Middle),
            (&[3, 4, 5], 2, (12, 5, 1), Over::Rows),
            (&[7, 6], 0, (1, 7, 6), Over::Columns),
            (&[7, 6], 1, (7, 6, 1), Over::Rows),
        ] {
            let problem = along(shape, axis);
            assert_eq!((problem.size(), problem.over()), (size, over), "{problem}");
            let (outer, _, inner) = size;
            assert_eq!(problem.results(None), outer * inner);
        }
    }

    #[test]
    fn every_fold_is_a_line() {
        for fold in Fold::value_variants() {
            let problem = ReductionProblem { fold: *fold, ..along(&[4, 5], 1) };
            let spec = problem.spec().expect("a line");
            assert_eq!(spec.inputs().len(), problem.inputs());
            spec.plan().expect("a sound line");
            let name = fold.to_possible_value().expect("a name");
            assert_eq!(name.get_name(), fold.name());
        }
    }

    #[test]
    fn shapes_are_short() {
        assert_eq!(along(&[1 << 20, 128], 0).to_string(), "sum of 2^20x128 along axis 0");
        assert_eq!(shape_text(&[128, 4096, 4095]), "128x4096x4095");
    }
}
