//! A launch of a reduction: its arrays are found, measured and bound.

use super::shape::{self, Axes};
use crate::backend::Backend;
use crate::device::{Device, On, dispatch};
use crate::dyn_array::{AnyInput, AnyOutput, Finds};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::LocatedOperand;
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::segments::Cut;
use gemm_dsl::ir::contract::{ArrayAxis, ContractError, Need, Subject};
use gemm_dsl::ir::program::Array;
use gemm_dsl::ir::{Extent, Operand};
use gemm_dsl::spec::{Over, ReduceSpec};
use std::sync::Arc;

/// What a launch is given: as many arrays as the program has inputs beside the offsets, and outputs.
pub struct ReduceArrays<'g, 'a, 'o> {
    /// The arrays that are folded.
    pub inputs: &'g [AnyInput<'a>],
    /// The segments of a kernel `over: segments`.
    pub segments: Option<&'g Cut<'a>>,
    /// The arrays for results.
    pub outputs: &'g mut [AnyOutput<'o>],
}

/// Launches a reduction.
pub fn fold(
    device: &Device,
    program: &Arc<CachedProgram>,
    given: ReduceArrays<'_, '_, '_>,
) -> Result<LaunchReport> {
    dispatch!(device, on => fold_on(on, program, given))
}

/// The extents (outer, len, inner) of what the first input says is folded; those that it has not are 1.
pub(super) fn extents(
    device: &Device,
    spec: &ReduceSpec,
    inputs: &[AnyInput<'_>],
) -> Result<(u64, u64, u64)> {
    let (Some(input), Some(name)) = (inputs.first(), spec.inputs().into_iter().next()) else {
        unreachable!("a reduction has an input")
    };
    dispatch!(device, on => extents_on(on, spec.over, name, *input))
}

fn extents_on<B: Finds>(
    on: On<'_, B>,
    over: Over,
    name: &str,
    input: AnyInput<'_>,
) -> Result<(u64, u64, u64)> {
    let found = B::read_any(on, input, name)?;
    let axes = shape::axes(over, name, &found)?;
    let of = |extent| extent_of(&axes, extent);
    Ok((of(Extent::OUTER), of(Extent::LENGTH), of(Extent::INNER)))
}

fn fold_on<B: Finds>(
    on: On<'_, B>,
    prepared: &Arc<CachedProgram>,
    given: ReduceArrays<'_, '_, '_>,
) -> Result<LaunchReport> {
    let spec = prepared.spec::<ReduceSpec>();
    let over = spec.over;
    check_segments(over, given.segments.is_some())?;
    let (inputs, outputs) = (&prepared.program.inputs, &prepared.program.outputs);

    let mut read = Vec::with_capacity(inputs.len());
    for (n, (input, array)) in given.inputs.iter().zip(inputs).enumerate() {
        let found = B::read_any(on, *input, &array.name)?;
        check_elements(prepared, Operand::Input(n), array, &found)?;
        read.push((&*array.name, found));
    }
    let offsets = match (given.segments, inputs.last()) {
        (Some(cut), Some(array)) => {
            let found = B::read_any(on, AnyInput(&*cut.offsets), &array.name)?;
            check_elements(prepared, Operand::Input(read.len()), array, &found)?;
            Some((&*array.name, found, cut))
        }
        _ => None,
    };
    let mut written = Vec::with_capacity(outputs.len());
    for (n, (output, array)) in given.outputs.iter_mut().zip(outputs).enumerate() {
        let found = B::write_any(on, output, &array.name)?;
        check_elements(prepared, Operand::Output(n), array, &found)?;
        written.push((&*array.name, found));
    }

    let mut lies: Vec<(&str, Axes)> = Vec::with_capacity(read.len());
    for (name, input) in &read {
        let axes = shape::axes(over, name, input)?;
        if let Some((first, of_first)) = lies.first() {
            shape::same((first, of_first), (name, &axes))?;
        }
        lies.push((name, axes));
    }
    let Some((first, folded)) = lies.first() else { unreachable!("a reduction has an input") };
    let length = extent_of(folded, Extent::LENGTH);
    check_length(spec, first, length)?;
    if let Some((_, _, cut)) = &offsets
        && cut.end > length
    {
        let need = format!("the last of the segments ends at element {}", cut.end);
        return Err(Error::WrongExtent { argument: (*first).to_owned(), has: length, need });
    }
    let count = |extent| match (extent, &offsets) {
        (Extent::SEGMENTS, Some((_, _, cut))) => cut.count,
        (extent, _) => extent_of(folded, extent),
    };
    let problem: Vec<u64> = prepared.program.extents.iter().map(|e| count(*e)).collect();
    let extents = prepared.program.extents.iter().zip(&problem);
    // Of segments the length is that of the array, of others what becomes one result.
    let of_results = extents.filter(|(extent, _)| **extent != Extent::LENGTH);
    let of_results: Vec<(Extent, u64)> = of_results.map(|(extent, n)| (*extent, *n)).collect();

    let mut bound_inputs = Vec::with_capacity(inputs.len());
    for ((name, input), (_, axes)) in read.iter().zip(&lies) {
        let mut along = [ArrayAxis { extent: 0, stride: 0 }; 3];
        let rank = axes.len();
        for (to, (_, axis)) in along.iter_mut().zip(axes) {
            *to = *axis;
        }
        bound_inputs.push(BoundArray::array(name, input.place.clone(), &along[..rank]));
    }
    if let Some((name, found, cut)) = &offsets {
        bound_inputs.push(BoundArray::vector(name, found.place.clone(), cut.count + 1));
    }
    let mut bound_outputs = Vec::with_capacity(outputs.len());
    for (name, results) in &written {
        bound_outputs.push(shape::room(over, name, results, &of_results)?);
    }
    launch(on, prepared, &bound_inputs, &bound_outputs, &problem)
}

fn extent_of(axes: &Axes, extent: Extent) -> u64 {
    let found = axes.iter().find(|(of, _)| *of == extent);
    found.map_or(1, |(_, axis)| axis.extent)
}

/// Checks that segments are given where they are folded, and only there.
pub(super) fn check_segments(over: Over, are_given: bool) -> Result<()> {
    let (found, remedy) = match (over == Over::Segments, are_given) {
        (true, true) | (false, false) => return Ok(()),
        (true, false) => (
            "no segments",
            "Launch it by `launch_segments`; by name, add them with `.segments(&segments)`",
        ),
        (false, true) => ("segments", "Leave them out, or use a kernel `over: segments`"),
    };
    Err(Error::WrongOver { over, found: found.to_owned(), remedy })
}

/// As the contract would, but before the first of several launches.
fn check_elements<B: Backend>(
    prepared: &CachedProgram,
    operand: Operand,
    array: &Array,
    given: &LocatedOperand<'_, B>,
) -> Result<()> {
    let (expected, found) = (array.elem, given.place.elem());
    if expected == found {
        return Ok(());
    }
    let subject = Subject::Array { operand, name: array.name.to_string() };
    let kernel = prepared.program.preferred().name.clone();
    let need = Need::Element { expected, found };
    Err(Error::Unmet(Box::new(ContractError { kernel, subject, need, value: 0 })))
}

/// Checks that there is an index to be found. A row or a segment without elements has the greatest there is.
fn check_length(spec: &ReduceSpec, argument: &str, length: u64) -> Result<()> {
    let index = spec.operator().filter(|op| op.is_index());
    let (Some(op), Over::All, 0) = (index, spec.over, length) else { return Ok(()) };
    let need = format!("the index that `op: {op}` gives is that of one of them");
    Err(Error::WrongExtent { argument: argument.to_owned(), has: 0, need })
}
