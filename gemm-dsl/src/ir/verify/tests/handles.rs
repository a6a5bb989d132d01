//! Errors in hand-built kernels.

use super::*;

#[test]
fn buffers_of_another_kernel_are_reported() {
    let mut other = KernelBuilder::new("other");
    let foreign =
        (0..3).map(|i| other.global(&format!("x{i}"), Elem::F32, Operand::Temp(i))).last();
    let foreign = foreign.expect("three of them");
    breaks(kernel(Elem::F32, |b, _, _| b.unordered(foreign)), "buffer 2 of another kernel");
    let shaped = kernel(Elem::F32, |b, _, _| b.shape(foreign, [4.into()], [1.into()]));
    breaks(shaped, "buffer 2 of another kernel");
    assert_eq!(rule(kernel(Elem::F32, |b, _, output| b.unordered(output))), Ok(()));
}

/// The message addresses the person who can fix the fault: the author of the kernel, or of the
/// spec.
#[test]
fn a_broken_rule_says_whose_it_is() {
    let named = |name: &str| {
        kernel(Elem::F32, |b, input, output| {
            let value = b.let_(name, at(input, 0).load());
            b.store(at(output, 0), value);
        })
    };
    assert_eq!(rule(named("value")), Ok(()));
    let text = named("out").finish().expect_err("it hides the buffer").to_string();
    assert!(text.contains("kernel `kernel` breaks a rule of the IR: `out` is shadowed."), "{text}");
    assert!(text.contains("Fix the code that builds it; if it comes from a spec"), "{text}");
}
