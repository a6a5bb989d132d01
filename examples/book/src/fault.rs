//! A launch that came to a fault, drawn: where in the text it is, what was done to the element, and by which lanes; the last two
//! where the fault is in an access of lanes to memory, which need not have been made.

use super::access::{self, Access};
use super::source::{self, SourceLine};
use super::sync::{self, PreventedFault, RemovedSync};
use crate::observation::{LaunchRecord, Observation};
pub use attempt::{Attempt, Lane};
use gemm_bench::cli::Failure;
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedKernel;
use gemm_runtime::fault::Fault;
use gemm_runtime::watch::{Arguments, Pattern, Trace};
use gemm_runtime::{Error, SimError, Simulation};
use history::{ElementAccess, ElementHistory};
use serde::Serialize;
use std::ops::Range;

/// The accesses of an element that are told of at most: the last ones.
const MOST: usize = 12;
/// The order of blocks that is recorded.
const FIRST: &str = "ascending";
/// Why nothing is drawn of a fault: it is in what barriers, box copies and tensor cores do, or in arithmetic.
const NO_ACCESS: &str = "It is in no access that the lanes of a warp make themselves to elements in shared or global memory";
/// Or it is in another order than the one that was recorded.
const UNSEEN: &str = "The access at fault is not among what was seen";

/// A fault, and what led to it.
#[derive(Clone, Debug, Serialize)]
pub struct FaultReport {
    /// The macro that makes the kernel, without its `!`.
    pub family: &'static str,
    /// The spec.
    pub line: String,
    /// The kernel that was launched.
    pub kernel: String,
    /// What of it was left out: the line, the statement and how; nothing of a kernel as it is.
    pub change: Option<RemovedSync>,
    /// The fault.
    pub fault: PreventedFault,
    /// How blocks or threads took turns when it came to that, where they did otherwise in what was seen.
    pub turns: Option<String>,
    /// The line of the statement that it was in.
    pub at: usize,
    /// The text of the kernel that ran.
    pub source: Vec<SourceLine>,
    /// The access at fault lane by lane, where it was not made.
    pub reached: Option<Attempt>,
    /// What was done to the element, in the order in which the simulator came to it; nothing where the fault is not in an access.
    pub past: Vec<PastAccess>,
    /// How many more there were before these.
    pub left_out: usize,
    /// The access that is at fault and the one that nothing orders with it, in the order in which they were seen.
    pub accesses: Vec<HighlightedAccess>,
    /// Why neither the element nor the lanes are known, where they are not.
    pub unknown: Option<&'static str>,
}

/// An access, and the lanes that are lit in it.
#[derive(Clone, Debug, Serialize)]
pub struct HighlightedAccess {
    /// The lane that accesses the element; of an access that was not made all that may not.
    pub lanes: Vec<u32>,
    /// Whether it is the one at fault.
    pub is_fault: bool,
    /// The access.
    pub access: Access,
}

/// An access of an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastAccess {
    /// The line of the text.
    pub line: usize,
    /// What was done.
    pub kind: &'static str,
    /// The warp.
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// Where the loops around it were: `t = 1`.
    pub round: String,
    /// Whether it is the access at fault.
    pub is_fault: bool,
}

/// A launch that is repeated to draw its fault.
#[derive(Clone, Copy, Debug)]
pub struct ReplayedLaunch<'a> {
    /// Its kernel.
    pub kernel: &'a VerifiedKernel,
    /// Its grid.
    pub grid: [u32; 3],
    /// Its arguments.
    pub arguments: &'a Arguments,
}

/// Draws what becomes of a kernel without the synchronisation at a line of its text.
///
/// # Errors
/// A line without a synchronisation, and one that this launch does not need.
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
        let known = if all.is_empty() { "none does".to_owned() } else { all.join(", ") };
        return Err(Failure::Usage(format!(
            "--without {at}: no statement begins there that synchronises; of this kernel's lines: {known}"
        )));
    };
    let launch =
        ReplayedLaunch { kernel: &changed, grid: looked.grid, arguments: &looked.arguments };
    let patience = sync::patience(&looked.profile.total);
    match drawn(family, line, launch, Some(change), patience)? {
        Some(broken) => Ok(broken),
        None => Err(Failure::Usage(format!("--without {at}: no fault is found in this launch"))),
    }
}

/// Draws the fault of a launch; nothing if it has none.
///
/// # Errors
/// Arguments that do not fit the kernel, and whatever else a launch comes to that is no fault.
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
    /// Draws the fault of a kernel that the macro of that name made of a line.
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

/// How blocks or threads took turns, unless as in what is recorded.
fn turns(fault: &Fault) -> Option<String> {
    match (fault.order, fault.turns) {
        (Some(order), _) if order != FIRST => Some(format!("the blocks in {order} order")),
        (None, Some(turns)) => Some(format!("the threads of the block in {turns} turns")),
        _ => None,
    }
}

impl FaultReport {
    /// Whether the fault is in a statement of this line.
    pub fn is_at(&self, line: &usize) -> bool {
        self.at == *line
    }

    /// Which of the accesses that are drawn is which, and what is lit.
    pub fn order(&self) -> &'static str {
        match &self.accesses[..] {
            [first, _] if first.is_fault => {
                "The access at fault comes first, behind it the one that nothing orders with it; lit is the lane that accesses the \
                 element."
            }
            [_, _] => {
                "The access at fault comes last, before it the one that nothing orders with it; lit is the lane that accesses the \
                 element."
            }
            _ if self.reached.is_some() => {
                "The access at fault as it would have been; lit is what lanes ask for that may not have it."
            }
            _ => "The access at fault; lit is the lane that accesses the element.",
        }
    }

    /// Takes over what was done to the element: the last of it, from the access at fault on at the latest, and pictures of that access
    /// and of the one that nothing orders with it.
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

    /// Draws the access that was not made.
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

/// Where loops were: `t = 1`.
fn round(kernel: &VerifiedKernel, rounds: &[(usize, i64)]) -> String {
    let of = |(var, value): &(usize, i64)| format!("{} = {value}", kernel.vars[*var].name);
    rounds.iter().map(of).collect::<Vec<_>>().join(", ")
}

mod attempt;
mod history;
#[cfg(test)]
mod tests;
