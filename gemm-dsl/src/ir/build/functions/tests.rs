//! Functions are declared once, however often they are requested.

use crate::ir::{Access, Elem, Expr, FunctionId, IrError, Kernel, KernelBuilder, Operand, Ty};

#[test]
fn a_name_is_that_of_one_function() {
    /// Kernel that declares `f`, another variable, and `f` again.
    fn twice(again: impl FnOnce(&mut KernelBuilder) -> FunctionId) -> Result<Kernel, IrError> {
        let mut b = KernelBuilder::new("k");
        let c = b.global("c", Elem::F32, Operand::Output(0));
        b.shape(c, [4.into()], [1.into()]);
        let first = f(&mut b, "f", ("x", Ty::F32), "y", 0.0);
        let between = b.let_("between", first.apply([1.0.into()]));
        let second = again(&mut b);
        b.store(Access::new(c, [0.into()]), second.apply([between.into()]));
        Ok(b.finish()?.into_inner())
    }
    fn f(
        b: &mut KernelBuilder,
        name: &str,
        param: (&str, Ty),
        local: &str,
        plus: f32,
    ) -> FunctionId {
        b.function(name, &[], &[param], |b, params| {
            let y = b.let_(local, Expr::from(params[0]) + plus);
            y * 2.0
        })
    }
    let x = ("x", Ty::F32);
    let once = twice(|b| f(b, "f", x, "y", 0.0)).expect("the same function");
    assert_eq!((once.functions.len(), once.vars.len()), (1, 3));
    assert_eq!(twice(|b| f(b, "g", x, "y", 0.0)).expect("two functions").functions.len(), 2);
    let identity = |b: &mut KernelBuilder| b.function("f", &[], &[x], |_, params| params[0].into());
    let two_params = |b: &mut KernelBuilder| {
        b.function("f", &[], &[x, ("z", Ty::F32)], |b, params| b.let_("y", params[0] + 0.0) * 2.0)
    };
    type Declares<'a> = &'a dyn Fn(&mut KernelBuilder) -> FunctionId;
    let others: [(&str, Declares<'_>); 7] = [
        ("another value", &identity),
        ("another constant", &|b| f(b, "f", x, "y", 1.0)),
        ("a zero of another sign", &|b| f(b, "f", x, "y", -0.0)),
        ("a parameter of another name", &|b| f(b, "f", ("z", Ty::F32), "y", 0.0)),
        ("a parameter of another type", &|b| {
            b.function("f", &[], &[("x", Ty::I32)], |_, params| params[0].into())
        }),
        ("a local of another name", &|b| f(b, "f", x, "z", 0.0)),
        ("one more parameter", &two_params),
    ];
    for (what, other) in others {
        let error = twice(other).expect_err(what);
        assert_eq!(error.rule, "two functions are called f", "{what}");
    }
}
