//! The printed source of an expression has the value of the expression. Random trees are printed
//! and parsed by a separate parser of C expressions. Tree and source are evaluated and compared. A
//! typical error of a printer is `5 * i % 2` for `5 * (i % 2)`.

mod c;
mod functions;
mod ir;
mod sync;
mod trees;

use c::Value;
use gemm_dsl::cuda;
use gemm_dsl::ir::{
    Access, AtomicOp, BinaryOp, BufferLayout, Elem, Expr, Geometry, Integer, KernelBuilder,
    MemoryOrder, Operand, Scope, Space, Stmt, Ty, VerifiedKernel,
};
use proptest::prelude::*;
use sync::Statement;
use trees::Trees;

/// Kernel with one statement: `const T x = value;` or, for a mutable `x`, `x = value;`.
fn kernel(statement: impl FnOnce(&mut KernelBuilder, &mut Trees)) -> VerifiedKernel {
    let mut b = KernelBuilder::new("k");
    let mut trees = Trees::declare(&mut b);
    statement(&mut b, &mut trees);
    b.finish().expect("a well-typed tree")
}

fn last(kernel: &VerifiedKernel) -> (&Stmt, String) {
    let stmt = kernel.body.last().expect("a statement");
    (stmt, cuda::statement(kernel, stmt))
}

/// Compares the value of the tree with the value of the source, in several environments.
fn compare(kernel: &VerifiedKernel, tree: &Expr, text: &str) -> Result<(), TestCaseError> {
    let parsed = c::parse(text).map_err(|e| TestCaseError::fail(format!("{e} in `{text}`")))?;
    for (numbers, floats) in [
        ([5, 40, 3, 70], [1.25, -3e-39]),
        ([0, 1, 0, 0], [-0.0, f32::NAN]),
        ([97, 2, 31, 1 << 40], [f32::NEG_INFINITY, 1e30]),
    ] {
        let environment = trees::environment(kernel, numbers, floats);
        // An undefined tree, for example a division by zero, has no value to compare.
        let Some(expected) = ir::value(kernel, &environment, tree) else { continue };
        let found = parsed
            .value(&environment, &c::Unit::default())
            .and_then(|value| value.converted(tree.ty()));
        prop_assert_eq!(found, Ok(expected), "`{}` with {:?}", text, numbers);
    }
    Ok(())
}

proptest! {
    #![proptest_config(gemm_cases::cases(5000))]

    #[test]
    fn an_expression_is_printed_as_it_is_meant(seed: u64, depth in 0..6u32, ty in 0..6usize) {
        let ty = [Ty::I32, Ty::U32, Ty::I64, Ty::U64, Ty::F32, Ty::Bool][ty];
        let kernel = kernel(|b, trees| _ = b.let_("x", trees.tree(seed, ty, depth)));
        let (Stmt::Let { value, .. }, line) = last(&kernel) else {
            return Err(TestCaseError::fail("no declaration"));
        };
        let text = line.split_once(" = ").and_then(|(_, rest)| rest.strip_suffix(';'));
        compare(&kernel, value, text.unwrap_or_default())?;
    }

    #[test]
    fn a_compound_assignment_is_printed_as_it_is_meant(
        seed: u64, depth in 0..5u32, op in 0..5usize
    ) {
        let xor = BinaryOp::Integer(Integer::Xor);
        let op = [BinaryOp::ADD, BinaryOp::SUB, BinaryOp::MUL, BinaryOp::DIV, xor][op];
        let kernel = kernel(|b, trees| {
            let x = b.mut_("x", 77);
            let value = Expr::binary(op, x.into(), trees.tree(seed, Ty::I32, depth));
            b.assign(x, value);
        });
        let (Stmt::Assign { value, .. }, line) = last(&kernel) else {
            return Err(TestCaseError::fail("no assignment"));
        };
        let (place, rest) = line.split_once(' ').unwrap_or_default();
        let (sign, right) = rest.split_once(' ').unwrap_or_default();
        let right = right.trim_end_matches(';');
        let text = match sign.strip_suffix('=') {
            Some("") => right.to_owned(),
            Some(sign) => format!("{place} {sign} ({right})"),
            None => return Err(TestCaseError::fail(line)),
        };
        compare(&kernel, value, &text)?;
    }

    #[test]
    fn an_atomic_is_printed_as_it_is_meant(
        seed: u64, depth in 0..5u32, wide: bool, shared: bool, old: bool, op in 0..5usize,
        order in 0..4usize, block: bool
    ) {
        let (elem, ty) = if wide { (Elem::U64, Ty::U64) } else { (Elem::I32, Ty::I32) };
        let orders = [
            MemoryOrder::Relaxed,
            MemoryOrder::Acquire,
            MemoryOrder::Release,
            MemoryOrder::AcqRel,
        ];
        let order = orders[order];
        let scope = if block { Scope::Block } else { Scope::Device };
        let kernel = kernel(|b, trees| {
            let words = b.global("words", elem, Operand::Temp(0));
            b.shape(words, [64.into()], [1.into()]);
            let held = b.shared("held", elem, [64.into()], BufferLayout::row_major(1), "");
            let index = trees.tree(seed, Ty::I32, depth);
            let target = Access::new(if shared { held } else { words }, [index]);
            let expected = trees.tree(seed ^ 1, ty, depth);
            let op = [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::Exchange,
                AtomicOp::CompareExchange { expected }][op].clone();
            let value = trees.tree(seed ^ 2, ty, depth);
            match old {
                true => _ = b.atomic("old", op, target, value, order, scope),
                false => b.atomic_only(op, target, value, order, scope),
            }
        });
        let (Stmt::Atomic(meant), line) = last(&kernel) else {
            return Err(TestCaseError::fail("no atomic"));
        };
        let read = match sync::read(&line).map_err(TestCaseError::fail)? {
            Statement::Atomic(read) => read,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        prop_assert_eq!((read.op, read.order, read.scope), (meant.op.name(), order, scope));
        let (array, space) =
            if shared { ("held", Space::Shared) } else { ("words", Space::Global) };
        prop_assert_eq!(read.array, array);
        // CUDA's functions accept any address. Names of generated functions contain the memory
        // space.
        prop_assert_eq!(read.space, (order != MemoryOrder::Relaxed).then_some(space));
        prop_assert!(matches!((wide, read.cast), (_, None) | (true, Some("unsigned long long"))));
        let name = if wide { "size_t" } else { "int" };
        prop_assert_eq!(read.old, old.then_some((name, "old")));
        compare(&kernel, &meant.target.index[0], read.index)?;
        let expected = match &meant.op {
            AtomicOp::CompareExchange { expected } => Some(expected),
            _ => None,
        };
        let operands: Vec<&Expr> = expected.into_iter().chain([&meant.value]).collect();
        prop_assert_eq!(read.operands.len(), operands.len());
        for (meant, read) in operands.into_iter().zip(read.operands) {
            compare(&kernel, meant, read)?;
        }
    }
}

#[test]
fn fences_and_barriers_are_printed_as_they_are_meant() {
    let read = |stmt: Stmt, says: Statement<'_>| {
        let kernel = kernel(|b, _| {
            let grid = [const { Expr::U64(1) }; 3];
            b.geometry(Geometry { block: (64, 2), grid, blocks_per_sm: Some(1) });
            b.push(stmt);
        });
        let (_, line) = last(&kernel);
        assert_eq!(sync::read(&line), Ok(says));
    };
    for scope in [Scope::Warp, Scope::Block] {
        read(Stmt::Barrier(scope), Statement::Barrier(scope));
    }
    for scope in [Scope::Block, Scope::Device] {
        for order in [MemoryOrder::AcqRel, MemoryOrder::SeqCst] {
            read(Stmt::Fence { order, scope }, Statement::Fence(order, scope));
        }
    }
    for wait in [true, false] {
        let named = Statement::Named { id: "7", threads: "96", wait };
        read(Stmt::NamedBarrier { id: 7, threads: 96, wait }, named);
    }
    for faulty in [
        "__syncthreads()",
        "x = __syncthreads();",
        "atomicAdd(&x[0]);",
        "atomicAdd_warp(&x[0], 1);",
    ] {
        assert!(sync::read(faulty).is_err(), "{faulty}");
    }
}

#[test]
fn the_parser_reads_c() {
    let environment = [("n".to_owned(), Value::U64(10))].into_iter().collect();
    let value = |tree: c::Tree| tree.value(&environment, &c::Unit::default());
    for (text, expected) in [
        ("1 + 2 * 3 - 4", Value::I32(3)),
        ("5 * 7 % 2", Value::I32(1)),
        ("5 * (7 % 2)", Value::I32(5)),
        ("20 - 5 - 3", Value::I32(12)),
        ("1 << 2 + 1 < 9 && !(0 == 1)", Value::Bool(true)),
        ("6 & 3 ^ 8", Value::I32(10)),
        ("1 < 2 ? 3 : 1 / 0", Value::I32(3)),
        ("-1 + n", Value::U64(9)),
        ("min(4, (int)n)", Value::I32(4)),
        ("4ull * 1073741824", Value::U64(1 << 32)),
        ("3u - 4u >> 30u", Value::U32(3)),
        ("-7ll / 2ll", Value::I64(-3)),
        ("fmaf(2.0f, -1.5e-1f, (float)3)", Value::from(2.7)),
        ("__float_as_uint(0.0f / -1.0f)", Value::U32(1 << 31)),
        ("maximum(-0.0f, 0.0f)", Value::F32(0)),
        ("__int_as_float(0x7fffffff) != 1e5f", Value::Bool(true)),
    ] {
        let value = c::parse(text).and_then(value);
        assert_eq!(value, Ok(expected), "{text}");
    }
    for faulty in
        ["1 +", "(1", "1 2", "--1", "a b", "1 ? 2", "4 * 1073741824 +", "", "1f", "f(1,, 2)"]
    {
        assert!(c::parse(faulty).is_err(), "{faulty}");
    }
    for without_value in
        ["4 * 1073741824", "1 / 0", "1.0f + 1", "2u + 1", "f(1)", "min(1.0f, 2.0f)"]
    {
        assert!(c::parse(without_value).and_then(value).is_err(), "{without_value}");
    }
}
