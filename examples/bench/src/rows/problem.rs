//! What is measured: a fold of an array, of its rows or columns, or of its segments.

use super::segments::Lengths;
use clap::ValueEnum;
use gemm_runtime::SpecErrors;
use gemm_runtime::spec::{DataType, Over, ReduceSpec};
use std::fmt;

/// What is made of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fold {
    /// The sum.
    Sum,
    /// The greatest element.
    Max,
    /// The index of the greatest element.
    Argmax,
    /// The square root of the sum of squares.
    Norm,
    /// The sum of the products of two arrays.
    Dot,
    /// Mean and variance.
    #[value(name = "mean_var")]
    MeanVar,
    /// The logarithm of the sum of exponentials.
    Logsumexp,
    /// The sum whose rounding errors are summed too.
    Compensated,
}

impl Fold {
    /// Those that rows and columns are folded by.
    pub const OF_ROWS: [Self; 7] =
        [Self::Sum, Self::Max, Self::Argmax, Self::Norm, Self::Dot, Self::MeanVar, Self::Logsumexp];

    /// What it is called.
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
        }
    }

    /// What it is in the DSL.
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
        }
    }
}

/// The table that a problem stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Whole arrays.
    Whole,
    /// Tensors along an axis.
    Rows,
    /// Segments of an array.
    Segments,
}

impl Kind {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Rows, Self::Segments];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Rows => "rows",
            Self::Segments => "segments",
        }
    }
}

/// Along what an array is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Along all of it.
    Whole,
    /// Along an axis of its shape.
    Axis(usize),
    /// Along segments of such lengths, so many elements each in the mean.
    Segments(Lengths, usize),
}

/// A reduction of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionProblem {
    /// The extents of the array, the outermost first.
    pub shape: Vec<usize>,
    /// Along what it is folded.
    pub along: Along,
    /// What is made of its elements.
    pub fold: Fold,
    /// What these are.
    pub element: DataType,
    /// How it is computed, in keys of the DSL, where the table that ships is not asked.
    pub how: Option<String>,
}

impl ReductionProblem {
    /// The table that it stands in.
    pub fn kind(&self) -> Kind {
        match self.along {
            Along::Whole => Kind::Whole,
            Along::Axis(_) => Kind::Rows,
            Along::Segments(..) => Kind::Segments,
        }
    }

    /// The elements of an input.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array as (outer, length, inner), where `length` elements are one result; of segments, all of them.
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

    /// What becomes one result.
    pub fn over(&self) -> Over {
        match (self.along, self.size()) {
            (Along::Whole, _) => Over::All,
            (Along::Segments(..), _) => Over::Segments,
            (Along::Axis(_), (_, _, 1)) => Over::Rows,
            (Along::Axis(_), (1, _, _)) => Over::Columns,
            (Along::Axis(_), _) => Over::Middle,
        }
    }

    /// What is computed, and how where the table is not asked.
    ///
    /// # Errors
    /// Those of a line that the DSL does not have.
    pub fn spec(&self) -> Result<ReduceSpec, SpecErrors> {
        let (keys, element, over) = (self.fold.keys(), self.element, self.over());
        let how = self.how.iter().fold(String::new(), |_, how| format!(", {how}"));
        format!("{keys}, type: {element}, over: {over}{how}").parse()
    }

    /// How many arrays are folded together.
    pub fn inputs(&self) -> usize {
        if self.fold == Fold::Dot { 2 } else { 1 }
    }

    /// The results of each output, where there are so many segments.
    pub fn results(&self, segments: Option<usize>) -> usize {
        let (outer, _, inner) = self.size();
        segments.unwrap_or(outer * inner)
    }

    /// The bytes of all elements that are folded.
    pub fn bytes_read(&self) -> u64 {
        self.len() as u64 * self.inputs() as u64 * u64::from(self.element.elem().size())
    }

    /// The shape as `--shape` takes it: `2^20x128`.
    pub fn shape_text(&self) -> String {
        shape_text(&self.shape)
    }

    /// What is folded, for a reader: the axis, `all`, or the lengths of the segments.
    pub fn along_text(&self) -> String {
        match self.along {
            Along::Whole => "all".to_owned(),
            Along::Axis(axis) => axis.to_string(),
            Along::Segments(lengths, average) => format!("{} of {average}", lengths.name()),
        }
    }
}

/// `sum of 2^20x128 along 1`.
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

/// Extents as in `2^20x128`.
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
