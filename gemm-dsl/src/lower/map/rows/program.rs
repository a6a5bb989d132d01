//! Program of a kernel that folds over rows: the choice of the class by the number of columns.

use super::super::Rows;
use super::kernel;
use crate::expr::RowExpression;
use crate::ir::program::{KernelId, Program, Slot, Step};
use crate::ir::{Expr, Extent, IrError, Operand};
use crate::plan::{MapPlan, RowClass};

/// Adds the kernels to a program, and returns its steps. `bind` are the arrays of the launches, and
/// `m` and `n` the rows and columns.
pub(in crate::lower::map) fn steps(
    plan: &MapPlan,
    expression: &RowExpression,
    program: &mut Program,
    bind: &[(Operand, Slot)],
    [m, n]: [Expr; 2],
) -> Result<Vec<Step>, IrError> {
    // Kernels of clusters are optional: the kernels for long rows give the same bits.
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
    let extents = vec![(Extent::M, m), (Extent::N, n.clone())];
    let long = launches.last().cloned().flatten().map_or_else(Vec::new, |(_, choose)| choose);
    let mut steps = Vec::new();
    for (class, mut choose) in launches.into_iter().flatten().rev() {
        if class.cluster > 1 {
            choose.extend(&long);
        }
        let launch = Step::launch(choose, bind.to_vec(), extents.clone());
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
