//! What a reduction has folded, step by step: the partial values of the first block, to the bit, in a run on elements that are the
//! last digits of their indices.
//!
//! ```text
//! trace of that run ──loads──► which elements each lane folds
//!                   ──words──► what threads leave in shared memory, a column for each step of a tree
//!                   ──lanes──► what lanes of the first warp give one another, a column for each shuffle
//! ```

use crate::observation::Observation;
use crate::ownership::{ReducedElements, reduction};
use gemm_bench::cli::Failure;
use gemm_dsl::cuda::Listing;
use gemm_dsl::ir::{Elem, Kernel, ParamKind, Stmt, Ty};
use gemm_runtime::watch::{Kind, Trace, VerifiedKernel};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The lanes, and the words of an array, that are shown.
const SHOWN: usize = 32;
/// The most steps, and the most tables.
const COLUMNS: usize = 12;
const TABLES: usize = 8;
/// The most runs of neighbouring elements that are named of a lane.
const RUNS: usize = 6;

/// What is said of a reduction whose partial values are not shown.
pub(super) const NONE: &str =
    "The block that is watched loads nothing of the array, so it has no partial values.";

/// The partial values of a reduction.
#[derive(Clone, Debug, Serialize)]
pub struct Partials {
    /// The array that is folded.
    pub array: String,
    /// How many of its elements the block loads.
    pub elements: usize,
    /// By how many threads of the block one is loaded: the least and the most.
    pub loaded: [u64; 2],
    /// Who loads which, as a picture.
    pub folded: Option<ReducedElements>,
    /// By lane of the first warp, the elements that it loads, in order.
    pub lanes: Vec<Vec<u64>>,
    /// What is handed on, in the order in which it first is.
    pub tables: Vec<PartialTable>,
}

/// Steps of one kind: each a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartialTable {
    /// The line of the text of the first step, counted from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// The array in shared memory; none where lanes give values to one another.
    pub array: Option<String>,
    /// What the rows are: words of the array, or lanes.
    pub rows: Vec<String>,
    /// The steps, and what comes of them.
    pub columns: Vec<PartialStep>,
}

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartialStep {
    /// Which one.
    pub name: String,
    /// The threads of the block that write, or the lanes of the warp whose values count.
    pub active: usize,
    /// By row; none where nothing is written.
    pub cells: Vec<Option<PartialValue>>,
}

/// A partial value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartialValue {
    /// Its bits, zero-extended.
    pub bits: u64,
    /// The value, in as few digits as say which one it is.
    pub value: String,
    /// The thread that wrote it.
    pub thread: Option<u32>,
    /// Whether it goes into what the warp stores next.
    pub counts: bool,
}

impl PartialStep {
    /// What is in a row.
    pub fn cell(&self, row: &usize) -> Option<&PartialValue> {
        self.cells.get(*row)?.as_ref()
    }
}

impl PartialValue {
    /// Of an element's bits.
    fn new(elem: Elem, bits: u64, thread: Option<u32>, counts: bool) -> Self {
        Self { bits, value: value(elem, bits), thread, counts }
    }
}

/// A value, in as few digits as say which one it is.
fn value(elem: Elem, bits: u64) -> String {
    match elem {
        Elem::F64 => f64::from_bits(bits).to_string(),
        Elem::F32 | Elem::Tf32 => f32::from_bits(bits as u32).to_string(),
        Elem::F16 => half::f16::from_bits(bits as u16).to_string(),
        Elem::Bf16 => half::bf16::from_bits(bits as u16).to_string(),
        Elem::I64 => (bits as i64).to_string(),
        Elem::I32 => (bits as i32).to_string(),
        Elem::I16 => (bits as i16).to_string(),
        Elem::I8 => (bits as i8).to_string(),
        _ => bits.to_string(),
    }
}

impl Partials {
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

/// The partial values of a reduction; none where the block loads nothing.
pub(super) fn partials(
    looked: &Observation,
    listing: &Listing,
) -> Result<Option<Partials>, Failure> {
    let kernel = &looked.kernel;
    let trace = looked.again(&looked.arguments.digits())?;
    let scalars = looked.arguments.scalars(kernel);
    Ok(trace.and_then(|trace| folds(kernel, &scalars, listing, &trace)))
}

fn folds(
    kernel: &VerifiedKernel,
    scalars: &[Option<u64>],
    listing: &Listing,
    trace: &Trace,
) -> Option<Partials> {
    // What is folded is the first array.
    let array = kernel.params.iter().find_map(|param| match param.kind {
        ParamKind::Buffer { buffer, .. } => Some(buffer.id),
        _ => None,
    })?;
    let size = kernel.buffers[array].elem.size();
    let loads = || trace.accesses().filter(|access| access.pattern.kind == Kind::Load);
    let mut lanes = vec![Vec::new(); SHOWN];
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    let mut by: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for access in loads().filter(|access| access.pattern.buffer == array) {
        for (thread, element) in crate::ownership::moves::elements_of(&access, size) {
            *all.entry(element).or_default() += 1;
            by.entry(element).or_default().insert(thread);
            if let Some(own) = lanes.get_mut(thread as usize) {
                own.push(element);
            }
        }
    }
    if all.is_empty() {
        return None;
    }
    // What is behind so many events is before the next.
    let mut tables: Vec<(usize, PartialTable)> = shuffles::tables(kernel, listing, trace);
    tables.extend(shared::tables(kernel, listing, trace));
    tables.sort_by_key(|(event, _)| *event);
    let loaded = [all.values().min(), all.values().max()].map(|n| n.copied().unwrap_or(0));
    Some(Partials {
        array: kernel.buffers[array].name.clone(),
        elements: all.len(),
        loaded,
        folded: reduction::elements(kernel, array, scalars, &by),
        lanes,
        tables: tables.into_iter().take(TABLES).map(|(_, table)| table).collect(),
    })
}

/// The loops around a statement and where they are, in words.
fn around(kernel: &Kernel, rounds: &[(usize, i64)]) -> String {
    let of = |(var, value): &(usize, i64)| format!("{} = {value}", kernel.vars[*var].name);
    rounds.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The type of the number that a statement gives to a variable or stores.
fn given(kernel: &Kernel, stmt: &Stmt) -> Option<Elem> {
    match stmt {
        Stmt::Let { var, .. } | Stmt::Mut { var, .. } | Stmt::Assign { var, .. } => match var.ty {
            Ty::Scalar(elem) => Some(elem),
            _ => None,
        },
        Stmt::Store { target, .. } => Some(kernel.buffers[target.buffer.id].elem),
        _ => None,
    }
}

mod shared;
mod shuffles;
#[cfg(test)]
mod tests;
