//! Pinned host memory.

use super::host_memory::HostMemory;
use gemm_dsl::target::element::Element;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Elements in pinned host memory, which a GPU reads and writes without the help of the processor.
///
/// [`Device::pinned`](crate::Device::pinned) allocates it. It derefs to a slice. The transfers
/// [`Device::write_async`](crate::Device::write_async) and
/// [`Device::read_async`](crate::Device::read_async) take it and return it when they are done.
/// Pinning takes long and leaves less memory to other programs: allocate the memory once, and use
/// it again and again.
///
/// On the simulator it is plain memory.
///
/// ```
/// use gemm_runtime::Device;
///
/// let device = Device::simulator();
/// let mut elements = device.pinned::<f32>(4)?;
/// elements.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// let x = device.upload(&elements)?;
/// assert_eq!(device.download(&x)?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Pinned<T: Element = f32>(Memory<T>);

enum Memory<T: Element> {
    Pinned(HostMemory<T>),
    #[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "the simulator's memory"))]
    Plain(Vec<T>),
}

impl<T: Element> Pinned<T> {
    pub(crate) fn from_pinned(memory: HostMemory<T>) -> Self {
        Self(Memory::Pinned(memory))
    }

    #[cfg(feature = "sim")]
    pub(crate) fn from_plain(elements: Vec<T>) -> Self {
        Self(Memory::Plain(elements))
    }
}

impl<T: Element> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Pinned(memory) => memory.elements(),
            Memory::Plain(elements) => elements,
        }
    }
}

impl<T: Element> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Memory::Pinned(memory) => memory.elements_mut(),
            Memory::Plain(elements) => elements,
        }
    }
}

impl<T: Element> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("elem", &T::ELEM).field("len", &self.len()).finish()
    }
}
