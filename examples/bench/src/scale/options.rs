//! Command line of the program `scale`.

#[cfg(test)]
mod tests;

use super::memory;
use crate::cli::{Failure, count, named, some};
use crate::plot;
use clap::Parser;
use gemm_runtime::error::SpecErrors;
use gemm_runtime::spec::Over;
use gemm_runtime::{Device, ReduceKernel, ReduceSpec, SgemmKernel, SgemmSpec};
use gemm_world::{ClusterModel, Hosts, TransportKind, World};
use std::fmt::Display;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Maximum number of predicted ranks. The model computes the exchange of every pair of ranks.
const MOST_PREDICTED: usize = 2048;

/// Parses a number of ranks that can be predicted.
fn predictable(text: &str) -> Result<usize, String> {
    match some(text)? {
        ranks if ranks > MOST_PREDICTED => Err(format!(
            "it must be at most {MOST_PREDICTED}: the exchange between ranks is modelled pair \
             by pair"
        )),
        ranks => Ok(ranks),
    }
}

/// Measure GEMMs and sums distributed over several devices
#[derive(Debug, Parser)]
#[command(name = "scale")]
pub struct ScaleOptions {
    /// Number of simulated devices, instead of GPUs
    #[arg(long, value_name = "RANKS", value_parser = some, allow_negative_numbers = true,
        conflicts_with = "gpus")]
    pub simulated: Option<usize>,
    /// GPU ordinals, one for each rank. Ranks with the same ordinal share the GPU. Default: all
    /// GPUs
    #[arg(long, value_delimiter = ',', value_parser = count, allow_negative_numbers = true)]
    pub gpus: Vec<usize>,
    /// Numbers of ranks. Default: 1, 2, 4 and so on
    #[arg(long, value_delimiter = ',', value_parser = some, allow_negative_numbers = true)]
    pub ranks: Vec<usize>,
    /// Transport: peers, nccl or host. Default: GEMM_CARRY, or the fastest available
    #[arg(long)]
    pub carry: Option<TransportKind>,
    /// Extents m = n = k of the GEMMs
    #[arg(long, value_delimiter = ',', value_parser = some, allow_negative_numbers = true)]
    pub size: Vec<usize>,
    /// Weak scaling: each rank computes as many columns of C as a single device, so that the GEMM
    /// grows with the ranks
    #[arg(long)]
    pub weak: bool,
    /// Spec of the GEMM kernel. Default: the stage `fastest`
    #[arg(long)]
    pub line: Option<String>,
    /// Length of an array to sum
    #[arg(long, value_delimiter = ',', value_parser = some, allow_negative_numbers = true)]
    pub sum: Vec<usize>,
    /// Spec of the kernel that sums arrays
    #[arg(long, default_value = "op: sum, block: 256, float4, items: 4, shuffle, run: 65536")]
    pub sum_line: String,
    /// Predict these numbers of ranks, at most 2048, and measure nothing
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = predictable,
        allow_negative_numbers = true,
        conflicts_with_all = ["simulated", "gpus", "ranks"]
    )]
    pub predict: Vec<usize>,
    /// Number of GPUs per host in predictions
    #[arg(long, default_value_t = 8, value_parser = some, allow_negative_numbers = true,
        requires = "predict")]
    pub host: usize,
    /// Rounds of each measurement. Default: 21, or 1 on simulated devices
    #[arg(long, value_parser = some, allow_negative_numbers = true)]
    pub rounds: Option<usize>,
    /// Seed of the elements
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// Write a JSON object for each row to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Plot the efficiency over the ranks, as .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

impl ScaleOptions {
    /// Returns true if the devices are simulated.
    fn is_simulated(&self) -> Result<bool, Failure> {
        Ok(match (self.simulated, self.gpus.is_empty()) {
            (Some(_), _) => true,
            (None, false) => false,
            (None, true) => Device::auto()?.is_simulator(),
        })
    }

    /// Returns the extents of the GEMMs.
    ///
    /// # Errors
    /// Returns the errors of [`Device::auto`].
    pub fn sizes(&self) -> Result<Vec<usize>, Failure> {
        Ok(match (self.size.is_empty(), self.predict.is_empty() && self.is_simulated()?) {
            (false, _) => self.size.clone(),
            (true, true) => vec![300],
            (true, false) => vec![8192, 16384],
        })
    }

    /// Returns the lengths of the arrays to sum.
    ///
    /// # Errors
    /// Returns the errors of [`Device::auto`].
    pub fn sums(&self) -> Result<Vec<usize>, Failure> {
        Ok(match (self.sum.is_empty(), self.predict.is_empty() && self.is_simulated()?) {
            (false, _) => self.sum.clone(),
            (true, true) => vec![1_000_000],
            (true, false) => Vec::new(),
        })
    }

    /// Returns the rounds of each measurement.
    pub fn rounds(&self, is_simulated: bool) -> usize {
        self.rounds.unwrap_or(if is_simulated { 1 } else { 21 })
    }

    /// Returns the numbers of ranks. Each is measured in its own world.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if there are fewer devices.
    pub fn ranks(&self) -> Result<Vec<usize>, Failure> {
        let most = match self.simulated {
            Some(ranks) => ranks,
            None if self.is_simulated()? => 4,
            None => self.ordinals()?.len(),
        };
        ranks_of(&self.ranks, most)
    }

    fn ordinals(&self) -> Result<Vec<usize>, Failure> {
        let there = gpus_there();
        let Some(first) = self.gpus.iter().max() else { return Ok((0..there).collect()) };
        match there {
            0 => Err(Failure::Usage(format!(
                "--gpus {first}: the driver reports no GPU here; check `nvidia-smi` and \
                 CUDA_VISIBLE_DEVICES, or give --simulated {}",
                self.gpus.len()
            ))),
            _ if *first >= there => Err(Failure::Usage(format!(
                "--gpus {first}: there {} here, numbered from 0",
                if there == 1 { "is 1 GPU".to_owned() } else { format!("are {there} GPUs") }
            ))),
            _ => Ok(self.gpus.clone()),
        }
    }

    /// Joins the job of a launcher, if this process is a rank of one. Returns the world and the
    /// device.
    ///
    /// # Errors
    /// Returns the errors of the rendezvous, and [`Failure::Usage`] if an option is given that the
    /// launcher determines.
    pub fn job(&self) -> Result<Option<(World, Device)>, Failure> {
        let simulated = self.simulated.is_some() || Device::auto()?.is_simulator();
        let mut made = None;
        let own = |local: usize| {
            let device = match (simulated, gpus_there()) {
                (true, _) | (false, 0) => Device::simulator(),
                // The launcher makes only one GPU visible to each process.
                (false, 1) => Device::cuda(0)?,
                (false, _) => Device::cuda(local)?,
            };
            made = Some(device.clone());
            Ok(device)
        };
        let Some((world, device)) = World::of_job(own)?.zip(made) else { return Ok(None) };
        let ranks = world.ranks();
        let said = [
            ("--gpus", !self.gpus.is_empty()),
            ("--ranks", !self.ranks.is_empty()),
            ("--carry", self.carry.is_some()),
            ("--simulated", self.simulated.is_some_and(|simulated| simulated != ranks)),
        ];
        match said.into_iter().find(|(_, said)| *said) {
            Some((option, _)) => Err(Failure::Usage(format!(
                "{option}: the launcher already sets {ranks} ranks and this rank's index. Leave \
                 the option out; GEMM_CARRY selects the transport"
            ))),
            None => Ok(Some((world, device))),
        }
    }

    /// Opens the first `ranks` devices, each with the number of its rank.
    ///
    /// # Errors
    /// Returns the errors of [`Device::cuda`].
    pub fn devices(&self, ranks: usize) -> Result<Vec<(usize, Device)>, Failure> {
        if self.is_simulated()? {
            return Ok((0..ranks).map(|rank| (rank, Device::simulator())).collect());
        }
        let ordinals = self.ordinals()?.into_iter().take(ranks).enumerate();
        Ok(ordinals
            .map(|(rank, ordinal)| Ok((rank, Device::cuda(ordinal)?)))
            .collect::<gemm_runtime::error::Result<_>>()?)
    }

    /// Creates the world of these devices.
    ///
    /// # Errors
    /// Returns the errors of [`World::new`] and [`World::with_transport`].
    pub fn world(&self, devices: Vec<(usize, Device)>) -> Result<World, Failure> {
        let devices: Vec<_> = devices.into_iter().map(|(_, device)| device).collect();
        // GEMM_CARRY applies to GPUs only.
        let are_simulated = devices.iter().all(Device::is_simulator);
        match self.carry.or(are_simulated.then_some(TransportKind::Host)) {
            Some(carry) => World::with_transport(devices, carry)
                .map_err(|error| Failure::Usage(format!("--carry {carry}: {error}"))),
            None => Ok(World::new(devices)?),
        }
    }

    /// Checks that the files can be written. Called before a measurement, whose results would
    /// otherwise be lost.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] and [`Failure::Plot`], which name the file.
    pub fn check_files(&self) -> Result<(), Failure> {
        let open = |option: &str, path: &Path| {
            // An existing file is not changed.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            file.map(drop).map_err(|error| {
                let Failure::Output(error) = named(path, &error) else {
                    return Failure::Output(error);
                };
                Failure::Usage(format!("{option} {error}"))
            })
        };
        if let Some(path) = &self.json {
            open("--json", path)?;
        }
        if let Some(path) = &self.plot {
            plot::check_path(path)?;
            open("--plot", path)?;
        }
        Ok(())
    }

    /// Parses the spec of the GEMMs.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] with the spec's faults.
    pub fn product_spec(&self) -> Result<SgemmSpec, Failure> {
        let Some(line) = &self.line else { return fastest() };
        line.parse().map_err(|faults: SpecErrors| wrong("--line", line, &faults))
    }

    /// Creates the kernel of the GEMMs.
    ///
    /// # Errors
    /// Returns the errors of [`ScaleOptions::product_spec`].
    pub fn kernel(&self) -> Result<SgemmKernel, Failure> {
        let made = SgemmKernel::new(self.product_spec()?);
        made.map_err(|error| match &self.line {
            Some(line) => wrong("--line", line, &error),
            None => error.into(),
        })
    }

    /// Parses the spec of the sums.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] with the spec's faults.
    pub fn sum_spec(&self) -> Result<ReduceSpec, Failure> {
        let wrong = |reason: &dyn Display| wrong("--sum-line", &self.sum_line, reason);
        let spec: ReduceSpec =
            self.sum_line.parse().map_err(|faults: SpecErrors| wrong(&faults))?;
        if spec.over != Over::All {
            let over = spec.over;
            return Err(wrong(&format!(
                "it reduces {over}, and only reductions of a whole array can be distributed over \
                 ranks"
            )));
        }
        if spec.run.is_none() {
            return Err(wrong(
                &"it has no key `run`, which sets where arrays can be cut. Add it, as in \
                  `run: 65536`",
            ));
        }
        Ok(spec)
    }

    /// Creates the kernel of the sums.
    ///
    /// # Errors
    /// Returns the errors of [`ScaleOptions::sum_spec`].
    pub fn sum_kernel(&self) -> Result<ReduceKernel, Failure> {
        <ReduceKernel>::new(self.sum_spec()?)
            .map_err(|error| wrong("--sum-line", &self.sum_line, &error))
    }

    /// Returns the model of the machine for a prediction.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if the rates of the transport are unknown.
    pub fn machine(&self, ranks: usize) -> Result<ClusterModel, Failure> {
        let is_one_host = ranks <= self.host;
        let one = match self.carry {
            Some(TransportKind::Host) => {
                return Err(Failure::Usage(
                    "--carry host: the transfer rate through a host has not been measured; \
                     predict with peers or nccl"
                        .to_owned(),
                ));
            }
            Some(TransportKind::Peers) if !is_one_host => {
                return Err(Failure::Usage(format!(
                    "--carry peers: {ranks} ranks span several hosts of {} GPUs each, and peers \
                     connects the GPUs of one process; give nccl, or --host {ranks}",
                    self.host
                )));
            }
            Some(TransportKind::Peers) => ClusterModel::h200_copy_engines(),
            Some(TransportKind::Nccl) | None => ClusterModel::h200_nccl(),
        };
        let hosts = if is_one_host { None } else { Some(Hosts::infiniband(self.host)) };
        Ok(ClusterModel { hosts, ..one })
    }

    /// Checks all predictions before the first is computed.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if a spec has no known rate or a prediction is impossible.
    pub fn check_predictions(&self) -> Result<(), Failure> {
        let spec = self.product_spec()?;
        for ranks in &self.predict {
            let rates = self.machine(*ranks)?.gpu.rates;
            let is_rated =
                rates.iter().any(|rate| (rate.arith, rate.mma) == (spec.arith, spec.mma))
                    || spec == fastest()?;
            if let (Some(line), false) = (&self.line, is_rated) {
                return Err(wrong(
                    "--line",
                    line,
                    &"among plain f32 kernels only the stage `fastest` has a measured rate: leave \
                      out --line, or give a tensor-core spec, as in `arith: bf16x6`",
                ));
            }
            for n in self.sizes()? {
                memory::countable(n, *ranks, self.weak)?;
            }
        }
        Ok(())
    }
}

/// Returns the default spec of the GEMMs.
fn fastest() -> Result<SgemmSpec, Failure> {
    let stage = gemm_dsl::stages::sgemm().into_iter().find(|stage| stage.name == "fastest");
    let missing = || Failure::Missing("the stage `fastest` is missing".to_owned());
    stage.map(|stage| stage.spec).ok_or_else(missing)
}

/// Returns the failure for a faulty spec in an option.
fn wrong(option: &str, line: &str, reason: &dyn Display) -> Failure {
    Failure::Usage(format!("{option} \"{line}\": {reason}"))
}

/// Counts the GPUs that can be opened.
fn gpus_there() -> usize {
    (0..).take_while(|ordinal| Device::cuda(*ordinal).is_ok()).count()
}

/// Returns the requested numbers of ranks. By default they are the powers of two below the number
/// of devices, and the number of devices.
fn ranks_of(asked: &[usize], most: usize) -> Result<Vec<usize>, Failure> {
    if let Some(ranks) = asked.iter().find(|ranks| **ranks == 0 || **ranks > most) {
        return Err(Failure::Usage(format!(
            "--ranks {ranks}: it must be from 1 to {most}, the number of devices"
        )));
    }
    if !asked.is_empty() {
        return Ok(asked.to_vec());
    }
    let powers = std::iter::successors(Some(1_usize), |ranks| ranks.checked_mul(2));
    let mut all: Vec<usize> = powers.take_while(|ranks| *ranks < most).collect();
    all.push(most);
    Ok(all)
}
