//! Mutated schedules are rejected or still correct.

use super::run::is_right;
use super::{case, rotating};
use crate::plan::*;
use fastrand::Rng;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Mutation of a schedule. `None` if it does not apply.
type Mutation = fn(&mut Schedule, &mut Rng) -> Option<()>;

/// Mutations, each with the minimum share that must be rejected.
const MUTATIONS: [(&str, Mutation, f64); 19] = [
    ("a wait is dropped", drop_wait, 0.95),
    ("a wait comes after the product", late_wait, 0.95),
    ("a wait comes before its begin", early_wait, 1.0),
    ("a begin is missing", drop_begin, 1.0),
    ("a begin is made instead of another", begin_instead, 1.0),
    ("two begins are exchanged", swap_begins, 1.0),
    ("a block that is moved is shifted", shift_move, 0.95),
    ("a block that is multiplied is shifted", shift_product, 1.0),
    ("a move is missing", drop_move, 1.0),
    ("a move is made twice", move_twice, 0.9),
    ("a move is made instead of another", move_instead, 0.95),
    ("who sends does not have it", wrong_sender, 1.0),
    ("somebody else gets it", wrong_receiver, 1.0),
    ("somebody gets what he does not need", needless, 0.95),
    ("a product is made twice", multiply_twice, 1.0),
    ("a product is missing", drop_product, 1.0),
    ("a slot is used too early", early_slot, 0.95),
    ("one slot for all", one_slot, 0.95),
    ("a product reads elsewhere", wrong_place, 0.95),
];

fn any<'a, T>(rng: &mut Rng, all: &'a [T]) -> Option<&'a T> {
    (!all.is_empty()).then(|| &all[rng.usize(0..all.len())])
}

/// Rank and index of a random step of a kind.
fn any_step(
    schedule: &Schedule,
    rng: &mut Rng,
    kind: impl Fn(&Step) -> bool,
) -> Option<(usize, usize)> {
    let of_rank = |(rank, steps): (usize, &Vec<Step>)| {
        let numbers = steps.iter().enumerate().filter(|(_, step)| kind(step));
        numbers.map(|(number, _)| (rank, number)).collect::<Vec<_>>()
    };
    let all: Vec<_> = schedule.steps.iter().enumerate().flat_map(of_rank).collect();
    any(rng, &all).copied()
}

fn any_move(schedule: &Schedule, rng: &mut Rng) -> Option<(usize, usize)> {
    let exchanges = schedule.exchanges.iter().enumerate();
    let all: Vec<_> = exchanges
        .flat_map(|(exchange, of)| (0..of.moves.len()).map(move |number| (exchange, number)))
        .collect();
    any(rng, &all).copied()
}

fn is_wait(step: &Step) -> bool {
    matches!(step, Step::Wait(_))
}

fn is_begin(step: &Step) -> bool {
    matches!(step, Step::Begin(_))
}

fn is_product(step: &Step) -> bool {
    matches!(step, Step::Multiply { .. })
}

fn shift(block: &mut Block, rng: &mut Rng) -> Option<()> {
    let range = if rng.bool() { &mut block.rows } else { &mut block.cols };
    *range = match rng.bool() {
        true => range.start + 1..range.end + 1,
        false => range.start.checked_sub(1)?..range.end - 1,
    };
    Some(())
}

fn drop_wait(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_wait)?;
    schedule.steps[rank].remove(number);
    Some(())
}

fn late_wait(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_wait)?;
    let product =
        (number..schedule.steps[rank].len()).find(|at| is_product(&schedule.steps[rank][*at]))?;
    let wait = schedule.steps[rank].remove(number);
    schedule.steps[rank].insert(product, wait);
    Some(())
}

fn early_wait(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_wait)?;
    let Step::Wait(exchange) = schedule.steps[rank].remove(number) else { return None };
    let begin = schedule.steps[rank].iter().position(|step| *step == Step::Begin(exchange))?;
    schedule.steps[rank].insert(begin, Step::Wait(exchange));
    Some(())
}

fn drop_begin(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_begin)?;
    schedule.steps[rank].remove(number);
    Some(())
}

fn begin_instead(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_begin)?;
    let other = rng.usize(0..schedule.exchanges.len());
    let begin = std::mem::replace(&mut schedule.steps[rank][number], Step::Begin(other));
    (begin != Step::Begin(other)).then_some(())
}

fn swap_begins(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_begin)?;
    let others = (0..schedule.steps[rank].len())
        .filter(|other| *other != number && is_begin(&schedule.steps[rank][*other]));
    let others: Vec<usize> = others.collect();
    schedule.steps[rank].swap(number, *any(rng, &others)?);
    Some(())
}

fn shift_move(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    shift(&mut schedule.exchanges[exchange].moves[number].block, rng)
}

fn shift_product(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_product)?;
    match &mut schedule.steps[rank][number] {
        Step::Multiply { block, .. } => shift(block, rng),
        _ => None,
    }
}

fn drop_move(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    schedule.exchanges[exchange].moves.remove(number);
    Some(())
}

fn move_twice(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    let (factor, again) =
        (schedule.exchanges[exchange].factor, schedule.exchanges[exchange].moves[number].clone());
    // The move goes to the same exchange, or to another exchange in which both ranks take part.
    let takes_part =
        |of: &Exchange, rank| of.moves.iter().any(|of| of.from == rank || of.to == rank);
    let both = |of: &Exchange| {
        of.factor == factor && takes_part(of, again.from) && takes_part(of, again.to)
    };
    let exchanges = schedule.exchanges.iter().enumerate().filter(|(_, of)| both(of));
    let into = *any(rng, &exchanges.map(|(exchange, _)| exchange).collect::<Vec<_>>())?;
    schedule.exchanges[into].moves.push(again);
    Some(())
}

/// The number of received elements stays the same.
fn move_instead(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    let moves = &mut schedule.exchanges[exchange].moves;
    let one = moves[number].clone();
    let alike = |of: &Move| (of.to, of.into, of.block.len()) == (one.to, one.into, one.block.len());
    let others = (0..moves.len()).filter(|other| *other != number && alike(&moves[*other]));
    let other = *any(rng, &others.collect::<Vec<_>>())?;
    // The replaced move's sender keeps another move, so participation does not change.
    let sends = moves.iter().filter(|of| of.from == moves[other].from).count() > 1;
    moves[other] = one;
    sends.then_some(())
}

fn wrong_sender(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    let from = &mut schedule.exchanges[exchange].moves[number].from;
    let other = rng.usize(0..schedule.steps.len());
    (std::mem::replace(from, other) != other).then_some(())
}

fn wrong_receiver(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    let to = &mut schedule.exchanges[exchange].moves[number].to;
    let other = rng.usize(0..schedule.steps.len());
    (std::mem::replace(to, other) != other).then_some(())
}

fn needless(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (exchange, number) = any_move(schedule, rng)?;
    let moves = &mut schedule.exchanges[exchange].moves;
    // A rank that takes part in the exchange.
    let (to, into) = any(rng, moves).map(|other| (other.to, other.into))?;
    let of = Move { to, into, ..moves[number].clone() };
    let needs = schedule.distributions.c.shards(schedule.steps.len()).ok()?[to].clone();
    let needed =
        schedule.size.needed(schedule.exchanges[exchange].factor, &needs).contains(&of.block);
    schedule.exchanges[exchange].moves.push(of);
    (!needed).then_some(())
}

fn multiply_twice(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_product)?;
    let product = schedule.steps[rank][number].clone();
    schedule.steps[rank].insert(number, product);
    Some(())
}

fn drop_product(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_product)?;
    schedule.steps[rank].remove(number);
    Some(())
}

/// An exchange into a slot begins before the preceding multiplication.
fn early_slot(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_begin)?;
    let Step::Begin(exchange) = schedule.steps[rank][number] else { return None };
    let brings = schedule.exchanges[exchange]
        .moves
        .iter()
        .any(|of| of.to == rank && matches!(of.into, Place::Slot(_)));
    let product =
        (0..number).rev().find(|at| is_product(&schedule.steps[rank][*at])).filter(|_| brings)?;
    let begin = schedule.steps[rank].remove(number);
    schedule.steps[rank].insert(product, begin);
    Some(())
}

/// A rank uses a single slot instead of several.
fn one_slot(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let rank = rng.usize(0..schedule.steps.len());
    let mut changed = false;
    let mut change = |place: &mut Place| {
        if let Place::Slot(slot) = place {
            changed |= std::mem::take(slot) != 0;
        }
    };
    let moves = schedule.exchanges.iter_mut().flat_map(|exchange| &mut exchange.moves);
    moves.filter(|of| of.to == rank).for_each(|of| change(&mut of.into));
    for step in &mut schedule.steps[rank] {
        if let Step::Multiply { a, b, .. } = step {
            change(a);
            change(b);
        }
    }
    changed.then_some(())
}

fn wrong_place(schedule: &mut Schedule, rng: &mut Rng) -> Option<()> {
    let (rank, number) = any_step(schedule, rng, is_product)?;
    let Step::Multiply { a, b, .. } = &mut schedule.steps[rank][number] else { return None };
    let place = if rng.bool() { a } else { b };
    let other = *any(rng, &[Place::Shard, Place::Gathered, Place::Slot(0), Place::Slot(1)])?;
    (std::mem::replace(place, other) != other).then_some(())
}

#[test]
fn mutants_are_refused_or_right() {
    // Numbers of accepted mutants, of rejected correct ones, and of rejected incorrect ones.
    let counts: RefCell<BTreeMap<&str, [usize; 3]>> = RefCell::default();
    let config = Config { source_file: Some(file!()), ..gemm_cases::cases(3000) };
    let distributed = prop_oneof![2 => case(), 1 => rotating()];
    let cases = (distributed, proptest::num::u64::ANY);
    let ran = TestRunner::new(config).run(&cases, |((distributions, ranks, strategy), seed)| {
        let schedule = Schedule::new(distributions, ranks, strategy).unwrap();
        let mut rng = Rng::with_seed(seed);
        for (what, mutation, _) in MUTATIONS {
            let mut mutant = (*schedule).clone();
            if mutation(&mut mutant, &mut rng).is_none() {
                continue;
            }
            let (refused, right) = (mutant.clone().verify().is_err(), is_right(&mutant, seed));
            assert!(refused || right, "{what}: {mutant}");
            let kind = if refused { 1 + usize::from(!right) } else { 0 };
            counts.borrow_mut().entry(what).or_default()[kind] += 1;
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    for (what, _, least) in MUTATIONS {
        let [taken, right, wrong] = counts.borrow().get(what).copied().unwrap_or_default();
        let all = taken + right + wrong;
        println!("{what}: of {all}, {taken} taken, {right} refused though right, {wrong} refused");
        assert!(all > gemm_cases::scaled(100), "{what}: tried {all} times");
        assert!(
            (right + wrong) as f64 >= least * all as f64,
            "{what}: {taken} of {all} were taken"
        );
    }
}
