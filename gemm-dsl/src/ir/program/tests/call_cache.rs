//! Cached calls: a run finds those of an equal problem, and of no other.

use super::*;
use crate::ir::contract::{ArrayAxis, ArrayPlace, BoundArray, Call, Region};
use crate::ir::program::call_cache::Calls;

const AXES: [ArrayAxis; 2] =
    [ArrayAxis { extent: 3, stride: 8 }, ArrayAxis { extent: 5, stride: 1 }];

fn array<'a>(address: u64, len: u64, axes: Option<&'a [ArrayAxis]>) -> BoundArray<'a> {
    let place = ArrayPlace::One(Region { address, len });
    BoundArray { name: "x", elem: Elem::F32, place, axes }
}

fn calls(blocks: u32) -> Calls {
    let call = Call { scalars: Default::default(), grid: [blocks, 1, 1], maps: Vec::new() };
    [(COPY, call)].into()
}

fn values(n: u64) -> ProgramValues {
    let mut parts = parts();
    parts.program.steps = parts.whole();
    bound(&VerifiedProgram::new(parts.program).expect("sound"), n)
}

#[test]
fn problems_are_equal_if_contracts_cannot_distinguish_them() {
    let cache = CallCache::default();
    let (x, y) = (array(512 + 16, 40, Some(&AXES)), array(0, 9, None));
    cache.insert(&values(9), [x, y].into_iter(), &calls(7));
    let found = |n, arrays: [BoundArray<'_>; 2]| cache.get(&values(n), arrays.into_iter());
    assert_eq!(found(9, [x, y]), Some(calls(7)));
    // Neither the name nor the part of the address above the alignment matters.
    let elsewhere = BoundArray { name: "other", ..array(1024 + 16, 40, Some(&AXES)) };
    assert_eq!(found(9, [elsewhere, y]), Some(calls(7)));

    let mut extent = AXES;
    extent[1].extent = 4;
    let mut stride = AXES;
    stride[0].stride = 9;
    let list = [Region { address: 16, len: 40 }];
    for other in [
        array(512 + 12, 40, Some(&AXES)),
        array(512 + 16, 41, Some(&AXES)),
        array(512 + 16, 40, Some(&extent)),
        array(512 + 16, 40, Some(&stride)),
        array(512 + 16, 40, Some(&AXES[..1])),
        array(512 + 16, 40, None),
        BoundArray { elem: Elem::I32, ..x },
        BoundArray { place: ArrayPlace::List(&list), ..x },
    ] {
        assert_eq!(found(9, [other, y]), None, "{other:?}");
        assert_eq!(found(9, [x, other]), None, "{other:?}");
    }
    assert_eq!(found(8, [x, y]), None);
}

#[test]
fn a_problem_with_a_list_is_not_cached() {
    let (cache, list) = (CallCache::default(), [Region { address: 0, len: 40 }]);
    let x = BoundArray { place: ArrayPlace::List(&list), ..array(0, 40, None) };
    cache.insert(&values(9), [x].into_iter(), &calls(7));
    assert_eq!(cache.get(&values(9), [x].into_iter()), None);
}

#[test]
fn the_oldest_of_many_problems_is_replaced() {
    let cache = CallCache::default();
    let x = array(0, 40, None);
    for n in 1..=10 {
        cache.insert(&values(n), [x].into_iter(), &calls(n as u32));
        let kept = (1..=10).filter(|&n| {
            let found = cache.get(&values(n), [x].into_iter());
            assert!(found.as_ref().is_none_or(|found| *found == calls(n as u32)));
            found.is_some()
        });
        assert_eq!(kept.collect::<Vec<_>>(), (n.saturating_sub(3).max(1)..=n).collect::<Vec<_>>());
    }
}
