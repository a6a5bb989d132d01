//! Timing of texts in turns.

use crate::options::CompareOptions;
use crate::table;
use gemm_bench::cli::{Failure, Outcome, device_label, open_gpu};
use gemm_bench::gpu::{Gpu, Timer, Work};
use gemm_bench::progress;
use gemm_bench::report::write_line;
use gemm_bench::texts::cases::{self, Sizes};
use gemm_bench::texts::changes::ChangedSpec;
use gemm_bench::texts::code;
use gemm_bench::texts::entry::Entry;
use gemm_bench::texts::folder::{Texts, key};
use gemm_bench::texts::launches::{
    GemmInputs, Launch, Launched, LaunchedKernels, reduction_inputs, with_gemm, with_reduction,
};
use gemm_bench::texts::machine;
use gemm_bench::texts::turns::{ComparedCase, TurnTimes};
use gemm_dsl::cuda;
use gemm_dsl::stages::pinned::PinnedSpec;
use gemm_runtime::generic::Kernel;
use gemm_runtime::internal::{DeviceBackend, Replacement};
use gemm_runtime::spec::{ReduceSpec, SgemmSpec};
use gemm_runtime::{ByName, Device, Error};
use rayon::prelude::*;
use std::io::{self, Write};

/// Factor on the number of rounds if a measurement is repeated because the new text was slower.
const AGAIN: usize = 4;

/// Two devices on one GPU, context and stream: one runs the old texts, the other the new texts.
struct Pair {
    old: Device,
    new: Device,
}

/// Measurement of one case.
struct Bench<'d> {
    timer: Timer<'d>,
    rounds: usize,
    /// Ratio of times at and above which the new text counts as slower.
    limit: f64,
}

/// Returns the keys of the kernels whose texts differ.
pub fn names(changed: &ChangedSpec<'_>) -> Vec<String> {
    changed.kernels.iter().map(|kernel| key(changed.spec, PinnedSpec::suffix(kernel))).collect()
}

/// Times every spec with both texts.
///
/// # Errors
/// Returns an error that affects all specs.
pub fn compare(
    changed: Vec<ChangedSpec<'_>>,
    texts: [&Texts; 2],
    options: &CompareOptions,
) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("texts are timed on a GPU".to_owned()))?;
    let gpu = gpu.without_events();
    let another = || Device::from_cudarc(gpu.context.clone(), gpu.stream.clone());
    let pair = Pair { old: another()?, new: another()? };
    let mut changed = changed;
    changed.retain(|changed| changed.refused.is_empty());
    let same = machine::remove_same(&mut changed, texts, gpu.arch);
    if !same.is_empty() {
        let same: Vec<String> = same.into_iter().collect();
        let same = same.join(", ");
        writeln!(io::stderr(), "not timed, because the machine code is the same: {same}")?;
    }
    for (device, texts) in [&pair.old, &pair.new].into_iter().zip(texts) {
        changed.iter().for_each(|changed| replace(device, changed, texts));
    }
    let specs: Vec<&PinnedSpec> = changed.iter().map(|changed| changed.spec).collect();
    let both = specs.par_iter().flat_map(|spec| [(&pair.old, spec), (&pair.new, spec)]);
    // A failure is ignored here, because it occurs again at the launch, where the spec is named.
    both.for_each(|(device, spec)| _ = compile(device, spec));

    let limit = 1.0 + options.least / 100.0;
    let bench = Bench { timer: Timer::new(gpu)?, rounds: options.rounds, limit };
    let (mut rows, mut never) = (Vec::new(), Vec::new());
    let bar = progress::bar(changed.len());
    for changed in &changed {
        bar.set_message(key(changed.spec, ""));
        let mut launched = LaunchedKernels::default();
        let found = bench.spec(&pair, changed, &options.sizes(), &mut launched)?;
        for row in &found {
            if options.json {
                write_line(&mut io::stdout().lock(), row)?;
            }
        }
        rows.extend(found);
        let missed = changed.kernels.iter().filter(|kernel| !launched.contains(kernel));
        never.extend(missed.map(|kernel| key(changed.spec, PinnedSpec::suffix(kernel))));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !options.json {
        writeln!(
            io::stdout(),
            "new over old on {}\n{}",
            device_label(&device),
            table::table(&rows, limit).text()
        )?;
    }
    let mut err = io::stderr().lock();
    if !never.is_empty() {
        writeln!(err, "not timed, because no case launches them: {}", never.join(", "))?;
    }
    let faults: Vec<String> = rows.iter().filter_map(|row| row.fault(limit)).collect();
    for fault in &faults {
        writeln!(err, "{fault}")?;
    }
    writeln!(err, "{} cases timed, {} to look at", rows.len(), faults.len())?;
    Ok(if faults.is_empty() { Outcome::Right } else { Outcome::Wrong })
}

/// Replaces the sources of a spec's kernels on a device with these texts.
#[allow(unsafe_code, reason = "launches of this build run the texts of another one")]
fn replace(device: &Device, changed: &ChangedSpec<'_>, texts: &Texts) {
    let DeviceBackend::Gpu(gpu) = device.backend() else { return };
    for kernel in &changed.kernels {
        let own = cuda::source(kernel);
        let Some(text) = texts.get(&key(changed.spec, PinnedSpec::suffix(kernel))) else {
            continue;
        };
        let Some(Entry { name, .. }) = Entry::new(&text.source) else { continue };
        if code(&text.source) == code(&own) {
            continue;
        }
        let replacement = Replacement { kernel: name, source: text.source.clone() };
        // SAFETY: another build generated the text for the same spec, so its block is the same and
        // it accesses only the same arrays. `Changes` has checked the parameters and the shared
        // memory.
        unsafe { gpu.replace_source(own, replacement) };
    }
}

/// Compiles and loads all kernels of a spec.
fn compile(device: &Device, PinnedSpec { is_gemm, line, .. }: &PinnedSpec) -> Result<(), Error> {
    match is_gemm {
        true => Kernel::<SgemmSpec, ByName>::new(line.parse::<SgemmSpec>()?)?.warm(device),
        false => Kernel::<ReduceSpec, ByName>::new(line.parse::<ReduceSpec>()?)?.warm(device),
    }
}

impl Bench<'_> {
    /// Times a spec in the cases that launch a changed text. Collects the names of all launched
    /// kernels.
    fn spec(
        &self,
        pair: &Pair,
        changed: &ChangedSpec<'_>,
        sizes: &Sizes,
        launched: &mut LaunchedKernels,
    ) -> Result<Vec<ComparedCase>, Failure> {
        let ChangedSpec { spec, kernels, .. } = changed;
        let is_needed = |operands: cases::Operands| {
            kernels.iter().any(|kernel| operands.launch(PinnedSpec::suffix(kernel)))
        };
        let mut rows = Vec::new();
        let mut add = |case: String, ((times, new), old): Launched<Launched<TurnTimes>>| {
            rows.push(ComparedCase { spec: key(spec, ""), case, times, same_bits: old == new });
        };
        if spec.is_gemm {
            let gemm: SgemmSpec = spec.line.parse()?;
            let cases: Vec<_> = cases::gemm(&gemm, sizes);
            let cases: Vec<_> = cases.into_iter().filter(|of| is_needed(of.operands)).collect();
            let inputs = GemmInputs::new(&pair.new, &cases)?;
            for case in &cases {
                let timed = with_gemm(&pair.old, &gemm, case, &inputs, |old| {
                    with_gemm(&pair.new, &gemm, case, &inputs, |new| self.times(old, new, launched))
                })?;
                add(case.to_string(), timed);
            }
            return Ok(rows);
        }
        let reduction: ReduceSpec = spec.line.parse()?;
        let cases = cases::reduction(&reduction, sizes).into_iter();
        for case in cases.filter(|of| is_needed(of.operands)) {
            let inputs = reduction_inputs(&pair.new, &reduction, &case)?;
            let timed = with_reduction(&pair.old, &reduction, &case, &inputs, |old| {
                with_reduction(&pair.new, &reduction, &case, &inputs, |new| {
                    self.times(old, new, launched)
                })
            })?;
            add(case.to_string(), timed);
        }
        Ok(rows)
    }

    /// Times two launches in turns. If the new one is slower, repeats the measurement.
    fn times(
        &self,
        old: &mut Launch<'_>,
        new: &mut Launch<'_>,
        launched: &mut LaunchedKernels,
    ) -> Result<TurnTimes, Error> {
        old()?;
        launched.add(&new()?);
        let mut old = || old().map(drop);
        let mut new = || new().map(drop);
        let mut times = self.turns(self.rounds, &mut old, &mut new)?;
        if times.ratio > self.limit {
            times = self.turns(AGAIN * self.rounds, &mut old, &mut new)?;
        }
        Ok(times)
    }

    /// Times two launches in turns. Each is the first in one half of the rounds.
    fn turns(
        &self,
        rounds: usize,
        old: &mut Work<'_>,
        new: &mut Work<'_>,
    ) -> Result<TurnTimes, Error> {
        let half = rounds.div_ceil(2);
        let first = self.timer.samples(half, &mut [&mut *old, &mut *new])?;
        let second = self.timer.samples(half, &mut [new, old])?;
        let [mut old, mut new] = [Vec::new(), Vec::new()];
        if let ([a, b], [c, d]) = (&first[..], &second[..]) {
            old.extend(a.iter().chain(d));
            new.extend(b.iter().chain(c));
        }
        Ok(TurnTimes::new(&old, &new))
    }
}
