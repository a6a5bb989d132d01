//! Reference results of GEMMs in `f64`, and error bounds.

use gemm_dsl::spec::Arith;
use rayon::prelude::*;

/// Error allowed for underflow. A kernel in `f32` may round a product and a sum for each term.
pub fn underflow(arith: Arith, terms: u64) -> f64 {
    arith.underflow_bound(terms).max(2.0 * Arith::F32.underflow_bound(terms))
}

/// Extents of a GEMM: A is m×k, B is k×n, C is m×n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
}

impl Size {
    /// Extents in BLAS order.
    pub const fn new(m: usize, n: usize, k: usize) -> Self {
        Self { m, n, k }
    }

    pub const fn square(n: usize) -> Self {
        Self { m: n, n, k: n }
    }

    /// Extents as a tuple, as the runtime requires.
    pub fn extents(self) -> (usize, usize, usize) {
        (self.m, self.n, self.k)
    }

    /// Floating-point operations, counting a multiplication and an addition per multiply-add.
    pub fn flops(self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }

    /// Bytes of A, B and C, each counted once.
    pub fn bytes(self) -> f64 {
        let (m, n, k) = (self.m as f64, self.n as f64, self.k as f64);
        size_of::<f32>() as f64 * (m * k + k * n + m * n)
    }
}

/// `1024` for a square, else `m x n x k`.
impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.m == self.n && self.n == self.k {
            write!(f, "{}", self.n)
        } else {
            write!(f, "{}x{}x{}", self.m, self.n, self.k)
        }
    }
}

/// Transpose of a packed row-major matrix.
pub fn transposed(elements: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    let column = |col: usize| (0..rows).map(move |row| elements[row * cols + col]);
    (0..cols).flat_map(column).collect()
}

/// Reference A·B and |A|·|B|, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// K of the GEMM.
    pub k: usize,
    /// A·B.
    pub values: Vec<f64>,
    /// |A|·|B|, the scale of the errors.
    pub magnitudes: Vec<f64>,
}

/// Verdict on the element with the largest error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Error minus possible underflow, relative to the element of |A|·|B|. Infinite for a NaN.
    pub error: f64,
    /// Allowed error: 2·k·2^-24, which is twice the error of k roundings, plus the error of the
    /// arithmetic.
    pub allowed: f64,
    /// Row-major index of the element, or 0 if there is none.
    pub index: usize,
    pub result: f64,
    pub reference: f64,
    /// True if the result has the right number of elements and every error is within the bound.
    pub ok: bool,
}

impl Truth {
    /// Multiplies on the host.
    pub fn on_host(a: &[f32], b: &[f32], size: Size) -> Self {
        let Size { m, n, k } = size;
        let (mut values, mut magnitudes) = (vec![0.0; m * n], vec![0.0; m * n]);
        if n > 0 {
            let rows = values.par_chunks_mut(n).zip(magnitudes.par_chunks_mut(n)).enumerate();
            rows.for_each(|(row, (values, magnitudes))| {
                for (&x, b) in a[row * k..(row + 1) * k].iter().zip(b.chunks_exact(n)) {
                    let x = f64::from(x);
                    for ((value, magnitude), &y) in values.iter_mut().zip(&mut *magnitudes).zip(b) {
                        // The product of two f32 is exact in f64.
                        let term = x * f64::from(y);
                        *value += term;
                        *magnitude += term.abs();
                    }
                }
            });
        }
        Self { k, values, magnitudes }
    }

    /// Checks a result of the same extents. The k products of an element may be added in any order
    /// and grouping, with one rounding per product and per sum.
    pub fn judge(&self, c: &[f32]) -> Verdict {
        self.judge_in(c, Arith::F32)
    }

    /// Checks a result of a GEMM in another arithmetic.
    pub fn judge_in(&self, c: &[f32], arith: Arith) -> Verdict {
        let (k, same) = (self.k as u64, c.len() == self.values.len());
        let (allowed, underflow) = (arith.error_bound(k), underflow(arith, k));
        let error = |(index, (&x, (&value, &magnitude))): (usize, (&f32, (&f64, &f64)))| {
            let difference = (f64::from(x) - value).abs();
            let error =
                if difference <= underflow { 0.0 } else { (difference - underflow) / magnitude };
            (if error.is_nan() { f64::INFINITY } else { error }, index)
        };
        let truth = self.values.par_iter().zip(&self.magnitudes);
        let worst = c.par_iter().zip(truth).enumerate().map(error);
        let Some((error, index)) = worst.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Verdict {
                error: 0.0,
                allowed,
                index: 0,
                result: 0.0,
                reference: 0.0,
                ok: same,
            };
        };
        let (result, reference) = (f64::from(c[index]), self.values[index]);
        Verdict { error, allowed, index, result, reference, ok: same && error <= allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { m: 2, n: 3, k: 2 };
    const A: [f32; 4] = [1.0, -2.0, 3.0, 4.0];
    const B: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const C: [f32; 6] = [-7.0, -8.0, -9.0, 19.0, 26.0, 33.0];

    #[test]
    fn multiplies() {
        let truth = Truth::on_host(&A, &B, SIZE);
        assert_eq!(truth.values, C.map(f64::from));
        assert_eq!(truth.magnitudes, [9.0, 12.0, 15.0, 19.0, 26.0, 33.0]);
        let verdict = truth.judge(&C);
        assert!(verdict.ok && verdict.error == 0.0);
    }

    #[test]
    fn finds_the_worst_element() {
        let mut c = C;
        c[1] = -8.5;
        c[4] = 26.5;
        let verdict = Truth::on_host(&A, &B, SIZE).judge(&c);
        assert_eq!((verdict.index, verdict.result, verdict.reference), (1, -8.5, -8.0));
        assert!(!verdict.ok);
        c[5] = f32::NAN;
        let verdict = Truth::on_host(&A, &B, SIZE).judge(&c);
        assert!(verdict.result.is_nan() && verdict.error.is_infinite() && !verdict.ok);
    }

    #[test]
    fn an_underflow_is_no_error_and_a_lost_value_is() {
        let size = Size::new(1, 1, 2);
        let truth = Truth::on_host(&[1e-30, 1e-20], &[-1e-30, 1e-20], size);
        assert!(truth.judge(&[1e-20 * 1e-20]).ok);
        assert!(truth.judge(&[0.0]).error > 0.9);
        assert!(Truth::on_host(&[1e-30, 1e-30], &[1e-30, 1e-30], size).judge(&[0.0]).ok);
    }

    #[test]
    fn a_result_of_another_length_is_wrong() {
        let truth = Truth::on_host(&A, &B, SIZE);
        assert!(!truth.judge(&C[..5]).ok && !truth.judge(&[]).ok);
        assert!(!truth.judge(&[C, C].concat()).ok);
    }

    #[test]
    fn without_depth_the_result_is_zero() {
        let truth = Truth::on_host(&[], &[], Size { m: 2, n: 1, k: 0 });
        assert!(truth.judge(&[0.0, 0.0]).ok);
        assert!(!truth.judge(&[0.0, 1e-30]).ok);
        assert!(Truth::on_host(&[], &[], Size { m: 0, n: 1, k: 5 }).judge(&[]).ok);
    }
}
