//! One of those that work together.

use super::error::{LossReason, WorldError, impossible, numbered};
use super::partials::PartialBuffers;
use super::{Machine, Sharded};
use crate::channel::{Channel, RankLoss, Tag, held};
use crate::consensus;
use crate::recent::RecentCalls;
use crate::reduce::CachedReduction;
use crate::selection::CachedProduct;
use crate::staging::StagingBuffers;
use crate::transport::Links;
use crate::{Error, Result};
use gemm_dsl::target::element::{Element, from_bytes, to_bytes};
use gemm_runtime::Device;
use gemm_runtime::Owner;
use gemm_runtime::internal::SplitBuffers;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One of the ranks of a [`World`](super::World): a device, and its place among the others.
///
/// What several ranks do together they all have to call, in the same order; a call compares what it was given before it
/// moves anything, and is an error on every rank where they are at odds. It takes the rank exclusively, so that no two of
/// them are under way at once.
pub struct Rank {
    pub(crate) device: Device,
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) links: Links,
    pub(crate) timeout: Duration,
    pub(crate) machine: Machine,
    pub(crate) memory: Option<u64>,
    pub(crate) staging: StagingBuffers,
    pub(crate) products: RecentCalls<CachedProduct>,
    pub(crate) folds: RecentCalls<CachedReduction>,
    /// Partials of the reduction before, for the memory that they take.
    pub(crate) partials: Option<PartialBuffers>,
    /// Of the product before, for the memory that they take: those of A and of B.
    pub(crate) splits: [Option<Arc<SplitBuffers>>; 2],
    /// How many calls of all ranks there have been.
    pub(crate) calls: u64,
    /// NCCL lets no two threads speak for one rank.
    pub(crate) not_sync: PhantomData<Cell<()>>,
}

/// What the ranks say to one another in one call.
pub(crate) struct CollectiveContext {
    channel: Arc<dyn Channel>,
    timeout: Duration,
    call: u64,
    doing: String,
}

impl Rank {
    /// Its number, from 0.
    pub fn number(&self) -> usize {
        self.channel.rank()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.channel.ranks()
    }

    /// The device that its work runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What schedules are chosen by.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Waits until all ranks have come to the same call, and for the work of this rank's device.
    ///
    /// # Errors
    /// [`WorldError::RankLost`]; what the work of the device failed with.
    pub fn barrier(&mut self) -> Result<()> {
        self.device.synchronize()?;
        let collective = self.collective("waiting for all ranks");
        collective.agree("which call comes next", "barrier")
    }

    /// The elements of a matrix at one rank, row after row; none at the others. Where all have it whole, they are those of
    /// that rank.
    ///
    /// ```
    /// use gemm_world::{Distribution, World};
    ///
    /// let distribution = Distribution::cols(2, 3);
    /// let gathered = World::simulated(2)?.run(|rank| {
    ///     let part = rank.upload(&distribution, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    ///     rank.gather(&part, 0)
    /// })?;
    /// assert_eq!(gathered, [Some(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), None]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`WorldError::RankLost`]; [`WorldError::Mismatch`] where ranks are at odds over the layout or over who gets the
    /// elements; [`WorldError::Impossible`] for a rank that is not there; [`Error::OutOfMemory`](gemm_runtime::Error::OutOfMemory) where the host has no room.
    pub fn gather<T: Element>(&mut self, part: &Sharded<T>, at: usize) -> Result<Option<Vec<T>>> {
        let (distribution, ranks) = (part.distribution().clone(), self.ranks());
        if at >= ranks {
            return Err(impossible(format!("rank {at}"), &numbered(ranks)));
        }
        let collective = self.collective(format!("gathering a matrix at rank {at}"));
        collective
            .agree("what is gathered", &format!("{distribution} of {} at rank {at}", T::ELEM))?;
        let shards = distribution.shards(ranks).map_err(WorldError::Distribution)?;
        // What the rank has all of nobody sends.
        let is_there = shards[at] == distribution.all();
        let sends = |rank: usize| !shards[rank].is_empty() && (rank == at || !is_there);
        let own = collective.telling(self.device.download(&part.view()))?;
        // What it waited for may have ended with the loss of a rank.
        collective.held()?;
        if self.number() != at {
            if sends(self.number()) {
                collective.send(at, 0, to_bytes(&own))?;
            }
            return Ok(None);
        }
        let mut all = Vec::new();
        let len = distribution.rows.checked_mul(distribution.cols);
        let room = len.filter(|len| all.try_reserve_exact(*len).is_ok());
        let len = collective.telling(room.ok_or_else(|| {
            Error::Device(gemm_runtime::Error::OutOfMemory {
                bytes: (distribution.rows as u64)
                    .saturating_mul(distribution.cols as u64)
                    .saturating_mul(size_of::<T>() as u64),
                device: "the host".to_owned(),
            })
        }))?;
        all.resize(len, T::default());
        for (rank, block) in shards.iter().enumerate().filter(|(rank, _)| sends(*rank)) {
            let elements =
                if rank == at { own.clone() } else { collective.elements(rank, block.len())? };
            for (row, line) in block.rows.clone().zip(elements.chunks_exact(block.cols.len())) {
                all[row * distribution.cols..][block.cols.clone()].copy_from_slice(line);
            }
        }
        Ok(Some(all))
    }

    /// Waits for all work of the device, and says whether the world has held until then.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.device.synchronize()?;
        Ok(held(&*self.channel, "waiting for its device")?)
    }

    /// What the next call of all ranks says to the others, which each rank is `doing`.
    pub(crate) fn collective(&mut self, doing: impl Into<String>) -> CollectiveContext {
        self.calls += 1;
        let (channel, timeout) = (Arc::clone(&self.channel), self.timeout);
        CollectiveContext { channel, timeout, call: self.calls, doing: doing.into() }
    }

    /// Checks that an operand lies on this rank's device.
    pub(crate) fn check_device(&self, argument: &str, has: &Device) -> Result<()> {
        if has.is_same(&self.device) {
            return Ok(());
        }
        let belongs =
            Owner::Device { name: has.name().to_owned(), is_simulator: has.is_simulator() };
        let (argument, device) = (argument.to_owned(), self.device.name().to_owned());
        Err(Error::Device(gemm_runtime::Error::WrongDevice { argument, device, belongs }))
    }
}

impl std::fmt::Debug for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rank")
            .field("number", &self.number())
            .field("ranks", &self.ranks())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Tags of one call: one for what all ranks say, one for each exchange, and one for each signal.
const TAGS: u64 = 1 << 20;

/// What a verdict of rank 0 takes until it is here.
const MARGIN: Duration = Duration::from_millis(500);

/// What a rank tells the others without words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// Its parts may be fetched.
    Ready = 1,
    /// It has everything that it fetches.
    Done = 2,
}

impl CollectiveContext {
    pub(crate) fn number(&self) -> usize {
        self.channel.rank()
    }

    pub(crate) fn ranks(&self) -> usize {
        self.channel.ranks()
    }

    /// Checks that all ranks have come to this call with the same in hand.
    pub(crate) fn agree(&self, what: &str, value: &str) -> Result<()> {
        self.agree_on(&[(what, value)], false).map(drop)
    }

    /// The same of several texts, in one message. Whether all ranks are ready, as this one says that it is.
    pub(crate) fn agree_on(&self, said: &[(&str, &str)], is_ready: bool) -> Result<bool> {
        const REMEDY: &str =
            "All ranks make the same calls in the same order, with the same layouts";
        let (tag, deadline) = (self.tag(None)?, self.deadline_of_all());
        Ok(consensus::agree(&*self.channel, tag, said, is_ready, deadline, REMEDY)?)
    }

    /// What every rank says, in their order.
    pub(crate) fn gather_all(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let (tag, deadline) = (self.tag(None)?, self.deadline_of_all());
        Ok(consensus::gather_all(&*self.channel, tag, &self.doing, bytes, deadline)?)
    }

    /// Tells all ranks that this one has failed.
    pub(crate) fn abort(&self, error: &Error) {
        let why = LossReason::Failed(error.to_string());
        self.channel.abort(RankLoss { rank: self.number(), why });
    }

    /// What this rank has come to, of which the others are told where it is an error: they would wait for it.
    pub(crate) fn telling<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T> {
        outcome.map_err(Into::into).inspect_err(|error| self.abort(error))
    }

    /// Hands over what belongs to an exchange.
    pub(crate) fn send(&self, to: usize, exchange: usize, bytes: Vec<u8>) -> Result<()> {
        let sent = self.channel.send(to, self.tag(Some(exchange))?, bytes);
        sent.map_err(|broken| self.lost(broken))
    }

    /// Takes what belongs to an exchange.
    pub(crate) fn take(&self, from: usize, exchange: usize) -> Result<Vec<u8>> {
        let taken = self.channel.take(from, self.tag(Some(exchange))?, self.deadline());
        taken.map_err(|broken| self.lost(broken))
    }

    /// So many elements of another rank, in exchange 0.
    fn elements<T: Element>(&self, from: usize, len: usize) -> Result<Vec<T>> {
        let bytes = self.take(from, 0)?;
        let elements: Option<Vec<T>> = from_bytes(&bytes);
        elements.filter(|elements| elements.len() == len).ok_or_else(|| {
            Error::World(WorldError::Mismatch {
                what: "a part of the matrix".to_owned(),
                rank: from,
                has: format!("sent {} bytes", bytes.len()),
                other: self.number(),
                others: format!("room for {len} elements"),
                remedy: "What carries messages between the ranks has changed one",
            })
        })
    }

    /// What a user is told of a rank that is lost.
    pub(crate) fn lost(&self, broken: RankLoss) -> Error {
        Error::World(broken.at(&self.doing))
    }

    /// Whether no rank has been lost.
    pub(crate) fn held(&self) -> Result<()> {
        Ok(self.held_world()?)
    }

    /// The same, for those who know of no other errors.
    pub(crate) fn held_world(&self) -> Result<(), WorldError> {
        held(&*self.channel, &self.doing)
    }

    /// When all ranks are to have spoken. Rank 0 hears them, and says who is late: the others wait for what it says, which may
    /// be as late itself.
    fn deadline_of_all(&self) -> Instant {
        let margin = if self.number() == 0 { Duration::ZERO } else { self.timeout + MARGIN };
        self.deadline() + margin
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// The number of the call.
    pub(crate) fn call(&self) -> u64 {
        self.call
    }

    /// Gives all others a signal.
    pub(crate) fn tell_all(&self, signal: Signal) -> Result<()> {
        for to in (0..self.ranks()).filter(|to| *to != self.number()) {
            let sent = self.channel.send(to, self.signal(signal), Vec::new());
            sent.map_err(|broken| self.lost(broken))?;
        }
        Ok(())
    }

    /// Waits for a signal of another rank.
    pub(crate) fn hear(&self, from: usize, signal: Signal) -> Result<()> {
        let heard = self.channel.take(from, self.signal(signal), self.deadline());
        heard.map(|_| ()).map_err(|broken| self.lost(broken))
    }

    fn signal(&self, signal: Signal) -> Tag {
        Tag(self.call * TAGS + TAGS - signal as u64)
    }

    fn tag(&self, exchange: Option<usize>) -> Result<Tag> {
        let exchange = exchange.map_or(0, |exchange| exchange as u64 + 1);
        // The last ones are those of signals.
        let most = TAGS - Signal::Done as u64;
        if exchange >= most {
            return Err(Error::Device(gemm_runtime::Error::TooLarge {
                what: format!("the schedule has {exchange} exchanges"),
                limit: most - 1,
                remedy: "Cut the product into fewer parts",
            }));
        }
        Ok(Tag(self.call * TAGS + exchange))
    }
}
