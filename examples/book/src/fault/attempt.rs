//! Lanes of a refused access.

use crate::access;
use crate::wgmma::ranges;
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::fault::{Fault, Reach, RefusedAccess};
use serde::Serialize;

/// Refused access, lane by lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    pub buffer: String,
    /// Kind of access in words.
    pub kind: &'static str,
    /// Number of the warp in its block.
    pub warp: u32,
    /// Number of consecutive elements accessed by each lane.
    pub width: u32,
    /// Extents of the buffer. For a pointer, the extent of its whole array.
    pub extents: Vec<u64>,
    /// Index of the array in a pointer list, if the access goes through a list.
    pub of_list: Option<i128>,
    pub lanes: Vec<Lane>,
}

/// Lane of a refused access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    pub lane: u32,
    /// `threadIdx.x` and `threadIdx.y` of the lane's thread.
    pub thread: [u32; 2],
    /// First element of the lane.
    pub element: String,
    /// True if this lane's access is refused.
    pub is_refused: bool,
}

impl Attempt {
    /// Returns the refused access of a fault, if it has one.
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

    /// Describes the extents of the buffer.
    pub fn has(&self) -> String {
        let extents: Vec<String> = self.extents.iter().map(u64::to_string).collect();
        let elements = if self.extents[..] == [1] { "element" } else { "elements" };
        let of_list = self.of_list.map_or(String::new(), |nth| format!(": array {nth}"));
        format!("{of_list} has {} {elements}", extents.join(" × "))
    }

    /// Describes the lanes whose access is refused.
    pub fn refused(&self) -> String {
        let all: Vec<u32> = self.of_refused().collect();
        let word = if all.len() == 1 { "Lane" } else { "Lanes" };
        format!("{word} {}", ranges(all))
    }

    pub fn of_refused(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().filter(|lane| lane.is_refused).map(|lane| lane.lane)
    }
}

/// Returns the index in the list of the array that a lane accesses. An access through a list has
/// one index more than the array has extents.
fn of_list(refused: &RefusedAccess, lane: u32) -> Option<i128> {
    let reach = refused.lanes.iter().find(|reach| reach.lane == lane)?;
    let is_of_list = reach.index.len() > refused.extents.len();
    reach.index.first().copied().filter(|_| is_of_list)
}

fn element(buffer: &str, reach: &Reach) -> String {
    if reach.index.is_empty() && reach.at.is_none() {
        return "none: its pointer was not set".to_owned();
    }
    let index = reach.index.iter().map(|i| format!("[{i}]"));
    buffer.to_owned() + &index.collect::<String>()
}
