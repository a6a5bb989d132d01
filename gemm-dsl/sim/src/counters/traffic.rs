//! Counts what accesses cost the memories: sectors, wavefronts, bytes.

mod compiled;

use super::quantity::Compiled;
use crate::cost;
use crate::cost::SECTOR;
use crate::counters::Counters;
use crate::counters::access_fate::Role;
use crate::lower::code::Code;
use crate::mask::WARP;
use crate::observe::{AccessKind, Observer, Request, Stopped, Sync};
use gemm_dsl::ir::Space;

/// The traffic of the blocks run so far, and their barriers.
pub(crate) struct Traffic<'l> {
    /// By the number of the statement.
    statements: Vec<Counters>,
    /// What is counted for each block.
    blocks: Counters,
    /// Warps of a block.
    warps: u32,
    /// For each block of the cluster, the barriers of the block and of its warps.
    barriers: Vec<[u64; 2]>,
    /// What becomes of each access in the machine code, and what that is charged with, by the number of the statement: if
    /// somebody asks.
    compiled: Option<(&'l [Role], Vec<Compiled>)>,
}

impl<'l> Traffic<'l> {
    /// Of clusters of so many blocks, each of so many warps, and of this code.
    pub(crate) fn new(warps: u32, cluster: u32, code: &'l Code<'_>) -> Self {
        let (statements, blocks) =
            (vec![Counters::default(); code.stmts.len()], Counters::default());
        let compiled = code.roles.as_deref();
        let compiled = compiled.map(|roles| (roles, vec![Compiled::default(); code.stmts.len()]));
        Self { statements, blocks, warps, barriers: vec![[0; 2]; cluster as usize], compiled }
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
        let mut sectors = [0; WARP];
        let sectors = sectors_of(request, &mut sectors);
        counters.global_sectors += cost::sectors(sectors);
        if request.kind != AccessKind::CopyRead {
            counters.global_lines += cost::lines(sectors);
        }
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
        let mut words = [(0, 0); WARP];
        let words = words_of(request, &mut words);
        let cost = cost::wavefronts(words, request.bytes(), request.kind.writes());
        counters.shared_wavefronts += cost.wavefronts;
        counters.shared_bank_conflicts += cost.conflicts();
    }

    /// A branch whose active lanes disagree.
    #[inline]
    pub(crate) fn diverged(&mut self, stmt: u32, divergent: bool) {
        self.of(stmt).divergent_branches += u64::from(divergent);
    }

    /// The copy of a box of so many bytes, to so many blocks.
    pub(crate) fn copied(&mut self, stmt: u32, bytes: u64, blocks: u32) {
        let counters = self.of(stmt);
        counters.bulk_bytes += bytes;
        counters.multicast_bytes += bytes * u64::from(blocks - 1);
    }

    /// A matrix instruction of so many multiplications and additions.
    pub(crate) fn multiplied(&mut self, stmt: u32, flops: u64) {
        self.of(stmt).mma_flops += flops;
    }

    fn settle(&mut self) {
        let counters = &mut self.blocks;
        for [of_block, of_warps] in &mut self.barriers {
            counters.block_barriers = counters.block_barriers.max(std::mem::take(of_block));
            counters.warp_barriers = counters.warp_barriers.max(std::mem::take(of_warps));
        }
    }

    /// What is counted for each block, the last one included, what for each statement, and what for it as compiled.
    pub(crate) fn finish(mut self) -> (Counters, Vec<Counters>, Vec<Compiled>) {
        self.settle();
        let compiled = self.compiled.map_or_else(Vec::new, |(_, statements)| statements);
        (self.blocks, self.statements, compiled)
    }
}

/// The sectors of global memory that the lanes of a request access, as often as they access elements there. Sectors lie on the
/// boundaries of the allocation, which starts on 256 bytes; a vector is aligned and never straddles two.
pub(crate) fn sectors_of<'s>(request: &Request<'_>, sectors: &'s mut [u64; WARP]) -> &'s mut [u64] {
    let groups = request.groups.as_slice();
    for (sector, &(offset, _)) in sectors.iter_mut().zip(groups) {
        *sector = request.region.byte(offset) / SECTOR;
    }
    &mut sectors[..groups.len()]
}

/// The words of shared memory that the lanes of a request access first, each once.
pub(crate) fn words_of<'w>(
    request: &Request<'_>,
    words: &'w mut [(u32, u32); WARP],
) -> &'w [(u32, u32)] {
    let (base, size) = (request.region.base, request.region.elem.size());
    let mut known = 0;
    for &(offset, lanes) in request.groups.as_slice() {
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

impl Observer for Traffic<'_> {
    fn begin(&mut self, _: u32) {
        self.settle();
        self.blocks.blocks += self.barriers.len() as u64;
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), Stopped> {
        if let Some((roles, statements)) = &mut self.compiled {
            let role = roles[request.access as usize];
            statements[request.stmt as usize].access(request, role);
        }
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
