//! Runs a test for every operator with every type, on all CPU cores.

use gemm_dsl::spec::{DataType, Op};
use gemm_tests::fold::Case;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Ran, Simulator, run};
use rayon::prelude::*;
use std::fmt::{Debug, Display};
use std::panic::Location;

/// Tests pairs of an operator and a type, each with its number, and reports the first errors. By
/// default a third of the pairs is tested. The third depends on the caller and contains every
/// operator and every type.
#[track_caller]
pub fn each(test: impl Fn(usize, Op, DataType) -> Result<(), String> + Sync) {
    let third = Location::caller().line() as usize;
    let types = DataType::ALL.len();
    let is_tested =
        |n: usize| !gemm_cases::is_thinned() || (n / types + n % types + third).is_multiple_of(3);
    let pairs = Op::ALL.iter().flat_map(|op| DataType::ALL.iter().map(move |ty| (*op, *ty)));
    let pairs: Vec<(usize, (Op, DataType))> =
        pairs.enumerate().filter(|(n, _)| is_tested(*n)).collect();
    let tested = pairs.into_par_iter().map(|(n, (op, ty))| test(n, op, ty));
    let faults: Vec<String> = tested.filter_map(Result::err).collect();
    let some = faults.iter().take(6).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} of them:\n{some}", faults.len());
}

/// Fails unless both values are equal.
///
/// # Errors
/// Returns both values in hexadecimal if they differ.
pub fn same<T: PartialEq + Debug>(what: impl Display, a: T, b: T) -> Result<(), String> {
    if a == b { Ok(()) } else { Err(format!("{what}: {a:x?} and {b:x?}")) }
}

/// Runs a case that must succeed.
pub fn right(machine: &Simulator, case: &Case, placement: &Placement) -> Ran {
    run(machine, case, placement).unwrap_or_else(|wrong| panic!("{wrong}"))
}
