//! What the compiler says of a faulty spec, word for word and token for token: the expectations
//! beside the cases in `ui/fail`. They are the wording of one release of Rust, so on another the
//! cases are ignored. `cargo bless-ui` writes them anew.

use gemm_tests::needs::Need;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    // One trial, because all cases are one crate to trybuild, which it builds once.
    let cases = Need::PinnedRust.trial("faulty_specs", || {
        trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
        Ok(())
    });
    let trials: Vec<Trial> = vec![cases];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
