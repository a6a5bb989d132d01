//! What the lanes of an access would have accessed that was not made.

use crate::access;
use crate::wgmma::ranges;
use gemm_dsl::ir::Kernel;
use gemm_runtime::fault::{Fault, Reach, RefusedAccess};
use serde::Serialize;

/// An access that was not made, lane by lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The buffer.
    pub buffer: String,
    /// What would have been done.
    pub kind: &'static str,
    /// The warp.
    pub warp: u32,
    /// Elements of a lane.
    pub width: u32,
    /// The elements of the buffer along each dimension; through a pointer all of its array.
    pub extents: Vec<u64>,
    /// Which array of a list that is, where a pointer says which.
    pub of_list: Option<i128>,
    /// The lanes that take part.
    pub lanes: Vec<Lane>,
}

/// A lane, and what it would have accessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// The lane.
    pub lane: u32,
    /// The `threadIdx` of its thread.
    pub thread: [u32; 2],
    /// Its first element.
    pub element: String,
    /// Whether it may not.
    pub is_refused: bool,
}

impl Attempt {
    /// The access that a fault is about, if it was not made.
    pub(super) fn new(kernel: &Kernel, fault: &Fault) -> Option<Self> {
        let refused = fault.refused.as_deref()?;
        let own = crate::fault::history::number(kernel, fault.thread);
        let buffer = kernel.buffers[refused.buffer].name.clone();
        let lane = |reach: &Reach| {
            let (thread, columns) = (own / 32 * 32 + reach.lane, kernel.geometry.block.0.max(1));
            Lane {
                lane: reach.lane,
                thread: [thread % columns, thread / columns],
                element: element(&buffer, reach),
                is_refused: reach.is_refused,
            }
        };
        Some(Self {
            kind: access::kind(refused.kind),
            warp: own / 32,
            width: refused.width,
            extents: refused.extents.clone(),
            of_list: of_list(refused, own % 32),
            lanes: refused.lanes.iter().map(lane).collect(),
            buffer,
        })
    }

    /// What the buffer has.
    pub fn has(&self) -> String {
        let extents: Vec<String> = self.extents.iter().map(u64::to_string).collect();
        let elements = if self.extents[..] == [1] { "element" } else { "elements" };
        let of_list = self.of_list.map_or(String::new(), |nth| format!(", array {nth} of it,"));
        format!("{of_list} has {} {elements}", extents.join(" × "))
    }

    /// The lanes that may not access what they ask for, in words.
    pub fn refused(&self) -> String {
        let all: Vec<u32> = self.of_refused().collect();
        let word = if all.len() == 1 { "Lane" } else { "Lanes" };
        format!("{word} {}", ranges(all))
    }

    /// Those lanes.
    pub fn of_refused(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().filter(|lane| lane.is_refused).map(|lane| lane.lane)
    }
}

/// Which array of a list a lane points into: its index has one number more than the array has extents.
fn of_list(refused: &RefusedAccess, lane: u32) -> Option<i128> {
    let reach = refused.lanes.iter().find(|reach| reach.lane == lane)?;
    let is_of_list = reach.index.len() > refused.extents.len();
    reach.index.first().copied().filter(|_| is_of_list)
}

fn element(buffer: &str, reach: &Reach) -> String {
    if reach.index.is_empty() && reach.at.is_none() {
        return "none: its pointer was never set".to_owned();
    }
    let index = reach.index.iter().map(|i| format!("[{i}]"));
    buffer.to_owned() + &index.collect::<String>()
}
