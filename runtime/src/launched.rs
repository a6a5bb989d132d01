//! What a launch tells of itself.

use crate::compile::Resources;
use crate::program::{Loadable, Prepared};
use gemm_dsl::ir::Variant;
use gemm_dsl::ir::program::KernelId;
use gemm_dsl::sim::Counters;
use std::fmt;
use std::sync::Arc;

/// What a launch did.
#[derive(Clone)]
#[non_exhaustive]
pub struct Launched {
    pub(crate) program: Arc<Prepared>,
    /// The kernel chosen for the first step, whether there was anything to launch or not.
    pub(crate) first: KernelId,
    pub(crate) steps: Vec<Ran>,
}

/// A kernel that ran.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) kernel: KernelId,
    pub(crate) grid: [u32; 3],
    pub(crate) counters: Option<Box<Counters>>,
}

/// One kernel launch of a [`Launched`] program.
#[derive(Clone, Copy)]
pub struct LaunchedStep<'a> {
    program: &'a Prepared,
    ran: &'a Ran,
}

impl Launched {
    /// The access variant that ran: of a reduction, the one of the first pass.
    pub fn variant(&self) -> Variant {
        self.program.kernel(self.first).kernel.variant
    }

    /// The number of kernel launches: more than one where a reduction took several passes, 0 where
    /// there was nothing to compute.
    pub fn passes(&self) -> usize {
        self.steps.len()
    }

    /// The kernel launches, in order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = LaunchedStep<'_>> {
        self.steps.iter().map(|ran| LaunchedStep { program: &self.program, ran })
    }

    /// Registers of a thread, its stack and the static shared memory of a block, as the driver
    /// reports them of the machine code of the variant that ran. Spilled registers lie on the
    /// stack; the driver does not tell them apart, so their fields are 0. None in the simulator.
    pub fn resources(&self) -> Option<Resources> {
        self.program.kernel(self.first).resources()
    }

    /// What the simulator counted in the first pass; none on a GPU.
    pub fn counters(&self) -> Option<&Counters> {
        self.steps.first()?.counters.as_deref()
    }
}

impl<'a> LaunchedStep<'a> {
    /// The name of the kernel.
    pub fn kernel(&self) -> &'a str {
        &self.loadable().kernel.name
    }

    /// Which of the kernels that compute the same it is.
    pub fn variant(&self) -> Variant {
        self.loadable().kernel.variant
    }

    /// The blocks along x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.ran.grid
    }

    /// As [`Launched::resources`], of this kernel.
    pub fn resources(&self) -> Option<Resources> {
        self.loadable().resources()
    }

    /// What the simulator counted; none on a GPU.
    pub fn counters(&self) -> Option<&'a Counters> {
        self.ran.counters.as_deref()
    }

    fn loadable(&self) -> &'a Loadable {
        self.program.kernel(self.ran.kernel)
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("variant", &self.variant())
            .field("steps", &self.steps().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LaunchedStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchedStep")
            .field("kernel", &self.kernel())
            .field("variant", &self.variant())
            .field("grid", &self.grid())
            .finish_non_exhaustive()
    }
}
