//! Reductions of arrays that are divided into shards, one for each device. A device first folds
//! each run of its shard into a partial result. The partial results of all shards are then folded
//! into results.

use super::shape;
use crate::device::{Device, On, dispatch};
use crate::dyn_array::{AnyInput, AnyOutput, Finds};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::LocatedOperand;
use gemm_dsl::ir::program::{Array, LaunchProgram, PackedLayout, ProgramValues};
use gemm_dsl::ir::{Extent, HostExpr};

/// Folds the elements of a shard into partial results, which are packed arrays of (outer, runs,
/// inner). The shard starts at element `first` of `total` elements along the folded axis.
pub fn fold_shard(
    device: &Device,
    line: &str,
    (inputs, numbers): (&[AnyInput<'_>], &[(&str, u64)]),
    partials: &mut [AnyOutput<'_>],
    first: u64,
    total: u64,
) -> Result<()> {
    let program = device.programs().of_shard(line)?;
    let over = program.over();
    dispatch!(device, on => {
        let read = read_all(on, &program.program().inputs, inputs)?;
        let axes = read.iter().map(|(array, found)| shape::axes(over, &array.name, found));
        let axes = axes.collect::<Result<Vec<_>>>()?;
        let extent = |extent: Extent| match extent {
            Extent::FIRST => first,
            Extent::TOTAL => total,
            extent => axes.first().map_or(1, |axes| axes.extent(extent)),
        };
        let extents = program.program().extents.iter().map(|of| (*of, extent(*of)));
        let numbers = taken(program.program(), numbers);
        let values = program.program().bind(&extents.collect::<Vec<_>>(), &numbers)?;
        let mut arrays = Vec::new();
        for ((array, found), axes) in read.iter().zip(&axes) {
            let bound = BoundArray::array(&array.name, found.place.clone(), &axes.layout());
            arrays.push((array.operand, bound));
        }
        let written = write_all(on, &program.program().outputs, partials)?;
        for (array, found) in &written {
            arrays.push((array.operand, packed(&values, array, found)?));
        }
        launch(on, &program, &values, &arrays).map(drop)
    })
}

/// Folds the partial results of all shards into results. `extents` are the extents (outer, length,
/// inner) of the whole array.
pub fn fold_partials(
    device: &Device,
    line: &str,
    (partials, numbers): (&[AnyInput<'_>], &[(&str, u64)]),
    results: &mut [AnyOutput<'_>],
    extents: [(Extent, u64); 3],
) -> Result<()> {
    let program = device.programs().of_partials(line)?;
    let over = program.over();
    dispatch!(device, on => {
        let mut extents = extents.to_vec();
        extents.retain(|(extent, _)| program.program().extents.contains(extent));
        let values = program.program().bind(&extents, &taken(program.program(), numbers))?;
        let mut arrays = Vec::new();
        let read = read_all(on, &program.program().inputs, partials)?;
        for (array, found) in &read {
            arrays.push((array.operand, packed(&values, array, found)?));
        }
        let of_results = shape::of_results(&extents, None);
        let written = write_all(on, &program.program().outputs, results)?;
        for (array, found) in &written {
            arrays.push((array.operand, shape::room(over, &array.name, found, &of_results)?));
        }
        launch(on, &program, &values, &arrays).map(drop)
    })
}

/// Numbers of a reduction that this program takes, by name.
fn taken<'n>(program: &LaunchProgram, numbers: &[(&'n str, u64)]) -> Vec<(&'n str, u64)> {
    let takes = |name| program.arguments.iter().any(|argument| argument.name == name);
    numbers.iter().copied().filter(|(name, _)| takes(*name)).collect()
}

/// Array of a program, with the operand that the caller passes for it.
type FoundArray<'p, 'a, B> = (&'p Array<HostExpr>, LocatedOperand<'a, B>);

fn read_all<'p, 'a, B: Finds>(
    on: On<'a, B>,
    arrays: &'p [Array<HostExpr>],
    inputs: &[AnyInput<'a>],
) -> Result<Vec<FoundArray<'p, 'a, B>>> {
    let given = arrays.iter().zip(inputs);
    given.map(|(array, input)| Ok((array, B::read_any(on, *input, &array.name)?))).collect()
}

fn write_all<'p, 'a, B: Finds>(
    on: On<'a, B>,
    arrays: &'p [Array<HostExpr>],
    outputs: &'a mut [AnyOutput<'_>],
) -> Result<Vec<FoundArray<'p, 'a, B>>> {
    let given = arrays.iter().zip(outputs);
    given.map(|(array, output)| Ok((array, B::write_any(on, output, &array.name)?))).collect()
}

/// Packed array of partial results, with an element for each run.
fn packed<'n, B: Finds>(
    values: &ProgramValues,
    array: &'n Array<HostExpr>,
    found: &'n LocatedOperand<'_, B>,
) -> Result<BoundArray<'n, B>> {
    let PackedLayout { axes, len } = values.packed(&array.dims)?;
    let (_, has) = found.array(&array.name)?;
    if has < len {
        let need = format!("all runs together have {len} partial results");
        return Err(Error::WrongExtent { argument: array.name.to_string(), has, need });
    }
    Ok(BoundArray::array(&array.name, found.place.clone(), &axes))
}
