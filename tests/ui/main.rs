//! Messages of the compiler for faulty specs, compared with the `.stderr` files next to the cases
//! in `ui/fail`. The messages depend on the release of Rust, so the cases are ignored with any
//! other release. `cargo bless-ui` updates the files.

use gemm_needs::Need;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    // All cases are in one test, because trybuild builds them together as one crate.
    let cases = Need::PinnedRust.trial("faulty_specs", || {
        trybuild::TestCases::new().compile_fail("fail/*.rs");
        Ok(())
    });
    let trials: Vec<Trial> = vec![cases];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
