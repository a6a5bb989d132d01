//! Extents and strides of a reduction's arrays, as expressions of the extents of a program or of
//! the parameters of a kernel.

use super::role::Role;
use crate::ir::program::Program;
use crate::ir::{Expr, Extent, KernelBuilder, Operand, Requirement, Source, Ty, joined};
use crate::plan::{Blocks, ReducePlan};
use crate::spec::Over;

/// Extent for the number of rows, matrices or segments.
pub(super) fn outer_extent(over: Over) -> Option<Extent> {
    match over {
        Over::Rows | Over::Middle => Some(Extent::OUTER),
        Over::Segments => Some(Extent::SEGMENTS),
        Over::All | Over::Columns => None,
    }
}

/// Extent for the number of columns.
pub(super) fn inner_extent(over: Over) -> Option<Extent> {
    matches!(over, Over::Columns | Over::Middle).then_some(Extent::INNER)
}

/// Number of rounds that a block needs for `n` elements, at least 1. Up to a limit, this is also
/// the number of blocks that fold a result.
pub(super) fn rounds(n: Expr, round: Expr) -> Expr {
    n.clone().gt(0u64).select(n.div_ceil(round), 1u64)
}

pub(super) struct ReduceShape<'s> {
    pub(super) plan: &'s ReducePlan,
    pub(super) role: Role,
    /// Number of elements of a run, if blocks fold runs.
    pub(super) run: Option<Expr>,
    /// Number of elements of a result; for segments, of the whole array.
    pub(super) n: Expr,
    /// Number of rows, matrices or segments.
    pub(super) outer: Option<Expr>,
    pub(super) inner: Option<Expr>,
    /// Number of elements of a result, if the reduction selects several.
    pub(super) k: Option<Expr>,
}

/// Adds the numbers that a launch passes to a program: those of `map` if its kernels read elements,
/// and those of `finish` if they compute results.
pub(super) fn add_numbers(program: &mut Program, plan: &ReducePlan, [reads, finishes]: [bool; 2]) {
    for (name, elem) in plan.spec().numbers_of(reads, finishes) {
        program.argument(name.to_owned(), Ty::Scalar(elem));
    }
}

impl<'s> ReduceShape<'s> {
    /// Shape for a program, to which it adds the extents.
    pub(super) fn of_program(
        program: &mut Program,
        plan: &'s ReducePlan,
        role: Role,
    ) -> (Self, Vec<(Extent, Expr)>) {
        let over = plan.spec().over;
        let mut extents = Vec::new();
        let mut add = |extent: Extent| {
            let value = program.extent(extent);
            extents.push((extent, value.clone()));
            value
        };
        let outer = outer_extent(over).map(&mut add);
        let n = add(Extent::LENGTH);
        let inner = inner_extent(over).map(&mut add);
        let run = match plan.blocks() {
            Blocks::Runs(run) => Some(u64::from(run).into()),
            Blocks::One | Blocks::InTurn(_) => None,
        };
        let k = plan.topk().map(|k| u64::from(k).into());
        (Self { plan, role, run, n, outer, inner, k }, extents)
    }

    pub(super) fn elements(&self) -> Vec<Expr> {
        match self.plan.spec().over {
            // The segments are not a dimension of the array.
            Over::Segments => vec![self.n.clone()],
            _ => {
                let (outer, inner) = (self.outer.iter().cloned(), self.inner.iter().cloned());
                outer.chain([self.n.clone()]).chain(inner).collect()
            }
        }
    }

    pub(super) fn results(&self) -> Vec<Expr> {
        let all: Vec<Expr> = self.outer.iter().chain(&self.inner).cloned().collect();
        match &self.k {
            Some(k) => all.into_iter().chain([k.clone()]).collect(),
            None if all.is_empty() => vec![1u64.into()],
            None => all,
        }
    }

    /// Number of blocks that fold a result, if several blocks do.
    pub(super) fn blocks(&self) -> Expr {
        match (self.plan.blocks(), &self.run) {
            (Blocks::Runs(_), Some(run)) => match self.role {
                // A result without elements needs a block as well.
                Role::Once => rounds(self.n.clone(), run.clone()),
                _ => self.n.clone().div_ceil(run.clone()),
            },
            (Blocks::InTurn(most), _) => {
                rounds(self.n.clone(), self.plan.elements_per_round().into()).min(u64::from(most))
            }
            _ => 1u64.into(),
        }
    }

    /// Extents of partial results: those of the results, with the block index before the column or
    /// the rank.
    pub(super) fn partials(&self) -> Vec<Expr> {
        let (outer, inner) = (self.outer.iter().cloned(), self.inner.iter().cloned());
        outer.chain([self.blocks()]).chain(inner).chain(self.k.clone()).collect()
    }

    /// Number of blocks if one block folds each result. Results that the same block folds share a
    /// ticket.
    pub(super) fn tiles(&self) -> Expr {
        let per_block = u64::from(self.plan.results_per_block());
        let tiles_of = |results: &Expr| match per_block {
            1 => results.clone(),
            many => results.clone().div_ceil(many),
        };
        match (&self.outer, &self.inner) {
            (Some(outer), Some(columns)) => tiles_of(columns) * outer.clone(),
            (Some(one), None) | (None, Some(one)) => tiles_of(one),
            (None, None) => 1u64.into(),
        }
    }

    /// Strides of an input, which is packed or has strides from the launch. For vectors, the latter
    /// must be multiples of the vector width.
    pub(super) fn strides(
        &self,
        b: &mut KernelBuilder,
        operand: usize,
        name: &str,
        vector: Option<u64>,
    ) -> Vec<Expr> {
        let dims = self.elements();
        if !self.plan.spec().pitched {
            return packed(&dims);
        }
        let mut strides = vec![Expr::I32(1)];
        for dim in (1..dims.len()).rev() {
            let what = if dim + 1 == dims.len() { "stride" } else { "distance" };
            let source = Source::Stride { operand: Operand::Input(operand), dim: dim - 1 };
            let scalar = b.scalar(&format!("{}_{what}", joined(name)), Ty::U64, source);
            if self.plan.spec().map.is_some() {
                b.mark_user_named();
            }
            if let Some(of) = vector {
                b.require(Requirement::Multiple { scalar, of });
            }
            strides.insert(0, scalar.into());
        }
        strides
    }
}

pub(super) fn packed(dims: &[Expr]) -> Vec<Expr> {
    let mut strides = vec![Expr::I32(1)];
    let mut stride: Option<Expr> = None;
    for extent in dims.iter().skip(1).rev() {
        let next = match stride {
            None => extent.clone(),
            Some(stride) => stride * extent.clone(),
        };
        strides.insert(0, next.clone());
        stride = Some(next);
    }
    strides
}
