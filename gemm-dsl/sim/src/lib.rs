//! Simulator of generated kernels: executes a [`VerifiedKernel`] on a machine without a GPU.
//!
//! It is the executable definition of the IR. [`launch`] computes the same bits as a GPU and
//! returns [`Counters`] that explain differences in speed. An invalid kernel yields a [`SimError`]
//! that names the buffer, the element, the thread and the statement.
//!
//! ```text
//! kernel, arguments ──launch──► numbers for names ──lower──► linear code ──schedule──► blocks in parallel, or
//!                                                                            │         in several orders
//!                                                                            │
//!                                     one warp until a barrier ◄────exec─────┘
//!                                                 │ accesses, synchronisation
//!                                                 ▼
//!                            observers: race (races, init), counters (traffic)
//! ```
//!
//! # Invariants
//! * A warp runs alone until it waits or yields; then the next warp runs. No detector derives
//!   happens-before from that order.
//! * The executor computes. Observers watch it and change nothing.
//! * The blocks of a cluster run together, as one block of all their threads with one shared memory
//!   per block.
//! * Results, errors and counters are the same on every run, although blocks run in parallel. If
//!   one block writes an element that another one accesses, the launch is run again, one block
//!   after the other. A race found there is reported before any fault that follows from the racy
//!   read. If the instruction limit is spent, the reported position may vary, and so may the choice
//!   between that error and another one.
//!
//! # Meaning of a clean verdict
//! No executed interleaving has a fault, and all gave the same results. Without atomics all
//! interleavings behave alike, so one represents all. With atomics, the values a thread reads and
//! the path it takes depend on the order of threads. The verdict then covers the executed block
//! orders and thread interleavings only, which are not all. Two limits apply to each of them:
//! * The statements of a warp are executed in program order, by all active lanes. Only the two
//!   branches of an `if` may run in either order. A lane that waits for another lane of its warp
//!   may wait forever, though hardware may let both proceed.
//! * An access takes effect at once and for all threads. A missing order shows as a race.
//!   Weak-memory outcomes that no interleaving explains do not show: for example, two threads that
//!   both miss the other's write before its fence.
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
/// Concurrent launches may share buffers. Launches of kernels whose blocks synchronise wait for
/// each other if one writes a buffer that both use, so blocks of different launches never
/// synchronise. Any other two concurrent launches must not write the same element, nor may one read
/// an element that the other writes. Races between launches are not detected.
///
/// # Errors
/// Returns an error if the arguments do not fit the kernel or the kernel does what the IR forbids.
/// Writes made before the error stay.
pub fn launch(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
) -> Result<Counters, SimError> {
    launch_with(kernel, buffers, scalars, &Options::default())
}

/// Runs a kernel as [`launch`] does, with a limit of instructions, a progress callback and the
/// tensor-core rules of another architecture.
///
/// # Errors
/// As [`launch`], and [`SimError::OutOfInstructions`] if the limit is spent.
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
/// As [`launch_with`].
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
/// `blocks` holds linear block numbers, x fastest, then y, then z. Each block is recorded in its
/// first order, up to its last executed event. A block that never started has no trace.
///
/// # Errors
/// The outer result is an error if the arguments do not fit the kernel. A fault of the kernel is in
/// the inner result, beside the traces.
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
