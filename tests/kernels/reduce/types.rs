//! Reductions that the runtime launches from typed kernels and tables, on the simulator as a
//! device.

use crate::reduce::each::same;
use gemm_dsl::spec::{Op, Over};
use gemm_runtime::Device;
use gemm_tests::fold::sample::cases;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::typed::{Typed, has};
use libtest_mimic::Trial;
use rayon::prelude::*;

/// Typed kernels and tables compute the results of the generated program.
fn kernels_and_tables_of_a_type_give_what_the_program_gives() {
    let each = |(op, over): (Op, Over)| {
        let (device, direct) = (Device::simulator(), Simulator::default());
        let typed = [false, true].map(|in_table| Typed { device: &device, in_table });
        let mut judged = [0; 2];
        for (case, placement) in cases(op, over, 6).iter().filter(|(case, _)| has(case)) {
            let mut expected = run(&direct, case, placement)?;
            if expected.results[0].is_empty() {
                // If there are no results, nothing is launched.
                expected.variants.clear();
            }
            for on in &typed {
                let what = format!("`{}` {:?}, in a table: {}", case.spec, case.shape, on.in_table);
                same(what, &run(on, case, placement)?, &expected)?;
            }
            judged[usize::from(case.spec.inputs().len() > 1)] += 1;
        }
        Ok(judged)
    };
    let pairs = Op::ALL.iter().flat_map(|op| Over::ALL.iter().map(move |over| (*op, *over)));
    let pairs: Vec<(Op, Over)> = pairs.collect();
    let outcomes: Vec<Result<[u32; 2], String>> = pairs.into_par_iter().map(each).collect();
    let faults: Vec<&str> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .map(|fault| &**fault)
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let judged = outcomes.iter().flatten();
    let [of_one, of_several] = judged.fold([0; 2], |all, own| [all[0] + own[0], all[1] + own[1]]);
    assert!(of_one > 60 && of_several > 15, "{of_one} of one input, {of_several} of several");
}

pub fn trials() -> Vec<Trial> {
    simulated![kernels_and_tables_of_a_type_give_what_the_program_gives,]
}
