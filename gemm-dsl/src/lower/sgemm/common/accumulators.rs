//! Accumulators of a thread, with the storage that each kind of kernel uses.

use super::accumulator_tile::AccumulatorTile;
use super::elements::Elements;
use super::loops::each;
use crate::ir::{Access, BufferId, Const, Elem, Expr, Intrinsic, KernelBuilder, Ty, Var};
use crate::lower::conversions::elem_of;
use crate::lower::literal::zero_of;
use crate::target::{FloatLayout, Format};

/// Accumulators of a 16-byte vector. Accumulators are `f32`.
const F32_LANES: i32 = Elem::F32.vector_lanes() as i32;

pub(crate) struct Accumulators {
    place: AccumulatorStorage,
    tall: bool,
    wide: bool,
    partials: u32,
    /// Constant for the number of partial accumulators of an element, if more than one.
    pub count: Option<Const>,
}

/// Index of one accumulator: the index of its partial sum, and of its element.
pub(crate) struct AccumulatorIndex {
    pub partial: Expr,
    pub m: Expr,
    pub n: Expr,
}

enum AccumulatorStorage {
    One(Var),
    Many(BufferId),
    /// Registers of `mma` instructions, distributed over the lanes of a warp.
    Mma(MmaAccumulators),
    /// Registers of `wgmma` instructions, in the instructions' order. If A and B are swapped, the
    /// rows of an instruction are columns of C.
    Warpgroup {
        sums: BufferId,
        swap_ab: bool,
    },
}

/// Register of a `wgmma` instruction with this thread's element (m, n).
fn wgmma_place(sums: BufferId, swap_ab: bool, m: &Expr, n: &Expr) -> Access {
    let [row, col] = if swap_ab { [n, m] } else { [m, n] };
    Access::new(sums, [col.clone() / 2 * 4 + row.clone() * 2 + col.clone() % 2])
}

impl Accumulators {
    /// Wraps the accumulators of a warp's `mma` instructions.
    pub fn from_mma(accumulators: MmaAccumulators) -> Self {
        let place = AccumulatorStorage::Mma(accumulators);
        Self { place, tall: true, wide: true, partials: 1, count: None }
    }

    /// Returns the accumulators of the warp's `mma` instructions, if the kernel uses them.
    pub fn mma(&self) -> Option<&MmaAccumulators> {
        match &self.place {
            AccumulatorStorage::Mma(mma) => Some(mma),
            AccumulatorStorage::One(_)
            | AccumulatorStorage::Many(_)
            | AccumulatorStorage::Warpgroup { .. } => None,
        }
    }

    /// Wraps the accumulators of a warpgroup's thread. They belong to two rows of an instruction,
    /// or to one row if `exchanged` is true, which means that pairs of lanes have exchanged
    /// accumulators.
    pub fn from_wgmma(sums: BufferId, swap_ab: bool, exchanged: bool) -> Self {
        let place = if exchanged {
            AccumulatorStorage::Many(sums)
        } else {
            AccumulatorStorage::Warpgroup { sums, swap_ab }
        };
        Self { place, tall: !exchanged, wide: true, partials: 1, count: None }
    }

    /// Declares the accumulators of a thread, all zero, with elements of type `elem`.
    pub fn zeroed(
        b: &mut KernelBuilder,
        elem: Elem,
        [rows, cols]: [&Elements; 2],
        share: AccumulatorShare,
    ) -> Self {
        let partials = match share {
            AccumulatorShare::Thread { partials } | AccumulatorShare::Tile { partials } => partials,
            AccumulatorShare::Lane => 1,
        };
        let name = match share {
            AccumulatorShare::Thread { .. } | AccumulatorShare::Lane => "acc",
            AccumulatorShare::Tile { .. } => "partial",
        };
        let (tall, wide) = (rows.count > 1, cols.count > 1);
        let count = (partials > 1).then(|| partial_sums(b, partials));
        let (rows, cols) = (tall.then_some(rows.name), wide.then_some(cols.name));
        let dims: Vec<Expr> = [count, rows, cols].into_iter().flatten().map(Expr::from).collect();
        b.comment(layout_text(share, [rows.is_some(), cols.is_some()]));
        let place = if dims.is_empty() {
            AccumulatorStorage::One(b.mut_(name, zero_of(elem, 0.0)))
        } else {
            AccumulatorStorage::Many(b.zeroed_registers(name, elem, dims, ""))
        };
        Self { place, tall, wide, partials, count }
    }

    /// Declares uninitialised accumulators, one for each element.
    pub fn sums(b: &mut KernelBuilder, block: &AccumulatorTile<'_>) -> Self {
        let elem = block.plan.types().acc;
        let (tall, wide) = (block.rows.count > 1, block.cols.count > 1);
        let dims = [tall.then_some(block.rows.name), wide.then_some(block.cols.name)];
        let dims: Vec<Expr> = dims.into_iter().flatten().map(Expr::from).collect();
        let place = if dims.is_empty() {
            AccumulatorStorage::One(b.mut_("sum_of_all", zero_of(elem, 0.0)))
        } else {
            AccumulatorStorage::Many(b.registers("sum_of_all", elem, dims, ""))
        };
        Self { place, tall, wide, partials: 1, count: None }
    }

    /// Adds the partial accumulators of a K tile to these accumulators.
    pub fn fold(&self, b: &mut KernelBuilder, elements: [&Elements; 2], of_tile: &Self) {
        each(b, elements, |b, m, n| {
            self.set(b, m, n, self.value(m, n) + of_tile.value(m, n));
        });
    }

    /// Adds partial accumulators, so that each element has a single accumulator that can be set.
    pub fn in_one(self, b: &mut KernelBuilder, block: &AccumulatorTile<'_>) -> Self {
        if self.partials == 1 {
            return self;
        }
        let all = Self::sums(b, block);
        each(b, block.elements(), |b, m, n| all.set(b, m, n, self.value(m, n)));
        all
    }

    /// Sets the accumulator of element (m, n).
    pub fn set(&self, b: &mut KernelBuilder, m: &Expr, n: &Expr, sum: Expr) {
        match &self.place {
            AccumulatorStorage::One(var) => b.assign(*var, sum),
            AccumulatorStorage::Many(buffer) => {
                b.store(self.access(*buffer, 0.into(), m.clone(), n.clone()), sum);
            }
            AccumulatorStorage::Mma(mma) => b.store(mma.place(m, n), sum),
            AccumulatorStorage::Warpgroup { sums, swap_ab } => {
                b.store(wgmma_place(*sums, *swap_ab, m, n), sum);
            }
        }
    }

    fn access(&self, buffer: BufferId, p: Expr, m: Expr, n: Expr) -> Access {
        let p = (self.partials > 1).then_some(p);
        let (m, n) = (self.tall.then_some(m), self.wide.then_some(n));
        Access::new(buffer, [p, m, n].into_iter().flatten())
    }

    /// Final value of element (m, n): the sum of its partial accumulators.
    pub fn value(&self, m: &Expr, n: &Expr) -> Expr {
        match &self.place {
            AccumulatorStorage::One(var) => (*var).into(),
            AccumulatorStorage::Many(buffer) => {
                let part =
                    |p: u32| self.access(*buffer, Expr::I32(p as i32), m.clone(), n.clone()).load();
                (1..self.partials).fold(part(0), |sum, p| sum + part(p))
            }
            AccumulatorStorage::Mma(mma) => mma.place(m, n).load(),
            AccumulatorStorage::Warpgroup { sums, swap_ab } => {
                wgmma_place(*sums, *swap_ab, m, n).load()
            }
        }
    }

    /// Final values of `lanes` elements in a row, starting at (m, n).
    pub fn vector(&self, m: &Expr, n: &Expr, lanes: i32) -> Expr {
        match &self.place {
            AccumulatorStorage::Many(buffer) if self.partials == 1 && lanes == F32_LANES => {
                self.access(*buffer, 0.into(), m.clone(), n.clone()).vector().load()
            }
            AccumulatorStorage::Mma(mma) if mma.exchanges && lanes == F32_LANES => {
                mma.place(m, n).vector().load()
            }
            _ => Expr::Pack((0..lanes).map(|j| self.value(m, &(n.clone() + j))).collect()),
        }
    }

    /// Emits the check that all accumulators of this thread are finite. Returns 0 if they are,
    /// otherwise 1.
    pub fn not_finite(&self, b: &mut KernelBuilder, elements: [&Elements; 2]) -> Expr {
        // The bits of magnitudes are ordered like the magnitudes, and NaN is greatest.
        let greatest = b.mut_("max_bits", 0);
        each(b, elements, |b, m, n| {
            let bits = Expr::Call(Intrinsic::Abs, vec![self.value(m, n)]).bitcast(Elem::I32);
            b.assign(greatest, Expr::from(greatest).max(bits));
        });
        let infinity = Expr::I32(FloatLayout::BINARY32.infinity() as i32);
        let differs = Expr::from(greatest).lt(infinity).select(Expr::U32(0), Expr::U32(1));
        b.let_("not_finite", differs).into()
    }

    /// Emits `acc[p][m][n] = fma(a, b, acc[p][m][n])`, with A and B converted to the type of the
    /// accumulators.
    pub fn multiply_add(
        &self,
        b: &mut KernelBuilder,
        at: AccumulatorIndex,
        left: Expr,
        right: Expr,
    ) {
        let fma = |acc: Expr| fma(left, right, acc);
        match &self.place {
            AccumulatorStorage::One(var) => b.assign(*var, fma((*var).into())),
            AccumulatorStorage::Many(buffer) => {
                let place = self.access(*buffer, at.partial, at.m, at.n);
                let sum = fma(place.clone().load());
                b.store(place, sum);
            }
            AccumulatorStorage::Mma(_) | AccumulatorStorage::Warpgroup { .. } => {
                unreachable!("fragment::multiply: tensor cores have their own step")
            }
        }
    }
}

/// Multiply-add of elements of A and B in the type of the accumulator: fused, or modulo 2^32.
pub(crate) fn fma(a: Expr, b: Expr, acc: Expr) -> Expr {
    if acc.ty() == Ty::U32 {
        // Unsigned sums wrap.
        return acc + (a.cast(Elem::I32) * b.cast(Elem::I32)).bitcast(Elem::U32);
    }
    let computed = |factor: Expr| match elem_of(&acc) {
        Some(elem) => factor.cast(elem),
        None => factor,
    };
    let (a, b) = (computed(a), computed(b));
    Expr::Call(Intrinsic::Fma, vec![a, b, acc])
}

/// Accumulators of a warp's `mma` instructions in the registers of its lanes.
pub(crate) struct MmaAccumulators {
    /// Registers in instruction order: row of instructions, column of instructions, register of the
    /// lane.
    pub sums: BufferId,
    /// Fresh accumulators, if several steps are summed before each promotion.
    pub fresh: Option<BufferId>,
    /// Recorded remainders of values that the splits cannot represent.
    pub unrepresentable: Option<UnrepresentableBits>,
    /// True if pairs of lanes exchange accumulators after the main loop.
    pub exchanges: bool,
}

impl MmaAccumulators {
    /// Register of this thread's element (m, n).
    pub fn place(&self, m: &Expr, n: &Expr) -> Access {
        if self.exchanges {
            return Access::new(self.sums, [m.clone(), n.clone() / 4, n.clone() % 4]);
        }
        let of = |at: &Expr| [at.clone() / 2, at.clone() % 2];
        let ([i, upper], [j, right]) = (of(m), of(n));
        Access::new(self.sums, [i, j, upper * 2 + right])
    }
}

/// Emits the exchange of one column of accumulators between the lanes of a pair. Each lane has an
/// element in the upper row, `at(0)`, and one in the lower row, `at(1)`, which is eight rows below.
/// The even lane receives the upper row of both lanes, and the odd lane the lower row.
pub(crate) fn exchange_column(b: &mut KernelBuilder, is_even: &Expr, at: impl Fn(i32) -> Access) {
    exchange(b, is_even, 1, ["upper", "lower"], at);
}

/// Emits the exchange of `at(0)` and `at(1)` between two lanes whose indices differ by the bit
/// `apart`. The lane for which `is_first` is true receives `at(0)` of both, and the other lane
/// `at(1)` of both.
pub(crate) fn exchange(
    b: &mut KernelBuilder,
    is_first: &Expr,
    apart: i32,
    names: [&str; 2],
    at: impl Fn(i32) -> Access,
) {
    let [upper, lower] = [0, 1].map(|row| Expr::from(b.let_(names[row as usize], at(row).load())));
    let given = is_first.clone().select(lower.clone(), upper.clone());
    let received = Expr::Call(Intrinsic::ShuffleXor, vec![given, apart.into()]);
    let received = Expr::from(b.let_("received", received));
    b.store(at(0), is_first.clone().select(upper, received.clone()));
    b.store(at(1), is_first.clone().select(received, lower));
}

/// Comment on such exchanges.
pub(crate) const EXCHANGE: &str = "Lane pairs exchange accumulators, so that a lane has four \
                                   adjacent columns for a float4 store: even lanes keep the \
                                   upper row, odd lanes the lower row.";

/// Record of the values that a lane has met and that the splits cannot represent.
pub(crate) struct UnrepresentableBits {
    /// Bits of remainders. The format determines which bits show a loss.
    pub bits: Var,
    /// Flag shared by the slices of a block, if there are several.
    pub of_block: Option<Access>,
    pub format: Format,
}

/// Threads that have accumulators for the same outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccumulatorShare {
    /// One thread, with this number of partial accumulators per output.
    Thread { partials: u32 },
    /// One thread, with this number of partial accumulators per output for each K tile.
    Tile { partials: u32 },
    /// Each lane of a warp, with one partial accumulator per output.
    Lane,
}

/// Comment on the indices of the array of accumulators, given the indices that it has.
fn layout_text(share: AccumulatorShare, [tall, wide]: [bool; 2]) -> String {
    let (index, output) = match (tall, wide) {
        (true, true) => ("[m][n]", "output (m, n)"),
        (true, false) => ("[m]", "output m"),
        (false, true) => ("[n]", "output n"),
        (false, false) => ("", "the output"),
    };
    match share {
        AccumulatorShare::Thread { partials: 1 } => {
            format!("acc{index} accumulates {output} of this thread.")
        }
        AccumulatorShare::Thread { .. } => {
            format!("acc[p]{index} accumulates partial sum p of {output} of this thread.")
        }
        AccumulatorShare::Tile { .. } => {
            format!("partial[p]{index} accumulates partial sum p of {output} over this K tile.")
        }
        AccumulatorShare::Lane => {
            format!("acc{index} is this lane's partial sum of {output} of its warp.")
        }
    }
}

/// Returns true for an `f32` that is neither infinite nor NaN.
pub(crate) fn is_finite(value: Expr) -> Expr {
    Expr::Call(Intrinsic::Abs, vec![value]).lt(Expr::F32(f32::INFINITY))
}

/// Declares the constant for the number of partial accumulators.
pub(crate) fn partial_sums(b: &mut KernelBuilder, partials: u32) -> Const {
    b.constant("PARTIALS", partials as i32, "independent partial sums per output")
}
