//! Tuning of [`sgemm`](crate::sgemm) calls.

use super::tables::{CallFeatures, Tables};
use super::{GemmCall, SgemmCall};
use crate::device::Device;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::kernel::operands::OperandsFor;
use crate::tune::{Answer, answer, trials};
use gemm_dsl::spec::{Accuracy, Batch, Epilogue, SgemmSpec};
use gemm_dsl::tables::SgemmProblem;
use gemm_dsl::target::element::Element;
use std::ops::Deref;
use std::time::Duration;

/// Answer of [`SgemmCall::autotune`], for calls of [`SgemmCall::tuned`]. The methods of [`Answer`]
/// return the chosen spec, and the candidates with their times.
#[derive(Clone, Debug)]
pub struct TunedCall {
    answer: Answer,
    problem: SgemmProblem,
    accuracy: Accuracy,
    scaled: bool,
    batch: Option<Batch>,
    epilogue: Option<Epilogue>,
}

impl TunedCall {
    /// Rule and line for a problem and features, if the answer is for them.
    pub(super) fn chosen(
        &self,
        problem: &SgemmProblem,
        asked: CallFeatures<'_>,
    ) -> Option<(usize, &str)> {
        let is_same = self.problem == *problem
            && (self.scaled, self.batch) == (asked.scaled, asked.batch)
            && self.epilogue.as_ref() == asked.epilogue.map(|epilogue| &epilogue.expression);
        is_same.then(|| (self.answer.chosen().rule, self.answer.spec()))
    }
}

impl Deref for TunedCall {
    type Target = Answer;

    fn deref(&self) -> &Answer {
        &self.answer
    }
}

impl<'a, E, O> SgemmCall<'a, E, O> {
    /// Finds the fastest spec of the device's table for this call, within a budget of time.
    ///
    /// [`SgemmTable::autotune`](crate::SgemmTable::autotune) describes candidates, measurement,
    /// budget and cache. The candidates have the layouts, factors and epilogue of this call. The
    /// times are those of matrices and operands that this method allocates; no array of the call is
    /// read or written. The answer has an effect only on calls that [`tuned`](Self::tuned) passes
    /// it to. These may round differently than the call without it, but keep the accuracy class.
    ///
    /// ```
    /// use gemm_runtime::{Device, sgemm};
    /// use std::time::Duration;
    ///
    /// let device = Device::simulator();
    /// let a = device.upload_matrix(&[1.0; 64], 8, 8)?;
    /// let b = device.upload_matrix(&[2.0; 64], 8, 8)?;
    /// let mut c = device.alloc_matrix(8, 8)?;
    /// let answer = sgemm(&a, &b, &mut c).autotune(&device, Duration::from_secs(60))?;
    /// for _ in 0..2 {
    ///     sgemm(&a, &b, &mut c).tuned(&answer).run(&device)?;
    /// }
    /// assert_eq!(device.download(&c)?, [16.0; 64]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * The errors of [`SgemmCall::choice`].
    /// * The errors of [`SgemmTable::autotune`](crate::SgemmTable::autotune), such as
    ///   [`Error::OutOfMemory`].
    pub fn autotune(&self, device: &Device, budget: Duration) -> Result<TunedCall>
    where
        O: OperandsFor<E>,
    {
        let asks = self.asks(Tables::on(device, self.accuracy))?;
        let (table, asked) = (asks.table, asks.asked);
        let problem = self.problem(device, asked)?;
        let (first, _) = table.chosen(&problem, asked)?;
        let (layout, padded) = (problem.shape.lies(), problem.shape.padded);
        let plan = |rule| {
            let spec: SgemmSpec = table.spec(rule, layout, padded, asked)?;
            spec.plan()
        };
        let trials = trials(first, table.table.rules().len(), plan)?;
        let CallFeatures { scaled, batch, epilogue } = asked;
        let epilogue = epilogue.map(|epilogue| epilogue.expression.clone());
        let features = (scaled, batch, epilogue.as_ref().map(ToString::to_string));
        let key = format!("{features:?}\n{}", table.table.text());
        let answer = answer(device, &problem, trials, &key, budget)?;
        Ok(TunedCall { answer, problem, accuracy: self.accuracy, scaled, batch, epilogue })
    }

    /// Uses an answer of [`autotune`](Self::autotune), if this call is the same GEMM: extents,
    /// layouts, alignment, batch, epilogue, accuracy class, use of factors, architecture
    /// and number of SMs. Otherwise the table chooses, as without the answer.
    pub fn tuned(self, answer: &'a TunedCall) -> Self {
        Self { tuned: Some(answer), ..self }
    }
}

impl<'a, T: Element, C: Element, E, O> GemmCall<'a, T, C, E, O> {
    /// Answer, if it has the accuracy class of this call.
    pub(super) fn answer(&self) -> Option<&'a TunedCall> {
        self.tuned.filter(|answer| answer.accuracy == self.accuracy)
    }
}
