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
    /// Number of threads along the axis. The thread's runs alternate with those of the other
    /// threads, unless one run has all of its elements.
    pub threads: Const,
}

/// Length of the thread's runs of adjacent elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Adjacent {
    All,
    One,
    /// Runs of this length. Between two runs of a thread, each other thread has one run.
    Of(i32),
}

impl Adjacent {
    /// Returns the runs along the rows and along the columns of C.
    pub(crate) fn from_fragment(fragment: Fragment) -> [Self; 2] {
        match fragment {
            Fragment::Blocked => [Self::All; 2],
            Fragment::Strided => [Self::One; 2],
            Fragment::Split => [Self::Of(Fragment::RUN as i32); 2],
            Fragment::SplitN => [Self::All, Self::Of(Fragment::RUN as i32)],
        }
    }

    /// Distance from a thread's first element to the first element of the next thread.
    pub(crate) fn step(self, own: Const) -> Expr {
        match self {
            Self::All => own.into(),
            Self::One => Expr::I32(1),
            Self::Of(run) => Expr::I32(run),
        }
    }
}

impl Elements {
    /// Offset of the thread's element `i` in the tile.
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

    /// Offset in the tile of the first element of vector `v` of the thread. A vector has `lanes`
    /// elements, which are adjacent.
    pub fn vector(&self, v: Expr, lanes: i32) -> Expr {
        match self.adjacent {
            Adjacent::All => self.first + v * lanes,
            Adjacent::Of(run) if run == lanes => self.first + v * (Expr::I32(run) * self.threads),
            Adjacent::One | Adjacent::Of(_) => self.element(v * lanes),
        }
    }
}
