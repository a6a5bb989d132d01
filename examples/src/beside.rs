//! What a product reads beside A and B, on a device.

use crate::data;
use gemm_dsl::spec::{Along, SgemmOperand, SgemmSpec};
use gemm_reference::beside::Beside as OnHost;
use gemm_reference::epilogue::stored;
use gemm_reference::product::{Size, Verdict};
use gemm_runtime::{AsMatrix, AsMatrixMut, Buffer, ByName, Device, Error, Launched, Matrix, Sgemm};

/// What C is made of, of a scaled product: alpha of A·B and beta of what it was.
pub const FACTORS: [f32; 2] = [1.25, 0.5];

/// Operands are drawn with seeds from here on.
const SEED: u64 = 1 << 40;

/// The most elements of C whose epilogue is computed anew.
const CHECKED: usize = 1 << 16;

/// The operands of a spec, on the host and on a device.
pub struct Beside {
    spec: SgemmSpec,
    size: Size,
    on_host: OnHost,
    arrays: Vec<Array>,
}

enum Array {
    Number(f32),
    Vector(Buffer),
    Matrix(Matrix),
}

impl Beside {
    /// Random operands.
    ///
    /// # Errors
    /// Those of uploads.
    pub fn new(device: &Device, spec: &SgemmSpec, size: Size) -> Result<Self, Error> {
        let (mut seed, mut factors) = (SEED, FACTORS.into_iter().cycle());
        let on_host = OnHost::new(
            spec,
            size,
            || factors.next().unwrap_or(1.0),
            |len| {
                seed += 1;
                data::uniform(seed, len, -1.0, 1.0)
            },
        );
        let array = |(operand, values): &(SgemmOperand, Vec<f32>)| {
            Ok::<_, Error>(match operand.along {
                Along::Nothing => Array::Number(values[0]),
                Along::N | Along::M => Array::Vector(device.upload(values)?),
                Along::Mn => Array::Matrix(placed(device, values, (size.m, size.n), spec.pitched)?),
            })
        };
        let arrays = on_host.operands.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { spec: spec.clone(), size, on_host, arrays })
    }

    /// The spec.
    pub fn spec(&self) -> &SgemmSpec {
        &self.spec
    }

    /// C before a launch: a NaN where the kernel does not read it.
    pub fn c_before(&self) -> Vec<f32> {
        self.on_host.c_or(f32::NAN, self.size)
    }

    /// Launches a kernel of the spec.
    ///
    /// # Errors
    /// Those of the launch.
    pub fn launch(
        &self,
        kernel: &Sgemm<ByName>,
        device: &Device,
        (a, b): (&impl AsMatrix, &impl AsMatrix),
        c: &mut impl AsMatrixMut,
    ) -> Result<Launched, Error> {
        let mut call = kernel.call(device);
        for ((operand, _), array) in self.on_host.operands.iter().zip(&self.arrays) {
            call = match array {
                Array::Number(number) => call.operand(&operand.name, *number),
                Array::Vector(vector) => call.operand(&operand.name, vector),
                Array::Matrix(matrix) => call.operand(&operand.name, matrix),
            };
        }
        call.launch(a, b, c)
    }

    /// Adds to the verdict on sums what is wrong with what was stored for them, to the bit.
    ///
    /// # Errors
    /// Those of the simulator, which computes it anew.
    pub fn judge(&self, sums: &[f32], c: &[f32], verdict: Verdict) -> Result<Verdict, Error> {
        let step = sums.len().div_ceil(CHECKED).max(1);
        let some: Vec<(usize, f32)> = sums.iter().copied().enumerate().step_by(step).collect();
        let expected = stored(&self.spec, &some, self.size, &self.on_host);
        let expected = expected.map_err(|error| Error::Internal(error.to_string()))?;
        let differs = |((index, _), expected): &(&(usize, f32), &f32)| {
            c.get(*index).map(|found| found.to_bits()) != Some(expected.to_bits())
        };
        Ok(match some.iter().zip(&expected).find(differs) {
            None => verdict,
            Some((&(index, _), &expected)) => Verdict {
                index,
                result: c.get(index).copied().unwrap_or(f32::NAN).into(),
                reference: expected.into(),
                ok: false,
                ..verdict
            },
        })
    }
}

/// A matrix in the form that a kernel takes: its lines one after the other, or padded to 16 bytes.
fn placed(
    device: &Device,
    elements: &[f32],
    (lines, line): (usize, usize),
    pitched: bool,
) -> Result<Matrix, Error> {
    match pitched {
        true => device.upload_matrix(elements, lines, line),
        false => Matrix::from_buffer(device.upload(elements)?, lines, line, line),
    }
}

/// Launches a spec once, on A and B as they lie in memory for it.
///
/// # Errors
/// Those of uploads and of the launch.
pub fn launch_once(
    device: &Device,
    spec: &SgemmSpec,
    (a, b): (&[f32], &[f32]),
    size: Size,
) -> Result<Launched, Error> {
    let Size { m, n, k } = size;
    let by_column = [spec.layout.transposes_a(), spec.layout.transposes_b()];
    let lines = |rows, cols, by_column| if by_column { (cols, rows) } else { (rows, cols) };
    let a = placed(device, a, lines(m, k, by_column[0]), spec.pitched)?;
    let b = placed(device, b, lines(k, n, by_column[1]), spec.pitched)?;
    let beside = Beside::new(device, spec, size)?;
    let mut c = placed(device, &beside.c_before(), (m, n), spec.pitched)?;
    let a = if by_column[0] { a.view().t() } else { a.view() };
    let b = if by_column[1] { b.view().t() } else { b.view() };
    beside.launch(&Sgemm::new(spec.clone())?, device, (&a, &b), &mut c)
}
