//! Times of launches that lie back to back in a CUDA graph.

use crate::gpu::{Gpu, Timer, captured, failed};
use gemm_runtime::Error;

/// The least time of a replay in microseconds: what one costs beside its launches is then little of it.
pub const REPLAY_US: f64 = 200.0;

/// Launches of a graph: at least so many, so that each but the first has one before it, and at most so many.
pub const LAUNCHES: (usize, usize) = (2, 256);

/// Replays that are timed.
pub const REPLAYS: usize = 20;

/// How long a launch takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchTime {
    /// In microseconds, the median of the replays.
    pub us: f64,
    /// The launches of the graph.
    pub launches: usize,
}

/// Times work that has been launched before, so that it neither compiles nor allocates any more.
///
/// # Errors
/// The work's own, and [`Error::Driver`].
pub fn time(
    gpu: Gpu<'_>,
    timer: &Timer<'_>,
    work: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<LaunchTime, Error> {
    let first = replayed(gpu, timer, work, LAUNCHES.0, 3)?;
    let launches = launches(first.us);
    replayed(gpu, timer, work, launches, REPLAYS)
}

/// The launches of a graph whose replay takes long enough, if one takes so many microseconds.
pub fn launches(us: f64) -> usize {
    // A number that is none becomes 0.
    ((REPLAY_US / us).ceil() as usize).clamp(LAUNCHES.0, LAUNCHES.1)
}

fn replayed(
    gpu: Gpu<'_>,
    timer: &Timer<'_>,
    work: &mut dyn FnMut() -> Result<(), Error>,
    launches: usize,
    replays: usize,
) -> Result<LaunchTime, Error> {
    let graph = captured(gpu, work, launches)?;
    let mut replay = || graph.launch().map_err(failed("launching a graph"));
    let times = timer.medians(replays, &mut [&mut replay])?;
    let ms = times.first().copied().unwrap_or(f64::NAN);
    // The graph is destroyed when this returns.
    gpu.device.synchronize()?;
    Ok(LaunchTime { us: ms * 1e3 / launches as f64, launches })
}

#[cfg(test)]
mod tests {
    use super::launches;

    #[test]
    fn a_replay_takes_long_enough() {
        assert_eq!([4.0, 99.0, 100.0, 5000.0].map(launches), [50, 3, 2, 2]);
        assert_eq!([0.0, 0.001, f64::NAN].map(launches), [256, 256, 2]);
    }
}
