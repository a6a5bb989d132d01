//! Output of the example of a transformer.

mod programs;

use programs::{run, text};

#[test]
fn gradients_are_those_of_f64_and_a_step_lowers_the_loss() {
    let output = run("transformer", "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("relative error of gradients"), "{told}");
    assert!(told.contains("after one step"), "{told}");

    let output = run("transformer", "1 2 5 2 3");
    let told = text(&output.stderr);
    assert!(told.contains("5 elements cannot be divided among 2 heads"), "{told}");
}
