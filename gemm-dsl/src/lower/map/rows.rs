//! Kernels that fold over rows. A warp, a block or a cluster of blocks computes a row: it folds the
//! row's elements in one or more passes, and then computes the results.
//!
//! **Order of the elements.** Thread `t` of a team folds, for each item in turn, the elements of
//! item `item * TEAM + t`. A tree of shuffles folds the values of a warp, every thread folds the
//! values of the warps of its block in their order, and then the values of the blocks. All kernels
//! for rows of one length have the same team, so they give the same bits: where a cluster computes
//! a row, a kernel for other GPUs computes the parts of its blocks one after the other.

mod cluster;
mod pass;
mod program;
mod team;
mod value;

use super::arrays::{Array, Arrays, Parameter};
use super::{Rows, thread};
use crate::expr::{FoldOp, Lowered, RowExpression, RowPart, RowPartKind, Type, ValueType};
use crate::ir::{
    BufferId, Const, Elem, Expr, Extent, Geometry, IrError, KernelBuilder, Names, Scalar, Special,
    Ty, Var, Variant, VerifiedKernel,
};
use crate::lower::conversions::in_expression;
use crate::lower::folds;
use crate::plan::{MapPlan, RowClass};
use crate::spec::Along;
use crate::target::arch::WARP;
pub(super) use program::steps;

/// Device function of a part or of a result; `None` if it is one of its parameters.
type Function = Option<Lowered>;

/// Kernel for the rows of one class.
struct RowKernel<'k> {
    plan: &'k MapPlan,
    expression: &'k RowExpression,
    class: RowClass,
    /// True for 16-byte accesses.
    is_wide: bool,
    arrays: Arrays,
    parts: Vec<Function>,
    results: Vec<Function>,
    /// Names in the source.
    names: Vec<String>,
    block: Const,
    /// Threads that compute a row.
    team: Const,
    /// Cluster that computes a row.
    cluster: Option<Cluster>,
    items: Const,
}

/// What a thread knows of its row.
#[derive(Clone)]
struct Row {
    row: Expr,
    /// Index of the thread in its team.
    member: Expr,
    /// Number of threads of the team.
    team: Expr,
    /// Index of the thread among those of its block that compute the row.
    thread: Expr,
    /// Exchange between the blocks of a cluster.
    exchange: Option<cluster::Exchange>,
    /// Registers with the elements of `[m, n]` operands; `None` for other operands.
    elements: Vec<Option<BufferId>>,
    /// Element of each `[m]` operand.
    of_row: Vec<Option<Var>>,
    /// Value of each part that is computed.
    parts: Vec<Option<Var>>,
    /// Registers with the arguments of folds that are kept.
    kept: Vec<Option<BufferId>>,
}

/// Cluster that computes a row.
#[derive(Clone, Copy)]
struct Cluster {
    /// Number of its blocks.
    blocks: Const,
    /// Number of clusters of the grid.
    count: Scalar,
}

/// Builds a kernel of a class.
fn kernel(
    plan: &MapPlan,
    expression: &RowExpression,
    class: RowClass,
    rows: Rows,
) -> Result<VerifiedKernel, IrError> {
    let mut b = KernelBuilder::new(plan.kernel_name() + &class.suffix(plan));
    title(&mut b, plan, class, rows);
    b.variant(if rows == Rows::Any { Variant::Scalar } else { Variant::Vector });
    if class.cluster > 1 {
        b.optional();
    }
    // A result may be the same array as an operand.
    b.in_place();
    let Functions { names, parts, results } = functions(&mut b, expression);
    let block = b.constant("BLOCK", class.block as i32, "threads per block");
    let blocks = (class.cluster > 1).then(|| {
        let blocks = b.constant("CLUSTER", class.cluster as i32, "blocks per row");
        b.named_cluster(class.cluster, blocks);
        blocks
    });
    let team = match (class.rows(), blocks) {
        (_, Some(cluster)) => b.constant("TEAM", Expr::from(cluster) * block, "threads per row"),
        (1, None) => block,
        _ => b.constant("TEAM", class.team as i32, "threads per row"),
    };
    let unit = match rows {
        Rows::Any => format!("items per thread, of {} elements", plan.vector()),
        _ => format!("items per thread, of {} elements in vectors of 16 bytes", plan.vector()),
    };
    let items = b.constant("ITEMS", class.items as i32, unit);
    b.launch_bounds(block);
    let arrays = Arrays::declare(&mut b, plan, rows);
    let rows_of_block = match class.rows() {
        1 => Expr::I32(1),
        _ => b.constant("ROWS", Expr::from(block) / team, "rows per block").into(),
    };
    let cluster = blocks.map(|blocks| {
        let count = b.extent("clusters", Ty::U64, Extent::CLUSTERS);
        Cluster { blocks, count }
    });
    let grid = match (class.rows(), cluster) {
        (_, Some(cluster)) => Expr::from(cluster.count) * Expr::from(cluster.blocks).wide(),
        (1, None) => arrays.m.into(),
        _ => Expr::from(arrays.m).div_ceil(rows_of_block.clone().wide()),
    };
    let grid = [grid, 1u64.into(), 1u64.into()];
    let blocks_per_sm = class.blocks_per_sm(plan);
    b.geometry(Geometry { block: (class.block, 1), grid, blocks_per_sm });
    let is_wide = rows != Rows::Any;
    let kernel = RowKernel {
        plan,
        expression,
        class,
        is_wide,
        arrays,
        parts,
        results,
        names,
        block,
        team,
        cluster,
        items,
    };
    kernel.build(&mut b, rows_of_block);
    b.finish()
}

/// Device functions of an expression, with the names of its parts in the source.
struct Functions {
    names: Vec<String>,
    parts: Vec<Function>,
    results: Vec<Function>,
}

/// Declares the device functions of the parts and of the results.
fn functions(b: &mut KernelBuilder, expression: &RowExpression) -> Functions {
    let mut spelt = Names::default();
    let names: Vec<String> = expression.parts.iter().map(|part| spelt.fresh(&part.name)).collect();
    let parts = expression.parts.iter().zip(&names).map(|(part, name)| {
        let (function, meaning) = match part.kind {
            RowPartKind::Fold { .. } => {
                (format!("{name}_at"), format!("Value that `{name}` folds."))
            }
            RowPartKind::Value => (format!("{name}_of_row"), format!("`{name}` of a row.")),
        };
        if part.closure.is_parameter() {
            return None;
        }
        let function = spelt.fresh(&function);
        let lowered = part.closure.lower_described(b, &function, &part.typing, &meaning);
        b.named_by_user(lowered.id());
        Some(lowered)
    });
    let parts = parts.collect();
    let count = expression.results.len();
    let results = expression.results.iter().enumerate().map(|(nth, result)| {
        if result.closure.is_parameter() {
            return None;
        }
        let (name, meaning) = match count {
            1 => ("result".to_owned(), "Result of the spec.".to_owned()),
            _ => (format!("result_{nth}"), format!("Result {nth} of the spec.")),
        };
        Some(result.closure.lower_described(b, &name, &result.typing, &meaning))
    });
    let results = results.collect();
    Functions { names, parts, results }
}

fn title(b: &mut KernelBuilder, plan: &MapPlan, class: RowClass, rows: Rows) {
    let (team, keeps) = match (class.rows(), class.longest) {
        (_, Some(_)) if class.cluster > 1 => {
            ("A cluster of blocks computes a row", "keeps it in registers")
        }
        (_, Some(_)) if class.in_parts => (
            "On GPUs without clusters. A block computes a row",
            "reads it once for each pass, in the order of a cluster",
        ),
        (1, Some(_)) => ("A block computes a row", "keeps it in registers"),
        (1, None) => ("A block computes a row", "reads it once for each pass"),
        _ => ("A warp computes a row", "keeps it in registers"),
    };
    b.title("Kernel over whole rows, m rows of n elements.");
    b.title(format!("Generated from row_kernel!({})", plan.spec()));
    let length = match class.longest {
        Some(longest) => format!("up to {longest} columns"),
        None => "more columns".to_owned(),
    };
    b.title(format!("For rows of {length}. {team} and {keeps}."));
    b.title(match rows {
        Rows::Any => "Scalar variant without 16-byte accesses, for any alignment and strides.",
        _ => "Vector variant with 16-byte accesses, for aligned rows of whole vectors.",
    });
}

impl RowKernel<'_> {
    fn build(&self, b: &mut KernelBuilder, rows_of_block: Expr) {
        let team = || Expr::from(self.team);
        if let Some(cluster) = self.cluster {
            return self.rows_of_cluster(b, cluster);
        }
        if self.class.rows() == 1 {
            let row = b.let_("row", Expr::from(Special::BlockX).wide());
            let tid = b.let_("tid", thread());
            return self.row(b, row.into(), [tid.into(), tid.into()], team());
        }
        // Unsigned, so that the compiler needs fewer instructions for the indices.
        let tid = b.unsigned("tid", Special::ThreadX);
        let warp = tid / self.team;
        let row = Expr::from(Special::BlockX).wide() * rows_of_block + warp;
        let row = b.let_("row", row);
        let member = b.let_("member", tid % self.team);
        b.if_(Expr::from(row).lt(self.arrays.m), |b| {
            self.row(b, row.into(), [member.into(), member.into()], team());
        });
    }

    /// Computes a row. The thread is given by its index in the team, and among the threads of its
    /// block.
    fn row(&self, b: &mut KernelBuilder, row: Expr, [member, thread]: [Expr; 2], team: Expr) {
        let mut row = self.row_of(row, [member, thread], team);
        row.of_row = self.row_elements(b, &row.row);
        if self.class.keeps() {
            self.registers(b, &mut row, |_| true);
            if row.elements.iter().any(Option::is_some) {
                b.comment("The loads of all items are in flight together.");
                self.load(b, &row, &Expr::I32(0));
            }
        }
        self.compute(b, &mut row);
    }

    /// A row of which nothing is known yet.
    fn row_of(&self, row: Expr, [member, thread]: [Expr; 2], team: Expr) -> Row {
        let count = self.expression.parts.len();
        let operands = self.arrays.operands.len();
        Row {
            row,
            member,
            team,
            thread,
            exchange: None,
            elements: vec![None; operands],
            of_row: vec![None; operands],
            parts: vec![None; count],
            kept: vec![None; count],
        }
    }

    /// Number of passes over the row with folds.
    fn passes(&self) -> usize {
        let folds = self.expression.parts.iter().filter(|part| part.is_fold());
        folds.map(|part| part.pass + 1).max().unwrap_or(0)
    }

    /// Computes the folds and the results of a row.
    fn compute(&self, b: &mut KernelBuilder, row: &mut Row) {
        let passes = self.passes();
        let parts = self.class.in_parts.then(|| self.parts(b));
        for pass in 0..passes {
            self.values(b, row, pass);
            self.fold(b, row, pass, parts);
        }
        self.values(b, row, passes);
        self.store(b, row);
        self.store_of_row(b, row);
    }

    /// Loads the elements of `[m]` operands.
    fn row_elements(&self, b: &mut KernelBuilder, row: &Expr) -> Vec<Option<Var>> {
        let mut of_row = Vec::new();
        for (nth, operand) in self.arrays.operands.iter().enumerate() {
            of_row.push(match operand {
                Parameter::Array(array) if array.along == Along::M => {
                    let element = in_expression(array.at(row.clone(), Expr::I32(0)).load());
                    Some(b.let_(&format!("e{nth}"), element))
                }
                _ => None,
            });
        }
        of_row
    }

    /// Declares the registers of the `[m, n]` operands that a pass reads.
    fn registers(&self, b: &mut KernelBuilder, row: &mut Row, reads: impl Fn(&str) -> bool) {
        let dims = [Expr::from(self.items), Expr::I32(self.plan.vector() as i32)];
        for (nth, operand) in self.arrays.operands.iter().enumerate() {
            let name = &self.arrays.names[nth];
            row.elements[nth] = match operand {
                Parameter::Array(array) if array.along == Along::Mn && reads(name) => {
                    let meaning = format!("elements of `{name}`");
                    Some(self.held(b, &format!("e{nth}"), array.elem(), dims.clone(), meaning))
                }
                _ => None,
            };
        }
    }

    /// Declares registers for elements of the row. In the loop over the rows of a cluster they are
    /// zeroed: otherwise the compiler keeps the elements of the previous row where a row has none.
    fn held(
        &self,
        b: &mut KernelBuilder,
        name: &str,
        elem: Elem,
        dims: [Expr; 2],
        meaning: String,
    ) -> BufferId {
        match self.cluster {
            Some(_) => b.zeroed_registers(name, elem, dims, meaning),
            None => b.registers(name, elem, dims, meaning),
        }
    }

    /// Computes the values of the row that are known before a pass.
    fn values(&self, b: &mut KernelBuilder, row: &mut Row, pass: usize) {
        for (nth, part) in self.expression.parts.iter().enumerate() {
            if part.is_fold() || part.pass != pass {
                continue;
            }
            let value = self.value(&part.closure, self.parts[nth].as_ref(), row, None);
            let var = b.let_(&self.names[nth], value);
            b.named_by_user(var);
            row.parts[nth] = Some(var);
        }
    }

    /// Name of a variable for the fold with this index: the plain name for the first fold of its
    /// pass that needs one.
    fn numbered(&self, name: &str, nth: usize) -> String {
        let pass = self.expression.parts[nth].pass;
        let mut before = self.expression.parts[..nth].iter();
        match before.any(|part| part.pass == pass && part.is_fold() && part.reads_twice()) {
            true => format!("{name}{nth}"),
            false => name.to_owned(),
        }
    }

    /// Array of the operand with this index.
    fn array(&self, nth: usize) -> Option<Array> {
        match self.arrays.operands[nth] {
            Parameter::Array(array) => Some(array),
            Parameter::Number(_) => None,
        }
    }
}

impl RowPart {
    fn is_fold(&self) -> bool {
        matches!(self.kind, RowPartKind::Fold { .. })
    }

    /// Operator of a fold.
    fn op(&self) -> Option<FoldOp> {
        match self.kind {
            RowPartKind::Fold { op, .. } => Some(op),
            RowPartKind::Value => None,
        }
    }

    /// Name under which later closures read the argument of a fold.
    fn kept(&self) -> Option<&str> {
        match &self.kind {
            RowPartKind::Fold { kept, .. } => kept.as_deref(),
            RowPartKind::Value => None,
        }
    }

    /// Element type of the part's value.
    fn elem(&self) -> Elem {
        match self.value.ty() {
            Type::F32 => Elem::F32,
            Type::F64 => Elem::F64,
            Type::Int => Elem::I64,
            Type::Bool => unreachable!("RowExpression: no part is a boolean"),
        }
    }

    /// Value of a fold without elements.
    fn identity(&self) -> Expr {
        match (self.op(), self.value) {
            (Some(FoldOp::Max), ValueType::Int { least, .. }) => Expr::I64(least as i64),
            (Some(FoldOp::Min), ValueType::Int { most, .. }) => Expr::I64(most as i64),
            (op, _) => folds::identity(op.unwrap_or(FoldOp::Sum), self.elem()),
        }
    }
}

fn warps(class: RowClass) -> u32 {
    class.team / WARP
}
