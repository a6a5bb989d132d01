//! Partial results of a reduction, step by step. They are bit-exact values of the first block, in a
//! run in which the value of each element is the last digit of its index.
//!
//! ```text
//! trace of that run ──loads──► elements that each lane reduces
//!                   ──words──► values written to shared memory, a column for each step of a tree
//!                   ──lanes──► values exchanged in the first warp, a column for each shuffle
//! ```

use crate::observation::Observation;
use crate::ownership::{ReducedElements, reduction};
use gemm_bench::cli::Failure;
use gemm_dsl::cuda::Listing;
use gemm_dsl::ir::{Elem, Kernel, ParamKind, Stmt, Ty};
use gemm_dsl::target::fp8;
use gemm_runtime::sim::watch::{Kind, Trace, VerifiedKernel};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Number of shown lanes, and of shown words of an array.
const SHOWN: usize = 32;
/// Maximum number of shown steps and tables.
const COLUMNS: usize = 12;
const TABLES: usize = 8;
/// Maximum number of element ranges named for a lane.
const RUNS: usize = 6;

/// Message for a reduction without shown partial results.
pub(super) const NONE: &str =
    "The observed block loads nothing from the array, so it has no partial values.";

/// Partial results of a reduction.
#[derive(Clone, Debug, Serialize)]
pub struct Partials {
    /// Name of the reduced array.
    pub array: String,
    /// Number of elements of the array that the block loads.
    pub elements: usize,
    /// Minimum and maximum number of loads of an element.
    pub loaded: [u64; 2],
    /// Picture of the elements and the threads that load them.
    pub folded: Option<ReducedElements>,
    /// Elements loaded by each lane of the first warp, in order.
    pub lanes: Vec<Vec<u64>>,
    /// Tables of exchanged values, in the order of their first step.
    pub tables: Vec<PartialTable>,
}

/// Steps of one kind, one column for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartialTable {
    /// Line of the first step, counted from 1.
    pub line: usize,
    /// Statement of the first step.
    pub text: String,
    /// Array in shared memory, or `None` for shuffles.
    pub array: Option<String>,
    /// Labels of the rows: words of the array, or lanes.
    pub rows: Vec<String>,
    /// Steps, followed by the stored results.
    pub columns: Vec<PartialStep>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartialStep {
    pub name: String,
    /// Number of threads of the block that write, or number of lanes of the warp whose values are
    /// used.
    pub active: usize,
    /// Value of each row, or `None` if nothing is written.
    pub cells: Vec<Option<PartialValue>>,
}

/// Partial result of a thread or lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartialValue {
    /// Bits of the value, zero-extended.
    pub bits: u64,
    /// Shortest decimal text that identifies the value.
    pub value: String,
    /// Thread that wrote the value.
    pub thread: Option<u32>,
    /// True if the value contributes to the next store of the warp.
    pub counts: bool,
}

impl PartialStep {
    /// Returns the value in a row.
    pub fn cell(&self, row: &usize) -> Option<&PartialValue> {
        self.cells.get(*row)?.as_ref()
    }
}

impl PartialValue {
    /// Builds a value from the bits of an element.
    fn new(elem: Elem, bits: u64, thread: Option<u32>, counts: bool) -> Self {
        Self { bits, value: value(elem, bits), thread, counts }
    }
}

/// Shortest decimal text that identifies a value.
fn value(elem: Elem, bits: u64) -> String {
    match elem {
        Elem::F64 => f64::from_bits(bits).to_string(),
        Elem::F32 | Elem::Tf32 => f32::from_bits(bits as u32).to_string(),
        Elem::F16 => half::f16::from_bits(bits as u16).to_string(),
        Elem::Bf16 => half::bf16::from_bits(bits as u16).to_string(),
        Elem::E4m3 => fp8::e4m3::from_bits(bits as u8).to_string(),
        Elem::E5m2 => fp8::e5m2::from_bits(bits as u8).to_string(),
        Elem::I64 => (bits as i64).to_string(),
        Elem::I32 => (bits as i32).to_string(),
        Elem::I16 => (bits as i16).to_string(),
        Elem::I8 => (bits as i8).to_string(),
        _ => bits.to_string(),
    }
}

impl Partials {
    /// Describes the elements of a lane as ranges.
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

    /// Describes the number of loads of each element.
    pub fn loaded_by(&self) -> String {
        match self.loaded {
            [1, 1] => "each by one thread".to_owned(),
            [least, most] if least == most => format!("each {least} times"),
            [least, most] => format!("each {least} to {most} times"),
        }
    }
}

/// Returns the partial results of a reduction, or `None` if the block loads no element.
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
    // The first array is the reduced one.
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
    // The number is that of the events before the table's first step. Tables are sorted by it.
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

/// Formats the values of the loop variables around a statement.
fn around(kernel: &Kernel, rounds: &[(usize, i64)]) -> String {
    let of = |(var, value): &(usize, i64)| format!("{} = {value}", kernel.vars[*var].name);
    rounds.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Type of the value that a statement assigns or stores.
fn given(kernel: &Kernel, stmt: &Stmt) -> Option<Elem> {
    match stmt {
        Stmt::Let { var, .. } | Stmt::Mut { var, .. } | Stmt::Assign { var, .. } => match var.ty {
            Ty::Scalar(elem) => Some(elem),
            _ => None,
        },
        Stmt::Store { target, .. } | Stmt::StoreRemote { target, .. } => {
            Some(kernel.buffers[target.buffer.id].elem)
        }
        _ => None,
    }
}

mod shared;
mod shuffles;
#[cfg(test)]
mod tests;
