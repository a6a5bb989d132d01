//! Model check of the race detector on small random programs. Their interleavings are enumerated
//! one by one, and the detector is compared with the definition of a race.
//!
//! * The detector receives the events of each interleaving. It must report a race at the very event
//!   that completes one, between two accesses that race, and nothing else.
//! * The program also runs as a kernel on the simulator. Any race it reports must exist in some
//!   interleaving. If its orders and turns reach every order of the atomics, it must find a race
//!   whenever one exists. If no order depends on the interleaving, it must agree with the
//!   definition in every interleaving.
//!
//! A program with a disagreement is shrunk and printed with its seed.

mod definition;
mod detector;
mod generate;
mod graph;
mod interleave;
mod kernel;
mod planted;
mod program;
mod simulated;
mod verdict;

use super::super::launch::Launch;
use super::super::{launch, lower};
use crate::race::access_history::AccessHistory;
use detector::{Blocks, Detector};
pub(super) use generate::Random;
use interleave::Grain;
use program::Program;
use simulated::Outcome;
use std::cell::RefCell;
use std::rc::Rc;
use verdict::{Trace, interleavings};

/// Programs of each check, with seeds from `FIRST_SEED` on.
const PROGRAMS: usize = 3000;
const FIRST_SEED: u64 = 20_260_101;

/// Maximum number of interleavings to enumerate, for a random program and for an injected fault.
const FEW: u128 = 150;
const MANY: u128 = 5000;

/// Number of occurrences of each verdict.
#[derive(Default)]
struct Tally {
    racy: usize,
    clean: usize,
}

impl Tally {
    fn count(&mut self, racy: bool) {
        if racy { self.racy += 1 } else { self.clean += 1 }
    }

    /// Asserts that each verdict occurs at least every fifth time.
    fn assert_both(&self, of: &str) {
        let Self { racy, clean } = self;
        let seeds = gemm_cases::seeds(PROGRAMS);
        println!("{of}: {racy} with a race, {clean} without, seeds {FIRST_SEED} + {seeds:?}");
        assert!(5 * racy.min(clean) >= racy + clean, "{of}: {racy} with a race, {clean} without");
    }
}

/// Checks all programs. A failing program is shrunk statement by statement and printed.
fn check(mut disagreement: impl FnMut(&Program, u128) -> Option<String>) {
    let seeds = gemm_cases::seeds(PROGRAMS).map(|seed| FIRST_SEED + seed);
    let random = seeds.map(|seed| (seed, generate::program(&mut Random::new(seed)), FEW));
    let planted = (0..).zip(planted::planted()).map(|(seed, p)| (seed, p, MANY));
    for (seed, mut program, all) in planted.chain(random) {
        let Some(mut why) = disagreement(&program, all) else { continue };
        let mut fails = |p: Program| disagreement(&p, all).map(|why| (p, why));
        while let Some(smaller) = program.smaller().into_iter().find_map(&mut fails) {
            (program, why) = smaller;
        }
        panic!("seed {seed}:\n{program}{why}");
    }
}

/// Difference between the detector and the definition for one interleaving.
fn of_detector(detector: &mut Detector<'_>, trace: &Trace<'_>) -> Option<String> {
    detector.begin();
    let reports = trace.events.iter().map(|event| detector.happen(event));
    let found = reports.enumerate().find_map(|(at, report)| report.map(|r| (at, r)));
    let expected = !trace.races.is_empty();
    let agree = match found {
        None => !expected,
        Some((at, pair)) => at + 1 == trace.events.len() && trace.races.contains(&pair),
    };
    let described = || {
        let events: String = trace.events.iter().map(|e| format!("    {e:?}\n")).collect();
        format!("{events}by definition: {:?}\nreported: {found:?}", trace.races)
    };
    (!agree).then(described)
}

#[test]
fn the_detector_reports_what_is_a_race_by_definition() {
    let mut tally = Tally::default();
    check(|program, all| {
        let kernel = kernel::kernel(program);
        let launch = Launch::new(&kernel, &kernel::given(), &[]).expect("the arguments fit");
        let code = lower::lower(&launch);
        let words = Rc::new(RefCell::new(AccessHistory::default()));
        let mut speaking = program
            .communicates()
            .then(|| Detector::new(&launch, &code, Blocks::Speaking(Rc::clone(&words))));
        let mut wrong = None;
        for grain in [Grain::Threads, Grain::Warps] {
            interleavings(program, (grain, all), &mut |trace| {
                tally.count(trace.has_race());
                if wrong.is_some() {
                    return;
                }
                if let Some(detector) = &mut speaking {
                    wrong = of_detector(detector, trace);
                    return;
                }
                let grid = detector::grid_race(&launch, &code);
                wrong =
                    of_detector(&mut Detector::new(&launch, &code, Blocks::Isolated(&grid)), trace);
                // Races between blocks count only if no block has a fault of its own.
                let found = grid.conflict().map(|conflict| detector::between(&conflict));
                let agree = found.map_or(trace.between.is_empty(), |f| trace.between.contains(&f));
                if wrong.is_none() && trace.races.is_empty() && !agree {
                    wrong =
                        Some(format!("between blocks: {:?}\nreported: {found:?}", trace.between));
                }
            });
        }
        wrong
    });
    tally.assert_both("interleavings");
}

#[test]
fn the_simulator_finds_what_is_a_race_by_definition() {
    let mut tally = Tally::default();
    let (mut exact, mut reached, mut beyond, mut elsewhere) = (0, 0, 0, 0);
    check(|program, all| {
        let launched = launch(&kernel::kernel(program), &kernel::buffers(), &[]);
        let outcome = Outcome::of(&launched);
        let found = matches!(outcome, Outcome::Race(_));
        tally.count(found);
        if outcome == Outcome::Rounds && !program.meets_anew() {
            return Some("a barrier of one round is said to have had another".to_owned());
        }
        let (mut racy, mut clean, mut stuck) = (false, false, false);
        interleavings(program, (Grain::Threads, all), &mut |trace| {
            stuck |= trace.is_stuck();
            *(if trace.has_race() { &mut racy } else { &mut clean }) = true;
        });
        let told = || format!("racy {racy}, clean {clean} in some interleaving, found {found}");
        // A reported race must exist in some interleaving, provided that all were enumerated.
        let few = verdict::are_few(program, (Grain::Threads, all));
        if few && found && !racy {
            return Some(told());
        }
        // A deadlocked block is reported even if another block would have raced.
        stuck |= outcome == Outcome::Deadlock;
        if program.meets_anew() || stuck || !program.is_in_reach() {
            beyond += 1;
            elsewhere += usize::from(racy && !found);
            return None;
        }
        if program.has_atomics() {
            reached += 1;
            return (racy && !found).then(told);
        }
        exact += 1;
        (racy != found || clean == found).then(told)
    });
    println!("{exact} programs have one verdict in all interleavings");
    println!("{reached} have atomics that come in every order they may");
    println!("{elsewhere} of {beyond} others race only where the simulator's orders do not lead");
    let all = exact + reached + beyond;
    assert!(10 * reached > all, "{reached} of {all}");
    assert!(20 * elsewhere < beyond, "{elsewhere} of {beyond}");
    tally.assert_both("programs");
}
