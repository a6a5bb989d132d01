//! Outcome of a tiny program's launch on the simulator.

use super::detector::race;
use super::graph::Pair;
use crate::{Counters, FaultKind, SimError};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Any of these races was reported.
    Race(Vec<Pair>),
    Deadlock,
    /// A named barrier whose rounds may overlap was reported.
    Rounds,
    Done,
}

impl Outcome {
    /// Classifies the result of a launch.
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
