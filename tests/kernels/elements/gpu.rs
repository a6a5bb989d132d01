//! Every element type on the GPU: the hand-written kernels have the bits of the simulator.

use crate::trial;
use gemm_dsl::cuda;
use gemm_dsl::ir::Elem;
use gemm_fixtures::elements;
use gemm_fixtures::elements::Case;
use gemm_runtime::Device;
use gemm_runtime::compile::{self, Options};
use gemm_runtime::cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};
use gemm_runtime::cudarc::nvrtc::Ptx;
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    let cases = elements::cases().into_iter();
    cases.map(|case| trial(format!("elements::{}", case.name), move |d| check(&case, d))).collect()
}

fn check(case: &Case, device: &Device) -> Result<(), Failed> {
    let simulated = case.simulate()?;
    let computed = launch(case, device)?;
    // The payload of a NaN from f64 is unspecified.
    let from_double = case.inputs.iter().any(|(elem, _)| *elem == Elem::F64);
    let open = from_double || case.output == Elem::F64;
    let moves = case.name.starts_with("moved") || case.name.ends_with("shuffle");
    let same = |(gpu, sim): (&u64, &u64)| {
        gpu == sim || (open && !moves && is_nan(case.output, *gpu) && is_nan(case.output, *sim))
    };
    match computed.iter().zip(&simulated).position(|pair| !same(pair)) {
        None => Ok(()),
        Some(at) => {
            let operands: Vec<String> =
                case.inputs.iter().map(|(_, bits)| format!("{:#x}", bits[at])).collect();
            Err(format!(
                "element {at} of {operands:?} is {:#x} on the GPU, {:#x} on the simulator\n{}",
                computed[at],
                simulated[at],
                cuda::source(&case.kernel)
            )
            .into())
        }
    }
}

fn is_nan(elem: Elem, bits: u64) -> bool {
    match elem {
        Elem::F64 => f64::from_bits(bits).is_nan(),
        Elem::F32 => f32::from_bits(bits as u32).is_nan(),
        _ => false,
    }
}

/// Runs the case on the GPU and returns the output bits. The runtime launches only kernels of
/// specs, so this function calls the driver.
#[allow(unsafe_code, reason = "a kernel built by hand is launched by the driver's call")]
fn launch(case: &Case, device: &Device) -> Result<Vec<u64>, Failed> {
    let (context, stream) = device.cudarc().ok_or("a GPU has a context")?;
    let arch = device.arch().ok_or("a GPU has an architecture")?;
    let name = &case.kernel.name;
    let source = cuda::source(&case.kernel);
    let compiled = compile::compile(name, &source, arch, &Options::default())?;
    let function = context.load_module(Ptx::from_binary(compiled.cubin))?.load_function(name)?;
    let bytes = |elem: Elem, bits: &[u64]| -> Vec<u8> {
        let size = elem.size() as usize;
        bits.iter().flat_map(|b| b.to_le_bytes().into_iter().take(size)).collect()
    };
    let mut inputs = Vec::new();
    for (elem, bits) in &case.inputs {
        inputs.push(stream.clone_htod(&bytes(*elem, bits))?);
    }
    let size = case.output.size() as usize;
    let mut output: CudaSlice<u8> = stream.clone_htod(&vec![0xee; case.len() * size])?;
    let n = case.len() as i32;
    let mut builder = stream.launch_builder(&function);
    for input in &inputs {
        builder.arg(input);
    }
    builder.arg(&mut output).arg(&n);
    let (x, y) = case.kernel.geometry.block;
    let blocks = if case.kernel.shared_bytes() > 0 { 1 } else { case.blocks() };
    let config =
        LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (x, y, 1), shared_mem_bytes: 0 };
    // SAFETY: the arguments are the inputs, the output and the number of elements of the output.
    // The simulator has run the kernel without a fault on arrays of exactly these lengths.
    unsafe { builder.launch(config) }?;
    let read = stream.clone_dtoh(&output)?;
    let word = |chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    };
    Ok(read.chunks(size).map(word).collect())
}
