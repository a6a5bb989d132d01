//! Scans of arrays and rows.
//!
//! **Order of the elements.** Thread `t` of a team of T threads scans, for each item in turn, the V
//! elements of item `item * T + t` of a tile. Shuffles scan the sums of the threads of a warp, and
//! one warp scans the sums of all warps and items. All variants of a kernel have the same team,
//! items and V, so they give the same bits.
//!
//! **Arrays** are scanned in one launch that reads and writes each element once. A block takes the
//! next tile by a ticket, so that the blocks of all earlier tiles have started. It publishes the
//! sum of its tile. 32 consecutive tiles form a group, 32 groups a section. The prefix of a tile
//! has three parts: the prefix of its section, the sums of the earlier groups of the section, and
//! the sums of the earlier tiles of the group. A warp folds the sums of groups, and those of tiles,
//! each in a fixed tree. The last block of a group publishes the sum of the group: the same tree
//! over the sums of all its tiles. A block that needs the sum earlier computes it by the same
//! operations. The last block of a section publishes the prefix of the next section. No order of
//! operations depends on timing.
//!
//! A published word has 64 bits, of which 32 are the value, so that one relaxed load reads both.
//! The values of 8-byte types have an array of their own, and a word that is read with acquire
//! order.
//!
//! **Rows** are scanned by a group of threads or by a block, one tile after another.

mod array;
mod held_tile;
mod item;
mod row;
mod words;

use super::folds;
use crate::ir::program::{Program, Step};
use crate::ir::{
    Access, BufferId, Const, Elem, Expr, Extent, For, FunctionId, Intrinsic, IrError,
    KernelBuilder, Operand, Requirement, Scalar, Source, Special, Ty, Unroll, Var, Variant,
    VerifiedKernel, VerifiedProgram,
};
use crate::plan::ScanPlan;
use crate::spec::{ScanOp, ScanOver};

/// Threads of a warp.
const WARP: i32 = crate::target::arch::WARP as i32;

/// Builds the program of a scan.
///
/// # Errors
/// Returns an error if a kernel breaks a rule of the IR, which is a bug of this module.
pub fn scan(plan: &ScanPlan) -> Result<VerifiedProgram, IrError> {
    let spec = plan.spec();
    let mut program = Program::default();
    let [m, n] = [Extent::M, Extent::N].map(|extent| program.extent(extent));
    let dims = [m.clone(), n.clone(), Expr::U64(1)];
    let mut bind = vec![
        program.input(Operand::Input(0), "input", spec.element.elem(), dims.clone()),
        program.output(Operand::Output(0), "output", spec.result_elem(), dims),
    ];
    if spec.over == ScanOver::All {
        bind.extend(words::temps(&mut program, plan, &n));
    }
    let mut choose = Vec::new();
    for is_wide in [true, false] {
        choose.push(program.kernel(kernel(plan, is_wide)?));
    }
    program.steps = vec![Step::launch(choose, bind, vec![(Extent::M, m), (Extent::N, n)])];
    VerifiedProgram::new(program)
}

/// Builds one kernel. `is_wide` is true for 16-byte accesses.
fn kernel(plan: &ScanPlan, is_wide: bool) -> Result<VerifiedKernel, IrError> {
    let spec = plan.spec();
    let mut b = KernelBuilder::new(plan.kernel_name());
    let noun = match spec.op {
        ScanOp::Sum => "sums",
        ScanOp::Prod => "products",
        ScanOp::Max => "maxima",
        ScanOp::Min => "minima",
    };
    let kind = if spec.exclusive { "Exclusive" } else { "Inclusive" };
    b.title(match spec.over {
        ScanOver::All => format!("{kind} scan of an array of n elements: its running {noun}."),
        ScanOver::Rows => format!("{kind} scan of m rows of n elements: their running {noun}."),
    });
    b.title(format!("Generated from scan_kernel!({spec})"));
    b.title(match is_wide {
        true => "Vector variant with 16-byte accesses, for aligned arrays.",
        false => "Scalar variant without 16-byte accesses, for any alignment and strides.",
    });
    b.variant(if is_wide { Variant::Vector } else { Variant::Scalar });
    // The result may be the same array as the input.
    b.in_place();
    let block = b.constant("BLOCK", plan.block() as i32, "threads per block");
    b.launch_bounds(block);
    let scan = Scan::new(&mut b, plan, is_wide, block);
    match spec.over {
        ScanOver::All => array::build(&mut b, &scan),
        ScanOver::Rows => row::build(&mut b, &scan),
    }
    b.finish()
}

/// Parts that all kernels of a scan have.
struct Scan<'s> {
    plan: &'s ScanPlan,
    is_wide: bool,
    input: BufferId,
    output: BufferId,
    m: Scalar,
    n: Scalar,
    block: Const,
    /// Number of threads that scan together.
    team: Const,
    items: Const,
    /// Number of elements of an item.
    vector: Const,
    /// Number of elements of a tile.
    tile: Const,
    /// Device function that folds two values.
    fold: FunctionId,
    /// Type in which values are folded: the accumulator type, or its unsigned type.
    held: Elem,
}

impl<'s> Scan<'s> {
    fn new(b: &mut KernelBuilder, plan: &'s ScanPlan, is_wide: bool, block: Const) -> Self {
        let spec = plan.spec();
        let held = held(plan);
        let ty = Ty::Scalar(held);
        let meaning = "Folds two values, the earlier one first.";
        let fold = b.function("fold", &[meaning], &[("earlier", ty), ("later", ty)], |_, p| {
            folds::combined(spec.op.fold(), p[0].into(), p[1].into())
        });
        let team = match plan.team() {
            team if team == plan.block() => block,
            team => b.constant("TEAM", team as i32, "threads per row"),
        };
        let items = b.constant("ITEMS", plan.items() as i32, "items per thread");
        let vector = b.constant("VECTOR", plan.vector() as i32, "elements per item");
        let tile = b.constant("TILE", team * items * vector, "elements that a team scans at once");
        let input = b.global("in", spec.element.elem(), Operand::Input(0));
        let output = b.global("out", spec.result_elem(), Operand::Output(0));
        let m = b.extent("m", Ty::U64, Extent::M);
        let n = b.extent("n", Ty::U64, Extent::N);
        let scan = Self {
            plan,
            is_wide,
            input,
            output,
            m,
            n,
            block,
            team,
            items,
            vector,
            tile,
            fold,
            held,
        };
        scan.shape(b);
        scan
    }

    /// Declares the extents and strides of input and output, and the requirements.
    fn shape(&self, b: &mut KernelBuilder) {
        let (m, n, one) = (self.m, self.n, Expr::I32(1));
        let is_row = self.plan.spec().over == ScanOver::All;
        if is_row {
            b.require(Requirement::Range { scalar: m, min: 1, max: 1 });
        }
        let arrays =
            [(self.input, Operand::Input(0), "input"), (self.output, Operand::Output(0), "output")];
        for (array, operand, name) in arrays {
            let mut stride = |kind: &str, dim| {
                let source = Source::Stride { operand, dim };
                b.scalar(&format!("{kind}_{name}"), Ty::U64, source)
            };
            let strides: Vec<Expr> = match (is_row, self.is_wide) {
                (true, true) => vec![n.into(), one.clone(), n.into()],
                (true, false) => {
                    let col = stride("stride", 1);
                    vec![n.into(), col.into(), one.clone()]
                }
                (false, true) => {
                    let row = stride("ld", 0);
                    let of = array.elem.vector_lanes().into();
                    b.require(Requirement::Multiple { scalar: row, of });
                    vec![row.into(), one.clone(), row.into()]
                }
                (false, false) => {
                    let (row, col) = (stride("row_stride", 0), stride("col_stride", 1));
                    vec![row.into(), col.into(), one.clone()]
                }
            };
            b.shape(array, [m.into(), n.into(), Expr::U64(1)], strides);
            if self.is_wide {
                b.require(Requirement::Aligned { operand, bytes: 16 });
            }
        }
        if self.is_wide && !is_row {
            b.require(Requirement::Multiple { scalar: n, of: self.plan.vector().into() });
        }
    }

    /// Value that changes no other.
    fn identity(&self) -> Expr {
        folds::identity(self.plan.spec().op.fold(), self.held)
    }

    fn folded(&self, earlier: impl Into<Expr>, later: impl Into<Expr>) -> Expr {
        self.fold.apply([earlier.into(), later.into()])
    }

    /// Scans a value of each lane in groups of `width` lanes. `member` is the lane's index in its
    /// group.
    fn scan_lanes(&self, b: &mut KernelBuilder, value: Var, member: &Expr, width: i32) {
        let double = crate::ir::Change::Mul(2.into());
        let steps = For::below(1, width).change(double).unroll(Unroll::Full);
        b.loop_("step", steps, |b, step| {
            let below = Expr::Call(Intrinsic::ShuffleUp, vec![value.into(), step.into()]);
            let below = b.let_("below", below);
            let folded = self.folded(below, value);
            b.assign(value, member.clone().ge(step).select(folded, value));
        });
    }

    /// Value of the previous lane of the group; the identity for the first.
    fn previous(&self, b: &mut KernelBuilder, value: Var, member: &Expr) -> Expr {
        // All lanes take part in the shuffle, so it is no operand of the selection.
        let below = Expr::Call(Intrinsic::ShuffleUp, vec![value.into(), 1.into()]);
        let below = b.let_("previous", below);
        member.clone().gt(0).select(below, self.identity())
    }
}

/// Index of the thread in its block.
fn thread() -> Expr {
    Special::ThreadX.into()
}

/// Type in which values are folded: the accumulator type, or its unsigned type.
fn held(plan: &ScanPlan) -> Elem {
    match (plan.spec().op, plan.spec().acc_elem()) {
        // Signed sums and products wrap.
        (ScanOp::Sum | ScanOp::Prod, Elem::I32) => Elem::U32,
        (ScanOp::Sum | ScanOp::Prod, Elem::I64) => Elem::U64,
        (_, acc) => acc,
    }
}

/// Element of an array of one dimension.
fn at(array: BufferId, index: impl Into<Expr>) -> Access {
    Access::new(array, [index.into()])
}
