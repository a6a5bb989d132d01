//! Batches on the GPU: each product has the bits of its own.

use crate::trial;
use gemm_dsl::spec::Bounds;
use gemm_reference::product::Size;
use gemm_tests::arbitrary;
use gemm_tests::batch::{Lies, run};
use gemm_tests::product::accepted;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let specs = arbitrary::sample(arbitrary::sgemm(512), 40).into_iter();
    let guarded = specs.filter(|spec| spec.bounds == Bounds::Guarded).take(24);
    let trials = guarded.enumerate().map(|(i, spec)| {
        trial(format!("batch::random::{i:02}"), move |gpu| {
            let padding = if spec.pitched { 3 } else { 0 };
            let lies = [(false, 0), (true, 4), (false, 5), (false, 0)]
                .map(|(shared, between)| Lies { shared, between, padding });
            for (size, count) in [
                (Size::new(7, 5, 3), 1),
                (Size::new(33, 65, 17), 3),
                (Size::new(16, 16, 16), 200),
                (Size::new(64, 32, 8), 9),
            ] {
                let what = |error| format!("`{spec}` at {size}, {count} times: {error}");
                run(gpu, &spec, accepted(&spec, size), count, lies, 29).map_err(what)?;
            }
            Ok(())
        })
    });
    trials.collect()
}
