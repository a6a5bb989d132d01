//! A function is declared once, however often it is asked for.

use crate::ir::{Access, Elem, Expr, FunctionId, IrError, Kernel, KernelBuilder, Operand, Ty};

#[test]
fn a_name_is_that_of_one_function() {
    /// A kernel that declares `f`, another variable and then `f` once more.
    fn twice(again: impl FnOnce(&mut KernelBuilder) -> FunctionId) -> Result<Kernel, IrError> {
        let mut k = KernelBuilder::new("k");
        let c = k.global("c", Elem::F32, Operand::Output(0));
        k.shape(c, [4.into()], [1.into()]);
        let first = f(&mut k, "f", ("x", Ty::F32), "y", 0.0);
        let between = k.let_("between", first.apply([1.0.into()]));
        let second = again(&mut k);
        k.store(Access::new(c, [0.into()]), second.apply([between.into()]));
        Ok(k.finish()?.into_inner())
    }
    fn f(
        k: &mut KernelBuilder,
        name: &str,
        param: (&str, Ty),
        local: &str,
        plus: f32,
    ) -> FunctionId {
        k.function(name, &[], &[param], |k, params| {
            let y = k.let_(local, Expr::from(params[0]) + plus);
            y * 2.0
        })
    }
    let x = ("x", Ty::F32);
    let once = twice(|k| f(k, "f", x, "y", 0.0)).expect("the same function");
    assert_eq!((once.functions.len(), once.vars.len()), (1, 3));
    assert_eq!(twice(|k| f(k, "g", x, "y", 0.0)).expect("two functions").functions.len(), 2);
    let identity = |k: &mut KernelBuilder| k.function("f", &[], &[x], |_, params| params[0].into());
    let two_params = |k: &mut KernelBuilder| {
        k.function("f", &[], &[x, ("z", Ty::F32)], |k, params| k.let_("y", params[0] + 0.0) * 2.0)
    };
    type Declares<'a> = &'a dyn Fn(&mut KernelBuilder) -> FunctionId;
    let others: [(&str, Declares<'_>); 7] = [
        ("another value", &identity),
        ("another constant", &|k| f(k, "f", x, "y", 1.0)),
        ("a zero of another sign", &|k| f(k, "f", x, "y", -0.0)),
        ("a parameter of another name", &|k| f(k, "f", ("z", Ty::F32), "y", 0.0)),
        ("a parameter of another type", &|k| {
            k.function("f", &[], &[("x", Ty::I32)], |_, params| params[0].into())
        }),
        ("a local of another name", &|k| f(k, "f", x, "z", 0.0)),
        ("one more parameter", &two_params),
    ];
    for (what, other) in others {
        let error = twice(other).expect_err(what);
        assert_eq!(error.rule, "two functions are called f", "{what}");
    }
}
