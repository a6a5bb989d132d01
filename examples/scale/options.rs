//! What is asked for.

use clap::Parser;
use gemm_examples::cli::{Failure, count};
use gemm_runtime::world::{Carry, Machine, World};
use gemm_runtime::{Device, ReduceKernel, SgemmKernel, SpecErrors};
use std::path::PathBuf;

/// Measure products and sums of matrices that are dealt out to several devices
#[derive(Debug, Parser)]
#[command(name = "scale")]
pub struct Options {
    /// So many simulated devices, in place of GPUs
    #[arg(long, value_name = "RANKS", value_parser = count)]
    pub simulated: Option<usize>,
    /// GPUs by their numbers, each a rank; the same one twice shares its time. All there are without it
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub gpus: Vec<usize>,
    /// How many ranks; 1, 2, 4 and so on without it
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub ranks: Vec<usize>,
    /// What carries data: peers, nccl or host
    #[arg(long)]
    pub carry: Option<Carry>,
    /// Rows, columns and terms of the products
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub size: Vec<usize>,
    /// Each rank has as many columns of C as one alone, so that the product grows with the ranks
    #[arg(long)]
    pub weak: bool,
    /// The kernel; that of the stage `fastest` without it
    #[arg(long)]
    pub line: Option<String>,
    /// Elements of an array to be summed
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub sum: Vec<usize>,
    /// The kernel that sums
    #[arg(long, default_value = "op: sum, block: 256, float4, items: 4, shuffle, run: 65536")]
    pub sum_line: String,
    /// Predict so many ranks, and measure nothing
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub predict: Vec<usize>,
    /// GPUs of a host, where ranks are predicted
    #[arg(long, default_value_t = 8, value_parser = count)]
    pub host: usize,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 21, value_parser = count)]
    pub rounds: usize,
    /// The seed of the elements
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a JSON object for each row to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the efficiency over the ranks, as .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

impl Options {
    /// Whether the devices are simulated.
    fn is_simulated(&self) -> Result<bool, Failure> {
        Ok(self.simulated.is_some() || Device::auto()?.is_simulator())
    }

    /// The extents that are asked for.
    pub fn sizes(&self) -> Vec<usize> {
        let is_simulated = self.is_simulated().unwrap_or(true);
        match (self.size.is_empty(), is_simulated && self.predict.is_empty()) {
            (false, _) => self.size.clone(),
            (true, true) => vec![300],
            (true, false) => vec![8192, 16384],
        }
    }

    /// The arrays to be summed.
    pub fn sums(&self) -> Vec<usize> {
        match (self.sum.is_empty(), self.is_simulated().unwrap_or(true)) {
            (false, _) => self.sum.clone(),
            (true, true) => vec![1_000_000],
            (true, false) => Vec::new(),
        }
    }

    /// How many ranks there are, one world after the other.
    pub fn ranks(&self) -> Result<Vec<usize>, Failure> {
        let most = match self.simulated {
            Some(ranks) => ranks,
            None if self.is_simulated()? => 4,
            None => self.ordinals()?.len(),
        };
        let wrong = |ranks: &&usize| **ranks == 0 || **ranks > most;
        if let Some(ranks) = self.ranks.iter().find(wrong) {
            return Err(Failure::Usage(format!("--ranks {ranks}: there are 1 to {most} here")));
        }
        if !self.ranks.is_empty() {
            return Ok(self.ranks.clone());
        }
        let powers = std::iter::successors(Some(1), |ranks| Some(2 * ranks));
        let mut all: Vec<usize> = powers.take_while(|ranks| *ranks < most).collect();
        all.push(most);
        Ok(all)
    }

    fn ordinals(&self) -> Result<Vec<usize>, Failure> {
        if !self.gpus.is_empty() {
            return Ok(self.gpus.clone());
        }
        Ok((0..self.ordinals_there()).collect())
    }

    /// This process as a rank of a job, if it is one.
    pub fn job(&self) -> Result<Option<World>, Failure> {
        let simulated = self.is_simulated()?;
        let own = |local: usize| match (simulated, self.ordinals_there()) {
            (true, _) | (false, 0) => Ok(Device::simulator()),
            // As where a launcher shows each process its own alone.
            (false, 1) => Device::cuda(0),
            (false, _) => Device::cuda(local),
        };
        let world = World::of_job(own)?;
        let said = [
            ("--gpus", !self.gpus.is_empty()),
            ("--ranks", !self.ranks.is_empty()),
            ("--carry", self.carry.is_some()),
        ];
        match said.into_iter().find(|(_, said)| *said) {
            Some((option, _)) if world.is_some() => Err(Failure::Usage(format!(
                "{option}: the launcher has said which ranks this job has. Leave it out; GEMM_CARRY says what carries data"
            ))),
            _ => Ok(world),
        }
    }

    /// How many GPUs there are.
    fn ordinals_there(&self) -> usize {
        (0..).take_while(|ordinal| Device::cuda(*ordinal).is_ok()).count()
    }

    /// So many of the devices.
    pub fn world(&self, ranks: usize) -> Result<World, Failure> {
        let devices: Vec<Device> = match self.is_simulated()? {
            true => (0..ranks).map(|_| Device::simulator()).collect(),
            false => {
                let ordinals = self.ordinals()?.into_iter().take(ranks);
                ordinals.map(Device::cuda).collect::<Result<_, _>>()?
            }
        };
        Ok(match self.carry {
            Some(carry) => World::carried(devices, carry)?,
            None => World::of(devices)?,
        })
    }

    /// The kernel of the products.
    pub fn kernel(&self) -> Result<SgemmKernel, Failure> {
        let Some(line) = &self.line else {
            let fastest =
                gemm_dsl::stages::sgemm().into_iter().find(|stage| stage.name == "fastest");
            let fastest = fastest
                .ok_or_else(|| Failure::Missing("there is no stage `fastest`".to_owned()))?;
            return Ok(SgemmKernel::new(fastest.spec)?);
        };
        let named = |reason: String| Failure::Usage(format!("--line \"{line}\": {reason}"));
        let spec = line.parse().map_err(|faults: SpecErrors| named(faults.to_string()))?;
        SgemmKernel::new(spec).map_err(|error| named(error.to_string()))
    }

    /// The kernel of the sums.
    pub fn sum_kernel(&self) -> Result<ReduceKernel, Failure> {
        let named =
            |reason: String| Failure::Usage(format!("--sum-line \"{}\": {reason}", self.sum_line));
        let spec = self.sum_line.parse().map_err(|faults: SpecErrors| named(faults.to_string()))?;
        <ReduceKernel>::new(spec).map_err(|error| named(error.to_string()))
    }

    /// What ranks are predicted on.
    pub fn machine(&self, ranks: usize) -> Machine {
        let one = match self.carry {
            Some(Carry::Peers) => Machine::h200_copy_engines(),
            _ => Machine::h200_nccl(),
        };
        match ranks > self.host && self.host > 0 {
            true => {
                Machine { hosts: Some(gemm_runtime::world::Hosts::infiniband(self.host)), ..one }
            }
            false => one,
        }
    }
}
