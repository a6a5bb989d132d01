//! What a reduction has folded, step by step: the partial values of the first block, to the bit, in a run on elements that are the
//! last digits of their indices.
//!
//! ```text
//! trace of that run ──loads──► which elements each lane folds
//!                   ──words──► what threads leave in shared memory, a column for each step of a tree
//!                   ──lanes──► what lanes of the first warp give one another, a column for each shuffle
//! ```

mod lanes;
mod words;

use super::gather::Looked;
use crate::cli::Failure;
use gemm_dsl::cuda::Listing;
use gemm_dsl::ir::{Elem, Kernel, ParamKind, Space, Stmt, Ty};
use gemm_runtime::Error;
use gemm_runtime::watch::{Kind, Trace, VerifiedKernel};
use serde::Serialize;
use std::collections::BTreeMap;

/// The lanes, and the words of an array, that are shown.
const SHOWN: usize = 32;
/// The most steps, and the most tables.
const COLUMNS: usize = 12;
const TABLES: usize = 8;
/// The most runs of neighbouring elements that are named of a lane.
const RUNS: usize = 6;
/// The instructions that the second run may execute: it does what the first one did.
const INSTRUCTIONS: u64 = 1 << 36;

/// What is said of a reduction whose partial values are not shown.
pub(super) const NONE: &str = "Partial values are shown of reductions of f32 alone. This one folds elements of another type; how they \
                               are folded is the same as in one of f32 with the same keys.";

/// The partial values of a reduction.
#[derive(Clone, Debug, Serialize)]
pub struct Folds {
    /// The array that is folded.
    pub array: String,
    /// How many of its elements the block loads.
    pub elements: usize,
    /// By how many threads of the block one is loaded: the least and the most.
    pub loaded: [u64; 2],
    /// By lane of the first warp, the elements that it loads, in order.
    pub lanes: Vec<Vec<u64>>,
    /// What is handed on, in the order in which it first is.
    pub tables: Vec<Table>,
}

/// Steps of one kind: each a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The line of the text of the first step, counted from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// The array in shared memory; none where lanes give values to one another.
    pub array: Option<String>,
    /// What the rows are: words of the array, or lanes.
    pub rows: Vec<String>,
    /// The steps, and what comes of them.
    pub columns: Vec<Column>,
}

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Which one.
    pub name: String,
    /// The threads of the block that write, or the lanes of the warp whose values count.
    pub active: usize,
    /// By row; none where nothing is written.
    pub cells: Vec<Option<Cell>>,
}

/// A partial value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The bits of an `F32`.
    pub bits: u32,
    /// The thread that wrote it.
    pub thread: Option<u32>,
    /// Whether it goes into what the warp stores next.
    pub counts: bool,
}

impl Column {
    /// What is in a row.
    pub fn cell(&self, row: &usize) -> Option<&Cell> {
        self.cells.get(*row)?.as_ref()
    }
}

impl Cell {
    /// The value, in as few digits as say which one it is.
    pub fn value(&self) -> String {
        f32::from_bits(self.bits).to_string()
    }
}

impl Folds {
    /// The elements of a lane.
    pub fn elements_of(elements: &[u64]) -> String {
        let mut runs: Vec<[u64; 2]> = Vec::new();
        for &element in elements {
            match runs.last_mut() {
                Some([_, last]) if *last + 1 == element => *last = element,
                _ => runs.push([element; 2]),
            }
        }
        let run = |[from, to]: &[u64; 2]| match from == to {
            true => from.to_string(),
            false => format!("{from}–{to}"),
        };
        let named: Vec<String> = runs.iter().take(RUNS).map(run).collect();
        let shown: u64 = runs.iter().take(RUNS).map(|[from, to]| to - from + 1).sum();
        match elements.len() as u64 - shown {
            0 => named.join(", "),
            others => format!("{} and {others} more", named.join(", ")),
        }
    }

    /// By how many threads each element is loaded, in words.
    pub fn loaded_by(&self) -> String {
        match self.loaded {
            [1, 1] => "each of them by one thread".to_owned(),
            [least, most] if least == most => format!("each of them {least} times"),
            [least, most] => format!("each of them {least} to {most} times"),
        }
    }
}

/// The partial values of a reduction of `F32`; none of another kernel.
pub(super) fn of(looked: &Looked, listing: &Listing) -> Result<Option<Folds>, Failure> {
    let kernel = &looked.kernel;
    let digits = looked.arguments.digits();
    let replay = digits.replay(kernel, &[0], INSTRUCTIONS).map_err(Error::from)?;
    replay.ran.map_err(Error::from)?;
    Ok(replay.traces.first().and_then(|trace| folds(kernel, listing, trace)))
}

fn folds(kernel: &VerifiedKernel, listing: &Listing, trace: &Trace) -> Option<Folds> {
    let is_array = |buffer: usize| {
        kernel.params.iter().any(
            |param| matches!(param.kind, ParamKind::Buffer { buffer: of, .. } if of.id == buffer),
        ) && kernel.buffers[buffer].elem == Elem::F32
            && kernel.buffers[buffer].space == Space::Global
    };
    let loads = || trace.accesses().filter(|access| access.pattern.kind == Kind::Load);
    let array = loads().map(|access| access.pattern.buffer).find(|buffer| is_array(*buffer))?;
    let mut lanes = vec![Vec::new(); SHOWN];
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for access in loads().filter(|access| access.pattern.buffer == array) {
        for (thread, element) in super::owners::moved::elements(&access) {
            *all.entry(element).or_default() += 1;
            if let Some(own) = lanes.get_mut(thread as usize) {
                own.push(element);
            }
        }
    }
    // What is behind so many events is before the next.
    let mut tables: Vec<(usize, Table)> = lanes::tables(kernel, listing, trace);
    tables.extend(words::tables(kernel, listing, trace));
    tables.sort_by_key(|(event, _)| *event);
    let loaded = [all.values().min(), all.values().max()].map(|n| n.copied().unwrap_or(0));
    Some(Folds {
        array: kernel.buffers[array].name.clone(),
        elements: all.len(),
        loaded,
        lanes,
        tables: tables.into_iter().take(TABLES).map(|(_, table)| table).collect(),
    })
}

/// The loops around a statement and where they are, in words.
fn around(kernel: &Kernel, rounds: &[(usize, i64)]) -> String {
    let of = |(var, value): &(usize, i64)| format!("{} = {value}", kernel.vars[*var].name);
    rounds.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Whether a statement gives a variable of `F32` a value, or nothing that is typed otherwise.
fn is_f32(kernel: &Kernel, stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Let { var, .. } | Stmt::Mut { var, .. } | Stmt::Assign { var, .. } => {
            var.ty == Ty::F32
        }
        Stmt::Store { target, .. } => kernel.buffers[target.buffer.id].elem == Elem::F32,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
