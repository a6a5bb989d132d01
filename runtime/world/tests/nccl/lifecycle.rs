//! Lifecycle of communicators whose ranks are threads of this process.

use crate::ensure;
use crate::stub::{Stub, address, go_on, soon};
use fastrand::Rng;
use gemm_world::__private::nccl::{Communicator, Library, NcclResult, NcclTransfer, abort_all};
use gemm_world::{LossReason, WorldError};
use libtest_mimic::Failed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Connects the ranks, and runs `work` on each in its own thread.
fn world<T: Send>(
    library: &Arc<Library>,
    ranks: usize,
    work: impl Fn(Communicator) -> NcclResult<T> + Sync,
) -> NcclResult<Vec<T>> {
    let id = library.unique_id()?;
    let rank = |rank| {
        let communicator = Communicator::begin(Arc::clone(library), id, ranks, rank, None)?;
        communicator.settle(soon(), &mut go_on)?;
        work(communicator)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|at| scope.spawn(move || rank(at))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Performs an exchange and waits for it.
#[allow(unsafe_code, reason = "the addresses are of buffers that live until all is moved")]
fn exchange(communicator: &Communicator, parts: &[NcclTransfer]) -> NcclResult<()> {
    // SAFETY: callers of this function keep the buffers alive.
    unsafe { communicator.exchange(0, parts) }?;
    communicator.settle(soon(), &mut go_on)
}

/// Random numbers of bytes between ranks in one round, by part. All ranks draw the same.
fn drawn(seed: u64, ranks: usize) -> Vec<Vec<Vec<usize>>> {
    let mut rng = Rng::with_seed(seed);
    let mut parts = || -> Vec<usize> {
        (0..rng.usize(..4)).map(|_| if rng.u8(..4) == 0 { 0 } else { rng.usize(1..300) }).collect()
    };
    (0..ranks).map(|_| (0..ranks).map(|_| parts()).collect()).collect()
}

/// Content of one part.
fn content(seed: u64, from: usize, to: usize, at: usize, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed ^ (from << 40 | to << 20 | at) as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(bytes).collect()
}

/// One round of a rank. The parts may have any order that keeps the order of parts between two
/// ranks.
fn round(communicator: &Communicator, seed: u64) -> NcclResult<()> {
    let (ranks, rank) = (communicator.ranks(), communicator.rank());
    let plan = drawn(seed, ranks);
    let mut outgoing: Vec<Vec<Vec<u8>>> = (0..ranks)
        .map(|to| {
            let parts = plan[rank][to].iter().enumerate();
            parts.map(|(at, bytes)| content(seed, rank, to, at, *bytes)).collect()
        })
        .collect();
    let mut incoming: Vec<Vec<Vec<u8>>> = (0..ranks)
        .map(|from| plan[from][rank].iter().map(|bytes| vec![0xee; *bytes]).collect())
        .collect();
    // Order of sends to and receives from each rank.
    let mut turns: Vec<(bool, usize)> = Vec::new();
    for peer in 0..ranks {
        turns.extend(outgoing[peer].iter().map(|_| (true, peer)));
        turns.extend(incoming[peer].iter().map(|_| (false, peer)));
    }
    Rng::with_seed(seed + rank as u64).shuffle(&mut turns);
    let mut done = vec![[0; 2]; ranks];
    let mut parts = Vec::new();
    for (sends, peer) in turns {
        let at = &mut done[peer][usize::from(sends)];
        let buffer = if sends { &mut outgoing[peer][*at] } else { &mut incoming[peer][*at] };
        *at += 1;
        let (at, bytes) = (address(buffer), buffer.len());
        parts.push(if sends {
            NcclTransfer::Send { at, bytes, to: peer }
        } else {
            NcclTransfer::Receive { at, bytes, from: peer }
        });
    }
    exchange(communicator, &parts)?;
    for (from, parts) in incoming.iter().enumerate() {
        for (at, bytes) in parts.iter().enumerate() {
            assert_eq!(
                *bytes,
                content(seed, from, rank, at, bytes.len()),
                "{from} to {rank}, {at}"
            );
        }
    }
    Ok(())
}

pub fn exchanges() -> Result<(), Failed> {
    for seed in 0..24 {
        let stand = Stub::new()?;
        stand.set("polls", seed % 4)?;
        let ranks = 1 + seed as usize % 4;
        world(&stand.nccl()?, ranks, |communicator| {
            (0..8).try_for_each(|at| round(&communicator, seed as u64 * 100 + at))?;
            communicator.finish(soon(), &mut go_on)
        })?;
        stand.is_clean()?;
        let empty = (0..8).all(|at| {
            drawn(seed as u64 * 100 + at, ranks).concat().concat().iter().all(|bytes| *bytes == 0)
        });
        let calls = stand.get("ncclSend")? + stand.get("ncclRecv")?;
        ensure(empty == (calls == 0), || format!("{calls} calls of seed {seed}"))?;
    }
    Ok(())
}

/// Each round runs in another thread.
pub fn other_thread() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    let mut communicators = world(&library, 2, Ok)?;
    for seed in 0..4 {
        communicators = thread::scope(|scope| {
            let threads: Vec<_> = communicators
                .drain(..)
                .map(|communicator| {
                    scope.spawn(move || round(&communicator, seed).map(|()| communicator))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect::<NcclResult<_>>()
        })?;
    }
    abort_all(communicators)?;
    stand.is_clean()
}

pub fn max_ctas() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    for (max, expected) in [(None, i32::MIN), (Some(1), 1), (Some(16), 16)] {
        let id = library.unique_id()?;
        let communicator = Communicator::begin(Arc::clone(&library), id, 1, 0, max)?;
        let found = stand.get("max_ctas")?;
        ensure(found == i64::from(expected), || format!("{max:?}: {found}"))?;
        communicator.abort()?;
    }
    stand.is_clean()
}

pub fn memory() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    let memory = [1, 4096, 0].map(|bytes| library.allocate(bytes));
    let mut addresses = Vec::new();
    for (memory, bytes) in memory.iter().zip([1, 4096, 0]) {
        let memory = memory.as_ref().map_err(ToString::to_string)?;
        ensure(memory.bytes() == bytes, || format!("{memory:?}"))?;
        addresses.push(memory.address());
    }
    ensure(addresses[0] != addresses[1] && addresses[2] == 0, || format!("{addresses:?}"))?;
    ensure(stand.get("live")? == 2, || "two allocations".to_owned())?;
    drop(memory);
    stand.is_clean()
}

/// The last rank skips an exchange. The others learn of its loss, and all their communicators are
/// aborted at once, while the threads that began the exchange still exist.
pub fn lost_rank() -> Result<(), Failed> {
    for ranks in [2, 3] {
        let stand = Stub::new()?;
        let library = stand.nccl()?;
        let (sender, receiver) = mpsc::channel();
        let gate = Mutex::new(());
        let closed = gate.lock();
        let lost = WorldError::RankLost {
            rank: ranks - 1,
            doing: "an exchange".to_owned(),
            why: LossReason::Gone,
        };
        thread::scope(|scope| {
            let (gate, lost, sender) = (&gate, &lost, sender);
            scope.spawn(move || {
                world(&library, ranks, |communicator| {
                    let rank = communicator.rank();
                    let mut buffers = vec![vec![rank as u8; 100]; 2 * ranks];
                    let mut halves = buffers.iter_mut().map(|buffer| address(buffer));
                    let mut parts = Vec::new();
                    for peer in 0..ranks {
                        let [Some(from), Some(to)] = [halves.next(), halves.next()] else { break };
                        parts.push(NcclTransfer::Send { at: from, bytes: 100, to: peer });
                        parts.push(NcclTransfer::Receive { at: to, bytes: 100, from: peer });
                    }
                    let mut outcome = Ok(());
                    if rank < ranks - 1 {
                        let mut rounds = 0;
                        outcome = begin_and_wait(&communicator, &parts, &mut || {
                            rounds += 1;
                            if rounds > 20 { Err(lost.clone()) } else { Ok(()) }
                        });
                    }
                    sender.send((outcome, communicator)).expect("somebody waits");
                    drop(gate.lock());
                    drop(buffers);
                    Ok(())
                })
            });
            let (outcomes, communicators): (Vec<_>, Vec<_>) = receiver.iter().take(ranks).unzip();
            let aborted = abort_all(communicators);
            drop(closed);
            aborted?;
            let are_lost = outcomes.iter().filter(|outcome| outcome.as_ref() == Err(lost)).count();
            ensure(are_lost == ranks - 1, || format!("{outcomes:?}"))
        })?;
        ensure(stand.get("ncclGroupStart")? == ranks as i64, || "one group to abort".to_owned())?;
        stand.is_clean()?;
    }
    Ok(())
}

#[allow(unsafe_code, reason = "the addresses are of buffers that live until all is aborted")]
fn begin_and_wait(
    communicator: &Communicator,
    parts: &[NcclTransfer],
    keep_going: &mut dyn FnMut() -> NcclResult<()>,
) -> NcclResult<()> {
    // SAFETY: callers of this function keep the buffers alive.
    unsafe { communicator.exchange(0, parts) }?;
    communicator.settle(soon(), keep_going)
}

pub fn no_finish() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let (begin, wait) = (Instant::now(), Duration::from_millis(100));
    let outcomes = world(&stand.nccl()?, 3, |communicator| {
        if communicator.rank() == 1 {
            thread::sleep(2 * wait);
            return communicator.abort().map(|()| None);
        }
        Ok(Some(communicator.finish(Instant::now() + wait, &mut go_on)))
    })?;
    let is_late = |outcome: &NcclResult<()>| match outcome {
        Err(WorldError::NcclLate { doing, waited }) => {
            doing == "the end of a communicator" && *waited >= wait && *waited < begin.elapsed()
        }
        _ => false,
    };
    let late = outcomes.iter().flatten().filter(|outcome| is_late(outcome)).count();
    ensure(late == 2, || format!("{outcomes:?}"))?;
    stand.is_clean()
}

/// Communicators are aborted during any activity, and in a panicking thread.
pub fn dropped() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    let id = library.unique_id()?;
    let begun = Communicator::begin(Arc::clone(&library), id, 2, 0, None)?;
    drop(begun);
    stand.is_clean()?;
    world(&library, 2, |communicator| {
        let mut bytes = [0; 8];
        let part =
            NcclTransfer::Send { at: address(&mut bytes), bytes: 8, to: 1 - communicator.rank() };
        let wait = begin_and_wait(&communicator, &[part], &mut || {
            Err(WorldError::Impossible { what: String::new(), need: String::new() })
        });
        assert!(matches!(wait, Err(WorldError::Impossible { .. })), "{wait:?}");
        drop(communicator);
        Ok(())
    })?;
    stand.is_clean()?;
    let communicators = world(&library, 2, Ok)?;
    let panicked = thread::spawn(move || {
        let _communicators = communicators;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    ensure(panicked.join().is_err(), || "it was to panic".to_owned())?;
    stand.is_clean()
}

/// One rank sends more bytes than the other receives.
pub fn unlike() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let outcomes = world(&stand.nccl()?, 2, |communicator| {
        let mut bytes = [0; 9];
        let at = address(&mut bytes);
        let part = match communicator.rank() {
            0 => NcclTransfer::Send { at, bytes: 9, to: 1 },
            _ => NcclTransfer::Receive { at, bytes: 8, from: 0 },
        };
        let outcome = exchange(&communicator, &[part]);
        // The communicator can only be aborted.
        let next = exchange(&communicator, &[]);
        assert!(matches!(next, Err(WorldError::NcclRefused { .. })), "{next:?}");
        communicator.abort()?;
        Ok(outcome)
    })?;
    for outcome in outcomes {
        let is_said = matches!(&outcome, Err(WorldError::Nccl { doing, code: 5, text })
            if doing == "an exchange" && text.contains("invalid usage"));
        ensure(is_said, || format!("{outcome:?}"))?;
    }
    stand.is_clean()
}
