//! Minimum traffic of a launch: each byte of its arrays is transferred once in each direction.

use gemm_dsl::ir::Operand;
use gemm_dsl::ir::{Atomic, BufferId, Expr, Kernel, ParamKind, Stmt, TensorCopy};
use gemm_runtime::sim::watch::{Arguments, KernelRun, Profile, VerifiedKernel, Watch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Access of a kernel to an array.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    bytes: u64,
    /// True for a temporary array, which only this kernel and later kernels of the program use.
    is_temp: bool,
    is_read: bool,
    is_written: bool,
}

impl Use {
    /// Returns true if blocks exchange data through the array within the launch, so that it is not
    /// an operand.
    fn is_scratch(&self) -> bool {
        self.is_temp && self.is_read && self.is_written
    }
}

/// Arrays of a launch, by buffer number.
#[derive(Clone, Debug)]
pub struct LaunchArrays(BTreeMap<usize, Use>);

impl LaunchArrays {
    /// Collects the arrays of one launch of a kernel.
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

    /// Returns the minimum number of bytes moved. Each operand counts once if it is read, and once
    /// if it is written.
    ///
    /// Scratch arrays, through which blocks of the launch exchange data, do not count.
    pub fn least(&self) -> u64 {
        let operands = self.0.values().filter(|of| !of.is_scratch());
        operands.map(|of| of.bytes * (u64::from(of.is_read) + u64::from(of.is_written))).sum()
    }

    /// Returns the sectors requested for scratch arrays.
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

/// Calls `f` for each buffer that a statement accesses, without nested statements. The flags are
/// true for a read and for a write.
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

/// Watch that records the minimum traffic of the main launch.
#[derive(Debug, Default)]
pub struct LowerBound(AtomicU64);

impl LowerBound {
    /// Returns the minimum traffic in bytes, or 0 before a launch.
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
