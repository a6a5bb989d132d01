//! Accumulators of a thread, wherever a kernel of some kind has them.

use super::accumulator_tile::AccumulatorTile;
use super::elements::Elements;
use super::loops::each;
use crate::ir::{Access, BufferId, Const, Elem, Expr, Intrinsic, KernelBuilder, Var};
use crate::target::Format;

/// The sums of a thread.
pub(crate) struct Accumulators {
    place: AccumulatorStorage,
    tall: bool,
    wide: bool,
    partials: u32,
    /// The number of partial sums by name, if there are several.
    pub count: Option<Const>,
}

/// One accumulator: a partial sum of a thread's element.
pub(crate) struct AccumulatorIndex {
    pub partial: Expr,
    pub m: Expr,
    pub n: Expr,
}

enum AccumulatorStorage {
    One(Var),
    Many(BufferId),
    /// Of a warp's matrices.
    Mma(MmaAccumulators),
    /// Of a warpgroup's: as its instructions have them.
    Warpgroup(BufferId),
}

/// Where a matrix instruction of a warpgroup has the sum of a thread's element (m, n).
fn wgmma_place(sums: BufferId, m: &Expr, n: &Expr) -> Access {
    Access::new(sums, [n.clone() / 2 * 4 + m.clone() * 2 + n.clone() % 2])
}

impl Accumulators {
    /// Accumulators of a warp's matrix instructions.
    pub fn from_mma(accumulators: MmaAccumulators) -> Self {
        let place = AccumulatorStorage::Mma(accumulators);
        Self { place, tall: true, wide: true, partials: 1, count: None }
    }

    /// Those of a warp's matrices, where tensor cores multiply.
    pub fn mma(&self) -> Option<&MmaAccumulators> {
        match &self.place {
            AccumulatorStorage::Mma(mma) => Some(mma),
            AccumulatorStorage::One(_)
            | AccumulatorStorage::Many(_)
            | AccumulatorStorage::Warpgroup(_) => None,
        }
    }

    /// Those of a warpgroup's threads, two rows of so many columns each, or one where they have been exchanged.
    pub fn from_wgmma(sums: BufferId, exchanged: bool) -> Self {
        let place = if exchanged {
            AccumulatorStorage::Many(sums)
        } else {
            AccumulatorStorage::Warpgroup(sums)
        };
        Self { place, tall: !exchanged, wide: true, partials: 1, count: None }
    }

    /// Declares the sums of a thread's elements, of a type, all zero.
    pub fn zeroed(
        b: &mut KernelBuilder,
        elem: Elem,
        [rows, cols]: [&Elements; 2],
        partials: u32,
    ) -> Self {
        let (tall, wide) = (rows.count > 1, cols.count > 1);
        let count = (partials > 1).then(|| partial_sums(b, partials));
        let (rows, cols) = (tall.then_some(rows.name), wide.then_some(cols.name));
        let dims: Vec<Expr> = [count, rows, cols].into_iter().flatten().map(Expr::from).collect();
        b.comment("The sums of this thread.");
        let place = if dims.is_empty() {
            AccumulatorStorage::One(b.mut_("acc", Expr::F32(0.0).cast(elem)))
        } else {
            AccumulatorStorage::Many(b.zeroed_registers("acc", elem, dims, ""))
        };
        Self { place, tall, wide, partials, count }
    }

    /// Declares sums that are still to be set, one for each element.
    pub fn sums(b: &mut KernelBuilder, block: &AccumulatorTile<'_>) -> Self {
        let elem = block.plan.types().acc;
        let (tall, wide) = (block.rows.count > 1, block.cols.count > 1);
        let dims = [tall.then_some(block.rows.name), wide.then_some(block.cols.name)];
        let dims: Vec<Expr> = dims.into_iter().flatten().map(Expr::from).collect();
        let place = if dims.is_empty() {
            AccumulatorStorage::One(b.mut_("sum_of_all", Expr::F32(0.0).cast(elem)))
        } else {
            AccumulatorStorage::Many(b.registers("sum_of_all", elem, dims, ""))
        };
        Self { place, tall, wide, partials: 1, count: None }
    }

    /// The same with one sum for each element, which can be set.
    pub fn in_one(self, b: &mut KernelBuilder, block: &AccumulatorTile<'_>) -> Self {
        if self.partials == 1 {
            return self;
        }
        let all = Self::sums(b, block);
        each(b, block.elements(), |b, m, n| all.set(b, m, n, self.value(m, n)));
        all
    }

    /// Sets the sum of element (m, n).
    pub fn set(&self, b: &mut KernelBuilder, m: &Expr, n: &Expr, sum: Expr) {
        match &self.place {
            AccumulatorStorage::One(var) => b.assign(*var, sum),
            AccumulatorStorage::Many(buffer) => {
                b.store(self.access(*buffer, 0.into(), m.clone(), n.clone()), sum);
            }
            AccumulatorStorage::Mma(mma) => b.store(mma.place(m, n), sum),
            AccumulatorStorage::Warpgroup(sums) => b.store(wgmma_place(*sums, m, n), sum),
        }
    }

    fn access(&self, buffer: BufferId, p: Expr, m: Expr, n: Expr) -> Access {
        let p = (self.partials > 1).then_some(p);
        let (m, n) = (self.tall.then_some(m), self.wide.then_some(n));
        Access::new(buffer, [p, m, n].into_iter().flatten())
    }

    /// The finished sum of element (m, n).
    pub fn value(&self, m: &Expr, n: &Expr) -> Expr {
        match &self.place {
            AccumulatorStorage::One(var) => (*var).into(),
            AccumulatorStorage::Many(buffer) => {
                let part =
                    |p: u32| self.access(*buffer, Expr::I32(p as i32), m.clone(), n.clone()).load();
                (1..self.partials).fold(part(0), |sum, p| sum + part(p))
            }
            AccumulatorStorage::Mma(mma) => mma.place(m, n).load(),
            AccumulatorStorage::Warpgroup(sums) => wgmma_place(*sums, m, n).load(),
        }
    }

    /// Four finished sums of a row, the first at (m, n).
    pub fn vector(&self, m: &Expr, n: &Expr) -> Expr {
        match &self.place {
            AccumulatorStorage::Many(buffer) if self.partials == 1 => {
                self.access(*buffer, 0.into(), m.clone(), n.clone()).vector().load()
            }
            _ => Expr::Pack((0..4).map(|j| self.value(m, &(n.clone() + j))).collect()),
        }
    }

    /// `acc[p][m][n] = fma(a, b, acc[p][m][n])`
    pub fn multiply_add(
        &self,
        b: &mut KernelBuilder,
        at: AccumulatorIndex,
        left: Expr,
        right: Expr,
    ) {
        let fma = |acc: Expr| Expr::Call(Intrinsic::Fma, vec![left, right, acc]);
        match &self.place {
            AccumulatorStorage::One(var) => b.assign(*var, fma((*var).into())),
            AccumulatorStorage::Many(buffer) => {
                let place = self.access(*buffer, at.partial, at.m, at.n);
                let sum = fma(place.clone().load());
                b.store(place, sum);
            }
            AccumulatorStorage::Mma(_) | AccumulatorStorage::Warpgroup(_) => {
                unreachable!("tensor cores multiply what they sum")
            }
        }
    }
}

/// The sums of a warp in the registers of its lanes.
pub(crate) struct MmaAccumulators {
    /// As instructions take them: row of them, column of them, which of a lane's.
    pub sums: BufferId,
    /// Sums of a few terms, where those of several steps are added at once.
    pub fresh: Option<BufferId>,
    /// The bits of what the planes have not held.
    pub unrepresentable: Option<UnrepresentableBits>,
}

impl MmaAccumulators {
    /// Where the sum of a thread's element (m, n) is.
    pub fn place(&self, m: &Expr, n: &Expr) -> Access {
        let of = |at: &Expr| [at.clone() / 2, at.clone() % 2];
        let ([i, upper], [j, right]) = (of(m), of(n));
        Access::new(self.sums, [i, j, upper * 2 + right])
    }
}

/// What a lane has seen of numbers that the planes do not hold.
pub(crate) struct UnrepresentableBits {
    /// Bits; which of them count depends on the format.
    pub bits: Var,
    /// Where the slices of a block tell one another, if there are several.
    pub of_block: Option<Access>,
    pub format: Format,
}

/// The constant that names the number of partial sums.
pub(crate) fn partial_sums(b: &mut KernelBuilder, partials: u32) -> Const {
    b.constant("PARTIALS", partials as i32, "independent partial sums of an output")
}
