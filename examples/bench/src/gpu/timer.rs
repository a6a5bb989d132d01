//! Times of launches, by events.

use super::{Gpu, failed};
use cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
use cudarc::driver::{CudaEvent, CudaFunction, LaunchConfig, PushKernelArg};
use gemm_runtime::Error;

/// Keeps the GPU busy while the host puts timed work on the stream: otherwise a gap between two
/// calls of the host would count as time of a short kernel.
const DELAY: &str = r#"
extern "C" __global__ void delay(unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
"#;

/// How long the GPU waits for the host, in nanoseconds: for what takes the host longest, and for each piece of work
/// that it puts on the stream. Too short a time makes what the host takes long for look slow; what is done but once
/// is launched on its own, for which the host takes longer than for a graph.
const HEAD_START: u64 = 1_000_000;
const HEAD_START_ONCE: u64 = 100_000;
const HEAD_START_EACH: u64 = 10_000;

/// Rounds that are put on the stream behind one delay.
const ROUNDS_A_DELAY: usize = 8;

/// The least time between two events, in milliseconds: what an event itself costs the GPU is about a
/// hundredth of it. Shorter work is done several times between them, all of a round equally often; at most
/// so often that the stream holds all rounds behind a delay.
const BETWEEN_EVENTS: f64 = 0.2;
const MOST_REPEATS: usize = 32;

/// Something that puts work on the stream of a GPU.
pub type Work<'w> = dyn FnMut() -> Result<(), Error> + 'w;

/// Times work on the stream of a GPU.
#[derive(Debug)]
pub struct Timer<'d> {
    gpu: Gpu<'d>,
    delay: CudaFunction,
}

impl<'d> Timer<'d> {
    /// A timer for a GPU.
    ///
    /// # Errors
    /// Those of [`Gpu::load`].
    pub fn new(gpu: Gpu<'d>) -> Result<Self, Error> {
        Ok(Self { gpu, delay: gpu.load("delay", DELAY)? })
    }

    /// The median time of each piece of work in milliseconds, over `rounds` rounds in which each is
    /// done once, or short ones equally often one after the other, after warm-up. Whatever disturbs the
    /// GPU so disturbs all of them.
    ///
    /// # Errors
    /// The work's own, and [`Error::Driver`].
    pub fn medians(&self, rounds: usize, work: &mut [&mut Work<'_>]) -> Result<Vec<f64>, Error> {
        work.iter_mut().try_for_each(|work| work())?;
        self.gpu.device.synchronize()?;
        let mut once = self.rounds(1, 1, HEAD_START_EACH, work)?;
        let shortest = once.iter_mut().map(|times| median(times)).fold(f64::INFINITY, f64::min);
        let mut times = self.rounds(rounds, repeats(shortest), HEAD_START_EACH, work)?;
        Ok(times.iter_mut().map(|times| median(times)).collect())
    }

    /// The time of each piece of work in milliseconds, done once, without warm-up.
    ///
    /// # Errors
    /// As [`medians`](Self::medians).
    pub fn once(&self, work: &mut [&mut Work<'_>]) -> Result<Vec<f64>, Error> {
        let mut times = self.rounds(1, 1, HEAD_START_ONCE, work)?;
        Ok(times.iter_mut().map(|times| median(times)).collect())
    }

    /// The times of each piece of work, of each round one, in which it is done so often; for each the GPU waits so
    /// many nanoseconds.
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
                    let time = pair[0].elapsed_ms(&pair[1]);
                    let time = time.map_err(failed("reading the time of a launch"))?;
                    times.push(f64::from(time) / repeats as f64);
                }
            }
        }
        Ok(times)
    }

    /// Delays the GPU by so many nanoseconds, for the host to put work on the stream.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    fn wait_for_host(&self, head_start: u64) -> Result<(), Error> {
        let config =
            LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let mut launch = self.gpu.stream.launch_builder(&self.delay);
        let nanoseconds = HEAD_START.max(head_start);
        launch.arg(&nanoseconds);
        // SAFETY: the kernel's one parameter is a 64-bit number, and it accesses no memory.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(failed("launching the delay"))
    }

    fn record(&self, event: &CudaEvent) -> Result<(), Error> {
        event.record(self.gpu.stream).map_err(failed("recording an event"))
    }
}

/// How often work is done between two events, the shortest of which takes so many milliseconds.
fn repeats(shortest: f64) -> usize {
    // A number that is none becomes 0.
    ((BETWEEN_EVENTS / shortest).ceil() as usize).clamp(1, MOST_REPEATS)
}

/// The median; NaN of nothing.
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
