//! What a back end is told of the zeros that a program keeps.

use super::programs::fold;
use crate::Device;
use crate::address::Argument;
use crate::backend::gpu::GpuAddress;
use crate::backend::{Backend, Place};
use crate::device::On;
use crate::error::{Error, Result};
use crate::launch::{Bound, launch};
use crate::program::Loadable;
use gemm_dsl::ir::program::Fill;
use gemm_dsl::ir::{Elem, Variant, VerifiedProgram};
use gemm_dsl::sim::{Counters, Element};
use std::cell::{Cell, RefCell};

/// A back end that runs nothing: of its launches the n-th fails.
struct Recorder {
    fails: usize,
    launches: Cell<usize>,
    /// What it was told, in order.
    told: RefCell<Vec<bool>>,
}

impl Recorder {
    fn address(elem: Elem) -> GpuAddress {
        GpuAddress { at: 0, elem }
    }
}

impl Backend for Recorder {
    type Address = GpuAddress;
    type Allocation = ();
    type Pointers = ();
    type Workspace<'b> = &'b Self;

    fn alloc(&self, _: Elem, _: u64) -> Result<()> {
        Ok(())
    }

    fn address((): &()) -> GpuAddress {
        Self::address(Elem::F32)
    }

    fn pointers(&self, _: &[GpuAddress]) -> Result<()> {
        Ok(())
    }

    fn zero(&self, _: &GpuAddress, _: u64) -> Result<()> {
        panic!("zeros that are kept are nobody's to set")
    }

    fn write<T: Element>(&self, _: &GpuAddress, _: &[T]) -> Result<()> {
        Ok(())
    }

    fn read<T: Element>(&self, _: &GpuAddress, len: u64) -> Result<Vec<T>> {
        Ok(vec![T::default(); len as usize])
    }

    fn workspace(&self) -> &Self {
        self
    }

    fn scratch<'b>(&'b self, _: &mut &'b Self, _: usize, elem: Elem, _: u64) -> Result<GpuAddress> {
        Ok(Self::address(elem))
    }

    fn scratch_of_zeros<'b>(
        &'b self,
        _: &mut &'b Self,
        number: usize,
        elem: Elem,
        _: u64,
    ) -> Result<GpuAddress> {
        assert_eq!(number, 0, "of one temporary only");
        Ok(Self::address(elem))
    }

    fn holds_zeros(workspace: &mut &Self, holds: bool) {
        workspace.told.borrow_mut().push(holds);
    }

    fn launch(
        &self,
        _: &Loadable,
        _: [u32; 3],
        _: Vec<Argument<'_, GpuAddress, ()>>,
    ) -> Result<Option<Box<Counters>>> {
        let number = self.launches.replace(self.launches.get() + 1);
        match number == self.fails {
            true => Err(Error::Internal("as it was told".to_owned())),
            false => Ok(None),
        }
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// Three launches, of which the first writes what is said to be kept, and the second reads it.
#[test]
fn a_program_that_stops_halfway_leaves_no_zeros() {
    let device = Device::simulator();
    let mut program = fold(&[Variant::Only]).into_inner();
    program.temps[0].fill = Fill::Kept;
    let program = VerifiedProgram::new(program).expect("sound");
    let program = device.programs().get_or("test", "kept", || Ok(program)).expect("sound");
    for (fails, expected) in [
        // Nothing was launched: they are there still.
        (0, &[][..]),
        (1, &[false]),
        (2, &[false, false]),
        (3, &[false, false, false, true]),
    ] {
        let backend = Recorder { fails, launches: Cell::new(0), told: RefCell::default() };
        let vector = |name, at, len| {
            let address = GpuAddress { at, elem: Elem::F32 };
            Bound::vector(name, Place::One { address, len }, len)
        };
        let on = On { device: &device, backend: &backend };
        let (input, output) = (vector("input", 0x1000, 60), vector("output", 0x100, 1));
        let outcome = launch(on, &program, &[input], &[output], &[60]);
        assert_eq!(outcome.is_ok(), fails == 3, "{fails}");
        assert_eq!(*backend.told.borrow(), expected, "the launch that failed: {fails}");
    }
}
