//! Reductions that are too slow for the simulator: more elements than 32 bits can count, and the
//! shapes for which the shipped tables were measured.

use crate::trial;
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{Op, ReduceSpec};
use gemm_oracle::fold::{Folded, Kind, Number, folded};
use gemm_oracle::random;
use gemm_oracle::random::Random;
use gemm_runtime::bounds::Elements;
use gemm_runtime::cudarc::driver::{CudaSlice, CudaStream, DeviceRepr};
use gemm_runtime::{Device, Element, MatrixRef, ReduceKernel, ReduceTable, Segments};
use libtest_mimic::{Failed, Trial};
use std::fmt::Debug;
use std::sync::Arc;

/// More elements than an `i32` can count.
const MANY: usize = (1 << 31) + 5;

/// Kernels for these elements, with many blocks: in both launch forms, as an array and as a row,
/// with and without vectors.
const WAYS: [&str; 4] = [
    "float4, items: 4, shuffle, blocks: 264, launch: once",
    "items: 8, blocks: 132",
    "over: rows, group: 256, items: 8, shuffle, blocks: 64, launch: once",
    "over: rows, group: 256, float4, blocks: 200",
];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![trial("reduce_large::more_than_31_bits".to_owned(), more_than_31_bits)];
    for (name, line, size) in [
        ("rows", "over: rows", (64, 1 << 20, 1)),
        ("columns", "over: columns", (1, 1 << 20, 128)),
        ("middle", "over: middle", (8, 4096, 4095)),
    ] {
        trials
            .push(trial(format!("reduce_large::tuned::{name}"), move |gpu| tuned(gpu, line, size)));
    }
    trials
}

/// Fills an array with repeated copies of some elements.
fn tile<T: DeviceRepr>(
    stream: &Arc<CudaStream>,
    elements: &[T],
    array: &mut CudaSlice<T>,
) -> Result<(), Failed> {
    let len = array.len();
    for start in (0..len).step_by(elements.len()) {
        let end = len.min(start + elements.len());
        put(stream, &elements[..end - start], array, start)?;
    }
    Ok(())
}

/// Overwrites elements, starting at an index.
fn put<T: DeviceRepr>(
    stream: &Arc<CudaStream>,
    elements: &[T],
    array: &mut CudaSlice<T>,
    start: usize,
) -> Result<(), Failed> {
    let part = array.try_slice_mut(start..start + elements.len());
    stream.memcpy_htod(elements, &mut part.ok_or("a part beyond the array")?)?;
    Ok(())
}

fn more_than_31_bits(gpu: &Device) -> Result<(), Failed> {
    let (_, stream) = gpu.cudarc().ok_or("a GPU has a stream")?;
    // The period is odd, so that no two blocks get the same elements.
    let mut random = Random::new(31);
    let elements: Vec<i8> =
        (0..(1 << 24) - 3).map(|_| ((random.bits() % 201) as i64 - 100) as i8).collect();
    let mut array = stream.alloc_zeros::<i8>(MANY)?;
    tile(stream, &elements, &mut array)?;
    let sum = |elements: &[i8]| elements.iter().map(|x| i64::from(*x)).sum::<i64>();
    let total =
        (MANY / elements.len()) as i64 * sum(&elements) + sum(&elements[..MANY % elements.len()]);
    let at = |index: usize| i64::from(elements[index % elements.len()]);

    put(stream, &[127], &mut array, MANY - 1)?;
    let total = total - at(MANY - 1) + 127;
    for way in WAYS {
        let sum: i64 = one(gpu, &format!("type: i8, acc: i64, {way}"), &array)?;
        equal(way, sum, total)?;
        greatest(gpu, "argmax", way, &array, MANY - 1)?;
    }
    // The result is the first of equal elements. Both indices exceed the range of an `i32`.
    put(stream, &[127, -128], &mut array, 1 << 31)?;
    let total = total - at(1 << 31) - at((1 << 31) + 1) + 127 - 128;
    for way in WAYS {
        let sum: i64 = one(gpu, &format!("type: i8, acc: i64, {way}"), &array)?;
        equal(way, sum, total)?;
        greatest(gpu, "argmax", way, &array, 1 << 31)?;
        greatest(gpu, "argmin", way, &array, (1 << 31) + 1)?;
    }
    let last = segments(gpu, &array, &[MANY as u64 - 9, 1 << 31, 1 << 31, MANY as u64])?;
    let sum = |from: usize, to: usize| (from..to).map(at).sum::<i64>();
    let behind = 127 - 128 + sum((1 << 31) + 2, MANY - 1) + 127;
    equal("segments", last, vec![sum(MANY - 9, 1 << 31), 0, behind])
}

/// Single result of a spec over all elements. The array is a row.
fn one<R>(gpu: &Device, line: &str, array: &CudaSlice<i8>) -> Result<R, Failed>
where
    R: Elements + Element,
{
    let kernel = ReduceKernel::<i8, R>::new(line.parse()?)?;
    let mut result = gpu.alloc_of::<R>(1)?;
    kernel.launch(gpu, &MatrixRef::new(array, 1, array.len())?, &mut result)?;
    Ok(gpu.download(&result)?[0])
}

/// Checks the index of the largest or smallest element, with both index types.
fn greatest(
    gpu: &Device,
    op: &str,
    way: &str,
    array: &CudaSlice<i8>,
    expected: usize,
) -> Result<(), Failed> {
    let line = format!("op: {op}, type: i8, {way}");
    equal(&line, one::<u32>(gpu, &line, array)?, expected as u32)?;
    equal(&line, one::<u64>(gpu, &format!("{line}, index: u64"), array)?, expected as u64)
}

fn segments(gpu: &Device, array: &CudaSlice<i8>, offsets: &[u64]) -> Result<Vec<i64>, Failed> {
    let mut sums = Vec::new();
    let narrow: Vec<u32> = offsets.iter().map(|offset| *offset as u32).collect();
    for index in ["u32", "u64"] {
        let line = format!("type: i8, acc: i64, over: segments, group: 4, index: {index}");
        let kernel = ReduceKernel::<i8, i64>::new(line.parse()?)?;
        let mut results = gpu.alloc_of::<i64>(offsets.len() - 1)?;
        if index == "u32" {
            let segments = Segments::<u32>::new(gpu, &narrow)?;
            kernel.launch_segments(gpu, array, &segments, &mut results)?;
        } else {
            let segments = Segments::<u64>::new(gpu, offsets)?;
            kernel.launch_segments(gpu, array, &segments, &mut results)?;
        }
        sums.push(gpu.download(&results)?);
    }
    let (narrow, wide) = (sums.swap_remove(0), sums.remove(0));
    equal("segments by offsets of u32 and u64", &narrow, &wide)?;
    Ok(wide)
}

fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("`{what}` gives {found:?}, not {expected:?}").into())
}

/// Checks some results of the shipped table at a shape.
fn tuned(gpu: &Device, over: &str, size: (usize, usize, usize)) -> Result<(), Failed> {
    let (outer, len, inner) = size;
    let (_, stream) = gpu.cudarc().ok_or("a GPU has a stream")?;
    // No two rows start with the same elements, and no two columns.
    let elements = random::values(7, (1 << 20) + 7);
    let mut array = stream.alloc_zeros::<f32>(outer * len * inner)?;
    tile(stream, &elements, &mut array)?;
    let view = match over {
        "over: rows" => MatrixRef::new(&array, outer, len)?,
        "over: columns" => MatrixRef::new(&array, len, inner)?,
        _ => MatrixRef::batch(&array, outer, len, inner)?,
    };
    let count = outer * inner;
    let mut random = Random::new(count as u64);
    let mut sampled = vec![0, count - 1];
    sampled.extend((0..6).map(|_| random.bits() as usize % count));
    for op in [Op::Sum, Op::Argmax, Op::MeanVar, Op::Logsumexp] {
        let spec: ReduceSpec = format!("op: {op}, {over}").parse()?;
        let (line, results) = by_table(gpu, &spec, &view, size)?;
        let chosen: ReduceSpec = line.parse()?;
        let (plan, kind) = (chosen.plan().map_err(|faults| faults.to_string())?, Kind::of(&chosen));
        let kind = kind.ok_or("an operator of ours")?;
        for &at in &sampled {
            let (row, column) = (at / inner, at % inner);
            let value = |k: usize| elements[((row * len + k) * inner + column) % elements.len()];
            let values: Vec<Number> = (0..len).map(|k| Number::Float(value(k).into())).collect();
            let expected = folded(kind, &plan, &values);
            for (n, (name, elem)) in chosen.results().into_iter().enumerate() {
                let what = format!("`{line}` of {size:?}: {name} {at}");
                if expected[n] == Folded::Unjudged {
                    return Err(format!("{what} has no error bound").into());
                }
                let judged = expected[n].judge(results[n][at], elem);
                judged.map_err(|wrong| format!("{what}: {wrong}"))?;
            }
        }
    }
    Ok(())
}

/// Spec that the table chooses, and the bits of its results.
fn by_table(
    gpu: &Device,
    spec: &ReduceSpec,
    view: &MatrixRef<'_>,
    (outer, len, inner): (usize, usize, usize),
) -> Result<(String, Vec<Vec<u64>>), Failed> {
    let (size, count) = ((outer as u64, len as u64, inner as u64), outer * inner);
    let bits = |values: Vec<f32>| values.into_iter().map(|x| x.to_bits().into()).collect();
    match (spec.op, spec.results()[0].1) {
        (Op::MeanVar, _) => {
            let table = ReduceTable::<f32, (f32, f32)>::tuned(spec)?;
            let (mut mean, mut var) = (gpu.alloc(count)?, gpu.alloc(count)?);
            table.launch(gpu, view, (&mut mean, &mut var))?;
            let results = vec![bits(gpu.download(&mean)?), bits(gpu.download(&var)?)];
            Ok((table.choice(size)?.spec, results))
        }
        (_, Elem::U32) => {
            let table = ReduceTable::<f32, u32>::tuned(spec)?;
            let mut indices = gpu.alloc_of::<u32>(count)?;
            table.launch(gpu, view, &mut indices)?;
            let indices = gpu.download(&indices)?.into_iter().map(u64::from).collect();
            Ok((table.choice(size)?.spec, vec![indices]))
        }
        _ => {
            let table = ReduceTable::<f32>::tuned(spec)?;
            let mut results = gpu.alloc(count)?;
            table.launch(gpu, view, &mut results)?;
            Ok((table.choice(size)?.spec, vec![bits(gpu.download(&results)?)]))
        }
    }
}
