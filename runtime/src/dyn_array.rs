//! Arrays whose element type is known only at launch.

use crate::backend::Backend;
use crate::backend::gpu::Gpu;
#[cfg(feature = "sim")]
use crate::backend::simulator::Simulator;
use crate::device::On;
use crate::error::Result;
use crate::operand::{self, Input, LocatedOperand, Output};

/// Input of any element type, on either back end.
pub trait Readable {
    /// Locates the array as [`operand::read`] does.
    fn on_gpu<'a>(&'a self, on: On<'a, Gpu>, argument: &str) -> Result<LocatedOperand<'a, Gpu>>;

    /// Locates the array as [`operand::read`] does.
    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>>;
}

/// Output of any element type, on either back end.
pub trait Writable {
    /// Locates the array as [`operand::write`] does.
    fn on_gpu<'a>(&'a mut self, on: On<'a, Gpu>, argument: &str)
    -> Result<LocatedOperand<'a, Gpu>>;

    /// Locates the array as [`operand::write`] does.
    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a mut self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>>;
}

/// Input whose element type is known only at launch.
#[derive(Clone, Copy)]
pub struct AnyInput<'a>(pub &'a dyn Readable);

/// Output whose element type is known only at launch.
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

/// Input that the erased array owns, such as a view.
pub struct OwnedInput<I>(pub I);

impl<I: Input> Readable for OwnedInput<I> {
    fn on_gpu<'a>(&'a self, on: On<'a, Gpu>, argument: &str) -> Result<LocatedOperand<'a, Gpu>> {
        operand::read(on, &self.0, argument)
    }

    #[cfg(feature = "sim")]
    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Simulator>> {
        operand::read(on, &self.0, argument)
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

/// Back end that locates type-erased arrays.
pub trait Finds: Backend {
    /// Locates an input as [`operand::read`] does.
    fn read_any<'a>(
        on: On<'a, Self>,
        input: AnyInput<'a>,
        argument: &str,
    ) -> Result<LocatedOperand<'a, Self>>;

    /// Locates an output as [`operand::write`] does.
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
