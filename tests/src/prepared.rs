//! GEMMs with prepared A, B, or both. The bits must be the same with and without prepared operands.

use crate::product::Problem;
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_runtime::{ByName, Device, Error, LaunchReport, MatrixMut, MatrixRef, Sgemm};

pub struct Found {
    /// True if the split represents all numbers of A, and of B.
    pub is_whole: [bool; 2],
    /// Number of blocks that split operands: without prepared operands, with prepared B, with
    /// prepared A, and with both.
    pub blocks: [u64; 4],
}

/// Computes C without prepared operands, then with prepared B (twice), A, and both. The lines of B
/// have `pitch` elements of padding, and `pitch` elements precede the first line in the buffer.
///
/// # Errors
/// Returns the error of a launch, or the position of the first difference.
pub fn compare(
    device: &Device,
    spec: &SgemmSpec,
    problem: &Problem,
    pitch: usize,
) -> Result<Found, String> {
    let failed = |error: Error| format!("`{spec}` at {}: {error}", problem.size);
    let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(failed)?;
    let Size { m, n, .. } = problem.size;
    let [a, b] = problem.stored_inputs(spec.layout);
    let on_a = device.upload(&a.values).map_err(failed)?;
    let apart = b.line + pitch;
    let mut padded = vec![f32::NAN; pitch + b.lines * apart];
    for (nth, line) in b.values.chunks(b.line.max(1)).enumerate() {
        padded[pitch + nth * apart..][..b.line].copy_from_slice(line);
    }
    let on_b = device.upload(&padded).map_err(failed)?;
    let behind = on_b.slice(pitch..).map_err(failed)?;
    let in_a = a.view(MatrixRef::new(&on_a, a.lines, a.line).map_err(failed)?);
    let in_b = b.view(MatrixRef::pitched(&behind, b.lines, b.line, apart).map_err(failed)?);
    let prepared = device.prepare(spec.arith, &in_b).map_err(failed)?;
    let turned = device.prepare(spec.arith, &in_a.t()).map_err(failed)?;
    let given_a = turned.t();
    let made = |launched: &LaunchReport| -> u64 {
        let steps = launched.steps().filter(|step| {
            step.kernel().ends_with("_splits") || step.kernel().ends_with("_row_max")
        });
        steps.map(|step| step.grid().iter().map(|n| u64::from(*n)).product::<u64>()).sum()
    };
    let mut blocks = [0; 4];
    let mut first: Option<Vec<u32>> = None;
    for (turn, kind) in [0, 1, 1, 2, 3].into_iter().enumerate() {
        let mut c = device.upload(&vec![f32::NAN; m * n]).map_err(failed)?;
        let mut out = MatrixMut::new(&mut c, m, n).map_err(failed)?;
        let call = kernel.call(device);
        let launched = match kind {
            0 => call.launch(&in_a, &in_b, &mut out),
            1 => call.launch(&in_a, &prepared, &mut out),
            2 => call.launch(&given_a, &in_b, &mut out),
            _ => call.launch(&given_a, &prepared, &mut out),
        };
        blocks[kind] = made(&launched.map_err(failed)?);
        let bits: Vec<u32> =
            device.download(&c).map_err(failed)?.iter().map(|c| c.to_bits()).collect();
        if *first.get_or_insert_with(|| bits.clone()) != bits {
            return Err(format!(
                "`{spec}` at {}: prepared operands give other bits, turn {turn}",
                problem.size
            ));
        }
    }
    Ok(Found { is_whole: [given_a.is_whole(), prepared.is_whole()], blocks })
}
