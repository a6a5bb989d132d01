//! Counts what accesses cost the memories: sectors, wavefronts, bytes.

use super::counters::Counters;
use super::lanes::WARP;
use super::observe::{Observer, Request, Stopped, Sync};
use crate::ir::Space;

/// Bytes of a sector of global memory.
const SECTOR: u64 = 32;
/// Banks of shared memory, each a word wide.
const BANKS: usize = 32;
/// Groups of four banks, one of which a lane of a 16-byte access reads or writes.
const QUADS: usize = BANKS / 4;
/// The lanes of the phases of a 16-byte access.
const QUARTERS: [u32; 4] = [0xff, 0xff00, 0xff_0000, 0xff00_0000];
/// Those of an 8-byte access, and of a 16-byte load whose phases merge in pairs.
const PAIRS: [u32; 2] = [0xffff, 0xffff_0000];

/// The traffic of the blocks run so far, and their barriers.
pub(super) struct Traffic {
    /// By the number of the statement.
    statements: Vec<Counters>,
    /// What is counted for each block.
    blocks: Counters,
    /// Warps of a block.
    warps: u32,
    /// For each block of the cluster, the barriers of the block and of its warps.
    barriers: Vec<[u64; 2]>,
}

/// Whether the phases of a 16-byte load merge in pairs: all active lanes read what their neighbour
/// reads, or all read what the lane two away in their group of four reads. Fitted to the profiler's
/// counts on an H200, see `tests/wavefronts.txt`; stores never merge.
fn in_pairs(groups: &[(u32, u32)], active: u32) -> bool {
    let alike =
        |swap: fn(u32) -> u32| groups.iter().all(|&(_, lanes)| swap(lanes) & active & !lanes == 0);
    alike(|lanes| (lanes & 0x5555_5555) << 1 | lanes >> 1 & 0x5555_5555)
        || alike(|lanes| (lanes & 0x3333_3333) << 2 | lanes >> 2 & 0x3333_3333)
}

/// The wavefronts and the phases of an access of 16 bytes, given the first word of each group of
/// lanes.
fn quads(words: impl Iterator<Item = (u32, u32)> + Clone, request: &Request<'_>) -> (u64, u64) {
    let halves = !request.kind.writes() && in_pairs(request.groups.as_slice(), request.mask);
    let lanes_of_phases: &[u32] = if halves { &PAIRS } else { &QUARTERS };
    lanes_of_phases.iter().fold((0, 0), |(wavefronts, phases), lanes| {
        let mut banks = [0u8; QUADS];
        for (word, of) in words.clone() {
            banks[word as usize / 4 % QUADS] += u8::from(of & lanes != 0);
        }
        let most = banks.iter().copied().fold(0, u8::max);
        (wavefronts + u64::from(most), phases + u64::from(most > 0))
    })
}

impl Traffic {
    /// Of clusters of so many blocks, each of so many warps, and so many statements.
    pub(super) fn new(warps: u32, cluster: u32, statements: usize) -> Self {
        let (statements, blocks) = (vec![Counters::default(); statements], Counters::default());
        Self { statements, blocks, warps, barriers: vec![[0; 2]; cluster as usize] }
    }

    fn of(&mut self, stmt: u32) -> &mut Counters {
        &mut self.statements[stmt as usize]
    }

    fn global(&mut self, request: &Request<'_>) {
        let counters = self.of(request.stmt);
        counters.global_requests += 1;
        let bytes = u64::from(request.mask.count_ones() * request.bytes());
        if request.kind.writes() {
            counters.global_store_bytes += bytes;
        }
        if request.kind.reads() {
            counters.global_load_bytes += bytes;
        }
        // Sectors lie on the boundaries of the allocation, which starts on 256 bytes. A vector is
        // aligned: it never straddles two.
        let mut sectors = [0; WARP];
        let groups = request.groups.as_slice();
        let (skew, size) = (request.region.skew, u64::from(request.region.elem.size()));
        for (sector, &(offset, _)) in sectors.iter_mut().zip(groups) {
            *sector = (u64::from(offset) + u64::from(skew)) * size / SECTOR;
        }
        let sectors = &mut sectors[..groups.len()];
        if !sectors.is_sorted() {
            sectors.sort_unstable();
        }
        let changes = sectors.windows(2).filter(|w| w[0] != w[1]).count();
        counters.global_sectors += 1 + changes as u64;
    }

    fn shared(&mut self, request: &Request<'_>) {
        let counters = self.of(request.stmt);
        counters.shared_requests += 1;
        let bytes = u64::from(request.mask.count_ones() * request.bytes());
        if request.kind.writes() {
            counters.shared_store_bytes += bytes;
        }
        if request.kind.reads() {
            counters.shared_load_bytes += bytes;
        }
        let (base, size) = (request.region.base, request.region.elem.size());
        let word = |offset: u32| base + offset * size / 4;
        let groups = request.groups.as_slice();
        let (wavefronts, phases) = match request.bytes() {
            16 => quads(groups.iter().map(|&(offset, of)| (word(offset), of)), request),
            8 => PAIRS.iter().fold((0, 0), |(wavefronts, phases), lanes| {
                // Each phase moves the 8 bytes of half a warp.
                let mut banks = [0u8; BANKS / 2];
                for &(offset, of) in groups {
                    banks[word(offset) as usize / 2 % (BANKS / 2)] += u8::from(of & lanes != 0);
                }
                let most = banks.iter().copied().fold(0, u8::max);
                (wavefronts + u64::from(most), phases + u64::from(most > 0))
            }),
            _ => {
                let mut banks = [0u8; BANKS];
                let mut words = [0; WARP];
                let mut known = 0;
                for &(offset, _) in groups {
                    let word = word(offset);
                    // Lanes that access parts of one word share it.
                    if size < 4 {
                        if words[..known].contains(&word) {
                            continue;
                        }
                        words[known] = word;
                        known += 1;
                    }
                    banks[word as usize % BANKS] += 1;
                }
                (u64::from(banks.iter().copied().fold(0, u8::max)), 1)
            }
        };
        counters.shared_wavefronts += wavefronts;
        counters.shared_bank_conflicts += wavefronts - phases;
    }

    /// A branch whose active lanes disagree.
    #[inline]
    pub(super) fn diverged(&mut self, stmt: u32, divergent: bool) {
        self.of(stmt).divergent_branches += u64::from(divergent);
    }

    /// The copy of a box of so many bytes, to so many blocks.
    pub(super) fn copied(&mut self, stmt: u32, bytes: u64, blocks: u32) {
        let counters = self.of(stmt);
        counters.bulk_bytes += bytes;
        counters.multicast_bytes += bytes * u64::from(blocks - 1);
    }

    /// A matrix instruction of so many multiplications and additions.
    pub(super) fn multiplied(&mut self, stmt: u32, flops: u64) {
        self.of(stmt).mma_flops += flops;
    }

    fn settle(&mut self) {
        let counters = &mut self.blocks;
        for [of_block, of_warps] in &mut self.barriers {
            counters.block_barriers = counters.block_barriers.max(std::mem::take(of_block));
            counters.warp_barriers = counters.warp_barriers.max(std::mem::take(of_warps));
        }
    }

    /// What is counted for each block, the last one included, and what for each statement.
    pub(super) fn finish(mut self) -> (Counters, Vec<Counters>) {
        self.settle();
        (self.blocks, self.statements)
    }
}

impl Observer for Traffic {
    fn begin(&mut self, _: u32) {
        self.settle();
        self.blocks.blocks += self.barriers.len() as u64;
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), Stopped> {
        match request.region.space {
            Space::Global => self.global(request),
            Space::Shared => self.shared(request),
            Space::Register => {}
        }
        Ok(())
    }

    fn sync(&mut self, sync: Sync<'_>) {
        match sync {
            Sync::Block(rank) => self.barriers[rank as usize][0] += 1,
            Sync::Warp(warp) => self.barriers[(warp / self.warps) as usize][1] += 1,
            Sync::Cluster
            | Sync::Atomic(_)
            | Sync::Arrive { .. }
            | Sync::Complete { .. }
            | Sync::Fence { .. }
            | Sync::Commit { .. }
            | Sync::Wait { .. } => {}
        }
    }
}
