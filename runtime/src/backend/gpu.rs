//! GPU back end: memory, machine code and launches, through `cudarc`.
//!
//! All work goes to one stream. The runtime uses its own allocations on this stream only, so they
//! need no other synchronisation. A user may use slices on other streams of the context, so
//! [`Gpu::pass`] orders a launch with the work of other streams on its slices.

mod code;
mod copy;
mod fill;
mod memory;
mod replacement;
mod scratch;
mod slice_use;
mod use_log;

pub(crate) use memory::{Allocation, GpuAddress};
pub use replacement::Replacement;
pub(crate) use scratch::Workspace;
pub use slice_use::SliceUse;
pub use use_log::{Access, UseLog};

use super::driver::{self, failed};
use super::event::Event;
use super::host_memory::HostMemory;
use super::pinned::Pinned;
use super::stream_group::StreamGroup;
use super::transfer::Transfer;
use super::{Backend, Borrowed};
use crate::archive::OpenArchive;
use crate::backend::StepCounters;
use crate::blocks::Blocks;
use crate::cache::Cache;
use crate::compile::Arch;
use crate::error::{Error, Result};
use crate::kernel_arg::KernelArg;
use crate::program::{CachedProgram, KernelLoad};
use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUstreamCaptureStatus};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaStream, CudaView, CudaViewMut, DeviceSlice, SyncOnDrop,
};
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::contract::Contract;
use gemm_dsl::ir::program::KernelId;
use gemm_dsl::target::element::Element;
use replacement::Replacements;
use scratch::Scratch;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// `CU_STREAM_PER_THREAD`, which is a different stream in each thread.
const PER_THREAD_STREAM: usize = 2;

/// GPU as a back end.
pub struct Gpu {
    name: String,
    arch: Arch,
    multiprocessors: u32,
    shared_limit: u64,
    /// CUDA version of the driver.
    driver: i32,
    cache: Cache,
    /// Archives of machine code, shared with the devices of other streams.
    archives: Arc<RwLock<Vec<OpenArchive>>>,
    replacements: Mutex<Replacements>,
    scratch: Mutex<Scratch>,
    /// Number of allocations so far.
    allocations: AtomicU64,
    stream: Arc<CudaStream>,
    /// Streams that share buffers with this one.
    group: Arc<StreamGroup>,
    /// Further stream of the context, which never has any work.
    bystander: Arc<CudaStream>,
    context: Arc<CudaContext>,
}

impl Gpu {
    pub(crate) fn new(
        context: Arc<CudaContext>,
        stream: Arc<CudaStream>,
        cache: Cache,
    ) -> Result<Self> {
        if stream.context().cu_ctx() != context.cu_ctx() {
            return Err(Error::Stream {
                reason: "it does not belong to the cudarc context of the call",
            });
        }
        let context = Arc::clone(stream.context());
        let stream = match stream.cu_stream() as usize == PER_THREAD_STREAM {
            false => stream,
            // From here on, the context has several streams, and `cudarc` orders them by events.
            true if context.is_event_tracking() => {
                context.new_stream().map_err(failed("creating a stream"))?
            }
            true => {
                return Err(Error::Stream {
                    reason: "the per-thread default stream is a different one in each thread, and \
                             the context does not track events that would order their work; use \
                             CudaContext::new_stream",
                });
            }
        };
        let attribute = |attribute| {
            let value = context.attribute(attribute);
            let value = value.map_err(failed("reading the GPU's properties"))?;
            Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let shared_limit =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(Self {
            name: context.name().map_err(failed("reading the GPU's name"))?,
            arch: Arch::sm(major * 10 + minor),
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared_limit: shared_limit.into(),
            driver: driver::version()?,
            cache,
            archives: Arc::default(),
            replacements: Mutex::default(),
            scratch: Mutex::default(),
            allocations: AtomicU64::new(0),
            stream,
            group: Arc::default(),
            bystander: context.per_thread_stream(),
            context,
        })
    }

    /// GPU with a new stream, which shares the buffers of this one. The new stream begins after all
    /// work so far.
    pub(crate) fn on_new_stream(&self) -> Result<Self> {
        self.refuse_capture("creating a stream")?;
        let stream = self.context.new_stream().map_err(failed("creating a stream"))?;
        self.group.add_stream();
        stream.join(&self.stream).map_err(failed("waiting for the first stream"))?;
        let gpu = Self::new(Arc::clone(&self.context), stream, Cache::from_env())?;
        let (group, archives) = (Arc::clone(&self.group), Arc::clone(&self.archives));
        Ok(Self { group, archives, ..gpu })
    }

    /// Adds an archive, from which later launches take machine code.
    pub(crate) fn add_archive(&self, archive: OpenArchive) {
        self.archives.write().unwrap_or_else(PoisonError::into_inner).push(archive);
    }

    /// Streams that share buffers.
    pub(crate) fn group(&self) -> &Arc<StreamGroup> {
        &self.group
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn arch(&self) -> Arch {
        self.arch
    }

    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// CUDA version of the driver, such as 13000.
    pub(crate) fn driver(&self) -> i32 {
        self.driver
    }

    /// Disk cache of the GPU's kernels.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// `cudarc` context of the GPU.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Stream of all work on the GPU.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Returns true if a slice belongs to this GPU's context. Several `CudaContext`s may stand for
    /// one context of the driver.
    fn owns<T>(&self, slice: &impl DeviceSlice<T>) -> bool {
        slice.stream().context().cu_ctx() == self.context.cu_ctx()
    }

    /// Gets the address of a slice through `address`. `owner` is the stream that the slice belongs
    /// to. This function makes a stream wait for the slice's events, and returns a guard that
    /// records the use of the slice on this stream.
    ///
    /// `cudarc` records no events in a `CudaContext` with one stream. A slice of another such
    /// `CudaContext` is ordered with its own stream.
    ///
    /// Neither waits nor records are allowed while the device's stream is captured. During a
    /// capture, the bystander stream waits instead, which has no effect, and no use is recorded.
    fn pass<'a>(
        &'a self,
        owner: &Arc<CudaStream>,
        address: impl FnOnce(&'a CudaStream) -> (u64, SyncOnDrop<'a>),
    ) -> Result<(u64, Option<SliceUse<'a>>)> {
        let is_other = !Arc::ptr_eq(owner.context(), &self.context);
        let is_tracked = self.context.is_managing_stream_synchronization();
        if (is_tracked || is_other) && self.is_capturing()? {
            let (address, used) = address(&self.bystander);
            std::mem::forget(used);
            return Ok((address, None));
        }
        let (address, used) = address(&self.stream);
        let used = match (is_other, owner.context().is_managing_stream_synchronization()) {
            (true, false) => SliceUse::join(&self.stream, owner)?,
            // The other context relies on events, which this one does not record.
            (true, true) if !is_tracked => SliceUse::Tracked(SyncOnDrop::sync_stream(&self.stream)),
            _ => SliceUse::Tracked(used),
        };
        Ok((address, Some(used)))
    }

    /// Allocates zeros in pinned host memory.
    pub(crate) fn pinned<T: Element>(&self, len: usize) -> Result<HostMemory<T>> {
        self.refuse_capture("allocating pinned memory")?;
        HostMemory::zeros(&self.context, len)
    }

    /// Records an event after all work on the stream so far.
    pub(crate) fn record(&self) -> Result<Event> {
        self.refuse_capture("recording an event")?;
        self.stream.record_event(None).map(Event::recorded).map_err(failed("recording an event"))
    }

    /// Makes the stream wait for an event.
    pub(crate) fn wait_for(&self, event: &CudaEvent) -> Result<()> {
        self.refuse_capture("waiting for an event")?;
        self.stream.wait(event).map_err(failed("waiting for an event"))
    }

    fn is_capturing(&self) -> Result<bool> {
        let status = self.stream.capture_status();
        let status = status.map_err(failed("asking whether the stream is captured"))?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    fn refuse_capture(&self, doing: &'static str) -> Result<()> {
        if self.is_capturing()? {
            return Err(Error::Capturing { doing });
        }
        Ok(())
    }
}

impl Backend for Gpu {
    type Address = GpuAddress;
    type Allocation = Allocation;
    type Pointers = Allocation;
    type Workspace<'b> = Workspace<'b>;

    fn alloc(&self, elem: Elem, len: u64) -> Result<Allocation> {
        self.allocate(elem, len)
    }

    fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    fn address(allocation: &Allocation) -> GpuAddress {
        allocation.address()
    }

    fn use_log(allocation: &Allocation) -> Option<&Arc<UseLog>> {
        Some(allocation.uses())
    }

    fn begin_use<'a>(
        &'a self,
        logs: &'a [Arc<UseLog>],
        access: Access,
    ) -> Result<Option<SliceUse<'a>>> {
        self.begin_use(logs, access).map(|used| Some(SliceUse::Buffers(used)))
    }

    /// Stores the addresses as an array in GPU memory.
    fn pointers(&self, to: &[GpuAddress]) -> Result<Allocation> {
        let addresses: Vec<u64> = to.iter().map(|address| address.at).collect();
        let (pointers, len) = (self.allocate(Elem::U64, addresses.len() as u64)?, addresses.len());
        self.write_blocks(&pointers.address(), &addresses, &Blocks::rows(1, len, len, len))?;
        Ok(pointers)
    }

    fn zero(&self, at: &GpuAddress, len: u64) -> Result<()> {
        self.set_zero(at, len)
    }

    fn fill<T: Element>(&self, to: &GpuAddress, value: T, blocks: &Blocks) -> Result<()> {
        self.fill_blocks(to, value, blocks)
    }

    fn copy(&self, to: &GpuAddress, from: &GpuAddress, blocks: &Blocks) -> Result<()> {
        self.copy_blocks(&self.stream, to, from, blocks)
    }

    fn write<T: Element>(&self, to: &GpuAddress, elements: &[T], blocks: &Blocks) -> Result<()> {
        self.write_blocks(to, elements, blocks)
    }

    fn read<T: Element>(
        &self,
        elements: &mut [T],
        from: &GpuAddress,
        blocks: &Blocks,
    ) -> Result<()> {
        self.read_blocks(elements, from, blocks)
    }

    fn start_write<T: Element>(
        &self,
        to: &GpuAddress,
        elements: Pinned<T>,
        blocks: &Blocks,
    ) -> Result<Transfer<T>> {
        self.begin_write(to, elements, blocks)
    }

    fn start_read<T: Element>(
        &self,
        elements: Pinned<T>,
        from: &GpuAddress,
        blocks: &Blocks,
    ) -> Result<Transfer<T>> {
        self.begin_read(elements, from, blocks)
    }

    fn workspace(&self) -> Workspace<'_> {
        self.lock_scratch()
    }

    fn scratch<'b>(
        &'b self,
        workspace: &mut Workspace<'b>,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<GpuAddress> {
        workspace.scratch(number, elem, len)
    }

    fn scratch_of_zeros<'b>(
        &'b self,
        workspace: &mut Workspace<'b>,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<GpuAddress> {
        workspace.kept(number, elem, len)
    }

    fn holds_zeros(workspace: &mut Workspace<'_>, holds: bool) {
        workspace.holds_zeros(holds);
    }

    fn runs(&self, contract: &Contract) -> bool {
        contract.runs_on(self.arch.number())
    }

    fn ready(&self, program: &CachedProgram, kernel: KernelId) -> Result<Option<KernelLoad>> {
        Ok(program.kernel(kernel).function(|| self.load(program, kernel))?.1)
    }

    fn launch(
        &self,
        program: &CachedProgram,
        kernel: KernelId,
        grid: [u32; 3],
        _: bool,
        arguments: &[KernelArg<'_, GpuAddress, Allocation>],
    ) -> Result<Option<Box<StepCounters>>> {
        self.enqueue(program, kernel, grid, arguments).map(|()| None)
    }

    fn synchronize(&self) -> Result<()> {
        self.stream.synchronize().map_err(failed("waiting for the stream"))
    }

    fn slice<'a, T: Element>(
        &'a self,
        view: CudaView<'a, T>,
    ) -> Result<Option<Borrowed<'a, Self>>> {
        if !self.owns(&view) {
            return Ok(None);
        }
        let owner = Arc::clone(view.stream());
        let (at, used) = self.pass(&owner, |stream| view.view_ptr(stream))?;
        Ok(Some((GpuAddress { at, elem: T::ELEM }, used)))
    }

    fn slice_mut<'a, T: Element>(
        &'a self,
        view: CudaViewMut<'a, T>,
    ) -> Result<Option<Borrowed<'a, Self>>> {
        if !self.owns(&view) {
            return Ok(None);
        }
        let owner = Arc::clone(view.stream());
        let (at, used) = self.pass(&owner, |stream| view.view_ptr_mut(stream))?;
        Ok(Some((GpuAddress { at, elem: T::ELEM }, used)))
    }
}
