//! The interface between the executor and what watches it.

pub(crate) mod groups;

use super::error::{FaultKind, RefusedAccess};
use super::region::Region;
use crate::cost::SECTOR;
use crate::cost::pattern::Kind;
use crate::mask::WARP;
use gemm_dsl::ir::{MemoryOrder, Scope};
use groups::LaneGroups;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    /// The source of an asynchronous copy.
    CopyRead,
    /// The destination of an asynchronous copy.
    CopyWrite,
    /// An atomic operation of this scope, which reads and writes.
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

/// What stops a warp: the lane at fault and what it did.
#[derive(Debug)]
pub(super) struct Trap {
    pub(super) lane: u32,
    pub(super) kind: FaultKind,
    /// The access that it did not make, if that is what is wrong.
    pub(super) refused: Option<Box<RefusedAccess>>,
}

/// A trap on the heap: the way without one stays cheap.
pub(super) type BoxedTrap = Box<Trap>;

/// A trap in a lane.
#[cold]
pub(super) fn trap(lane: u32, kind: FaultKind) -> BoxedTrap {
    Box::new(Trap { lane, kind, refused: None })
}

/// The access of one warp to shared or global memory, inside the allocation and aligned.
pub(super) struct Request<'a> {
    pub(super) kind: AccessKind,
    /// The number of the buffer.
    pub(super) buffer: usize,
    pub(super) region: &'a Region,
    pub(super) warp: u32,
    /// The lanes that take part, at least one.
    pub(super) mask: u32,
    /// The lanes by the element of the buffer that each accesses first.
    pub(super) groups: &'a LaneGroups,
    /// Elements accessed by a lane: 1, or those of a vector.
    pub(super) width: u32,
    /// The number of the statement.
    pub(super) stmt: u32,
    /// The number of the access among those of the code.
    pub(super) access: u32,
    /// Whether the lanes take turns at an atomic from the last to the first.
    pub(super) reversed: bool,
}

impl Request<'_> {
    /// The sectors of global memory that the lanes access, as often as they access elements there. Sectors lie on the
    /// boundaries of the allocation, which starts on 256 bytes; a vector is aligned and never straddles two.
    pub(crate) fn sectors<'s>(&self, sectors: &'s mut [u64; WARP]) -> &'s mut [u64] {
        let groups = self.groups.as_slice();
        for (sector, &(offset, _)) in sectors.iter_mut().zip(groups) {
            *sector = self.region.byte(offset) / SECTOR;
        }
        &mut sectors[..groups.len()]
    }

    /// The words of shared memory that the lanes access first, each once.
    pub(crate) fn words<'w>(&self, words: &'w mut [(u32, u32); WARP]) -> &'w [(u32, u32)] {
        let (base, size) = (self.region.base, self.region.elem.size());
        let mut known = 0;
        for &(offset, lanes) in self.groups.as_slice() {
            let word = base + offset * size / 4;
            // Lanes that access parts of one word share it.
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

    /// Bytes accessed by a lane.
    pub(super) fn bytes(&self) -> u32 {
        self.width * self.region.elem.size()
    }
}

/// What the lanes of a warp have done by an atomic.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicRequest<'a> {
    pub(super) warp: u32,
    pub(super) mask: u32,
    /// The lanes that have written: all, or those that found what they compared with.
    pub(super) wrote: u32,
    /// The number of the buffer.
    pub(super) buffer: usize,
    /// The element of each lane.
    pub(super) elements: &'a [u32; WARP],
    pub(super) order: MemoryOrder,
    pub(super) scope: Scope,
    /// Whether the lanes took turns from the last to the first.
    pub(super) reversed: bool,
}

/// A synchronising statement that has been executed. Warps, and barriers with a name, are counted through all blocks of the
/// cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sync<'a> {
    /// All threads of the cluster have met.
    Cluster,
    /// All threads of the block with this number in the cluster have.
    Block(u32),
    /// All threads of the warp with this number have.
    Warp(u32),
    /// A warp has arrived at the barrier with this name.
    Arrive { barrier: u32, warp: u32 },
    /// All have, and these warps have waited for it.
    Complete { barrier: u32, warps: &'a [u32] },
    /// The lanes of a warp have executed an atomic.
    Atomic(&'a AtomicRequest<'a>),
    /// The lanes of a warp execute a fence.
    Fence { warp: u32, mask: u32, scope: Scope },
    /// The lanes of a warp close their groups of copies.
    Commit { warp: u32, mask: u32 },
    /// The lanes of a warp wait for all but the newest groups.
    Wait { warp: u32, mask: u32, pending: u32 },
}

/// Something that watches the execution of a block, or of those of a cluster, and may stop it.
pub(super) trait Observer {
    /// A cluster begins.
    fn begin(&mut self, cluster: u32);

    /// A warp accesses memory. Reads of a statement come before its write.
    fn access(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap>;

    /// Threads synchronise.
    fn sync(&mut self, sync: Sync<'_>);
}
