//! Interface between the executor and its observers.

pub(crate) mod groups;

use super::error::{FaultKind, RefusedAccess};
use super::region::Region;
use crate::cost::SECTOR;
use crate::cost::pattern::Kind;
use crate::mask::WARP;
use gemm_dsl::ir::{MemoryOrder, Scope};
use groups::LaneGroups;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    /// Source of an asynchronous copy (TMA or `cp.async`).
    CopyRead,
    /// Destination of an asynchronous copy.
    CopyWrite,
    /// Atomic operation with this scope: a read and a write.
    Atomic(Scope),
}

impl AccessKind {
    pub(crate) fn reads(self) -> bool {
        !matches!(self, AccessKind::Write | AccessKind::CopyWrite)
    }

    pub(crate) fn writes(self) -> bool {
        !matches!(self, AccessKind::Read | AccessKind::CopyRead)
    }
}

impl From<AccessKind> for Kind {
    fn from(kind: AccessKind) -> Self {
        match kind {
            AccessKind::Read => Self::Load,
            AccessKind::Write => Self::Store,
            AccessKind::CopyRead => Self::CopyRead,
            AccessKind::CopyWrite => Self::CopyWrite,
            AccessKind::Atomic(_) => Self::Atomic,
        }
    }
}

/// Fault that stops a warp, with the faulty lane.
#[derive(Debug)]
pub(super) struct Trap {
    pub(super) lane: u32,
    pub(super) kind: FaultKind,
    /// Refused access, if the fault is an access that is out of bounds or misaligned.
    pub(super) refused: Option<Box<RefusedAccess>>,
}

/// Boxed, to keep the result type small if there is no fault.
pub(super) type BoxedTrap = Box<Trap>;

#[cold]
pub(super) fn trap(lane: u32, kind: FaultKind) -> BoxedTrap {
    Box::new(Trap { lane, kind, refused: None })
}

/// Access of one warp to shared or global memory that is known to be in bounds and aligned.
pub(super) struct Request<'a> {
    pub(super) kind: AccessKind,
    pub(super) buffer: usize,
    pub(super) region: &'a Region,
    pub(super) warp: u32,
    /// Active lanes, at least one.
    pub(super) mask: u32,
    /// Lanes, grouped by the first element that they access.
    pub(super) groups: &'a LaneGroups,
    /// Number of elements per lane: 1, or the vector width.
    pub(super) width: u32,
    pub(super) stmt: u32,
    /// Number of the access in the lowered code.
    pub(super) access: u32,
    /// True if the lanes execute an atomic in descending order.
    pub(super) reversed: bool,
}

impl Request<'_> {
    /// Global-memory sectors of the access, with one entry per lane group. Sectors are counted from
    /// the start of the allocation, which is aligned to 256 bytes. A vector is aligned, so it is
    /// always inside one sector.
    pub(crate) fn sectors<'s>(&self, sectors: &'s mut [u64; WARP]) -> &'s mut [u64] {
        let groups = self.groups.as_slice();
        for (sector, &(offset, _)) in sectors.iter_mut().zip(groups) {
            *sector = self.region.byte(offset) / SECTOR;
        }
        &mut sectors[..groups.len()]
    }

    /// First shared-memory words of the lanes' accesses. Each word occurs once, with the mask of
    /// its lanes.
    pub(crate) fn words<'w>(&self, words: &'w mut [(u32, u32); WARP]) -> &'w [(u32, u32)] {
        let (base, size) = (self.region.base, self.region.elem.size());
        let mut known = 0;
        for &(offset, lanes) in self.groups.as_slice() {
            let word = base + offset * size / 4;
            // Lanes that access parts of the same word share an entry.
            let shared = match size < 4 {
                true => words[..known].iter().position(|(other, _)| *other == word),
                false => None,
            };
            let at = shared.unwrap_or(known);
            words[at] = (word, words[at].1 | lanes);
            known = known.max(at + 1);
        }
        &words[..known]
    }

    pub(super) fn bytes(&self) -> u32 {
        self.width * self.region.elem.size()
    }
}

/// Atomic executed by the lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicRequest<'a> {
    pub(super) warp: u32,
    pub(super) mask: u32,
    /// Lanes that have written: all lanes, or the successful lanes of a compare-and-exchange.
    pub(super) wrote: u32,
    pub(super) buffer: usize,
    pub(super) elements: &'a [u32; WARP],
    pub(super) order: MemoryOrder,
    pub(super) scope: Scope,
    /// True if the lanes executed the atomic in descending order.
    pub(super) reversed: bool,
}

/// Synchronisation that was executed. Warps and named barriers are numbered across all blocks of
/// the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sync<'a> {
    /// All threads of the cluster have met at a barrier.
    Cluster,
    /// All threads of the block with this rank in the cluster have met at a barrier.
    Block(u32),
    /// All threads of the warp with this number have met at a barrier.
    Warp(u32),
    /// A warp has arrived at a named barrier.
    Arrive {
        barrier: u32,
        warp: u32,
    },
    /// A named barrier is complete. The warps `warps` have waited for it.
    Complete {
        barrier: u32,
        warps: &'a [u32],
    },
    /// The lanes of a warp have executed an atomic.
    Atomic(&'a AtomicRequest<'a>),
    Fence {
        warp: u32,
        mask: u32,
        scope: Scope,
    },
    /// The lanes of a warp close their current group of asynchronous copies.
    Commit {
        warp: u32,
        mask: u32,
    },
    /// The lanes of a warp wait for all groups except the newest `pending`.
    Wait {
        warp: u32,
        mask: u32,
        pending: u32,
    },
}

/// Observer of a block, or of all blocks of a cluster. It can stop a warp.
pub(super) trait Observer {
    fn begin(&mut self, cluster: u32);

    /// Observes an access of a warp. The reads of a statement come before its write.
    fn access(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap>;

    fn sync(&mut self, sync: Sync<'_>);
}
