//! Output of the quickstart.

mod programs;

use programs::{run, text};

#[test]
fn the_quickstart_runs() {
    let output = run("quickstart", "");
    // Without a visible GPU, it runs on the simulator even if a driver is installed.
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("every element of C is 32"));
}
