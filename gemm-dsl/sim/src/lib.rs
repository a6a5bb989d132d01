//! Simulator of generated kernels. It executes a [`VerifiedKernel`] on a machine without a GPU.
//!
//! The simulator is the executable definition of the IR. [`launch`] computes the same bits as a
//! GPU, and returns [`Counters`] that explain differences in speed. If a kernel does what the IR
//! forbids, it returns a [`SimError`] with the buffer, the element, the thread and the statement.
//!
//! ```text
//! kernel, arguments ──launch──► numbers for names ──lower──► linear code
//!                                                                 │ schedule: blocks in parallel,
//!                                                                 │ or in several orders
//!                          one warp until a barrier ◄────exec─────┘
//!                                      │ accesses, synchronisation
//!                                      ▼
//!                 observers: race (races, init), counters (traffic)
//! ```
//!
//! # Invariants
//! * A warp runs alone until it waits or yields, and then the next warp runs. No detector derives
//!   happens-before from this order.
//! * The executor computes. Observers only watch it.
//! * The blocks of a cluster run together, like one block of all their threads. Each of them has
//!   its own shared memory.
//! * Results, errors and counters are the same on every run, although blocks run in parallel. If
//!   one block writes an element that another block accesses, the launch is repeated with one block
//!   after another. A race found in this second run is reported in preference to a fault that may
//!   follow from it. If the instruction limit is spent, the reported position may vary between
//!   runs, and another error may be reported instead.
//!
//! # Meaning of a clean verdict
//! No interleaving that was run has a fault, and all gave the same results. Without atomics, all
//! interleavings behave alike, so one represents all. With atomics, the order of threads determines
//! the values that a thread reads and the path that it takes. The verdict then covers only the
//! block orders and thread interleavings that were run, which are not all. Two limits apply to each
//! of them:
//! * All active lanes of a warp execute its statements in program order. Only the two branches of
//!   an `if` may run in either order. A lane that waits for another lane of its warp may wait
//!   forever, although hardware may let both proceed.
//! * An access takes effect at once and for all threads. If synchronisation is missing between two
//!   accesses, a race is reported. Weak-memory outcomes that no interleaving explains are not
//!   simulated, for example two threads that each miss the other's write before a fence.
//!   [`MemoryOrder::SeqCst`](gemm_dsl::ir::MemoryOrder::SeqCst) is therefore equivalent here to
//!   [`MemoryOrder::AcqRel`](gemm_dsl::ir::MemoryOrder::AcqRel).

mod buffer;
pub mod cost;
mod counters;
mod error;
pub(crate) mod exec;
mod launch;
mod lower;
mod mask;
mod observe;
mod options;
pub(crate) mod race;
mod region;
mod sass;
mod scalar;
pub(crate) mod schedule;
pub mod tensor_core;
#[cfg(test)]
mod tests;
mod trace;

pub use buffer::{Buffer, BufferArg};
pub use cost::pattern::{Kind, Pattern, Price};
pub use counters::quantity::{Quantity, SassCounters};
pub use counters::{Counters, Profile};
pub use error::{
    EarlierAccess, Fault, FaultKind, MbarrierFault, Position, Reach, RefusedAccess, SimError,
    UnfinishedWarp, WaitReason, WaitingWarp,
};
#[doc(hidden)]
pub use exec::convert::digit;
pub use options::Options;
pub use trace::{AccessEvent, Action, BoxCopy, Detail, Event, EventKind, Operand, Trace};

use gemm_dsl::ir::VerifiedKernel;

/// True if the compiler optimised this crate. Otherwise a launch takes 10 to 50 times as long.
pub const IS_OPTIMISED: bool = cfg!(is_optimised);

/// Runs a kernel and returns its counters.
///
/// `buffers` has one entry, a buffer or a list of buffers, for each buffer parameter. `scalars` has
/// one value for each scalar parameter. Both are in parameter order. An `F32` scalar is passed as
/// its bits.
///
/// The call blocks until the kernel is done and uses the threads of the current rayon pool. A
/// kernel whose blocks synchronise ([`Kernel::communicates`](gemm_dsl::ir::Kernel::communicates))
/// runs on one thread, once for each of several block orders. The results must agree, except in
/// buffers marked [`unordered`](gemm_dsl::ir::Buffer::unordered). If threads synchronise only
/// inside a block, by atomics on shared memory, each block runs in several thread interleavings,
/// under the same condition.
///
/// Concurrent launches may share buffers. If blocks of both kernels synchronise and one launch
/// writes a buffer that both use, one launch waits for the other. Blocks of different launches
/// therefore never synchronise. For all other concurrent launches, the caller must ensure that no
/// launch writes an element that another launch accesses. Races between launches are not detected.
///
/// # Errors
/// Returns an error if the arguments do not match the kernel, or if the kernel does what the IR
/// forbids. Writes before the error remain.
pub fn launch(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
) -> Result<Counters, SimError> {
    launch_with(kernel, buffers, scalars, &Options::default())
}

/// Runs a kernel as [`launch`] does. The options can set a limit of instructions, a progress
/// callback, and the tensor-core rules of another architecture.
///
/// # Errors
/// Returns the errors of [`launch`], and [`SimError::OutOfInstructions`] if the limit is spent.
pub fn launch_with(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
    options: &Options<'_>,
) -> Result<Counters, SimError> {
    Ok(profile(kernel, buffers, scalars, options)?.total)
}

/// Runs a kernel as [`launch_with`] does, and returns the counters of each statement.
///
/// # Errors
/// Returns the errors of [`launch_with`].
pub fn profile(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
    options: &Options<'_>,
) -> Result<Profile, SimError> {
    run(&bound(kernel, buffers, scalars, options)?, options)
}

/// Runs a kernel as [`profile`] does, and records the events of some blocks.
///
/// `blocks` contains linear block numbers, of which x is the fastest dimension, then y, then z.
/// Each block is recorded in the first order in which it runs, up to its last executed event. A
/// block that never starts has no trace.
///
/// # Errors
/// The outer result is an error if the arguments do not match the kernel. A fault of the kernel is
/// in the inner result, together with the traces.
pub fn record(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
    blocks: &[u32],
    options: &Options<'_>,
) -> Result<(Result<Profile, SimError>, Vec<Trace>), SimError> {
    let launch = bound(kernel, buffers, scalars, options)?;
    let launch = launch::Launch { watched: trace::recorder::WatchedBlocks::new(blocks), ..launch };
    let ran = run(&launch, options);
    Ok((ran, launch.watched.seen()))
}

fn bound<'k>(
    kernel: &'k VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
    options: &Options<'_>,
) -> Result<launch::Launch<'k>, SimError> {
    let given: Vec<BufferArg> = buffers.iter().cloned().map(Into::into).collect();
    let launch = launch::Launch::new(kernel, &given, scalars)?;
    let Options { tensor_cores, unchecked, compiled, .. } = *options;
    Ok(launch::Launch { tensor_cores, unchecked, compiled, ..launch })
}

fn run(launch: &launch::Launch<'_>, options: &Options<'_>) -> Result<Profile, SimError> {
    let mut code = lower::lower(launch);
    launch.distinct(&code.stored)?;
    let analysis = options.compiled.then(|| sass::analyse(launch, &code));
    let (fates, charges) = analysis.unzip();
    code.fates = fates;
    let mut profile = match launch.kernel.communicates() {
        false => schedule::grid::run(launch, &code, options),
        true => schedule::block_order::run(launch, &code, options),
    }?;
    if let Some(charges) = charges {
        charges.charge(&mut profile);
    }
    Ok(profile)
}
