//! Maximum number of elements of reductions with 32-bit indices or counts. The contracts of the
//! kernels are tested without arrays.

use gemm_dsl::Plan;
use gemm_dsl::ir::contract::{
    Arguments, ArrayPlace, BoundArray, ContractError, Need, Region, Subject,
};
use gemm_dsl::ir::program::{PackedLayout, Slot};
use gemm_dsl::ir::{Elem, Extent, HostExpr, VerifiedProgram};
use gemm_dsl::spec::{IndexType, Op, Over, ReduceSpec};
use libtest_mimic::Trial;

/// Axes and methods: reduction by the threads of a block, by several blocks, or in one launch.
const LINES: &[&str] = &[
    "",
    "blocks: 3",
    "blocks: 3, launch: once",
    "run: 1048576",
    "run: 1048576, launch: once",
    "over: rows, group: 256, run: 1048576",
    "over: middle, run: 1048576, launch: once",
    "over: rows, group: 8",
    "over: rows, group: 256, blocks: 3",
    "over: rows, group: 256, blocks: 3, launch: once",
    "over: columns",
    "over: columns, blocks: 3, launch: once",
    "over: middle",
    "over: segments",
    "over: segments, group: 8",
];

/// Returns the contract error of the first launch that refuses a result of `length` elements.
fn launch(spec: &ReduceSpec, length: u64) -> Result<(), ContractError> {
    let program = spec
        .plan()
        .and_then(|plan| plan.program())
        .unwrap_or_else(|error| panic!("`{spec}`: {error}"));
    bound(&program, |extent| if *extent == Extent::LENGTH { length } else { 1 })
}

/// Returns the contract error of the first launch of a program that refuses a problem. Arrays are
/// packed, at distinct arbitrary addresses.
pub fn bound(
    program: &VerifiedProgram,
    count: impl Fn(&Extent) -> u64,
) -> Result<(), ContractError> {
    let extents = program.extents.iter().map(|extent| (*extent, count(extent)));
    let values = program.bind(&extents.collect::<Vec<_>>(), &[]).expect("numbers of 64 bits");
    let value = |expr: &HostExpr| values.eval(expr).expect("numbers of 64 bits");
    for launch in program.launches(&values).expect("numbers of 64 bits") {
        let mut placement = Vec::new();
        for (nth, (operand, slot)) in launch.bind.iter().enumerate() {
            let (elem, dims): (Elem, &[HostExpr]) = match slot {
                Slot::Input(n) => (program.inputs[*n].elem, &program.inputs[*n].dims),
                Slot::Output(n) => (program.outputs[*n].elem, &program.outputs[*n].dims),
                Slot::Temp(n) => (program.temps[*n].elem, &program.temps[*n].dims),
            };
            let layout = values.packed(dims).expect("numbers of 64 bits");
            let PackedLayout { axes, len } = layout;
            let stretch = Region { address: (nth as u64) << 48, len };
            placement.push((*operand, elem, ArrayPlace::One(stretch), axes));
        }
        let arrays = placement.iter().map(|(operand, elem, place, axes)| {
            (*operand, BoundArray { name: "array", elem: *elem, place: *place, axes: Some(axes) })
        });
        let arrays: Vec<_> = arrays.collect();
        let extents = launch.extents.iter().map(|(extent, expr)| (*extent, value(expr)));
        let extents: Vec<_> = extents.collect();
        let given = Arguments { extents: &extents, arguments: &[], arrays: &arrays };
        for id in &launch.choose {
            program.contract(*id).bind(&given)?;
        }
    }
    Ok(())
}

const MOST: u64 = (1 << 32) - 2;

fn indices_and_counts_of_32_bits_number_all_elements() {
    for line in LINES {
        let spec: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
        for op in [Op::Argmax, Op::Argmin, Op::MeanVar] {
            let spec = spec.clone().op(op);
            for length in [1, 1 << 31, MOST] {
                assert_eq!(launch(&spec, length), Ok(()), "`{spec}` of {length}");
            }
            for length in [MOST + 1, MOST + 2, 1 << 33] {
                let Err(unmet) = launch(&spec, length) else { panic!("`{spec}` of {length}") };
                assert_eq!(unmet.subject, Subject::Extent(Extent::LENGTH), "`{spec}`");
                assert_eq!(unmet.need, Need::AtMost(MOST), "`{spec}`");
                assert_eq!(unmet.value, i128::from(length), "`{spec}`");
            }
        }
    }
}

fn others_have_no_such_limit() {
    for line in LINES {
        let spec: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
        for op in [Op::Argmax, Op::MeanVar, Op::Sum] {
            // With 64-bit indices or without indices there is no limit.
            let index = if op == Op::Sum { IndexType::U32 } else { IndexType::U64 };
            let mut spec = spec.clone().op(op);
            if spec.over == Over::Segments || op != Op::Sum {
                spec = spec.index(index);
            }
            for length in [MOST, MOST + 1, MOST + 2, 1 << 33] {
                assert_eq!(launch(&spec, length), Ok(()), "`{spec}` of {length}");
            }
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![indices_and_counts_of_32_bits_number_all_elements, others_have_no_such_limit,]
}
