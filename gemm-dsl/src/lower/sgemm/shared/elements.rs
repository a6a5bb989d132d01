//! Elements of a thread along one axis of a block tile.

use crate::ir::{Const, Expr, Var};
use crate::spec::Fragment;

/// A thread's elements along one axis of the block tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub adjacent: Adjacent,
    /// The first element.
    pub first: Var,
    /// The number of elements, as a constant of the text and as a number.
    pub name: Const,
    pub count: u32,
    /// Threads along the axis, among which runs that are not all are dealt out.
    pub threads: Const,
}

/// The elements of a thread that are neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Adjacent {
    All,
    One,
    /// So many; as many for each thread lie between two runs of one of them.
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

    /// Elements from one thread's first to the next thread's.
    pub(crate) fn step(self, own: Const) -> Expr {
        match self {
            Self::All => own.into(),
            Self::One => Expr::I32(1),
            Self::Of(run) => Expr::I32(run),
        }
    }
}

impl Elements {
    /// Element `i` of the thread, as an offset in the tile.
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

    /// The first of the four elements of vector `v`, as an offset in the tile.
    pub fn vector(&self, v: Expr) -> Expr {
        match self.adjacent {
            Adjacent::Of(4) => self.first + v * (Expr::I32(4) * self.threads),
            Adjacent::All | Adjacent::One | Adjacent::Of(_) => self.first + v * 4,
        }
    }
}
