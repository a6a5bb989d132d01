//! Transport by messages through the host, for simulated devices and for GPUs without another link.

use super::{ExchangeStart, OwnBlock, Transfer, Transport};
use crate::WorldError;
use crate::collective::CollectiveContext;
use crate::{Error, Result};
use gemm_dsl::error::counted;
use gemm_dsl::target::element::{Element, from_bytes, to_bytes};
use gemm_runtime::internal::{Area, Areas, Backend};
use std::collections::HashMap;
use std::marker::PhantomData;

/// Transport of elements of type `T` by messages.
pub(crate) struct MessageTransport<'t, T, B: Backend> {
    collective: &'t CollectiveContext,
    /// Blocks that this rank will receive in each begun exchange, with their senders.
    due: HashMap<usize, Vec<(usize, Area<B>)>>,
    of: PhantomData<T>,
}

impl<'t, T: Element, B: Backend> MessageTransport<'t, T, B> {
    pub(crate) fn new(collective: &'t CollectiveContext) -> Self {
        Self { collective, due: HashMap::new(), of: PhantomData }
    }
}

impl<T: Element, B: Areas> Transport<B> for MessageTransport<'_, T, B> {
    fn start(&mut self, _: &B, _: &[OwnBlock<B>]) -> Result<()> {
        Ok(())
    }

    fn begin(&mut self, backend: &B, begun: ExchangeStart<B>) -> Result<()> {
        let ExchangeStart { exchange, transfers, .. } = begun;
        let due = self.due.entry(exchange).or_default();
        for transfer in transfers {
            match transfer {
                Transfer::Send { to, from } => {
                    let elements: Vec<T> = backend.read_area(&from)?;
                    self.collective.send(to, exchange, to_bytes(&elements))?;
                }
                Transfer::Receive { from, to, .. } => due.push((from, to)),
                Transfer::Copy { from, to } => backend.copy_area(&from, &to)?,
            }
        }
        Ok(())
    }

    /// Waits for all messages of an exchange, then writes them to the device. An earlier write
    /// could overwrite data that is still in use.
    fn wait(&mut self, backend: &B, exchange: usize) -> Result<()> {
        for (from, to) in self.due.remove(&exchange).unwrap_or_default() {
            let bytes = self.collective.take(from, exchange)?;
            let elements: Option<Vec<T>> = from_bytes(&bytes);
            let elements =
                elements.filter(|elements| elements.len() == to.len()).ok_or_else(|| {
                    Error::World(WorldError::Mismatch {
                        what: format!("the blocks of exchange {exchange}"),
                        rank: from,
                        has: format!("sent {} bytes", bytes.len()),
                        other: self.collective.number(),
                        others: format!("capacity for {}", counted(to.len() as u64, "element")),
                        remedy: "The transport between the ranks has changed a message",
                    })
                })?;
            backend.write_area(&to, &elements)?;
        }
        Ok(())
    }

    fn end(&mut self, backend: &B) -> Result<()> {
        let left: Vec<usize> = self.due.keys().copied().collect();
        left.into_iter().try_for_each(|exchange| self.wait(backend, exchange))
    }

    /// Nothing to do: each message is complete when its call returns.
    fn give_up(&mut self, _: &B) {}
}

#[cfg(test)]
mod tests {
    use super::super::{TransportWork, with_transport};
    use super::*;
    use crate::staging::area;
    use crate::{Block, Factor, Rank, World};
    use gemm_runtime::internal::On;
    use gemm_runtime::{Buffer, Device};

    /// Receives four numbers from rank 0, either by waiting for the exchange or by ending the
    /// transport.
    struct Received<'b> {
        buffer: &'b Buffer,
        is_waited_for: bool,
    }

    impl TransportWork for Received<'_> {
        fn run<B: Areas>(self, on: On<'_, B>, transport: &mut dyn Transport<B>) -> Result<()> {
            let block = Block::new(0..1, 0..4);
            let transfers =
                vec![Transfer::Receive { from: 0, to: area(self.buffer, &block)?, block }];
            let begun = ExchangeStart { exchange: 0, factor: Factor::A, transfers, behind: false };
            transport.begin(on.backend, begun)?;
            if self.is_waited_for {
                transport.wait(on.backend, 0)?;
                assert_eq!(on.device.download(self.buffer)?, [1.0, 2.0, 3.0, 4.0]);
            }
            transport.end(on.backend)
        }
    }

    /// Returns the four numbers on rank 1 after rank 0 has sent `sent` numbers.
    fn received(sent: usize, is_waited_for: bool) -> Result<Vec<f32>> {
        let numbers: Vec<f32> = (1..=sent).map(|n| n as f32).collect();
        let found = World::simulated(2)?.run(|rank: &mut Rank| {
            let collective = rank.collective("testing");
            if rank.number() == 0 {
                collective.send(1, 0, to_bytes(&numbers))?;
                return Ok(Vec::new());
            }
            let device: Device = rank.device().clone();
            let buffer = device.upload(&[f32::NAN; 4])?;
            let work = Received { buffer: &buffer, is_waited_for };
            with_transport::<f32>(&device, &rank.links, &collective, work)?;
            Ok(device.download(&buffer)?)
        })?;
        Ok(found.into_iter().nth(1).unwrap_or_default())
    }

    #[test]
    fn started_exchanges_complete() {
        for is_waited_for in [false, true] {
            let found = received(4, is_waited_for).expect("numbers");
            assert_eq!(found, [1.0, 2.0, 3.0, 4.0], "{is_waited_for}");
        }
    }

    #[test]
    fn messages_of_the_wrong_size_are_rejected() {
        for sent in [3, 5, 0] {
            let error = received(sent, true).expect_err("no such block").to_string();
            let said = [
                "the blocks of exchange 0",
                &format!("rank 0 has sent {} bytes", 4 * sent),
                "rank 1 has capacity for 4 elements",
            ];
            assert!(said.iter().all(|said| error.contains(said)), "{error}");
        }
    }
}
