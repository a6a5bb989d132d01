//! The simulator as a device: memory of the process, launches that finish before they return.

use super::Backend;
use crate::address::{Address, Argument};
use crate::error::{Error, Result};
use crate::program::Loadable;
use gemm_dsl::ir::Elem;
use gemm_dsl::sim::{self, Buffer, Counters, Element, Given, Options};
use std::ops::Range;

pub(crate) struct Simulator {
    /// The most instructions of a launch.
    pub(crate) instructions: u64,
}

impl Address for Buffer {
    fn elem(&self) -> Elem {
        self.elem()
    }

    fn bytes(&self) -> u64 {
        self.byte_offset()
    }

    fn part(&self, start: u64, len: u64) -> Option<Self> {
        self.view(usize::try_from(start).ok()?, usize::try_from(len).ok()?)
    }

    fn range(&self, len: u64) -> Range<u64> {
        let start = self.addresses().start as u64;
        let len = len.min(self.len() as u64);
        start..start + len * u64::from(self.elem().size())
    }
}

impl Backend for Simulator {
    type Address = Buffer;
    type Allocation = Buffer;
    type Pointers = ();
    type Workspace<'b> = ();

    fn alloc(&self, elem: Elem, len: u64) -> Result<Buffer> {
        let bytes = len.saturating_mul(elem.size().into());
        // The process's allocator would abort.
        let room = usize::try_from(bytes).ok().and_then(|bytes| {
            Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
            usize::try_from(len).ok()
        });
        let len = room.ok_or_else(|| Error::OutOfMemory {
            bytes,
            device: "the simulator (memory of this process)".to_owned(),
        })?;
        Ok(Buffer::zeros_of(elem, len))
    }

    fn address(allocation: &Buffer) -> Buffer {
        allocation.clone()
    }

    /// The simulator is given the arrays.
    fn pointers(&self, _: &[Buffer]) -> Result<()> {
        Ok(())
    }

    fn zero(&self, at: &Buffer, len: u64) -> Result<()> {
        if let Some(part) = at.part(0, len) {
            part.zero();
        }
        Ok(())
    }

    fn write<T: Element>(&self, to: &Buffer, elements: &[T]) -> Result<()> {
        if !to.copy_from(elements) {
            unreachable!("the caller has allocated for these elements")
        }
        Ok(())
    }

    fn read<T: Element>(&self, from: &Buffer, len: u64) -> Result<Vec<T>> {
        let elements = from.part(0, len).and_then(|part| part.to_vec_of());
        Ok(elements.unwrap_or_else(|| unreachable!("the elements are there, and of this type")))
    }

    fn workspace(&self) {}

    fn scratch(&self, (): &mut (), _: usize, elem: Elem, len: u64) -> Result<Buffer> {
        self.alloc(elem, len)
    }

    /// Zeros of its own for each run, which is not one after the other here.
    fn scratch_of_zeros(&self, (): &mut (), _: usize, elem: Elem, len: u64) -> Result<Buffer> {
        self.alloc(elem, len)
    }

    fn holds_zeros((): &mut (), _: bool) {}

    fn launch(
        &self,
        loadable: &Loadable,
        _: [u32; 3],
        arguments: Vec<Argument<'_, Buffer, ()>>,
    ) -> Result<Option<Box<Counters>>> {
        let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                Argument::Word(bits) => scalars.push(bits.into()),
                Argument::Double(bits) => scalars.push(bits),
                Argument::Array(buffer) | Argument::Mapped(buffer, _) => {
                    buffers.push(Given::One(buffer));
                }
                Argument::List { arrays, .. } => buffers.push(Given::List(arrays.to_vec())),
            }
        }
        // A `Call` does not say which arrays it was bound with: the simulator binds these itself.
        let mut options = Options::default();
        options.instructions = self.instructions;
        let counters = sim::launch_with(&loadable.kernel, &buffers, &scalars, &options)?;
        Ok(Some(Box::new(counters)))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}
