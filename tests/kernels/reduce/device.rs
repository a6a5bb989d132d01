//! Reductions that the runtime launches by name, on the simulator as a device.

use crate::reduce::each::same;
use gemm_dsl::spec::{DataType, LaunchForm, Op, Over, ReduceSpec};
use gemm_runtime::Device;
use gemm_tests::fold::device::OnDevice;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::sample::cases;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape};
use libtest_mimic::Trial;
use rayon::prelude::*;

/// Each operator with each kind of axis.
fn pairs() -> Vec<(Op, Over)> {
    Op::ALL.iter().flat_map(|op| Over::ALL.iter().map(move |over| (*op, *over))).collect()
}

fn a_device_gives_what_the_program_gives() {
    let each = |(op, over): (Op, Over)| {
        let (device, direct) = (Device::simulator(), Simulator::default());
        cases(op, over, 3).iter().try_for_each(|(case, placement)| {
            let on_device = run(&OnDevice(&device), case, placement)?;
            let expected = run(&direct, case, placement)?;
            same(format!("`{}` {:?}", case.spec, case.shape), &on_device, &expected)
        })
    };
    let faults: Vec<String> = pairs().into_par_iter().map(each).filter_map(Result::err).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Samples for tests on a GPU cover every key and every kind of shape.
fn samples_have_every_key_and_kind_of_shape() {
    let all: Vec<(Case, Placement)> =
        pairs().into_par_iter().flat_map(|(op, over)| cases(op, over, 6)).collect();
    assert_eq!(all.len(), 300);
    let count = |is: &dyn Fn(&Case, &Placement) -> bool| {
        all.iter().filter(|(case, placement)| is(case, placement)).count()
    };
    for ty in DataType::ALL {
        assert!(count(&|case, _| case.spec.element == *ty) >= 10, "{ty}");
    }
    let of_spec = |least: usize, what: &str, is: fn(&ReduceSpec) -> bool| {
        let found = count(&|case, _| is(&case.spec));
        assert!(found >= least, "{what}: {found}");
    };
    of_spec(60, "once", |spec| spec.launch_form() == LaunchForm::Once);
    of_spec(60, "passes", |spec| spec.launch_form() == LaunchForm::Passes);
    of_spec(30, "float4", |spec| spec.float4);
    of_spec(8, "coarsen", |spec| spec.coarsen > 1);
    of_spec(60, "group", |spec| spec.group.is_some());
    of_spec(60, "blocks", |spec| spec.blocks.is_some());
    of_spec(20, "pitched", |spec| spec.pitched);
    of_spec(20, "shuffle", |spec| spec.shuffle);
    of_spec(3, "compensated", |spec| spec.compensated);
    of_spec(60, "map", |spec| spec.map.is_some());
    of_spec(5, "finish", |spec| spec.finish.is_some());
    of_spec(3, "fold", |spec| spec.fold.is_some());
    let lens = |case: &Case| match &case.shape {
        Shape::Tensor { len, .. } => vec![*len],
        Shape::Segments(offsets) => {
            offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).collect()
        }
    };
    for (len, least) in [(0, 5), (1, 5), (4097, 3)] {
        let found = count(&|case, _| lens(case).contains(&len));
        assert!(found >= least, "{found} of {len} elements");
    }
    assert!(count(&|_, placement| placement.offset % 16 != 0) > 50);
    assert!(count(&|_, placement| placement.offset.is_multiple_of(16)) > 50);
}

pub fn trials() -> Vec<Trial> {
    simulated![a_device_gives_what_the_program_gives, samples_have_every_key_and_kind_of_shape,]
}
