//! Extents and strides of the arrays of a reduction, in terms of its three extents: those of a program, or the
//! parameters of a kernel.

use super::rounds::Role;
use crate::ir::program::Program;
use crate::ir::{Expr, Extent, KernelBuilder, Operand, Requirement, Source, Ty, joined};
use crate::plan::{Blocks, ReducePlan};
use crate::spec::Over;

/// The extent that says how many rows, matrices or segments there are.
pub(super) fn outer_extent(over: Over) -> Option<Extent> {
    match over {
        Over::Rows | Over::Middle => Some(Extent::OUTER),
        Over::Segments => Some(Extent::SEGMENTS),
        Over::All | Over::Columns => None,
    }
}

/// The extent that says how many columns there are.
pub(super) fn inner_extent(over: Over) -> Option<Extent> {
    matches!(over, Over::Columns | Over::Middle).then_some(Extent::INNER)
}

/// How many rounds of a block it takes to fold so many elements, 1 where there are none: the blocks that fold a
/// result are as many, up to a number.
pub(super) fn rounds(n: Expr, round: Expr) -> Expr {
    n.clone().gt(0u64).select(n.div_ceil(round), 1u64)
}

/// What is folded.
pub(super) struct Shape<'s> {
    pub(super) plan: &'s ReducePlan,
    pub(super) role: Role,
    /// Elements of a run, where blocks fold runs.
    pub(super) run: Option<Expr>,
    /// Elements of a result; of segments, of all.
    pub(super) n: Expr,
    /// Rows, matrices or segments.
    pub(super) outer: Option<Expr>,
    /// Columns.
    pub(super) inner: Option<Expr>,
}

impl<'s> Shape<'s> {
    /// That of what a program folds, whose extents are added to it.
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
        (Self { plan, role, run, n, outer, inner }, extents)
    }

    /// The extents of an input.
    pub(super) fn elements(&self) -> Vec<Expr> {
        match self.plan.spec().over {
            // Its segments are no dimension of an array.
            Over::Segments => vec![self.n.clone()],
            _ => {
                let (outer, inner) = (self.outer.iter().cloned(), self.inner.iter().cloned());
                outer.chain([self.n.clone()]).chain(inner).collect()
            }
        }
    }

    /// The extents of an output.
    pub(super) fn results(&self) -> Vec<Expr> {
        let all: Vec<Expr> = self.outer.iter().chain(&self.inner).cloned().collect();
        if all.is_empty() { vec![1u64.into()] } else { all }
    }

    /// How many blocks fold a result, where several do.
    pub(super) fn blocks(&self) -> Expr {
        match (self.plan.blocks(), &self.run) {
            (Blocks::Runs(_), Some(run)) => match self.role {
                // Some block makes a result of no elements, too.
                Role::Once => rounds(self.n.clone(), run.clone()),
                _ => self.n.clone().div_ceil(run.clone()),
            },
            (Blocks::InTurn(most), _) => {
                rounds(self.n.clone(), self.plan.elements_per_round().into()).min(u64::from(most))
            }
            _ => 1u64.into(),
        }
    }

    /// The extents of partials: those of results, and before the columns which of a result's blocks has left it.
    pub(super) fn partials(&self) -> Vec<Expr> {
        let (outer, inner) = (self.outer.iter().cloned(), self.inner.iter().cloned());
        outer.chain([self.blocks()]).chain(inner).collect()
    }

    /// How many blocks it takes if one folds each result; results that share a block share a ticket too.
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

    /// The strides of an input: packed, or as the launch says, where rows begin at vectors if there are any.
    pub(super) fn strides(
        &self,
        b: &mut KernelBuilder,
        (operand, name): (usize, &str),
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
                b.named_by_user();
            }
            if let Some(of) = vector {
                b.require(Requirement::Multiple { scalar, of });
            }
            strides.insert(0, scalar.into());
        }
        strides
    }
}

/// The strides of a packed array.
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
