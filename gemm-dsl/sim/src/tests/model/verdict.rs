//! Verdict of the definition on an interleaving, and enumeration of interleavings.

use super::definition::Definition;
use super::generate::Random;
use super::graph::Pair;
use super::interleave::{Event, Grain, Machine};
use super::program::Program;

/// Interleaving up to its end or its first race.
#[derive(Clone)]
pub(super) struct Trace<'p> {
    isolated: bool,
    pub(super) machine: Machine<'p>,
    definition: Definition,
    pub(super) events: Vec<Event>,
    /// Races of the last event.
    pub(super) races: Vec<Pair>,
    /// Races between isolated blocks, which are reported only at the end of the launch.
    pub(super) between: Vec<Pair>,
}

impl<'p> Trace<'p> {
    pub(super) fn new(program: &'p Program, grain: Grain) -> Self {
        Self {
            isolated: !program.communicates(),
            machine: Machine::new(program, grain),
            definition: Definition::new(program),
            events: Vec::new(),
            races: Vec::new(),
            between: Vec::new(),
        }
    }

    /// Executes a step of an agent. Returns true if the step has events.
    pub(super) fn step(&mut self, agent: usize) -> bool {
        let events = self.machine.step(agent);
        let happened = !events.is_empty();
        for event in events {
            let mut races = self.definition.happen(&event);
            if self.isolated {
                let between = races.extract_if(.., |pair| pair.thread.0 != pair.earlier.0);
                let plain = |pair| Pair { in_flight: false, ..pair };
                self.between.extend(between.map(plain));
            }
            self.events.push(event);
            if !races.is_empty() {
                self.races = races;
                break;
            }
        }
        happened
    }

    pub(super) fn has_race(&self) -> bool {
        !self.races.is_empty() || !self.between.is_empty()
    }

    /// True if the interleaving ends with waiting threads.
    pub(super) fn is_stuck(&self) -> bool {
        self.races.is_empty() && !self.machine.is_done()
    }

    /// Agents that can make the next step. Isolated blocks run one after the other.
    fn choices(&self) -> Vec<usize> {
        let mut ready = self.machine.ready();
        let block = |i: &usize| self.machine.agents[*i].block;
        if let Some(first) = ready.iter().map(block).min().filter(|_| self.isolated) {
            ready.retain(|i| block(i) == first);
        }
        if self.races.is_empty() { ready } else { Vec::new() }
    }
}

/// Sample size if there are too many interleavings to enumerate.
const DRAWN: usize = 24;

/// Calls `each` with every interleaving if there are at most `all`, otherwise with a random sample.
pub(super) fn interleavings<'p>(
    program: &'p Program,
    (grain, all): (Grain, u128),
    each: &mut impl FnMut(&Trace<'p>),
) {
    let start = Trace::new(program, grain);
    if are_few(program, (grain, all)) {
        return through(start, each);
    }
    let mut random = Random::new(1);
    for _ in 0..DRAWN {
        let mut trace = start.clone();
        loop {
            let choices = trace.choices();
            if choices.is_empty() {
                break;
            }
            trace.step(random.of(&choices));
        }
        each(&trace);
    }
}

/// True if there are at most `all` interleavings.
pub(super) fn are_few(program: &Program, (grain, all): (Grain, u128)) -> bool {
    at_most(program, &Machine::new(program, grain)) <= all
}

/// Enumerates all continuations of a trace.
fn through<'p>(trace: Trace<'p>, each: &mut impl FnMut(&Trace<'p>)) {
    let choices = trace.choices();
    if choices.is_empty() {
        each(&trace);
    }
    for choice in choices {
        let mut next = trace.clone();
        next.step(choice);
        through(next, each);
    }
}

/// Upper bound on the number of interleavings, ignoring all waits.
fn at_most(program: &Program, machine: &Machine<'_>) -> u128 {
    let (mut ways, mut all) = (1u128, 0);
    for agent in &machine.agents {
        let items = &program.blocks[agent.block as usize];
        let own = items.iter().filter(|item| item.concerns(agent.warp)).count() as u128;
        for i in 1..=own {
            all += 1;
            ways = ways.saturating_mul(all) / i;
        }
    }
    ways
}
