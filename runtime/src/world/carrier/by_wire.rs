//! Blocks as messages: that is how simulated devices have them, and GPUs that nothing else connects, through the host.

use super::{Begun, Carrier, Leg, Own};
use crate::backend::{Area, Areas, Backend};
use crate::error::{Error, Result};
use crate::world::WorldError;
use crate::world::rank::Talk;
use gemm_dsl::sim::{Element, from_bytes, to_bytes};
use std::collections::HashMap;
use std::marker::PhantomData;

/// Blocks of elements of type `T` as messages.
pub(in crate::world) struct ByWire<'t, T, B: Backend> {
    talk: &'t Talk,
    /// What each exchange that has begun will bring.
    due: HashMap<usize, Vec<(usize, Area<B>)>>,
    of: PhantomData<T>,
}

impl<'t, T: Element, B: Backend> ByWire<'t, T, B> {
    pub(in crate::world) fn new(talk: &'t Talk) -> Self {
        Self { talk, due: HashMap::new(), of: PhantomData }
    }
}

impl<T: Element, B: Areas> Carrier<B> for ByWire<'_, T, B> {
    fn start(&mut self, _: &B, _: &[Own<B>]) -> Result<()> {
        Ok(())
    }

    fn begin(&mut self, backend: &B, begun: Begun<B>) -> Result<()> {
        let Begun { exchange, legs, .. } = begun;
        let due = self.due.entry(exchange).or_default();
        for leg in legs {
            match leg {
                Leg::Send { to, from } => {
                    let elements: Vec<T> = backend.read_area(&from)?;
                    self.talk.send(to, exchange, to_bytes(&elements))?;
                }
                Leg::Receive { from, to, .. } => due.push((from, to)),
                Leg::Copy { from, to } => backend.copy_area(&from, &to)?,
            }
        }
        Ok(())
    }

    /// Waits for the messages: what has come before may have been overwritten by who was slower.
    fn wait(&mut self, backend: &B, exchange: usize) -> Result<()> {
        for (from, to) in self.due.remove(&exchange).unwrap_or_default() {
            let bytes = self.talk.take(from, exchange)?;
            let elements: Option<Vec<T>> = from_bytes(&bytes);
            let elements =
                elements.filter(|elements| elements.len() == to.len()).ok_or_else(|| {
                    Error::World(WorldError::Mismatch {
                        what: format!("the blocks of exchange {exchange}"),
                        rank: from,
                        has: format!("sent {} bytes", bytes.len()),
                        other: self.talk.number(),
                        others: format!("room for {} elements", to.len()),
                        remedy: "What carries messages between the ranks has changed one",
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

    /// Each message is taken or sent when the call for it returns.
    fn give_up(&mut self, _: &B) {}
}
