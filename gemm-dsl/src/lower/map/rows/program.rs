//! Program of a kernel that folds over rows: the choice of the class by the number of columns.

use super::super::Rows;
use super::kernel;
use crate::expr::RowExpression;
use crate::ir::program::{KernelId, Program, Slot, Step};
use crate::ir::{Expr, Extent, IrError, Operand};
use crate::plan::{MapPlan, RowClass};

/// Most rows of a cluster, if there are enough rows for all SMs.
const ROWS_OF_CLUSTER: u64 = 4;

/// Adds the kernels to a program, and returns its steps. `bind` are the arrays of the launches, and
/// `m` and `n` the rows and columns. `sms` is the number of SMs, if some class has clusters.
pub(in crate::lower::map) fn steps(
    plan: &MapPlan,
    expression: &RowExpression,
    program: &mut Program,
    bind: &[(Operand, Slot)],
    [m, n]: [Expr; 2],
    sms: Option<Expr>,
) -> Result<Vec<Step>, IrError> {
    let classes = plan.row_classes();
    // The first kernel of a program represents it.
    let first = classes.iter().position(|class| class.team == plan.block()).unwrap_or(0);
    let mut launches: Vec<Option<(RowClass, Vec<KernelId>)>> = vec![None; classes.len()];
    let rest = (0..classes.len()).filter(|nth| *nth != first);
    for nth in [first].into_iter().chain(rest) {
        let mut choose = Vec::new();
        for rows in [Rows::Vectors, Rows::Any] {
            choose.push(program.kernel(kernel(plan, expression, classes[nth], rows)?));
        }
        launches[nth] = Some((classes[nth], choose));
    }
    // Kernels of clusters are optional: other kernels give the same bits.
    let mut others = Vec::new();
    if let Some(class) = plan.parts_class() {
        for rows in [Rows::Vectors, Rows::Any] {
            others.push(program.kernel(kernel(plan, expression, class, rows)?));
        }
    }
    let extents = vec![(Extent::M, m.clone()), (Extent::N, n.clone())];
    let mut steps = Vec::new();
    for (class, mut choose) in launches.into_iter().flatten().rev() {
        let mut extents = extents.clone();
        if let Some(sms) = sms.clone().filter(|_| class.cluster > 1) {
            choose.extend(&others);
            extents.push((Extent::CLUSTERS, clusters(plan, class, sms, m.clone())));
        }
        let launch = Step::launch(choose, bind.to_vec(), extents);
        steps = match class.longest {
            None => vec![launch],
            Some(longest) => {
                let fits = n.clone().le(Expr::U64(longest.into()));
                vec![Step::either(fits, vec![launch], steps)]
            }
        };
    }
    Ok(steps)
}

/// Number of clusters of a launch. A cluster that copies the next row while it computes one should
/// compute several rows, but not so many that the last clusters run alone: not all clusters that
/// fit on the SMs fit in the groups of SMs to which clusters are confined.
fn clusters(plan: &MapPlan, class: RowClass, sms: Expr, m: Expr) -> Expr {
    let fit = sms * u64::from(class.resident_blocks(plan)) / u64::from(class.cluster);
    let resident = fit.clone() - fit / 32u64;
    resident.max(m.clone().div_ceil(ROWS_OF_CLUSTER)).max(1u64).min(m)
}
