//! Transport by NCCL: between GPUs of several processes or hosts, or of one process without peer
//! access. NCCL only moves bytes and never adds.

use super::{ExchangeStart, OwnBlock, Transfer, Transport};
use crate::WorldError;
use crate::channel::{Channel, held};
use crate::collective::CollectiveContext;
use crate::error::failed;
use crate::error::impossible;
use crate::nccl::{Communicator, Library, NcclTransfer, abort_all};
use crate::{Error, Result};
use cudarc::driver::{CudaEvent, CudaStream};
use gemm_runtime::Device;
use gemm_runtime::internal::Address;
use gemm_runtime::internal::Gpu;
use gemm_runtime::internal::{Area, Backend};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Communicators of this process's ranks. All are aborted together, whichever rank is lost.
pub(crate) struct Communicators {
    all: Vec<Mutex<Option<Communicator>>>,
    /// Lock of the thread that aborts.
    giving_up: Mutex<()>,
}

impl Communicators {
    fn lock(&self, place: usize) -> MutexGuard<'_, Option<Communicator>> {
        self.all[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts all communicators, which ends the wait of streams for a lost rank. On return the
    /// abort is complete, even if another thread performed it. The caller's thread may then end:
    /// before NCCL 2.27, a thread must not end before the activities that it began.
    pub(crate) fn abort(&self) {
        let _held = self.giving_up.lock().unwrap_or_else(PoisonError::into_inner);
        let all = (0..self.all.len()).filter_map(|place| self.lock(place).take());
        // Errors of the abort are ignored, because the ranks already know the reason for it.
        _ = abort_all(all.collect());
    }

    /// Returns the first failure of a communicator that no thread is using, with its place among
    /// this process's ranks.
    pub(crate) fn failed(&self) -> Option<(usize, WorldError)> {
        let failed = |(place, one): (usize, &Mutex<Option<Communicator>>)| {
            let one = one.try_lock().ok()?;
            Some((place, one.as_ref()?.holds().err()?))
        };
        self.all.iter().enumerate().find_map(failed)
    }
}

/// One rank's link by NCCL.
pub(crate) struct Nccl {
    library: Arc<Library>,
    id: [u8; 128],
    all: Arc<Communicators>,
    /// Index of this rank's communicator in `all`.
    place: usize,
    /// High-priority stream for exchanges, scheduled before the device's own stream.
    stream: Arc<CudaStream>,
}

impl Nccl {
    /// Links the ranks of this process.
    pub(crate) fn between(
        devices: &[Device],
        library: &Arc<Library>,
        id: [u8; 128],
    ) -> Result<Vec<Self>> {
        let all = devices.iter().map(|_| Mutex::new(None)).collect();
        let all = Arc::new(Communicators { all, giving_up: Mutex::new(()) });
        let end = |(place, device): (usize, &Device)| {
            let stream = super::peers::stream_beside(device)?;
            let (library, all) = (Arc::clone(library), Arc::clone(&all));
            Ok(Self { library, id, all, place, stream })
        };
        devices.iter().enumerate().map(end).collect()
    }

    /// Communicators of this process's ranks.
    pub(crate) fn all(&self) -> Arc<Communicators> {
        Arc::clone(&self.all)
    }

    /// Connects this rank with the others, as a collective call.
    pub(crate) fn connect(
        &self,
        device: &Device,
        channel: &dyn Channel,
        timeout: Duration,
    ) -> Result<()> {
        bind(device)?;
        if device.cudarc().is_some_and(|(context, _)| !context.is_primary()) {
            return Err(impossible(
                "a CUDA context other than the primary one".to_owned(),
                "NCCL uses the primary context of a GPU: build the device from \
                 `CudaContext::new`, or with `Device::cuda`",
            ));
        }
        let (library, ranks, rank) = (Arc::clone(&self.library), channel.ranks(), channel.rank());
        let communicator = Communicator::begin(library, self.id, ranks, rank, None)?;
        // Stores the communicator before the wait, so that an abort of all communicators includes
        // it.
        let mut own = self.all.lock(self.place);
        let communicator = own.insert(communicator);
        let mut go_on = || held(channel, "connecting with the others");
        Ok(communicator.settle(Instant::now() + timeout, &mut go_on)?)
    }

    /// Closes the communicator in agreement with the other ranks, once the device's work is
    /// complete.
    pub(crate) fn finish(
        &self,
        device: &Device,
        channel: &dyn Channel,
        timeout: Duration,
    ) -> Result<()> {
        bind(device)?;
        let communicator = self.all.lock(self.place).take();
        let mut go_on = || held(channel, "parting from the others");
        let finish = |own: Communicator| own.finish(Instant::now() + timeout, &mut go_on);
        Ok(communicator.map_or(Ok(()), finish)?)
    }
}

fn bind(device: &Device) -> Result<()> {
    match device.cudarc() {
        Some((context, _)) => {
            context.bind_to_thread().map_err(failed("making the context current"))
        }
        None => Err(Error::internal("NCCL cannot connect simulators".to_owned())),
    }
}

/// Transport of one GEMM or reduction by NCCL.
pub(crate) struct NcclTransport<'t> {
    nccl: &'t Nccl,
    collective: &'t CollectiveContext,
    /// Completion events of the begun exchanges.
    done: HashMap<usize, CudaEvent>,
    /// Packed copies of padded blocks, kept until all exchanges are complete.
    packed: Vec<<Gpu as Backend>::Allocation>,
}

impl<'t> NcclTransport<'t> {
    pub(crate) fn new(nccl: &'t Nccl, collective: &'t CollectiveContext) -> Self {
        Self { nccl, collective, done: HashMap::new(), packed: Vec::new() }
    }

    /// Allocates a packed, row-major area with the extents of `like`.
    fn room(&mut self, gpu: &Gpu, like: &Area<Gpu>) -> Result<Area<Gpu>> {
        let room = gpu.alloc(like.first.elem(), like.len() as u64)?;
        let first = Gpu::address(&room);
        self.packed.push(room);
        Ok(Area { first, rows: like.rows, cols: like.cols, pitch: like.cols })
    }
}

/// Size of an area's elements in bytes, without padding.
fn bytes(area: &Area<Gpu>) -> usize {
    area.len() * area.first.elem().size() as usize
}

impl Transport<Gpu> for NcclTransport<'_> {
    fn start(&mut self, gpu: &Gpu, _: &[OwnBlock<Gpu>]) -> Result<()> {
        let stream = &self.nccl.stream;
        stream.join(gpu.stream()).map_err(failed("waiting for the device's stream"))
    }

    #[allow(unsafe_code, reason = "NCCL reads and writes at the addresses passed to it")]
    fn begin(&mut self, gpu: &Gpu, begun: ExchangeStart<Gpu>) -> Result<()> {
        let ExchangeStart { exchange, transfers, behind, .. } = begun;
        let stream = Arc::clone(&self.nccl.stream);
        let (mut parts, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut has_staging = false;
        for transfer in transfers {
            match transfer {
                Transfer::Copy { from, to } => before.push((from, to)),
                Transfer::Send { to, from } => {
                    let packed = match from.is_packed() {
                        true => from,
                        false => {
                            let room = self.room(gpu, &from)?;
                            has_staging = true;
                            before.push((from, room.clone()));
                            room
                        }
                    };
                    parts.push(NcclTransfer::Send {
                        at: packed.first.bytes(),
                        bytes: bytes(&packed),
                        to,
                    });
                }
                Transfer::Receive { from, to, .. } => {
                    let packed = match to.is_packed() {
                        true => to,
                        false => {
                            let room = self.room(gpu, &to)?;
                            has_staging = true;
                            after.push((room.clone(), to));
                            room
                        }
                    };
                    parts.push(NcclTransfer::Receive {
                        at: packed.first.bytes(),
                        bytes: bytes(&packed),
                        from,
                    });
                }
            }
        }
        // The exchange must wait for staging memory, whose allocation is ordered on the device's
        // stream.
        if behind || has_staging {
            stream.join(gpu.stream()).map_err(failed("waiting for the device's stream"))?;
        }
        for (from, to) in before {
            gpu.copy_area_on(&stream, &from, &to)?;
        }
        bind_gpu(gpu)?;
        {
            let own = self.nccl.all.lock(self.nccl.place);
            let Some(communicator) = own.as_ref() else {
                // The rank that aborted the communicator has reported the reason on the channel.
                self.collective.held()?;
                return Err(Error::internal("a rank has no communicator".to_owned()));
            };
            let queue = stream.cu_stream() as u64;
            // SAFETY: the stream belongs to this device. Sent blocks are in this rank's shards,
            // which the caller borrows until `end` or `give_up`, or in staging memory of this
            // transport. Received blocks are in places that no other transfer writes, because the
            // schedule was verified, and that are read only after `wait`. All memory belongs to
            // this device.
            let put = unsafe { communicator.exchange(queue, &parts) };
            let put = put.and_then(|()| {
                communicator
                    .settle(self.collective.deadline(), &mut || self.collective.held_world())
            });
            drop(own);
            put.map_err(|error| verdict(self.collective, error))?;
        }
        for (from, to) in after {
            gpu.copy_area_on(&stream, &from, &to)?;
        }
        let done = stream.record_event(None).map_err(failed("recording an event"))?;
        self.done.insert(exchange, done);
        Ok(())
    }

    fn wait(&mut self, gpu: &Gpu, exchange: usize) -> Result<()> {
        let done = self.done.get(&exchange);
        let done =
            done.ok_or_else(|| Error::internal(format!("exchange {exchange} has not begun")))?;
        gpu.stream().wait(done).map_err(failed("waiting for an exchange"))
    }

    fn end(&mut self, gpu: &Gpu) -> Result<()> {
        gpu.stream().join(&self.nccl.stream).map_err(failed("waiting for NCCL's stream"))?;
        // The memory is freed in stream order, after the join.
        self.packed.clear();
        Ok(())
    }

    /// Aborts NCCL, whose kernels end soon afterwards, then waits until no kernel accesses the
    /// memory.
    fn give_up(&mut self, gpu: &Gpu) {
        self.nccl.all.abort();
        // Errors here follow from the failure that led to `give_up`.
        _ = self.nccl.stream.synchronize();
        _ = gpu.synchronize();
        self.packed.clear();
    }
}

/// Returns the reported loss of a rank, if a report arrives within two seconds, otherwise NCCL's
/// own error. The report explains more than NCCL's error.
fn verdict(collective: &CollectiveContext, error: WorldError) -> Error {
    const MOMENT: Duration = Duration::from_secs(2);
    let end = Instant::now() + MOMENT;
    while Instant::now() < end {
        if let Err(lost) = collective.held() {
            return lost;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Error::World(error)
}

fn bind_gpu(gpu: &Gpu) -> Result<()> {
    gpu.context().bind_to_thread().map_err(failed("making the context current"))
}
