//! Launches of the stages of both ladders, for tests in which the values of operands do not matter.

use gemm_dsl::spec::{Along, Over, ReduceSpec, SgemmSpec, newer_word};
use gemm_oracle::beside::Beside;
use gemm_oracle::product::Size;
use gemm_runtime::generic::Kernel;
use gemm_runtime::{Buffer, ByName, Device, Error, LaunchReport, Matrix, MatrixRef, Sgemm};

/// Numbers between −1 and 1 that every arithmetic can represent.
fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|at| ((at * 37 % 97) as f32 - 48.0) / 64.0).collect()
}

/// Matrix on a device: packed, or with 16-byte aligned rows.
fn matrix(device: &Device, (rows, cols): (usize, usize), pitched: bool) -> Result<Matrix, Error> {
    let elements = numbers(rows * cols);
    match pitched {
        true => device.upload_matrix_padded(&elements, rows, cols),
        false => Matrix::from_buffer(device.upload(&elements)?, rows, cols, cols),
    }
}

/// View of a matrix that is stored column-major or row-major.
fn in_layout(lines: MatrixRef<'_>, by_column: bool) -> MatrixRef<'_> {
    if by_column { lines.t() } else { lines }
}

/// Launches the kernels of a GEMM once.
///
/// # Errors
/// Returns the error of the launch.
pub fn product(device: &Device, spec: &SgemmSpec, size: Size) -> Result<LaunchReport, Error> {
    let Size { m, n, k } = size;
    let turned = [spec.layout.transposes_a(), spec.layout.transposes_b()];
    let lines = |rows, cols, turned| if turned { (cols, rows) } else { (rows, cols) };
    let a = matrix(device, lines(m, k, turned[0]), spec.pitched)?;
    let b = matrix(device, lines(k, n, turned[1]), spec.pitched)?;
    let mut c = matrix(device, (m, n), spec.pitched)?;
    let beside = Beside::new(spec, size, || 0.5, numbers);
    let mut vectors: Vec<Option<Buffer>> = Vec::new();
    let mut matrices: Vec<Option<Matrix>> = Vec::new();
    for (operand, values) in &beside.operands {
        let is_vector = matches!(operand.along, Along::M | Along::N);
        vectors.push(if is_vector { Some(device.upload(values)?) } else { None });
        let is_matrix = operand.along == Along::Mn;
        matrices.push(if is_matrix { Some(matrix(device, (m, n), spec.pitched)?) } else { None });
    }
    let views: Vec<Option<MatrixRef<'_>>> =
        matrices.iter().map(|matrix| matrix.as_ref().map(Matrix::view)).collect();
    let kernel = Sgemm::<ByName>::new(spec.clone())?;
    let mut call = kernel.call(device);
    for ((operand, values), (vector, view)) in
        beside.operands.iter().zip(vectors.iter().zip(&views))
    {
        call = match (vector, view) {
            (Some(vector), _) => call.operand(&operand.name, vector),
            (_, Some(view)) => call.operand(&operand.name, view),
            (None, None) => call.operand(&operand.name, values[0]),
        };
    }
    call.launch(&in_layout(a.view(), turned[0]), &in_layout(b.view(), turned[1]), &mut c.view_mut())
}

/// Launches the kernels of a reduction once, on a matrix, or on an array of its elements.
///
/// # Errors
/// Returns the error of the launch.
pub fn reduction(
    device: &Device,
    spec: &ReduceSpec,
    (rows, cols): (usize, usize),
) -> Result<LaunchReport, Error> {
    let array = device.upload(&numbers(rows * cols))?;
    let (view, results) = match spec.over {
        Over::All | Over::Segments => (MatrixRef::new(&array, 1, rows * cols)?, 1),
        Over::Rows => (MatrixRef::new(&array, rows, cols)?, rows),
        Over::Columns | Over::Middle => (MatrixRef::new(&array, rows, cols)?, cols),
        over => newer_word(over),
    };
    let kernel = Kernel::<ReduceSpec, ByName>::new(spec.clone())?;
    let mut result: Buffer = device.alloc(results)?;
    let mut call = kernel.call(device);
    for name in spec.inputs() {
        call = call.input(name, &view);
    }
    // Specs of the ladder have one result.
    if let Some((name, _)) = spec.results().first() {
        call = call.output(name, &mut result);
    }
    call.launch()
}
