//! Reductions of arrays of which this device has a shard: its elements become partials, one for each run, and the partials
//! of all shards results.

use super::shape;
use crate::device::{Device, dispatch};
use crate::dyn_array::{AnyInput, AnyOutput, Finds};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::program::CachedProgram;
use gemm_dsl::ir::Extent;
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::spec::ReduceSpec;
use std::sync::Arc;

/// Folds the elements of a shard, which begins at `first` of `total` along the axis that is folded, into partials, which are
/// packed arrays of (outer, runs, inner).
pub fn fold_shard(
    device: &Device,
    line: &str,
    inputs: &[AnyInput<'_>],
    partials: &mut [AnyOutput<'_>],
    first: u64,
    total: u64,
) -> Result<()> {
    let program = device.programs().of_shard(line)?;
    let over = program.spec::<ReduceSpec>().over;
    dispatch!(device, on => {
        let names = program.program.inputs.iter();
        let read = inputs.iter().zip(names).map(|(input, array)| {
            let found = Finds::read_any(on, *input, &array.name)?;
            let axes = shape::axes(over, &array.name, &found)?;
            Ok((&*array.name, found, axes))
        });
        let read = read.collect::<Result<Vec<_>>>()?;
        let along = read.first().map(|(.., axes)| axes.as_slice()).unwrap_or_default();
        let extent = |extent: Extent| match extent {
            Extent::FIRST => first,
            Extent::TOTAL => total,
            extent => along.iter().find(|(of, _)| *of == extent).map_or(1, |(_, axis)| axis.extent),
        };
        let problem: Vec<u64> = program.program.extents.iter().map(|of| extent(*of)).collect();
        let bound = read.iter().map(|(name, found, axes)| {
            let axes: Vec<ArrayAxis> = axes.iter().map(|(_, axis)| *axis).collect();
            BoundArray::array(name, found.place.clone(), &axes)
        });
        let bound: Vec<BoundArray<'_, _>> = bound.collect();
        let packed = packed(&program, &program.program.outputs, &problem)?;
        let names = program.program.outputs.iter();
        let written = partials.iter_mut().zip(names).map(|(output, array)| {
            Ok((&*array.name, Finds::write_any(on, output, &array.name)?))
        });
        let written = written.collect::<Result<Vec<_>>>()?;
        let outputs = written.iter().zip(&packed).map(|((name, found), (axes, len))| {
            room(name, found.array(name)?.1, *len)?;
            Ok(BoundArray::array(name, found.place.clone(), axes))
        });
        launch(on, &program, &bound, &outputs.collect::<Result<Vec<_>>>()?, &problem)?;
        Ok(())
    })
}

/// Folds the partials of all shards into results; `extents` are (outer, length, inner) of the whole.
pub fn fold_partials(
    device: &Device,
    line: &str,
    partials: &[AnyInput<'_>],
    results: &mut [AnyOutput<'_>],
    (outer, length, inner): (u64, u64, u64),
) -> Result<()> {
    let program = device.programs().of_partials(line)?;
    let over = program.spec::<ReduceSpec>().over;
    dispatch!(device, on => {
        let extent = |extent: Extent| match extent {
            Extent::LENGTH => length,
            Extent::INNER => inner,
            _ => outer,
        };
        let extents = &program.program.extents;
        let problem: Vec<u64> = extents.iter().map(|of| extent(*of)).collect();
        let packed = packed(&program, &program.program.inputs, &problem)?;
        let names = program.program.inputs.iter();
        let read = partials.iter().zip(names).map(|(input, array)| {
            Ok((&*array.name, Finds::read_any(on, *input, &array.name)?))
        });
        let read = read.collect::<Result<Vec<_>>>()?;
        let bound = read.iter().zip(&packed).map(|((name, found), (axes, len))| {
            room(name, found.array(name)?.1, *len)?;
            Ok(BoundArray::array(name, found.place.clone(), axes))
        });
        let bound = bound.collect::<Result<Vec<_>>>()?;
        let of_results = extents.iter().filter(|of| **of != Extent::LENGTH);
        let of_results: Vec<(Extent, u64)> = of_results.map(|of| (*of, extent(*of))).collect();
        let names = program.program.outputs.iter();
        let written = results.iter_mut().zip(names).map(|(output, array)| {
            Ok((&*array.name, Finds::write_any(on, output, &array.name)?))
        });
        let written = written.collect::<Result<Vec<_>>>()?;
        let outputs = written.iter().map(|(name, found)| shape::room(over, name, found, &of_results));
        launch(on, &program, &bound, &outputs.collect::<Result<Vec<_>>>()?, &problem)?;
        Ok(())
    })
}

/// How packed arrays of a program lie, and how many elements each has.
fn packed(
    program: &Arc<CachedProgram>,
    arrays: &[gemm_dsl::ir::program::Array],
    problem: &[u64],
) -> Result<Vec<(Vec<ArrayAxis>, u64)>> {
    let known = program.program.known(problem)?;
    arrays.iter().map(|array| program.packed(&array.dims, &known)).collect()
}

fn room(argument: &str, has: u64, needed: u64) -> Result<()> {
    if has >= needed {
        return Ok(());
    }
    let need = format!("the partials of all runs are {needed}");
    Err(Error::WrongExtent { argument: argument.to_owned(), has, need })
}
