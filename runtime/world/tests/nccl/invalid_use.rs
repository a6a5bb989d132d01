//! Calls that would crash NCCL, and that this crate rejects.

use crate::ensure;
use crate::stub::{Stub, address, go_on, soon};
use gemm_world::__private::nccl::{Communicator, NcclResult, NcclTransfer};
use gemm_world::WorldError;
use libtest_mimic::Failed;
use std::fmt::Debug;
use std::sync::Arc;

#[track_caller]
fn is_refused<T: Debug>(outcome: NcclResult<T>, parts: &[&str]) -> Result<(), Failed> {
    let at = std::panic::Location::caller();
    let is_said = match &outcome {
        Err(error @ WorldError::NcclRefused { .. }) => {
            parts.iter().all(|part| error.to_string().contains(part))
        }
        _ => false,
    };
    ensure(is_said, || format!("{at}: {outcome:?} without {parts:?}"))
}

#[allow(unsafe_code, reason = "what is refused touches no memory")]
pub fn calls() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    let id = library.unique_id()?;
    let begin = |ranks, rank, max| Communicator::begin(Arc::clone(&library), id, ranks, rank, max);
    is_refused(begin(0, 0, None), &["connecting the ranks", "rank 0 is not one of 0"])?;
    is_refused(begin(2, 2, None), &["rank 2 is not one of 2"])?;
    is_refused(begin(usize::MAX, 0, None), &["rank 0 is not one of"])?;
    is_refused(begin(usize::MAX, usize::MAX, None), &["rank"])?;
    is_refused(begin(1, 0, Some(0)), &["max_ctas has to be positive, not 0"])?;
    is_refused(begin(1, 0, Some(-4)), &["not -4"])?;
    ensure(stand.get("ncclCommInitRankConfig")? == 0, || "it was called".to_owned())?;

    let communicator = begin(1, 0, None)?;
    communicator.settle(soon(), &mut go_on)?;
    let mut bytes = [0_u8; 16];
    let at = address(&mut bytes);
    let exchange = |parts: &[NcclTransfer]| {
        // SAFETY: NCCL is not called.
        unsafe { communicator.exchange(0, parts) }
    };
    let send = |bytes, to| NcclTransfer::Send { at, bytes, to };
    let receive = |bytes, from| NcclTransfer::Receive { at, bytes, from };
    is_refused(exchange(&[send(1, 1)]), &["an exchange", "rank 1 has to be below 1"])?;
    is_refused(exchange(&[receive(1, usize::MAX)]), &["rank 18446744073709551615"])?;
    // The call is also rejected without bytes.
    is_refused(exchange(&[send(0, 1)]), &["rank 1"])?;
    is_refused(exchange(&[NcclTransfer::Send { at: 0, bytes: 3, to: 0 }]), &["3 bytes", "at 0x0"])?;
    let last = NcclTransfer::Receive { at: u64::MAX - 1, bytes: 3, from: 0 };
    is_refused(exchange(&[last]), &["3 bytes", "at 0xfffffffffffffffe"])?;
    is_refused(exchange(&[send(4, 0)]), &["rank 0 must receive from itself"])?;
    is_refused(exchange(&[receive(4, 0)]), &["rank 0 must receive from itself"])?;
    is_refused(exchange(&[send(4, 0), receive(5, 0)]), &["rank 0 must receive from itself"])?;
    let crossed = [send(4, 0), send(5, 0), receive(5, 0), receive(4, 0)];
    is_refused(exchange(&crossed), &["rank 0 must receive from itself"])?;
    // Without bytes NCCL is not called, at any address.
    exchange(&[])?;
    exchange(&[NcclTransfer::Send { at: 0, bytes: 0, to: 0 }])?;
    ensure(stand.get("ncclGroupStart")? == 0, || "it was called".to_owned())?;
    // The communicator is still usable.
    communicator.finish(soon(), &mut go_on)?;
    stand.is_clean()
}

#[allow(unsafe_code, reason = "the addresses are of a buffer that lives until the end")]
pub fn unsettled() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    let begin = || -> NcclResult<_> {
        Communicator::begin(Arc::clone(&library), library.unique_id()?, 1, 0, None)
    };
    let mut bytes = [0_u8; 16];
    let at = address(&mut bytes);
    let parts = [
        NcclTransfer::Send { at, bytes: 8, to: 0 },
        NcclTransfer::Receive { at: at + 8, bytes: 8, from: 0 },
    ];
    let exchange = |communicator: &Communicator| {
        // SAFETY: the buffer lives as long as all communicators.
        unsafe { communicator.exchange(0, &parts) }
    };
    let settle = |communicator: &Communicator| communicator.settle(soon(), &mut go_on);

    let one = begin()?;
    is_refused(exchange(&one), &["connecting the ranks has to be settled before"])?;
    is_refused(begin(), &["the operation that this thread began with another communicator"])?;
    settle(&one)?;
    let other = begin()?;
    is_refused(
        exchange(&one),
        &["the operation that this thread began with another communicator"],
    )?;
    settle(&other)?;
    exchange(&one)?;
    is_refused(exchange(&one), &["an exchange has to be settled before"])?;
    is_refused(exchange(&other), &["with another communicator"])?;
    // Another thread may begin an activity.
    std::thread::scope(|scope| scope.spawn(|| begin()?.abort()).join().expect("no panic"))?;
    settle(&one)?;
    exchange(&other)?;
    // An aborted activity has ended.
    other.abort()?;
    exchange(&one)?;
    settle(&one)?;
    // `finish` settles the activity first.
    exchange(&one)?;
    one.finish(soon(), &mut go_on)?;
    // A communicator cannot finish while an activity of another one is in flight. It is aborted
    // instead.
    let one = begin()?;
    settle(&one)?;
    let other = begin()?;
    is_refused(one.finish(soon(), &mut go_on), &["the end of a communicator", "with another"])?;
    other.abort()?;
    ensure(stand.get("ncclCommFinalize")? == 1, || "it was called".to_owned())?;
    stand.is_clean()
}

/// A failed communicator is never used again, even if NCCL reports success later.
#[allow(unsafe_code, reason = "there is nothing to move")]
pub fn failed() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    let id = library.unique_id()?;
    let communicator = Communicator::begin(library, id, 1, 0, None)?;
    communicator.settle(soon(), &mut go_on)?;
    stand.set("async", 6)?;
    let outcome = communicator.progress();
    ensure(matches!(outcome, Err(WorldError::Nccl { code: 6, .. })), || format!("{outcome:?}"))?;
    stand.set("async", 0)?;
    // SAFETY: NCCL is not called.
    let outcome = unsafe { communicator.exchange(0, &[]) };
    is_refused(outcome, &["the communicator has failed before, and has to be aborted"])?;
    is_refused(communicator.finish(soon(), &mut go_on), &["the communicator has failed before"])?;
    stand.is_clean()
}
