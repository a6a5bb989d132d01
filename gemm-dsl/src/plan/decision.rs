//! What a plan decided, for people to read.

use crate::target::arch::WARP;

/// One decision of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// What was to be decided.
    pub name: String,
    /// How it was decided.
    pub value: String,
    /// Why, where the spec does not say it in so many words; else empty.
    pub reason: &'static str,
}

/// A fact of a plan, with the reason that the deciding code gives; empty where the spec says it in so
/// many words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided<T> {
    pub value: T,
    pub why: &'static str,
}

/// What was decided, and why.
pub(super) const fn decided<T: Copy>(value: T, why: &'static str) -> Decided<T> {
    Decided { value, why }
}

/// Decisions in the order in which they are read.
pub(super) struct Decisions(Vec<Decision>);

impl Decisions {
    /// None but the number of a block's threads, with which every plan begins.
    pub fn of_block(threads: u32) -> Self {
        let mut decisions = Self(Vec::new());
        decisions.say("threads", format!("{threads} ({} warps)", threads.div_ceil(WARP)));
        decisions
    }

    /// Adds one that the spec names.
    pub fn say(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.because(name, value, "");
    }

    /// Adds one with its reason.
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
