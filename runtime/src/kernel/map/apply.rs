//! Launch of an elementwise kernel: locates its arrays, checks their shapes, and binds them.

use super::super::reduce::{check_elements, number_of};
use super::operands::Passed;
use crate::backend::Backend;
use crate::device::{Device, On, dispatch};
use crate::dyn_array::{AnyOutput, Finds};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::LocatedOperand;
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::shape::Shape;
use gemm_dsl::error::counted;
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::ir::program::Array;
use gemm_dsl::ir::{Elem, Extent, HostExpr, Operand, Ty};
use gemm_dsl::spec::{Along, ArgSlot, EpilogueArg};
use smallvec::SmallVec;
use std::sync::Arc;

/// Launches the program of an elementwise kernel on its operands and results.
pub(in crate::kernel) fn apply(
    device: &Device,
    program: &Arc<CachedProgram>,
    operands: &[Passed<'_>],
    results: &mut [AnyOutput<'_>],
) -> Result<LaunchReport> {
    dispatch!(device, on => apply_on(on, program, operands, results))
}

/// Array of an operand: its own, or that of a result.
enum Source<'a, B: Backend> {
    Own(LocatedOperand<'a, B>),
    Result(usize),
}

impl<'a, B: Backend> Source<'a, B> {
    /// `written` are the arrays of the results.
    fn located<'s>(&'s self, written: &'s [LocatedOperand<'a, B>]) -> &'s LocatedOperand<'a, B> {
        match self {
            Self::Own(found) => found,
            Self::Result(nth) => &written[*nth],
        }
    }
}

fn apply_on<B: Finds>(
    on: On<'_, B>,
    program: &Arc<CachedProgram>,
    operands: &[Passed<'_>],
    results: &mut [AnyOutput<'_>],
) -> Result<LaunchReport> {
    let (inputs, outputs) = (&program.program().inputs, &program.program().outputs);
    let mut written = SmallVec::<[_; 2]>::new();
    for (result, array) in results.iter_mut().zip(outputs) {
        let found = B::write_any(on, result, &array.name)?;
        check_elements(program, array, &found)?;
        written.push(found);
    }
    let mut read = SmallVec::<[(&EpilogueArg, Source<'_, B>); 6]>::new();
    let mut numbers = SmallVec::<[(&str, u64); 4]>::new();
    for (argument, passed) in program.operands().iter().zip(operands) {
        match (argument.slot, *passed) {
            (ArgSlot::Number(nth), Passed::Number { elem, bits }) => {
                check_number(program, argument, nth, elem)?;
                numbers.push((&argument.name, bits));
            }
            (ArgSlot::Array(nth), Passed::Array(array)) => {
                let found = B::read_any(on, array, &argument.name)?;
                check_elements(program, &inputs[nth], &found)?;
                read.push((argument, Source::Own(found)));
            }
            (ArgSlot::Array(nth), Passed::Result(result)) => {
                let Some(found) = written.get(result).filter(|_| argument.along == Along::Mn)
                else {
                    return Err(no_result(argument, result, written.len()));
                };
                check_elements(program, &inputs[nth], found)?;
                read.push((argument, Source::Result(result)));
            }
            (ArgSlot::Array(_), Passed::Number { elem, .. }) => {
                return Err(number_for_array(argument, elem));
            }
            (ArgSlot::Number(_), Passed::Array(_) | Passed::Result(_)) => {
                return Err(mismatched(argument, "an array".to_owned(), "Pass the number itself"));
            }
            (ArgSlot::Output(_), _) => {
                unreachable!("MapSpec::operands: results are no operands")
            }
        }
    }
    let mut matrices = SmallVec::<[NamedMatrix<'_>; 8]>::new();
    for (found, array) in written.iter().zip(outputs).filter(|(_, array)| is_matrix(array)) {
        matrices.push(NamedMatrix::new(&array.name, found)?);
    }
    let results = matrices.len();
    for (argument, source) in read.iter().filter(|(argument, _)| argument.along == Along::Mn) {
        matrices.push(NamedMatrix::new(&argument.name, source.located(&written))?);
    }
    let shapes = shapes(&matrices)?;
    let form = Form::new(&shapes, program.is_flat());
    let (m, n) = form.extents(&shapes);

    let mut bound = SmallVec::<[(Operand, BoundArray<'_, B>); 8]>::new();
    let (of_results, of_operands) = shapes.split_at(results);
    let (mut of_results, mut of_operands) = (of_results.iter(), of_operands.iter());
    for (argument, source) in &read {
        let ArgSlot::Array(nth) = argument.slot else { continue };
        let found = source.located(&written);
        let array = match argument.along {
            Along::N => vector(&argument.name, Along::N, found, n)?,
            Along::M => vector(&argument.name, Along::M, found, m)?,
            Along::Mn => {
                let shape = of_operands.next().expect("shapes: one for each matrix");
                BoundArray::array(&argument.name, found.place.clone(), &form.axes(shape))
            }
            Along::Nothing => unreachable!("MapSpec::operands: a number has no array"),
            Along::Pairs | Along::Batch | Along::BatchN | Along::BatchM => no_batch(),
        };
        bound.push((Operand::Input(nth), array));
    }
    for (found, array) in written.iter().zip(outputs) {
        let bind = match is_matrix(array).then(|| of_results.next()).flatten() {
            Some(shape) => BoundArray::array(&array.name, found.place.clone(), &form.axes(shape)),
            None => vector(&array.name, Along::M, found, m)?,
        };
        bound.push((array.operand, bind));
    }
    let sms = u64::from(on.device.target().sms);
    let mut extents = SmallVec::<[_; 3]>::from_slice(&[(Extent::M, m), (Extent::N, n)]);
    extents.extend(program.program().extents.contains(&Extent::SMS).then_some((Extent::SMS, sms)));
    let values = program.program().bind(&extents, &numbers)?;
    launch(on, program, &values, &bound)
}

fn number_for_array(argument: &EpilogueArg, elem: Elem) -> Error {
    let remedy = "Upload the elements and pass a reference to them";
    mismatched(argument, format!("a number, an {elem}"), remedy)
}

/// An `[m, n]` array of a call: its shape, or its length if it is a vector.
struct NamedMatrix<'n> {
    name: &'n str,
    shape: Option<Shape>,
    len: u64,
}

impl<'n> NamedMatrix<'n> {
    /// # Errors
    /// [`Error::List`] for a list, [`Error::WrongOperand`] for a batch.
    fn new<B: Backend>(name: &'n str, found: &LocatedOperand<'_, B>) -> Result<Self> {
        let (_, len) = found.array(name)?;
        if let Some(Shape { rows, cols, batch: Some(batch), .. }) = found.shape {
            return Err(Error::WrongOperand {
                operand: name.to_owned(),
                needed: "one matrix",
                found: format!("a batch of {} matrices of {rows}x{cols}", batch.count()),
                remedy: "Launch the kernel for each matrix of the batch",
            });
        }
        Ok(Self { name, shape: found.shape, len })
    }
}

/// Shape of each array, after checking that all agree. A vector is a row.
fn shapes(matrices: &[NamedMatrix<'_>]) -> Result<SmallVec<[Shape; 8]>> {
    let first = matrices.iter().find(|matrix| matrix.shape.is_some());
    let mut shapes = SmallVec::<[Shape; 8]>::new();
    for matrix in matrices {
        let shape = match (matrix.shape, first) {
            (Some(shape), _) => shape,
            // The length of a vector is a `usize`.
            (None, None) => Shape::packed(1, matrix.len as usize),
            (None, Some(_)) => {
                return Err(Error::WrongOperand {
                    operand: matrix.name.to_owned(),
                    needed: "a matrix, as another array of the call is",
                    found: format!("a vector of {}", counted(matrix.len, "element")),
                    remedy: "Pass a view, such as `MatrixRef::new(&elements, m, n)`",
                });
            }
        };
        if let (Some(first), Some(of)) = (shapes.first(), matrices.first()) {
            let differs = |extent, a, b| match a == b {
                true => Ok(()),
                false => {
                    let (first, other) = ((of.name.to_owned(), a), (matrix.name.to_owned(), b));
                    Err(Error::Extents { extent, first, other })
                }
            };
            differs(Extent::M, first.rows, shape.rows)?;
            differs(Extent::N, first.cols, shape.cols)?;
        }
        shapes.push(shape);
    }
    Ok(shapes)
}

/// Form in which the matrices of a call are passed to the kernel.
#[derive(Clone, Copy)]
enum Form {
    AsTheyAre,
    /// As their transposes, which are row-major.
    Transposed,
    /// As one row of all elements, which are consecutive.
    Flat,
}

impl Form {
    /// Only a kernel whose elements do not depend on rows or columns may change the form.
    fn new(shapes: &[Shape], is_flat: bool) -> Self {
        let all = |is: &dyn Fn(&Shape) -> bool| is_flat && shapes.iter().all(is);
        if all(&Shape::is_packed) || all(&|shape| shape.transposed().is_packed()) {
            Self::Flat
        } else if all(&|shape| shape.transposed().is_row_major()) {
            Self::Transposed
        } else {
            Self::AsTheyAre
        }
    }

    /// Extents m and n of the kernel.
    fn extents(self, shapes: &[Shape]) -> (u64, u64) {
        let Some(shape) = shapes.first() else { unreachable!("MapPlan: there is a result") };
        let [m, n, _] = self.axes(shape).map(|axis| axis.extent);
        (m, n)
    }

    /// Axes of an array. The last axis has one element, with a stride of 1.
    fn axes(self, shape: &Shape) -> [ArrayAxis; 3] {
        let axis = |extent, stride| ArrayAxis { extent: extent as u64, stride: stride as u64 };
        let [rows, cols] = match self {
            Self::AsTheyAre => {
                [axis(shape.rows, shape.row_stride), axis(shape.cols, shape.col_stride)]
            }
            Self::Transposed => {
                [axis(shape.cols, shape.col_stride), axis(shape.rows, shape.row_stride)]
            }
            Self::Flat => [axis(1, shape.count()), axis(shape.count(), 1)],
        };
        // The stride of a single row or column does not matter. With these, a kernel with 16-byte
        // accesses fits if it can.
        let cols = if cols.extent <= 1 { ArrayAxis { stride: 1, ..cols } } else { cols };
        let rows = if rows.extent <= 1 { ArrayAxis { stride: cols.extent, ..rows } } else { rows };
        [rows, cols, ArrayAxis { extent: 1, stride: 1 }]
    }
}

/// Returns true if a result has an element for each row and column.
fn is_matrix(result: &Array<HostExpr>) -> bool {
    result.dims.len() > 1
}

/// Vector of a call, checked to have an element for each row or column.
fn vector<'n, B: Backend>(
    name: &'n str,
    along: Along,
    found: &'n LocatedOperand<'_, B>,
    needed: u64,
) -> Result<BoundArray<'n, B>> {
    let (_, has) = found.array(name)?;
    if let Some(shape) = found.shape {
        let given = format!("a matrix of {}x{}", shape.rows, shape.cols);
        let operand = format!("{name}{along}");
        return Err(wrong(operand, along, given, "Pass a buffer, or a part of one"));
    }
    if has < needed {
        let (extent, line) = if along == Along::N { ("n", "column") } else { ("m", "row") };
        let need = format!("{extent} = {needed} are needed, one for each {line} of the results");
        return Err(Error::WrongExtent { argument: name.to_owned(), has, need });
    }
    Ok(BoundArray::vector(name, found.place.clone(), needed))
}

/// Checks the type of a number that a call passes by name.
fn check_number(
    program: &CachedProgram,
    argument: &EpilogueArg,
    nth: usize,
    found: Elem,
) -> Result<()> {
    let needed = match program.program().arguments.get(nth).map(|argument| argument.ty) {
        Some(Ty::Scalar(elem)) if elem == found => return Ok(()),
        ty => number_of(ty.unwrap_or(Ty::F32)),
    };
    let (operand, remedy) = (argument.to_string(), "Pass a number of its type, such as `2.0_f32`");
    Err(Error::WrongOperand { operand, needed, found: format!("the type {found}"), remedy })
}

fn no_result(argument: &EpilogueArg, number: usize, results: usize) -> Error {
    let (found, remedy) = match argument.along {
        Along::Mn => (
            format!("result {number} of {}", counted(results as u64, "result")),
            "Results are numbered from 0 on",
        ),
        _ => ("a result".to_owned(), "Only an `[m, n]` operand can be in place"),
    };
    mismatched(argument, found, remedy)
}

fn mismatched(argument: &EpilogueArg, found: String, remedy: &'static str) -> Error {
    wrong(argument.to_string(), argument.along, found, remedy)
}

fn no_batch() -> ! {
    unreachable!("MapSpec::operands: no operand has the index `batch`")
}

fn wrong(operand: String, along: Along, found: String, remedy: &'static str) -> Error {
    let needed = match along {
        Along::Nothing => "a number",
        Along::N => "a vector with an element for each column",
        Along::M => "a vector with an element for each row",
        Along::Mn => "a matrix of the shape of the results",
        Along::Pairs | Along::Batch | Along::BatchN | Along::BatchM => no_batch(),
    };
    Error::WrongOperand { operand, needed, found, remedy }
}
