//! Faults planted into sound kernels, and launches of the faulty kernels without the runtime.

use gemm_dsl::ir::{
    Atomic, AtomicOp, Expr, Kernel, Loop, MemoryOrder, Scope, Stmt, Var, VerifiedKernel,
    VerifiedProgram,
};
use gemm_dsl::{Family, Plan};
use gemm_oracle::product::Size;
use gemm_oracle::random;
use gemm_sim::{Buffer, Counters, FaultKind, SimError};

/// Preferred kernel of a spec.
pub fn kernel(spec: &impl Family) -> VerifiedKernel {
    spec.plan().and_then(|plan| plan.program()).expect("a sound spec").preferred().clone()
}

/// Returns the kernel with a change to the n-th statement that `is` accepts, or None if there are
/// fewer.
fn changed(
    kernel: &VerifiedKernel,
    n: usize,
    is: impl Fn(&Stmt) -> bool,
    change: impl Fn(&mut Stmt, Option<Var>),
) -> Option<VerifiedKernel> {
    let mut changed: Kernel = kernel.clone().into_inner();
    let mut seen = 0;
    changed.visit_mut(&mut |stmt, inside| {
        if is(stmt) {
            if seen == n {
                change(stmt, inside);
            }
            seen += 1;
        }
    });
    (n < seen).then(|| VerifiedKernel::new(changed).expect("still a sound kernel"))
}

/// Removes the n-th barrier of a scope.
pub fn without_barrier(kernel: &VerifiedKernel, scope: Scope, n: usize) -> Option<VerifiedKernel> {
    let nothing = || Stmt::Comment("A barrier was here.".into());
    changed(kernel, n, |stmt| *stmt == Stmt::Barrier(scope), |stmt, _| *stmt = nothing())
}

/// Removes the n-th barrier of a scope in one round of its loop: the round in which the loop
/// variable is `round`.
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

/// Allows one more group in flight at the n-th wait.
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

/// Changes the memory order and the addend of the atomic additions.
pub fn with_ticket(
    kernel: &VerifiedKernel,
    ordered: MemoryOrder,
    add: u32,
) -> Option<VerifiedKernel> {
    let is_add = |stmt: &Stmt| matches!(stmt, Stmt::Atomic(Atomic { op: AtomicOp::Add, .. }));
    changed(kernel, 0, is_add, |stmt, _| {
        if let Stmt::Atomic(Atomic { order, value, .. }) = stmt {
            (*order, *value) = (ordered, Expr::U32(add));
        }
    })
}

/// Removes the n-th store to the buffer of this name.
pub fn without_store(kernel: &VerifiedKernel, buffer: &str, n: usize) -> Option<VerifiedKernel> {
    let is_there = |stmt: &Stmt| match stmt {
        Stmt::Store { target, .. } => kernel[target.buffer].name == buffer,
        _ => false,
    };
    changed(kernel, n, is_there, |stmt, _| *stmt = Stmt::Comment("A store was here.".into()))
}

/// Changes the initial value of the variable of this name.
pub fn with_initial(kernel: &VerifiedKernel, var: &str, initial: &Expr) -> Option<VerifiedKernel> {
    let is_it = |stmt: &Stmt| matches!(stmt, Stmt::Mut { var: v, .. } if kernel[*v].name == var);
    changed(kernel, 0, is_it, |stmt, _| {
        if let Stmt::Mut { value, .. } = stmt {
            *value = initial.clone();
        }
    })
}

/// Changes the number of rounds by `by` in loops over the variable of this name.
pub fn with_other_end(kernel: &VerifiedKernel, var: &str, by: i32) -> Option<VerifiedKernel> {
    let is_it = |stmt: &Stmt| matches!(stmt, Stmt::For(l) if kernel[l.var].name == var);
    changed(kernel, 0, is_it, |stmt, _| {
        if let Stmt::For(Loop { var, test, .. }) = stmt {
            let next = Expr::from(*var) + (-by).max(0);
            if let Expr::Binary(_, left, right) = test {
                let end = if by < 0 { (**right).clone() } else { (**right).clone() + by };
                (**left, **right) = (next, end);
            }
        }
    })
}

/// Returns a program with a fault in each kernel that `plant` changes, or None if it changes none.
pub fn planted(
    program: &VerifiedProgram,
    plant: impl Fn(&VerifiedKernel) -> Option<VerifiedKernel>,
) -> Option<VerifiedProgram> {
    let mut changed = program.clone().into_inner();
    let mut any = false;
    for kernel in &mut changed.kernels {
        if let Some(other) = plant(kernel) {
            (*kernel, any) = (other, true);
        }
    }
    any.then(|| VerifiedProgram::new(changed).expect("still a sound program"))
}

/// All values that `plant` returns for 0, 1, 2 …
pub fn each<T>(plant: impl Fn(usize) -> Option<T>) -> Vec<T> {
    (0..).map_while(plant).collect()
}

/// Launches the first pass of a reduction over `len` elements.
///
/// # Errors
/// Returns any error of the simulator.
pub fn launch_reduction(kernel: &VerifiedKernel, len: usize) -> Result<Counters, SimError> {
    let blocks = kernel.eval(&kernel.geometry.grid[0], &[None, None, Some(len as u64)]);
    let blocks = blocks.ok().and_then(|n| usize::try_from(n).ok()).expect("a grid");
    let input = Buffer::from_f32(&random::values(1, len));
    gemm_sim::launch(kernel, &[input, Buffer::zeros(blocks)], &[len as u64])
}

/// Launches a GEMM on packed matrices.
///
/// # Errors
/// Returns any error of the simulator.
pub fn launch_product(kernel: &VerifiedKernel, size: Size) -> Result<Counters, SimError> {
    let Size { m, n, k } = size;
    let a = Buffer::from_f32(&random::values(1, m * k));
    let b = Buffer::from_f32(&random::values(2, k * n));
    let scalars = [m as u64, n as u64, k as u64];
    gemm_sim::launch(kernel, &[a, b, Buffer::zeros(m * n)], &scalars)
}

/// Symptom of a planted fault in a launch with inter-block synchronisation.
#[derive(Debug, PartialEq)]
pub enum Shown {
    Race,
    Uninitialised,
    /// The result depends on the order of blocks or threads.
    MemoryOrder,
    /// After the launch, tickets differ from their initial values.
    NotKept,
    Wrong,
    Not,
    Otherwise(String),
}

impl Shown {
    /// Symptom for an error of the simulator.
    pub fn by(error: SimError) -> Self {
        match error {
            SimError::Fault(fault) => match fault.kind {
                FaultKind::Race { .. } => Self::Race,
                FaultKind::Uninitialised { .. } => Self::Uninitialised,
                other => Self::Otherwise(other.to_string()),
            },
            SimError::OrderDependent { .. } | SimError::InterleavingDependent { .. } => {
                Self::MemoryOrder
            }
            other => Self::Otherwise(other.to_string()),
        }
    }
}

/// Kind of fault of a launch, or None if it succeeded.
pub fn fault(launched: Result<Counters, SimError>) -> Option<FaultKind> {
    match launched {
        Ok(_) => None,
        Err(SimError::Fault(fault)) => Some(fault.kind),
        Err(other) => panic!("{other}"),
    }
}
