//! Faults of schedules name the rank, the step and the conflict.

use super::by_columns;
use crate::plan::*;

/// Three ranks with two rows of A and two columns of B and C each. The first rank receives A in
/// slots.
fn rotating() -> Schedule {
    Schedule::new(by_columns(6), 3, Strategy::Rotate).unwrap().into_inner()
}

/// Fault of a schedule after a change.
fn fault(change: impl FnOnce(&mut Schedule)) -> String {
    let mut schedule = rotating();
    change(&mut schedule);
    schedule.verify().unwrap_err().to_string()
}

fn product(rows: std::ops::Range<usize>, a: Place) -> Step {
    Step::Multiply { block: Block::new(rows, 0..2), a, b: Place::Shard }
}

#[test]
fn a_schedule_is_what_it_is_taken_for() {
    let begin_and_wait =
        [Step::Begin(0), Step::Begin(1), product(0..2, Place::Shard), Step::Wait(0)];
    let rest = [product(2..4, Place::Slot(0)), Step::Wait(1), product(4..6, Place::Slot(1))];
    assert_eq!(rotating().steps[0], [&begin_and_wait[..], &rest[..]].concat());
}

#[test]
fn faults_of_moves() {
    let of = |change: fn(&mut Move)| fault(|schedule| change(&mut schedule.exchanges[0].moves[0]));
    assert_eq!(of(|of| of.from = 3), "rank 3: there is no rank 3");
    assert_eq!(
        of(|of| of.from = 2),
        "exchange 0: 2 -> 0 [2..4, 0..6] into slot 0: the sender does not have all of the block"
    );
    assert_eq!(
        of(|of| of.into = Place::Shard),
        "exchange 0: 1 -> 0 [2..4, 0..6] into shard: a shard must not be overwritten"
    );
    assert_eq!(
        of(|of| of.block.rows.end = 2),
        "exchange 0: 1 -> 0 [2..2, 0..6] into slot 0: the block is empty"
    );
    let distributions = Distributions { c: Distribution::rows(6, 6), ..by_columns(6) };
    let mut needless = Schedule::new(distributions, 3, Strategy::Sequential).unwrap().into_inner();
    let block = Block::new(2..4, 0..6);
    let more = Move { from: 1, to: 0, block, into: Place::Gathered };
    needless.exchanges.push(Exchange { factor: Factor::A, moves: vec![more] });
    assert_eq!(
        needless.verify().unwrap_err().to_string(),
        "exchange 1: 1 -> 0 [2..4, 0..6] into gathered: the receiver does not need all of the block"
    );
    let twice = fault(|schedule| {
        let again = schedule.exchanges[0].moves[0].clone();
        schedule.exchanges[0].moves.push(again);
    });
    assert_eq!(twice, "rank 0: [2..4, 0..6] and [2..4, 0..6] of A have elements in common");
}

#[test]
fn faults_of_exchanges() {
    let of = |change: fn(&mut Vec<Step>)| fault(|schedule| change(&mut schedule.steps[0]));
    assert_eq!(of(|steps| steps[0] = Step::Begin(2)), "rank 0: there is no exchange 2");
    assert_eq!(
        of(|steps| steps.swap(0, 1)),
        "rank 0, exchange 0: the rank begins a later exchange, but others wait for this one"
    );
    assert_eq!(
        of(|steps| steps[1] = Step::Begin(0)),
        "rank 0, exchange 0: the rank has no part in this exchange, or began it before"
    );
    assert_eq!(
        of(|steps| steps[0] = Step::Wait(0)),
        "rank 0, exchange 0: the rank waits for an exchange that it has not begun"
    );
    // The rank has no more steps, but other ranks wait for it.
    assert_eq!(
        of(Vec::clear),
        "rank 0, exchange 0: the rank never begins this exchange, for which others wait"
    );
}

#[test]
fn faults_of_slots() {
    let one_slot = fault(|schedule| {
        for of in schedule.exchanges.iter_mut().flat_map(|exchange| &mut exchange.moves) {
            of.into = Place::Slot(7);
        }
    });
    let text = "rank 0: exchange 1 writes to slot 7 of A before the wait for exchange 0, which \
                fills it";
    assert_eq!(one_slot, text);
    // The third exchange's fault names the second.
    let distributions = by_columns(8);
    let mut three = Schedule::new(distributions, 4, Strategy::Rotate).unwrap().into_inner();
    for of in &mut three.exchanges[2].moves {
        of.into = Place::Slot(1);
    }
    let fault = three.verify().unwrap_err();
    let ScheduleFault::Unawaited { rank: 0, exchange: 2, before: 1, factor: Factor::A, slot: 1 } =
        fault
    else {
        panic!("{fault}")
    };
}

#[test]
fn faults_of_products() {
    let of = |change: fn(&mut Vec<Step>)| fault(|schedule| change(&mut schedule.steps[0]));
    let late = "rank 0 multiplies with [2..4, 0..6] of A, but not all of it is in place `slot 0` \
        at that time (missing or overwritten)";
    let no_wait = |steps: &mut Vec<Step>| {
        steps.remove(3);
    };
    assert_eq!(of(no_wait), late);
    let elsewhere = "rank 0 multiplies with [2..4, 0..6] of A, but not all of it is in place \
                     `gathered` at that time";
    assert_eq!(of(|steps| steps[4] = product(2..4, Place::Gathered)), elsewhere);
    let own = "rank 0 multiplies with [2..4, 0..6] of A, but not all of it is in place `shard`";
    assert_eq!(of(|steps| steps[4] = product(2..4, Place::Shard)), own);
    let twice = "rank 0: [0..2, 0..2] and [1..2, 0..2] of C have elements in common";
    assert_eq!(of(|steps| steps.push(product(1..2, Place::Shard))), twice);
    let missing = "rank 0 computes 10 of the 12 elements of its shard of C";
    assert_eq!(of(|steps| steps[2] = product(0..1, Place::Shard)), missing);
    for rows in [0..0, 5..7] {
        let text = format!(
            "rank 0 computes [{}..{}, 0..2] of C, which is not a part of its shard, [0..6, 0..2]",
            rows.start, rows.end
        );
        assert_eq!(fault(|schedule| schedule.steps[0].push(product(rows, Place::Shard))), text);
    }
    // K is 0, but there is no slot either.
    let distributions = Distributions {
        a: Distribution::rows(6, 0),
        b: Distribution::cols(0, 6),
        c: Distribution::cols(6, 6),
    };
    let mut none = Schedule::new(distributions, 3, Strategy::Rotate).unwrap().into_inner();
    none.steps[0] = vec![product(0..6, Place::Slot(0))];
    assert!(matches!(none.verify(), Err(ScheduleFault::Read { rank: 0, factor: Factor::A, .. })));
}

#[test]
fn gathers_need_at_least_one_part() {
    let strategy = Strategy::Gather { parts: 0 };
    // The fault is reported even if no data is missing.
    for ranks in [1, 3] {
        let fault = Schedule::new(by_columns(6), ranks, strategy).unwrap_err();
        assert_eq!(fault, ScheduleFault::NoParts { strategy });
        assert_eq!(
            fault.to_string(),
            "`gather in 0`: missing blocks are gathered in at least 1 part"
        );
    }
}
