//! Reductions whose arrays are passed by name.

use super::{by_name, device};
use gemm_runtime::error::Need;
use gemm_runtime::{Error, Segments};

#[test]
fn arrays_go_by_name_in_any_order() {
    let device = device();
    let kernel = by_name("op: mean_var, type: f64, map: |x, y| x - y");
    let x = device.upload_of(&[3.0_f64, 5.0, 9.0]).expect("room");
    let y = device.upload_of(&[2.0_f64, 3.0, 4.0]).expect("room");
    let results =
        || (device.alloc_of::<f64>(1).expect("room"), device.alloc_of::<f64>(1).expect("room"));
    let (mut mean, mut var) = results();
    let call = kernel.call(&device).output("var", &mut var).input("y", &y);
    call.output("mean", &mut mean).input("x", &x).launch().expect("all of them");
    assert_eq!(device.download(&mean).expect("ours"), [8.0 / 3.0]);
    let var = device.download(&var).expect("ours")[0];
    assert!((var - 26.0 / 9.0).abs() < 1e-12, "{var}");
}

#[test]
fn names_are_checked() {
    let device = device();
    let kernel = by_name("op: mean_var, map: |x, y| x - y");
    let x = device.upload(&[1.0, 2.0]).expect("room");
    let message =
        |outcome: Result<_, Error>| outcome.map(|_| ()).expect_err("a wrong name").to_string();
    let (mut a, mut b, mut c) = (
        device.alloc(1).expect("room"),
        device.alloc(1).expect("room"),
        device.alloc(1).expect("room"),
    );
    let call = || kernel.call(&device).input("x", &x);
    assert_eq!(
        message(call().output("mean", &mut a).output("var", &mut b).launch()),
        "the call gives no `y`, an array to fold: add it with `.input(name, …)`"
    );
    assert_eq!(
        message(call().input("y", &x).output("mean", &mut a).launch()),
        "the call gives no `var`, an array for results: add it with `.output(name, …)`"
    );
    assert_eq!(
        message(call().input("z", &x).launch()),
        "`z` is not an operand of the kernel, which takes `x`, `y`"
    );
    assert_eq!(
        message(call().input("y", &x).output("output", &mut a).launch()),
        "`output` is not an operand of the kernel, which takes `mean`, `var`"
    );
    assert_eq!(
        message(call().input("y", &x).input("x", &x).launch()),
        "the call gives `x` twice: pass it only once"
    );
    let outputs = call().input("y", &x).output("mean", &mut a).output("var", &mut b);
    assert_eq!(
        message(outputs.output("mean", &mut c).launch()),
        "the call gives `mean` twice: pass it only once"
    );
    let segments: Segments = Segments::new(&device, &[0, 2]).expect("ascending");
    let segmented = by_name("over: segments");
    let call = segmented.call(&device).input("input", &x).output("output", &mut a);
    assert_eq!(
        message(call.segments(&segments).segments(&segments).launch()),
        "the call gives `segments` twice: pass it only once"
    );
    // Nothing was launched.
    for buffer in [&a, &b, &c] {
        assert_eq!(device.download(buffer).expect("ours"), [0.0]);
    }
}

#[test]
fn elements_are_checked_before_anything_is_launched() {
    let device = device();
    let (own, other) =
        (device.upload(&[1.0; 600]).expect("room"), device.upload_of(&[1_i32; 600]).expect("room"));
    // Two launches, of which the first has no results.
    let kernel = by_name("op: argmax, blocks: 4, block: 32");
    let mut wrong = device.alloc(1).expect("room");
    let mut right = device.alloc_of::<u32>(1).expect("room");
    let launched = kernel.call(&device).input("input", &own).output("output", &mut wrong).launch();
    let Err(Error::Unmet(unmet)) = launched else { panic!("{launched:?}") };
    assert!(matches!(unmet.need, Need::Element { .. }), "{unmet}");
    assert!(
        unmet.to_string().contains("of type u32 in `output`, but they are of type f32"),
        "{unmet}"
    );
    let launched =
        kernel.call(&device).input("input", &other).output("output", &mut right).launch();
    let Err(Error::Unmet(unmet)) = launched else { panic!("{launched:?}") };
    assert!(
        unmet.to_string().contains("of type f32 in `input`, but they are of type i32"),
        "{unmet}"
    );
    let launched = kernel.call(&device).input("input", &own).output("output", &mut right).launch();
    assert_eq!(launched.expect("its types").passes(), 2);
}
