//! Epilogue operands of a GEMM, and the values that it stores for its sums.

use crate::product::Size;
use gemm_dsl::spec::{Along, EpilogueArg, SgemmSpec};

/// Spec without scale and epilogue, or None if the spec has neither.
pub fn plain(spec: &SgemmSpec) -> Option<SgemmSpec> {
    let mut plain = spec.clone().scaled(false);
    plain.epilogue = None;
    (plain != *spec).then_some(plain)
}

/// Epilogue operands of a spec, and C before the launch.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Each operand with its packed elements, for one GEMM. A scalar has one element.
    pub operands: Vec<(EpilogueArg, Vec<f32>)>,
    /// Packed C, if the kernel reads it. It is NaN if beta is 0, so that C must not affect the
    /// result.
    pub c: Option<Vec<f32>>,
}

impl Beside {
    /// Operands of a spec. `factor` returns alpha and beta, `values` the elements of all other
    /// operands.
    pub fn new(
        spec: &SgemmSpec,
        Size { m, n, .. }: Size,
        mut factor: impl FnMut() -> f32,
        mut values: impl FnMut(usize) -> Vec<f32>,
    ) -> Self {
        let mut operands = Vec::new();
        for operand in spec.operands().into_iter().filter(|operand| !operand.is_output()) {
            let elements = match operand.along {
                Along::Nothing if spec.scaled && operands.len() < 2 => vec![factor()],
                Along::Nothing | Along::Batch => values(1),
                Along::N | Along::BatchN => values(n),
                Along::M | Along::BatchM => values(m),
                Along::Mn | Along::Pairs => values(m * n),
            };
            operands.push((operand, elements));
        }
        let mut beside = Self { operands, c: None };
        if spec.reads_c() {
            let skipped = !spec.names_c() && beside.factors().is_some_and(|(_, beta)| beta == 0.0);
            beside.c = Some(if skipped { vec![f32::NAN; m * n] } else { values(m * n) });
        }
        beside
    }

    /// C before a launch. It is filled with `unread` if the kernel does not read it.
    pub fn c_or(&self, unread: f32, size: Size) -> Vec<f32> {
        self.c.clone().unwrap_or_else(|| vec![unread; size.m * size.n])
    }

    /// True if alpha is 0, so that A·B is not computed.
    pub fn skips_terms(&self) -> bool {
        self.factors().is_some_and(|(alpha, _)| alpha == 0.0)
    }

    /// Alpha and beta, if they are the first operands.
    fn factors(&self) -> Option<(f32, f32)> {
        let number = |n: usize, name| match self.operands.get(n) {
            Some((operand, values)) if operand.name == name => Some(values[0]),
            _ => None,
        };
        Some((number(0, "alpha")?, number(1, "beta")?))
    }

    /// Value of an operand for an element of C.
    pub(crate) fn at(&self, operand: usize, (row, col): (usize, usize), n: usize) -> f32 {
        let (EpilogueArg { along, .. }, values) = &self.operands[operand];
        values[match along {
            Along::Nothing | Along::Batch => 0,
            Along::N | Along::BatchN => col,
            Along::M | Along::BatchM => row,
            Along::Mn | Along::Pairs => row * n + col,
        }]
    }

    /// Result of `scaled` for the sum of element `index` of C, with BLAS semantics.
    pub(crate) fn scaled(&self, spec: &SgemmSpec, sum: f32, index: usize, size: Size) -> f32 {
        let (Some((alpha, beta)), true) = (self.factors(), spec.scaled) else {
            return sum;
        };
        let c = self.c.as_ref().map_or(0.0, |c| c[index]);
        let scaled = match (alpha == 0.0 || size.k == 0, beta == 0.0) {
            (true, true) => 0.0,
            (true, false) => beta * c,
            (false, true) => alpha * sum,
            (false, false) => alpha * sum + beta * c,
        };
        // A NaN is replaced with the canonical NaN of CUDA arithmetic.
        if scaled.is_nan() { f32::from_bits(0x7fff_ffff) } else { scaled }
    }
}
