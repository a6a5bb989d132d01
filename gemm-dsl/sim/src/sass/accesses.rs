//! Accesses of a kernel in the order of the source, with information about aliases.

use super::charge::Charge;
use crate::counters::access_fate::AccessFate;
use crate::sass::polynomial::{Polynomial, ValueId};
use std::collections::HashMap;

/// Load that may be merged with adjacent ones.
pub(super) struct Load {
    pub(super) value: ValueId,
    pub(super) access: u32,
    /// Straight-line piece of code that contains the load.
    pub(super) piece: u32,
    /// Version of the memory from which it loads.
    pub(super) epoch: Epoch,
    pub(super) region: u32,
    /// Address without its constant part, in elements; `at` is the constant part.
    pub(super) form: Polynomial,
    pub(super) at: i64,
    /// True if the load must not be merged.
    pub(super) alone: bool,
}

/// Distance of an element or vector from an address, as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Offset {
    pub(super) constant: i64,
    pub(super) vector: bool,
}

/// Buffer, address, and constant distance from the address.
pub(super) type Address = (u32, ValueId, Offset);

/// Version of the memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Epoch {
    /// Number of synchronisations so far; 0 if the kernel does not write the buffer.
    pub(super) meetings: u32,
    /// Number of writes of this thread to the buffer through other addresses.
    pub(super) writes: u32,
}

pub(super) struct Store {
    pub(super) place: Address,
    pub(super) value: ValueId,
    pub(super) access: u32,
    /// Straight-line piece of code that contains the store.
    pub(super) piece: u32,
    /// Cost at the store's place in the source.
    pub(super) charge: Charge,
    pub(super) fate: StoreFate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreFate {
    Stands,
    /// The store was merged with a store in the other branch.
    Sunk,
    Overwritten,
}

/// Accesses so far, and the versions of memory.
#[derive(Default)]
pub(super) struct Accesses {
    pub(super) loads: Vec<Load>,
    pub(super) stores: Vec<Store>,
    /// Fates of accesses that are known so far, by access number.
    claimed: HashMap<u32, AccessFate>,
    /// Indices of stores whose values were not read yet.
    pub(super) open: HashMap<Address, usize>,
    /// Number of stores through each address.
    pub(super) own_writes: HashMap<(u32, ValueId), u32>,
    /// Number of writes to each buffer.
    pub(super) epochs: HashMap<u32, u32>,
    pub(super) meetings: u32,
    /// Recent addresses, with their buffers.
    pub(super) addresses: Vec<(u32, Polynomial, ValueId)>,
}

impl Accesses {
    /// Sets the fate of an access. It stays [`AccessFate::Own`] if unrolled copies disagree.
    pub(super) fn claim(&mut self, access: u32, role: AccessFate) {
        let known = self.claimed.entry(access).or_insert(role);
        if *known != role {
            *known = AccessFate::Own;
        }
    }

    /// Fates of all accesses, by access number.
    pub(super) fn fates(&self, accesses: u32) -> Vec<AccessFate> {
        (0..accesses).map(|at| self.claimed.get(&at).copied().unwrap_or(AccessFate::Own)).collect()
    }

    pub(super) fn written(&mut self, region: u32) {
        *self.epochs.entry(region).or_default() += 1;
    }

    /// Adds a store. An unconditional store overwrites an earlier store to the same place in the
    /// same piece of code.
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

    /// Stores that remain in the machine code.
    pub(super) fn standing(&self) -> impl Iterator<Item = &Store> {
        self.stores.iter().filter(|store| store.fate == StoreFate::Stands)
    }

    /// Sets the fates of all stores.
    pub(super) fn claim_stores(&mut self) {
        for store in std::mem::take(&mut self.stores) {
            let gone = store.fate == StoreFate::Overwritten;
            self.claim(store.access, if gone { AccessFate::Gone } else { AccessFate::Own });
        }
    }
}
