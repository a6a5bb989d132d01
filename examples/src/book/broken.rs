//! A launch that came to a fault, drawn: where in the text it is, what was done to the element, and by which lanes; the last two
//! where the fault is in an access of a thread.

mod own;

use super::access::{self, Access};
use super::source::{self, Line};
use super::sync::{self, Prevented};
use crate::cli::Failure;
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedKernel;
use gemm_runtime::fault::{Earlier, Fault, FaultKind};
use gemm_runtime::watch::{Accessed, Arguments, Kind, Trace};
use gemm_runtime::{Error, SimError};
use serde::Serialize;

/// The accesses of an element that are told of at most: the last ones.
const MOST: usize = 12;

/// A fault, and what led to it.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// The macro that makes the kernel, without its `!`.
    pub family: &'static str,
    /// The spec.
    pub line: String,
    /// The kernel that was launched.
    pub kernel: String,
    /// What of it was left out: the line, the statement and how; nothing of a kernel as it is.
    pub change: Option<Change>,
    /// The fault.
    pub fault: Prevented,
    /// The line of the statement that it was in, where that is known.
    pub at: Option<usize>,
    /// The text of the kernel that ran.
    pub source: Vec<Line>,
    /// What was done to the element, in the order in which the simulator came to it; nothing where the fault is not in an access.
    pub past: Vec<Past>,
    /// How many more there were before these.
    pub left_out: usize,
    /// The access that is at fault, and the one that nothing orders with it, in that order.
    pub accesses: Vec<Lit>,
}

/// An access, and a lane that is lit in it.
#[derive(Clone, Debug, Serialize)]
pub struct Lit {
    /// The lane that accesses the element.
    pub lane: u32,
    /// Whether it is the one at fault.
    pub is_fault: bool,
    /// The access.
    pub access: Access,
}

/// What was left out of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The line, as the text of the whole kernel has it.
    pub line: usize,
    /// The statement.
    pub text: String,
    /// How it was changed.
    pub change: &'static str,
}

/// An access of an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Past {
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
    /// What is said of it: that this is the fault, if it is.
    pub is_fault: bool,
}

/// Draws what becomes of a kernel without the synchronisation at a line of its text.
///
/// # Errors
/// A line without a synchronisation, and one that this launch does not need.
pub(super) fn without(
    (family, line): (&'static str, String),
    looked: &super::gather::Looked,
    at: usize,
) -> Result<Broken, Failure> {
    let listing = cuda::listing(&looked.kernel);
    let Some((changed, change)) = sync::changed(&looked.kernel, &listing, at)? else {
        let all = sync::lines(&looked.kernel, &listing);
        let all: Vec<String> = all.iter().map(usize::to_string).collect();
        let known = if all.is_empty() { "none does".to_owned() } else { all.join(", ") };
        return Err(Failure::Usage(format!(
            "--without {at}: no statement begins there that synchronises; of this kernel's lines: {known}"
        )));
    };
    let launch = (&changed, looked.grid, &looked.arguments);
    let patience = sync::patience(&looked.profile.total);
    match drawn((family, line), launch, Some(change), patience)? {
        Some(broken) => Ok(broken),
        None => Err(Failure::Usage(format!("--without {at}: no fault is found in this launch"))),
    }
}

/// Draws the fault of a launch; nothing if it has none.
///
/// # Errors
/// Arguments that do not fit the kernel, and whatever else a launch comes to that is no fault.
pub(super) fn drawn(
    (family, line): (&'static str, String),
    (kernel, grid, arguments): (&VerifiedKernel, [u32; 3], &Arguments),
    change: Option<Change>,
    patience: u64,
) -> Result<Option<Broken>, Failure> {
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
    let mut broken = Broken {
        family,
        line,
        kernel: kernel.name.clone(),
        change,
        fault: Prevented::of(&fault),
        at: None,
        source: source::lines(kernel, &listing.text, &listing.lines, None),
        past: Vec::new(),
        left_out: 0,
        accesses: Vec::new(),
    };
    if let Some(trace) = replay.traces.first() {
        broken.remember(kernel, &arguments.scalars(kernel), &listing.lines, trace, &fault);
    }
    Ok(Some(broken))
}

impl Broken {
    /// Whether the fault is in a statement of this line.
    pub fn is_at(&self, line: &usize) -> bool {
        self.at == Some(*line)
    }

    /// Which of the accesses that are drawn is which.
    pub fn order(&self) -> &'static str {
        match &self.accesses[..] {
            [first, _] if first.is_fault => {
                "The access at fault comes first, behind it the one that nothing orders with it"
            }
            [_, _] => {
                "The access at fault comes last, before it the one that nothing orders with it"
            }
            _ => "The access at fault",
        }
    }

    /// What the trace knows of the fault: its line, and if it is in an access, what was done to the element.
    fn remember(
        &mut self,
        kernel: &VerifiedKernel,
        scalars: &[Option<u64>],
        lines: &[std::ops::Range<usize>],
        trace: &Trace,
        fault: &Fault,
    ) {
        let all: Vec<Accessed<'_>> = trace.accesses().collect();
        let Some((of_fault, element)) = own::access(kernel, scalars, &all, fault) else {
            self.at = own::statement(kernel, trace, fault).map(|number| lines[number].start + 1);
            return;
        };
        let number = |access: &Accessed<'_>| lines[access.event.stmt as usize].start + 1;
        let (thread, own) = (own::number(kernel, fault.thread), &all[of_fault]);
        self.at = Some(number(own));
        let touching = |access: &'_ &Accessed<'_>| {
            let of_buffer = access.pattern.buffer == own.pattern.buffer;
            let all = own::elements(kernel, access).into_iter();
            all.filter(|(_, at)| of_buffer && *at == element)
                .map(|(thread, _)| thread)
                .collect::<Vec<u32>>()
        };
        let past: Vec<(Vec<u32>, &Accessed<'_>)> = all
            .iter()
            .map(|access| (touching(&access), access))
            .filter(|(threads, _)| !threads.is_empty())
            .collect();
        // The one that nothing orders with it, as the fault names its thread.
        let other = earlier(&fault.kind).filter(|other| other.block == fault.block);
        let other = other.map(|of| (own::number(kernel, of.thread), of.wrote));
        let is_read =
            |access: &Accessed<'_>| matches!(access.pattern.kind, Kind::Load | Kind::CopyRead);
        let unordered = past.iter().rposition(|(threads, access)| {
            let is_own = std::ptr::eq(*access, own);
            other.is_some_and(|(of, wrote)| threads.contains(&of) && wrote != is_read(access))
                && !is_own
        });
        let at_fault = past.iter().position(|(_, access)| std::ptr::eq(*access, own));
        self.left_out = past.len().saturating_sub(MOST).min(at_fault.unwrap_or(0));
        for (at, (threads, access)) in past.iter().enumerate() {
            let is_fault = Some(at) == at_fault;
            let thread = match other {
                _ if is_fault => thread,
                Some((of, _)) if Some(at) == unordered => of,
                _ => threads[0],
            };
            if is_fault || Some(at) == unordered {
                let access = access::of(kernel, (number(access), 1), access.pattern);
                self.accesses.push(Lit { lane: thread % 32, is_fault, access });
            }
            if at < self.left_out {
                continue;
            }
            let rounds = &trace.rounds[access.event.rounds as usize];
            let round =
                |(var, value): &(usize, i64)| format!("{} = {value}", kernel.vars[*var].name);
            self.past.push(Past {
                line: number(access),
                kind: access::kind(access.pattern.kind),
                warp: thread / 32,
                lane: thread % 32,
                round: rounds.iter().map(round).collect::<Vec<_>>().join(", "),
                is_fault,
            });
        }
    }
}

/// The access that a fault says is not ordered with its own.
fn earlier(kind: &FaultKind) -> Option<&Earlier> {
    match kind {
        FaultKind::Race { earlier, .. } | FaultKind::CopyNotAwaited { earlier, .. } => {
            Some(earlier)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
