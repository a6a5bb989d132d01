//! Rules of synchronisation: named barriers, fences and atomics.

use super::{Verifier, VerifyResult, require};
use crate::ir::{Atomic, AtomicOp, MemoryOrder, Scope, Space};

impl Verifier<'_> {
    pub(super) fn named_barrier(&mut self, id: u32, threads: u32) -> VerifyResult {
        require((1..=15).contains(&id), || format!("barrier {id}: they are 1 to 15"))?;
        let block = self.k.geometry.threads();
        // A partial warp counts as a whole warp.
        let most = block.next_multiple_of(32);
        require(threads > 0 && threads.is_multiple_of(32) && threads <= most, || {
            format!("barrier {id} of {threads} threads in a block of {block}")
        })?;
        let first = *self.named.entry(id).or_insert(threads);
        require(first == threads, || format!("barrier {id} of {first} and of {threads} threads"))
    }

    pub(super) fn atomic(&mut self, atomic: &Atomic) -> VerifyResult {
        let Atomic { old, op, target, value, order, scope } = atomic;
        let ty = self.access(target)?;
        self.writable(target)?;
        let buffer = &self.k.buffers[target.buffer.id];
        let name = &buffer.name;
        require(buffer.space != Space::Register, || format!("an atomic on registers {name}"))?;
        require(!target.is_vector(), || format!("an atomic on a vector of {name}"))?;
        require(ty.is_integer() || (op.moves() && ty.is_float()), || {
            format!("an atomic {} of {ty}", op.name())
        })?;
        require(self.ty(value)? == ty, || format!("an atomic of another type than {name}"))?;
        if let AtomicOp::CompareExchange { expected } = op {
            require(self.ty(expected)? == ty, || format!("{name} is compared with another type"))?;
        }
        require(*order != MemoryOrder::SeqCst, || "an atomic is not a fence: SeqCst".into())?;
        if *op == AtomicOp::Load {
            require(old.is_some(), || format!("an atomic load of {name} without a variable"))?;
            require(matches!(order, MemoryOrder::Relaxed | MemoryOrder::Acquire), || {
                format!("an atomic load that is {order:?}")
            })?;
        }
        require(*scope != Scope::Warp, || "an atomic of a warp".into())?;
        require(*scope != Scope::Cluster, || "an atomic of a cluster".into())?;
        // The variable is declared last, because the operands must not contain it.
        old.map_or(Ok(()), |old| self.declare_of(old, ty))
    }
}

pub(super) fn fence(order: MemoryOrder, scope: Scope) -> VerifyResult {
    require(matches!(order, MemoryOrder::AcqRel | MemoryOrder::SeqCst), || {
        format!("a fence that is {order:?}")
    })?;
    require(scope != Scope::Warp, || "a fence of a warp".into())?;
    require(scope != Scope::Cluster, || "a fence of a cluster".into())
}
