//! Each fault in a table is reported once, at its own tokens, and the table still has its type.

use gemm_runtime::{Device, Error, ReduceTable, reduce_table};

const NO_ELSE: ReduceTable = reduce_table! {
    len <= 4 => over: rows, group: 8;
    len <= 64 => over: rows, group: 32;
};

const UNREACHABLE: ReduceTable = reduce_table! {
    len <= 4 => over: rows, group: 8;
    (len <= 4) => over: rows, group: 16;
    1 < 2 => over: rows, group: 32;
    else => over: rows;
    len > 99 => over: rows, shuffle, group: 256;
};

const LINES: ReduceTable = reduce_table! {
    len <= 4 => over: rows, grup: 8;
    len <= 8 => over: rows, group: 3;
    len <= 16 => op: sun, over: rows;
    len <= 32 => over: rows, map: |x| x * y;
    len <= 64, over: rows;
    else => over: rows items: 4;
};

const CONDITIONS: ReduceTable = reduce_table! {
    len => items: 1;
    len <= 1.5 => items: 2;
    n < 4 && lne > 3 => items: 3;
    len = 4 => items: 4;
    sqrt(len) < 9 => items: 5;
    len <= 8 && outer => items: 6;
    |x| x < 8 => items: 7;
    8 / len > 1 => items: 8;
    => items: 9;
};

const OTHER_WORK: ReduceTable<f32, u32> = reduce_table! {
    len <= 4 => op: argmax, over: rows;
    len <= 8 => op: argmin, over: rows;
    len <= 9 => op: argmax;
    else => op: argmax, over: rows, map: |x| -x;
};

// The types of the table follow from a rule that could be parsed.
const FIRST: ReduceTable<u8, u32> = reduce_table! {
    len <= 4 => tpye: u8;
    else => type: u8, items: 2;
};

const EMPTY: ReduceTable = reduce_table! {};

fn main() -> Result<(), Error> {
    let device = Device::auto()?;
    let x = device.upload_matrix(&[1.0, 2.0], 1, 2)?;
    let mut to = device.alloc(1)?;
    for table in [NO_ELSE, UNREACHABLE, LINES, CONDITIONS, EMPTY] {
        table.launch(&device, &x, &mut to)?;
    }
    let mut at = device.alloc_of::<u32>(1)?;
    OTHER_WORK.launch(&device, &x, &mut at)?;
    FIRST.launch(&device, &device.upload_of(&[1_u8])?, &mut at)?;
    reduce_table! { len < 4 => block: 7; else => }.launch(&device, &x, &mut to)?;
    Ok(())
}
