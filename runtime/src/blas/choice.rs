//! Choice of a call's kernel.

use super::tables::{CallFeatures, Tables};
use super::{GemmCall, GemmElement, TableCall};
use crate::device::Device;
use crate::error::Result;
use crate::kernel::operands::{OperandsFor, has_padding, sealed};
use crate::kernel::{Choice, NamedMatrix, extents, problem, shape_on, with_splits};
use crate::program::CachedProgram;
use crate::splits::SplitBuffers;
use crate::view::MatrixRef;
use crate::warm_up::make;
use gemm_dsl::spec::{Pairs, SgemmSpec};
use gemm_dsl::tables::SgemmProblem;
use gemm_dsl::target::element::Element;
use std::sync::Arc;

impl<T: GemmElement<C>, C: Element, E, O> GemmCall<'_, T, C, E, O> {
    /// Returns the spec of the kernel that [`run`](Self::run) would launch on this device.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Self::run) about the views.
    pub fn spec(&self, device: &Device) -> Result<SgemmSpec>
    where
        O: OperandsFor<E>,
    {
        Ok(self.choice(device)?.spec.parse()?)
    }

    /// Returns the rule of the device's table that computes this GEMM, with the reason.
    ///
    /// The returned line is the spec of the rule, with keys added for the call: `layout` and
    /// `pitched` for the matrices, `scaled` if alpha or beta is set, `batch` and `epilogue`. If
    /// shared memory does not suffice, the line has fewer `stages`, `slices` or `blocks_per_sm`.
    /// For a column-major C, the rule is chosen for the transposed GEMM Cᵀ = Bᵀ·Aᵀ, whose `m` is
    /// the n of this call, and the epilogue is transposed likewise.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixMut, MatrixRef, sgemm};
    ///
    /// let device = Device::simulator();
    /// let (x, mut room) = (device.alloc(64 * 64)?, device.alloc(64 * 64)?);
    /// let (a, mut c) = (MatrixRef::new(&x, 64, 64)?, MatrixMut::new(&mut room, 64, 64)?);
    /// let choice = sgemm(&a, &a.t(), &mut c).beta(1.0).choice(&device)?;
    /// assert!(choice.spec.starts_with("layout: nt, tile: 32x32x16"), "{choice:?}");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`run`](Self::run) about the views.
    pub fn choice(&self, device: &Device) -> Result<Choice>
    where
        O: OperandsFor<E>,
    {
        self.choice_by(Tables::on(device, self.accuracy), device)
    }

    pub(super) fn choice_by(&self, tables: &'static Tables<T, C>, device: &Device) -> Result<Choice>
    where
        O: OperandsFor<E>,
    {
        let asks = self.asks(tables)?;
        let problem = self.problem(device, asks.asked)?;
        match asks.tuned.and_then(|tuned| tuned.chosen(&problem, asks.asked)) {
            Some((rule, line)) => asks.table.table.reason(rule, &problem, line.to_owned()),
            None => asks.table.choice(&problem, asks.asked),
        }
    }

    /// Compiles the kernels of this call before its launch. [`warm`](crate::warm) compiles the
    /// kernels of many shapes at once.
    ///
    /// # Errors
    /// Returns the errors of [`choice`](Self::choice) and of [`warm`](crate::warm).
    pub fn warm(&self, device: &Device) -> Result<()>
    where
        O: OperandsFor<E>,
    {
        let (line, program) = self.program(Tables::on(device, self.accuracy), device)?;
        make(device, &[line], vec![program])
    }

    /// Chosen line, and the program to launch: the program of the line, or its variant that takes
    /// prepared splits.
    pub(super) fn program(
        &self,
        tables: &'static Tables<T, C>,
        device: &Device,
    ) -> Result<(&str, Result<Arc<CachedProgram>>)>
    where
        O: OperandsFor<E>,
    {
        let asks = self.asks(tables)?;
        let line = asks.chosen(&self.problem(device, asks.asked)?)?;
        let program = device.programs().get::<SgemmSpec>(line);
        let given = program.and_then(|program| with_splits(program, self.splits_of_factors()));
        Ok((line, given.map(|(program, _)| program)))
    }

    /// Table for this call, with the features that the call needs.
    pub(super) fn asks(&self, tables: &'static Tables<T, C>) -> Result<TableCall<'_, T, C>>
    where
        O: OperandsFor<E>,
    {
        let is_row_major = self.c.shape().is_row_major();
        let epilogue = self.epilogue.as_ref().map(|epilogue| epilogue.for_c(is_row_major));
        let asked = CallFeatures { epilogue, ..self.features()? };
        Ok(TableCall { table: tables.table(asked), asked, tuned: self.answer() })
    }
}

impl<'a, T: Element, C: Element, E, O> GemmCall<'a, T, C, E, O> {
    /// Splits of the first and of the second factor. For a column-major C the factors are Bᵀ and
    /// Aᵀ, which have the splits of B and A.
    pub(super) fn splits_of_factors(&self) -> [Option<&'a SplitBuffers>; 2] {
        let [of_a, of_b] = self.splits;
        if self.c.shape().is_row_major() { [of_a, of_b] } else { [of_b, of_a] }
    }

    /// Problem by which the table chooses a rule.
    pub(super) fn problem(&self, device: &Device, asked: CallFeatures<'_>) -> Result<SgemmProblem>
    where
        O: OperandsFor<E>,
    {
        let (m, n, k) = self.extents()?;
        let operands = asked.epilogue.map_or(&[][..], |epilogue| &epilogue.operands);
        let forms = sealed::GiveAll::forms(&self.operands, operands)?;
        let has_padding = has_padding(operands, &forms);
        let (a, b) = (&self.a, &self.b);
        let c = MatrixRef { elements: self.c.elements.shared(), shape: self.c.shape() };
        let shape = match c.shape.is_row_major() {
            true => {
                let (a, b) = (NamedMatrix::new("a", a), NamedMatrix::new("b", b));
                shape_on(device, (a, b, NamedMatrix::new("c", &c)), (m, n, k), has_padding)?
            }
            false => {
                let (a, b, c) = (a.t(), b.t(), c.t());
                let (a, b) = (NamedMatrix::new("a", &a), NamedMatrix::new("b", &b));
                shape_on(device, (b, a, NamedMatrix::new("c", &c)), (n, m, k), has_padding)?
            }
        };
        Ok(problem(shape, device))
    }

    /// Extents (m, n, k), after checking that the views agree.
    pub(super) fn extents(&self) -> Result<(usize, usize, usize)> {
        let (a, b) = (NamedMatrix::new("a", &self.a), NamedMatrix::new("b", &self.b));
        let epilogue = self.epilogue.as_ref().map(|epilogue| epilogue.for_c(true));
        let pairs = epilogue.map_or(Pairs::None, |epilogue| epilogue.pairs);
        extents(a, b, NamedMatrix::new("c", &self.c), pairs)
    }
}
