//! Times of launches on a GPU, measured with events of the driver.

use crate::backend::driver::{elapsed_ms, failed};
use crate::device::Device;
use crate::error::Result;
use cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
use cudarc::driver::{CudaEvent, CudaStream};
use std::sync::Arc;
use std::time::Duration;

/// Minimum time between the two events of a sample in seconds, about a hundred times the GPU's time
/// for an event. Shorter launches are repeated.
const SAMPLE: f64 = 2e-4;
/// Maximum number of launches of a sample.
const MOST_LAUNCHES: u32 = 32;

/// Events around timed work on the stream of a GPU.
pub(super) struct Stopwatch<'d> {
    stream: &'d Arc<CudaStream>,
    start: CudaEvent,
    end: CudaEvent,
}

impl<'d> Stopwatch<'d> {
    /// Returns `None` for the simulator.
    pub(super) fn new(device: &'d Device) -> Result<Option<Self>> {
        let Some((context, stream)) = device.cudarc() else { return Ok(None) };
        let event = || {
            let event = context.new_event(Some(CU_EVENT_DEFAULT));
            event.map_err(failed("creating an event"))
        };
        Ok(Some(Self { stream, start: event()?, end: event()? }))
    }

    /// Returns the time of a launch: the time of `launches` launches in a row, divided by their
    /// number. One more launch precedes them, so that the GPU is busy while the host enqueues them.
    pub(super) fn sample(
        &self,
        launches: u32,
        mut launch: impl FnMut() -> Result<()>,
    ) -> Result<Duration> {
        launch()?;
        self.record(&self.start)?;
        (0..launches).try_for_each(|_| launch())?;
        self.record(&self.end)?;
        let milliseconds = f64::from(elapsed_ms(&self.start, &self.end)?);
        // Broken clocks must not panic.
        let seconds = (milliseconds / 1e3 / f64::from(launches)).max(0.0);
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    fn record(&self, event: &CudaEvent) -> Result<()> {
        event.record(self.stream).map_err(failed("recording an event"))
    }
}

/// Number of launches of a sample, for launches of this duration.
pub(super) fn launches(of_one: Duration) -> u32 {
    // The cast turns NaN into 0, and infinity into the greatest number.
    ((SAMPLE / of_one.as_secs_f64()).ceil() as u32).clamp(1, MOST_LAUNCHES)
}

/// Median of samples. `None` without samples.
pub(super) fn median(samples: &[Duration]) -> Option<Duration> {
    let mut sorted = samples.to_vec();
    sorted.sort();
    let (upper, lower) = (sorted.get(sorted.len() / 2)?, sorted.get((sorted.len() - 1) / 2)?);
    Some(lower.saturating_add(*upper) / 2)
}

#[cfg(test)]
mod tests {
    use super::{MOST_LAUNCHES, launches, median};
    use std::time::Duration;

    #[test]
    fn the_median_is_in_the_middle() {
        let ns = |times: &[u64]| {
            let times: Vec<Duration> = times.iter().copied().map(Duration::from_nanos).collect();
            median(&times).map(|median| median.as_nanos())
        };
        assert_eq!(ns(&[]), None);
        assert_eq!(ns(&[7]), Some(7));
        assert_eq!(ns(&[3, 1, 2]), Some(2));
        assert_eq!(ns(&[4, 1, 20, 2]), Some(3));
    }

    #[test]
    fn only_short_launches_are_repeated() {
        let of_us = |us| launches(Duration::from_micros(us));
        assert_eq!([1000, 200, 110, 60, 20].map(of_us), [1, 1, 2, 4, 10]);
        assert_eq!([1, 0].map(of_us), [MOST_LAUNCHES; 2]);
    }
}
