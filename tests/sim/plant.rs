//! Faults planted into sound kernels, and bare launches of the result.

use gemm_dsl::Family;
use gemm_dsl::ir::{Expr, Kernel, Scope, Stmt, Var, VerifiedKernel};
use gemm_dsl::sim::{self, Buffer, Counters, FaultKind, SimError};
use gemm_reference::product::Size;
use gemm_tests::random;

/// The preferred kernel of a spec.
pub fn kernel(spec: &impl Family) -> VerifiedKernel {
    spec.program().expect("a sound spec").preferred().clone()
}

/// Visits all statements in the order of the text, each with the innermost loop's variable.
fn visit(stmts: &mut [Stmt], inside: Option<Var>, f: &mut impl FnMut(&mut Stmt, Option<Var>)) {
    for stmt in stmts {
        f(stmt, inside);
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                visit(then, inside, f);
                visit(otherwise, inside, f);
            }
            Stmt::For(l) => visit(&mut l.body, Some(l.var), f),
            _ => {}
        }
    }
}

/// The kernel after a change of the n-th statement that `is` picks; `None` if there are fewer.
fn changed(
    kernel: &VerifiedKernel,
    n: usize,
    is: impl Fn(&Stmt) -> bool,
    change: impl Fn(&mut Stmt, Option<Var>),
) -> Option<VerifiedKernel> {
    let mut changed: Kernel = kernel.clone().into_inner();
    let mut seen = 0;
    visit(&mut changed.body, None, &mut |stmt, inside| {
        if is(stmt) {
            if seen == n {
                change(stmt, inside);
            }
            seen += 1;
        }
    });
    (n < seen).then(|| VerifiedKernel::new(changed).expect("still a sound kernel"))
}

/// Without the n-th barrier of a scope.
pub fn without_barrier(kernel: &VerifiedKernel, scope: Scope, n: usize) -> Option<VerifiedKernel> {
    let nothing = || Stmt::Comment("A barrier was here.".into());
    changed(kernel, n, |stmt| *stmt == Stmt::Barrier(scope), |stmt, _| *stmt = nothing())
}

/// Without the n-th barrier of a scope in the round of its loop in which the variable is `round`.
pub fn without_barrier_in(
    kernel: &VerifiedKernel,
    scope: Scope,
    n: usize,
    round: i32,
) -> Option<VerifiedKernel> {
    changed(
        kernel,
        n,
        |stmt| *stmt == Stmt::Barrier(scope),
        |stmt, inside| {
            let this_round = Expr::from(inside.expect("a loop")).equals(round);
            let otherwise = vec![stmt.clone()];
            *stmt = Stmt::If { cond: this_round, then: Vec::new(), otherwise };
        },
    )
}

/// With one more group in flight after the n-th wait.
pub fn with_weaker_wait(kernel: &VerifiedKernel, n: usize) -> Option<VerifiedKernel> {
    changed(
        kernel,
        n,
        |stmt| matches!(stmt, Stmt::CopyWait { .. }),
        |stmt, _| {
            if let Stmt::CopyWait { pending } = stmt {
                *pending = pending.clone() + 1;
            }
        },
    )
}

/// All kernels that `plant` makes.
pub fn each<T>(plant: impl Fn(usize) -> Option<T>) -> Vec<T> {
    (0..).map_while(plant).collect()
}

/// Launches the first pass of a reduction over `len` elements.
///
/// # Errors
/// The simulator's.
pub fn launch_reduction(kernel: &VerifiedKernel, len: usize) -> Result<Counters, SimError> {
    let blocks = kernel.eval(&kernel.geometry.grid[0], &[None, None, Some(len as u64)]);
    let blocks = blocks.ok().and_then(|n| usize::try_from(n).ok()).expect("a grid");
    let input = Buffer::from_f32(&random::values(1, len));
    sim::launch(kernel, &[input, Buffer::zeros(blocks)], &[len as u64])
}

/// Launches a product of packed matrices.
///
/// # Errors
/// The simulator's.
pub fn launch_product(kernel: &VerifiedKernel, size: Size) -> Result<Counters, SimError> {
    let Size { m, n, k } = size;
    let a = Buffer::from_f32(&random::values(1, m * k));
    let b = Buffer::from_f32(&random::values(2, k * n));
    let scalars = [m as u64, n as u64, k as u64];
    sim::launch(kernel, &[a, b, Buffer::zeros(m * n)], &scalars)
}

/// What kind of fault a launch met; `None` if it went well.
pub fn fault(launched: Result<Counters, SimError>) -> Option<FaultKind> {
    match launched {
        Ok(_) => None,
        Err(SimError::Fault(fault)) => Some(fault.kind),
        Err(other) => panic!("{other}"),
    }
}
