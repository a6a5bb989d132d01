//! Back ends of a device: a GPU or the simulator.
//!
//! Code that depends on the back end is generic over [`Backend`], so that addresses of one back end
//! cannot be passed to the other.

mod area;
pub(crate) mod driver;
pub(crate) mod event;
pub(crate) mod gpu;
pub(crate) mod host_memory;
pub(crate) mod pinned;
#[cfg(feature = "sim")]
pub(crate) mod simulator;
mod stream_group;
pub mod tensor_map;
pub(crate) mod transfer;

pub use area::{Area, Areas};
#[cfg(feature = "sim")]
pub use simulator::StepCounters;
/// Without the simulator there are no counters.
#[cfg(not(feature = "sim"))]
pub use std::convert::Infallible as StepCounters;

use crate::blocks::Blocks;
use crate::error::Result;
use crate::kernel_arg::{Address, KernelArg};
use crate::program::{CachedProgram, KernelLoad};
use cudarc::driver::{CudaView, CudaViewMut};
use event::Event;
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::contract::{Contract, Region};
use gemm_dsl::ir::program::KernelId;
use gemm_dsl::target::element::Element;
use gpu::{Access, SliceUse, UseLog};
use pinned::Pinned;
use std::ops::Range;
use std::sync::Arc;
use transfer::Transfer;

/// Memory, transfers and launches. Calls are executed in their order.
pub trait Backend: Sized + 'static {
    /// Address of elements in the memory of the back end.
    type Address: Address + Send + Sync + 'static;

    /// Memory that is freed when dropped.
    type Allocation: Send + Sync + 'static;

    /// Pointers through which a kernel finds the arrays of a list, freed when dropped.
    type Pointers: Send + Sync + 'static;

    /// Scratch memory, locked while the launches of one program are issued.
    type Workspace<'b>
    where
        Self: 'b;

    /// Allocates uninitialised memory for elements.
    fn alloc(&self, elem: Elem, len: u64) -> Result<Self::Allocation>;

    /// Number of allocations so far. Scratch memory counts if it is kept after a launch.
    fn allocations(&self) -> u64;

    /// Address of the first element of an allocation.
    fn address(allocation: &Self::Allocation) -> Self::Address;

    /// Uses of an allocation by several streams, if the back end has streams.
    fn use_log(_: &Self::Allocation) -> Option<&Arc<UseLog>> {
        None
    }

    /// Orders a use of allocations after the uses of other streams. The guard is dropped after the
    /// launch.
    fn begin_use<'a>(&'a self, _: &'a [Arc<UseLog>], _: Access) -> Result<Option<SliceUse<'a>>> {
        Ok(None)
    }

    /// Stores these addresses where kernels find them.
    fn pointers(&self, to: &[Self::Address]) -> Result<Self::Pointers>;

    /// Sets `len` elements to zero.
    fn zero(&self, at: &Self::Address, len: u64) -> Result<()>;

    /// Sets the elements of a layout to a value. `blocks` describes the layout on both sides.
    fn fill<T: Element>(&self, to: &Self::Address, value: T, blocks: &Blocks) -> Result<()>;

    /// Copies elements between arrays of this back end.
    fn copy(&self, to: &Self::Address, from: &Self::Address, blocks: &Blocks) -> Result<()>;

    /// Copies elements from the host. The slice may be changed after the call returns. The slice
    /// must contain the blocks, and `T` must be the type of the address.
    fn write<T: Element>(&self, to: &Self::Address, elements: &[T], blocks: &Blocks) -> Result<()>;

    /// Copies elements to the host, after all work so far. The slice must contain the blocks, and
    /// `T` must be the type of the address.
    fn read<T: Element>(
        &self,
        elements: &mut [T],
        from: &Self::Address,
        blocks: &Blocks,
    ) -> Result<()>;

    /// Starts [`write`](Self::write). The transfer owns the memory until it is done.
    fn start_write<T: Element>(
        &self,
        to: &Self::Address,
        elements: Pinned<T>,
        blocks: &Blocks,
    ) -> Result<Transfer<T>> {
        self.write(to, &elements, blocks)?;
        Ok(Transfer::new(elements, Event::done()))
    }

    /// Starts [`read`](Self::read). The transfer owns the memory until it is done.
    fn start_read<T: Element>(
        &self,
        mut elements: Pinned<T>,
        from: &Self::Address,
        blocks: &Blocks,
    ) -> Result<Transfer<T>> {
        self.read(&mut elements, from, blocks)?;
        Ok(Transfer::new(elements, Event::done()))
    }

    /// Locks the scratch memory, and waits for other threads to release it.
    fn workspace(&self) -> Self::Workspace<'_>;

    /// Uninitialised memory for temporary `number` of a program.
    fn scratch<'b>(
        &'b self,
        workspace: &mut Self::Workspace<'b>,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<Self::Address>;

    /// Zeroed memory for temporary `number` of a program. The program must leave zeros in this
    /// memory after its last launch.
    fn scratch_of_zeros<'b>(
        &'b self,
        workspace: &mut Self::Workspace<'b>,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<Self::Address>;

    /// Records whether the memory from [`scratch_of_zeros`](Self::scratch_of_zeros) holds zeros:
    /// false from the program's first launch on, true after its last launch.
    fn holds_zeros(workspace: &mut Self::Workspace<'_>, holds: bool);

    /// Returns true if the device has the instructions of a kernel.
    fn runs(&self, _: &Contract) -> bool {
        true
    }

    /// Loads the machine code of a kernel and returns the load time, or `None` if the code was
    /// loaded before. The simulator loads nothing.
    fn ready(&self, _: &CachedProgram, _: KernelId) -> Result<Option<KernelLoad>> {
        Ok(None)
    }

    /// Launches a kernel; the simulator returns counters. The arguments must match the kernel's
    /// parameters in number, order and size, and must meet its contract. `is_main` marks the main
    /// step of the program, for observers.
    fn launch(
        &self,
        program: &CachedProgram,
        kernel: KernelId,
        grid: [u32; 3],
        is_main: bool,
        arguments: &[KernelArg<'_, Self::Address, Self::Pointers>],
    ) -> Result<Option<Box<StepCounters>>>;

    /// Waits for all work so far.
    fn synchronize(&self) -> Result<()>;

    /// Address of a `cudarc` slice to read, if the slice and the back end have the same context.
    fn slice<'a, T: Element>(&'a self, _: CudaView<'a, T>) -> Result<Option<Borrowed<'a, Self>>> {
        Ok(None)
    }

    /// Address of a `cudarc` slice to write, if the slice and the back end have the same context.
    fn slice_mut<'a, T: Element>(
        &'a self,
        _: CudaViewMut<'a, T>,
    ) -> Result<Option<Borrowed<'a, Self>>> {
        Ok(None)
    }
}

/// Address of a `cudarc` slice, with a guard to drop after the launch. The drop records the use of
/// the slice, so that `cudarc` orders work of other streams after the launch.
pub type Borrowed<'a, B> = (<B as Backend>::Address, Option<SliceUse<'a>>);

/// Arrays of a list, with the pointers for kernels.
pub struct ArrayList<B: Backend> {
    pub(crate) elem: Elem,
    pub(crate) arrays: Vec<B::Address>,
    pub(crate) pointers: B::Pointers,
    /// Addresses and lengths, as contracts check them.
    pub(crate) stretches: Vec<Region>,
    /// Uses of the buffers by several streams.
    pub(crate) uses: Vec<Arc<UseLog>>,
    /// Memory of all arrays, [`united`](gemm_dsl::ir::contract::united).
    pub(crate) memory: Vec<Range<u64>>,
}

/// Location of an operand in device memory.
pub enum Place<'a, B: Backend> {
    /// Single array in device memory.
    One {
        /// Address of the first element.
        address: B::Address,
        /// Number of elements from `address` on.
        len: u64,
    },
    /// List of arrays, found through pointers.
    List(&'a ArrayList<B>),
}

impl<B: Backend> Clone for Place<'_, B> {
    fn clone(&self) -> Self {
        match self {
            Place::One { address, len } => Place::One { address: address.clone(), len: *len },
            Place::List(list) => Place::List(list),
        }
    }
}

impl<B: Backend> Place<'_, B> {
    /// Element type of the array or of each array of the list.
    pub fn elem(&self) -> Elem {
        match self {
            Place::One { address, .. } => address.elem(),
            Place::List(list) => list.elem,
        }
    }
}
