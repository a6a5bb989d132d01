//! Fragments of A and B in tiles that hold values of the instruction's format. `ldmatrix` loads
//! their words as the instruction takes them. A matrix of `ldmatrix` has eight rows or columns, and
//! half of the instruction's K.

use crate::ir::{Access, BufferId, Elem, Expr, KernelBuilder, LoadMatrix, Mma};
use crate::lower::sgemm::common::copy::name_of;
use crate::lower::sgemm::common::loops::over;
use crate::lower::sgemm::common::mma_layout::{LdmatrixLine, WarpMma};
use crate::lower::sgemm::common::tile::StagedFactor;

/// Loads a lane's fragments of one operand for one step.
pub(super) struct FragmentLoader<'t> {
    pub factor: &'t StagedFactor,
    pub warp: &'t WarpMma,
    /// Address that the lane supplies.
    pub line: LdmatrixLine,
    /// Buffer of the tile.
    pub slot: &'t Expr,
    /// First k of the step in the tile.
    pub at: Expr,
}

impl FragmentLoader<'_> {
    /// Loads the fragment of A for row `i` of instructions.
    pub fn of_a(&self, b: &mut KernelBuilder, i: &Expr) -> BufferId {
        let words = Mma::OF_A as i32;
        let array = self.array(b, [words.into()]);
        self.factor.each_split(b, |b, split| {
            let to = self.split(&split).into_iter().chain([0.into()]);
            let to = Access::new(array, to);
            self.load(b, to, words as u8, &split, i.clone() * Mma::ROWS as i32);
        });
        array
    }

    /// Loads the fragments of B for all columns of instructions. An even number of columns is
    /// loaded in pairs.
    pub fn of_b(&self, b: &mut KernelBuilder) -> BufferId {
        let (count, number) = (self.warp.counts.cols, self.warp.counts.plan.cols());
        let (words, columns) = (Mma::OF_B as i32, Mma::COLS as i32);
        let paired = number.is_multiple_of(2);
        let array = match paired {
            true => self.array(b, [count / 2, 2.into(), words.into()]),
            false => self.array(b, [count.into(), words.into()]),
        };
        let (count, number, of_one) = match paired {
            true => (count / 2, number / 2, 2),
            false => (count.into(), number, 1),
        };
        self.factor.each_split(b, |b, split| {
            over(b, "j", count, number, |b, j| {
                let inner = if paired { vec![0.into(), 0.into()] } else { vec![0.into()] };
                let to = self.split(&split).into_iter().chain([j.clone()]).chain(inner);
                let to = Access::new(array, to);
                self.load(b, to, (of_one * words) as u8, &split, j * (of_one * columns));
            });
        });
        array
    }

    fn array<const N: usize>(&self, b: &mut KernelBuilder, dims: [Expr; N]) -> BufferId {
        let dims = self.warp.counts.splits.map(Expr::from).into_iter().chain(dims);
        b.registers(&name_of(&self.factor.plan, "frag"), Elem::U32, dims, "")
    }

    /// Index of a split in the array, if there are several.
    fn split(&self, split: &Expr) -> Option<Expr> {
        self.warp.counts.splits.map(|_| split.clone())
    }

    /// Loads `count` matrices, of which the first starts `free` rows or columns after the lane's.
    fn load(&self, b: &mut KernelBuilder, to: Access, count: u8, split: &Expr, free: Expr) {
        let free = match free {
            Expr::I32(0) => self.line.free.into(),
            free => self.line.free + free,
        };
        let at = [free, self.at.clone() + self.line.term];
        let from = self.factor.shared.split_at(self.slot, split, at).vector();
        b.load_matrix(LoadMatrix { count, transposed: false, to, from });
    }
}

/// Index of the fragment of B for column `j` of instructions, in an array that
/// [`FragmentLoader::of_b`] has loaded.
pub(super) fn column(warp: &WarpMma, j: &Expr) -> Vec<Expr> {
    match warp.counts.plan.cols().is_multiple_of(2) {
        true => vec![j.clone() / 2, j.clone() % 2],
        false => vec![j.clone()],
    }
}
