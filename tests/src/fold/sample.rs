//! Random reductions, with any keys, any of the test expressions, any placement, and sizes close to
//! those of threads, groups and blocks.

use super::placement::Placement;
use super::{Case, Shape, closures};
use crate::arbitrary;
use gemm_dsl::plan::Share;
use gemm_dsl::spec::{DataType, LaunchForm, Op, Over, ReduceSpec, newer_word};
use gemm_oracle::random::Random;

/// Random reductions for an operator and an axis. They are the same in every run and on every
/// machine. Element types alternate, every second case uses a single launch if several are
/// possible, and the rest is random. Each case has a result, so there is no index into an empty
/// array.
pub fn cases(op: Op, over: Over, count: usize) -> Vec<(Case, Placement)> {
    let nth = |at: Option<usize>| at.unwrap_or_default();
    let op_at = nth(Op::ALL.iter().position(|other| *other == op));
    let over_at = nth(Over::ALL.iter().position(|other| *other == over));
    let mut random = Random::new((op_at * Over::ALL.len() + over_at) as u64);
    let mut cases = Vec::new();
    // A drawn case may be invalid or without a result.
    for _ in 0..20 * count {
        let n = cases.len();
        if n == count {
            break;
        }
        // For each operator and axis, the types are combined with other choices.
        let element = DataType::ALL[(n + 3 * op_at + 7 * over_at) % DataType::ALL.len()];
        let strategy = arbitrary::plain_reduce_of(op, over, element);
        let Some(mut spec) = arbitrary::one(strategy, random.bits()) else { continue };
        if n % 2 == 1 {
            let mut once = spec.clone().launch(LaunchForm::Once);
            if spec.run.is_none() {
                once = once.blocks(spec.blocks.unwrap_or(3));
            }
            spec = if once.plan().is_ok() { once } else { spec };
        }
        let Some(case) = case(&spec, &mut random) else { continue };
        let is_index = case.spec.operator().is_some_and(Op::is_index);
        if is_index && over == Over::All && case.inputs[0].is_empty() {
            continue;
        }
        cases.push((case, Placement::random(&mut random)));
    }
    cases
}

/// Returns the case in both launch forms, with several passes and with a single launch, which
/// compute the same bits. None if one block computes a result, or if the ticket of a single launch
/// does not fit into shared memory.
pub fn in_both_forms(case: &Case) -> Option<[Case; 2]> {
    let plan = case.plan();
    let several = plan.has_partials() || plan.share() == Share::Tiles;
    let form = |form| Case { spec: case.spec.clone().launch(form), ..case.clone() };
    let forms = several.then(|| [LaunchForm::Passes, LaunchForm::Once].map(form));
    forms.filter(|forms| forms.iter().all(|form| form.spec.plan().is_ok()))
}

/// True if both launch forms have the bits of the given case. A case with tiles may have other
/// bits.
pub fn has_bits_of_both(case: &Case) -> bool {
    case.plan().share() != Share::Tiles
}

/// Case of a spec with test expressions, if any are valid for it, and random inputs. None if the
/// spec is invalid, or if the drawn shape has too few elements for a selection.
pub fn case(spec: &ReduceSpec, random: &mut Random) -> Option<Case> {
    case_of(spec, random, |random| shape(spec.over, random))
}

/// Case of a spec with a custom shape.
pub fn case_of(
    spec: &ReduceSpec,
    random: &mut Random,
    shape: impl FnOnce(&mut Random) -> Shape,
) -> Option<Case> {
    let mut pick = |of: usize| (random.bits() as usize) % of.max(1);
    let truth = spec.operator().is_some_and(Op::is_truth);
    let acc = (!truth).then(|| spec.acc_elem());
    let (maps, wants) = (closures::maps(spec.element.elem(), acc), pick(8));
    let map = if wants % 2 == 0 { maps.get(pick(maps.len())).copied() } else { None };
    let results = spec.results();
    let values = if spec.op == Op::MeanVar { 2 } else { 1 };
    let finishes = closures::finishes(spec.acc_elem(), results[0].1, values);
    let finish = if wants % 3 == 0 { finishes.get(pick(finishes.len())).copied() } else { None };
    let folds = closures::folds(spec.acc_elem());
    let fold = if wants < 3 { folds.get(pick(folds.len())).copied() } else { None };
    let shape = shape(random);
    let seed = random.bits();
    // A fold of the user's selects nothing.
    let mut spec = spec.clone();
    spec.topk = spec.topk.filter(|_| fold.is_none());
    // Expressions that are invalid together are dropped one after the other.
    let attempts =
        [(map, finish, fold), (map, finish, None), (map, None, None), (None, None, None)];
    let cases = attempts.into_iter().map(|given| Case::with(&spec, given, shape.clone(), seed));
    let mut cases = cases.filter(|case| case.spec.plan().is_ok());
    cases.next().filter(Case::has_enough)
}

/// Random length, arbitrary or close to the sizes of threads, groups and blocks.
fn length(random: &mut Random) -> usize {
    let any = random.bits() as usize;
    match any % 4 {
        0 => [0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097][any / 4 % 11],
        1 => any / 4 % 3000,
        _ => any / 4 % 130,
    }
}

fn shape(over: Over, random: &mut Random) -> Shape {
    let len = length(random);
    shape_of(over, len, random)
}

/// Random shape with `len` elements per result.
pub fn shape_of(over: Over, len: usize, random: &mut Random) -> Shape {
    let mut below = |n: usize| (random.bits() as usize) % n;
    // Bounds the number of elements independently of the shape.
    let most = 5000 / (len + 1) + 2;
    match over {
        Over::All => Shape::Tensor { outer: 1, len, inner: 1 },
        Over::Rows => Shape::Tensor { outer: below(most.min(90)), len, inner: 1 },
        Over::Columns => Shape::Tensor { outer: 1, len, inner: below(most.min(90)) },
        Over::Middle => Shape::Tensor { outer: below(4), len, inner: below(most.min(40)) },
        Over::Segments => {
            let mut offsets = vec![below(5) as u64];
            for _ in 0..below(most.min(70)) {
                let next =
                    offsets[offsets.len() - 1] + [0, below(2 * len + 1)][below(4).min(1)] as u64;
                offsets.push(next);
            }
            Shape::Segments(offsets)
        }
        over => newer_word(over),
    }
}
