//! Snapshots of the simulator's counters for one launch with a fixed shape.

use crate::compare;
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{
    Along, Batch, EpilogueArg, Lanes, MapSpec, MatrixType, Over, ReduceSpec, SgemmSpec,
};
use gemm_dsl::stages::pinned::PinnedSpec;
use gemm_runtime::fp8::{e4m3, e5m2};
use gemm_runtime::generic::Kernel;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{
    Buffer, ByName, Device, Element, Error, Gemm, LaunchReport, MatrixList, MatrixListMut,
    MatrixMut, MatrixRef, Number, ReduceKernel, Scan, Segments, Sgemm,
};
use gemm_sim::Counters;
use libtest_mimic::Trial;

/// Number of elements of the reduction. All blocks are full except one, which is nearly empty.
const LENGTH: usize = 4097;

/// Rows and columns of the reduced matrix. There are whole rounds and a partial one, whole blocks
/// and a partial one, and rows are aligned to 16 bytes.
const MATRIX: (usize, usize) = (1029, 188);

/// Number of segments. All blocks are full except one.
const SEGMENTS: u32 = 201;

/// (m, n, k) of the GEMM. Every stage has whole and partial tiles along each axis, and rows are
/// aligned to 16 bytes.
const SIZE: (usize, usize, usize) = (148, 276, 76);

/// (m, n, k) of a thin GEMM, with whole rounds of K and a partial one.
const THIN: (usize, usize, usize) = (132, 1, 588);

fn size(spec: &SgemmSpec) -> (usize, usize, usize) {
    if spec.lanes == Lanes::K { THIN } else { SIZE }
}

pub fn trial(stage: &PinnedSpec) -> Trial {
    let PinnedSpec { folder, stem, line, .. } = stage.clone();
    Trial::test(format!("counters::{folder}::{stem}"), move || {
        let (shape, launched) = match folder {
            "reduce" => reduce(&line)?,
            "segments" => reduce_segments(&line)?,
            "runs" => reduce_runs(&line)?,
            "numbers" => reduce_with_number(&line)?,
            "topk" => select(&line)?,
            "scans" => scan(&line)?,
            "map" | "rows" => map(&line)?,
            "typed" => typed(&line)?,
            _ => {
                let (m, n, k) = size(&line.parse::<SgemmSpec>()?);
                (format!("m = {m}, n = {n}, k = {k}"), multiply(&line)?)
            }
        };
        let counters = launched.counters().ok_or("the simulator did not count")?;
        let mut text = format!("{line}\n{shape}\n{}", counted(counters));
        // The other kernels split operands, or are the fallback of the multiplying kernel.
        let main = launched.steps().find(|step| step.counters() == Some(counters));
        let main = main.map(|step| step.kernel().to_owned()).unwrap_or_default();
        for step in launched.steps().filter(|step| folder == "sgemm" && step.kernel() != main) {
            let counters = step.counters().ok_or("the simulator did not count")?;
            text += &format!("\n{}\n{}", step.kernel(), counted(counters));
        }
        compare(folder, &format!("{stem}.counters"), &text);
        Ok(())
    })
}

/// Lists only non-zero counters.
fn counted(counters: &Counters) -> String {
    let counters = format!("{counters:#?}");
    let counted: Vec<&str> = counters.lines().filter(|line| !line.ends_with(": 0,")).collect();
    counted.join("\n")
}

fn reduce(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let spec = line.parse::<ReduceSpec>()?;
    let (over, kernel) = (spec.over, <ReduceKernel>::new(spec)?);
    if over == Over::All {
        let input = ones(&device, LENGTH)?;
        let launched = kernel.launch(&device, &input, &mut device.alloc(1)?)?;
        return Ok((format!("n = {LENGTH}"), launched));
    }
    let (rows, columns) = MATRIX;
    let input = ones(&device, rows * columns)?;
    let matrix = MatrixRef::new(&input, rows, columns)?;
    let launched = kernel.launch(&device, &matrix, &mut device.alloc(rows.max(columns))?)?;
    Ok((format!("{rows} rows, {columns} columns"), launched))
}

/// Argmax over an array of a few runs. The last run has one element.
fn reduce_runs(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let kernel = ReduceKernel::<f32, u32>::new(line.parse()?)?;
    let input = ones(&device, LENGTH)?;
    let launched = kernel.launch(&device, &input, &mut device.alloc_of(1)?)?;
    Ok((format!("n = {LENGTH}"), launched))
}

/// Argmax with its value over the rows of a matrix, with a number.
fn reduce_with_number(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let kernel = ReduceKernel::<(f32, Number<f32>), (f32, u32)>::new(line.parse()?)?;
    let (rows, columns) = MATRIX;
    let input = ones(&device, rows * columns)?;
    let matrix = MatrixRef::new(&input, rows, columns)?;
    let (mut value, mut index) = (device.alloc(rows)?, device.alloc_of(rows)?);
    let launched = kernel.launch(&device, (&matrix, 0.5), (&mut value, &mut index))?;
    Ok((format!("{rows} rows, {columns} columns"), launched))
}

/// Selection from the rows of a matrix, whose elements are in no order.
fn select(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let spec = line.parse::<ReduceSpec>()?;
    let k = spec.topk.unwrap_or(1) as usize;
    let kernel = ReduceKernel::<f32, (f32, u32)>::new(spec)?;
    let (rows, columns) = (2, LENGTH - LENGTH % 4);
    let elements: Vec<f32> = (0..rows * columns).map(|i| (i * 7919 % 10007) as f32).collect();
    let input = device.upload(&elements)?;
    let matrix = MatrixRef::new(&input, rows, columns)?;
    let (mut value, mut index) = (device.alloc(rows * k)?, device.alloc_of(rows * k)?);
    let launched = kernel.launch(&device, &matrix, (&mut value, &mut index))?;
    Ok((format!("{rows} rows, {columns} columns"), launched))
}

/// Scan of bytes. All tiles are full except one, which is nearly empty.
fn scan(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let kernel = Scan::<u8, u32>::new(line.parse()?)?;
    let len = 4 * LENGTH;
    let (input, mut output) = (device.upload_of(&vec![1_u8; len])?, device.alloc_of(len)?);
    let launched = kernel.launch(&device, &input, &mut output)?;
    Ok((format!("n = {len}"), launched))
}

/// Reduction of segments with up to 60 elements. Some segments are longer than a group reduces.
fn reduce_segments(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let kernel = <ReduceKernel>::new(line.parse()?)?;
    let mut offsets: Vec<u32> = vec![0];
    for n in 0..SEGMENTS {
        let length = if n % 50 == 7 { 700 } else { n * 37 % 61 };
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    let elements = offsets[offsets.len() - 1] as usize;
    let input = ones(&device, elements)?;
    let segments: Segments = Segments::new(&device, &offsets)?;
    let mut output = device.alloc(SEGMENTS as usize)?;
    let launched = kernel.launch_segments(&device, &input, &segments, &mut output)?;
    Ok((format!("{SEGMENTS} segments, {elements} elements"), launched))
}

/// Elementwise kernel over a matrix whose rows are whole vectors.
fn map(line: &str) -> Result<(String, LaunchReport), Error> {
    let device = Device::simulator();
    let spec: MapSpec = line.parse()?;
    let kernel = Kernel::<MapSpec, ByName>::new(spec.clone())?;
    let (rows, columns) = MATRIX;
    let elements = ones(&device, rows * columns)?;
    let matrix = MatrixRef::new(&elements, rows, columns)?;
    let mut single = device.alloc_matrix(rows, columns)?;
    let halves = device.upload_of(&vec![bf16::ONE; rows * columns])?;
    let half_matrix = MatrixRef::new(&halves, rows, columns)?;
    let mut half = device.alloc_matrix_of::<bf16>(rows, columns)?;
    let mut call = kernel.call(&device);
    for operand in spec.operands() {
        call = match operand.arg.along {
            Along::Nothing => call.operand(&operand.arg.name, 1.0_f32),
            Along::N | Along::M => call.operand(&operand.arg.name, &elements),
            Along::Mn if operand.elem == Elem::Bf16 => {
                call.operand(&operand.arg.name, &half_matrix)
            }
            Along::Mn => call.operand(&operand.arg.name, &matrix),
            along => unreachable!(
                "an elementwise kernel has no operand `[{}]`",
                along.index().join(", ")
            ),
        };
    }
    let mut of_rows = device.alloc(rows)?;
    let launched = match spec.results().as_slice() {
        [result] => call.result(result.name, &mut single).launch()?,
        [_, second] if second.along == Along::M => {
            call.result("output_0", &mut half).result("output_1", &mut of_rows).launch()?
        }
        _ => call.result("output_0", &mut half).result("output_1", &mut single).launch()?,
    };
    Ok((format!("{rows} rows, {columns} columns"), launched))
}

fn multiply(line: &str) -> Result<LaunchReport, Error> {
    let device = Device::simulator();
    let spec = line.parse::<SgemmSpec>()?;
    let size @ (m, n, k) = size(&spec);
    let (a, b) = (ones(&device, m * k)?, ones(&device, k * n)?);
    let cols = spec.pairs().columns_of_c(n as u64) as usize;
    let mut c = device.alloc(m * cols)?;
    let (operands, is_grouped) = (spec.operands(), spec.batch == Some(Batch::Grouped));
    if operands.is_empty() {
        return Sgemm::<()>::new(spec)?.launch(&device, &a, &b, &mut c, size);
    }
    let kernel = Sgemm::<ByName>::new(spec)?;
    let elements = ones(&device, m * n)?;
    let (of_n, of_m) = (elements.slice(..n)?, elements.slice(..m)?);
    let of_mn = MatrixRef::new(&elements, m, n)?;
    // A batch is a batch of one.
    let (row, column) = (MatrixRef::new(&elements, 1, n)?, MatrixRef::new(&elements, 1, m)?);
    let is_matrix = |operand: &&EpilogueArg| operand.is_output() && !operand.is_row_result();
    let outputs = operands.iter().filter(is_matrix);
    let outputs = outputs.map(|output| {
        let is_half = output.along == Along::Pairs;
        device.alloc_matrix(m, if is_half { n / 2 } else { n })
    });
    let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    let mut outputs = outputs.iter_mut();
    let sums = operands.iter().filter(|operand| operand.is_row_result());
    let mut sums = sums.map(|_| device.alloc(m)).collect::<Result<Vec<_>, _>>()?;
    let mut sums = sums.iter_mut();
    let mut call = kernel.call(&device);
    for operand in &operands {
        call = match operand.along {
            _ if operand.is_row_result() => match sums.next() {
                Some(sums) => call.operand(&operand.name, sums),
                None => unreachable!("there is a vector for each result of rows"),
            },
            _ if operand.is_output() => match outputs.next() {
                Some(output) => call.operand(&operand.name, output),
                None => unreachable!("there is a matrix for each output"),
            },
            Along::Nothing => call.operand(&operand.name, 1.0),
            Along::N => call.operand(&operand.name, &of_n),
            Along::M => call.operand(&operand.name, &of_m),
            Along::Mn | Along::Pairs => call.operand(&operand.name, &of_mn),
            Along::Batch => call.operand(&operand.name, &of_n),
            Along::BatchN => call.operand(&operand.name, &row),
            Along::BatchM => call.operand(&operand.name, &column),
        };
    }
    let (a, b) = (MatrixRef::new(&a, m, k)?, MatrixRef::new(&b, k, n)?);
    let mut c = MatrixMut::new(&mut c, m, cols)?;
    // One group has all rows.
    let offsets = device.upload_of(&[0, m as u32])?;
    if is_grouped {
        return call.groups(&offsets).launch(&a, &b, &mut c);
    }
    if kernel.spec_line().contains("batch: pointers") {
        let (a, b) = (MatrixList::new(&device, [&a])?, MatrixList::new(&device, [&b])?);
        return call.launch(&a, &b, &mut MatrixListMut::new(&device, [&mut c])?);
    }
    call.launch(&a, &b, &mut c)
}

/// GEMM on matrices of other types than `f32`.
fn typed(line: &str) -> Result<(String, LaunchReport), Error> {
    fn of<A: Element, B: Element, R: Element>(
        spec: SgemmSpec,
    ) -> Result<(String, LaunchReport), Error> {
        let device = Device::simulator();
        // Rows of 16-bit elements are whole 16-byte units.
        let has_vectors = spec.float4 && A::ELEM.size() <= 2;
        let (m, n, k) = (148, if has_vectors { 288 } else { 276 }, 80);
        let by_column = [spec.layout.transposes_a(), spec.layout.transposes_b()];
        let kernel = Gemm::<A, B, R, ByName>::new(spec.clone())?;
        fn view<T: Element>(
            of: &Buffer<T>,
            [rows, cols]: [usize; 2],
            by_column: bool,
        ) -> Result<MatrixRef<'_, T>, Error> {
            match by_column {
                true => Ok(MatrixRef::new(of, cols, rows)?.t()),
                false => MatrixRef::new(of, rows, cols),
            }
        }
        let (of_a, of_b) = (device.alloc_of::<A>(m * k)?, device.alloc_of::<B>(k * n)?);
        let (a, b) = (view(&of_a, [m, k], by_column[0])?, view(&of_b, [k, n], by_column[1])?);
        let of_c = spec.pairs().columns_of_c(n as u64) as usize;
        let (of_n, of_m) = (device.alloc(n)?, device.alloc(m)?);
        let mut c = device.alloc_matrix_of::<R>(m, of_c)?;
        // A batch is a batch of one, and one group has all rows.
        let row = MatrixRef::new(&of_n, 1, n)?;
        let offsets = device.upload_of(&[0, m as u32])?;
        let mut call = kernel.call(&device);
        for (name, index, vector) in
            [("bias", "n", &of_n), ("scale_b", "n", &of_n), ("scale_a", "m", &of_m)]
        {
            if kernel.spec_line().contains(&format!("{name}[{index}]")) {
                call = call.operand(name, vector);
            }
        }
        if kernel.spec_line().contains("bias[batch, n]") {
            call = call.operand("bias", &row);
        }
        if spec.batch == Some(Batch::Grouped) {
            call = call.groups(&offsets);
        }
        Ok((format!("m = {m}, n = {n}, k = {k}"), call.launch(&a, &b, &mut c)?))
    }
    let spec = line.parse::<SgemmSpec>()?;
    match (spec.a, spec.c) {
        (MatrixType::F64, _) => of::<f64, f64, f64>(spec),
        (MatrixType::F16, _) => of::<f16, f16, f16>(spec),
        (MatrixType::I8, _) => of::<i8, i8, f32>(spec),
        (MatrixType::U8, _) => of::<u8, i8, i32>(spec),
        (MatrixType::E4m3, _) => of::<e4m3, e5m2, bf16>(spec),
        (_, MatrixType::F32) => of::<bf16, bf16, f32>(spec),
        _ => of::<bf16, bf16, bf16>(spec),
    }
}

/// Uploads an array of ones. Counts do not depend on the elements.
fn ones(device: &Device, len: usize) -> Result<Buffer, Error> {
    device.upload(&vec![1.0; len])
}
