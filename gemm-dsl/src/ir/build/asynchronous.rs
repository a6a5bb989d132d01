//! Statements of the asynchronous units: barriers in shared memory, copies of boxes, matrix instructions of four warps.

use super::KernelBuilder;
use crate::ir::{
    Access, BufferId, BufferLayout, Elem, Expr, Mbarrier, MbarrierDecl, MbarrierId, MbarrierOp,
    MbarrierRef, MemoryOrder, Operand, Param, ParamKind, ProxyFence, RegisterLimit, Space, Stmt,
    TensorCopy, TensorMap, Wgmma, WgmmaSync,
};

impl KernelBuilder {
    /// Declares barriers in shared memory.
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

    /// Declares a parameter that is the tensor map of a global buffer. Set its extents with [`KernelBuilder::shape`].
    pub fn tensor_map(
        &mut self,
        name: &str,
        elem: Elem,
        operand: Operand,
        map: TensorMap,
    ) -> BufferId {
        let buffer =
            self.buffer(name, elem, (Space::Global, BufferLayout::linear()), Vec::new(), "");
        let kind = ParamKind::TensorMap { buffer, operand, map };
        self.kernel.params.push(Param { name: name.into(), kind });
        buffer
    }

    fn mbarrier(&mut self, (barriers, index): (MbarrierId, Expr), op: MbarrierOp) {
        self.push(Stmt::Mbarrier(Mbarrier { at: MbarrierRef { barriers, index }, op }));
    }

    /// Makes a barrier, each of whose phases so many arrivals complete.
    pub fn mbarrier_init(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        count: impl Into<Expr>,
    ) {
        self.mbarrier((barriers, index.into()), MbarrierOp::Init { count: count.into() });
    }

    /// Arrives at a barrier.
    pub fn mbarrier_arrive(&mut self, barriers: MbarrierId, index: impl Into<Expr>) {
        self.mbarrier((barriers, index.into()), MbarrierOp::Arrive);
    }

    /// Arrives at the barrier of another block of the cluster, by its number there.
    pub fn mbarrier_arrive_remote(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        block: impl Into<Expr>,
    ) {
        self.arrive_remote((barriers, index.into()), block.into(), MemoryOrder::Release);
    }

    /// The same, by which only asynchronous work is ordered.
    pub fn mbarrier_arrive_relaxed(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        block: impl Into<Expr>,
    ) {
        self.arrive_remote((barriers, index.into()), block.into(), MemoryOrder::Relaxed);
    }

    fn arrive_remote(&mut self, barrier: (MbarrierId, Expr), block: Expr, order: MemoryOrder) {
        self.mbarrier(barrier, MbarrierOp::ArriveRemote { block, order });
    }

    /// Expects bytes in the phase of a barrier, and arrives.
    pub fn mbarrier_arrive_expect(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        bytes: impl Into<Expr>,
    ) {
        self.mbarrier((barriers, index.into()), MbarrierOp::ArriveExpect { bytes: bytes.into() });
    }

    /// Waits until the phase of this parity is complete.
    pub fn mbarrier_wait(
        &mut self,
        barriers: MbarrierId,
        index: impl Into<Expr>,
        parity: impl Into<Expr>,
    ) {
        self.mbarrier((barriers, index.into()), MbarrierOp::Wait { parity: parity.into() });
    }

    /// A fence between two ways to memory.
    pub fn proxy_fence(&mut self, fence: ProxyFence) {
        self.push(Stmt::ProxyFence(fence));
    }

    /// Starts the copy of a box that begins at `at` of an array, to where `to` lies, for a barrier to count its bytes.
    pub fn tensor_copy(
        &mut self,
        from: BufferId,
        at: impl IntoIterator<Item = Expr>,
        to: Access,
        barrier: (MbarrierId, Expr),
    ) {
        self.copy_box((from, at.into_iter().collect()), to, barrier, None);
    }

    /// As [`KernelBuilder::tensor_copy`], to the blocks of the cluster whose bits are set.
    pub fn tensor_multicast(
        &mut self,
        from: BufferId,
        at: impl IntoIterator<Item = Expr>,
        to: Access,
        barrier: (MbarrierId, Expr),
        blocks: impl Into<Expr>,
    ) {
        self.copy_box((from, at.into_iter().collect()), to, barrier, Some(blocks.into()));
    }

    fn copy_box(
        &mut self,
        (from, at): (BufferId, Vec<Expr>),
        to: Access,
        (barriers, index): (MbarrierId, Expr),
        multicast: Option<Expr>,
    ) {
        let barrier = MbarrierRef { barriers, index };
        self.push(Stmt::TensorCopy(TensorCopy { from, at, to, barrier, multicast }));
    }

    /// A matrix instruction of four warps.
    pub fn wgmma(&mut self, wgmma: Wgmma) {
        self.push(Stmt::Wgmma(wgmma));
    }

    /// Orders what was done with these sums before the matrix instructions of four warps that follow.
    pub fn wgmma_fence(&mut self, accumulators: impl IntoIterator<Item = BufferId>) {
        let accumulators = accumulators.into_iter().collect();
        self.push(Stmt::WgmmaSync(WgmmaSync::Fence { accumulators }));
    }

    /// Closes a group of matrix instructions of four warps.
    pub fn wgmma_commit(&mut self) {
        self.push(Stmt::WgmmaSync(WgmmaSync::Commit));
    }

    /// Waits for all but so many groups of them, and for these sums.
    pub fn wgmma_wait(&mut self, pending: u32, accumulators: impl IntoIterator<Item = BufferId>) {
        let accumulators = accumulators.into_iter().collect();
        self.push(Stmt::WgmmaSync(WgmmaSync::Wait { pending, accumulators }));
    }

    /// Gives registers back, down to so many a thread.
    pub fn fewer_registers(&mut self, registers: u32) {
        self.push(Stmt::RegisterLimit(RegisterLimit { registers, more: false }));
    }

    /// Takes registers, up to so many a thread.
    pub fn more_registers(&mut self, registers: u32) {
        self.push(Stmt::RegisterLimit(RegisterLimit { registers, more: true }));
    }
}
