//! Elementwise kernels. A thread loads the operands' elements of several items, applies the
//! expression to them, and stores the results.
//!
//! An item is 16 bytes of the smallest element type in one row, or a single element in the variant
//! for any strides. Items are numbered row by row, and consecutive threads take consecutive items.
//!
//! [`arrays`] declares operands and results with their strides and requirements. [`place`] maps an
//! item to a row and a column. [`items`] loads, applies and stores. Kernels that fold over rows are
//! in [`rows`].

mod arrays;
mod items;
mod place;
mod rows;

use crate::expr::Lowered;
use crate::ir::program::{Program, Step};
use crate::ir::{
    Elem, Expr, Extent, Geometry, IrError, KernelBuilder, Operand, Special, Ty, Variant,
    VerifiedKernel, VerifiedProgram,
};
use crate::plan::MapPlan;
use crate::spec::{ArgSlot, MapResult};
use arrays::Arrays;
use items::Items;
use place::Places;

/// Rows that a kernel accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// One row, of any number of columns, in vectors of 16 bytes.
    One,
    /// Rows of whole vectors of 16 bytes.
    Vectors,
    /// Rows and columns with any strides, element by element.
    Any,
}

/// Builds the program of an elementwise kernel.
pub fn map(plan: &MapPlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let [m, n] = [Extent::M, Extent::N].map(|extent| program.extent(extent));
    let has_clusters = plan.spec().has_folds() && plan.parts_class().is_some();
    let sms = has_clusters.then(|| program.extent(Extent::SMS));
    let mut bind = Vec::new();
    for operand in plan.operands() {
        let dims = arrays::dims(operand.arg.along, &m, &n);
        match operand.arg.slot {
            ArgSlot::Array(nth) => {
                bind.push(program.input(Operand::Input(nth), operand.arg.name, operand.elem, dims))
            }
            ArgSlot::Number(_) => {
                program.argument(operand.arg.name, Ty::Scalar(operand.elem));
            }
            ArgSlot::Output(_) => unreachable!("MapSpec::operands: results are no operands"),
        }
    }
    for (nth, result) in plan.spec().results().into_iter().enumerate() {
        let dims = arrays::dims(result.along, &m, &n);
        bind.push(program.output(Operand::Output(nth), result.name, result.elem, dims));
    }
    if let Some(expression) = plan.rows() {
        program.steps = rows::steps(plan, &expression, &mut program, &bind, [m, n], sms)?;
        return VerifiedProgram::new(program);
    }
    let mut choose = Vec::new();
    for rows in [Rows::One, Rows::Vectors, Rows::Any] {
        if rows != Rows::One || plan.is_flat() {
            choose.push(program.kernel(kernel(plan, rows)?));
        }
    }
    program.steps = vec![Step::launch(choose, bind, vec![(Extent::M, m), (Extent::N, n)])];
    VerifiedProgram::new(program)
}

/// A result: the device function of its expression, and the operands that the function takes.
struct ResultFunction {
    function: Lowered,
    /// Indices of the operands, in the order of the function's parameters.
    operands: Vec<usize>,
    elem: Elem,
}

fn kernel(plan: &MapPlan, rows: Rows) -> Result<VerifiedKernel, IrError> {
    let name = match (rows, plan.is_flat()) {
        (Rows::Vectors, true) => format!("{}_rows", plan.kernel_name()),
        _ => plan.kernel_name(),
    };
    let mut b = KernelBuilder::new(name);
    b.title(match rows {
        Rows::One => "Elementwise kernel over an array of n elements.",
        Rows::Vectors | Rows::Any => "Elementwise kernel over m rows of n elements.",
    });
    b.title(format!("Generated from map_kernel!({})", plan.spec()));
    b.title(match rows {
        Rows::One => "Vector variant with 16-byte accesses, for aligned arrays.",
        Rows::Vectors => "Vector variant with 16-byte accesses, for aligned rows of whole vectors.",
        Rows::Any => "Scalar variant without 16-byte accesses, for any alignment and strides.",
    });
    b.variant(if rows == Rows::Any { Variant::Scalar } else { Variant::Vector });
    // A result may be the same array as an operand.
    b.in_place();
    let functions = functions(&mut b, plan);
    let block = b.constant("BLOCK", plan.block() as i32, "threads per block");
    b.launch_bounds(block);
    let arrays = Arrays::declare(&mut b, plan, rows);
    let places = Places::new(&mut b, plan, &arrays, rows, block);
    let geometry = Geometry { block: (plan.block(), 1), grid: places.grid(), blocks_per_sm: None };
    b.geometry(geometry);
    Items { arrays: &arrays, functions: &functions, places: &places }.build(&mut b);
    b.finish()
}

/// Declares the device function of each result.
fn functions(b: &mut KernelBuilder, plan: &MapPlan) -> Vec<ResultFunction> {
    let (operands, results) = (plan.operands(), plan.spec().results());
    let closures = plan.results();
    let is_one = closures.len() == 1;
    let functions = closures.iter().zip(results).enumerate();
    let functions = functions.map(|(nth, ((closure, typing), MapResult { elem, .. }))| {
        let name = if is_one { "map".to_owned() } else { format!("map_{nth}") };
        let meaning = match is_one {
            true => "Expression of the spec: an element of `out`.".to_owned(),
            false => format!("Value {nth} of the spec's expression: an element of `out_{nth}`."),
        };
        let place = |name: &str| operands.iter().position(|operand| operand.arg.name == name);
        let params = closure.params().iter();
        let taken = params.filter_map(|param| place(&param.name)).collect();
        let function = closure.lower_described(b, &name, typing, &meaning);
        ResultFunction { function, operands: taken, elem }
    });
    functions.collect()
}

/// Index of the thread in its block.
fn thread() -> Expr {
    Special::ThreadX.into()
}
