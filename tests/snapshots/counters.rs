//! The counters of one launch of a fixed shape, on the simulator.

use crate::{Stage, compare};
use gemm_dsl::spec::{ReduceSpec, SgemmSpec};
use gemm_runtime::{Buffer, Device, Error, Launched, ReduceKernel, SgemmKernel};
use libtest_mimic::Trial;

/// Elements of the reduction: whole blocks and one that is nearly empty.
const LENGTH: usize = 4097;

/// (m, n, k) of the product: every stage has whole tiles and ragged ones along each axis, and rows
/// that start on 16 bytes.
const SIZE: (usize, usize, usize) = (148, 276, 76);

pub fn trial(stage: &Stage) -> Trial {
    let Stage { ladder, stem, line, .. } = stage.clone();
    Trial::test(format!("counters::{ladder}::{stem}"), move || {
        let (shape, launched) = match ladder {
            "reduce" => (format!("n = {LENGTH}"), reduce(&line)?),
            _ => (format!("m = {}, n = {}, k = {}", SIZE.0, SIZE.1, SIZE.2), multiply(&line)?),
        };
        let counters = launched.counters().ok_or("the simulator did not count")?;
        compare(ladder, &format!("{stem}.counters"), &format!("{line}\n{shape}\n{counters:#?}"));
        Ok(())
    })
}

fn reduce(line: &str) -> Result<Launched, Error> {
    let device = Device::simulator();
    let kernel = ReduceKernel::new(line.parse::<ReduceSpec>()?)?;
    let input = ones(&device, LENGTH)?;
    kernel.launch(&device, &input, &mut device.alloc(1)?)
}

fn multiply(line: &str) -> Result<Launched, Error> {
    let device = Device::simulator();
    let kernel = SgemmKernel::new(line.parse::<SgemmSpec>()?)?;
    let (m, n, k) = SIZE;
    let (a, b) = (ones(&device, m * k)?, ones(&device, k * n)?);
    kernel.launch(&device, &a, &b, &mut device.alloc(m * n)?, SIZE)
}

/// What is counted does not depend on the elements.
fn ones(device: &Device, len: usize) -> Result<Buffer, Error> {
    device.upload(&vec![1.0; len])
}
