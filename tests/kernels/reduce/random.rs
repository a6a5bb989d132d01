//! Reductions with any keys, any of the test expressions, any shape and any layout.

use gemm_oracle::random::Random;
use gemm_tests::arbitrary;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::sample;
use gemm_tests::fold::simulate::{Simulator, run};
use libtest_mimic::Trial;
use proptest::prelude::*;

proptest! {
    #![proptest_config(gemm_cases::cases(800))]

    fn any_reduction_is_right_anywhere(spec in arbitrary::plain_reduce(), seed: u64) {
        let mut random = Random::new(seed);
        let Some(case) = sample::case(&spec, &mut random) else { return Ok(()) };
        let placement = Placement::random(&mut random);
        let machine = Simulator::default();
        let ran = run(&machine, &case, &placement).map_err(TestCaseError::fail)?;
        // The bits are the same in both launch forms and for another layout of the arrays.
        if let Some(forms) = sample::in_both_forms(&case) {
            let [passes, once] = forms.map(|form| run(&machine, &form, &placement));
            let passes = passes.map_err(TestCaseError::fail)?.results;
            let once = once.map_err(TestCaseError::fail)?.results;
            prop_assert_eq!(&once, &passes, "`{}`", case.spec);
            if sample::has_bits_of_both(&case) {
                prop_assert_eq!(&once, &ran.results, "`{}`", case.spec);
            }
        }
        if seed % 4 == 0 {
            let elsewhere = run(&machine, &case, &Placement::random(&mut random));
            let elsewhere = elsewhere.map_err(TestCaseError::fail)?;
            prop_assert_eq!(elsewhere.results, ran.results, "`{}`", case.spec);
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![any_reduction_is_right_anywhere,]
}
