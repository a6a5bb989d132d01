use super::*;

/// The error names a missing, repeated or unknown name.
#[test]
fn extents_numbers_and_arrays_are_bound_by_name() {
    let mut parts = parts();
    let alpha = parts.program.argument("alpha", Ty::F32);
    let mut steps = parts.whole();
    let cond = alpha.bitcast(Elem::U32).equals(Expr::U32(0));
    let otherwise = vec![parts.copy(parts.temp, parts.output)];
    steps.push(Step::either(cond, Vec::new(), otherwise));
    parts.program.steps = steps;
    let program = VerifiedProgram::new(parts.program).expect("sound");

    let len = (Extent::LENGTH, 9);
    let bind = |extents: &[_], numbers: &[_]| program.bind(extents, numbers).map(drop);
    assert_eq!(bind(&[len], &[("alpha", 0)]), Ok(()));
    let extent = |extent| ProgramInput::Extent(extent);
    let number = |name: &str| ProgramInput::Number(name.to_owned());
    for (extents, numbers, error) in [
        (&[][..], &[("alpha", 0)][..], BindError::Missing(extent(Extent::LENGTH))),
        (&[len, len], &[("alpha", 0)], BindError::Repeated(extent(Extent::LENGTH))),
        (&[len, (Extent::M, 9)], &[("alpha", 0)], BindError::Unknown(extent(Extent::M))),
        (&[len], &[], BindError::Missing(number("alpha"))),
        (&[len], &[("alpha", 0), ("alpha", 1)], BindError::Repeated(number("alpha"))),
        (&[len], &[("alpha", 0), ("beta", 1)], BindError::Unknown(number("beta"))),
    ] {
        assert_eq!(bind(extents, numbers), Err(error));
    }

    let (x, y, z) = ((Operand::Input(0), 'x'), (Operand::Output(0), 'y'), (Operand::Input(1), 'z'));
    let given = [y, x];
    let arrays = program.bind_arrays(&given).expect("both arrays");
    assert_eq!((arrays.inputs(), arrays.outputs()), (&[&'x'][..], &[&'y'][..]));
    let arrays = |given: &[(Operand, char)]| program.bind_arrays(given).map(drop);
    let array = ProgramInput::Array;
    assert_eq!(arrays(&[x]), Err(BindError::Missing(array(Operand::Output(0)))));
    assert_eq!(arrays(&[x, y, x]), Err(BindError::Repeated(array(Operand::Input(0)))));
    assert_eq!(arrays(&[x, y, z]), Err(BindError::Unknown(array(Operand::Input(1)))));
    let error = arrays(&[x, y, z]).expect_err("a third array").to_string();
    assert_eq!(error, "the program does not have the array Input(1)");
}
