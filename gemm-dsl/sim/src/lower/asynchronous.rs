//! Lowering of the statements of asynchronous units.

use super::super::counters::IrClass;
use super::Lowering;
use crate::lower::code;
use crate::lower::code::{Barriers, Op, RemoteStore, Tile, WgmmaSyncOp};
use gemm_dsl::ir::{
    Access, BufferId, Descriptor, Expr, Kernel, Mbarrier, MbarrierOp, MbarrierRef, MemoryOrder,
    Stmt, TensorCopy, Wgmma, WgmmaSync,
};

/// For each buffer: true if its elements are accumulators of `wgmma` instructions.
pub(super) fn sums(kernel: &Kernel) -> Vec<bool> {
    let mut sums = vec![false; kernel.buffers.len()];
    kernel.visit(&mut |stmt| {
        if let Stmt::Wgmma(wgmma) = stmt {
            sums[wgmma.d.buffer.id] = true;
        }
    });
    sums
}

impl Lowering<'_, '_> {
    /// Records that a statement uses accumulators of warpgroups as an ordinary statement.
    pub(super) fn touched(&mut self, stmt: &Stmt) {
        if !self.sums.contains(&true) || matches!(stmt, Stmt::Wgmma(_)) {
            return;
        }
        let mut found: Vec<(BufferId, bool)> = Vec::new();
        let mut note = |buffer: BufferId, declared| {
            if !found.contains(&(buffer, declared)) {
                found.push((buffer, declared));
            }
        };
        stmt.visit_exprs(&mut |e| {
            if let Expr::Load(access) = e {
                note(access.buffer, false);
            }
        });
        match stmt {
            Stmt::Store { target, .. } => note(target.buffer, false),
            Stmt::Registers { buffer, .. } => note(*buffer, true),
            Stmt::LoadMatrix(load) => note(load.to.buffer, false),
            Stmt::Mma(mma) => [&mma.d, &mma.a, &mma.b].iter().for_each(|of| note(of.buffer, false)),
            _ => {}
        }
        found.retain(|(buffer, _)| self.sums[buffer.id]);
        for (buffer, declared) in found {
            self.emit(Op::UseAccumulators { array: buffer.id as u32, declared });
        }
    }

    fn barriers(&mut self, at: &MbarrierRef) -> Barriers {
        Barriers { declaration: at.barriers.id as u32, index: self.index(&at.index) }
    }

    fn tile(&mut self, first: &Access, mn_major: bool) -> Tile {
        let kernel = self.launch.kernel;
        let descriptor = Descriptor::from_buffer(kernel, &kernel[first.buffer], mn_major);
        let descriptor = descriptor
            .unwrap_or_else(|| unreachable!("verified: a descriptor expresses the tile's layout"));
        self.code.loaded[first.buffer.id] = true;
        Tile { first: self.memory(first), descriptor, mn_major }
    }

    /// Lowers a store to shared memory of a block of the cluster.
    pub(super) fn store_remote(
        &mut self,
        block: &Expr,
        target: &Access,
        value: &Expr,
        barrier: Option<&MbarrierRef>,
    ) {
        let value = self.value(target.ty(), value);
        let (block, target) = (self.index(block), self.memory(target));
        let barrier = barrier.map(|barrier| self.barriers(barrier));
        self.cost.add(IrClass::SharedStore);
        self.code.stored[target.region as usize] = true;
        self.emit(Op::StoreRemote(Box::new(RemoteStore { block, target, value, barrier })));
    }

    pub(super) fn asynchronous(&mut self, stmt: &Stmt) {
        let arrays = |of: &[BufferId]| of.iter().map(|buffer| buffer.id as u32).collect();
        let op = match stmt {
            Stmt::Mbarrier(Mbarrier { at, op }) => {
                let class = match op {
                    MbarrierOp::Wait { .. } => IrClass::MbarrierWait,
                    MbarrierOp::Init { .. }
                    | MbarrierOp::Arrive
                    | MbarrierOp::ArriveRemote { .. }
                    | MbarrierOp::ArriveExpect { .. } => IrClass::Sync,
                };
                let at = self.barriers(at);
                let op = match op {
                    MbarrierOp::Init { count } => {
                        let count = self.launch.kernel.eval_const(count).ok();
                        let count = count.and_then(|count| u32::try_from(count).ok());
                        code::MbarrierOp::Init(count.unwrap_or_else(|| {
                            unreachable!("verified: the arrivals of a phase are a constant")
                        }))
                    }
                    MbarrierOp::Arrive => code::MbarrierOp::Arrive(None),
                    MbarrierOp::ArriveRemote { block, order } => {
                        let block = self.index(block);
                        code::MbarrierOp::ArriveRemote(block, *order == MemoryOrder::Relaxed)
                    }
                    MbarrierOp::ArriveExpect { bytes } => {
                        code::MbarrierOp::Arrive(Some(self.index(bytes)))
                    }
                    MbarrierOp::Wait { parity } => code::MbarrierOp::Wait(self.index(parity)),
                };
                self.cost.add(class);
                Op::Mbarrier(Box::new(code::Mbarrier { at, op }))
            }
            Stmt::ProxyFence(fence) => {
                self.cost.add(IrClass::Sync);
                Op::ProxyFence(*fence)
            }
            Stmt::TensorCopy(TensorCopy { from, at, to, barrier, multicast }) => {
                let Some(map) = self.launch.kernel.tensor_map(*from) else {
                    unreachable!("verified: there is a tensor map of the buffer");
                };
                let (tile, swizzle) =
                    (map.tile.iter().map(|n| u64::from(*n)).collect(), map.swizzle);
                let at = at.iter().map(|e| self.index(e)).collect();
                let (to_place, barrier) = (self.memory(to), self.barriers(barrier));
                let multicast = multicast.as_ref().map(|blocks| self.index(blocks));
                self.code.stored[to.buffer.id] = true;
                self.code.loaded[from.id] = true;
                self.cost.add(IrClass::BulkCopy);
                let (from, to) = (from.id as u32, to_place);
                let copy = code::TensorCopy { from, at, tile, swizzle, to, barrier, multicast };
                Op::TensorCopy(Box::new(copy))
            }
            Stmt::Wgmma(Wgmma {
                formats,
                columns,
                d,
                a,
                b,
                mn_major: [of_a, of_b],
                accumulate,
            }) => {
                let (d, a, b) = (self.fragment(d), self.tile(a, *of_a), self.tile(b, *of_b));
                let accumulate = self.pred(accumulate);
                self.cost.add(IrClass::Wgmma);
                let (formats, columns) = (*formats, *columns);
                Op::Wgmma(Box::new(code::Wgmma { formats, columns, d, a, b, accumulate }))
            }
            Stmt::WgmmaSync(sync) => {
                self.cost.add(IrClass::Sync);
                Op::WgmmaSync(Box::new(match sync {
                    WgmmaSync::Fence { accumulators } => WgmmaSyncOp::Fence(arrays(accumulators)),
                    WgmmaSync::Commit => WgmmaSyncOp::Commit,
                    WgmmaSync::Wait { pending, accumulators } => {
                        WgmmaSyncOp::Wait { pending: *pending, arrays: arrays(accumulators) }
                    }
                }))
            }
            Stmt::RegisterLimit(limit) => {
                self.cost.add(IrClass::Sync);
                Op::WgmmaSync(Box::new(WgmmaSyncOp::Limit(*limit)))
            }
            stmt => unreachable!("{stmt:?} is not a statement of an asynchronous unit"),
        };
        self.emit(op);
    }
}
