//! Report of a faulty launch: the faulty line, the history of the accessed element, and the lanes
//! of the access. History and lanes are reported only for faults in memory accesses of lanes. These
//! include accesses that the simulator refused.

use super::access::{self, Access};
use super::source::{self, SourceLine};
use super::sync::{self, PreventedFault, RemovedSync};
use crate::observation::{LaunchRecord, Observation};
pub use attempt::{Attempt, Lane};
use gemm_bench::cli::Failure;
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedKernel;
use gemm_runtime::Error;
use gemm_runtime::sim::fault::Fault;
use gemm_runtime::sim::watch::{Arguments, Pattern, Trace};
use gemm_runtime::sim::{SimError, Simulation};
use history::{ElementAccess, ElementHistory};
use serde::Serialize;
use std::ops::Range;

/// Maximum number of listed accesses to the element. Earlier accesses are omitted.
const MOST: usize = 12;
/// Order of blocks in the recorded run.
const FIRST: &str = "ascending";
/// Message for a fault in barriers, TMA copies, tensor cores or arithmetic, which is not drawn.
const NO_ACCESS: &str =
    "The faulting access is not an access of lanes to elements in shared or global memory";
/// Message for a fault that occurs only in an order that was not recorded.
const UNSEEN: &str = "The faulting access is not in the recorded trace";

/// Fault of a launch, with its history.
#[derive(Clone, Debug, Serialize)]
pub struct FaultReport {
    /// Macro of the kernel, without its `!`.
    pub family: &'static str,
    pub line: String,
    pub kernel: String,
    /// Removed synchronisation, or `None` for an unmodified kernel.
    pub change: Option<RemovedSync>,
    pub fault: PreventedFault,
    /// Order of blocks or threads in which the fault occurs, if it differs from the recorded order.
    pub turns: Option<String>,
    /// Line of the faulty statement.
    pub at: usize,
    /// Source of the launched kernel.
    pub source: Vec<SourceLine>,
    /// Refused access lane by lane, if the access was refused.
    pub reached: Option<Attempt>,
    /// Accesses to the element in the order of the simulation. Empty if the fault is not in a
    /// memory access.
    pub past: Vec<PastAccess>,
    /// Number of earlier accesses that are not listed.
    pub left_out: usize,
    /// Drawn accesses in the order of the simulation: the faulty access, and the access that it is
    /// not ordered with.
    pub accesses: Vec<HighlightedAccess>,
    /// Message if neither the element nor the lanes are known.
    pub unknown: Option<&'static str>,
}

/// Access with its highlighted lanes.
#[derive(Clone, Debug, Serialize)]
pub struct HighlightedAccess {
    /// Lane that accesses the element, or all refused lanes of a refused access.
    pub lanes: Vec<u32>,
    /// True for the faulty access.
    pub is_fault: bool,
    pub access: Access,
}

/// Access in the history of an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastAccess {
    pub line: usize,
    /// Kind of access in words.
    pub kind: &'static str,
    pub warp: u32,
    pub lane: u32,
    /// Values of the loop variables: `t = 1`.
    pub round: String,
    /// True for the faulty access.
    pub is_fault: bool,
}

/// Launch that is repeated to report its fault.
#[derive(Clone, Copy, Debug)]
pub struct ReplayedLaunch<'a> {
    pub kernel: &'a VerifiedKernel,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    pub arguments: &'a Arguments,
}

/// Reports the fault of a kernel without the synchronisation at a line of its source.
///
/// # Errors
/// Returns [`Failure::Usage`] if the line has no synchronisation, or if this launch does not need
/// it.
pub(super) fn without(
    family: &'static str,
    line: String,
    looked: &Observation,
    at: usize,
) -> Result<FaultReport, Failure> {
    let listing = cuda::listing(&looked.kernel);
    let Some((changed, change)) = sync::changed(&looked.kernel, &listing, at)? else {
        let all = sync::lines(&looked.kernel, &listing);
        let all: Vec<String> = all.iter().map(usize::to_string).collect();
        let known = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        return Err(Failure::Usage(format!(
            "--without {at}: no synchronisation statement begins at this line; lines of this \
             kernel with one: {known}"
        )));
    };
    let launch =
        ReplayedLaunch { kernel: &changed, grid: looked.grid, arguments: &looked.arguments };
    let patience = sync::patience(&looked.profile.total);
    match drawn(family, line, launch, Some(change), patience)? {
        Some(broken) => Ok(broken),
        None => Err(Failure::Usage(format!("--without {at}: this launch has no fault"))),
    }
}

/// Reports the fault of a launch, or `None` if it has none. `patience` is the instruction limit.
///
/// # Errors
/// Returns an error if the arguments do not fit the kernel, or if the launch fails without a fault.
pub fn drawn(
    family: &'static str,
    line: String,
    launch: ReplayedLaunch<'_>,
    change: Option<RemovedSync>,
    patience: u64,
) -> Result<Option<FaultReport>, Failure> {
    let ReplayedLaunch { kernel, grid, arguments } = launch;
    let found = arguments.replay(kernel, &[], patience).map_err(Error::from)?;
    let fault = match found.ran {
        Ok(_) => return Ok(None),
        Err(SimError::Fault(fault)) => fault,
        Err(other) => return Err(Error::from(other).into()),
    };
    let (x, y, z) = fault.block;
    let block = x + grid[0] * (y + grid[1] * z);
    let replay = arguments.replay(kernel, &[block], patience).map_err(Error::from)?;
    let listing = cuda::listing(kernel);
    let mut broken = FaultReport {
        family,
        line,
        kernel: kernel.name.clone(),
        change,
        fault: PreventedFault::new(&fault),
        turns: turns(&fault),
        at: listing.lines[fault.number as usize].start + 1,
        source: source::lines(kernel, &listing.text, &listing.lines, None),
        reached: Attempt::new(kernel, &fault),
        past: Vec::new(),
        left_out: 0,
        accesses: Vec::new(),
        unknown: None,
    };
    let story =
        replay.traces.first().map(|trace| (trace, ElementHistory::new(kernel, trace, &fault)));
    if let Some((trace, Some(story))) = story {
        broken.tell(kernel, &listing.lines, trace, &story);
    }
    broken.light_refused(kernel, &fault);
    if broken.past.is_empty() && broken.reached.is_none() {
        let is_elsewhere = broken.turns.is_some() && history::is_of_element(kernel, &fault);
        broken.unknown = Some(if is_elsewhere { UNSEEN } else { NO_ACCESS });
    }
    Ok(Some(broken))
}

impl LaunchRecord {
    /// Reports the fault of a recorded launch.
    pub(super) fn drawn(
        &self,
        family: &'static str,
        line: String,
    ) -> Result<Option<FaultReport>, Failure> {
        let Self { kernel, grid, arguments } = self;
        let launch = ReplayedLaunch { kernel, grid: *grid, arguments };
        drawn(family, line, launch, None, Simulation::default().instructions)
    }
}

/// Describes the order of blocks or threads in which the fault occurs, unless it is the recorded
/// order.
fn turns(fault: &Fault) -> Option<String> {
    match (fault.order, fault.turns) {
        (Some(order), _) if order != FIRST => Some(format!("the blocks in {order} order")),
        (None, Some(turns)) => Some(format!("the threads of the block in {turns} turns")),
        _ => None,
    }
}

impl FaultReport {
    /// Returns true for the line of the faulty statement.
    pub fn is_at(&self, line: &usize) -> bool {
        self.at == *line
    }

    /// Caption that explains the drawn accesses and the highlighted lanes.
    pub fn order(&self) -> &'static str {
        match &self.accesses[..] {
            [first, _] if first.is_fault => {
                "The faulting access is first, followed by the access that it is not ordered with. \
                 The lane that accesses the element is highlighted."
            }
            [_, _] => {
                "The faulting access is last, preceded by the access that it is not ordered with. \
                 The lane that accesses the element is highlighted."
            }
            _ if self.reached.is_some() => {
                "The faulting access as requested. Lanes with invalid requests are highlighted."
            }
            _ => "The faulting access. The lane that accesses the element is highlighted.",
        }
    }

    /// Adds the history of the element and the pictures. The listed history ends at the last access
    /// and always includes the faulty one.
    fn tell(
        &mut self,
        kernel: &VerifiedKernel,
        lines: &[Range<usize>],
        trace: &Trace,
        story: &ElementHistory<'_>,
    ) {
        let line = |touch: &ElementAccess<'_>| lines[touch.event.stmt as usize].start + 1;
        self.left_out = story.touches.len().saturating_sub(MOST).min(story.own);
        let last = story.touches.iter().enumerate().skip(self.left_out);
        self.past = last
            .map(|(at, touch)| PastAccess {
                line: line(touch),
                kind: access::kind(touch.kind),
                warp: touch.thread / 32,
                lane: touch.thread % 32,
                round: round(kernel, &trace.rounds[touch.event.rounds as usize]),
                is_fault: at == story.own,
            })
            .collect();
        let drawn = story.touches.iter().enumerate();
        let drawn = drawn.filter(|(at, _)| *at == story.own || Some(*at) == story.unordered);
        self.accesses = drawn
            .filter_map(|(at, touch)| {
                let lanes = vec![touch.thread % 32];
                Some(lit(kernel, line(touch), touch.pattern?, lanes, at == story.own))
            })
            .collect();
    }

    /// Adds the picture of a refused access.
    fn light_refused(&mut self, kernel: &VerifiedKernel, fault: &Fault) {
        let pattern = fault.refused.as_ref().and_then(|refused| refused.pattern.as_ref());
        if let (Some(reached), Some(pattern)) = (&self.reached, pattern) {
            let lanes = reached.of_refused().collect();
            self.accesses.push(lit(kernel, self.at, pattern, lanes, true));
        }
    }
}

fn lit(
    kernel: &VerifiedKernel,
    line: usize,
    pattern: &Pattern,
    lanes: Vec<u32>,
    is_fault: bool,
) -> HighlightedAccess {
    HighlightedAccess { lanes, is_fault, access: access::describe(kernel, line, 1, pattern) }
}

/// Formats the values of loop variables: `t = 1`.
fn round(kernel: &VerifiedKernel, rounds: &[(usize, i64)]) -> String {
    let of = |(var, value): &(usize, i64)| format!("{} = {value}", kernel.vars[*var].name);
    rounds.iter().map(of).collect::<Vec<_>>().join(", ")
}

mod attempt;
mod history;
#[cfg(test)]
mod tests;
