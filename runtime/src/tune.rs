//! Choice of a spec by its time on the user's device and shape.
//!
//! The candidates are the specs of one table. All of them compute the same GEMM within the table's
//! accuracy class, and under `invariant` with the same bits, because the parser of tables has
//! checked them.

mod answer;
#[cfg(feature = "sim")]
mod loads;
mod operands;
mod record;
#[cfg(all(test, feature = "sim"))]
mod tests;
mod timing;

pub use answer::{Answer, Basis, Candidate, Tuned};
#[cfg(feature = "sim")]
pub use loads::{CountedLaunch, compiled_work, estimated_registers, gemm_loads, samples_along};

use crate::compile;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, SgemmTable, problem};
use crate::program::CachedProgram;
use crate::trace::{event, span};
use crate::warm_up::warm_up;
use answer::Outcome;
use gemm_dsl::SpecErrors;
use gemm_dsl::plan::SgemmPlan;
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::tables::{SgemmProblem, SgemmShape, TableFamily as _};
use operands::{TrialOperands, TrialViews};
use record::Record;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use timing::{Stopwatch, launches, median};

/// Share of the budget for predictions, before measurements.
const PREDICTING: f64 = 0.25;
/// Share of the budget after which no further candidate is compiled.
const COMPILING: f64 = 0.6;
/// Ratio to the best prediction from which on a candidate is left out.
const HOPELESS: f64 = 4.0;
/// Ratio to the best first time up to which a candidate is timed again.
const CLOSE: f64 = 1.25;
/// Maximum number of rounds in which the close candidates are timed in turns.
const ROUNDS: usize = 15;
/// Share of the time of the table's choice that another spec must save.
const GAIN: f64 = 0.01;

impl<E> SgemmTable<E> {
    /// Finds the fastest spec of this table for one shape on a device, within a budget of time.
    ///
    /// The answer is a value, and nothing else changes: calls of this table choose as before.
    /// [`Tuned::table`] returns a table that begins with the answer, [`Tuned::kernel`] the kernel.
    /// So the choice of a call, and with it the rounding, never depends on earlier calls elsewhere
    /// in a program.
    ///
    /// A `shape` is `(m, n, k)` or an [`SgemmShape`] with layouts, alignment, padding and batch.
    ///
    /// ```
    /// use gemm_runtime::tuning::Basis;
    /// use gemm_runtime::{Device, SgemmTable, sgemm_table};
    /// use std::time::Duration;
    ///
    /// const GEMM: SgemmTable = sgemm_table! {
    ///     invariant;
    ///     m <= 8 => tile: 8x8x8, thread: 1x1;
    ///     else => tile: 32x32x8, thread: 4x4;
    /// };
    ///
    /// let device = Device::simulator(); // `Device::auto()?` measures on a GPU
    /// let shape = (32, 32, 64);
    /// let tuned = GEMM.autotune(&device, shape, Duration::from_secs(60))?;
    /// assert_eq!(tuned.basis(), Basis::Predicted);
    /// println!("{tuned}"); // a rule for the table above
    ///
    /// let table = tuned.table()?;
    /// assert_eq!(table.choice(shape, &device)?.spec, tuned.spec());
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Candidates
    ///
    /// The candidates are the specs of the table's rules that are valid for the layouts of the
    /// shape. The table's own choice is first. The others follow in the order of the time model's
    /// predictions, those without a prediction last.
    ///
    /// All specs of an `invariant` table return the same bits, so tuning does not change the bits
    /// of a result. Specs of other tables may sum in another order. The accuracy class of the table
    /// holds for all of them.
    ///
    /// # Measurement
    ///
    /// On a GPU, the method allocates matrices and operands of the shape on `device`, compiles the
    /// candidates, and times their launches on the device's stream. It then times the candidates
    /// within 25 % of the best one again, in turns, and compares medians. The table's choice stays
    /// unless another spec is at least 1 % faster. No array of the caller is used. The allocations
    /// have the size of A, B and C, and of the operands of the epilogue; they are freed at the end.
    ///
    /// Launches are repeated on the same matrices, so data that fits into the L2 cache is cached.
    /// For the best answer, let no other work run on the GPU.
    ///
    /// On the simulator, the times are predictions for an H200, and nothing is measured.
    /// [`Answer::basis`] returns the origin of the times.
    ///
    /// # Budget
    ///
    /// The budget limits the whole call, with compilation: a quarter is for predictions, and no
    /// compilation begins after six tenths. As many candidates as the host has processors are
    /// compiled at once. The table's own choice is always timed, and a step that has begun is
    /// finished, so the call may take longer by such a group's compilations and first launches.
    /// With a budget of zero nothing is timed: the answer is the rule of the table.
    ///
    /// # Cache
    ///
    /// Answers for a GPU are kept in the directory of compiled kernels, also for other processes.
    /// An answer is reused for the same table, problem, GPU, driver and version of this crate, if
    /// it is complete or had at least this budget. A newer NVRTC in this process, or a damaged
    /// entry, leads to a new measurement. Without a cache directory, each call measures.
    ///
    /// # Errors
    /// * The errors of [`choice`](Self::choice), and of launches of the table's own choice.
    /// * [`Error::WrongShape`] if the shape is a batch and the specs have no key `batch`, or if
    ///   packed matrices of this shape cannot be aligned as declared.
    /// * [`Error::OutOfMemory`] with the bytes of the allocation that failed.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails. Other errors of a candidate exclude this candidate
    ///   only: [`Candidate::error`].
    pub fn autotune(
        &self,
        device: &Device,
        shape: impl Into<SgemmShape>,
        budget: Duration,
    ) -> Result<Tuned<E>> {
        let problem = problem(shape.into(), device);
        let (rules, first) = (self.rules(), self.rule(&problem)?);
        let layout = SgemmSpec::layout_index(&problem);
        let plan = |rule: usize| rules[rule].spec.plan_for_layout(layout);
        let trials = trials(first, rules.len(), plan)?;
        let answer = answer(device, &problem, trials, self.text(), budget)?;
        let plan: SgemmPlan = answer.spec().parse()?;
        let kernel = Kernel::planned(&plan)?;
        Ok(Tuned { table: self.clone(), kernel, answer })
    }
}

/// Finds the fastest of the candidates for a problem: in the cache, or by their times. `table` has
/// all that determines the candidates besides the problem.
pub(crate) fn answer(
    device: &Device,
    problem: &SgemmProblem,
    trials: Vec<Trial>,
    table: &str,
    budget: Duration,
) -> Result<Answer> {
    span!("autotune");
    let clock = Clock { start: Instant::now(), budget };
    operands::check(trials[0].plan.spec(), &problem.shape)?;
    let condition = condition(problem);
    let key = device.gpu().map(|gpu| {
        let (arch, sms) = (gpu.arch().to_string(), gpu.multiprocessors().to_string());
        let device = [gpu.name(), &arch, &sms, &format!("driver {}", gpu.driver())];
        (gpu.cache(), record::key(&device, table, &condition))
    });
    let specs: Vec<Candidate> = trials.iter().map(|trial| trial.candidate.clone()).collect();
    let cached = key
        .filter(|_| !budget.is_zero())
        .and_then(|(cache, key)| record::find(cache, key, compile::newest_used(), budget, &specs));
    let is_cached = cached.is_some();
    let Record { outcome, candidates } = match cached {
        Some(record) => record,
        None => {
            let record = tune(device, problem, trials, clock)?;
            if let (Some((cache, key)), Basis::Measured) = (key, record.outcome.basis) {
                record::store(cache, key, compile::newest_used(), &record);
            }
            record
        }
    };
    event!("tuned", spec = candidates[outcome.chosen].spec);
    Ok(Answer { condition, outcome, candidates, is_cached })
}

/// Start and length of a tuning.
#[derive(Clone, Copy)]
struct Clock {
    start: Instant,
    budget: Duration,
}

impl Clock {
    /// Returns true if this share of the budget is spent.
    fn passed(self, share: f64) -> bool {
        self.start.elapsed().as_secs_f64() >= share * self.budget.as_secs_f64()
    }
}

/// Candidate with its plan and its samples.
pub(crate) struct Trial {
    candidate: Candidate,
    plan: SgemmPlan,
    program: Option<Arc<CachedProgram>>,
    samples: Vec<Duration>,
}

/// Condition that holds for a problem only.
fn condition(SgemmProblem { shape, target }: &SgemmProblem) -> String {
    let SgemmShape { m, n, k, batch, padded, .. } = shape;
    let layout = shape.lies();
    let not = |holds: bool| if holds { "" } else { "!" };
    let (padded, aligned) = (not(*padded), not(shape.is_aligned()));
    let (arch, sms) = (target.arch, target.sms);
    format!(
        "m == {m} && n == {n} && k == {k} && batch == {batch} && {layout} && {padded}padded && \
         {aligned}aligned && arch == {arch} && sms == {sms}"
    )
}

/// Candidates of a table of `rules` rules: the rule `first`, which the table chooses, then the
/// other valid specs in the order of the rules. `plan` returns the plan of a rule for the problem.
pub(crate) fn trials(
    first: usize,
    rules: usize,
    plan: impl Fn(usize) -> Result<SgemmPlan, SpecErrors>,
) -> Result<Vec<Trial>> {
    let mut trials: Vec<Trial> = Vec::new();
    for rule in std::iter::once(first).chain(0..rules) {
        let plan = match plan(rule) {
            Ok(plan) => plan,
            Err(faults) if rule == first => return Err(Error::Spec(faults)),
            Err(_) => continue,
        };
        let spec = plan.spec().to_string();
        if trials.iter().any(|known| known.candidate.spec == spec) {
            continue;
        }
        let (predicted, measured, samples, error) = (None, None, 0, None);
        let candidate = Candidate { rule, spec, predicted, measured, samples, error };
        trials.push(Trial { candidate, plan, program: None, samples: Vec::new() });
    }
    Ok(trials)
}

/// Times the candidates and chooses one.
fn tune(
    device: &Device,
    problem: &SgemmProblem,
    mut trials: Vec<Trial>,
    clock: Clock,
) -> Result<Record> {
    let shape = &problem.shape;
    let is_empty = [shape.m, shape.n, shape.k, shape.batch].contains(&0);
    let (basis, is_complete) = match device.gpu() {
        _ if clock.budget.is_zero() || is_empty => (Basis::Table, is_empty),
        None => (Basis::Predicted, predict(problem, &mut trials, clock, 1.0)?),
        Some(_) => {
            // A table of one spec needs no order.
            if trials.len() > 1 {
                predict(problem, &mut trials, clock, PREDICTING).ok();
                order(&mut trials);
            }
            (Basis::Measured, measure(device, shape, &mut trials, clock)?)
        }
    };
    let candidates: Vec<Candidate> = trials.into_iter().map(|trial| trial.candidate).collect();
    let chosen = if basis == Basis::Table { 0 } else { fastest(&candidates, basis) };
    let outcome = Outcome { chosen, basis, is_complete, budget: clock.budget };
    Ok(Record { outcome, candidates })
}

/// Index of the fastest candidate. The first one stays unless another saves enough.
fn fastest(candidates: &[Candidate], basis: Basis) -> usize {
    let time = |candidate: &Candidate| match basis {
        Basis::Measured => candidate.measured,
        _ => candidate.predicted,
    };
    let timed = candidates.iter().enumerate();
    let timed = timed.filter_map(|(n, candidate)| Some((time(candidate)?, n)));
    let (Some(of_table), Some((best, chosen))) = (time(&candidates[0]), timed.min()) else {
        return 0;
    };
    if best.as_secs_f64() <= (1.0 - GAIN) * of_table.as_secs_f64() { chosen } else { 0 }
}

/// Predicts the times of the candidates until a share of the budget is spent. Returns true if all
/// have been tried.
///
/// # Errors
/// Returns the errors of the first candidate. The errors of others exclude them.
#[cfg(feature = "sim")]
fn predict(problem: &SgemmProblem, trials: &mut [Trial], clock: Clock, share: f64) -> Result<bool> {
    for (n, trial) in trials.iter_mut().enumerate() {
        if n > 0 && clock.passed(share) {
            return Ok(false);
        }
        match loads::predict(trial.plan.spec(), &problem.shape, problem.target) {
            Ok(time) => trial.candidate.predicted = Some(time),
            Err(error) if n == 0 => return Err(error),
            Err(error) => trial.candidate.error = Some(error.to_string()),
        }
    }
    Ok(true)
}

/// Without the simulator, the model has no counters and predicts nothing.
#[cfg(not(feature = "sim"))]
fn predict(_: &SgemmProblem, _: &mut [Trial], _: Clock, _: f64) -> Result<bool> {
    Ok(true)
}

/// Orders the candidates after the first by their predictions. Errors of predictions do not exclude
/// a candidate from measurement.
fn order(trials: &mut [Trial]) {
    trials.iter_mut().for_each(|trial| trial.candidate.error = None);
    let predicted = |trial: &Trial| trial.candidate.predicted.unwrap_or(Duration::MAX);
    if let Some((_, others)) = trials.split_first_mut() {
        others.sort_by_key(predicted);
    }
}

/// Measures the candidates in their order until the budget is spent. Returns true if none was left
/// out and no comparison was cut short for lack of time.
///
/// # Errors
/// Returns the errors of the first candidate, and failures of the driver.
fn measure(
    device: &Device,
    shape: &SgemmShape,
    trials: &mut [Trial],
    clock: Clock,
) -> Result<bool> {
    let stopwatch = Stopwatch::new(device)?;
    let stopwatch = stopwatch.ok_or_else(|| Error::Internal("a device without events".into()))?;
    let mut operands = TrialOperands::new(device, trials[0].plan.spec(), shape)?;
    let mut views = operands.views()?;
    let best = trials.iter().filter_map(|trial| trial.candidate.predicted).min();
    let is_hopeless = |trial: &Trial| {
        let times = trial.candidate.predicted.zip(best);
        times.is_some_and(|(own, best)| own.as_secs_f64() >= HOPELESS * best.as_secs_f64())
    };
    let mut is_complete = true;
    if let Some((of_table, others)) = trials.split_first_mut() {
        of_table.begin(device, &stopwatch, &mut views)?;
        let mut others: Vec<&mut Trial> = others.iter_mut().collect();
        others.retain(|trial| !is_hopeless(trial));
        'groups: for group in others.chunks_mut(processors()) {
            is_complete = !clock.passed(COMPILING);
            if !is_complete {
                break;
            }
            let specs = group.iter().map(|trial| &*trial.candidate.spec);
            // Failures occur again at the launch.
            _ = warm_up::<SgemmSpec>(device, specs);
            for trial in group {
                // A launch of a large GEMM takes long.
                is_complete = !clock.passed(1.0);
                if !is_complete {
                    break 'groups;
                }
                let begun = trial.begin(device, &stopwatch, &mut views);
                trial.exclude_if_failed(device, begun)?;
            }
        }
    }
    is_complete &= again(device, &stopwatch, &mut views, trials, clock)?;
    for trial in trials {
        trial.candidate.measured = median(&trial.samples);
        trial.candidate.samples = trial.samples.len();
    }
    Ok(is_complete)
}

/// Number of candidates that are compiled at once.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Times the candidates close to the best one in turns. Returns true if no round was left out for
/// lack of time.
///
/// # Errors
/// Returns the errors of the first candidate, and failures of the driver.
fn again(
    device: &Device,
    stopwatch: &Stopwatch<'_>,
    views: &mut TrialViews<'_>,
    trials: &mut [Trial],
    clock: Clock,
) -> Result<bool> {
    let first = |trial: &Trial| trial.samples.first().copied();
    let Some(best) = trials.iter().filter_map(first).min() else { return Ok(true) };
    let is_close = |time: Duration| time.as_secs_f64() <= CLOSE * best.as_secs_f64();
    let mut close: Vec<(usize, &mut Trial)> = trials
        .iter_mut()
        .enumerate()
        .filter(|(n, trial)| *n == 0 || first(trial).is_some_and(is_close))
        .collect();
    // The only candidate needs no comparison.
    if close.len() == 1 {
        return Ok(true);
    }
    for _ in 0..ROUNDS {
        for (n, trial) in &mut close {
            if clock.passed(1.0) {
                return Ok(false);
            }
            let sampled = trial.sample(stopwatch, views);
            match n {
                0 => sampled?,
                _ => trial.exclude_if_failed(device, sampled)?,
            }
        }
        close.retain(|(_, trial)| trial.candidate.error.is_none());
    }
    Ok(true)
}

impl Trial {
    /// Compiles the kernels, warms up, and takes the first sample.
    fn begin(
        &mut self,
        device: &Device,
        stopwatch: &Stopwatch<'_>,
        views: &mut TrialViews<'_>,
    ) -> Result<()> {
        let program = device.programs().get::<SgemmSpec>(&self.candidate.spec)?;
        views.launch(&program)?;
        self.program = Some(program);
        let once = self.time(stopwatch, views, 1)?;
        self.samples.push(self.time(stopwatch, views, launches(once))?);
        Ok(())
    }

    /// Excludes the candidate if its launches failed.
    ///
    /// # Errors
    /// Returns the error of the launches if it remains: after some failures, the GPU runs no
    /// further kernel of the process.
    fn exclude_if_failed(&mut self, device: &Device, launched: Result<()>) -> Result<()> {
        let Err(error) = launched else { return Ok(()) };
        if device.synchronize().is_err() {
            return Err(error);
        }
        self.candidate.error = Some(error.to_string());
        self.samples.clear();
        Ok(())
    }

    fn sample(&mut self, stopwatch: &Stopwatch<'_>, views: &mut TrialViews<'_>) -> Result<()> {
        let launches = self.samples.first().map_or(1, |first| launches(*first));
        self.samples.push(self.time(stopwatch, views, launches)?);
        Ok(())
    }

    fn time(
        &self,
        stopwatch: &Stopwatch<'_>,
        views: &mut TrialViews<'_>,
        launches: u32,
    ) -> Result<Duration> {
        let program = self.program.as_ref();
        let program = program.ok_or_else(|| Error::Internal("a trial without code".into()))?;
        stopwatch.sample(launches, || views.launch(program).map(drop))
    }
}
