//! Axes of a batch: their extents and the distances between matrices, as kernel parameters, and the
//! position of a GEMM along them.

use crate::ir::{
    BufferId, Expr, Extent, KernelBuilder, Operand, Requirement, Scalar, Source, Ty, Var,
};
use crate::plan::SgemmPlan;
use crate::spec::{Batch, Factor};

/// Index along each axis of a batch, outermost first; empty without a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchIndex([Option<Var>; Batch::MAX_AXES]);

impl BatchIndex {
    /// Index along the only axis.
    pub fn of_one_axis(index: Option<Var>) -> Self {
        let mut axes = [None; Batch::MAX_AXES];
        axes[0] = index;
        Self(axes)
    }

    pub fn axes(self) -> impl Iterator<Item = Expr> {
        self.0.into_iter().flatten().map(Expr::from)
    }
}

/// Axes of a batch, as parameters of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchAxes {
    /// Number of GEMMs, over all axes.
    pub count: Scalar,
    /// Extents of the axes after the first.
    inner: [Option<Scalar>; Batch::MAX_AXES - 1],
}

impl BatchAxes {
    /// Extents of all axes, outermost first. The first extent covers every index of a GEMM.
    pub fn extents(self) -> Vec<Expr> {
        let inner = self.inner.into_iter().flatten().map(Expr::from);
        let of_one = inner.clone().reduce(|all, of| all * of);
        let count = Expr::from(self.count);
        let first = match of_one {
            None => count,
            Some(of_one) => count.div_ceil(of_one),
        };
        std::iter::once(first).chain(inner).collect()
    }

    /// Index of a GEMM along each axis.
    pub fn index(self, b: &mut KernelBuilder, product: Var) -> BatchIndex {
        let inner: Vec<Scalar> = self.inner.into_iter().flatten().collect();
        let mut axes = [None; Batch::MAX_AXES];
        if inner.is_empty() {
            return BatchIndex::of_one_axis(Some(product));
        }
        b.comment(
            "Position of this GEMM along the axes of the batch. The last axis varies fastest.",
        );
        for axis in 0..=inner.len() {
            let faster = inner[axis..].iter().copied().map(Expr::from).reduce(|all, of| all * of);
            let index = match faster {
                None => Expr::from(product),
                Some(faster) => product / faster,
            };
            let index = match axis {
                0 => index,
                _ => index % inner[axis - 1],
            };
            axes[axis] = Some(b.let_(&format!("batch_{axis}"), index));
        }
        BatchIndex(axes)
    }
}

/// Number of axes along which A (`nth` = 0), B (1) or C (2) has strides. Groups have a B each.
pub(crate) fn axes_of(plan: &SgemmPlan, nth: usize) -> usize {
    match plan.batch() {
        Some(Batch::Grouped) => usize::from(nth == Factor::B.index()),
        batch => batch.map_or(0, Batch::axes),
    }
}

/// Declares the parameters for the extents of a batch.
pub(crate) fn declare_axes(b: &mut KernelBuilder, batch: Batch) -> BatchAxes {
    let count = b.extent("BATCH", Ty::I32, Extent::BATCH);
    let mut inner = [None; Batch::MAX_AXES - 1];
    for axis in 1..batch.axes() {
        let extent = Extent::INNER_AXES[axis - 1];
        let scalar = b.extent(&format!("BATCH_{axis}"), Ty::I32, extent);
        b.require(Requirement::Range { scalar, min: 1, max: i32::MAX as u64 });
        inner[axis - 1] = Some(scalar);
    }
    BatchAxes { count, inner }
}

/// Name of the distance between neighbours along an axis of a batch. Only batches with several axes
/// number them.
pub(crate) fn distance_name(name: &str, axis: usize, axes: usize) -> String {
    if axes == 1 { name.to_owned() } else { format!("{name}_{axis}") }
}

/// Distances between the matrices of a batch along each of its axes, as parameters of a kernel that
/// reads the matrices by a tensor map.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Distances([Option<Scalar>; Batch::MAX_AXES]);

impl Distances {
    /// Declares the parameters for the matrices of `operand`, whose letter is `name`.
    pub fn declare(b: &mut KernelBuilder, name: &str, operand: Operand, axes: usize) -> Self {
        let mut all = [None; Batch::MAX_AXES];
        for (dim, of) in all.iter_mut().enumerate().take(axes) {
            let stride = Source::Stride { operand, dim };
            let name = distance_name(&format!("stride_{name}"), dim, axes);
            *of = Some(b.scalar(&name, Ty::U64, stride));
        }
        Self(all)
    }

    pub fn each(self) -> impl Iterator<Item = Scalar> {
        self.0.into_iter().flatten()
    }

    /// Numbers of distinct matrices along the axes. A matrix that repeats along an axis, with a
    /// distance of 0, counts once: a tensor map has no stride of 0.
    pub fn distinct(self, batch: Option<BatchAxes>) -> Vec<Expr> {
        let counts = batch.map(BatchAxes::extents).unwrap_or_default();
        let counts = self.each().zip(counts);
        counts.map(|(of, count)| Expr::from(of).gt(0u64).select(count, 1)).collect()
    }

    /// Index among the distinct matrices, given the index in the batch.
    pub fn index(self, of: impl Iterator<Item = Expr>) -> impl Iterator<Item = Expr> {
        self.each().zip(of).map(|(apart, index)| Expr::from(apart).gt(0u64).select(index, 0))
    }
}

/// Sets the shape of an array. In a batch, it has an additional dimension for each of the batch's
/// axes, with the distances `apart`.
pub(crate) fn batched<const N: usize>(
    b: &mut KernelBuilder,
    buffer: BufferId,
    batch: Option<BatchAxes>,
    apart: &[Scalar],
    dims: [Expr; N],
    strides: [Expr; N],
) {
    let counts = batch.filter(|_| !apart.is_empty()).map(BatchAxes::extents);
    let apart = apart.iter().copied().map(Expr::from);
    b.shape(buffer, counts.into_iter().flatten().chain(dims), apart.chain(strides));
}
