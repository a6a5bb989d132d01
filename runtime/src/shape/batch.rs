//! Axes of batches of matrices.

use crate::error::{Error, Result};
use gemm_dsl::ir::Extent;
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::spec;
use smallvec::SmallVec;

/// Greatest number of axes of a batch.
pub(crate) const MAX_AXES: usize = spec::Batch::MAX_AXES;

/// Axes of a batch of matrices, from one to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Extent and stride of each axis, outermost first. Axes after the first `len` have extent 1.
    axes: [BatchAxis; MAX_AXES],
    len: usize,
}

/// Axis of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchAxis {
    pub(crate) extent: usize,
    /// Distance between the starts of two neighbouring matrices, in elements.
    pub(crate) stride: usize,
}

impl BatchAxis {
    const ONE: Self = Self { extent: 1, stride: 0 };

    fn step(&self) -> usize {
        self.extent.saturating_mul(self.stride)
    }
}

impl Batch {
    /// Batch with one axis: `count` matrices whose starts are `distance` elements apart.
    pub fn new(count: usize, distance: usize) -> Self {
        Self::along([(count, distance)])
    }

    /// Batch with these axes, each an extent and a stride, outermost first.
    pub fn along<const N: usize>(axes: [(usize, usize); N]) -> Self {
        const { assert!(0 < N && N <= MAX_AXES, "a batch has from one to three axes") }
        let mut all = [BatchAxis::ONE; MAX_AXES];
        for (axis, (extent, stride)) in all.iter_mut().zip(axes) {
            *axis = BatchAxis { extent, stride };
        }
        Self { axes: all, len: N }
    }

    /// Axes, outermost first.
    pub(crate) fn axes(&self) -> &[BatchAxis] {
        &self.axes[..self.len]
    }

    /// All axes, those that the batch does not have with extent 1.
    pub(crate) fn all_axes(&self) -> [BatchAxis; MAX_AXES] {
        self.axes
    }

    /// Number of matrices, over all axes.
    pub fn count(&self) -> usize {
        self.axes.iter().fold(1, |all: usize, axis| all.saturating_mul(axis.extent))
    }

    /// Distance from the first matrix to the last; 0 for an empty batch. `None` if it overflows.
    pub(crate) fn reach(&self) -> Option<usize> {
        if self.count() == 0 {
            return Some(0);
        }
        self.axes.iter().try_fold(0_usize, |all, axis| {
            all.checked_add((axis.extent - 1).checked_mul(axis.stride)?)
        })
    }

    /// Number and distance of the matrices, if one stride describes all axes.
    pub(crate) fn merged(&self) -> Option<(usize, usize)> {
        let (&last, before) = self.axes().split_last()?;
        let mut all = last;
        for axis in before.iter().rev().filter(|axis| axis.extent != 1) {
            if all.extent != 1 && axis.stride != all.step() && self.count() > 0 {
                return None;
            }
            let stride = if all.extent == 1 { axis.stride } else { all.stride };
            all = BatchAxis { extent: axis.extent.saturating_mul(all.extent), stride };
        }
        Some((all.extent, all.stride))
    }

    /// Extents in messages, such as `2 x 3`.
    pub(crate) fn extents_in_words(&self) -> String {
        extents_in_words(&self.array_axes())
    }

    /// Strides in messages, such as `12 and 4`.
    pub(crate) fn strides_in_words(&self) -> String {
        strides_in_words(&self.array_axes())
    }

    /// Axes as contracts describe them.
    pub(crate) fn array_axes(&self) -> SmallVec<[ArrayAxis; MAX_AXES]> {
        let axis =
            |axis: &BatchAxis| ArrayAxis { extent: axis.extent as u64, stride: axis.stride as u64 };
        self.axes().iter().map(axis).collect()
    }
}

/// Name of an operand, and the axes of its batch. A single matrix has none.
pub(crate) type NamedBatch<'n> = (&'n str, SmallVec<[ArrayAxis; MAX_AXES]>);

/// Axes of the batch of a call, which its operands share. Axes are merged if one stride describes
/// them for each operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallBatch {
    /// Extents of the axes before they are merged.
    extents: [u64; MAX_AXES],
    /// Merged axes, outermost first: the extent of each, and the number of the axis with its
    /// stride.
    merged: SmallVec<[(u64, usize); MAX_AXES]>,
    /// Number of GEMMs.
    count: u64,
}

impl CallBatch {
    /// Batch of `count` GEMMs with these operands.
    ///
    /// # Errors
    /// * [`Error::Extents`] for an operand with another number of matrices, which has a batch.
    /// * [`Error::WrongShape`] for an operand with as many matrices along other axes.
    pub(crate) fn new(count: usize, operands: &[NamedBatch<'_>]) -> Result<Self> {
        let several = |(_, axes): &&NamedBatch<'_>| axes.iter().filter(|a| a.extent != 1).count();
        let longest = operands.iter().max_by_key(several);
        let mut extents = [1; MAX_AXES];
        for (extent, axis) in extents.iter_mut().zip(longest.into_iter().flat_map(|(_, a)| a)) {
            *extent = axis.extent;
        }
        let count = count as u64;
        let mut strides = SmallVec::<[[u64; MAX_AXES]; 4]>::new();
        for (name, axes) in operands {
            let found = axes.iter().map(|a| a.extent).fold(1, u64::saturating_mul);
            if !axes.is_empty() && found != count {
                let (first, other) = ((*name).to_owned(), "c".to_owned());
                let (first, other) = ((first, found as usize), (other, count as usize));
                return Err(Error::Extents { extent: Extent::BATCH, first, other });
            }
            strides.push(strides_along(axes, extents).ok_or_else(|| {
                let (other, of_other) = longest.map_or(("c", &[][..]), |(name, a)| (*name, a));
                Error::WrongShape {
                    argument: (*name).to_owned(),
                    has: format!("a batch of {} matrices", extents_in_words(axes)),
                    need: format!("`{other}` is one of {}", extents_in_words(of_other)),
                    remedy: "Pass batches with the same axes. A stride of 0 repeats a matrix",
                }
            })?);
        }
        // Without a batch, C is a batch of one.
        if extents.iter().copied().fold(1, u64::saturating_mul) != count {
            extents = [count, 1, 1];
        }
        let mut merged = SmallVec::<[(u64, usize); MAX_AXES]>::new();
        for (axis, &extent) in extents.iter().enumerate().filter(|(_, extent)| **extent != 1) {
            let outer = merged.last_mut().filter(|(_, outer)| {
                let step = |of: &[u64; MAX_AXES]| of[axis].saturating_mul(extent);
                count == 0 || strides.iter().all(|of| of[*outer] == step(of))
            });
            match outer {
                Some(outer) => *outer = (outer.0.saturating_mul(extent), axis),
                None => merged.push((extent, axis)),
            }
        }
        Ok(Self { extents, merged, count })
    }

    /// Number of GEMMs.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Number of axes after merging; at least 1.
    pub(crate) fn len(&self) -> usize {
        self.merged.len().max(1)
    }

    /// Checks that a kernel for this kind of batch has all axes of an operand.
    ///
    /// # Errors
    /// [`Error::WrongShape`] if the kernel has fewer axes than the batch after merging.
    pub(crate) fn check(&self, kind: spec::Batch, operands: &[NamedBatch<'_>]) -> Result<()> {
        // B of groups and the operands of lists are batches with one axis.
        if self.len() <= kind.axes().max(1) {
            return Ok(());
        }
        let several = operands.iter().max_by_key(|(_, axes)| axes.len());
        let (name, axes) = several.map_or(("c", &[][..]), |(name, axes)| (*name, axes));
        Err(Error::WrongShape {
            argument: name.to_owned(),
            has: format!(
                "a batch of {} matrices with strides of {} elements",
                extents_in_words(axes),
                strides_in_words(axes)
            ),
            need: format!("the kernel has `batch: {kind}`"),
            remedy: match (kind, self.len()) {
                (spec::Batch::Pointers | spec::Batch::Grouped, _) => {
                    "Pass a batch with one stride, or copy it to one"
                }
                (_, 2) => "Use a kernel with `batch: strided2`",
                _ => "Use a kernel with `batch: strided3`",
            },
        })
    }

    /// Extents of `axes` axes of a kernel. Axes that the batch does not have come last.
    pub(crate) fn extents(&self, axes: usize) -> impl Iterator<Item = u64> {
        let extents = self.merged.iter().map(|(extent, _)| *extent);
        extents.chain(std::iter::repeat(1)).take(axes)
    }

    /// Axes of an operand for a kernel with `axes` axes.
    pub(crate) fn axes_of(
        &self,
        own: &[ArrayAxis],
        axes: usize,
    ) -> impl Iterator<Item = ArrayAxis> {
        // `new` has accepted the operand.
        let strides = strides_along(own, self.extents).unwrap_or([0; MAX_AXES]);
        let merged = self.merged.iter();
        let found = merged.map(move |&(extent, axis)| ArrayAxis { extent, stride: strides[axis] });
        found.chain(std::iter::repeat(ArrayAxis { extent: 1, stride: 0 })).take(axes)
    }
}

/// Extents in messages, such as `2 x 3`.
fn extents_in_words(axes: &[ArrayAxis]) -> String {
    let extents: Vec<String> = axes.iter().map(|axis| axis.extent.to_string()).collect();
    extents.join(" x ")
}

/// Strides in messages, such as `12 and 4`.
fn strides_in_words(axes: &[ArrayAxis]) -> String {
    let strides: Vec<String> = axes.iter().map(|axis| axis.stride.to_string()).collect();
    strides.join(" and ")
}

/// Strides of an operand along axes with these extents. A single matrix has strides of 0, and a
/// batch with one stride is divided among the axes. `None` for a batch with other axes.
fn strides_along(own: &[ArrayAxis], extents: [u64; MAX_AXES]) -> Option<[u64; MAX_AXES]> {
    let mut strides = [0; MAX_AXES];
    let padded = own.iter().map(|axis| axis.extent).chain(std::iter::repeat(1));
    if padded.zip(extents).all(|(has, needs)| has == needs) {
        strides.iter_mut().zip(own).for_each(|(stride, axis)| *stride = axis.stride);
        return Some(strides);
    }
    let mut several = own.iter().filter(|axis| axis.extent != 1);
    let (axis, None) = (several.next(), several.next()) else { return None };
    let mut step = axis.map_or(0, |axis| axis.stride);
    for (stride, extent) in strides.iter_mut().zip(extents).rev() {
        *stride = step;
        step = step.saturating_mul(extent);
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<const N: usize>(name: &str, axes: [(usize, usize); N]) -> NamedBatch<'_> {
        (name, Batch::along(axes).array_axes())
    }

    /// Every GEMM of a merged batch has the matrices of the batch as it was given.
    #[test]
    fn merged_axes_reach_the_same_matrices() {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut merges = [0; MAX_AXES + 1];
        for _ in 0..3000 {
            let extents = [0; MAX_AXES].map(|_: usize| rng.usize(1..4));
            let count = extents.iter().product();
            let mut batch = || {
                let mut strides = [0; MAX_AXES].map(|_: usize| rng.usize(0..4));
                if rng.bool() {
                    strides[1] = strides[2] * extents[2];
                }
                if rng.bool() {
                    strides[0] = strides[1] * extents[1];
                }
                let axes = [0, 1, 2].map(|axis| (extents[axis], strides[axis]));
                match rng.u8(0..6) {
                    0 => ("x", SmallVec::new()),
                    1 => named("x", [(count, rng.usize(0..4))]),
                    _ => named("x", axes),
                }
            };
            let operands = [batch(), batch(), named("c", [0, 1, 2].map(|a| (extents[a], 7)))];
            let call = CallBatch::new(count, &operands).expect("the same axes");
            merges[call.len()] += 1;
            for (_, own) in &operands {
                let offsets = |axes: Vec<ArrayAxis>| {
                    let mut all = vec![0];
                    for axis in axes {
                        let steps = |at: u64| (0..axis.extent).map(move |n| at + n * axis.stride);
                        all = all.into_iter().flat_map(steps).collect();
                    }
                    all
                };
                let found = offsets(call.axes_of(own, call.len()).collect());
                let mut expected = offsets(own.to_vec());
                if expected.len() == 1 {
                    expected = vec![0; count];
                }
                assert_eq!(found, expected, "{operands:?}");
            }
            assert_eq!(call.extents(3).product::<u64>(), count as u64);
        }
        assert!(merges[1..].iter().all(|n| *n > 100), "{merges:?}");
    }

    #[test]
    fn operands_with_other_axes_are_refused() {
        let c = named("c", [(2, 40), (3, 4)]);
        let call = |a| CallBatch::new(6, &[a, c.clone()]);
        assert_eq!(call(named("a", [(6, 5)])).map(|call| call.len()).ok(), Some(2));
        assert!(matches!(call(named("a", [(3, 9), (2, 5)])), Err(Error::WrongShape { .. })));
        assert!(matches!(call(named("a", [(2, 9), (2, 5)])), Err(Error::Extents { .. })));
        let merged = CallBatch::new(6, &[named("a", [(2, 15), (3, 5)]), named("c", [(6, 4)])]);
        assert_eq!(merged.map(|call| call.len()).ok(), Some(1));
    }

    #[test]
    fn one_stride_describes_merged_axes() {
        assert_eq!(Batch::along([(2, 12), (3, 4)]).merged(), Some((6, 4)));
        assert_eq!(Batch::along([(2, 12), (1, 4), (3, 4)]).merged(), Some((6, 4)));
        assert_eq!(Batch::along([(2, 12), (1, 4)]).merged(), Some((2, 12)));
        assert_eq!(Batch::along([(2, 13), (3, 4)]).merged(), None);
        assert_eq!(Batch::along([(0, 13), (3, 4)]).merged(), Some((0, 4)));
        assert_eq!(Batch::along([(2, 13), (3, 4)]).reach(), Some(21));
        assert_eq!(Batch::new(usize::MAX, 3).reach(), None);
    }
}
