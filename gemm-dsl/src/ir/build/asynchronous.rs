//! Statements of the asynchronous units: mbarriers, TMA copies and `wgmma`.

use super::KernelBuilder;
use crate::ir::{
    Access, BufferId, BufferLayout, Elem, Expr, Mbarrier, MbarrierDecl, MbarrierId, MbarrierOp,
    MbarrierRef, MemoryOrder, Operand, Param, ParamKind, ProxyFence, RegisterLimit, Space, Stmt,
    TensorCopy, TensorMap, Wgmma, WgmmaSync,
};

impl KernelBuilder {
    /// Declares an array of mbarriers in shared memory.
    pub fn mbarriers(
        &mut self,
        name: &str,
        count: impl Into<Expr>,
        meaning: impl Into<String>,
    ) -> MbarrierId {
        let (name, count, meaning) = (name.to_owned(), count.into(), meaning.into());
        self.kernel.mbarriers.push(MbarrierDecl { name, count, meaning });
        MbarrierId { id: self.kernel.mbarriers.len() - 1 }
    }

    /// Declares a parameter for the tensor map of a global buffer. Set the buffer's extents with
    /// [`KernelBuilder::shape`].
    pub fn tensor_map(
        &mut self,
        name: &str,
        elem: Elem,
        operand: Operand,
        map: TensorMap,
    ) -> BufferId {
        let buffer = self.buffer(name, elem, Space::Global, BufferLayout::linear(), Vec::new(), "");
        let kind = ParamKind::TensorMap { buffer, operand, map };
        self.kernel.params.push(Param { name: name.into(), kind });
        buffer
    }

    fn mbarrier(&mut self, barriers: MbarrierId, index: Expr, op: MbarrierOp) {
        self.push(Stmt::Mbarrier(Mbarrier { at: MbarrierRef { barriers, index }, op }));
    }

    /// Initialises an mbarrier whose phases complete after `count` arrivals.
    pub fn mbarrier_init(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        count: impl Into<Expr>,
    ) {
        self.mbarrier(barriers, index.into(), MbarrierOp::Init { count: count.into() });
    }

    pub fn mbarrier_arrive(&mut self, barriers: MbarrierId, index: impl Into<Expr>) {
        self.mbarrier(barriers, index.into(), MbarrierOp::Arrive);
    }

    /// Arrives at an mbarrier of another block, which is given by its index in the cluster.
    pub fn mbarrier_arrive_remote(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        block: impl Into<Expr>,
    ) {
        let (block, order) = (block.into(), MemoryOrder::Release);
        self.mbarrier(barriers, index.into(), MbarrierOp::ArriveRemote { block, order });
    }

    /// Like [`KernelBuilder::mbarrier_arrive_remote`], but orders only asynchronous work.
    pub fn mbarrier_arrive_relaxed(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        block: impl Into<Expr>,
    ) {
        let (block, order) = (block.into(), MemoryOrder::Relaxed);
        self.mbarrier(barriers, index.into(), MbarrierOp::ArriveRemote { block, order });
    }

    /// Expects bytes in the current phase of an mbarrier, and arrives.
    pub fn mbarrier_arrive_expect(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        bytes: impl Into<Expr>,
    ) {
        self.mbarrier(barriers, index.into(), MbarrierOp::ArriveExpect { bytes: bytes.into() });
    }

    /// Waits until the phase with this parity is complete.
    pub fn mbarrier_wait(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        parity: impl Into<Expr>,
    ) {
        self.mbarrier(barriers, index.into(), MbarrierOp::Wait { parity: parity.into() });
    }

    pub fn proxy_fence(&mut self, fence: ProxyFence) {
        self.push(Stmt::ProxyFence(fence));
    }

    /// Starts the copy of a box from the array position `at` to the shared-memory position `to`.
    /// The bytes count at `barrier`.
    pub fn tensor_copy(
        &mut self,
        from: BufferId,
        at: impl IntoIterator<Item = Expr>,
        to: Access,
        barrier: (MbarrierId, Expr),
    ) {
        let (barriers, index) = barrier;
        let barrier = MbarrierRef { barriers, index };
        let (at, multicast) = (at.into_iter().collect(), None);
        self.push(Stmt::TensorCopy(TensorCopy { from, at, to, barrier, multicast }));
    }

    /// Like [`KernelBuilder::tensor_copy`], but writes to all blocks of the cluster whose bits are
    /// set.
    pub fn tensor_multicast(
        &mut self,
        from: BufferId,
        at: impl IntoIterator<Item = Expr>,
        to: Access,
        barrier: (MbarrierId, Expr),
        blocks: impl Into<Expr>,
    ) {
        let (barriers, index) = barrier;
        let barrier = MbarrierRef { barriers, index };
        let (at, multicast) = (at.into_iter().collect(), Some(blocks.into()));
        self.push(Stmt::TensorCopy(TensorCopy { from, at, to, barrier, multicast }));
    }

    pub fn wgmma(&mut self, wgmma: Wgmma) {
        self.push(Stmt::Wgmma(wgmma));
    }

    /// Orders accesses to these accumulators before the following `wgmma` instructions.
    pub fn wgmma_fence(&mut self, accumulators: impl IntoIterator<Item = BufferId>) {
        let accumulators = accumulators.into_iter().collect();
        self.push(Stmt::WgmmaSync(WgmmaSync::Fence { accumulators }));
    }

    /// Closes a group of `wgmma` instructions.
    pub fn wgmma_commit(&mut self) {
        self.push(Stmt::WgmmaSync(WgmmaSync::Commit));
    }

    /// Waits for all but the last `pending` groups of `wgmma` instructions, and makes these
    /// accumulators readable.
    pub fn wgmma_wait(&mut self, pending: u32, accumulators: impl IntoIterator<Item = BufferId>) {
        let accumulators = accumulators.into_iter().collect();
        self.push(Stmt::WgmmaSync(WgmmaSync::Wait { pending, accumulators }));
    }

    /// Lowers the register limit to `registers` per thread.
    pub fn fewer_registers(&mut self, registers: u32) {
        self.push(Stmt::RegisterLimit(RegisterLimit { registers, more: false }));
    }

    /// Raises the register limit to `registers` per thread.
    pub fn more_registers(&mut self, registers: u32) {
        self.push(Stmt::RegisterLimit(RegisterLimit { registers, more: true }));
    }
}
