//! Matrix products.

use super::Text;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::{Bound, Launched, launch};
use crate::operand::{Input, Output, Resolved, Shape};
use gemm_dsl::spec::SgemmSpec;
use std::fmt;

/// A product C = A·B of row-major matrices of `f32`, A of m rows and k columns, B of k rows and n
/// columns, made by [`sgemm_kernel!`](crate::sgemm_kernel) or from an [`SgemmSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SgemmKernel(Text);

impl SgemmKernel {
    #[doc(hidden)]
    pub const fn __from_macro(line: &'static str, source: &'static str) -> Self {
        Self(Text::from_macro(line, source))
    }

    /// The kernel of a spec: the same as the macro makes of the same line.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn new(spec: SgemmSpec) -> Result<Self> {
        Text::new(&spec).map(Self)
    }

    /// The CUDA C translation unit of the preferred access variant.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The spec as a line of the DSL, in canonical order and without defaults.
    pub fn spec_line(&self) -> &str {
        &self.0.line
    }

    /// Multiplies matrices of the host: uploads, launches, downloads. `size` is (m, n, k). For a
    /// `pitched` kernel the rows are padded on the way.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] where `a` has not m·k elements or `b` not k·n, and those of
    /// [`Device::upload`], [`SgemmKernel::launch`] and [`Device::download`].
    pub fn run(
        &self,
        device: &Device,
        a: &[f32],
        b: &[f32],
        size: (usize, usize, usize),
    ) -> Result<Vec<f32>> {
        let (m, n, k) = size;
        let wide = |n: usize| n as u64;
        check_exact("a", a.len(), ("m", wide(m)), ("k", wide(k)))?;
        check_exact("b", b.len(), ("k", wide(k)), ("n", wide(n)))?;
        elements("c", ("m", wide(m)), ("n", wide(n)))?;
        if self.is_pitched(device)? {
            let a = device.upload_matrix(a, m, k)?;
            let b = device.upload_matrix(b, k, n)?;
            let mut c = device.alloc_matrix(m, n)?;
            self.launch(device, &a, &b, &mut c, size)?;
            return device.download_matrix(&c);
        }
        let (a, b) = (device.upload(a)?, device.upload(b)?);
        let mut c = device.alloc(m * n)?;
        self.launch(device, &a, &b, &mut c, size)?;
        device.download(&c)
    }

    /// Multiplies matrices on the device; `size` is (m, n, k). An operand is a vector of at least
    /// as many elements as the matrix has, its rows packed, or a [`Matrix`](crate::Matrix) of just
    /// that shape; one with padding needs a `pitched` kernel. On a GPU the call returns before the
    /// work is done; later work of the device comes after it.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; [`Error::WrongExtent`]; [`Error::TooLarge`] for an extent beyond
    /// 2^31 − 1 or too many blocks; [`Error::Unmet`] where the arguments are not what the kernel
    /// was specified for; what compiling and loading the kernel fail with, in the first launch; and
    /// in the simulator [`Error::Simulator`].
    pub fn launch<A, B, C>(
        &self,
        device: &Device,
        a: &A,
        b: &B,
        c: &mut C,
        size: (usize, usize, usize),
    ) -> Result<Launched>
    where
        A: Input + ?Sized,
        B: Input + ?Sized,
        C: Output + ?Sized,
    {
        let program = self.0.prepare::<SgemmSpec>(device)?;
        let (m, n, k) = (size.0 as u64, size.1 as u64, size.2 as u64);
        let a = a.operand().resolve(device, "a")?;
        let b = b.operand().resolve(device, "b")?;
        let c = c.operand_mut().resolve(device, "c")?;
        let inputs = [bind("a", &a, ("m", m), ("k", k))?, bind("b", &b, ("k", k), ("n", n))?];
        let outputs = [bind("c", &c, ("m", m), ("n", n))?];
        launch(device, &program, &inputs, &outputs, &[m, n, k])
    }

    fn is_pitched(&self, device: &Device) -> Result<bool> {
        let program = self.0.prepare::<SgemmSpec>(device)?;
        Ok(program.takes_strides())
    }
}

/// The spec line.
impl fmt::Display for SgemmKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec_line())
    }
}

/// An extent with its name.
type Named = (&'static str, u64);

/// The number of elements of a matrix.
fn elements(argument: &'static str, rows: Named, cols: Named) -> Result<u64> {
    let ((row_name, rows), (col_name, cols)) = (rows, cols);
    rows.checked_mul(cols).filter(|&n| usize::try_from(n).is_ok()).ok_or_else(|| Error::TooLarge {
        what: format!("`{argument}` would have {row_name}·{col_name} = {rows}·{cols} elements"),
        limit: usize::MAX as u64,
        remedy: "Check the order of the extents: (m, n, k)",
    })
}

fn check_exact(argument: &'static str, has: usize, rows: Named, cols: Named) -> Result<()> {
    let needed = elements(argument, rows, cols)?;
    if has as u64 == needed {
        return Ok(());
    }
    Err(wrong_extent(argument, has as u64, rows, cols, needed))
}

fn wrong_extent(
    argument: &'static str,
    has: u64,
    (row_name, rows): Named,
    (col_name, cols): Named,
    needed: u64,
) -> Error {
    let need = format!("{row_name}·{col_name} = {rows}·{cols} = {needed} are needed");
    Error::WrongExtent { argument, has, need }
}

/// Checks that an operand holds the matrix.
fn bind(argument: &'static str, operand: &Resolved<'_>, rows: Named, cols: Named) -> Result<Bound> {
    let needed = elements(argument, rows, cols)?;
    let place = operand.place.clone();
    match operand.shape {
        Some(shape) if (shape.rows, shape.cols) != (rows.1, cols.1) => Err(Error::WrongExtent {
            argument,
            has: shape.rows.saturating_mul(shape.cols),
            need: format!(
                "its shape {}x{} is not {}x{} = {}x{}",
                shape.rows, shape.cols, rows.0, cols.0, rows.1, cols.1
            ),
        }),
        Some(Shape { rows, cols, pitch }) => {
            Ok(Bound::matrix(argument, place, operand.len, (rows, cols), pitch))
        }
        None if operand.len < needed => {
            Err(wrong_extent(argument, operand.len, rows, cols, needed))
        }
        None => Ok(Bound::matrix(argument, place, operand.len, (rows.1, cols.1), cols.1)),
    }
}
