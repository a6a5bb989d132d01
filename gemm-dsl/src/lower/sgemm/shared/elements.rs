//! Elements of a thread along one axis of a block tile.

use crate::ir::{Const, Expr, Var};
use crate::spec::Fragment;

/// Elements of a thread along one axis of the block tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub adjacent: Adjacent,
    /// Index of the first element.
    pub first: Var,
    /// Number of elements, as a constant of the kernel and as a value.
    pub name: Const,
    pub count: u32,
    /// Threads along the axis; runs of fewer than all elements are distributed among them.
    pub threads: Const,
}

/// Length of a run of adjacent elements of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Adjacent {
    All,
    One,
    /// Runs of this length; between two runs of a thread lies one run of every other thread.
    Of(i32),
}

impl Adjacent {
    pub(crate) fn from_fragment(fragment: Fragment) -> Self {
        match fragment {
            Fragment::Blocked => Self::All,
            Fragment::Strided => Self::One,
            Fragment::Split => Self::Of(4),
        }
    }

    /// Distance from a thread's first element to the next thread's.
    pub(crate) fn step(self, own: Const) -> Expr {
        match self {
            Self::All => own.into(),
            Self::One => Expr::I32(1),
            Self::Of(run) => Expr::I32(run),
        }
    }
}

impl Elements {
    /// Offset of element `i` of the thread in the tile.
    pub fn element(&self, i: Expr) -> Expr {
        match self.adjacent {
            Adjacent::All => self.first + i,
            Adjacent::One => self.first + i * self.threads,
            Adjacent::Of(run) => {
                let first = i.clone() / run * (Expr::I32(run) * self.threads);
                self.first + first + i % run
            }
        }
    }

    /// Offset in the tile of the first of the four elements of vector `v`.
    pub fn vector(&self, v: Expr) -> Expr {
        match self.adjacent {
            Adjacent::Of(4) => self.first + v * (Expr::I32(4) * self.threads),
            Adjacent::All | Adjacent::One | Adjacent::Of(_) => self.first + v * 4,
        }
    }
}
