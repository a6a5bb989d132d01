//! Operands and results of an elementwise kernel: parameters, shapes and requirements.

use super::Rows;
use crate::ir::{
    Access, BufferId, Elem, Expr, Extent, KernelBuilder, Operand, Requirement, Scalar, Source, Ty,
};
use crate::plan::{MAX_COLUMNS, MapPlan};
use crate::spec::{Along, ArgSlot, MapResult};

/// Extents of an array. A matrix has a third axis of one element, with a stride of 1, so that its
/// rows and columns may have any strides.
pub(super) fn dims(along: Along, m: &Expr, n: &Expr) -> Vec<Expr> {
    match along {
        Along::Nothing => Vec::new(),
        Along::N => vec![n.clone()],
        Along::M => vec![m.clone()],
        Along::Mn => vec![m.clone(), n.clone(), Expr::U64(1)],
        Along::Pairs | Along::Batch | Along::BatchN | Along::BatchM => no_batch(),
    }
}

fn no_batch() -> ! {
    unreachable!("ELEMENTWISE: no operand has the index `batch`")
}

/// Operand of a kernel: an array or a number.
#[derive(Clone, Copy)]
pub(super) enum Parameter {
    Array(Array),
    Number(Scalar),
}

/// Array in memory.
#[derive(Clone, Copy)]
pub(super) struct Array {
    pub(super) buffer: BufferId,
    pub(super) along: Along,
}

impl Array {
    /// Element at a row and a column.
    pub(super) fn at(self, row: Expr, col: Expr) -> Access {
        match self.along {
            Along::N => Access::new(self.buffer, [col]),
            Along::M => Access::new(self.buffer, [row]),
            Along::Mn => Access::new(self.buffer, [row, col, Expr::I32(0)]),
            Along::Nothing => unreachable!("Arrays::declare: a number is no array"),
            Along::Pairs | Along::Batch | Along::BatchN | Along::BatchM => no_batch(),
        }
    }

    pub(super) fn elem(self) -> Elem {
        self.buffer.elem
    }
}

/// Parameters of an elementwise kernel.
pub(super) struct Arrays {
    /// Operands, in the order of the expression.
    pub(super) operands: Vec<Parameter>,
    /// Name of each operand.
    pub(super) names: Vec<String>,
    pub(super) results: Vec<Array>,
    pub(super) m: Scalar,
    pub(super) n: Scalar,
}

impl Arrays {
    pub(super) fn declare(b: &mut KernelBuilder, plan: &MapPlan, rows: Rows) -> Self {
        let operands = plan.operands();
        let mut arrays = Vec::new();
        for operand in &operands {
            let ArgSlot::Array(nth) = operand.arg.slot else { continue };
            let buffer = b.global(&operand.arg.name, operand.elem, Operand::Input(nth));
            b.mark_user_named();
            let array = Array { buffer, along: operand.arg.along };
            arrays.push((array, Operand::Input(nth), operand.arg.name.to_string()));
        }
        let results = plan.spec().results();
        for (nth, MapResult { elem, along, .. }) in results.iter().enumerate() {
            let name = if results.len() == 1 { "out".to_owned() } else { format!("out_{nth}") };
            let buffer = b.global(&name, *elem, Operand::Output(nth));
            arrays.push((Array { buffer, along: *along }, Operand::Output(nth), name));
        }
        let mut numbers = Vec::new();
        for operand in &operands {
            if let ArgSlot::Number(nth) = operand.arg.slot {
                let (ty, source) = (Ty::Scalar(operand.elem), Source::Argument(nth));
                numbers.push(b.scalar(&operand.arg.name, ty, source));
                b.mark_user_named();
            }
        }
        let m = b.extent("m", Ty::U64, Extent::M);
        let folds = plan.spec().has_folds();
        let n = b.extent("n", if folds { Ty::I32 } else { Ty::U64 }, Extent::N);
        match rows {
            Rows::One => b.require(Requirement::Range { scalar: m, min: 1, max: 1 }),
            Rows::Vectors => {
                b.require(Requirement::Multiple { scalar: n, of: plan.vector().into() });
            }
            Rows::Any => {}
        }
        if plan.spec().reads_integers() {
            let max = i32::MAX as u64;
            b.require(Requirement::Range { scalar: m, min: 0, max });
            if !folds {
                b.require(Requirement::Range { scalar: n, min: 0, max });
            }
        }
        if folds {
            b.require(Requirement::Range { scalar: n, min: 0, max: MAX_COLUMNS.into() });
        }
        for (array, operand, name) in &arrays {
            let named = NamedArray { array: *array, operand: *operand, name };
            named.shape(b, [m, n], rows);
        }
        let (mut inputs, mut numbers) = (arrays.iter(), numbers.into_iter());
        let operands = operands.iter().filter_map(|operand| match operand.arg.slot {
            ArgSlot::Array(_) => inputs.next().map(|(array, ..)| Parameter::Array(*array)),
            ArgSlot::Number(_) => numbers.next().map(Parameter::Number),
            ArgSlot::Output(_) => None,
        });
        let operands = operands.collect();
        let results = inputs.map(|(array, ..)| *array).collect();
        let names = plan.operands().iter().map(|operand| operand.arg.name.to_string()).collect();
        Self { operands, names, results, m, n }
    }
}

/// Array with its operand and its name in the source.
struct NamedArray<'n> {
    array: Array,
    operand: Operand,
    name: &'n str,
}

impl NamedArray<'_> {
    /// Sets the extents and strides of the array, and adds the requirements of 16-byte accesses.
    fn shape(&self, b: &mut KernelBuilder, [m, n]: [Scalar; 2], rows: Rows) {
        let Self { array, operand, .. } = *self;
        let along = array.along;
        let dims = dims(along, &m.into(), &n.into());
        let one = Expr::I32(1);
        let strides = match (along, rows) {
            (Along::N | Along::M | Along::Nothing, _) => vec![one],
            (Along::Pairs | Along::Batch | Along::BatchN | Along::BatchM, _) => no_batch(),
            (Along::Mn, Rows::One) => vec![n.into(), one, n.into()],
            (Along::Mn, Rows::Vectors) => {
                let row = self.stride(b, "ld", 0);
                let of = array.elem().vector_lanes().into();
                b.require(Requirement::Multiple { scalar: row, of });
                vec![row.into(), one, row.into()]
            }
            (Along::Mn, Rows::Any) => {
                let (row, col) = (self.stride(b, "row_stride", 0), self.stride(b, "col_stride", 1));
                vec![row.into(), col.into(), one]
            }
        };
        b.shape(array.buffer, dims, strides);
        if rows != Rows::Any && along != Along::M {
            b.require(Requirement::Aligned { operand, bytes: 16 });
        }
    }

    /// Declares a parameter for the stride of a dimension.
    fn stride(&self, b: &mut KernelBuilder, kind: &str, dim: usize) -> Scalar {
        let source = Source::Stride { operand: self.operand, dim };
        b.scalar(&format!("{kind}_{}", self.name), Ty::U64, source)
    }
}
