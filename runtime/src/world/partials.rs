//! What ranks leave of the runs that they have folded, and how it comes to those who make results of it.

#[cfg(feature = "nccl")]
use super::carrier::Moved;
use super::carrier::{Begun, ByWire, Carrier, Fetching, Leg, Links, Own};
use super::rank::Talk;
use super::room::{area, part};
use super::{Block, Rank, Side};
use crate::backend::Areas;
use crate::backend::gpu::Gpu;
use crate::backend::simulator::Simulator;
use crate::buffer::Buffer;
use crate::device::{Device, Either, On};
use crate::erased::{AnyInput, AnyOutput, Readable, Writable};
use crate::error::{Error, Result};
use crate::memory::Keeps;
use crate::operand::{self, Resolved};
use gemm_dsl::ir::Elem;
use gemm_dsl::sim::Element;
use gemm_dsl::spec::ReduceSpec;

/// Partials of one part of a fold, whatever their elements are.
pub(super) trait Partials {
    /// Those of this rank's runs, to be written.
    fn output(&mut self) -> AnyOutput<'_>;

    /// Those of all runs of this rank's results.
    fn input(&self) -> AnyInput<'_>;

    /// Brings to each rank what it needs of what each has, in a call of its own.
    fn carry(&self, rank: &Rank, talk: &Talk, has: &[Block], needed: &[Block]) -> Result<()>;
}

/// The partials of a spec: of the runs in one block, and room for those in another one.
pub(super) fn partials(
    device: &Device,
    spec: &ReduceSpec,
    own: &Block,
    all: &Block,
) -> Result<Vec<Box<dyn Partials>>> {
    macro_rules! of {
        ($elem:expr, $($of:ident: $ty:ty),*) => {
            match $elem {
                $(Elem::$of => Ok(Box::new(PartialsOf::<$ty> {
                    own: device.alloc_of(own.len())?,
                    all: device.alloc_of(all.len())?,
                }) as Box<dyn Partials>),)*
                other => Err(Error::Internal(format!("partials of {other}"))),
            }
        };
    }
    let parts = spec.partials()?.into_iter();
    parts
        .map(|(_, elem)| of!(elem, F32: f32, F64: f64, I32: i32, U32: u32, I64: i64, U64: u64))
        .collect()
}

struct PartialsOf<T: Element> {
    own: Buffer<T>,
    all: Buffer<T>,
}

impl<T: Element> Partials for PartialsOf<T> {
    fn output(&mut self) -> AnyOutput<'_> {
        AnyOutput(self)
    }

    fn input(&self) -> AnyInput<'_> {
        AnyInput(self)
    }

    fn carry(&self, rank: &Rank, talk: &Talk, has: &[Block], needed: &[Block]) -> Result<()> {
        let device = &rank.device;
        let step = Step { partials: self, own: rank.number(), has, needed };
        match (device.backend(), &rank.links) {
            (Either::Gpu(backend), Links::Peers(peers)) => {
                step.take(On { device, backend }, &mut Fetching::new(peers, talk))
            }
            #[cfg(feature = "nccl")]
            (Either::Gpu(backend), Links::Nccl(nccl)) => {
                step.take(On { device, backend }, &mut Moved::new(nccl, talk))
            }
            (Either::Gpu(backend), _) => {
                step.take(On { device, backend }, &mut ByWire::<T, _>::new(talk))
            }
            (Either::Simulator(backend), _) => {
                step.take(On { device, backend }, &mut ByWire::<T, _>::new(talk))
            }
        }
    }
}

/// The exchange of partials.
struct Step<'s, T: Element> {
    partials: &'s PartialsOf<T>,
    own: usize,
    has: &'s [Block],
    needed: &'s [Block],
}

impl<T: Element> Step<'_, T> {
    fn take<B: Keeps + Areas>(self, on: On<'_, B>, carrier: &mut dyn Carrier<B>) -> Result<()> {
        let Self { partials, own, has, needed } = self;
        let side = Side::A;
        let from = area::<B>(&partials.own, &has[own])?;
        let all = area::<B>(&partials.all, &needed[own])?;
        let source = Own { side, block: has[own].clone(), area: from.clone() };
        carrier.start(on.backend, &[source])?;
        let mut legs = Vec::new();
        for (rank, block) in has.iter().enumerate() {
            let block = block.and(&needed[own]);
            if block.is_empty() {
                continue;
            }
            let to = part(&all, &needed[own], &block)?;
            legs.push(match rank == own {
                true => Leg::Copy { from: part(&from, &has[own], &block)?, to },
                false => Leg::Receive { from: rank, block, to },
            });
        }
        for (rank, block) in needed.iter().enumerate().filter(|(rank, _)| *rank != own) {
            let block = block.and(&has[own]);
            if !block.is_empty() {
                legs.push(Leg::Send { to: rank, from: part(&from, &has[own], &block)? });
            }
        }
        carrier.begin(on.backend, Begun { exchange: 0, side, legs, behind: false })?;
        carrier.wait(on.backend, 0)?;
        carrier.end(on.backend)
    }
}

impl<T: Element> Readable for PartialsOf<T> {
    fn on_gpu<'a>(&'a self, on: On<'a, Gpu>, argument: &str) -> Result<Resolved<'a, Gpu>> {
        operand::read(on, &self.all, argument)
    }

    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<Resolved<'a, Simulator>> {
        operand::read(on, &self.all, argument)
    }
}

impl<T: Element> Writable for PartialsOf<T> {
    fn on_gpu<'a>(&'a mut self, on: On<'a, Gpu>, argument: &str) -> Result<Resolved<'a, Gpu>> {
        operand::write(on, &mut self.own, argument)
    }

    fn on_simulator<'a>(
        &'a mut self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> Result<Resolved<'a, Simulator>> {
        operand::write(on, &mut self.own, argument)
    }
}
