//! Atomics, fences and named barriers on the GPU. After the hand-written kernels, memory has the
//! contents that were calculated by hand, as on the simulator.

use crate::trial;
use gemm_dsl::cuda;
use gemm_dsl::ir::Elem;
use gemm_fixtures::inter_block_sync;
use gemm_fixtures::inter_block_sync::{BLOCKS, CommunicatingKernel, LAUNCHES, THREADS};
use gemm_runtime::Device;
use gemm_runtime::compile::{self, Options};
use gemm_runtime::cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};
use gemm_runtime::cudarc::nvrtc::Ptx;
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    let kernels = inter_block_sync::kernels().into_iter();
    kernels.map(|s| trial(format!("inter_block_sync::{}", s.name), move |d| check(&s, d))).collect()
}

fn check(speaking: &CommunicatingKernel, device: &Device) -> Result<(), Failed> {
    if speaking.simulate()? != speaking.after {
        return Err("the simulator computed other contents".into());
    }
    for round in 0..20 {
        let found = launch(speaking, device)?;
        if found != speaking.after {
            return Err(format!(
                "round {round}: {found:x?}, not {:x?}\n{}",
                speaking.after,
                cuda::source(&speaking.kernel)
            )
            .into());
        }
    }
    Ok(())
}

/// Returns the bits of all buffers after the launches. The runtime launches only kernels of specs,
/// so this function calls the driver.
#[allow(unsafe_code, reason = "a kernel built by hand is launched by the driver's call")]
fn launch(speaking: &CommunicatingKernel, device: &Device) -> Result<Vec<Vec<u64>>, Failed> {
    let (context, stream) = device.cudarc().ok_or("a GPU has a context")?;
    let arch = device.arch().ok_or("a GPU has an architecture")?;
    let name = &speaking.kernel.name;
    let source = cuda::source(&speaking.kernel);
    let compiled = compile::compile(name, &source, arch, &Options::default())?;
    let function = context.load_module(Ptx::from_binary(compiled.cubin))?.load_function(name)?;
    let bytes = |elem: Elem, bits: &[u64]| -> Vec<u8> {
        let size = elem.size() as usize;
        bits.iter().flat_map(|b| b.to_le_bytes().into_iter().take(size)).collect()
    };
    let mut buffers: Vec<CudaSlice<u8>> = Vec::new();
    for (elem, bits) in &speaking.before {
        buffers.push(stream.clone_htod(&bytes(*elem, bits))?);
    }
    let config =
        LaunchConfig { grid_dim: (BLOCKS, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
    for _ in 0..LAUNCHES {
        let mut builder = stream.launch_builder(&function);
        buffers.iter_mut().for_each(|buffer| _ = builder.arg(buffer));
        // SAFETY: the arguments are these buffers. The simulator has run the kernel without a fault
        // on buffers of exactly these lengths.
        unsafe { builder.launch(config) }?;
    }
    let mut read = Vec::new();
    for (buffer, (elem, _)) in buffers.iter().zip(&speaking.before) {
        let word = |chunk: &[u8]| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(bytes)
        };
        let bytes = stream.clone_dtoh(buffer)?;
        read.push(bytes.chunks(elem.size() as usize).map(word).collect());
    }
    Ok(read)
}
