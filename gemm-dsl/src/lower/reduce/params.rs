//! The parameters of a kernel in rounds: arrays with their extents and strides, what a launch must satisfy, and
//! its grid.

use super::fold::Fold;
use super::place::{self, Params};
use super::rounds::Role;
use crate::ir::{Elem, Expr, Extent, Geometry, KernelBuilder, Operand, Requirement, Ty};
use crate::plan::ReducePlan;
use crate::spec::Over;

pub(super) fn params(
    k: &mut KernelBuilder,
    plan: &ReducePlan,
    role: Role,
    wide: bool,
    fold: &Fold,
) -> Params {
    let (spec, over) = (plan.spec(), plan.spec().over);
    let reads = role != Role::Last;
    let mut inputs = Vec::new();
    let names = if reads { spec.inputs() } else { Vec::new() };
    for (n, name) in names.iter().enumerate() {
        let name = if spec.map.is_some() { name } else { "in" };
        inputs.push(k.global(name, plan.types().element, Operand::Input(n)));
        if spec.map.is_some() {
            k.named_by_user();
        }
    }
    let has_offsets = over == Over::Segments;
    let offsets =
        has_offsets.then(|| k.global("offsets", plan.types().index, Operand::Input(inputs.len())));
    let mut outputs = Vec::new();
    if role != Role::First {
        let results = spec.results();
        for (n, (name, elem)) in results.iter().enumerate() {
            let name = if results.len() == 1 { "out".to_owned() } else { format!("out_{name}") };
            outputs.push(k.global(&name, *elem, Operand::Output(n)));
        }
    }
    let mut partials = Vec::new();
    if role != Role::Whole {
        for (n, part) in fold.parts().iter().enumerate() {
            let one = fold.parts().len() == 1;
            let name = if one { "partials".to_owned() } else { format!("partial_{}", part.plural) };
            partials.push(k.global(&name, part.elem, Operand::Temp(n)));
        }
    }
    let last = Operand::Temp(partials.len());
    let tickets = (role == Role::Once).then(|| k.global("tickets", Elem::U32, last));
    let n = k.extent("n", Ty::U64, Extent::LENGTH);
    let outer = place::outer_extent(over).map(|extent| {
        let name = match over {
            Over::Middle => "matrices",
            Over::Segments => "segments",
            _ => "rows",
        };
        k.extent(name, Ty::U64, extent)
    });
    let inner = place::inner_extent(over).map(|extent| k.extent("columns", Ty::U64, extent));

    let vector = u64::from(plan.vector());
    let wide = (wide && reads).then_some(vector);
    let extent = |scalar: Option<_>| scalar.map(Expr::from);
    let dims = place::elements(n.into(), extent(outer), extent(inner), over);
    for (operand, input) in inputs.iter().enumerate() {
        let name = if spec.map.is_some() { names[operand] } else { "in" };
        let strides = place::strides(k, plan, operand, (name, &dims), wide);
        k.shape(*input, dims.clone(), strides);
        if wide.is_some() {
            k.require(Requirement::Aligned { operand: Operand::Input(operand), bytes: 16 });
        }
    }
    let contiguous = match over {
        Over::Rows => Some(n),
        Over::Columns | Over::Middle => inner,
        Over::All | Over::Segments => None,
    };
    if let (Some(of), Some(scalar)) = (wide, contiguous) {
        k.require(Requirement::Multiple { scalar, of });
    }
    if let (Some(offsets), Some(segments)) = (offsets, outer) {
        k.shape(offsets, [Expr::from(segments) + 1u64], [1.into()]);
    }
    let results = place::results(over, extent(outer), extent(inner));
    for output in &outputs {
        k.shape(*output, results.clone(), place::packed(&results));
    }
    let parts = place::partial_dims(over, &results, place::parts(plan, n.into()));
    for array in &partials {
        k.shape(*array, parts.clone(), place::packed(&parts));
    }
    if let Some(tickets) = tickets {
        k.shape(tickets, [place::tickets(plan, extent(outer), extent(inner))], [1.into()]);
    }
    Params { inputs, outputs, partials, tickets, offsets, n, outer, inner }
}

pub(super) fn geometry(k: &mut KernelBuilder, plan: &ReducePlan, role: Role, p: &Params) {
    let several = plan.has_partials() && role != Role::Last;
    let parts = if several { place::parts(plan, p.n.into()) } else { 1u64.into() };
    let per_block = u64::from(plan.results_per_block());
    let (block, grid) = match (p.outer, p.inner) {
        (None, None) => ((plan.block(), 1), [parts, 1u64.into(), 1u64.into()]),
        (Some(rows), None) => {
            let blocks = match per_block {
                1 => rows.into(),
                many => Expr::from(rows).div_ceil(many),
            };
            ((plan.block(), 1), [blocks, parts, 1u64.into()])
        }
        (outer, Some(_)) => {
            let tiles = place::tickets(plan, outer.map(Expr::from), p.inner.map(Expr::from));
            ((plan.block() / plan.group(), plan.group()), [tiles, parts, 1u64.into()])
        }
    };
    k.geometry(Geometry { block, grid, blocks_per_sm: 1 });
}
