//! Macro tables in constants and in a user's own macros equal the tables parsed from their text.

use gemm_dsl::tables::KernelTable;
use gemm_runtime::bounds::{Elements, Operands};
use gemm_runtime::half::f16;
use gemm_runtime::{
    ByName, Device, Error, M, MN, MatrixMut, MatrixRef, N, ReduceSpec, ReduceTable, Segments,
    SgemmSpec, SgemmTable, reduce_table, sgemm_table,
};

const NORMS: ReduceTable = reduce_table! {
    // A comment; with a semicolon.
    len <= 4 => over: rows, map: |x| { let t = x; t * t }, finish: |s| sqrt(s), group: 8;;
    len >= 64 && outer != 1 || len == 7 =>
        over: rows, map: |x| { let t = x; t * t }, finish: |s| sqrt(s), group: 32, items: 4;
    else => over: rows, map: |x| { let t = x; t * t }, finish: |s| sqrt(s);
};

static LARGEST: ReduceTable<f16, u32> = reduce_table![
    { let each = len / max(outer, 1); each < 16 } => <op: argmax, type: f16, over: segments>;
    else => op: argmax, type: f16, over: segments, group: 32
];

const ALL: [ReduceTable<(f64, f64), (f64, f64)>; 2] = [
    reduce_table!(else => type: f64, op: mean_var, map: |x, y| x - y),
    reduce_table!(
        len<=9=>type:f64,op:mean_var,map:|x,y|x-y;else=>type:f64,op:mean_var,map:|x,y|x-y,items:2;
    ),
];

/// Table of a macro call, and the rules as text.
macro_rules! both {
    ($($rows:tt)*) => {
        (reduce_table!($($rows)*), stringify!($($rows)*))
    };
}

/// Asserts that a table equals that of its text at run time, including its type.
fn same<T: Elements, R: Elements>((table, text): (ReduceTable<T, R>, &str)) -> Result<(), Error> {
    let read: KernelTable<ReduceSpec> = text.parse()?;
    assert_eq!(table.text(), read.to_string(), "{text}");
    assert_eq!(ReduceTable::<T, R>::new(&read)?.text(), table.text(), "{text}");
    assert_eq!(table.text().parse::<KernelTable<ReduceSpec>>()?, read, "{text}");
    Ok(())
}

#[test]
fn a_table_of_tokens_is_that_of_its_text() -> Result<(), Error> {
    same::<f32, f32>(both!(else =>))?;
    same::<f32, f32>(
        both! { len <= 4 => items: 2; len >= 9 => items: 4; len == 7 => items: 8; else => },
    )?;
    same::<f16, f32>(both!(
        if len % 8 == 0 { outer > 3 } else { !(inner < 2) } => type: f16, over: middle;
        else => type: f16, over: middle, group: 1;
    ))?;
    same::<(i8, i8), i64>(both!(
        -len < -4 => type: i8, acc: i64, map: |x, y| { let t = x; t * y };
        else => type: i8, acc: i64, map: |x, y| { let t = x; t * y }, items: 2
    ))?;
    same::<f32, u64>(both!(else => op: argmin, index: u64, over: columns, float4))
}

macro_rules! tabled {
    ($when:expr, $map:expr, $($how:tt)*) => {
        reduce_table! { $when => map: $map; else => map: $map, $($how)* }
    };
}

#[test]
fn a_macro_of_the_users_may_pass_conditions_and_lines() {
    let table = tabled!(len <= 4 || len == 9, |x| x * x, items: 2, shuffle);
    let text = "len <= 4 || len == 9 => map: |x| x * x; else => map: |x| x * x, items: 2, shuffle";
    let read = text.parse::<KernelTable<ReduceSpec>>().map(|read| read.to_string());
    assert_eq!(read.as_deref(), Ok(table.text()));
}

#[test]
fn tables_run_as_their_types_say() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.upload(&[3.0, 4.0, 0.0, 6.0, 8.0, 0.0])?;
    let mut norms = device.alloc(2)?;
    NORMS.launch(&device, &MatrixRef::new(&x, 2, 3)?, &mut norms)?;
    assert_eq!(device.download(&norms)?, [5.0, 10.0]);
    let rows = [(1, 3), (1, 7), (1, 64), (2, 64), (2, 63)];
    assert_eq!(
        rows.map(|(outer, len)| NORMS.choice((outer, len, 1)).map(|choice| choice.rule).ok()),
        [0, 1, 2, 1, 2].map(Some)
    );

    let values = device.upload_of(&[1.0, 9.0, 9.0, -1.0].map(f16::from_f32))?;
    let mut at = device.alloc_of::<u32>(2)?;
    let segments: Segments = Segments::new(&device, &[0, 3, 4])?;
    LARGEST.launch_segments(&device, &values, &segments, &mut at)?;
    assert_eq!(device.download(&at)?, [1, 0]);

    for table in &ALL {
        let (x, y) = (device.upload_of(&[1.5, 4.0])?, device.upload_of(&[0.5, 1.0])?);
        let (mut mean, mut var) = (device.alloc_of::<f64>(1)?, device.alloc_of::<f64>(1)?);
        table.launch(&device, (&x, &y), (&mut mean, &mut var))?;
        assert_eq!((device.download(&mean)?, device.download(&var)?), (vec![2.0], vec![1.0]));
    }
    Ok(())
}

const GEMM: SgemmTable = sgemm_table! {
    invariant;
    m <= 2 || n <= 2 => tile: 8x8x8, thread: 1x1;;
    nt && aligned => tile: 16x16x8, thread: 2x2, float4;
    { let tiles = waves(16x16); tiles > 0.5 } => tile: 16x16x8, thread: 4x4; // the rest
    else => block: 8x8,
};

static LAYER: SgemmTable<(f32, f32, N, MN)> = sgemm_table![
    arch < 80 || sms <= 8 =>
        <scaled, epilogue: |acc, bias[n], residual[m, n]| acc + bias + residual>;
    else =>
        scaled, tile: 8x8x8, thread: 2x2,
        epilogue: |acc, bias[n], residual[m, n]| acc + bias + residual
];

macro_rules! both_products {
    ($($rows:tt)*) => {
        (sgemm_table!($($rows)*), stringify!($($rows)*))
    };
}

fn same_product<E: Operands>((table, text): (SgemmTable<E>, &str)) -> Result<(), Error> {
    let read: KernelTable<SgemmSpec> = text.parse()?;
    assert_eq!(table.text(), read.to_string(), "{text}");
    assert_eq!(SgemmTable::<E>::new(&read)?.text(), table.text(), "{text}");
    assert_eq!(SgemmTable::<ByName>::new(&read)?.text(), table.text(), "{text}");
    assert_eq!(table.text().parse::<KernelTable<SgemmSpec>>()?, read, "{text}");
    Ok(())
}

#[test]
fn a_table_of_products_is_that_of_its_text_and_lists_its_operands() -> Result<(), Error> {
    same_product::<()>(both_products!(else =>))?;
    same_product::<()>(both_products! { invariant; m<=8||padded=>unroll:4; else=>unroll:2 })?;
    same_product::<(f32, f32)>(both_products! { k > 9 => scaled; else => scaled, block: 8x8; })?;
    same_product::<(M,)>(both_products! {
        waves(128x256)>=2.0 => epilogue: |acc, s[m]| acc * s;
        else => block: 8x8, epilogue: |acc, s[m]| acc * s
    })?;
    same_product::<(f32, f32, N, MN, f32)>(both_products! {
        else => scaled, epilogue: |acc, bias[n], r[m, n], c[m, n], f| acc + bias * f + r - c
    })?;
    same_product::<()>(
        both_products! { tt => batch: pointers, unroll: 2; else => batch: pointers },
    )?;
    assert!(GEMM.text().starts_with("invariant;\nm <= 2 || n <= 2 => tile: 8x8x8;\n"), "{GEMM}");
    Ok(())
}

#[test]
fn tables_of_products_run_as_their_types_say() -> Result<(), Error> {
    let device = Device::simulator();
    let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[1.0; 6])?);
    let (a, b) = (MatrixRef::new(&a, 1, 2)?, MatrixRef::new(&b, 2, 3)?);
    let mut c = device.alloc(3)?;
    GEMM.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, 1, 3)?)?;
    assert_eq!(device.download(&c)?, [3.0; 3]);

    let (bias, residual) = (device.upload(&[1.0, 2.0, 3.0])?, device.upload(&[0.5; 3])?);
    let residual = MatrixRef::new(&residual, 1, 3)?;
    let mut to = MatrixMut::new(&mut c, 1, 3)?;
    LAYER.call(&device).operands((2.0, -1.0, &bias, &residual)).launch(&a, &b, &mut to)?;
    assert_eq!(device.download(&c)?, [4.5, 5.5, 6.5]);
    assert_eq!(LAYER.choice((1, 3, 2), &device)?.rule, 1);
    Ok(())
}

fn in_a_generic_function<T: Default + PartialEq>(row: usize) -> Result<bool, Error> {
    let table = sgemm_table! { m < 5 => ; else => block: 8x8 };
    Ok(table.choice((5, 1, 1), &Device::simulator())?.rule == row && T::default() == T::default())
}

/// A table may be in a generic function. Each instance of the function has its own table.
#[test]
fn a_table_stands_wherever_an_expression_does() -> Result<(), Error> {
    assert!(in_a_generic_function::<f32>(1)? && in_a_generic_function::<String>(1)?);
    let tables = [
        sgemm_table! { m < 5 => ; else => block: 8x8 },
        sgemm_table! { m < 6 => ; else => block: 8x8 },
    ];
    let device = Device::simulator();
    let rows = [(0, 4), (1, 4), (0, 5), (1, 5)].map(|(table, m)| {
        tables[table].clone().choice((m, 1, 1), &device).map(|choice| choice.rule).ok()
    });
    assert_eq!(rows, [0, 0, 1, 0].map(Some));
    Ok(())
}
