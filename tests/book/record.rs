//! The costs of all recorded accesses of a launch add up to its counters.

use crate::is_tested;
use gemm_bench::epilogue::launch_once;
use gemm_bench::rows::launch::{Inputs, KernelChoice, ReductionLaunch};
use gemm_dsl::stages::{self, Stage};
use gemm_oracle::product::Size;
use gemm_runtime::sim::watch::{KernelRun, VerifiedKernel, Watch};
use gemm_runtime::spec::{DataType, Over};
use gemm_runtime::{Device, SgemmSpec};
use gemm_sim::{Counters, Price};
use libtest_mimic::Failed;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Observer that records all blocks and adds up the cost of their accesses.
struct Sums {
    wrong: Mutex<Vec<String>>,
    /// True if each warp stores its results. Then no multiplication follows the last event of a
    /// warp.
    is_whole: bool,
}

impl Sums {
    fn new(is_whole: bool) -> Arc<Self> {
        Arc::new(Self { wrong: Mutex::default(), is_whole })
    }
}

impl Watch for Sums {
    fn blocks(&self, _: &VerifiedKernel, grid: [u32; 3]) -> Vec<u32> {
        (0..grid.iter().product()).collect()
    }

    fn ran(&self, seen: KernelRun<'_>) {
        let profile = seen.ran.expect("the stages are right");
        let (mut sectors, mut wavefronts, mut conflicts) = (0, 0, 0);
        let (mut warps, mut fma) = (0, 0);
        for trace in &seen.traces {
            let mut last = std::collections::BTreeMap::new();
            for event in &trace.events {
                last.insert(event.warp, event.executed);
            }
            for access in trace.accesses() {
                match access.pattern.cost {
                    Price::Sectors(of) => sectors += of,
                    Price::Shared(of) => {
                        wavefronts += of.wavefronts;
                        conflicts += of.conflicts();
                    }
                }
            }
            warps += last.len();
            fma += last.values().map(|[_, fma]| fma).sum::<u64>();
        }
        let total = &profile.total;
        let counted = [total.global_sectors, total.shared_wavefronts, total.shared_bank_conflicts];
        let mut all = self.wrong.lock().expect("nobody panics");
        if [sectors, wavefronts, conflicts] != counted {
            all.push(format!(
                "{}: {sectors} {wavefronts} {conflicts}, {counted:?}",
                seen.kernel.name
            ));
        }
        let multiplies = match self.is_whole {
            true => fma == total.fma,
            false => fma <= total.fma && (fma > 0 || total.fma == 0),
        };
        if seen.traces.len() as u64 != total.blocks || warps == 0 || !multiplies {
            all.push(format!(
                "{}: {} of {} blocks, {fma} multiply-adds of {}",
                seen.kernel.name,
                seen.traces.len(),
                total.blocks,
                total.fma
            ));
        }
        // Functions are charged to the statements that call them.
        let mut lines = Counters::default();
        profile.statements.iter().for_each(|of| lines += *of);
        let of_blocks = ["blocks", "block_barriers", "warp_barriers"];
        for ((name, of_lines), (_, of_all)) in lines.each().zip(total.each()) {
            if of_lines != of_all && !of_blocks.contains(&name) {
                all.push(format!("{}: lines have {of_lines} {name} of {of_all}", seen.kernel.name));
            }
        }
    }
}

/// Partial tiles along every axis, so that accesses with inactive lanes occur.
const SIZE: Size = Size { m: 148, n: 276, k: 76 };
const MATRIX: (usize, usize) = (133, 188);

/// Size with only whole tiles, for every stage on CUDA cores.
const WHOLE: Size = Size { m: 256, n: 256, k: 128 };

pub fn comes_to_what_is_counted() -> Result<(), Failed> {
    let (sums, whole) = (Sums::new(false), Sums::new(true));
    let product = |stage: &Stage<SgemmSpec>, size: Size, sums: &Arc<Sums>| {
        let device = Device::simulator_watched(sums.clone());
        let (a, b) = (vec![1.0; size.m * size.k], vec![1.0; size.k * size.n]);
        launch_once(&device, &stage.spec, &a, &b, size).expect(stage.name);
    };
    let tested = stages::sgemm().into_iter().filter(|of| is_tested("sgemm", of.index));
    tested.collect::<Vec<_>>().par_iter().for_each(|stage| {
        product(stage, SIZE, &sums);
        // With an epilogue, the storing statement multiplies.
        if stage.spec.arith.format().is_none() && stage.spec.epilogue.is_none() {
            product(stage, WHOLE, &whole);
        }
    });
    stages::reduce().par_iter().for_each(|stage| {
        let device = Device::simulator_watched(sums.clone());
        let (rows, cols) = MATRIX;
        let size = match stage.spec.over {
            Over::Rows => (rows, cols, 1),
            Over::Columns => (1, rows, cols),
            _ => (1, rows * cols, 1),
        };
        let chosen = KernelChoice::from_spec(stage.spec.clone()).expect(stage.name);
        let inputs = Inputs::new(None, DataType::F32, rows * cols, 1, 1).expect(stage.name);
        let launch = ReductionLaunch::new(&device, &chosen, size, None);
        launch.and_then(|mut launch| launch.run(&inputs)).expect(stage.name);
    });
    let wrong =
        [sums, whole].map(|sums| sums.wrong.lock().expect("nobody panics").clone()).concat();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:#?}").into()) }
}
