//! Each rule of a program, with a program that breaks it.

mod bind;
mod call_cache;
mod executor;

use super::*;
use crate::ir::{
    Access, AtomicOp, BinaryOp, Elem, Geometry, HostError, HostExpr, KernelBuilder, MemoryOrder,
    Requirement, Scope, Source, Special,
};

/// Body of a one-thread kernel with arrays `x` and `y` of `n` elements.
#[derive(Clone, Copy, PartialEq)]
enum Body {
    Copy,
    Set,
    Add,
}

fn kernel(name: &str, body: Body) -> KernelBuilder {
    let mut b = KernelBuilder::new(name);
    let x = b.global("x", Elem::F32, Operand::Input(0));
    let y = b.global("y", Elem::F32, Operand::Output(0));
    let n = b.extent("n", Ty::I32, Extent::LENGTH);
    for array in [x, y] {
        b.shape(array, [n.into()], [1.into()]);
    }
    b.geometry(Geometry { block: (32, 1), ..k_geometry() });
    b.if_(Expr::from(Special::ThreadX).equals(0), |b| {
        let at = |array| Access::new(array, [0.into()]);
        let value = match body {
            Body::Set => 1.0.into(),
            Body::Copy => at(x).load(),
            Body::Add => at(y).load() + at(x).load(),
        };
        b.store(at(y), value);
    });
    b
}

fn k_geometry() -> Geometry {
    Geometry {
        block: (32, 1),
        grid: [Expr::U64(1), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: None,
    }
}

/// Program under construction: one input, one output, one temporary and three kernels.
struct Parts {
    program: Program,
    n: Expr,
    input: Slot,
    output: Slot,
    temp: Slot,
}

const COPY: KernelId = KernelId(0);
const SET: KernelId = KernelId(1);
const ADD: KernelId = KernelId(2);

fn parts() -> Parts {
    let mut program = Program::default();
    let n = program.extent(Extent::LENGTH);
    let (_, input) = program.input(Operand::Input(0), "x", Elem::F32, [n.clone()]);
    let (_, output) = program.output(Operand::Output(0), "y", Elem::F32, [n.clone()]);
    let temp = program.temp("t", Elem::F32, [n.clone()]);
    for (name, body) in [("copy", Body::Copy), ("set", Body::Set), ("add", Body::Add)] {
        program.kernel(kernel(name, body).finish().expect("a sound kernel"));
    }
    Parts { program, n, input, output, temp }
}

impl Parts {
    fn launch(&self, kernel: KernelId, from: Slot, to: Slot) -> Step {
        let bind = vec![(Operand::Input(0), from), (Operand::Output(0), to)];
        Step::launch(vec![kernel], bind, vec![(Extent::LENGTH, self.n.clone())])
    }

    fn copy(&self, from: Slot, to: Slot) -> Step {
        self.launch(COPY, from, to)
    }

    /// Valid steps that use everything.
    fn whole(&self) -> Vec<Step> {
        vec![
            self.launch(SET, self.input, self.temp),
            self.launch(ADD, self.input, self.temp),
            self.copy(self.temp, self.output),
        ]
    }

    /// Condition: more than 4 elements.
    fn many(&self) -> Expr {
        self.n.clone().gt(4u64)
    }
}

/// Rule that is broken by steps which follow the valid steps.
fn broken(steps: impl FnOnce(&Parts) -> Vec<Step>) -> String {
    let mut parts = parts();
    let mut all = parts.whole();
    all.extend(steps(&parts));
    parts.program.steps = all;
    rule(parts.program)
}

/// Rule that is broken by steps without the valid steps.
fn broken_alone(steps: impl FnOnce(&Parts) -> Vec<Step>) -> String {
    let mut parts = parts();
    parts.program.steps = steps(&parts);
    rule(parts.program)
}

fn rule(program: Program) -> String {
    VerifiedProgram::new(program).expect_err("a broken program").rule
}

/// Rule that is broken by a change of the valid program.
fn changed(change: impl FnOnce(&mut Program)) -> String {
    let mut parts = parts();
    parts.program.steps = parts.whole();
    change(&mut parts.program);
    rule(parts.program)
}

fn first(program: &mut Program) -> &mut Launch {
    match &mut program.steps[0] {
        Step::Launch(launch) => launch,
        Step::If { .. } => panic!("the first step is a launch"),
    }
}

fn bound(program: &VerifiedProgram, n: u64) -> ProgramValues {
    program.bind(&[(Extent::LENGTH, n)], &[]).expect("a length")
}

/// Broken rule if the temporary has this extent.
fn sized(dim: Expr) -> String {
    changed(|program| program.temps[0].dims = vec![dim].into())
}

fn compiled(expr: &Expr) -> HostExpr {
    HostExpr::new(expr, &[]).expect("an expression of the host")
}

#[track_caller]
fn says(rule: &str, part: &str) {
    assert!(rule.contains(part), "{rule}");
}

#[test]
fn a_sound_program_is_sound() {
    let mut parts = parts();
    parts.program.steps = parts.whole();
    let program = VerifiedProgram::new(parts.program).expect("sound");
    assert_eq!(program.preferred().name, "copy");
    assert_eq!(program.launches(&bound(&program, 9)).expect("launches").len(), 3);
}

#[test]
fn nothing_is_read_before_it_is_written() {
    says(&broken_alone(|p| vec![p.copy(p.temp, p.output)]), "reads Temp(0) before it is written");
    says(&broken_alone(|p| vec![p.copy(p.output, p.temp)]), "reads Output(0) before");
    // A kernel that accumulates into an array reads it.
    says(&broken_alone(|p| vec![p.launch(ADD, p.input, p.output)]), "reads Output(0) before");
    // Writing on one path is not enough.
    for first in [true, false] {
        let rule = broken_alone(|p| {
            let (set, none) = (vec![p.launch(SET, p.input, p.temp)], Vec::new());
            let (then, otherwise) = if first { (set, none) } else { (none, set) };
            vec![Step::either(p.many(), then, otherwise), p.copy(p.temp, p.output)]
        });
        says(&rule, "reads Temp(0) before");
    }
    // A write in one branch is not visible in the other.
    let rule = broken_alone(|p| {
        let then = vec![p.launch(SET, p.input, p.temp)];
        let otherwise = vec![p.copy(p.temp, p.output)];
        vec![Step::either(p.many(), then, otherwise)]
    });
    says(&rule, "reads Temp(0) before");
}

#[test]
fn both_ways_together_are_enough() {
    let mut parts = parts();
    let write = |kernel| vec![parts.launch(kernel, parts.input, parts.temp)];
    let either = Step::either(parts.many(), write(SET), write(COPY));
    let more = [parts.launch(ADD, parts.input, parts.temp), parts.copy(parts.temp, parts.output)];
    parts.program.steps = [either].into_iter().chain(more).collect();
    let program = VerifiedProgram::new(parts.program).expect("sound");
    let first = |n| program.launches(&bound(&program, n)).expect("launches")[0].choose[0];
    assert_eq!((first(4), first(5)), (COPY, SET));
}

#[test]
fn a_temporary_of_zeros_need_not_be_written() {
    let mut parts = parts();
    parts.program.temps[0].fill = TempFill::Zero;
    parts.program.steps = vec![
        parts.launch(ADD, parts.input, parts.temp),
        parts.launch(SET, parts.temp, parts.output),
        parts.copy(parts.temp, parts.output),
    ];
    VerifiedProgram::new(parts.program).expect("sound");
}

#[test]
fn an_atomic_reads_before_it_writes() {
    // A block draws a ticket; `y` is the last one.
    let drawn = |fill: TempFill, draw: fn(&mut KernelBuilder, Access) -> Expr| {
        let mut b = KernelBuilder::new("count");
        let [y, t] = [("y", Operand::Output(0)), ("t", Operand::Temp(0))].map(|(name, operand)| {
            let array = b.global(name, Elem::U32, operand);
            b.shape(array, [1.into()], [1.into()]);
            array
        });
        let value = draw(&mut b, Access::new(t, [0.into()]));
        b.store(Access::new(y, [0.into()]), value);
        let mut program = Program::default();
        let output = program.output(Operand::Output(0), "y", Elem::U32, [1u64.into()]);
        let ticket = program.temp("ticket", Elem::U32, [1u64.into()]);
        program.temps[0].fill = fill;
        let choose = vec![program.kernel(b.finish().expect("a sound kernel"))];
        let bind = vec![output, (Operand::Temp(0), ticket)];
        program.steps = vec![Step::launch(choose, bind, Vec::new())];
        VerifiedProgram::new(program).map(drop).map_err(|e| e.rule)
    };
    let atomic = |b: &mut KernelBuilder, at: Access| -> Expr {
        b.atomic("old", AtomicOp::Add, at, Expr::U32(1), MemoryOrder::AcqRel, Scope::Device).into()
    };
    assert_eq!(drawn(TempFill::Zero, atomic), Ok(()));
    let unset = drawn(TempFill::Uninitialised, atomic).expect_err("a ticket that nobody has set");
    says(&unset, "`count` reads Temp(0) before it is written");
    // A kernel may read what it has written itself.
    let stored = |b: &mut KernelBuilder, at: Access| -> Expr {
        b.store(at.clone(), Expr::U32(1));
        at.load()
    };
    assert_eq!(drawn(TempFill::Uninitialised, stored), Ok(()));
}

#[test]
fn inputs_are_not_written_and_outputs_are() {
    says(&broken(|p| vec![p.launch(SET, p.temp, p.input)]), "writes Input(0)");
    let rule = broken_alone(|p| vec![p.launch(SET, p.input, p.temp)]);
    says(&rule, "`y` is not written");
    let rule = broken_alone(|p| {
        let then = vec![p.copy(p.input, p.output)];
        vec![Step::either(p.many(), then, Vec::new())]
    });
    says(&rule, "`y` is not written");
}

/// An output that is read and written may have initial content; an output with initial content must
/// be read.
#[test]
fn an_output_may_be_given() {
    let rule = changed(|p| p.outputs[0].is_given = true);
    says(&rule, "`y` is given and not read");
    let mut parts = parts();
    parts.program.outputs[0].is_given = true;
    let mut steps = parts.whole();
    steps.insert(0, parts.copy(parts.output, parts.temp));
    parts.program.steps = steps;
    VerifiedProgram::new(parts.program).expect("sound");
}

/// The bits of a number may decide which launches run.
#[test]
fn a_condition_may_ask_for_a_number() {
    let sound = |ask: fn(Expr) -> Expr| {
        let mut parts = parts();
        let alpha = parts.program.argument("alpha", Ty::F32);
        let mut steps = parts.whole();
        let otherwise = vec![parts.copy(parts.temp, parts.output)];
        steps.push(Step::either(ask(alpha), Vec::new(), otherwise));
        parts.program.steps = steps;
        VerifiedProgram::new(parts.program)
    };
    let program = sound(|alpha| alpha.bitcast(Elem::U32).equals(Expr::U32(0))).expect("sound");
    let values = |bits: u32| program.bind(&[(Extent::LENGTH, 9)], &[("alpha", bits.into())]);
    let launches = |bits| program.launches(&values(bits).expect("bound")).expect("launches").len();
    assert_eq!([0, 1, f32::NAN.to_bits()].map(launches), [3, 4, 4]);
    let error = sound(|alpha| alpha.equals(0.0)).expect_err("no value on the host");
    says(&error.rule, "no value on the host");
    says(&changed(|p| _ = p.argument("alpha", Ty::F32)), "`alpha` is not used");
    let named = changed(|p| _ = p.argument("x", Ty::F32));
    says(&named, "two inputs of the caller have one name");
}

/// A value may use extents, numbers and earlier values, but not later ones.
#[test]
fn values_are_computed_once_and_in_order() {
    let mut parts = parts();
    let alpha = parts.program.argument("alpha", Ty::F32);
    let twice = parts.program.value(parts.n.clone() * 2u64);
    let more = parts.program.value(twice.clone() + parts.n.clone());
    let mut steps = parts.whole();
    let cond = alpha.bitcast(Elem::U32).equals(Expr::U32(0)).and(more.clone().gt(20u64));
    let otherwise = vec![parts.copy(parts.temp, parts.output)];
    steps.push(Step::either(cond, Vec::new(), otherwise));
    parts.program.steps = steps;
    let program = VerifiedProgram::new(parts.program).expect("sound");
    let bind = |n| program.bind(&[(Extent::LENGTH, n)], &[("alpha", 0)]);
    let bound = |n| bind(n).expect("numbers of 64 bits");
    let values = |n| [&twice, &more].map(|value| bound(n).eval(&compiled(value)));
    assert_eq!([6, 7].map(values), [[Ok(12), Ok(18)], [Ok(14), Ok(21)]]);
    assert_eq!(bound(6).arguments(), [0]);
    let launches = |n| program.launches(&bound(n)).expect("launches").len();
    assert_eq!([6, 7].map(launches), [4, 3]);
    assert_eq!(bind(1 << 63), Err(BindError::Value(HostError::Overflow)));

    says(&changed(|p| _ = p.value(Expr::U64(1))), "value 0 is not used");
    // A value that only an unused value uses is unused as well. A value must not use a later value.
    let unused = changed(|p| {
        let first = p.value(Expr::U64(1));
        p.value(first + 1u64);
    });
    says(&unused, "value 1 is not used");
    let later = |p: &mut Program| {
        let own = Scalar { param: p.extents.len() + p.arguments.len(), ty: Ty::U64 };
        p.value(own + 1u64);
    };
    says(&changed(later), "value 0: it is over an unknown number");
    let argument = changed(|p| _ = (p.value(Expr::U64(1)), p.argument("late", Ty::F32)));
    says(&argument, "an extent or a number was added after value 0");
    let extent = changed(|p| _ = (p.value(Expr::U64(1)), p.extent(Extent::OUTER)));
    says(&extent, "an extent or a number was added after value 0");
    let typed = changed(|p| _ = p.value(Expr::I32(1)));
    says(&typed, "value 0 is of type i32, not u64");
}

#[test]
fn outputs_alias_no_other_operand() {
    says(&broken(|p| vec![p.copy(p.temp, p.temp)]), "bound to another operand too");
}

#[test]
fn nothing_is_declared_in_vain() {
    says(&changed(|p| _ = p.temp("more", Elem::F32, [1u64.into()])), "`more` is not used");
    let unused = |p: &mut Program| _ = p.input(Operand::Input(1), "z", Elem::F32, [1u64.into()]);
    says(&changed(unused), "`z` is not used");
    let unused = kernel("unused", Body::Set).finish().expect("a sound kernel");
    says(&changed(|p| _ = p.kernel(unused)), "`unused`, is never launched");
    says(&rule(Program::default()), "no kernel");
}

#[test]
fn names_are_distinct() {
    says(&changed(|p| p.extents.push(Extent::LENGTH)), "an extent is declared twice");
    says(&changed(|p| p.outputs[0].name = "x".into()), "two inputs of the caller have one name");
}

#[test]
fn arrays_of_the_caller_are_distinct_operands() {
    let again = |p: &mut Program| p.outputs[0].operand = Operand::Input(0);
    says(&changed(again), "two arrays of the caller are one operand");
}

#[test]
fn expressions_are_over_the_extents_and_of_their_type() {
    for (param, ty) in [(1, Ty::U64), (0, Ty::I32)] {
        says(&sized(Expr::Param(Scalar { param, ty })), "over an unknown number");
    }
    says(&sized(7.into()), "of type");
    says(
        &changed(|p| p.inputs[0].dims = vec![Special::ThreadX.into()].into()),
        "no value on the host",
    );
    // The types of an expression's operands agree, and a constant has a value of its type.
    let uneven = Expr::Binary(BinaryOp::ADD, Box::new(1u64.into()), Box::new(2.into()));
    says(&sized(uneven), "an extent of `t`: the types of");
    let unlike = Expr::Select(Box::new(Expr::U64(1)), Box::new(1u64.into()), Box::new(2u64.into()));
    says(&sized(unlike), "an extent of `t`: the types of");
    says(&sized(Expr::U64(2) / Expr::U64(0)), "an extent of `t`: the value overflows");
    says(&sized(Expr::U64(2) - Expr::U64(3)), "an extent of `t`: the value is -1");
    says(&changed(|p| p.outputs[0].dims = List::EMPTY), "`y` has no dimensions");
    says(&changed(|p| first(p).extents.to_mut()[0].1 = 7.into()), "of type");
    let rule = broken(|p| vec![Step::either(p.n.clone(), Vec::new(), Vec::new())]);
    says(&rule, "a condition is of type");
}

#[test]
fn operands_are_bound_once_and_all_of_them() {
    says(&changed(|p| _ = first(p).bind.to_mut().pop()), "Output(0) of `set` is not bound");
    let again = (Operand::Output(0), Slot::Output(0));
    says(&changed(|p| first(p).bind.to_mut().push(again)), "binds an operand twice");
    let surplus = (Operand::Input(1), Slot::Input(0));
    says(&changed(|p| first(p).bind.to_mut().push(surplus)), "`set` has no Input(1)");
    for slot in [Slot::Input(1), Slot::Output(1), Slot::Temp(1)] {
        says(&changed(|p| first(p).bind.to_mut()[0].1 = slot), "there is no ");
    }
    let two = vec![Expr::U64(1), Expr::U64(1)];
    says(&changed(|p| p.inputs[0].dims = two.into()), "has 1 dimensions, Input(0) 2");
}

#[test]
fn elements_are_those_of_the_kernels() {
    says(&changed(|p| p.inputs[0].elem = Elem::F64), "x of `set` is of f32, Input(0) of f64");
    says(&changed(|p| p.outputs[0].elem = Elem::I32), "y of `copy` is of f32, Output(0) of i32");
    // The same size is not enough.
    says(&changed(|p| p.temps[0].elem = Elem::U32), "y of `set` is of f32, Temp(0) of u32");
    says(&changed(|p| p.temps[0].elem = Elem::Tf32), "y of `set` is of f32, Temp(0) of tf32");
}

#[test]
fn extents_are_given_once_and_all_of_them() {
    says(&changed(|p| first(p).extents = List::EMPTY), "len of `set` is not given");
    let again = (Extent::LENGTH, Expr::U64(1));
    says(&changed(|p| first(p).extents.to_mut().push(again)), "gives an extent twice");
    let surplus = (Extent::M, Expr::U64(1));
    says(&changed(|p| first(p).extents.to_mut().push(surplus)), "`set` takes no m");
}

#[test]
fn kernels_of_a_launch_are_there_and_write_the_same() {
    says(&changed(|p| first(p).choose = List::EMPTY), "a launch of no kernel");
    says(&changed(|p| first(p).choose.to_mut()[0] = KernelId(3)), "there is no KernelId(3)");
    let with_idle = |nth: usize| {
        let mut b = KernelBuilder::new("idle");
        for (name, operand) in [("x", Operand::Input(0)), ("y", Operand::Output(0))] {
            let array = b.global(name, Elem::F32, operand);
            b.shape(array, [1u64.into()], [1.into()]);
        }
        b.extent("n", Ty::I32, Extent::LENGTH);
        let idle = b.finish().expect("a sound kernel");
        changed(|p| {
            let idle = p.kernel(idle);
            let Step::Launch(launch) = &mut p.steps[nth] else { panic!("a launch") };
            launch.choose.to_mut().push(idle);
        })
    };
    says(&with_idle(2), "`idle` does not write what the kernels before it write");
    // A kernel may leave the scratch array of another one alone, but then no later launch reads it.
    says(&with_idle(0), "`add` reads Temp(0) before it is written");
}

#[test]
fn strides_and_numbers_exist() {
    let with = |source, ty| {
        let mut k = kernel("more", Body::Set);
        k.scalar("number", ty, source);
        let more = k.finish().expect("a sound kernel");
        changed(|p| {
            let more = p.kernel(more);
            first(p).choose.to_mut().push(more);
        })
    };
    let stride = |operand, dim| Source::Stride { operand, dim };
    says(&with(stride(Operand::Input(0), 1), Ty::I32), "the stride 1 of Input(0)");
    says(&with(stride(Operand::Input(0), 0), Ty::F32), "the stride 0 of Input(0)");
    says(&with(stride(Operand::Input(1), 0), Ty::I32), "Input(1) of `more` is not bound");
    says(&with(Source::Argument(0), Ty::F32), "number 0 of `more` is not of type f32");
}

#[test]
fn a_contract_rests_on_extents_and_strides() {
    let breaks = |change: fn(&mut KernelBuilder)| {
        let mut k = kernel("kernel", Body::Set);
        change(&mut k);
        k.finish().expect_err("a broken kernel").rule
    };
    says(
        &breaks(|b| {
            let number = b.scalar("number", Ty::I32, Source::Argument(0));
            b.require(Requirement::Multiple { scalar: number, of: 2 });
        }),
        "names no such parameter",
    );
    says(
        &breaks(|b| b.require(Requirement::Aligned { operand: Operand::Input(1), bytes: 16 })),
        "names no such parameter",
    );
    let grid = |x: Expr| Geometry { grid: [x, Expr::U64(1), Expr::U64(1)], ..k_geometry() };
    let mut k = kernel("kernel", Body::Set);
    let number = k.scalar("number", Ty::U64, Source::Argument(0));
    k.geometry(grid(number.into()));
    says(&k.finish().expect_err("broken").rule, "is neither an extent nor a stride");
    let mut k = kernel("kernel", Body::Set);
    k.geometry(grid(Expr::from(Special::BlockX).wide()));
    says(&k.finish().expect_err("broken").rule, "the grid along x");
}

#[test]
fn extents_that_overflow_are_an_error() {
    let mut parts = parts();
    let cond = (parts.n.clone() * parts.n.clone()).gt(4u64);
    let then = vec![parts.copy(parts.input, parts.output)];
    let either = Step::either(cond, then.clone(), then);
    parts.program.steps = parts.whole().into_iter().chain([either]).collect();
    let program = VerifiedProgram::new(parts.program).expect("sound");
    let values = bound(&program, 1 << 40);
    assert_eq!(program.launches(&values), Err(HostError::Overflow));
    let negative = compiled(&(Expr::U64(2) - Expr::U64(3)));
    assert_eq!(values.eval(&negative), Err(HostError::Negative(-1)));
}
