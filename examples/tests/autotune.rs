//! Output of the example of tuning.

mod programs;

use programs::{run, text};

#[test]
fn a_shape_is_tuned_on_the_simulator() {
    let output = run("autotune", "64 48 40 600");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("on the simulator, Predicted"), "{told}");
    assert!(told.contains("m == 64 && n == 48 && k == 40 && batch == 1 && nn"), "{told}");

    let output = run("autotune", "64 48");
    assert!(text(&output.stderr).contains("pass m, n, k"), "{}", text(&output.stderr));
}
