//! Tuning on the fake driver, on which kernels of 16x16 tiles take 1 ms, and all others 4 ms.

use super::*;
use gemm_runtime::tuning::{Basis, Tuned};
use gemm_runtime::{SgemmTable, sgemm_table};
use std::time::Duration;

const SHAPE: (usize, usize, usize) = (60, 50, 40);
/// More time than any tuning of these tests takes.
const ENOUGH: Duration = Duration::from_secs(3600);

/// The table's own choice for the shape is the last rule. The first one needs other extents.
const GEMM: SgemmTable = sgemm_table! {
    m % 64 == 0 && n % 64 == 0 && k % 8 == 0 =>
        tile: 64x64x8, thread: 8x8, bounds: aligned;
    m > 1000 => tile: 16x16x8, thread: 2x2;
    m > 100 => tile: 32x32x8, thread: 2x2;
    else => tile: 8x8x8, thread: 1x1;
};

/// Runs a part in a process whose answers are in a folder; an empty name disables the cache.
pub(super) fn with(part: &str, cache: &str) -> Outcome {
    with_nvrtc_and(part, &[("GEMM_CACHE_DIR", cache), ("FAKE_CUDA_FAST", "16x16")])
}

/// Runs a part in a process with a folder of its own.
pub(super) fn alone(part: &str) -> Outcome {
    let dir = TempDir::new()?;
    with(part, &dir.path().to_string_lossy())
}

pub(super) fn processes() -> Outcome {
    let dir = TempDir::new()?;
    let path = dir.path().to_string_lossy();
    with("measure", &path)?;
    with("measured before", &path)
}

/// Rules and times of the candidates in milliseconds, each with the number of samples.
fn times(tuned: &Tuned) -> Vec<(usize, Option<u128>, usize)> {
    let time = |time: Option<Duration>| time.map(|time| time.as_millis());
    let candidates = tuned.candidates().iter();
    candidates.map(|one| (one.rule, time(one.measured), one.samples)).collect()
}

fn is_best(tuned: &Tuned) -> Outcome {
    let (basis, rule) = (tuned.basis(), tuned.chosen().rule);
    ensure((basis, rule) == (Basis::Measured, 1), || format!("{tuned:?}"))?;
    let mut found = times(tuned);
    ensure(found[0].0 == 3, || format!("the table's choice is not first: {tuned:?}"))?;
    found.sort_by_key(|(rule, ..)| *rule);
    // The table's choice and the fastest spec are timed again, in turns.
    let expected = [(0, None, 0), (1, Some(1), 16), (2, Some(4), 1), (3, Some(4), 16)];
    ensure(found == expected, || format!("{tuned:?}"))?;
    let unmet = tuned.candidates().iter().find(|one| one.rule == 0);
    let unmet = unmet.and_then(|one| one.error.as_deref()).unwrap_or_default();
    ensure(unmet.contains("64"), || format!("{tuned:?}"))?;
    ensure(tuned.is_complete(), || format!("{tuned:?}"))
}

pub(super) fn measure() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let before = fake.get("allocations")?;
    let tuned = GEMM.autotune(&device, SHAPE, ENOUGH)?;
    ensure(!tuned.is_cached(), || "measured before".to_owned())?;
    is_best(&tuned)?;
    device.synchronize()?;
    let after = fake.get("allocations")?;
    ensure(after == before, || format!("{} allocations are left", after - before))?;
    // Launches of a sample, with one before it, a first launch, and a first time.
    let (first, samples, launches) = (3 * 3, 2 * (1 + 1 + 15 + 15), fake.get("launches")?);
    let other = 2;
    ensure(launches == first + samples + other, || format!("{launches} launches"))?;

    let choice = tuned.table()?.choice(SHAPE, &device)?;
    ensure((choice.rule, &*choice.spec) == (0, tuned.spec()), || format!("{choice:?}"))?;
    unchanged(&device, &fake, &tuned)
}

/// The answer is complete, so it is found for any budget, and nothing is launched.
fn unchanged(device: &Device, fake: &Fake, tuned: &Tuned) -> Outcome {
    let launches = fake.get("launches")?;
    for budget in [Duration::from_nanos(1), ENOUGH, Duration::MAX] {
        let again = GEMM.autotune(device, SHAPE, budget)?;
        ensure(again.is_cached(), || format!("{again:?}"))?;
        ensure(again.candidates() == tuned.candidates(), || format!("{again:?}"))?;
        ensure(again.rule() == tuned.rule(), || again.rule())?;
    }
    ensure(fake.get("launches")? == launches, || "something was launched".to_owned())
}

pub(super) fn measured_before() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let tuned = GEMM.autotune(&device, SHAPE, ENOUGH)?;
    ensure(tuned.is_cached(), || format!("{tuned:?}"))?;
    is_best(&tuned)?;
    unchanged(&device, &fake, &tuned)?;
    ensure(fake.get("launches")? == 0, || "something was launched".to_owned())?;
    // Another problem has an answer of its own.
    let other = GEMM.autotune(&device, (61, 50, 40), ENOUGH)?;
    ensure(!other.is_cached(), || format!("{other:?}"))
}

pub(super) fn no_cache() -> Outcome {
    let device = Device::cuda(0)?;
    for _ in 0..2 {
        let tuned = GEMM.autotune(&device, SHAPE, ENOUGH)?;
        ensure(!tuned.is_cached(), || format!("{tuned:?}"))?;
        is_best(&tuned)?;
    }
    Ok(())
}

pub(super) fn budget() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let none = GEMM.autotune(&device, SHAPE, Duration::ZERO)?;
    ensure((none.basis(), none.chosen().rule) == (Basis::Table, 3), || format!("{none:?}"))?;
    ensure(fake.get("launches")? == 0, || "something was launched".to_owned())?;

    // The table's choice is measured in any case.
    let little = GEMM.autotune(&device, SHAPE, Duration::from_nanos(1))?;
    ensure(!little.is_complete() && !little.is_cached(), || format!("{little:?}"))?;
    ensure((little.basis(), little.chosen().rule) == (Basis::Measured, 3), || {
        format!("{little:?}")
    })?;
    let found = times(&little);
    ensure(found[0] == (3, Some(4), 1), || format!("{little:?}"))?;
    ensure(found[1..].iter().all(|(_, time, _)| time.is_none()), || format!("{little:?}"))?;

    // The answer suffices for the same budget only.
    let again = GEMM.autotune(&device, SHAPE, Duration::from_nanos(1))?;
    ensure(again.is_cached() && !again.is_complete(), || format!("{again:?}"))?;
    let more = GEMM.autotune(&device, SHAPE, ENOUGH)?;
    ensure(!more.is_cached(), || format!("{more:?}"))?;
    is_best(&more)?;
    is_best(&GEMM.autotune(&device, SHAPE, Duration::from_nanos(1))?)
}

pub(super) fn failures() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    fake.set_capturing(1)?;
    let error = GEMM.autotune(&device, SHAPE, ENOUGH).map(drop);
    fake.set_capturing(0)?;
    ensure(matches!(error, Err(Error::Capturing { .. })), || format!("{error:?}"))?;

    let side = (1 << 31) - 1;
    let error = GEMM.autotune(&device, (side, side, 1), ENOUGH).map(drop);
    let bytes = 4 * (side as u64).pow(2);
    ensure(
        matches!(&error, Err(Error::OutOfMemory { bytes: told, .. }) if *told == bytes),
        || format!("{error:?}"),
    )?;
    // A damaged answer is measured again.
    let tuned = GEMM.autotune(&device, SHAPE, ENOUGH)?;
    ensure(!tuned.is_cached(), || format!("{tuned:?}"))?;
    let dir = std::env::var("GEMM_CACHE_DIR")?;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let mut bytes = std::fs::read(&path)?;
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        std::fs::write(path, bytes)?;
    }
    let again = GEMM.autotune(&device, SHAPE, ENOUGH)?;
    ensure(!again.is_cached(), || format!("{again:?}"))?;
    is_best(&again)
}
