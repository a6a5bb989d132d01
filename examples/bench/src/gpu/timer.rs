//! Launch times, measured with CUDA events.

use super::{Gpu, failed};
use cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
use cudarc::driver::{CudaEvent, CudaFunction, LaunchConfig, PushKernelArg};
use gemm_runtime::Error;
use gemm_runtime::internal::elapsed_ms;

/// Kernel that keeps the GPU busy while the host enqueues timed work. Otherwise the time of a short
/// kernel would include gaps between host calls.
const DELAY: &str = r#"
extern "C" __global__ void delay(unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
"#;

/// Duration of the delay in nanoseconds: the minimum, and the part for each piece of work that the
/// host enqueues.
///
/// If the delay is too short, the measured time includes host time. Work that runs once is not
/// launched as a graph, so the host takes longer for it.
const HEAD_START: u64 = 1_000_000;
const HEAD_START_ONCE: u64 = 100_000;
const HEAD_START_EACH: u64 = 10_000;

/// Number of rounds that are enqueued after one delay.
const ROUNDS_A_DELAY: usize = 8;

/// Minimum time between two events in milliseconds. It is about a hundred times the time that the
/// GPU needs for an event.
///
/// Shorter work is repeated between the two events. All work of a round is repeated equally often.
/// The limit on repeats keeps the rounds after one delay within the capacity of the stream.
const BETWEEN_EVENTS: f64 = 0.2;
const MOST_REPEATS: usize = 32;

/// Work to enqueue on the stream of a GPU.
pub type Work<'w> = dyn FnMut() -> Result<(), Error> + 'w;

/// Timer of work on the stream of a GPU.
#[derive(Debug)]
pub struct Timer<'d> {
    gpu: Gpu<'d>,
    delay: CudaFunction,
}

impl<'d> Timer<'d> {
    /// Creates a timer for a GPU.
    ///
    /// # Errors
    /// Returns the errors of [`Gpu::load`].
    pub fn new(gpu: Gpu<'d>) -> Result<Self, Error> {
        Ok(Self { gpu, delay: gpu.load("delay", DELAY)? })
    }

    /// Returns the median time of each piece of work in milliseconds, over the rounds of
    /// [`samples`](Self::samples).
    ///
    /// # Errors
    /// Returns the errors of [`samples`](Self::samples).
    pub fn medians(&self, rounds: usize, work: &mut [&mut Work<'_>]) -> Result<Vec<f64>, Error> {
        let mut times = self.samples(rounds, work)?;
        Ok(times.iter_mut().map(|times| median(times)).collect())
    }

    /// Returns the times of each piece of work in milliseconds, one for each of `rounds` rounds
    /// after the warm-up.
    ///
    /// Each round runs every piece equally often: once, or repeatedly if a piece is short.
    /// Disturbances of the GPU thus affect all pieces alike.
    ///
    /// # Errors
    /// Returns the errors of the work, and [`Error::Driver`] if a measurement fails.
    pub fn samples(
        &self,
        rounds: usize,
        work: &mut [&mut Work<'_>],
    ) -> Result<Vec<Vec<f64>>, Error> {
        work.iter_mut().try_for_each(|work| work())?;
        self.gpu.device.synchronize()?;
        let mut once = self.rounds(1, 1, HEAD_START_EACH, work)?;
        let shortest = once.iter_mut().map(|times| median(times)).fold(f64::INFINITY, f64::min);
        self.rounds(rounds, repeats(shortest), HEAD_START_EACH, work)
    }

    /// Returns the time of each piece of work in milliseconds, run once, without warm-up.
    ///
    /// # Errors
    /// Returns the errors of [`medians`](Self::medians).
    pub fn once(&self, work: &mut [&mut Work<'_>]) -> Result<Vec<f64>, Error> {
        let mut times = self.rounds(1, 1, HEAD_START_ONCE, work)?;
        Ok(times.iter_mut().map(|times| median(times)).collect())
    }

    /// Returns the times of each piece of work, one for each round of `repeats` runs.
    ///
    /// The GPU waits `head_start_each` nanoseconds for each run that the host enqueues.
    fn rounds(
        &self,
        rounds: usize,
        repeats: usize,
        head_start_each: u64,
        work: &mut [&mut Work<'_>],
    ) -> Result<Vec<Vec<f64>>, Error> {
        let batch = rounds.min(ROUNDS_A_DELAY);
        let mut events = Vec::with_capacity(2 * batch * work.len());
        for _ in 0..2 * batch * work.len() {
            let event = self.gpu.context.new_event(Some(CU_EVENT_DEFAULT));
            events.push(event.map_err(failed("creating an event"))?);
        }
        let mut times = vec![Vec::with_capacity(rounds); work.len()];
        let mut left = rounds;
        while left > 0 {
            let now = left.min(batch);
            left -= now;
            self.wait_for_host(head_start_each * (now * repeats * work.len()) as u64)?;
            let mut pairs = events.chunks_exact(2);
            for _ in 0..now {
                for (work, pair) in work.iter_mut().zip(&mut pairs) {
                    self.record(&pair[0])?;
                    (0..repeats).try_for_each(|_| work())?;
                    self.record(&pair[1])?;
                }
            }
            let mut pairs = events.chunks_exact(2);
            for _ in 0..now {
                for (times, pair) in times.iter_mut().zip(&mut pairs) {
                    let time = elapsed_ms(&pair[0], &pair[1])?;
                    times.push(f64::from(time) / repeats as f64);
                }
            }
        }
        Ok(times)
    }

    /// Delays the GPU by `head_start` nanoseconds, at least [`HEAD_START`], while the host enqueues
    /// work.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    fn wait_for_host(&self, head_start: u64) -> Result<(), Error> {
        let config =
            LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let mut launch = self.gpu.stream.launch_builder(&self.delay);
        let nanoseconds = HEAD_START.max(head_start);
        launch.arg(&nanoseconds);
        // SAFETY: the kernel has one parameter, a 64-bit number, and accesses no memory.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(failed("launching the delay"))
    }

    fn record(&self, event: &CudaEvent) -> Result<(), Error> {
        event.record(self.gpu.stream).map_err(failed("recording an event"))
    }
}

/// Returns the number of runs between two events if the shortest work takes `shortest`
/// milliseconds.
fn repeats(shortest: f64) -> usize {
    // The cast turns NaN into 0.
    ((BETWEEN_EVENTS / shortest).ceil() as usize).clamp(1, MOST_REPEATS)
}

/// Returns the median; NaN if there are no times.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    match times.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => times[middle],
        _ => (times[middle - 1] + times[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_REPEATS, median, repeats};

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn only_short_work_is_repeated() {
        assert_eq!([1.0, 0.2, 0.11, 0.06, 0.02].map(repeats), [1, 1, 2, 4, 10]);
        assert_eq!([0.001, 0.0].map(repeats), [MOST_REPEATS; 2]);
        assert_eq!([f64::NAN, f64::INFINITY].map(repeats), [1; 2]);
    }
}
