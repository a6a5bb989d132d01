//! Random reductions.

use super::{repaired, values, with};
use crate::reduction::CLASSIC;
use gemm_dsl::plan::Share;
use gemm_dsl::spec::{AccType, DataType, LaunchForm, Op, Over, ReduceSpec, Spec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Keys of the classic passes, except the operator. With any other key, the kernel is of another
/// kind.
const OF_CLASSIC: [&str; 6] = ["tree", "items", "unroll_last_warp", "shuffle", "float4", "block"];

/// Random valid reduction with the classic passes and up to 5 items.
pub fn classic() -> impl Strategy<Value = ReduceSpec> {
    let others = ReduceSpec::table().into_iter().map(|key| key.name);
    let others: Vec<&str> = others.filter(|key| !OF_CLASSIC.contains(key)).collect();
    let values = values::<ReduceSpec>(&["block"]);
    (values, 5..=10u32, select(CLASSIC.to_vec())).prop_filter_map(
        "the spec cannot be repaired",
        move |(values, block, op)| {
            let mut spec = with(ReduceSpec::default(), &values);
            others.iter().for_each(|key| spec.reset(key));
            let spec = spec.block(1 << block).op(op);
            let spec = repaired(spec, |spec| spec.plan().map(drop), Spec::reset)?;
            assert_eq!(spec.plan().ok()?.share(), Share::Tiles, "{spec}");
            Some(spec)
        },
    )
}

/// Keys of the geometry, whose values depend on each other, and the operator, which is drawn
/// uniformly.
const OWN: &[&str] = &["block", "op", "group", "blocks", "run"];

/// Keys in `OWN`, and keys with expressions.
const PLAIN: &[&str] =
    &["block", "op", "group", "blocks", "run", "map", "finish", "fold", "identity"];

/// Random valid reduction with up to 5 items. Every key varies except the name.
pub fn reduce() -> impl Strategy<Value = ReduceSpec> {
    with_keys(OWN, |spec| spec)
}

/// Random valid reduction without expressions.
pub fn plain_reduce() -> impl Strategy<Value = ReduceSpec> {
    with_keys(PLAIN, |spec| spec)
}

/// Random valid reduction without expressions, for an operator, an axis and an element type. It
/// accumulates in `f32` if the operator requires floats. The element type is `f32` if the operator
/// does not support the given type.
pub fn plain_reduce_of(op: Op, over: Over, element: DataType) -> impl Strategy<Value = ReduceSpec> {
    let base = ReduceSpec::default().op(op).over(over);
    let typed = base.clone().element(element);
    let sound = [typed.clone(), typed.acc(AccType::F32)].into_iter().find(|s| s.plan().is_ok());
    let ReduceSpec { element, acc, .. } = sound.unwrap_or(base);
    let is_said = move |spec: &ReduceSpec| spec.op == op && spec.over == over;
    let said = move |spec: ReduceSpec| {
        let mut spec = spec.op(op).over(over).element(element);
        spec.acc = acc.or(spec.acc);
        spec
    };
    with_keys(PLAIN, said).prop_filter("the operator does not go with what is folded", is_said)
}

fn with_keys(
    own: &'static [&'static str],
    said: impl Fn(ReduceSpec) -> ReduceSpec + 'static,
) -> impl Strategy<Value = ReduceSpec> {
    let group = option::weighted(0.6, select(vec![1, 2, 4, 8, 16, 32, 64, 128]));
    let blocks = option::weighted(0.5, select(vec![1, 2, 3, 7, 64]));
    let rounds = option::weighted(0.25, select(vec![1, 2, 3, 8]));
    let geometry = (5..=8u32, group, (blocks, rounds), any::<bool>());
    (values::<ReduceSpec>(own), geometry, select(Op::ALL)).prop_filter_map(
        "the spec cannot be repaired",
        move |(values, (block, group, (blocks, rounds), whole), op)| {
            let mut spec = with(ReduceSpec::default().block(1 << block).op(op), &values);
            // A whole block as the group of a row supports the most keys, so it is drawn more
            // often.
            spec.group = if whole { Some(spec.block) } else { group };
            spec.blocks = blocks;
            let spec = repaired(said(spec), |spec| spec.plan().map(drop), Spec::reset)?;
            Some(rounds.and_then(|rounds| with_runs(&spec, rounds)).unwrap_or(spec))
        },
    )
}

/// Replaces `blocks` with runs of `rounds` rounds. None if a single block computes a result.
pub fn with_runs(spec: &ReduceSpec, rounds: u32) -> Option<ReduceSpec> {
    let round = u32::try_from(spec.plan().ok()?.elements_per_round()).ok()?;
    let mut spec = spec.clone();
    spec.blocks = None;
    spec.launch = spec.launch.filter(|form| *form != LaunchForm::Tiles);
    let spec = spec.run(rounds * round);
    spec.plan().is_ok().then_some(spec)
}
