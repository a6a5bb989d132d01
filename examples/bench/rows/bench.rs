//! Check and timing of one reduction problem.

use gemm_bench::cli::Failure;
use gemm_bench::gpu::{Gpu, Timer, read_rate};
use gemm_bench::rows::check::Results;
use gemm_bench::rows::graph;
use gemm_bench::rows::launch::{Inputs, KernelChoice, ReductionLaunch};
use gemm_bench::rows::peers::{PeerKind, Peers, PeersChoice};
use gemm_bench::rows::problem::{Along, ReductionProblem};
use gemm_bench::rows::report::{ReductionRow, row};
use gemm_runtime::{Device, Error};

/// Bytes of a segment offset in the kernels.
const OFFSET: u64 = 4;

/// Tools for measurements on a GPU.
struct Clock<'d> {
    gpu: Gpu<'d>,
    timer: Timer<'d>,
    /// Rate of a kernel that only reads, in 10^9 bytes/s.
    read_rate: f64,
}

/// Device with its tools and peers.
pub struct ReductionBench<'d> {
    device: &'d Device,
    clock: Option<Clock<'d>>,
    peers: Peers,
    seed: u64,
    /// Arrays of the previous problem. Consecutive problems usually use the same arrays.
    inputs: Option<Inputs>,
}

impl<'d> ReductionBench<'d> {
    /// Measures the read rate of the device, and starts the peers. Prints a message for each peer
    /// that cannot be started.
    pub fn new(
        device: &'d Device,
        choice: Option<PeersChoice>,
        seed: u64,
    ) -> Result<Self, Failure> {
        let clock = match Gpu::new(device) {
            None => None,
            Some(gpu) => {
                let timer = Timer::new(gpu)?;
                // The clocks may rise during the first measurement.
                let read_rate = read_rate(gpu, &timer)?.max(read_rate(gpu, &timer)?);
                Some(Clock { gpu, timer, read_rate })
            }
        };
        let choice = match clock {
            Some(_) => choice.unwrap_or(PeersChoice::All),
            None => PeersChoice::None,
        };
        let (peers, lacks) = Peers::start(choice)?;
        for lack in lacks {
            eprintln!("{lack}");
        }
        Ok(Self { device, clock, peers, seed, inputs: None })
    }

    /// Returns the title of the run.
    pub fn title(&self, device: &str) -> String {
        let seed = self.seed;
        match &self.clock {
            None => format!(
                "reductions on the {device} (seed {seed}): choices of the table, without times"
            ),
            Some(clock) => {
                let peers: Vec<&str> = self.peers.names().iter().map(|(_, name)| &**name).collect();
                let beside =
                    if peers.is_empty() { "no peer".to_owned() } else { peers.join(" and ") };
                let rate = clock.read_rate;
                format!(
                    "reductions on {device}, compared with {beside} (seed {seed}); reading only: \
                     {rate:.0} GB/s"
                )
            }
        }
    }

    /// Returns the rate of a kernel that only reads, in 10^9 bytes/s.
    pub fn read_rate(&self) -> Option<f64> {
        self.clock.as_ref().map(|clock| clock.read_rate)
    }

    /// Returns the peers that started.
    pub fn peers(&self) -> &[(PeerKind, String)] {
        self.peers.names()
    }

    /// Launches our kernel on a problem, checks the results, and times our kernel and then the
    /// peers. Returns the row, and messages about missing results.
    ///
    /// # Errors
    /// Returns an error that would affect every problem.
    pub fn measure(
        &mut self,
        problem: &ReductionProblem,
    ) -> Result<(ReductionRow, Vec<String>), Failure> {
        let mut row = row(problem);
        let offsets = match problem.along {
            Along::Segments(lengths, average) => {
                let most = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                Some(lengths.offsets(self.seed, most(problem.len()), most(average)))
            }
            Along::Whole | Along::Axis(_) => None,
        };
        let mut complaints = Vec::new();
        match self.ours(problem, offsets.as_deref(), &mut row) {
            Ok(None) => {}
            Ok(Some(timed)) => {
                let answers = self.peers.ask(problem, timed.launches, offsets.as_deref())?;
                complaints = answers.complaints;
                let rate = self.read_rate().unwrap_or(f64::NAN);
                row.timed(timed.us, timed.launches, rate, &answers.times);
            }
            Err(error @ Error::OutOfMemory { .. }) => {
                // The memory is needed for the next problems.
                self.inputs = None;
                complaints.push(format!("{problem} is skipped: {error}"));
                row.error = Some(error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        if let (Some(false), Some(error)) = (row.ok, &row.error) {
            complaints.push(format!("{problem} is wrong: {error}"));
        }
        Ok((row, complaints))
    }

    /// Measures our kernel. `None` if there is nothing to time, or if a result is wrong.
    fn ours(
        &mut self,
        problem: &ReductionProblem,
        offsets: Option<&[u32]>,
        row: &mut ReductionRow,
    ) -> Result<Option<graph::LaunchTime>, Error> {
        let chosen = KernelChoice::new(problem)?;
        row.condition.clone_from(&chosen.condition);
        row.spec = chosen.spec.to_string();
        let gpu = self.clock.as_ref().map(|clock| clock.gpu);
        let inputs = match self.inputs.take().filter(|inputs| inputs.suit(problem)) {
            Some(inputs) => inputs,
            None => {
                let (element, len) = (problem.element, problem.len());
                Inputs::new(gpu, element, len, problem.inputs(), self.seed)?
            }
        };
        let inputs = self.inputs.insert(inputs);
        let mut launch = ReductionLaunch::new(self.device, &chosen, problem.size(), offsets)?;
        launch.run(inputs)?;
        let bits = launch.results()?;
        let results = bits.iter().map(Vec::len).sum::<usize>() as u64;
        let width: u64 = chosen.spec.results().iter().map(|(_, elem)| u64::from(elem.size())).sum();
        let offset_bytes = offsets.map_or(0, |offsets| offsets.len() as u64 * OFFSET);
        row.bytes_moved += results * width / bits.len().max(1) as u64 + offset_bytes;

        let results =
            Results { problem, spec: &chosen.spec, tiles: &inputs.tiles, offsets, bits: &bits };
        match results.check(self.clock.is_none(), self.seed) {
            Ok(checked) => (row.ok, row.checked) = (Some(true), checked),
            Err(wrong) => {
                (row.ok, row.error) = (Some(false), Some(wrong));
                return Ok(None);
            }
        }
        let Some(clock) = &self.clock else { return Ok(None) };
        let timed = graph::time(clock.gpu, &clock.timer, &mut || launch.run(inputs).map(drop))?;
        Ok(Some(timed))
    }
}
