//! Transport by GPU copy engines within one process. Copy engines run concurrently with GEMMs and
//! occupy no SMs. The rank that needs a block copies it from the memory of the block's owner.

use super::{ExchangeStart, OwnBlock, Transfer, Transport};
use crate::collective::{CollectiveContext, Signal};
use crate::error::failed;
use crate::staging::{area_of, part};
use crate::{Block, Factor};
use crate::{Error, Result};
use cudarc::driver::sys::{self, CUmemAccess_flags, CUmemLocationType, CUresult};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};
use gemm_runtime::Device;
use gemm_runtime::internal::DeviceBackend;
use gemm_runtime::internal::Gpu;
use gemm_runtime::internal::{Area, Backend};
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Shared state of a process's ranks, by call and rank.
#[derive(Default)]
struct Board {
    /// Number of transports between their `start` and `end`. These may access other ranks' memory.
    busy: Mutex<usize>,
    /// Signalled when a transport is no longer busy.
    idle: Condvar,
    /// Published shards of each rank.
    own: Mutex<HashMap<(u64, usize), Arc<PublishedParts>>>,
    /// Event of each rank after its last copy.
    done: Mutex<HashMap<(u64, usize), Arc<CudaEvent>>>,
}

/// Published shards of A and B of a rank.
struct PublishedParts {
    /// Event after which the shards may be read.
    ready: CudaEvent,
    parts: Vec<(Factor, Block, Area<Gpu>)>,
}

/// One rank's link by copy engines.
pub(crate) struct Peers {
    /// High-priority stream for copies, scheduled before the device's own stream.
    stream: Arc<CudaStream>,
    board: Arc<Board>,
}

impl Peers {
    /// Links the ranks of these devices, if all are GPUs that can access each other's memory.
    pub(crate) fn between(devices: &[Device]) -> Result<Option<Vec<Self>>> {
        let contexts: Option<Vec<_>> =
            devices.iter().map(|device| device.cudarc().map(|(context, _)| context)).collect();
        let Some(contexts) = contexts else { return Ok(None) };
        // Ranks of one context share its memory.
        let is_other = |n: usize, m: usize| contexts[n].cu_ctx() != contexts[m].cu_ctx();
        let all = 0..devices.len();
        let pairs = all.clone().flat_map(|n| all.clone().map(move |m| (n, m)));
        let pairs: Vec<_> = pairs.filter(|(n, m)| is_other(*n, *m)).collect();
        for (n, m) in &pairs {
            if !reaches(contexts[*n], contexts[*m])? {
                return Ok(None);
            }
        }
        for (n, m) in &pairs {
            if !arrives(&devices[*n], &devices[*m])? {
                return Ok(None);
            }
        }
        let board = Arc::new(Board::default());
        let end = |device: &Device| {
            Ok(Self { stream: stream_beside(device)?, board: Arc::clone(&board) })
        };
        devices.iter().map(end).collect::<Result<Vec<Self>>>().map(Some)
    }
}

/// Creates a stream of the highest priority, scheduled before the device's own stream.
pub(super) fn stream_beside(device: &Device) -> Result<Arc<CudaStream>> {
    let Some((context, _)) = device.cudarc() else {
        return Err(Error::internal("a simulator has no streams".to_owned()));
    };
    context.bind_to_thread().map_err(failed("making the context current"))?;
    let range = result::stream::get_priority_range();
    let (_, most) = range.map_err(failed("asking for the priorities of streams"))?;
    context.new_stream_with_priority(most).map_err(failed("creating a stream"))
}

/// Copies a pattern between two GPUs and returns true if it arrives intact. This checks the
/// driver's report that peer access works.
fn arrives(from: &Device, to: &Device) -> Result<bool> {
    const LEN: usize = 1 << 16;
    let pattern: Vec<u32> =
        (0..LEN as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).collect();
    let (source, target) = (from.upload_of(&pattern)?, to.alloc_of::<u32>(LEN)?);
    let DeviceBackend::Gpu(gpu) = to.backend() else { return Ok(false) };
    let [source, room] = [&source, &target].map(|buffer| area_of::<Gpu>(buffer, 1, LEN, LEN));
    let copied = gpu.copy_area_on(gpu.stream(), &source?, &room?);
    Ok(copied.is_ok() && to.download(&target).is_ok_and(|found| found == pattern))
}

/// Enables access of one context to the memory of another, for ordinary allocations and for
/// allocations of the default pool. Returns false if the driver does not allow this access.
#[allow(unsafe_code, reason = "calls of the driver that cudarc does not wrap")]
fn reaches(from: &CudaContext, to: &CudaContext) -> Result<bool> {
    let doing = || failed(format!("letting GPU {} reach GPU {}", from.ordinal(), to.ordinal()));
    let mut can = 0;
    // SAFETY: both contexts exist, so their devices do, and the pointer is valid for the call.
    let asked = unsafe { sys::cuDeviceCanAccessPeer(&mut can, from.cu_device(), to.cu_device()) };
    asked.result().map_err(doing())?;
    if can == 0 {
        return Ok(false);
    }
    from.bind_to_thread().map_err(doing())?;
    // SAFETY: the other context exists as long as its device, which the ranks of a world keep.
    match unsafe { sys::cuCtxEnablePeerAccess(to.cu_ctx(), 0) }.result() {
        Ok(()) | Err(DriverError(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)) => {}
        Err(DriverError(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)) => return Ok(false),
        Err(error) => return Err(doing()(error)),
    }
    if !to.has_async_alloc() {
        return Ok(true);
    }
    // `CUmemAccessDesc` of the driver, the same in every version: location kind, device and access
    // flags.
    #[repr(C)]
    struct Access {
        kind: CUmemLocationType,
        device: i32,
        may: CUmemAccess_flags,
    }
    let access = Access {
        kind: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        device: from.cu_device(),
        may: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    let mut pool = std::ptr::null_mut();
    // SAFETY: both pointers are valid for the calls, the pool belongs to an existing device, and
    // the description has the driver's layout.
    let granted = unsafe {
        match sys::cuDeviceGetDefaultMemPool(&mut pool, to.cu_device()).result() {
            Ok(()) => sys::cuMemPoolSetAccess(pool, (&raw const access).cast(), 1).result(),
            error => error,
        }
    };
    granted.map_err(doing())?;
    Ok(true)
}

/// Transport of one GEMM or reduction by copy engines.
pub(crate) struct PeerTransport<'t> {
    peers: &'t Peers,
    collective: &'t CollectiveContext,
    /// Published shards of the ranks from which this rank has copied.
    others: HashMap<usize, Arc<PublishedParts>>,
    /// Deferred exchanges, each with the event for which it must wait. An exchange is deferred
    /// because the locations of other ranks' shards may not be known yet.
    put_off: Vec<(ExchangeStart<Gpu>, Option<CudaEvent>)>,
    /// Completion events of the begun exchanges.
    done: HashMap<usize, CudaEvent>,
    /// True while this transport is counted in [`Board::busy`].
    is_busy: bool,
}

impl<'t> PeerTransport<'t> {
    pub(crate) fn new(peers: &'t Peers, collective: &'t CollectiveContext) -> Self {
        let (others, put_off, done) = (HashMap::new(), Vec::new(), HashMap::new());
        Self { peers, collective, others, put_off, done, is_busy: false }
    }

    fn busy(&mut self, is_busy: bool) {
        let board = &self.peers.board;
        let mut busy = board.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match (self.is_busy, is_busy) {
            (false, true) => *busy += 1,
            (true, false) => *busy -= 1,
            _ => return,
        }
        self.is_busy = is_busy;
        board.idle.notify_all();
    }

    /// Returns the published shards of another rank. Orders all later copies after their `ready`
    /// event.
    fn published(&mut self, rank: usize) -> Result<Arc<PublishedParts>> {
        if let Some(published) = self.others.get(&rank) {
            return Ok(Arc::clone(published));
        }
        self.collective.hear(rank, Signal::Ready)?;
        let published = self.peers.board.own.lock().unwrap_or_else(PoisonError::into_inner);
        let published = published.get(&(self.collective.call(), rank)).cloned();
        let published = published
            .ok_or_else(|| Error::internal(format!("rank {rank} has not published its parts")))?;
        self.peers.stream.wait(&published.ready).map_err(failed("waiting for another GPU"))?;
        self.others.insert(rank, Arc::clone(&published));
        Ok(published)
    }
}

/// Records an event after all work of a stream so far.
fn now(stream: &CudaStream) -> Result<CudaEvent> {
    stream.record_event(None).map_err(failed("recording an event"))
}

fn wait(stream: &CudaStream, event: &CudaEvent) -> Result<()> {
    stream.wait(event).map_err(failed("waiting for an event"))
}

impl Transport<Gpu> for PeerTransport<'_> {
    fn start(&mut self, gpu: &Gpu, own: &[OwnBlock<Gpu>]) -> Result<()> {
        self.busy(true);
        let (call, number) = (self.collective.call(), self.collective.number());
        let ready = now(gpu.stream())?;
        wait(&self.peers.stream, &ready)?;
        let parts =
            own.iter().map(|own| (own.factor, own.block.clone(), own.area.clone())).collect();
        let board = &self.peers.board;
        let mut published = board.own.lock().unwrap_or_else(PoisonError::into_inner);
        // A rank that has reached this call has finished all calls before the previous one.
        published.retain(|(of, rank), _| *rank != number || of + 1 >= call);
        published.insert((call, number), Arc::new(PublishedParts { ready, parts }));
        drop(published);
        let mut done = board.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.retain(|(of, rank), _| *rank != number || of + 1 >= call);
        drop(done);
        self.collective.tell_all(Signal::Ready)
    }

    fn begin(&mut self, gpu: &Gpu, begun: ExchangeStart<Gpu>) -> Result<()> {
        let behind = if begun.behind { Some(now(gpu.stream())?) } else { None };
        self.put_off.push((begun, behind));
        Ok(())
    }

    fn send_off(&mut self, gpu: &Gpu) -> Result<()> {
        if self.put_off.is_empty() {
            return Ok(());
        }
        // Memory of a lost rank must not be read.
        self.collective.held()?;
        let stream = &self.peers.stream;
        for (begun, behind) in mem::take(&mut self.put_off) {
            let ExchangeStart { exchange, factor, transfers, .. } = begun;
            if let Some(behind) = behind {
                wait(stream, &behind)?;
            }
            for transfer in transfers {
                match transfer {
                    Transfer::Send { .. } => {}
                    Transfer::Copy { from, to } => gpu.copy_area_on(stream, &from, &to)?,
                    Transfer::Receive { from, block, to } => {
                        let published = self.published(from)?;
                        let has = published.parts.iter().find(|(of, ..)| *of == factor);
                        let has = has.map(|(_, origin, area)| part(area, origin, &block));
                        let has = has.ok_or_else(|| {
                            Error::internal(format!("rank {from} has nothing of {factor}"))
                        })??;
                        gpu.copy_area_on(stream, &has, &to)?;
                    }
                }
            }
            self.done.insert(exchange, now(stream)?);
        }
        Ok(())
    }

    fn wait(&mut self, gpu: &Gpu, exchange: usize) -> Result<()> {
        self.send_off(gpu)?;
        match self.done.get(&exchange) {
            Some(done) => wait(gpu.stream(), done),
            None => Err(Error::internal(format!("exchange {exchange} has not begun"))),
        }
    }

    /// Makes the device's stream wait until all ranks have copied what they need from this one.
    fn end(&mut self, gpu: &Gpu) -> Result<()> {
        self.send_off(gpu)?;
        let (call, number) = (self.collective.call(), self.collective.number());
        let fetched = Arc::new(now(&self.peers.stream)?);
        let board = &self.peers.board;
        board.done.lock().unwrap_or_else(PoisonError::into_inner).insert((call, number), fetched);
        self.collective.tell_all(Signal::Done)?;
        for rank in 0..self.collective.ranks() {
            if rank != number {
                self.collective.hear(rank, Signal::Done)?;
                // Every rank sends a ready signal, even to ranks that do not use it.
                if !self.others.contains_key(&rank) {
                    self.collective.hear(rank, Signal::Ready)?;
                }
            }
            let done = board.done.lock().unwrap_or_else(PoisonError::into_inner);
            let done = done.get(&(call, rank)).cloned();
            let done = done.ok_or_else(|| {
                Error::internal(format!("rank {rank} is done, but has recorded no event"))
            })?;
            wait(gpu.stream(), &done)?;
        }
        self.busy(false);
        Ok(())
    }

    /// Waits until this rank's copies, and the other ranks' copies from it, are complete. The other
    /// ranks have been notified of the failure, and leave the call too.
    fn give_up(&mut self, gpu: &Gpu) {
        /// Time limit of the wait for a rank that is busy elsewhere, for example in a compiler.
        /// Such a rank reads nothing before it notices the loss.
        const LONGEST: Duration = Duration::from_secs(60);
        // Errors here follow from the failure that led to `give_up`.
        _ = self.peers.stream.synchronize();
        _ = gpu.synchronize();
        self.busy(false);
        let board = &self.peers.board;
        let busy = board.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let left = board.idle.wait_timeout_while(busy, LONGEST, |busy| *busy > 0);
        drop(left.unwrap_or_else(PoisonError::into_inner));
        let done = board.done.lock().unwrap_or_else(PoisonError::into_inner);
        for ((call, _), fetched) in done.iter() {
            if *call == self.collective.call() {
                _ = fetched.synchronize();
            }
        }
    }
}
