//! The simulator: executes a [`VerifiedKernel`] on a machine without a GPU.
//!
//! It is the living definition of the IR. [`launch`] gives the results that a GPU gives, bit for
//! bit, and [`Counters`] that say why one kernel is faster than another; or it says what is wrong
//! with the kernel, as a [`SimError`] that names the buffer, the element, the thread and the
//! statement.
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
//! Invariants:
//! * A warp runs alone until it must wait or lets others run; then the next does. No detector
//!   concludes from that order that two accesses are ordered.
//! * The executor computes; what watches it is an observer and changes nothing.
//! * Blocks of a cluster run together, as one block of all their threads whose memory is in parts.
//! * Results, errors and counters are the same on every run, although blocks run in parallel. Blocks of which
//!   two touch the same are run again one after the other, and what that shows is told: a race between them
//!   before any fault that one may have by what it has read there. Only where the limit of instructions is
//!   spent, what else the launch would have come to by then, and where it was, may be told or not.
//!
//! What a clean verdict means: no interleaving that was run has a fault, and all had the same results.
//! Without atomics all interleavings do the same, so that one stands for all. With atomics, what a thread
//! finds, and where it goes then, follows the order in which threads came: the verdict is one for those
//! orders of blocks and turns of their threads that were run, which are not all. In each of them
//! * the statements of a warp are executed in the order of the text, by all lanes that come to them. Only
//!   of the two branches of an `if` either may come first; a lane that waits for another one of its warp
//!   may wait for ever, though hardware may let both go on;
//! * an access happens at once and for everybody. An order that is missing shows as a race; what fences
//!   let through that no interleaving explains, as two threads of which neither sees what the other wrote
//!   before its fence, does not show. So [`MemoryOrder::SeqCst`](gemm_dsl::ir::MemoryOrder::SeqCst) does no more here than
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

/// Runs a kernel: a buffer, or a list of them, for each buffer parameter and one value for each scalar
/// parameter, both in the order of the parameters. The value of an `F32` parameter is given by its bits.
///
/// A launch blocks until the kernel is done and uses the threads of the current rayon pool. A kernel whose
/// blocks synchronise ([`Kernel::communicates`](gemm_dsl::ir::Kernel::communicates)) runs on one
/// thread, and several times, its blocks in another order each time: the results must agree, but for buffers
/// that are [`unordered`](gemm_dsl::ir::Buffer::unordered). One whose threads do so only inside a block, by
/// atomics on shared memory, runs each block in several turns of its threads, under the same condition.
///
/// A launch may share buffers with concurrent ones. Those of kernels whose blocks synchronise wait for one another
/// where one writes what both use; so their blocks do not synchronise with those of another launch. Of any others, two
/// at once must not write one element, nor one read what another writes: between launches nobody looks for
/// races.
///
/// # Errors
/// Arguments that do not fit the kernel, and everything that the IR forbids. What the kernel has
/// written before an error stays written.
pub fn launch(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
) -> Result<Counters, SimError> {
    launch_with(kernel, buffers, scalars, &Options::default())
}

/// As [`launch`], with a limit of instructions, somebody who watches, and the tensor cores of another architecture.
///
/// # Errors
/// As those of [`launch`], and [`SimError::OutOfInstructions`].
pub fn launch_with(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
    options: &Options<'_>,
) -> Result<Counters, SimError> {
    Ok(profile(kernel, buffers, scalars, options)?.total)
}

/// As [`launch_with`], with what each statement was charged with.
///
/// # Errors
/// As those of [`launch_with`].
pub fn profile(
    kernel: &VerifiedKernel,
    buffers: &[impl Clone + Into<BufferArg>],
    scalars: &[u64],
    options: &Options<'_>,
) -> Result<Profile, SimError> {
    run(&bound(kernel, buffers, scalars, options)?, options)
}

/// As [`profile`], with what happened in some blocks, by their numbers: along x first, then y, then z. Each is told of in its
/// first order, as far as it has come; one that was never begun is not.
///
/// # Errors
/// Arguments that do not fit the kernel. What it is itself at fault with is beside what was seen.
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
