//! What a launch moves at least: each byte of the arrays that it is given, once each way.

use gemm_dsl::ir::Operand;
use gemm_dsl::ir::{Atomic, BufferId, Expr, Kernel, ParamKind, Stmt, TensorCopy};
use gemm_runtime::watch::{Arguments, KernelRun, Profile, VerifiedKernel, Watch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a kernel does with an array.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    bytes: u64,
    /// Whether the kernel needs it for itself alone, or for the kernels behind it.
    is_temp: bool,
    is_read: bool,
    is_written: bool,
}

impl Use {
    /// Whether blocks leave something there that others of the same launch read: it is no operand.
    fn is_scratch(&self) -> bool {
        self.is_temp && self.is_read && self.is_written
    }
}

/// The arrays that a launch was given, by the numbers of their buffers.
#[derive(Clone, Debug)]
pub struct LaunchArrays(BTreeMap<usize, Use>);

impl LaunchArrays {
    /// Those of a launch of a kernel.
    pub fn new(kernel: &VerifiedKernel, arguments: &Arguments) -> Self {
        let arrays =
            kernel.params.iter().zip(arguments.bytes(kernel)).filter_map(|(param, bytes)| {
                let (ParamKind::Buffer { buffer, operand }
                | ParamKind::TensorMap { buffer, operand, .. }) = &param.kind
                else {
                    return None;
                };
                let is_temp = matches!(operand, Operand::Temp(_));
                Some((buffer.id, Use { bytes: bytes?, is_temp, ..Use::default() }))
            });
        let mut arrays: BTreeMap<usize, Use> = arrays.collect();
        for stmt in kernel.statements() {
            accesses(kernel, stmt, &mut |buffer, [is_read, is_written]| {
                if let Some(of) = arrays.get_mut(&buffer.id) {
                    of.is_read |= is_read;
                    of.is_written |= is_written;
                }
            });
        }
        Self(arrays)
    }

    /// Bytes that come from memory or go there at least: of what is read, once, and of what is written. What blocks of the
    /// launch leave one another need not.
    pub fn least(&self) -> u64 {
        let operands = self.0.values().filter(|of| !of.is_scratch());
        operands.map(|of| of.bytes * (u64::from(of.is_read) + u64::from(of.is_written))).sum()
    }

    /// The sectors that a launch asks for of what its blocks leave one another.
    pub fn scratch_sectors(&self, kernel: &Kernel, profile: &Profile) -> u64 {
        let is_scratch = |stmt: &Stmt| {
            let mut is_scratch = false;
            accesses(kernel, stmt, &mut |buffer, _| {
                is_scratch |= self.0.get(&buffer.id).is_some_and(Use::is_scratch);
            });
            is_scratch
        };
        let statements = kernel.statements().into_iter().zip(&profile.statements);
        statements.filter(|(stmt, _)| is_scratch(stmt)).map(|(_, c)| c.global_sectors).sum()
    }
}

/// The buffers that a statement itself accesses, each as a launch binds it, with whether it reads and whether it writes it.
fn accesses(kernel: &Kernel, stmt: &Stmt, f: &mut impl FnMut(BufferId, [bool; 2])) {
    stmt.visit_exprs(&mut |e| {
        if let Expr::Load(access) = e {
            f(kernel.memory_of(access.buffer), [true, false]);
        }
    });
    match stmt {
        Stmt::Store { target, .. } => f(kernel.memory_of(target.buffer), [false, true]),
        Stmt::Atomic(Atomic { target, .. }) => f(kernel.memory_of(target.buffer), [true, true]),
        Stmt::CopyAsync { source, .. } => f(kernel.memory_of(source.buffer), [true, false]),
        Stmt::TensorCopy(TensorCopy { from, .. }) => f(kernel.memory_of(*from), [true, false]),
        _ => {}
    }
}

/// Looks at what the launch that does most moves at least.
#[derive(Debug, Default)]
pub struct LowerBound(AtomicU64);

impl LowerBound {
    /// In bytes; 0 before there was one.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watch for LowerBound {
    fn blocks(&self, _: &VerifiedKernel, _: [u32; 3]) -> Vec<u32> {
        Vec::new()
    }

    fn ran(&self, seen: KernelRun<'_>) {
        if seen.is_main {
            self.0
                .store(LaunchArrays::new(seen.kernel, &seen.arguments).least(), Ordering::Relaxed);
        }
    }
}
