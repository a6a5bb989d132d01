//! Decisions of a plan, as text for human readers.

use crate::target::arch::WARP;

/// One decision of a plan: name, value, reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    pub name: String,
    pub value: String,
    /// Reason for the value; empty if the spec states the value explicitly.
    pub reason: &'static str,
}

/// Value in a plan with the reason for it. The reason is empty if the spec states the value
/// explicitly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided<T> {
    pub value: T,
    pub why: &'static str,
}

pub(super) const fn decided<T: Copy>(value: T, why: &'static str) -> Decided<T> {
    Decided { value, why }
}

/// List of decisions, in reading order.
pub(super) struct Decisions(Vec<Decision>);

impl Decisions {
    /// Starts a list with the threads per block, the first decision of every plan.
    pub fn of_block(threads: u32) -> Self {
        let mut decisions = Self(Vec::new());
        decisions.say("threads", format!("{threads} ({} warps)", threads.div_ceil(WARP)));
        decisions
    }

    /// Adds a decision that the spec states explicitly.
    pub fn say(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.because(name, value, "");
    }

    /// Adds a decision with its reason.
    pub fn because(
        &mut self,
        name: impl Into<String>,
        value: impl Into<String>,
        reason: &'static str,
    ) {
        self.0.push(Decision { name: name.into(), value: value.into(), reason });
    }

    pub fn finish(self) -> Vec<Decision> {
        self.0
    }
}
