//! Every valid spec has a page. Tested with random specs of both macros with all keys.

use gemm_bench::cli::Failure;
use gemm_bench::family::Family;
use gemm_book::analysis::{Subject, report};
use gemm_dsl::spec::{Batch, ReduceSpec, SgemmSpec};
use gemm_tests::arbitrary::{on_tensor_cores, reduce, sample, sgemm};
use libtest_mimic::Failed;
use rayon::prelude::*;

/// Numbers of random specs: reductions, GEMMs, and GEMMs on tensor cores.
const RANDOM: [usize; 3] = [60, 12, 4];

const THREADS: u32 = 128;

/// Each spec has a report, unless one block is too large to simulate.
pub fn valid_specs_are_explained() -> Result<(), Failed> {
    let [reductions, products, on_tensor] = RANDOM.map(gemm_cases::scaled);
    let reductions = sample(reduce(), reductions)
        .into_iter()
        .map(|spec: ReduceSpec| (Family::Reduce, spec.to_string()));
    let products = sample(sgemm(THREADS), products);
    let on_tensor = sample(on_tensor_cores(THREADS), on_tensor);
    let products = products.into_iter().chain(on_tensor).enumerate();
    let products = products.map(|(nth, spec)| (Family::Sgemm, in_batches(spec, nth).to_string()));
    let all: Vec<(Family, String)> = reductions.chain(products).collect();
    let explained = all.par_iter().map(|(family, line)| {
        let subject = Subject { line: line.clone(), ..Subject::new(*family) };
        match report(&subject) {
            Ok(report) => Ok(usize::from(report.line == *line)),
            Err(Failure::Usage(why)) if why.contains("too large to simulate") => Ok(0),
            Err(failure) => Err(format!("{line}: {failure}")),
        }
    });
    let explained: Vec<Result<usize, String>> = explained.collect();
    let wrong: Vec<&str> =
        explained.iter().filter_map(|of| of.as_ref().err()).map(String::as_str).collect();
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    let explained: usize = explained.into_iter().flatten().sum();
    if explained * 10 < all.len() * 9 {
        return Err(format!("{explained} of {} are explained", all.len()).into());
    }
    Ok(())
}

/// Turns every third spec into a strided batch and every third into a pointer batch, if the spec
/// permits it.
fn in_batches(spec: SgemmSpec, nth: usize) -> SgemmSpec {
    let batch = [None, Some(Batch::Strided), Some(Batch::Pointers)][nth % 3];
    let products = if batch.is_some() { 1 + nth as u32 / 3 % 2 } else { 1 };
    let mut batched = spec.clone();
    (batched.batch, batched.products) = (batch, products);
    if batched.plan().is_ok() { batched } else { spec }
}
