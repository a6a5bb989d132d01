//! Tests of GEMMs: operands, launches in poisoned memory, and the reference.

use crate::operands;
use gemm_dsl::spec::{Along, Bounds, GemmLayout, SgemmSpec};
use gemm_oracle::beside::{Beside, plain};
use gemm_oracle::epilogue::stored;
use gemm_oracle::product::{Size, Truth, transposed};
use gemm_oracle::random;
use gemm_oracle::random::{Hard, Random};
use gemm_oracle::sharing::{SIMULATED, Sharing};
use gemm_runtime::{
    ByName, Device, Error, Matrix, MatrixMut, MatrixRef, Sgemm, SgemmKernel, Variant,
};

/// Bits of a NaN that no arithmetic produces. Memory that must not be written is filled with it.
const POISON: u32 = 0x7fc0_dead;

/// Values of alpha and beta: the special cases of BLAS, and some others.
const FACTORS: [f32; 8] = [0.0, -0.0, 1.0, 0.7, -1.3, f32::NAN, f32::INFINITY, 2.0];

/// A and B, with A·B in f64.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Rows of A, columns of B, and K.
    pub size: Size,
    /// A, m by k, packed.
    pub a: Vec<f32>,
    /// B, k by n, packed.
    pub b: Vec<f32>,
    truth: Truth,
}

/// Placement of the operands in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Elements between an aligned address and the first elements of A, B and C. Only packed
    /// kernels support offsets.
    pub offsets: [usize; 3],
    /// Elements after each row of A, B and C. Only `pitched` kernels support padding.
    pub padding: [usize; 3],
}

impl Placement {
    /// Placement in which all rows, or columns, start at 16-byte boundaries.
    pub fn aligned_rows(layout: GemmLayout, Size { m, n, k }: Size) -> Self {
        let rest = |line: usize| line.next_multiple_of(4) - line;
        let a = if layout.transposes_a() { m } else { k };
        let b = if layout.transposes_b() { k } else { n };
        Self { padding: [rest(a), rest(b), rest(n)], ..Self::default() }
    }
}

/// Matrix as stored in memory.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Elements, line after line.
    pub values: Vec<f32>,
    /// Number of lines, which are rows or columns.
    pub lines: usize,
    /// Elements of a line.
    pub line: usize,
    /// True if the matrix is column-major.
    pub by_column: bool,
}

impl Stored {
    /// View of the matrix, given a view of its lines as rows.
    pub fn view<'a>(&self, lines: MatrixRef<'a>) -> MatrixRef<'a> {
        if self.by_column { lines.t() } else { lines }
    }
}

struct Launch<'l> {
    device: &'l Device,
    kernel: &'l Sgemm<ByName>,
    stored: &'l [Stored; 2],
    beside: &'l Beside,
}

/// Packed C, and the access variant that computed it.
pub type Multiplied = (Vec<f32>, Variant);

impl Problem {
    pub fn new(size: Size, seed: u64) -> Self {
        let Size { m, n, k } = size;
        Self::of(size, random::values(seed, m * k), random::values(!seed, k * n))
    }

    /// Operands whose products underflow, cancel or overflow.
    pub fn hard(size: Size, seed: u64, what: Hard) -> Self {
        let Size { m, n, k } = size;
        Self::of(size, what.values(seed, m * k), what.values(!seed, k * n))
    }

    /// A and B as stored for a layout.
    pub fn stored_inputs(&self, layout: GemmLayout) -> [Stored; 2] {
        let Size { m, n, k } = self.size;
        let stored = |values: &[f32], rows, cols, by_column| match by_column {
            false => Stored { values: values.to_vec(), lines: rows, line: cols, by_column },
            true => {
                let values = transposed(values, rows, cols);
                Stored { values, lines: cols, line: rows, by_column }
            }
        };
        [stored(&self.a, m, k, layout.transposes_a()), stored(&self.b, k, n, layout.transposes_b())]
    }

    /// C of a spec, computed on the host, with each sum in the order of its [`Sharing`] on the
    /// simulator.
    pub fn ascending(&self, spec: &SgemmSpec) -> Vec<f32> {
        self.ascending_on(SIMULATED, spec)
    }

    /// C of a spec, computed on the host, with each sum in the order of its [`Sharing`] on a device
    /// with `sms` SMs.
    pub fn ascending_on(&self, sms: usize, spec: &SgemmSpec) -> Vec<f32> {
        let Size { m, n, k } = self.size;
        let sharing = Sharing::new(spec, self.size, 1, sms);
        let most = |size: f32, value: &f32| size.max(value.abs());
        let rows: Vec<f32> =
            (0..m).map(|row| self.a[row * k..(row + 1) * k].iter().fold(0.0, most)).collect();
        let cols: Vec<f32> =
            (0..n).map(|col| (0..k).map(|p| &self.b[p * n + col]).fold(0.0, most)).collect();
        let refused = sharing.cores().is_some_and(|cores| {
            let lines = || rows.iter().chain(&cols);
            cores.refuse(self.a.iter().chain(&self.b))
                || lines().any(|greatest| cores.refuse_line(*greatest))
        });
        let at = |row: usize, col: usize| {
            let term = |p: usize| (self.a[row * k + p], self.b[p * n + col]);
            match refused {
                true => (0..k).map(term).fold(0.0, |sum, (a, b)| f32::mul_add(a, b, sum)),
                false => sharing.of_lines([rows[row], cols[col]]).sum(0, (row, col), term),
            }
        };
        let sums: Vec<f32> = (0..m * n).map(|i| at(i / n, i % n)).collect();
        self.stored(spec, &sums)
    }

    /// Random epilogue operands. They are always the same for a spec and a size.
    pub fn beside(&self, spec: &SgemmSpec) -> Beside {
        let Size { m, n, k } = self.size;
        let mut seeds = Random::new((m * 1_000_003 + n * 1009 + k) as u64);
        let factors = seeds.bits();
        let mut nth = 0;
        let factor = || {
            nth += 8;
            FACTORS[(factors >> nth) as usize % FACTORS.len()]
        };
        Beside::new(spec, self.size, factor, |len| random::values(seeds.bits(), len))
    }

    /// C of a spec, computed from all its sums.
    fn stored(&self, spec: &SgemmSpec, sums: &[f32]) -> Vec<f32> {
        let sums: Vec<(usize, f32)> = sums.iter().copied().enumerate().collect();
        let stored = stored(spec, &sums, self.size, &self.beside(spec));
        stored.unwrap_or_else(|error| panic!("`{spec}`: {error}"))
    }

    /// Problem with the given operands.
    pub fn of(size: Size, a: Vec<f32>, b: Vec<f32>) -> Self {
        let truth = Truth::on_host(&a, &b, size);
        Self { size, a, b, truth }
    }

    /// Multiplies in poisoned memory. Initially, C and all memory around the operands are NaN.
    /// These NaNs must not affect the result, and the NaNs around C must not be overwritten.
    ///
    /// # Errors
    /// Returns an error of the runtime, or a description of a write outside of C.
    pub fn multiply(
        &self,
        device: &Device,
        spec: &SgemmSpec,
        placement: Placement,
    ) -> Result<Multiplied, String> {
        let text = |error: Error| format!("`{spec}` at {}, {placement:?}: {error}", self.size);
        let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(text)?;
        let stored = self.stored_inputs(spec.layout);
        let beside = self.beside(spec);
        let on = Launch { device, kernel: &kernel, stored: &stored, beside: &beside };
        let (memory, variant) = if spec.pitched {
            self.launch_pitched(&on, placement.padding)
        } else {
            self.launch_packed(&on, placement.offsets)
        }
        .map_err(text)?;

        let Size { m, n, .. } = self.size;
        let (offset, pitch) = match spec.pitched {
            true => (0, n + placement.padding[2]),
            false => (placement.offsets[2], n),
        };
        let mut c = Vec::with_capacity(m * n);
        for (at, &value) in memory.iter().enumerate() {
            let inside = at.checked_sub(offset).filter(|at| at % pitch.max(1) < n);
            if inside.is_some_and(|at| at / pitch.max(1) < m) {
                c.push(value);
            } else if value.to_bits() != POISON {
                return Err(format!("`{spec}` at {} wrote {value} beside C", self.size));
            }
        }
        Ok((c, variant))
    }

    fn launch_packed(&self, on: &Launch<'_>, offsets: [usize; 3]) -> Result<Multiplied, Error> {
        let Size { m, n, .. } = self.size;
        let device = on.device;
        let around = |values: &[f32], offset: usize| {
            let mut all = vec![f32::from_bits(POISON); offset];
            all.extend(values);
            all.extend([f32::from_bits(POISON); 8]);
            device.upload(&all)
        };
        let [from_a, from_b, from_c] = offsets;
        let [a, b] = on.stored;
        let (a_memory, b_memory) = (around(&a.values, from_a)?, around(&b.values, from_b)?);
        let mut c = around(&on.beside.c_or(f32::from_bits(POISON), self.size), from_c)?;
        let a_slice = a_memory.slice(from_a..from_a + a.values.len())?;
        let b_slice = b_memory.slice(from_b..from_b + b.values.len())?;
        let mut view = c.slice_mut(from_c..from_c + m * n)?;
        if on.beside.operands.is_empty() {
            // The launch is on vectors instead of views.
            let kernel = SgemmKernel::new(on.kernel.spec_line().parse()?)?;
            let size = self.size.extents();
            let launched = kernel.launch(device, &a_slice, &b_slice, &mut view, size)?;
            return Ok((device.download(&c)?, launched.variant()));
        }
        let mut memory = Vec::new();
        for (_, values) in &on.beside.operands {
            memory.push((around(values, from_c)?, values.len()));
        }
        let slices = memory.iter().map(|(memory, len)| memory.slice(from_c..from_c + len));
        let slices = slices.collect::<Result<Vec<_>, Error>>()?;
        let mut matrices = Vec::new();
        for ((operand, _), slice) in on.beside.operands.iter().zip(&slices) {
            matrices.push(match operand.along {
                Along::Mn => Some(MatrixRef::new(slice, m, n)?),
                _ => None,
            });
        }
        let a_view = a.view(MatrixRef::new(&a_slice, a.lines, a.line)?);
        let b_view = b.view(MatrixRef::new(&b_slice, b.lines, b.line)?);
        let mut c_view = MatrixMut::new(&mut view, m, n)?;
        let beside = (&slices[..], &matrices[..]);
        let on_both = (&a_view, &b_view);
        let launched =
            operands::launch((on.kernel, device), on.beside, beside, on_both, &mut c_view)?;
        Ok((device.download(&c)?, launched.variant()))
    }

    fn launch_pitched(&self, on: &Launch<'_>, padding: [usize; 3]) -> Result<Multiplied, Error> {
        let Size { m, n, .. } = self.size;
        let device = on.device;
        let matrix = |values: &[f32], rows: usize, cols: usize, padding: usize| {
            let pitch = cols + padding;
            // After the last row, only the rest of its last vector is allocated, not its padding.
            let last = cols.next_multiple_of(4).min(pitch);
            let len = rows.checked_sub(1).map_or(0, |above| above * pitch + last);
            let mut all = vec![f32::from_bits(POISON); len];
            for row in 0..rows {
                all[row * pitch..][..cols].copy_from_slice(&values[row * cols..][..cols]);
            }
            Matrix::from_buffer(device.upload(&all)?, rows, cols, pitch)
        };
        let [a, b] = on.stored;
        let a_memory = matrix(&a.values, a.lines, a.line, padding[0])?;
        let b_memory = matrix(&b.values, b.lines, b.line, padding[1])?;
        let mut c = matrix(&on.beside.c_or(f32::from_bits(POISON), self.size), m, n, padding[2])?;
        let mut memory = Vec::new();
        for (operand, values) in &on.beside.operands {
            memory.push(match operand.along {
                Along::Mn => matrix(values, m, n, padding[2])?,
                _ => matrix(values, 1, values.len(), 0)?,
            });
        }
        let (mut vectors, mut matrices) = (Vec::new(), Vec::new());
        for ((operand, _), memory) in on.beside.operands.iter().zip(&memory) {
            vectors.push(memory.buffer().slice(..)?);
            matrices.push((operand.along == Along::Mn).then(|| memory.view()));
        }
        let (a, b) = (a.view(a_memory.view()), b.view(b_memory.view()));
        let beside = (&vectors[..], &matrices[..]);
        let launched = operands::launch((on.kernel, device), on.beside, beside, (&a, &b), &mut c)?;
        Ok((device.download(c.buffer())?, launched.variant()))
    }

    /// Checks C of a spec that a device computed. [`Truth::judge`] checks sums. For an epilogue,
    /// the same kernel without it computes the sums, and [`check_stored`](Self::check_stored)
    /// checks the result.
    ///
    /// # Errors
    /// Returns the element with the largest error if it exceeds the bound.
    pub fn check(
        &self,
        device: &Device,
        spec: &SgemmSpec,
        placement: Placement,
        c: &[f32],
    ) -> Result<(), String> {
        match plain(spec) {
            None => self.check_sums(spec, c),
            Some(plain) => {
                let (sums, _) = self.multiply(device, &plain, placement)?;
                self.check_stored(spec, &sums, c)
            }
        }
    }

    /// Checks sums, and the bits of the epilogue's results for these sums.
    ///
    /// # Errors
    /// Returns the sum with the largest error if it exceeds the bound, or an element of C that
    /// differs.
    pub fn check_stored(&self, spec: &SgemmSpec, sums: &[f32], c: &[f32]) -> Result<(), String> {
        self.check_sums(spec, sums)?;
        self.check_epilogue(spec, sums, c)
    }

    /// Checks the bits of the epilogue's results for given sums.
    ///
    /// # Errors
    /// Returns an element of C that differs.
    pub fn check_epilogue(&self, spec: &SgemmSpec, sums: &[f32], c: &[f32]) -> Result<(), String> {
        let expected = self.stored(spec, sums);
        let differs = |(found, expected): (&f32, &f32)| found.to_bits() != expected.to_bits();
        match c.iter().zip(&expected).position(differs) {
            None if c.len() == expected.len() => Ok(()),
            None => Err(format!("C has {} elements, not {}", c.len(), expected.len())),
            Some(at) => {
                let Size { n, .. } = self.size;
                let (found, expected, sum) = (c[at], expected[at], sums[at]);
                let at = format!("C[{}][{}]", at / n, at % n);
                Err(format!("{at} is {found:?}, not {expected:?}, which is stored for {sum:?}"))
            }
        }
    }

    fn check_sums(&self, spec: &SgemmSpec, c: &[f32]) -> Result<(), String> {
        let Size { m, n, .. } = self.size;
        if c.len() != m * n {
            return Err(format!("C has {} elements, not {m}·{n}", c.len()));
        }
        let verdict = self.truth.judge_in(c, spec.arith);
        if verdict.ok {
            return Ok(());
        }
        Err(format!(
            "C[{}][{}] is {}, not {}: off by {:e} of (|A||B|), allowed {:e}",
            verdict.index / n,
            verdict.index % n,
            verdict.result,
            verdict.reference,
            verdict.error,
            verdict.allowed
        ))
    }
}

/// Sizes at which all kinds of errors at edges would be detected.
pub const SIZES: &[Size] = &[
    Size::new(0, 0, 0),
    Size::new(0, 5, 3),
    Size::new(5, 0, 3),
    Size::new(5, 7, 0),
    Size::new(1, 1, 1),
    Size::new(1, 100, 7),
    Size::new(100, 1, 7),
    Size::new(33, 65, 1),
    Size::new(65, 33, 17),
    Size::new(64, 64, 64),
    Size::new(127, 129, 20),
    Size::new(128, 128, 16),
    Size::new(129, 127, 33),
    Size::new(40, 276, 68),
];

/// Required divisors of m, n and k.
fn steps(spec: &SgemmSpec) -> [usize; 3] {
    match spec.plan() {
        Ok(plan) if spec.bounds == Bounds::Aligned => {
            let (bm, bn) = plan.block_tile();
            // The rows are those of all blocks of a cluster.
            [bm * plan.cluster(), bn, plan.k_step()].map(|step| step as usize)
        }
        _ => [1; 3],
    }
}

/// True if the spec's kernel accepts a shape, for any placement of its operands.
pub fn accepts(spec: &SgemmSpec, Size { m, n, k }: Size) -> bool {
    [m, n, k].into_iter().zip(steps(spec)).all(|(extent, step)| extent.is_multiple_of(step))
}

/// Returns true if the error of a launch says that operands are not aligned, and the kernel has no
/// guards. Such a kernel has no variant for unaligned operands.
pub fn is_unaligned(spec: &SgemmSpec, error: &str) -> bool {
    let unaligned = error.contains("aligned to") || error.contains("to be a multiple of 4");
    unaligned && spec.float4 && spec.bounds == Bounds::Aligned
}

/// Smallest shape of at least `size` that the spec accepts. For a kernel without guards no extent
/// is 0.
pub fn accepted(spec: &SgemmSpec, size: Size) -> Size {
    if spec.bounds == Bounds::Guarded {
        return size;
    }
    let [m, n, k] = steps(spec);
    let up = |extent: usize, by: usize| extent.max(1).next_multiple_of(by);
    Size::new(up(size.m, m), up(size.n, n), up(size.k, k))
}
