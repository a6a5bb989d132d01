//! Observer that counts memory traffic: sectors, wavefronts and bytes.

mod sass;
use super::quantity::SassCounters;
use crate::cost;
use crate::counters::Counters;
use crate::counters::access_fate::AccessFate;
use crate::mask::WARP;
use crate::observe::{AccessKind, BoxedTrap, Observer, Request, Sync};
use gemm_dsl::ir::Space;

/// Traffic and barriers of the blocks that have run so far.
pub(crate) struct Traffic<'l> {
    statements: Vec<Counters>,
    /// Number of blocks, and number of barriers in the block that has the most.
    blocks: Counters,
    warps: u32,
    /// Number of block barriers and of warp barriers, for each block of the cluster.
    barriers: Vec<[u64; 2]>,
    /// Fate of each access in the machine code, and machine counters by statement number, if
    /// requested.
    compiled: Option<(&'l [AccessFate], Vec<SassCounters>)>,
}

impl<'l> Traffic<'l> {
    /// Creates counters for clusters of `cluster` blocks with `warps` warps each.
    pub(crate) fn new(
        warps: u32,
        cluster: u32,
        statements: usize,
        fates: Option<&'l [AccessFate]>,
    ) -> Self {
        Self {
            statements: vec![Counters::default(); statements],
            blocks: Counters::default(),
            warps,
            barriers: vec![[0; 2]; cluster as usize],
            compiled: fates.map(|fates| (fates, vec![SassCounters::default(); statements])),
        }
    }

    fn statement(&mut self, stmt: u32) -> &mut Counters {
        &mut self.statements[stmt as usize]
    }

    fn global(&mut self, request: &Request<'_>) {
        let counters = self.statement(request.stmt);
        counters.global_requests += 1;
        let bytes = u64::from(request.mask.count_ones() * request.bytes());
        if request.kind.writes() {
            counters.global_store_bytes += bytes;
        }
        if request.kind.reads() {
            counters.global_load_bytes += bytes;
        }
        let mut sectors = [0; WARP];
        let sectors = request.sectors(&mut sectors);
        counters.global_sectors += cost::sectors(sectors);
        if request.kind != AccessKind::CopyRead {
            counters.global_lines += cost::lines(sectors);
        }
    }

    fn shared(&mut self, request: &Request<'_>) {
        let counters = self.statement(request.stmt);
        counters.shared_requests += 1;
        let bytes = u64::from(request.mask.count_ones() * request.bytes());
        if request.kind.writes() {
            counters.shared_store_bytes += bytes;
        }
        if request.kind.reads() {
            counters.shared_load_bytes += bytes;
        }
        let mut words = [(0, 0); WARP];
        let words = request.words(&mut words);
        let cost = cost::wavefronts(words, request.bytes(), request.kind.writes());
        counters.shared_wavefronts += cost.wavefronts;
        counters.shared_bank_conflicts += cost.conflicts();
    }

    /// Counts a branch if its active lanes disagree.
    #[inline]
    pub(crate) fn diverged(&mut self, stmt: u32, divergent: bool) {
        self.statement(stmt).divergent_branches += u64::from(divergent);
    }

    /// Counts a TMA copy of `bytes` bytes to `blocks` blocks.
    pub(crate) fn copied(&mut self, stmt: u32, bytes: u64, blocks: u32) {
        let counters = self.statement(stmt);
        counters.bulk_bytes += bytes;
        counters.multicast_bytes += bytes * u64::from(blocks - 1);
    }

    /// Counts the floating-point operations of a matrix instruction.
    pub(crate) fn multiplied(&mut self, stmt: u32, flops: u64) {
        self.statement(stmt).mma_flops += flops;
    }

    fn settle(&mut self) {
        let counters = &mut self.blocks;
        for [of_block, of_warps] in &mut self.barriers {
            counters.block_barriers = counters.block_barriers.max(std::mem::take(of_block));
            counters.warp_barriers = counters.warp_barriers.max(std::mem::take(of_warps));
        }
    }

    /// Returns the per-block counters including the last block, the counters of each statement, and
    /// the machine counters of each statement.
    pub(crate) fn finish(mut self) -> (Counters, Vec<Counters>, Vec<SassCounters>) {
        self.settle();
        let compiled = self.compiled.map_or_else(Vec::new, |(_, statements)| statements);
        (self.blocks, self.statements, compiled)
    }
}

impl Observer for Traffic<'_> {
    fn begin(&mut self, _: u32) {
        self.settle();
        self.blocks.blocks += self.barriers.len() as u64;
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap> {
        if let Some((fates, statements)) = &mut self.compiled {
            let role = fates[request.access as usize];
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
