//! What a device does its work with: a GPU or the simulator.
//!
//! Whatever knows which of the two it has is generic over [`Backend`], and addresses of one are no
//! arguments for the other.

mod area;
pub(crate) mod driver;
pub(crate) mod gpu;
#[cfg(feature = "sim")]
pub(crate) mod simulator;
pub mod tensor_map;

pub use area::{Area, Areas};
#[cfg(feature = "sim")]
pub use simulator::StepCounters;
/// Without the simulator nobody counts.
#[cfg(not(feature = "sim"))]
pub use std::convert::Infallible as StepCounters;

use crate::error::Result;
use crate::kernel_arg::{Address, KernelArg};
use crate::program::{CachedKernel, KernelLoad};
use cudarc::driver::{CudaView, CudaViewMut, SyncOnDrop};
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::contract::Region;
use gemm_dsl::target::element::Element;
use std::ops::Range;

/// Memory, transfers and launches, in the order of the calls.
pub trait Backend: Sized + 'static {
    /// Where elements lie.
    type Address: Address + Send + Sync + 'static;

    /// Memory, given back when it is dropped.
    type Allocation: Send + Sync + 'static;

    /// What a kernel finds the arrays of a list by, given back when it is dropped.
    type Pointers: Send + Sync + 'static;

    /// The scratch memory, held while the launches of one program are made.
    type Workspace<'b>
    where
        Self: 'b;

    /// Memory for elements, with anything in it.
    fn alloc(&self, elem: Elem, len: u64) -> Result<Self::Allocation>;

    /// The address of the first element of an allocation.
    fn address(allocation: &Self::Allocation) -> Self::Address;

    /// Has these addresses where kernels find them.
    fn pointers(&self, to: &[Self::Address]) -> Result<Self::Pointers>;

    /// Sets elements to zero.
    fn zero(&self, at: &Self::Address, len: u64) -> Result<()>;

    /// Copies elements from the host, which may then be changed.
    fn write<T: Element>(&self, to: &Self::Address, elements: &[T]) -> Result<()>;

    /// Copies elements to the host, after all work so far. They are of the type of the address.
    fn read<T: Element>(&self, from: &Self::Address, len: u64) -> Result<Vec<T>>;

    /// Waits for the scratch memory.
    fn workspace(&self) -> Self::Workspace<'_>;

    /// Temporary `number` of a program, with anything in it.
    fn scratch<'b>(
        &'b self,
        workspace: &mut Self::Workspace<'b>,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<Self::Address>;

    /// Temporary `number` of a program, of which every complete run leaves the zeros that it finds.
    fn scratch_of_zeros<'b>(
        &'b self,
        workspace: &mut Self::Workspace<'b>,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<Self::Address>;

    /// Says whether what the program was given by [`scratch_of_zeros`](Self::scratch_of_zeros) holds zeros: not from its first launch on,
    /// and again behind its last one.
    fn holds_zeros(workspace: &mut Self::Workspace<'_>, holds: bool);

    /// Has the machine code of a kernel; what it took, if it was not there. The simulator needs none.
    fn ready(&self, _: &CachedKernel) -> Result<Option<KernelLoad>> {
        Ok(None)
    }

    /// Launches a kernel; the simulator counts. The arguments are the kernel's parameters in number,
    /// order and size, and its contract holds for them. `is_main` says whether it is the main step of its program,
    /// which who looks on is told.
    fn launch(
        &self,
        kernel: &CachedKernel,
        grid: [u32; 3],
        is_main: bool,
        arguments: Vec<KernelArg<'_, Self::Address, Self::Pointers>>,
    ) -> Result<Option<Box<StepCounters>>>;

    /// Waits for all work so far.
    fn synchronize(&self) -> Result<()>;

    /// A slice of `cudarc`'s to read, if its context is that of the back end.
    fn slice<'a, T: Element>(&'a self, _: CudaView<'a, T>) -> Result<Option<Borrowed<'a, Self>>> {
        Ok(None)
    }

    /// A slice of `cudarc`'s to write, if its context is that of the back end.
    fn slice_mut<'a, T: Element>(
        &'a self,
        _: CudaViewMut<'a, T>,
    ) -> Result<Option<Borrowed<'a, Self>>> {
        Ok(None)
    }
}

/// The address of a slice of `cudarc`'s, and what records its use when dropped after the launch, for
/// `cudarc` to order work on other streams after it.
pub type Borrowed<'a, B> = (<B as Backend>::Address, Option<SyncOnDrop<'a>>);

/// The arrays of a list.
pub struct ArrayList<B: Backend> {
    pub(crate) elem: Elem,
    pub(crate) arrays: Vec<B::Address>,
    pub(crate) pointers: B::Pointers,
    /// The same, as contracts ask for them.
    pub(crate) stretches: Vec<Region>,
    /// The memory of all of them, [`united`](gemm_dsl::ir::contract::united).
    pub(crate) memory: Vec<Range<u64>>,
}

/// Where an operand lies.
pub enum Place<'a, B: Backend> {
    /// It is one array.
    One {
        /// Its address.
        address: B::Address,
        /// Elements from there on that belong to it.
        len: u64,
    },
    /// It is a list of arrays.
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
    /// What the elements are.
    pub fn elem(&self) -> Elem {
        match self {
            Place::One { address, .. } => address.elem(),
            Place::List(list) => list.elem,
        }
    }
}
