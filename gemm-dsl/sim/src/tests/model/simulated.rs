//! How the simulator ends a launch of a tiny program.

use super::detector::race;
use super::graph::Pair;
use crate::{Counters, FaultKind, SimError};

/// How a launch ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// With one of these races.
    Race(Vec<Pair>),
    Deadlock,
    /// With a barrier whose rounds may run into one another.
    Rounds,
    Done,
}

impl Outcome {
    /// That of a launch.
    pub(super) fn of(launched: &Result<Counters, SimError>) -> Self {
        let fault = match launched {
            Ok(_) => return Outcome::Done,
            Err(SimError::Fault(fault)) => fault,
            Err(other) => panic!("a tiny program is a valid kernel: {other}"),
        };
        match &fault.kind {
            FaultKind::Deadlock { .. } => Outcome::Deadlock,
            FaultKind::NamedBarrierTooEarly { .. } => Outcome::Rounds,
            kind => {
                let found = race((fault.block.0, fault.thread.0), kind);
                Outcome::Race(vec![found.unwrap_or_else(|| panic!("a race was expected: {fault}"))])
            }
        }
    }
}
