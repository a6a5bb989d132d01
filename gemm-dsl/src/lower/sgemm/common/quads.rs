//! Outputs of tensor cores that the four lanes of a row exchange before they store vectors.
//!
//! A lane has two adjacent columns of every eight. Their outputs are one word: two elements of 16
//! bits, or one `f32` for the pair. Four lanes transpose their words of four groups of eight
//! columns. Each lane then has all outputs of one group, which are 16 adjacent bytes of C. If a
//! pair has one element of 16 bits, the words of eight groups are transposed. If the outputs are
//! two `f32`, pairs of lanes exchange those of two groups: the even lane receives four columns of
//! the first group, and the odd lane those of the second.

use super::accumulator_tile::AccumulatorTile;
use super::accumulators::{Accumulators, exchange};
use super::epilogue_args::{ArgLine, ElementOfC, EpilogueArgs};
use super::epilogue_expression::{EpilogueExpression, OutputMatrix};
use super::loops::{guarded, over};
use super::row_folds::RowValues;
use crate::ir::{Access, BufferId, Elem, Expr, Intrinsic, KernelBuilder, Var};

/// Lanes that exchange words.
const LANES: i32 = 4;
/// Adjacent columns of a lane.
const OWN: i32 = 2;
/// Columns of a group.
const GROUP: i32 = OWN * LANES;

/// State for the stores of a thread.
struct Quads<'a> {
    block: &'a AccumulatorTile<'a>,
    acc: &'a Accumulators,
    finish: &'a EpilogueExpression<'a>,
    guards: bool,
    /// Groups whose outputs are exchanged at once.
    groups: i32,
    /// Groups whose outputs have a common word, if they are half a word.
    per_word: i32,
    /// Index of the thread among the lanes of its row.
    lane: Var,
    /// Conditions that bit 0 of `lane`, and bit 1 if four lanes exchange outputs, are zero.
    is_first: Vec<Expr>,
}

/// Row of C, with the epilogue operands loaded so far.
struct QuadRow<'r> {
    m: Expr,
    row: Expr,
    operands: EpilogueArgs,
    folds: Option<&'r RowValues>,
}

/// Stores the outputs of a thread's tile.
pub(super) fn outputs(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
    finish: &EpilogueExpression<'_>,
    guards: bool,
) {
    let operands = finish.operands.items(b);
    let operands = operands.columns(b, block.cols.name.into(), |b, arrays| {
        columns(b, block, arrays, guards);
    });
    let groups = block.epilogue.groups() as i32;
    b.comment(match groups {
        2 => {
            "Lane pairs exchange outputs: a lane has two of every eight columns, and stores 16 \
             adjacent bytes. The four lanes of a row store 64 adjacent bytes."
        }
        _ => {
            "The four lanes of a row exchange outputs: a lane has two of every eight columns, and \
             stores 16 adjacent bytes."
        }
    });
    let lane = b.let_("quad_lane", block.epilogue_thread.clone() % LANES);
    let mut is_first = vec![b.let_("is_even", (lane % 2).equals(0)).into()];
    if groups > 2 {
        is_first.push(b.let_("is_low", Expr::from(lane).lt(2)).into());
    }
    let per_word = (groups / LANES).max(1);
    let quads = Quads { block, acc, finish, guards, groups, per_word, lane, is_first };
    over(b, "m", block.rows.name.into(), block.rows.count, |b, m| quads.row(b, &operands, m));
}

/// Loads the operands of the thread's columns. Columns past the end of C read the last one.
fn columns(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    arrays: &[(ArgLine, BufferId)],
    guards: bool,
) {
    over(b, "n", block.cols.name.into(), block.cols.count, |b, n| {
        let col = block.origin.col + block.cols.element(n.clone());
        let col = if guards { col.min(block.problem.n - 1) } else { col };
        let col = b.let_("loaded_col", col);
        for (memory, kept) in arrays {
            b.store(Access::new(*kept, [n.clone()]), memory.at(col).load());
        }
    });
}

impl Quads<'_> {
    /// Stores the outputs of a row of the thread.
    fn row(&self, b: &mut KernelBuilder, operands: &EpilogueArgs, m: Expr) {
        let (block, p) = (self.block, &self.block.problem);
        let row = Expr::from(b.let_("row", block.origin.row + block.rows.element(m.clone())));
        let read = if self.guards { row.clone().min(p.m - 1) } else { row.clone() };
        let operands = operands.row(b, &read);
        let values = self.finish.folds.as_ref().map(|folds| folds.start(b));
        let row = QuadRow { m, row, operands, folds: values.as_ref() };
        let of_block = OWN * self.groups;
        let (bound, count) = (block.cols.name / of_block, block.cols.count / of_block as u32);
        over(b, "v", bound, count, |b, v| self.vectors(b, &row, &(v * of_block)));
        if let Some((folds, values)) = self.finish.folds.as_ref().zip(row.folds) {
            let inside = row.row.clone().lt(p.end_of_rows());
            guarded(b, self.guards, inside, |b| folds.leave(b, block, &row.row, values));
        }
    }

    /// Stores one vector of each output that has half a word for a lane and group, and more of the
    /// others. `first` is the first of their columns in the thread.
    fn vectors(&self, b: &mut KernelBuilder, row: &QuadRow<'_>, first: &Expr) {
        let outputs = self.finish.outputs();
        let words: Vec<BufferId> = (1..)
            .zip(outputs)
            .map(|(nth, output)| {
                let name = if nth == 1 { "words".to_owned() } else { format!("words_{nth}") };
                let elem = if self.has_words(output) { Elem::U32 } else { Elem::F32 };
                b.registers(&name, elem, [Expr::I32(LANES * self.vectors_of(output))], "")
            })
            .collect();
        b.unrolled("i", self.groups / self.per_word, |b, i| {
            let mut halves = vec![Vec::new(); outputs.len()];
            for nth in 0..self.per_word {
                let group = i * self.per_word + nth;
                let values = self.values(b, row, first.clone() + group.clone() * OWN);
                let mut values = values.into_iter();
                for ((output, words), halves) in outputs.iter().zip(&words).zip(&mut halves) {
                    let of_pair = self.of_pair(output);
                    halves.extend(values.by_ref().take(of_pair as usize));
                    if !self.has_words(output) {
                        for (j, value) in (0..).zip(halves.drain(..)) {
                            b.store(Access::new(*words, [i * of_pair + j]), value);
                        }
                    } else if halves.len() == 2 {
                        let at = if of_pair == 2 { group.clone() } else { i.into() };
                        let word = self.word(std::mem::take(halves));
                        b.store(Access::new(*words, [at]), word);
                    }
                }
            }
        });
        if self.block.plan.spec().reads_c() {
            b.comment("Other lanes have read the elements of C that this lane overwrites.");
            b.warp_barrier();
        }
        for (output, words) in outputs.iter().zip(words) {
            for nth in 0..self.vectors_of(output) {
                self.exchange(b, words, nth * LANES);
                self.store(b, row, output, words, [first.clone(), nth.into()]);
            }
        }
    }

    /// Values of the lane's two columns, the first of which is column `n` of the thread.
    fn values(&self, b: &mut KernelBuilder, row: &QuadRow<'_>, n: Expr) -> Vec<Expr> {
        let (block, p, finish) = (self.block, &self.block.problem, self.finish);
        let col = block.origin.col + block.cols.element(n.clone());
        let is_read = self.guards && (finish.folds.is_some() || row.operands.has_elements());
        let col = if is_read { b.let_("col", col).into() } else { col };
        let stored: usize = finish.outputs().iter().map(|output| output.count).sum();
        let mut all = Vec::new();
        for j in (0..OWN).step_by(finish.span) {
            let held = (j..j + finish.span as i32).map(|at| {
                let [n, col] = [&n, &col].map(|first| first.clone() + at);
                let mut operands = match at {
                    0 => row.operands.clone(),
                    _ => row.operands.in_odd_column(),
                };
                if self.guards {
                    let inside = row.row.clone().lt(p.end_of_rows()).and(col.clone().lt(p.n));
                    operands = operands.only_if(&inside);
                }
                operands.rest(b, ElementOfC { row: &row.row, col: &col }, n, false)
            });
            let held: Vec<_> = held.collect();
            let sums =
                (j..j + finish.span as i32).map(|j| self.acc.value(&row.m, &(n.clone() + j)));
            let (sums, col): (Vec<Expr>, _) = (sums.collect(), col.clone() + j);
            let at = ElementOfC { row: &row.row, col: &col };
            let mut values = finish.computed(&sums, at, |nth, column| held[column].value(nth, 0));
            let arguments = values.split_off(stored);
            all.push(values);
            if let Some((folds, kept)) = finish.folds.as_ref().zip(row.folds) {
                guarded(b, self.guards, col.lt(p.n), |b| folds.add(b, kept, 0, arguments));
            }
        }
        // The values of both columns follow each other for each output.
        let mut columns: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
        let of_output = finish.outputs().iter().flat_map(|output| {
            let of_column = |values: &mut std::vec::IntoIter<Expr>| {
                values.by_ref().take(output.count).collect::<Vec<_>>()
            };
            columns.iter_mut().flat_map(of_column).collect::<Vec<_>>()
        });
        of_output.collect()
    }

    /// Values of an output for the two adjacent columns of a lane.
    fn of_pair(&self, output: &OutputMatrix) -> i32 {
        (output.count * OWN as usize / self.finish.span) as i32
    }

    /// Returns true if words have two elements of 16 bits.
    fn has_words(&self, output: &OutputMatrix) -> bool {
        debug_assert!(self.groups > 2 || self.of_pair(output) == 2, "exchanged_groups");
        self.block.epilogue.elem().size() < 4
    }

    /// Vectors of an output that are stored at once.
    fn vectors_of(&self, output: &OutputMatrix) -> i32 {
        if self.of_pair(output) == 1 { 1 } else { self.per_word }
    }

    /// Word of two values that are rounded to 16 bits.
    fn word(&self, values: Vec<Expr>) -> Expr {
        match self.block.epilogue.elem() {
            Elem::F16 => Expr::Call(Intrinsic::PackF16, values),
            _ => Expr::Call(Intrinsic::PackBf16, values),
        }
    }

    /// Exchanges four words of each lane. Under a transposition, lane i receives word i of each
    /// lane. If only pairs of lanes exchange words, the even lane receives the first two words of
    /// both, and the odd lane the others.
    fn exchange(&self, b: &mut KernelBuilder, words: BufferId, first: i32) {
        let between = |b: &mut KernelBuilder, nth: usize, apart: i32, words_apart: i32| {
            b.unrolled("i", LANES / 2, |b, i| {
                let at = if words_apart == 1 { i * 2 } else { i.into() };
                exchange(b, &self.is_first[nth], apart, ["word", "other"], |nth| {
                    Access::new(words, [at.clone() + (first + nth * words_apart)])
                });
            });
        };
        match self.groups {
            2 => between(b, 0, 1, 2),
            _ => [1, 2]
                .into_iter()
                .enumerate()
                .for_each(|(nth, apart)| between(b, nth, apart, apart)),
        }
    }

    /// Stores the vector that a lane has after a transposition, if it is in range.
    fn store(
        &self,
        b: &mut KernelBuilder,
        row: &QuadRow<'_>,
        output: &OutputMatrix,
        words: BufferId,
        [first, nth]: [Expr; 2],
    ) {
        let (block, p) = (self.block, &self.block.problem);
        let is_half = self.of_pair(output) == 1;
        // The lane has the groups after those of lower lanes, from their first column on.
        let groups = if is_half { self.per_word } else { 1 };
        let n = first + nth.clone() * (OWN * LANES);
        let moved = match self.groups {
            2 => self.lane % 2 * (GROUP - OWN),
            _ => self.lane * (GROUP * groups - OWN),
        };
        let col = block.origin.col + (block.cols.element(n) + moved);
        let col = Expr::from(b.let_("stored_col", col));
        let at = if is_half { col.clone() / 2 } else { col.clone() };
        let inside = row.row.clone().lt(p.end_of_rows()).and(col.lt(p.n));
        let of = |i: i32| Access::new(words, [nth.clone() * LANES + i]);
        let value = match is_half && self.has_words(output) {
            false => of(0).vector().load(),
            true => Expr::Pack(in_order(|i| of(i).load())),
        };
        guarded(b, self.guards, inside, |b| {
            b.store(output.matrix.at(row.row.clone(), at).vector(), value);
        });
    }
}

/// Words with the elements of two groups in order. Each given word has an element of the first
/// group in its lower half, and one of the second group in its upper half.
fn in_order(word: impl Fn(i32) -> Expr) -> Vec<Expr> {
    let low = |i: i32| (word(i) & Expr::U32(0xffff)) | (word(i + 1) << Expr::U32(16));
    let high = |i: i32| (word(i) >> Expr::U32(16)) | (word(i + 1) & Expr::U32(0xffff_0000));
    vec![low(0), low(2), high(0), high(2)]
}
