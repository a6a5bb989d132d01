//! Kernel for the results of rows of an epilogue, launched after the GEMM. A warp computes a row:
//! lane `t` folds the parts t, t + 32, t + 64 and so on, in this order, and a tree of shuffles
//! folds the values of the lanes.

use super::fold_parts::FoldParts;
use crate::expr::{Closure, Lowered, RowResults};
use crate::ir::program::{Program, Slot, Step};
use crate::ir::{
    Access, BufferId, Change, Elem, Expr, Extent, For, Geometry, Intrinsic, IrError, KernelBuilder,
    KernelFamily, Operand, Requirement, Scalar, Source, Special, Ty, Unroll, Var, VerifiedKernel,
};
use crate::lower::folds::{combined, identity};
use crate::plan::SgemmPlan;
use crate::spec::{ArgSlot, EpilogueArg};
use crate::target::arch;

const WARP: i32 = arch::WARP as i32;

/// Threads of a block.
const BLOCK: u32 = 128;

/// Adds the kernel to a program, and returns its launch. `bind` are the array of parts and the
/// results, and `size` is M, N and K.
pub(crate) fn step(
    program: &mut Program,
    plan: &SgemmPlan,
    bind: Vec<(Operand, Slot)>,
    rows: Expr,
    parts: Expr,
    size: [Expr; 3],
) -> Result<Step, IrError> {
    let kernel = kernel(plan)?;
    let [m, n, k] = size;
    let extents = [
        (Extent::FOLD_ROWS, rows),
        (Extent::FOLD_PARTS, parts),
        (Extent::M, m),
        (Extent::N, n),
        (Extent::DEPTH, k),
    ];
    let takes = |(extent, _): &(Extent, Expr)| kernel.contract().takes_extent(*extent);
    let extents = extents.into_iter().filter(takes).collect();
    let id = program.kernel(kernel);
    Ok(Step::launch(vec![id], bind, extents))
}

/// Integers and numbers that results of rows read.
struct Inputs {
    integers: Vec<(&'static str, Scalar)>,
    numbers: Vec<(String, Scalar)>,
}

impl Inputs {
    fn declare(b: &mut KernelBuilder, plan: &SgemmPlan, results: &[(usize, Closure)]) -> Self {
        let reads = |name: &str| results.iter().any(|(_, result)| result.reads(name));
        let integers = [("m", Extent::M), ("n", Extent::N), ("k", Extent::DEPTH)];
        let integers = integers.into_iter().filter(|(name, _)| reads(name));
        let integers = integers.map(|(name, extent)| {
            let parameter = if extent == Extent::DEPTH { "DEPTH" } else { &name.to_uppercase() };
            (name, b.extent(parameter, Ty::I32, extent))
        });
        let integers = integers.collect();
        let mut numbers = Vec::new();
        for EpilogueArg { name, slot, .. } in plan.spec().operands() {
            let ArgSlot::Number(nth) = slot else { continue };
            if reads(&name) {
                let ty = Ty::Scalar(plan.types().value());
                let number = b.scalar(&name, ty, Source::Argument(nth));
                b.mark_user_named();
                numbers.push((name.into_owned(), number));
            }
        }
        Self { integers, numbers }
    }

    fn integer(&self, name: &str) -> Expr {
        let found = self.integers.iter().find(|(own, _)| *own == name);
        found.map_or_else(|| unreachable!("faults: {name} has one value"), |(_, n)| (*n).into())
    }

    fn number(&self, name: &str) -> Expr {
        let found = self.numbers.iter().find(|(own, _)| own == name);
        found.map_or_else(|| unreachable!("faults: {name} is a number"), |(_, n)| (*n).into())
    }
}

fn kernel(plan: &SgemmPlan) -> Result<VerifiedKernel, IrError> {
    let Some(epilogue) = plan.epilogue() else {
        unreachable!("folds_rows: only an epilogue has folds")
    };
    let of_rows = epilogue.row_results();
    let mut b = KernelBuilder::new(format!("{}_rows", plan.kernel_name()));
    b.family(KernelFamily::Gemm);
    b.title("Results of the rows of C, from the parts of each row that the GEMM has folded.");
    b.title("A warp computes a row. The order of the parts does not depend on the GEMM's blocks.");
    b.title(format!("Generated from {}!({})", plan.types().macro_name(), plan.spec()));
    let rows = b.extent("FOLD_ROWS", Ty::I32, Extent::FOLD_ROWS);
    let parts = FoldParts::declare(&mut b, plan, rows.into());
    // The rows of the last block, and the parts of the last iteration, must fit in an `int`.
    let last = u64::from(i32::MAX as u32 - BLOCK);
    for scalar in [rows, parts.parts] {
        b.require(Requirement::Range { scalar, min: 0, max: last });
    }
    let outputs = outputs(&mut b, plan, rows);
    let inputs = Inputs::declare(&mut b, plan, &of_rows.results);
    let functions = of_rows.results.iter().map(|(nth, result)| {
        let name = format!("result_{}", nth + 1);
        (!result.is_parameter()).then(|| result.lower_result(&mut b, &name))
    });
    let functions = functions.collect();
    let block = b.constant("BLOCK", BLOCK as i32, "threads per block");
    let of_block = b.constant("ROWS", Expr::from(block) / WARP, "rows per block");
    b.launch_bounds(block);
    let grid = Expr::from(rows).wide().div_ceil(Expr::from(of_block).wide());
    let grid = [grid, 1u64.into(), 1u64.into()];
    b.geometry(Geometry { block: (BLOCK, 1), grid, blocks_per_sm: None });
    let tid = Expr::from(Special::ThreadX);
    let row = b.let_("row", Expr::from(Special::BlockX) * of_block + tid.clone() / WARP);
    let lane = b.let_("lane", tid % WARP);
    let elem = plan.types().value();
    let results = Results { elem, of_rows: &of_rows, functions, inputs, outputs };
    b.if_(Expr::from(row).lt(rows), |b| {
        let folds = results.fold(b, parts, row, lane);
        b.if_(Expr::from(lane).equals(0), |b| results.store(b, row, &folds));
    });
    b.finish()
}

/// Declares the vectors of the results.
fn outputs(b: &mut KernelBuilder, plan: &SgemmPlan, rows: Scalar) -> Vec<BufferId> {
    let mut outputs = Vec::new();
    for operand in plan.spec().operands() {
        if let (ArgSlot::Output(nth), true) = (operand.slot, operand.is_row_result()) {
            let name = operand.name.to_uppercase();
            let buffer = b.global(&name, plan.types().value(), Operand::Output(nth));
            b.shape(buffer, [rows.into()], [1.into()]);
            outputs.push(buffer);
        }
    }
    outputs
}

/// Results of a row in the kernel.
struct Results<'r> {
    elem: Elem,
    of_rows: &'r RowResults,
    /// Function of each result; `None` if the result is a fold itself.
    functions: Vec<Option<Lowered>>,
    inputs: Inputs,
    outputs: Vec<BufferId>,
}

impl Results<'_> {
    /// Folds the parts of a row. Every lane gets the values.
    fn fold(&self, b: &mut KernelBuilder, parts: FoldParts, row: Var, lane: Var) -> Vec<Var> {
        let (elem, of_rows) = (self.elem, &self.of_rows.folds);
        let folds: Vec<Var> =
            of_rows.iter().map(|fold| b.mut_(&fold.name, identity(fold.op, elem))).collect();
        let all = For::below(lane, parts.parts).change(Change::Add(WARP.into()));
        b.loop_("part", all.unroll(Unroll::By(4)), |b, part| {
            for (nth, (fold, var)) in of_rows.iter().zip(&folds).enumerate() {
                let value = parts.at(nth, row, part).load();
                b.assign(*var, combined(fold.op, (*var).into(), value));
            }
        });
        let head = For::above(WARP / 2, 0).change(Change::Div(2.into())).unroll(Unroll::Full);
        b.loop_("step", head, |b, step| {
            for (fold, var) in of_rows.iter().zip(&folds) {
                let other = Expr::Call(Intrinsic::ShuffleXor, vec![(*var).into(), step.into()]);
                b.assign(*var, combined(fold.op, (*var).into(), other));
            }
        });
        folds
    }

    /// Computes and stores the results of a row from its folds.
    fn store(&self, b: &mut KernelBuilder, row: Var, folds: &[Var]) {
        let results = self.of_rows.results.iter().zip(&self.functions).zip(&self.outputs);
        for (((_, result), function), output) in results {
            let mut params = result.params().iter().map(|param| {
                let fold = self.of_rows.folds.iter().position(|fold| fold.name == param.name);
                fold.map_or_else(|| self.inputs.number(&param.name), |nth| folds[nth].into())
            });
            let value = match function {
                None => params.next().unwrap_or_else(|| unreachable!("is_parameter: it has one")),
                Some(function) => function.apply(params, |name| self.inputs.integer(name)),
            };
            b.store(Access::new(*output, [row.into()]), value);
        }
    }
}
