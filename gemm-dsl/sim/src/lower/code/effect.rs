//! Effects of instructions on variables and memory, for passes that analyse code without executing
//! it. All matches are exhaustive, so a new instruction must be added to each of them.

use super::{Fragment, Memory, Op};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SlotKind {
    Lane,
    Wide,
    Pred,
    Uniform,
}

/// Variable, or element of a register array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) kind: SlotKind,
    pub(crate) at: u32,
}

/// Variables that an instruction assigns.
#[derive(Clone, Debug)]
pub(crate) enum Assigned<'o> {
    Nothing,
    /// Adjacent variables of the same kind.
    Slots(SlotKind, Range<u32>),
    /// Elements of a register array whose index is dynamic.
    Elements(&'o Memory),
}

impl<'o> Assigned<'o> {
    fn slots(kind: SlotKind, first: u32, count: u32) -> Self {
        Self::Slots(kind, first..first + count)
    }

    /// `count` lane slots, starting at `first`; nothing if `first` is `None`.
    fn lanes(first: Option<u32>, count: u32) -> Self {
        first.map_or(Self::Nothing, |first| Self::slots(SlotKind::Lane, first, count))
    }

    /// `count` words of a fragment.
    fn words(of: &'o Fragment, count: u32) -> Self {
        match of.slot {
            Some(_) => Self::lanes(of.slot, count),
            None => Self::Elements(&of.first),
        }
    }
}

impl Op {
    /// Variables that this instruction assigns.
    pub(crate) fn assigns(&self) -> Assigned<'_> {
        match self {
            Op::SetUniform(slot, _) => Assigned::slots(SlotKind::Uniform, *slot, 1),
            Op::SetLane(slot, _) | Op::Fma { target: slot, .. } => {
                Assigned::slots(SlotKind::Lane, *slot, 1)
            }
            Op::SetWide(slot, _) => Assigned::slots(SlotKind::Wide, *slot, 1),
            Op::SetPred(slot, _) => Assigned::slots(SlotKind::Pred, *slot, 1),
            Op::SetVector(slot, _) => Assigned::slots(SlotKind::Lane, *slot, 4),
            Op::SetElement(slot, _) => Assigned::slots(SlotKind::Lane, *slot, 2),
            Op::Forget { first, count } | Op::Zero { first, count } => {
                Assigned::slots(SlotKind::Lane, *first, *count)
            }
            Op::Unset { first, count } => Assigned::slots(SlotKind::Wide, *first, *count),
            Op::Point(point) => Assigned::slots(SlotKind::Wide, point.0.first, point.0.count),
            Op::Advance(advance) => {
                Assigned::slots(SlotKind::Wide, advance.0.first, advance.0.count)
            }
            Op::StoreRegister(store) => Assigned::Elements(&store.0),
            Op::LoadMatrix(load) => Assigned::words(&load.to, load.count.into()),
            Op::Mma(mma) => Assigned::words(&mma.d, 4),
            Op::Wgmma(wgmma) => Assigned::words(&wgmma.d, wgmma.columns / 2),
            Op::Atomic(atomic) => Assigned::lanes(atomic.old, 1),
            Op::Store(_)
            | Op::StoreRemote(_)
            | Op::Unless(..)
            | Op::Jump(_)
            | Op::If(..)
            | Op::Else(_)
            | Op::End
            | Op::Loop
            | Op::Test(..)
            | Op::Barrier(_)
            | Op::Named { .. }
            | Op::Fence(_)
            | Op::AsyncCopy(_)
            | Op::Commit
            | Op::Wait(_)
            | Op::Mbarrier(_)
            | Op::ProxyFence(_)
            | Op::TensorCopy(_)
            | Op::WgmmaSync(_)
            | Op::UseAccumulators { .. }
            | Op::Choose(_) => Assigned::Nothing,
        }
    }

    /// Buffer to which this instruction, or asynchronous work that it starts, writes.
    pub(crate) fn stores_to(&self) -> Option<u32> {
        match self {
            Op::Store(store) => Some(store.0.region),
            Op::StoreRemote(store) => Some(store.target.region),
            Op::AsyncCopy(copy) => Some(copy.target.region),
            Op::Atomic(atomic) => Some(atomic.target.region),
            Op::TensorCopy(copy) => Some(copy.to.region),
            Op::SetUniform(..)
            | Op::SetLane(..)
            | Op::SetWide(..)
            | Op::SetPred(..)
            | Op::SetVector(..)
            | Op::SetElement(..)
            | Op::Fma { .. }
            | Op::Forget { .. }
            | Op::Zero { .. }
            | Op::Unset { .. }
            | Op::Point(_)
            | Op::Advance(_)
            // Register arrays count as variables.
            | Op::StoreRegister(_)
            | Op::LoadMatrix(_)
            | Op::Mma(_)
            | Op::Wgmma(_)
            | Op::Unless(..)
            | Op::Jump(_)
            | Op::If(..)
            | Op::Else(_)
            | Op::End
            | Op::Loop
            | Op::Test(..)
            | Op::Barrier(_)
            | Op::Named { .. }
            | Op::Fence(_)
            | Op::Commit
            | Op::Wait(_)
            | Op::Mbarrier(_)
            | Op::ProxyFence(_)
            | Op::WgmmaSync(_)
            | Op::UseAccumulators { .. }
            | Op::Choose(_) => None,
        }
    }

    /// Returns true if writes of other threads may become visible through this instruction.
    pub(crate) fn meets(&self) -> bool {
        matches!(
            self,
            Op::Barrier(_) | Op::Named { .. } | Op::Fence(_) | Op::Wait(_) | Op::Mbarrier(_)
        )
    }

    /// Returns true if the instruction synchronises or starts asynchronous work.
    pub(crate) fn is_traced(&self) -> bool {
        self.meets()
            || matches!(
                self,
                Op::Mma(_)
                    | Op::Commit
                    | Op::ProxyFence(_)
                    | Op::TensorCopy(_)
                    | Op::Wgmma(_)
                    | Op::WgmmaSync(_)
            )
    }
}
