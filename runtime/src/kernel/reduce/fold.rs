//! Launch of a reduction: locates its arrays, checks their extents, and binds them.

use super::shape::{self, NamedAxes};
use crate::backend::Backend;
use crate::device::{Device, On, dispatch};
use crate::dyn_array::{AnyInput, AnyOutput, Finds};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::LocatedOperand;
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::segments::Cut;
use gemm_dsl::ir::contract::{ContractError, Need, Subject};
use gemm_dsl::ir::program::{Array, KernelId};
use gemm_dsl::ir::{Elem, Extent, HostExpr, Ty};
use gemm_dsl::spec::{Over, ReduceSpec};
use smallvec::SmallVec;
use std::sync::Arc;

/// Arrays of a launch: one for each input of the program except the offsets, and one for each
/// output.
pub struct ReduceArrays<'g, 'a, 'o> {
    /// Arrays to fold, in the order of `map`.
    pub inputs: &'g [AnyInput<'a>],
    /// Types and bits of the numbers, in the order of `map` and then of `finish`.
    pub numbers: &'g [(Elem, u64)],
    /// Segments, for an `over: segments` kernel.
    pub segments: Option<&'g Cut<'a>>,
    /// Arrays for the results, in the order of the spec.
    pub outputs: &'g mut [AnyOutput<'o>],
}

/// Launches the program of a reduction on these arrays.
pub fn fold(
    device: &Device,
    program: &Arc<CachedProgram>,
    given: ReduceArrays<'_, '_, '_>,
) -> Result<LaunchReport> {
    dispatch!(device, on => fold_on(on, program, given))
}

/// Extents (outer, len, inner) of the first input. An extent that `over` does not have is 1.
pub(super) fn extents(
    device: &Device,
    spec: &ReduceSpec,
    inputs: &[AnyInput<'_>],
) -> Result<(u64, u64, u64)> {
    let (Some(input), Some(name)) = (inputs.first(), spec.inputs().into_iter().next()) else {
        unreachable!("ReduceSpec::inputs: there is an input")
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
    Ok((axes.extent(Extent::OUTER), axes.extent(Extent::LENGTH), axes.extent(Extent::INNER)))
}

fn fold_on<B: Finds>(
    on: On<'_, B>,
    program: &Arc<CachedProgram>,
    given: ReduceArrays<'_, '_, '_>,
) -> Result<LaunchReport> {
    let over = program.over();
    check_segments(over, given.segments.is_some())?;
    let (inputs, outputs) = (&program.program().inputs, &program.program().outputs);

    let mut read = SmallVec::<[_; 4]>::new();
    for (input, array) in given.inputs.iter().zip(inputs) {
        let found = B::read_any(on, *input, &array.name)?;
        check_elements(program, array, &found)?;
        read.push((array, found));
    }
    let offsets = match (given.segments, inputs.last()) {
        (Some(cut), Some(array)) => {
            let found = B::read_any(on, AnyInput(&*cut.offsets), &array.name)?;
            check_elements(program, array, &found)?;
            Some((array, found, cut))
        }
        _ => None,
    };
    let mut written = SmallVec::<[_; 2]>::new();
    for (output, array) in given.outputs.iter_mut().zip(outputs) {
        let found = B::write_any(on, output, &array.name)?;
        check_elements(program, array, &found)?;
        written.push((array, found));
    }

    let mut lies = SmallVec::<[NamedAxes<'_>; 4]>::new();
    for (array, input) in &read {
        let axes = shape::axes(over, &array.name, input)?;
        if let Some(first) = lies.first() {
            shape::same(first, &axes)?;
        }
        lies.push(axes);
    }
    let Some(folded) = lies.first() else { unreachable!("ReduceSpec::inputs: there is an input") };
    let length = folded.extent(Extent::LENGTH);
    check_length(program, folded.name, length)?;
    if let Some((_, _, cut)) = &offsets
        && cut.end > length
    {
        let need = format!("the last segment ends at element {}", cut.end);
        return Err(Error::WrongExtent { argument: folded.name.to_owned(), has: length, need });
    }
    let count = |extent| match (extent, &offsets) {
        (Extent::SEGMENTS, Some((_, _, cut))) => cut.count,
        (extent, _) => folded.extent(extent),
    };
    let extents = program.program().extents.iter().map(|extent| (*extent, count(*extent)));
    let extents: shape::Extents = extents.collect();
    let values = program.program().bind(&extents, &numbers(program, given.numbers)?)?;
    let of_results = shape::of_results(&extents, program.topk());

    let mut arrays = SmallVec::<[_; 4]>::new();
    for ((array, input), axes) in read.iter().zip(&lies) {
        let bound = BoundArray::array(&array.name, input.place.clone(), &axes.layout());
        arrays.push((array.operand, bound));
    }
    if let Some((array, found, cut)) = &offsets {
        let bound = BoundArray::vector(&array.name, found.place.clone(), cut.count + 1);
        arrays.push((array.operand, bound));
    }
    for (array, results) in &written {
        arrays.push((array.operand, shape::room(over, &array.name, results, &of_results)?));
    }
    launch(on, program, &values, &arrays)
}

/// Names and bits of the numbers, after a check of their types.
fn numbers<'p>(
    program: &'p CachedProgram,
    given: &[(Elem, u64)],
) -> Result<SmallVec<[(&'p str, u64); 4]>> {
    let mut numbers = SmallVec::new();
    for (argument, &(elem, bits)) in program.program().arguments.iter().zip(given) {
        if argument.ty != Ty::Scalar(elem) {
            return Err(Error::WrongOperand {
                operand: argument.name.to_string(),
                needed: number_of(argument.ty),
                found: format!("the type {elem}"),
                remedy: "Pass a number of its type, such as `2.0_f32`",
            });
        }
        numbers.push((&*argument.name, bits));
    }
    Ok(numbers)
}

/// Description of a number of this type, for messages.
pub(in crate::kernel) fn number_of(ty: Ty) -> &'static str {
    match ty {
        Ty::F64 => "a number, an f64",
        Ty::I32 => "a number, an i32",
        Ty::U32 => "a number, a u32",
        Ty::I64 => "a number, an i64",
        _ => "a number, an f32",
    }
}

/// Checks that segments are passed exactly if the kernel folds segments.
pub(super) fn check_segments(over: Over, are_given: bool) -> Result<()> {
    let (found, remedy) = match (over == Over::Segments, are_given) {
        (true, true) | (false, false) => return Ok(()),
        (true, false) => (
            "no segments",
            "Launch it by `launch_segments`, or pass them to a call by name with \
             `.segments(&segments)`",
        ),
        (false, true) => ("segments", "Leave them out, or use an `over: segments` kernel"),
    };
    Err(Error::WrongOver { over, found: found.to_owned(), remedy })
}

/// Checks the element types. The contract checks them too, but only after the first of several
/// launches.
pub(in crate::kernel) fn check_elements<B: Backend>(
    program: &CachedProgram,
    array: &Array<HostExpr>,
    given: &LocatedOperand<'_, B>,
) -> Result<()> {
    let (expected, found) = (array.elem, given.place.elem());
    if expected == found {
        return Ok(());
    }
    let subject = Subject::Array { operand: array.operand, name: array.name.to_string() };
    let contract = program.contract(KernelId(0));
    let (kernel, family) = ((*contract.kernel).into(), contract.family);
    let need = Need::Element { expected, found };
    Err(ContractError { kernel, family, subject, need, value: 0 }.into())
}

/// Checks that the whole array has an element, so that `argmax` and `argmin` have an index. For a
/// row or a segment without elements they return the greatest index instead. A selection needs as
/// many elements as it returns.
fn check_length(program: &CachedProgram, argument: &str, length: u64) -> Result<()> {
    if let Some(k) = program.topk().filter(|k| length < u64::from(*k)) {
        let of = if program.over() == Over::All { "an array" } else { "each row" };
        let need = format!("`topk: {k}` needs {of} to have at least {k} elements");
        return Err(Error::WrongExtent { argument: argument.to_owned(), has: length, need });
    }
    let (Some(op), Over::All, 0) = (program.index(), program.over(), length) else {
        return Ok(());
    };
    let need = format!("`op: {op}` needs at least one, whose index is the result");
    Err(Error::WrongExtent { argument: argument.to_owned(), has: 0, need })
}
