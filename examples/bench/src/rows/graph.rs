//! Times of back-to-back launches in a CUDA graph.

use crate::gpu::{Gpu, Timer, captured, failed};
use gemm_runtime::Error;

/// Minimum time of a replay in microseconds, so that its overhead is small.
pub const REPLAY_US: f64 = 200.0;

/// Minimum and maximum number of launches in a graph. With at least two, a launch directly follows
/// another.
pub const LAUNCHES: (usize, usize) = (2, 256);

pub const REPLAYS: usize = 20;

/// Time of a launch within a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchTime {
    /// Microseconds, the median of the replays.
    pub us: f64,
    /// Number of launches in the graph.
    pub launches: usize,
}

/// Times work that was launched before, so that it neither compiles nor allocates.
///
/// # Errors
/// Returns the errors of the work, and [`Error::Driver`] if a capture or a replay fails.
pub fn time(
    gpu: Gpu<'_>,
    timer: &Timer<'_>,
    work: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<LaunchTime, Error> {
    let first = replayed(gpu, timer, work, LAUNCHES.0, 3)?;
    let launches = launches(first.us);
    replayed(gpu, timer, work, launches, REPLAYS)
}

/// Returns the number of launches for which a replay takes at least [`REPLAY_US`], if a launch
/// takes `us` microseconds.
pub fn launches(us: f64) -> usize {
    // The cast turns NaN into 0.
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
    // The graph is destroyed when this function returns.
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
