//! Statements that synchronise threads: barriers, fences, atomics, matrix instructions.

use super::KernelBuilder;
use crate::ir::{
    Access, Atomic, AtomicOp, Elem, Expr, LoadMatrix, MbarrierId, MbarrierRef, MemoryOrder, Mma,
    Scope, Stmt, Var,
};

impl KernelBuilder {
    /// Appends a barrier of all threads of the block.
    pub fn barrier(&mut self) {
        self.push(Stmt::Barrier(Scope::Block));
    }

    /// Appends a barrier of the threads of each warp.
    pub fn warp_barrier(&mut self) {
        self.push(Stmt::Barrier(Scope::Warp));
    }

    /// Appends a barrier of all threads of the cluster.
    pub fn cluster_barrier(&mut self) {
        self.push(Stmt::Barrier(Scope::Cluster));
    }

    /// Appends a store to shared memory of a block, which is given by its index in the cluster.
    pub fn store_remote(&mut self, block: impl Into<Expr>, target: Access, value: impl Into<Expr>) {
        let (block, value) = (block.into(), value.into());
        self.push(Stmt::StoreRemote { block, target, value, barrier: None });
    }

    /// Starts an asynchronous store to shared memory of a block. Its bytes count at an mbarrier of
    /// that block.
    pub fn store_async(
        &mut self,
        block: impl Into<Expr>,
        target: Access,
        value: impl Into<Expr>,
        (barriers, index): (MbarrierId, Expr),
    ) {
        let (block, value) = (block.into(), value.into());
        let barrier = Some(MbarrierRef { barriers, index });
        self.push(Stmt::StoreRemote { block, target, value, barrier });
    }

    /// Appends a named barrier of `threads` threads of the block, at which the thread waits.
    pub fn named_barrier(&mut self, id: u32, threads: u32) {
        self.push(Stmt::NamedBarrier { id, threads, wait: true });
    }

    /// Arrives at a named barrier of `threads` threads of the block, without waiting.
    pub fn named_arrive(&mut self, id: u32, threads: u32) {
        self.push(Stmt::NamedBarrier { id, threads, wait: false });
    }

    pub fn fence(&mut self, order: MemoryOrder, scope: Scope) {
        self.push(Stmt::Fence { order, scope });
    }

    pub fn load_matrix(&mut self, load: LoadMatrix) {
        self.push(Stmt::LoadMatrix(load));
    }

    pub fn mma(&mut self, mma: Mma) {
        self.push(Stmt::Mma(mma));
    }

    /// Appends an atomic operation. A variable called `name` receives the word's previous value.
    pub fn atomic(
        &mut self,
        name: &str,
        op: AtomicOp,
        target: Access,
        value: impl Into<Expr>,
        order: MemoryOrder,
        scope: Scope,
    ) -> Var {
        let old = self.var(name, target.ty());
        let (old_value, value) = (Some(old), value.into());
        self.push(Stmt::Atomic(Atomic { old: old_value, op, target, value, order, scope }));
        old
    }

    /// Appends an atomic load. A variable called `name` receives the word.
    pub fn atomic_load(
        &mut self,
        name: &str,
        target: Access,
        order: MemoryOrder,
        scope: Scope,
    ) -> Var {
        let none = match target.buffer.elem {
            Elem::I32 => Expr::I32(0),
            Elem::U32 => Expr::U32(0),
            Elem::U64 => Expr::U64(0),
            elem => Expr::I32(0).cast(elem),
        };
        self.atomic(name, AtomicOp::Load, target, none, order, scope)
    }

    /// Appends an atomic operation that discards the word's previous value.
    pub fn atomic_only(
        &mut self,
        op: AtomicOp,
        target: Access,
        value: impl Into<Expr>,
        order: MemoryOrder,
        scope: Scope,
    ) {
        let value = value.into();
        self.push(Stmt::Atomic(Atomic { old: None, op, target, value, order, scope }));
    }
}
