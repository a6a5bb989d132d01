//! Words in global memory by which blocks pass sums to later blocks.

use super::{Scan, at, held};
use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    AtomicOp, BufferId, Elem, Expr, For, KernelBuilder, MemoryOrder, Operand, Scope, Var,
};
use crate::plan::ScanPlan;

/// Names of the scratch arrays.
const WORDS: &str = "words";
const VALUES: &str = "sums_of_tiles";

/// Bit of a 64-bit word that is set once the word has a value.
const IS_SET: u64 = 1 << 32;

/// Number of lanes of a warp, of tiles of a group, and of groups of a section.
const RADIX: u64 = super::WARP as u64;

/// Scratch arrays. Word 0 counts the tiles that blocks have taken. One word for each tile, for each
/// group of tiles and for each section of groups follows.
pub(super) struct Words {
    words: BufferId,
    /// Value of each word; `None` if a word contains its 4-byte value.
    values: Option<BufferId>,
    groups: Expr,
    sections: Expr,
}

/// Words of one kind.
#[derive(Clone, Copy)]
pub(super) enum Level {
    Tile,
    Group,
    Section,
}

/// Numbers of tiles, groups and sections of `n` elements.
fn counts(plan: &ScanPlan, n: &Expr) -> [Expr; 3] {
    let tile = u64::from(plan.tile());
    [tile, tile * RADIX, tile * RADIX * RADIX].map(|elements| n.clone().div_ceil(elements))
}

/// Number of words for `n` elements.
fn len(plan: &ScanPlan, n: &Expr) -> Expr {
    let [tiles, groups, sections] = counts(plan, n);
    Expr::U64(1) + tiles + groups + sections
}

/// Returns true if a word contains its value.
fn is_packed(plan: &ScanPlan) -> bool {
    held(plan).size() == 4
}

/// Adds the scratch arrays to a program.
pub(super) fn temps(program: &mut Program, plan: &ScanPlan, n: &Expr) -> Vec<(Operand, Slot)> {
    let (elem, len) = (if is_packed(plan) { Elem::U64 } else { Elem::U32 }, len(plan, n));
    let mut slots = vec![program.temp_of(WORDS, elem, [len.clone()], TempFill::Zero)];
    if !is_packed(plan) {
        slots.push(program.temp(VALUES, held(plan), [len]));
    }
    slots.into_iter().enumerate().map(|(nth, slot)| (Operand::Temp(nth), slot)).collect()
}

impl Words {
    pub(super) fn declare(b: &mut KernelBuilder, scan: &Scan<'_>) -> Self {
        let n = Expr::from(scan.n);
        let mut array = |nth, name: &str, elem| {
            let array = b.global(name, elem, Operand::Temp(nth));
            b.shape(array, [len(scan.plan, &n)], [1.into()]);
            array
        };
        let is_packed = is_packed(scan.plan);
        let words = array(0, WORDS, if is_packed { Elem::U64 } else { Elem::U32 });
        let values = (!is_packed).then(|| array(1, VALUES, scan.held));
        let [tiles, groups, _] = counts(scan.plan, &n);
        let groups_at = b.let_("first_group", Expr::U64(1) + tiles);
        let sections_at = b.let_("first_section", groups_at + groups);
        Self { words, values, groups: groups_at.into(), sections: sections_at.into() }
    }

    /// Takes the next tile.
    pub(super) fn take(&self, b: &mut KernelBuilder) -> Expr {
        let one = if self.values.is_none() { Expr::U64(1) } else { Expr::U32(1) };
        let (next, order) = (at(self.words, 0), MemoryOrder::Relaxed);
        let ticket = b.atomic("ticket", AtomicOp::Add, next, one, order, Scope::Device);
        if self.values.is_none() { Expr::from(ticket).cast(Elem::U32) } else { ticket.into() }
    }

    fn index(&self, level: Level, nth: Expr) -> Expr {
        match level {
            Level::Tile => nth + 1,
            Level::Group => self.groups.clone() + nth,
            Level::Section => self.sections.clone() + nth,
        }
    }

    /// Declares a variable for a word, without a value.
    pub(super) fn unset(&self, b: &mut KernelBuilder, name: &str) -> Var {
        let none = if self.values.is_none() { Expr::U64(0) } else { Expr::U32(0) };
        b.mut_(name, none)
    }

    /// Reads a word.
    pub(super) fn read(&self, b: &mut KernelBuilder, word: Var, level: Level, nth: Expr) {
        // A word with its value orders no other access.
        let order = match self.values {
            None => MemoryOrder::Relaxed,
            Some(_) => MemoryOrder::Acquire,
        };
        let from = at(self.words, self.index(level, nth));
        let found = b.atomic_load("found", from, order, Scope::Device);
        b.assign(word, found);
    }

    pub(super) fn is_set(&self, word: Var) -> Expr {
        match self.values {
            None => Expr::from(word).ge(Expr::U64(IS_SET)),
            Some(_) => Expr::from(word).differs(Expr::U32(0)),
        }
    }

    /// Reads a word until it is set.
    pub(super) fn wait(&self, b: &mut KernelBuilder, word: Var, level: Level, nth: Expr) {
        let until = self.is_set(word);
        b.loop_("round", For::new(0, move |_| until.clone().negated()), |b, _| {
            self.read(b, word, level, nth.clone());
        });
    }

    /// Value of a word that is set.
    pub(super) fn value(&self, scan: &Scan<'_>, word: Var, level: Level, nth: Expr) -> Expr {
        match self.values {
            None => (Expr::from(word) - IS_SET).cast(Elem::U32).bitcast(scan.held),
            Some(values) => at(values, self.index(level, nth)).load(),
        }
    }

    /// Sets a word.
    pub(super) fn publish(&self, b: &mut KernelBuilder, level: Level, nth: Expr, value: Expr) {
        let index = self.index(level, nth);
        let target = at(self.words, index.clone());
        let (set, order) = match self.values {
            None => {
                let bits = value.bitcast(Elem::U32).cast(Elem::U64);
                (bits + Expr::U64(IS_SET), MemoryOrder::Relaxed)
            }
            Some(values) => {
                b.store(at(values, index), value);
                (Expr::U32(1), MemoryOrder::Release)
            }
        };
        b.atomic_only(AtomicOp::Exchange, target, set, order, Scope::Device);
    }
}
