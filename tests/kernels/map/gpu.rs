//! Elementwise kernels on the GPU: exact results, and the bits of the simulator.

use crate::trial;
use gemm_oracle::random::Random;
use gemm_runtime::Device;
use gemm_tests::map::Case;
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("map::results_are_exact".to_owned(), results_are_exact),
        trial("map::folds_are_exact".to_owned(), folds_are_exact),
    ]
}

/// Random cases are exact, write only the results, and run as on the simulator.
fn results_are_exact(gpu: &Device) -> Result<(), Failed> {
    cases_are_exact(gpu, Case::random)
}

/// Random folds over rows are exact, write only the results, and run as on the simulator.
fn folds_are_exact(gpu: &Device) -> Result<(), Failed> {
    cases_are_exact(gpu, Case::random_rows)
}

fn cases_are_exact(gpu: &Device, draw: fn(&mut Random) -> Case) -> Result<(), Failed> {
    let simulator = Device::simulator();
    for seed in gemm_cases::seeds(400) {
        let case = draw(&mut Random::new(seed));
        let (found, variants) = case.run(gpu)?;
        case.judge(&found)?;
        let (_, simulated) = case.run(&simulator)?;
        if variants != simulated {
            return Err(format!("`{}` ran as {variants:?}, not {simulated:?}", case.spec).into());
        }
    }
    Ok(())
}
