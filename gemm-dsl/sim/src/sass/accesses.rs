//! The accesses of a kernel in the order of the text, and what is known of them there.

use super::charge::Charge;
use crate::counters::access_fate::AccessFate;
use crate::sass::polynomial::{Polynomial, ValueId};
use std::collections::HashMap;

/// A load that may be merged with its neighbours.
pub(super) struct Load {
    pub(super) value: ValueId,
    /// The number of the access.
    pub(super) access: u32,
    /// Which piece of straight code it is in.
    pub(super) piece: u32,
    /// How often its memory has changed before.
    pub(super) epoch: Epoch,
    pub(super) region: u32,
    /// Its address but for a constant, and the constant, in elements.
    pub(super) form: Polynomial,
    pub(super) at: i64,
    /// Whether nothing else may be loaded instead.
    pub(super) alone: bool,
}

/// What lies so many elements behind an address: an element, or a vector that begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Offset {
    pub(super) constant: i64,
    pub(super) vector: bool,
}

/// Which buffer, address, and what behind it.
pub(super) type Address = (u32, ValueId, Offset);

/// How often what an address points to may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Epoch {
    /// Threads have met, if anybody writes the buffer.
    pub(super) meetings: u32,
    /// This thread has written the buffer, through other addresses.
    pub(super) writes: u32,
}

/// A store.
pub(super) struct Store {
    pub(super) place: Address,
    pub(super) value: ValueId,
    /// The number of the access.
    pub(super) access: u32,
    /// Which piece of straight code it is in.
    pub(super) piece: u32,
    /// What it costs where it stands.
    pub(super) charge: Charge,
    pub(super) fate: StoreFate,
}

/// What becomes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreFate {
    Stands,
    /// Another one, of the other branch, writes its value too.
    Sunk,
    /// It is overwritten before anybody looks.
    Overwritten,
}

/// The accesses so far, and how often memory has changed.
#[derive(Default)]
pub(super) struct Accesses {
    pub(super) loads: Vec<Load>,
    pub(super) stores: Vec<Store>,
    /// What becomes of each access of the code, as far as that is known.
    claimed: HashMap<u32, AccessFate>,
    /// The stores that nobody has looked at yet, by their numbers.
    pub(super) open: HashMap<Address, usize>,
    /// How often each address was stored through.
    pub(super) own_writes: HashMap<(u32, ValueId), u32>,
    /// How often each buffer was written.
    pub(super) epochs: HashMap<u32, u32>,
    /// How often threads have met.
    pub(super) meetings: u32,
    /// The addresses computed last, of their buffers.
    pub(super) addresses: Vec<(u32, Polynomial, ValueId)>,
}

impl Accesses {
    /// What becomes of an access; where copies of its loop's body differ, it stays as it is.
    pub(super) fn claim(&mut self, access: u32, role: AccessFate) {
        let known = self.claimed.entry(access).or_insert(role);
        if *known != role {
            *known = AccessFate::Own;
        }
    }

    /// What becomes of each of so many accesses.
    pub(super) fn fates(&self, accesses: u32) -> Vec<AccessFate> {
        (0..accesses).map(|at| self.claimed.get(&at).copied().unwrap_or(AccessFate::Own)).collect()
    }

    /// Memory is written.
    pub(super) fn written(&mut self, region: u32) {
        *self.epochs.entry(region).or_default() += 1;
    }

    /// A store, which overwrites one of the same piece of code to its place; under a condition it may not be made.
    pub(super) fn push(&mut self, store: Store, guarded: bool) {
        if guarded {
            self.open.remove(&store.place);
        } else if let Some(before) = self.open.insert(store.place, self.stores.len())
            && self.stores[before].piece == store.piece
        {
            self.stores[before].fate = StoreFate::Overwritten;
        }
        self.stores.push(store);
    }

    /// The stores that the machine code has.
    pub(super) fn standing(&self) -> impl Iterator<Item = &Store> {
        self.stores.iter().filter(|store| store.fate == StoreFate::Stands)
    }

    /// Claims all stores.
    pub(super) fn claim_stores(&mut self) {
        for store in std::mem::take(&mut self.stores) {
            let gone = store.fate == StoreFate::Overwritten;
            self.claim(store.access, if gone { AccessFate::Gone } else { AccessFate::Own });
        }
    }
}
