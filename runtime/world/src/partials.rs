//! Partial results (*partials*) of the runs of a reduction, and their exchange between ranks.

use super::{Block, Factor};
use crate::collective::CollectiveContext;
use crate::staging::{area, part};
use crate::transport::{
    ExchangeStart, Links, OwnBlock, Transfer, Transport, TransportWork, with_transport,
};
use crate::{Error, Result};
use gemm_dsl::ir::Elem;
use gemm_dsl::target::element::Element;
use gemm_runtime::Buffer;
use gemm_runtime::Device;
use gemm_runtime::internal as operand;
use gemm_runtime::internal::Areas;
use gemm_runtime::internal::Gpu;
use gemm_runtime::internal::LocatedOperand;
use gemm_runtime::internal::On;
use gemm_runtime::internal::Simulator;
use gemm_runtime::internal::{AnyInput, AnyOutput, Readable, Writable};

/// Partials of one component of a fold, with any element type.
pub(crate) trait Partials {
    /// Destination for the partials of this rank's runs.
    fn output(&mut self) -> AnyOutput<'_>;

    /// Source with the partials of all runs of this rank's results.
    fn input(&self) -> AnyInput<'_>;

    /// Sends each rank the partials that it needs, as a separate collective call. Then runs `then`,
    /// which launches the kernels that read the partials.
    fn exchange(
        &self,
        device: &Device,
        links: &Links,
        collective: &CollectiveContext,
        blocks: [&[Block]; 2],
        then: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()>;
}

/// Partials of a reduction. The next reduction with equal element types and lengths reuses their
/// memory.
pub(crate) struct PartialBuffers {
    elems: Vec<Elem>,
    lengths: [usize; 2],
    partials: Vec<Box<dyn Partials + Send>>,
}

impl PartialBuffers {
    /// Reuses the partials of an earlier reduction, or allocates new partials.
    pub(crate) fn reuse_or_alloc(
        kept: Option<Self>,
        device: &Device,
        elems: &[Elem],
        [own, all]: [&Block; 2],
    ) -> Result<Self> {
        let lengths = [own.len(), all.len()];
        if let Some(kept) = kept.filter(|of| (&*of.elems, of.lengths) == (elems, lengths)) {
            return Ok(kept);
        }
        Ok(Self { elems: elems.to_vec(), lengths, partials: partials(device, elems, lengths)? })
    }

    /// Destinations for the partials of this rank's runs, by component.
    pub(crate) fn outputs(&mut self) -> Vec<AnyOutput<'_>> {
        self.partials.iter_mut().map(|part| part.output()).collect()
    }

    /// Sources with the partials of all runs of this rank's results, by component.
    pub(crate) fn inputs(&self) -> Vec<AnyInput<'_>> {
        self.partials.iter().map(|part| part.input()).collect()
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &dyn Partials> {
        self.partials.iter().map(|part| &**part as &dyn Partials)
    }
}

/// Allocates partials for `own` runs of this rank, and for `all` runs of its results.
fn partials(
    device: &Device,
    elems: &[Elem],
    [own, all]: [usize; 2],
) -> Result<Vec<Box<dyn Partials + Send>>> {
    macro_rules! of {
        ($elem:expr, $($of:ident: $ty:ty),*) => {
            match $elem {
                $(Elem::$of => Ok(Box::new(PartialsOf::<$ty> {
                    own: device.alloc_of(own)?,
                    all: device.alloc_of(all)?,
                }) as Box<dyn Partials + Send>),)*
                other => Err(Error::internal(format!("partials of {other}"))),
            }
        };
    }
    let of = |elem: &Elem| of!(*elem, F32: f32, F64: f64, I32: i32, U32: u32, I64: i64, U64: u64);
    elems.iter().map(of).collect()
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

    fn exchange(
        &self,
        device: &Device,
        links: &Links,
        collective: &CollectiveContext,
        [has, needed]: [&[Block]; 2],
        then: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let own = collective.number();
        let step = PartialsExchange { partials: self, own, has, needed, then };
        with_transport::<T>(device, links, collective, step)
    }
}

/// Exchange of partials, executed with a transport.
struct PartialsExchange<'s, T: Element> {
    partials: &'s PartialsOf<T>,
    own: usize,
    has: &'s [Block],
    needed: &'s [Block],
    then: &'s mut dyn FnMut() -> Result<()>,
}

impl<T: Element> TransportWork for PartialsExchange<'_, T> {
    fn run<B: Areas>(self, on: On<'_, B>, transport: &mut dyn Transport<B>) -> Result<()> {
        let Self { partials, own, has, needed, then } = self;
        let factor = Factor::A;
        let from = area::<B>(&partials.own, &has[own])?;
        let all = area::<B>(&partials.all, &needed[own])?;
        let source = OwnBlock { factor, block: has[own].clone(), area: from.clone() };
        transport.start(on.backend, &[source])?;
        let mut transfers = Vec::new();
        for (rank, block) in has.iter().enumerate() {
            let block = block.and(&needed[own]);
            if block.is_empty() {
                continue;
            }
            let to = part(&all, &needed[own], &block)?;
            transfers.push(match rank == own {
                true => Transfer::Copy { from: part(&from, &has[own], &block)?, to },
                false => Transfer::Receive { from: rank, block, to },
            });
        }
        for (rank, block) in needed.iter().enumerate().filter(|(rank, _)| *rank != own) {
            let block = block.and(&has[own]);
            if !block.is_empty() {
                transfers.push(Transfer::Send { to: rank, from: part(&from, &has[own], &block)? });
            }
        }
        transport
            .begin(on.backend, ExchangeStart { exchange: 0, factor, transfers, behind: false })?;
        transport.wait(on.backend, 0)?;
        // `then` runs before the end of the transport, which waits until other ranks have fetched
        // this rank's partials.
        then()?;
        transport.end(on.backend)
    }
}

impl<T: Element> Readable for PartialsOf<T> {
    fn on_gpu<'a>(
        &'a self,
        on: On<'a, Gpu>,
        argument: &str,
    ) -> gemm_runtime::error::Result<LocatedOperand<'a, Gpu>> {
        operand::read(on, &self.all, argument)
    }

    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> gemm_runtime::error::Result<LocatedOperand<'a, Simulator>> {
        operand::read(on, &self.all, argument)
    }
}

impl<T: Element> Writable for PartialsOf<T> {
    fn on_gpu<'a>(
        &'a mut self,
        on: On<'a, Gpu>,
        argument: &str,
    ) -> gemm_runtime::error::Result<LocatedOperand<'a, Gpu>> {
        operand::write(on, &mut self.own, argument)
    }

    fn on_simulator<'a>(
        &'a mut self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> gemm_runtime::error::Result<LocatedOperand<'a, Simulator>> {
        operand::write(on, &mut self.own, argument)
    }
}
