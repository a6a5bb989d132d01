//! Arrays of which only a launch learns what their elements are.

use crate::backend::Backend;
use crate::backend::gpu::Gpu;
#[cfg(feature = "sim")]
use crate::backend::simulator::Simulator;
use crate::device::On;
use crate::error::Result;
use crate::operand::{self, Input, LocatedOperand, Output};

/// An input of any element, on whichever back end it lies.
pub trait Readable {
    /// As [`operand::read`].
    fn on_gpu<'a>(&'a self, on: On<'a, Gpu>, argument: &str) -> Result<LocatedOperand<'a, Gpu>>;

    /// As [`operand::read`].
    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>>;
}

/// An output of any element, on whichever back end it lies.
pub trait Writable {
    /// As [`operand::write`].
    fn on_gpu<'a>(&'a mut self, on: On<'a, Gpu>, argument: &str)
    -> Result<LocatedOperand<'a, Gpu>>;

    /// As [`operand::write`].
    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a mut self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>>;
}

/// An input of any element, as a trait for whoever has one names it.
#[derive(Clone, Copy)]
pub struct AnyInput<'a>(pub &'a dyn Readable);

/// An output of any element, as a trait for whoever has one names it.
pub struct AnyOutput<'a>(pub &'a mut dyn Writable);

impl<I: Input + ?Sized> Readable for &I {
    fn on_gpu<'a>(&'a self, on: On<'a, Gpu>, argument: &str) -> Result<LocatedOperand<'a, Gpu>> {
        operand::read(on, *self, argument)
    }

    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>> {
        operand::read(on, *self, argument)
    }
}

impl<O: Output + ?Sized> Writable for &mut O {
    fn on_gpu<'a>(
        &'a mut self,
        on: On<'a, Gpu>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Gpu>> {
        operand::write(on, &mut **self, argument)
    }

    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a mut self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>> {
        operand::write(on, &mut **self, argument)
    }
}

/// A back end on which arrays of any element are found.
pub trait Finds: Backend {
    /// As [`operand::read`].
    fn read_any<'a>(
        on: On<'a, Self>,
        input: AnyInput<'a>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>>;

    /// As [`operand::write`].
    fn write_any<'a>(
        on: On<'a, Self>,
        output: &'a mut AnyOutput<'_>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>>;
}

impl Finds for Gpu {
    fn read_any<'a>(
        on: On<'a, Self>,
        input: AnyInput<'a>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>> {
        input.0.on_gpu(on, argument)
    }

    fn write_any<'a>(
        on: On<'a, Self>,
        output: &'a mut AnyOutput<'_>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>> {
        output.0.on_gpu(on, argument)
    }
}

#[cfg(feature = "sim")]
impl Finds for Simulator {
    fn read_any<'a>(
        on: On<'a, Self>,
        input: AnyInput<'a>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>> {
        input.0.on_simulator(on, argument)
    }

    fn write_any<'a>(
        on: On<'a, Self>,
        output: &'a mut AnyOutput<'_>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>> {
        output.0.on_simulator(on, argument)
    }
}
