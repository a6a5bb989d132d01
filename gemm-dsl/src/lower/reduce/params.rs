//! Parameters of a kernel in rounds: arrays with their extents and strides, launch requirements,
//! and the grid.

use super::expressions::Numbers;
use super::fold::Fold;
use super::role::Role;
use super::shape::{self, ReduceShape};
use crate::ir::program::Argument;
use crate::ir::{
    BufferId, Const, Expr, Extent, Geometry, KernelBuilder, Operand, Requirement, Scalar, Source,
    Ty,
};
use crate::lower::tickets;
use crate::plan::{Blocks, ReducePlan};
use crate::spec::{IndexType, Over};

/// Parameters of a kernel. Fields are empty if the kernel does not have the parameter.
pub(super) struct Params {
    pub(super) inputs: Vec<BufferId>,
    pub(super) outputs: Vec<BufferId>,
    /// Partial results of the blocks: one array for each part of the accumulator.
    pub(super) partials: Vec<BufferId>,
    /// Number of blocks of a result that have stored their partial results.
    pub(super) tickets: Option<BufferId>,
    pub(super) numbers: Numbers,
    /// Number of elements: of a result, of the whole array for segments, or of the shard alone for
    /// a shard.
    pub(super) n: Scalar,
    pub(super) results: Results,
    /// Position of the shard in the whole array.
    pub(super) shard: Option<Shard>,
    /// Number of elements of a run, if blocks fold runs.
    pub(super) run: Option<Const>,
    /// Number of elements of a result, if the kernel selects several.
    pub(super) k: Option<Const>,
    pub(super) role: Role,
}

/// Position of a shard along the reduced axis.
#[derive(Clone, Copy)]
pub(super) struct Shard {
    /// Index of the shard's first element in the whole array.
    pub(super) first: Scalar,
    /// Number of elements in all shards.
    pub(super) total: Scalar,
}

#[derive(Clone, Copy)]
pub(super) enum Results {
    /// One result for an array.
    Array,
    /// One result for each row.
    Rows(Scalar),
    /// One result for each segment. The array contains the offsets.
    Segments(Scalar, BufferId),
    /// One result for each column. The second scalar is the number of matrices, if there are
    /// several.
    Columns(Scalar, Option<Scalar>),
}

impl Params {
    fn shape<'s>(&self, plan: &'s ReducePlan) -> ReduceShape<'s> {
        let (outer, inner) = match self.results {
            Results::Array => (None, None),
            Results::Rows(outer) | Results::Segments(outer, _) => (Some(outer), None),
            Results::Columns(inner, outer) => (outer, Some(inner)),
        };
        let [outer, inner] = [outer, inner].map(|extent| extent.map(Expr::from));
        let run = self.run.map(|run| Expr::from(run).wide());
        let k = self.k.map(|k| Expr::from(k).wide());
        ReduceShape { plan, role: self.role, run, n: self.n.into(), outer, inner, k }
    }

    /// Converts an index in the shard to the index in the whole result.
    pub(super) fn position(&self, index: Expr) -> Expr {
        match self.shard {
            None => index,
            Some(Shard { first, .. }) => Expr::from(first) + index,
        }
    }

    /// Number of elements of the whole result, of which `here` elements are in this shard.
    pub(super) fn length(&self, here: &Expr) -> Expr {
        self.shard.map_or_else(|| here.clone(), |shard| shard.total.into())
    }
}

pub(super) fn params(
    b: &mut KernelBuilder,
    plan: &ReducePlan,
    role: Role,
    wide: bool,
    (fold, arguments): (&Fold, &[Argument]),
) -> Params {
    let (spec, over) = (plan.spec(), plan.spec().over);
    let reads = role.reads();
    let mut inputs = Vec::new();
    let names = match (reads, &spec.map) {
        (false, _) => Vec::new(),
        (true, None) => vec!["in"],
        (true, Some(_)) => spec.inputs(),
    };
    for (n, name) in names.iter().enumerate() {
        inputs.push(b.global(name, plan.types().element, Operand::Input(n)));
        if spec.map.is_some() {
            b.mark_user_named();
        }
    }
    let offsets = (over == Over::Segments)
        .then(|| b.global("offsets", plan.types().index, Operand::Input(inputs.len())));
    let mut outputs = Vec::new();
    if role.finishes() {
        let results = spec.results();
        for (n, (name, elem)) in results.iter().enumerate() {
            let name = if results.len() == 1 { "out".to_owned() } else { format!("out_{name}") };
            outputs.push(b.global(&name, *elem, Operand::Output(n)));
        }
    }
    let mut partials = Vec::new();
    if role != Role::Whole {
        for (n, part) in fold.parts().iter().enumerate() {
            let one = fold.parts().len() == 1;
            let name = if one { "partials".to_owned() } else { format!("partial_{}", part.plural) };
            partials.push(b.global(&name, part.elem, Operand::Temp(n)));
        }
    }
    let last = Operand::Temp(partials.len());
    let tickets = (role == Role::Once).then(|| tickets::parameter(b, last));
    if tickets.is_some() {
        tickets::workspace_title(b, &partials_text(plan, fold));
    }
    let numbers = numbers(b, plan, role, arguments);
    let n = b.extent("n", Ty::U64, Extent::LENGTH);
    let outer = shape::outer_extent(over).map(|extent| {
        let name = match over {
            Over::Middle => "matrices",
            Over::Segments => "segments",
            _ => "rows",
        };
        b.extent(name, Ty::U64, extent)
    });
    let inner = shape::inner_extent(over).map(|extent| b.extent("columns", Ty::U64, extent));
    let results = match (outer, inner, offsets) {
        (Some(segments), _, Some(offsets)) => Results::Segments(segments, offsets),
        (matrices, Some(columns), _) => Results::Columns(columns, matrices),
        (Some(rows), None, None) => Results::Rows(rows),
        (None, None, _) => Results::Array,
    };
    let shard = (role == Role::Shard).then(|| Shard {
        first: b.extent("first", Ty::U64, Extent::FIRST),
        total: b.extent("n_total", Ty::U64, Extent::TOTAL),
    });
    let run = match plan.blocks() {
        Blocks::Runs(run) => {
            let meaning = "elements per run, which a block reduces";
            Some(b.constant("RUN", run as i32, meaning))
        }
        Blocks::One | Blocks::InTurn(_) => None,
    };
    let k = plan.topk().map(|k| b.constant("K", k as i32, "elements of a result"));
    let params =
        Params { inputs, outputs, partials, tickets, numbers, n, results, shard, run, k, role };
    params.declare_inputs(b, plan, &names, wide && reads);
    params.declare_others(b, plan, wide && reads);
    params
}

/// Declares the numbers that the expressions of a kernel read. `arguments` are the numbers of the
/// program.
fn numbers(
    b: &mut KernelBuilder,
    plan: &ReducePlan,
    role: Role,
    arguments: &[Argument],
) -> Numbers {
    let read = plan.spec().numbers_of(role.reads(), role.finishes());
    let mut numbers = Vec::new();
    for (nth, Argument { name, ty }) in arguments.iter().enumerate() {
        if read.iter().any(|(read, _)| read == name) {
            let number = b.scalar(name, *ty, Source::Argument(nth));
            b.mark_user_named();
            numbers.push((name.to_string(), number));
        }
    }
    Numbers(numbers)
}

/// Sentence on the arrays of partial results.
fn partials_text(plan: &ReducePlan, fold: &Fold) -> String {
    let part = if plan.spec().run.is_some() { "run" } else { "block" };
    let each = match plan.spec().over {
        Over::All => part.to_owned(),
        Over::Rows => format!("row and {part}"),
        Over::Columns => format!("{part} and column"),
        Over::Middle => format!("matrix, {part} and column"),
        Over::Segments => format!("segment and {part}"),
    };
    match fold.parts() {
        [_] => format!("partials holds one value per {each}"),
        parts => {
            let names = parts.iter().map(|part| format!("partial_{}", part.plural));
            format!("{} hold one value per {each}", names.collect::<Vec<_>>().join(", "))
        }
    }
}

impl Params {
    /// Declares the extents and strides of the inputs, and the requirements of vector accesses.
    fn declare_inputs(&self, b: &mut KernelBuilder, plan: &ReducePlan, names: &[&str], wide: bool) {
        let shape = self.shape(plan);
        let vector = wide.then_some(u64::from(plan.vector()));
        for (operand, (input, name)) in self.inputs.iter().zip(names).enumerate() {
            let strides = shape.strides(b, operand, name, vector);
            b.shape(*input, shape.elements(), strides);
            if wide {
                b.require(Requirement::Aligned { operand: Operand::Input(operand), bytes: 16 });
            }
        }
        let contiguous = match self.results {
            Results::Rows(_) => Some(self.n),
            Results::Columns(columns, _) => Some(columns),
            Results::Array | Results::Segments(..) => None,
        };
        if let (Some(of), Some(scalar)) = (vector, contiguous) {
            b.require(Requirement::Multiple { scalar, of });
        }
    }

    /// Declares the extents and strides of all other arrays, and the requirements of vectors of
    /// neighbouring columns.
    fn declare_others(&self, b: &mut KernelBuilder, plan: &ReducePlan, wide: bool) {
        let shape = self.shape(plan);
        if let Results::Segments(segments, offsets) = self.results {
            b.shape(offsets, [Expr::from(segments) + 1u64], [1.into()]);
        }
        let (results, partials) = (shape.results(), shape.partials());
        let outputs = self.outputs.iter().enumerate();
        let outputs = outputs.map(|(n, array)| (Operand::Output(n), array, &results));
        let temps = self.partials.iter().enumerate();
        let temps = temps.map(|(n, array)| (Operand::Temp(n), array, &partials));
        for (operand, array, dims) in outputs.chain(temps) {
            b.shape(*array, dims.iter().cloned(), shape::packed(dims));
            if wide && plan.lanes_of_columns(array.elem).is_some() {
                b.require(Requirement::Aligned { operand, bytes: 16 });
            }
        }
        if let Some(array) = self.tickets {
            tickets::shape(b, array, shape.tiles());
        }
    }
}

/// Adds the launch requirements that do not concern arrays.
pub(super) fn requirements(b: &mut KernelBuilder, plan: &ReducePlan, fold: &Fold, p: &Params) {
    let all = p.shard.map_or(p.n, |shard| shard.total);
    if plan.spec().index == IndexType::U32 && fold.keeps_indices() {
        let max = u64::from(u32::MAX) - 1;
        // Elements past the end have indices, too, and these must not wrap.
        let max = if plan.topk().is_some() { i32::MAX as u64 } else { max };
        let min = plan.topk().unwrap_or(0).into();
        b.require(Requirement::Range { scalar: all, min, max });
    } else if let Some(k) = plan.topk() {
        b.require(Requirement::Range { scalar: all, min: k.into(), max: u64::MAX });
    }
    if let (Some(Shard { first, total }), Blocks::Runs(run)) = (p.shard, plan.blocks()) {
        b.require(Requirement::Piece { first, len: p.n, total, of: run.into() });
    }
}

pub(super) fn geometry(b: &mut KernelBuilder, plan: &ReducePlan, p: &Params) {
    let shape = p.shape(plan);
    let several = plan.has_partials() && p.role.reads();
    let blocks = if several { shape.blocks() } else { 1u64.into() };
    let block = match p.results {
        Results::Columns(..) => (plan.block() / plan.group(), plan.group()),
        Results::Array | Results::Rows(_) | Results::Segments(..) => (plan.block(), 1),
    };
    let grid = match p.results {
        Results::Array => [blocks, 1u64.into(), 1u64.into()],
        Results::Rows(_) | Results::Segments(..) | Results::Columns(..) => {
            [shape.tiles(), blocks, 1u64.into()]
        }
    };
    b.geometry(Geometry { block, grid, blocks_per_sm: plan.spec().blocks_per_sm });
}
