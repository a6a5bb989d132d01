//! Tests of reductions of any kind: cases with reference results, placement of arrays in poisoned
//! memory, and machines that run the cases.

pub mod closures;
pub mod device;
pub mod draw;
pub mod placement;
pub mod sample;
pub mod shards;
pub mod simulate;
pub mod typed;

use closures::{FinishCase, MapCase};
use gemm_dsl::ir::{Elem, Extent};
use gemm_dsl::plan::ReducePlan;
use gemm_dsl::spec::{Op, Over, ReduceSpec};
use gemm_oracle::fold::{Folded, Kind, Number, folded, selected};
use placement::{Images, Placement};
use std::ops::Range;

/// Elements that are reduced into each result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Elements along the middle of three dimensions.
    Tensor {
        /// Rows, or matrices.
        outer: usize,
        /// Elements of a result.
        len: usize,
        /// Columns of a matrix.
        inner: usize,
    },
    /// Elements between two consecutive offsets.
    Segments(Vec<u64>),
}

impl Shape {
    pub fn results(&self, over: Over) -> Vec<usize> {
        match (self, over) {
            (Shape::Segments(offsets), _) => vec![offsets.len() - 1],
            (_, Over::All) => vec![1],
            (Shape::Tensor { outer, .. }, Over::Rows) => vec![*outer],
            (Shape::Tensor { inner, .. }, Over::Columns) => vec![*inner],
            (Shape::Tensor { outer, inner, .. }, _) => vec![*outer, *inner],
        }
    }

    pub fn elements(&self, over: Over) -> Vec<usize> {
        match (self, over) {
            (Shape::Segments(_), _) | (_, Over::All) => vec![self.len()],
            (Shape::Tensor { outer, len, .. }, Over::Rows) => vec![*outer, *len],
            (Shape::Tensor { len, inner, .. }, Over::Columns) => vec![*len, *inner],
            (Shape::Tensor { outer, len, inner }, _) => vec![*outer, *len, *inner],
        }
    }

    /// Extent of the problem, by name.
    pub fn extent(&self, extent: Extent) -> u64 {
        match (self, extent) {
            (Shape::Segments(offsets), Extent::SEGMENTS) => offsets.len() as u64 - 1,
            (Shape::Tensor { outer, .. }, Extent::OUTER) => *outer as u64,
            (Shape::Tensor { inner, .. }, Extent::INNER) => *inner as u64,
            _ => self.len() as u64,
        }
    }

    /// Number of elements per result. For segments, the number of elements of the array.
    fn len(&self) -> usize {
        match self {
            Shape::Tensor { len, .. } => *len,
            Shape::Segments(offsets) => offsets.last().copied().unwrap_or(0) as usize,
        }
    }

    /// Indices of a result's elements in a packed input, in ascending order.
    fn of_result(&self, result: usize) -> Vec<usize> {
        match self {
            Shape::Segments(offsets) => {
                (offsets[result] as usize..offsets[result + 1] as usize).collect()
            }
            Shape::Tensor { len, inner, .. } => {
                let (outer, column) = (result / inner, result % inner);
                (0..*len).map(|k| (outer * len + k) * inner + column).collect()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    pub spec: ReduceSpec,
    /// Kind of the reduction. For a user's `fold`, it is the equivalent kind.
    pub kind: Kind,
    pub map: Option<&'static MapCase>,
    pub finish: Option<&'static FinishCase>,
    /// Elements that are reduced into each result.
    pub shape: Shape,
    /// Bits of the elements of each input, packed.
    pub inputs: Vec<Vec<u64>>,
}

impl Case {
    /// Case of a spec without expressions, with random inputs.
    pub fn new(spec: &ReduceSpec, shape: Shape, seed: u64) -> Self {
        Self::with(spec, (None, None, None), shape, seed)
    }

    /// Case with random inputs and the given `map`, `finish` and `fold`, which are added to the
    /// spec.
    pub fn with(
        spec: &ReduceSpec,
        (map, finish, fold): (
            Option<&'static MapCase>,
            Option<&'static FinishCase>,
            Option<&'static closures::FoldCase>,
        ),
        shape: Shape,
        seed: u64,
    ) -> Self {
        let mut spec = spec.clone();
        if let Some(map) = map {
            spec = spec.map(parsed(map.text));
        }
        if let Some(finish) = finish {
            spec = spec.finish(parsed(finish.text));
        }
        if let Some(fold) = fold {
            spec = spec.fold(parsed(fold.text)).identity(parsed(fold.identity));
        }
        let kind = fold.map_or_else(|| Kind::of(&spec), |fold| Some(fold.kind));
        let kind = kind.unwrap_or_else(|| panic!("`{spec}` has a fold that nobody knows"));
        let elements = shape.elements(spec.over).iter().product();
        let inputs = spec.inputs().len();
        let inputs = (0..inputs as u64).map(|n| {
            draw::elements(
                kind,
                spec.element.elem(),
                elements,
                seed.wrapping_mul(4).wrapping_add(n),
            )
        });
        let inputs = inputs.collect();
        Self { spec, kind, map, finish, shape, inputs }
    }

    pub fn plan(&self) -> ReducePlan {
        self.spec.plan().unwrap_or_else(|faults| panic!("`{}`: {faults}", self.spec))
    }

    /// Extents of each result array.
    pub fn results(&self) -> Vec<usize> {
        let results = self.shape.results(self.spec.over);
        match self.spec.topk {
            None => results,
            Some(k) if self.spec.over == Over::All => vec![k as usize],
            Some(k) => results.into_iter().chain([k as usize]).collect(),
        }
    }

    /// True if each result has as many elements as a selection needs.
    pub fn has_enough(&self) -> bool {
        self.shape.len() >= self.spec.topk.unwrap_or(0) as usize
    }

    /// Arrays of a launch with this placement.
    pub fn images(&self, placement: &Placement) -> Images {
        Images::new(self, placement)
    }

    /// Values that are reduced into a result, after the `map`.
    pub fn values(&self, result: usize) -> Vec<Number> {
        let (elem, acc) = (self.spec.element.elem(), self.spec.acc_elem());
        let at = self.shape.of_result(result);
        let truth = self.spec.operator().is_some_and(Op::is_truth);
        let value = |(i, &at): (usize, &usize)| {
            let elements: Vec<Number> =
                self.inputs.iter().map(|input| Number::of_bits(elem, input[at])).collect();
            match self.map {
                Some(map) => (map.eval)(&elements, i as i128, self.len(result) as i128).cast(acc),
                None if truth => elements[0],
                None => elements[0].cast(acc),
            }
        };
        at.iter().enumerate().map(value).collect()
    }

    /// Case for a range of elements along the reduced axis. Segments are not supported.
    #[must_use]
    pub fn piece(&self, range: &Range<usize>) -> Self {
        let Shape::Tensor { outer, len, inner } = self.shape else {
            unreachable!("segments are not cut")
        };
        let of_outer = |nth: usize| nth * len * inner;
        let cut = |input: &Vec<u64>| -> Vec<u64> {
            let lines = (0..outer).map(|nth| {
                &input[of_outer(nth) + range.start * inner..of_outer(nth) + range.end * inner]
            });
            lines.flatten().copied().collect()
        };
        let shape = Shape::Tensor { outer, len: range.len(), inner };
        Self { shape, inputs: self.inputs.iter().map(cut).collect(), ..self.clone() }
    }

    fn len(&self, result: usize) -> u64 {
        match &self.shape {
            Shape::Tensor { len, .. } => *len as u64,
            Shape::Segments(offsets) => offsets[result + 1] - offsets[result],
        }
    }

    /// Checks the bits of all results.
    ///
    /// # Errors
    /// Returns a description of the first wrong result.
    pub fn judge(&self, outputs: &[Vec<u64>]) -> Result<(), String> {
        let (plan, results) = (self.plan(), self.spec.results());
        let count: usize = self.results().iter().product();
        let k = self.spec.topk.map_or(1, |k| k as usize);
        if outputs.iter().any(|output| output.len() != count) || outputs.len() != results.len() {
            return Err(format!(
                "`{}`: not {count} results of each of {}",
                self.spec,
                results.len()
            ));
        }
        for (output, (name, elem)) in results.iter().enumerate() {
            for (at, &bits) in outputs[output].iter().enumerate() {
                let values = self.values(at / k);
                let all = match self.spec.topk {
                    None => folded(self.kind, &plan, &values),
                    Some(_) => {
                        let all = selected(self.kind, &plan, &values, k);
                        all.iter().map(|of_result| of_result[at % k]).collect()
                    }
                };
                let finish = self.finish.map(|finish| finish.eval);
                let parts: &[Folded] = if finish.is_some() { &all } else { &all[output..][..1] };
                let len = self.len(at / k);
                let judged = Folded::judge_finished(parts, finish, len, bits, *elem);
                judged.map_err(|wrong| {
                    let shape = match &self.shape {
                        Shape::Segments(_) => format!("a segment of {len}"),
                        shape => format!("{shape:?}"),
                    };
                    format!("`{}` of {shape}: {name} {at}: {wrong}", self.spec)
                })?;
            }
        }
        Ok(())
    }

    /// Element type of the inputs.
    pub fn elem(&self) -> Elem {
        self.spec.element.elem()
    }
}

fn parsed<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Display,
{
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
