//! A problem from its arrays to its times.

use gemm_bench::cli::Failure;
use gemm_bench::gpu::{Gpu, Timer, read_rate};
use gemm_bench::rows::check::Results;
use gemm_bench::rows::graph;
use gemm_bench::rows::launch::{Inputs, KernelChoice, ReductionLaunch};
use gemm_bench::rows::peers::{PeerKind, Peers, PeersChoice};
use gemm_bench::rows::problem::{Along, ReductionProblem};
use gemm_bench::rows::report::{ReductionRow, row};
use gemm_runtime::{Device, Error};

/// Bytes of an offset.
const OFFSET: u64 = 4;

/// What measures a GPU.
struct Clock<'d> {
    gpu: Gpu<'d>,
    timer: Timer<'d>,
    /// 10^9 bytes a second.
    read_rate: f64,
}

/// A device with what measures on it.
pub struct ReductionBench<'d> {
    device: &'d Device,
    clock: Option<Clock<'d>>,
    peers: Peers,
    seed: u64,
    /// The arrays of the problem before, which the next one mostly shares.
    inputs: Option<Inputs>,
}

impl<'d> ReductionBench<'d> {
    /// Measures how fast the device reads, and starts the peers; of those that are not there it says so.
    pub fn new(
        device: &'d Device,
        choice: Option<PeersChoice>,
        seed: u64,
    ) -> Result<Self, Failure> {
        let clock = match Gpu::new(device) {
            None => None,
            Some(gpu) => {
                let timer = Timer::new(gpu)?;
                // The first time wakes the clocks.
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

    /// What the run is of.
    pub fn title(&self, device: &str) -> String {
        let seed = self.seed;
        match &self.clock {
            None => format!(
                "reductions on the {device} (seed {seed}): what the table chooses, without times"
            ),
            Some(clock) => {
                let peers: Vec<&str> = self.peers.names().iter().map(|(_, name)| &**name).collect();
                let beside =
                    if peers.is_empty() { "no peer".to_owned() } else { peers.join(" and ") };
                let rate = clock.read_rate;
                format!(
                    "reductions on {device}, beside {beside} (seed {seed}); reading alone: {rate:.0} GB/s"
                )
            }
        }
    }

    /// 10^9 bytes that a GPU reads in a second.
    pub fn read_rate(&self) -> Option<f64> {
        self.clock.as_ref().map(|clock| clock.read_rate)
    }

    /// The peers that came.
    pub fn peers(&self) -> &[(PeerKind, String)] {
        self.peers.names()
    }

    /// Launches a problem, checks its results, and times it and then the peers. What kept it or a peer from a
    /// result comes beside the row.
    ///
    /// # Errors
    /// What would befall every problem.
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
                // The next ones may be smaller.
                self.inputs = None;
                complaints.push(format!("{problem} is left out: {error}"));
                row.error = Some(error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        if let (Some(false), Some(error)) = (row.ok, &row.error) {
            complaints.push(format!("{problem} is wrong: {error}"));
        }
        Ok((row, complaints))
    }

    /// Our part of it. None where there is nothing to time, or a result is wrong.
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
