//! Kernels of warpgroups give the bits on a GPU that they give on the simulator.

use crate::trial;
use gemm_dsl::cuda;
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::contract::{Array, Parameter, Place, Stretch};
use gemm_dsl::tensor_core::Format;
use gemm_runtime::compile::{self, Arch, Options};
use gemm_runtime::cudarc::driver::sys::CUfunction_attribute as Attribute;
use gemm_runtime::cudarc::driver::{DevicePtr, LaunchConfig, PushKernelArg};
use gemm_runtime::cudarc::nvrtc::Ptx;
use gemm_runtime::{Device, tensor_map};
use gemm_tests::tensor_core::Kind;
use gemm_tests::warp_specialised::{Fill, Product};
use libtest_mimic::{Failed, Trial};

/// Extents that tiles do not fill, and such that they do.
const EXTENTS: [[usize; 3]; 3] = [[150, 104, 296], [256, 256, 1024], [64, 24, 8]];

pub fn trials() -> Vec<Trial> {
    let shapes = [(2, 1, 64), (3, 2, 128), (4, 2, 24), (3, 1, 256)];
    let products = Format::ALL.into_iter().flat_map(|format| {
        shapes.map(|(stages, consumers, columns)| {
            let product = Product { format, stages, consumers, columns, ..Product::default() };
            let name = format!("{}_{consumers}x{columns}_{stages}", format.name());
            (name, product, EXTENTS.to_vec())
        })
    });
    let stored = Format::ALL.map(|format| {
        let product = Product { format, fill: Fill::Stores, ..Product::default() };
        (format!("{}_stores", format.name()), product, vec![[128, 64, 512]])
    });
    let products = products.chain(stored);
    let trials = products.map(|(name, product, extents)| {
        trial(format!("warp_specialised::{name}"), move |device| {
            extents.iter().try_for_each(|extents| same_as_simulated(product, *extents, device))
        })
    });
    trials.collect()
}

/// The elements of a matrix in the memory of a GPU, as bytes.
fn bytes(words: &[u32], size: usize) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(size)).collect()
}

#[allow(unsafe_code, reason = "a kernel built by hand is launched by the driver's call")]
fn same_as_simulated(product: Product, extents: [usize; 3], device: &Device) -> Result<(), Failed> {
    if device.arch().map(Arch::number) != Some(90) {
        return Err("the instructions are those of sm_90".into());
    }
    let (context, stream) = device.cudarc().ok_or("a GPU has a context")?;
    let kernel = product.kernel()?;
    let (name, source, contract) = (&kernel.name, cuda::source(&kernel), kernel.contract());
    let arch = Arch::sm(90).specific();
    let compiled = compile::compile(name, &source, arch, &Options::default())?;
    let function = context.load_module(Ptx::from_binary(compiled.cubin))?.load_function(name)?;
    let dynamic = contract.dynamic_shared_bytes() as u32;
    if dynamic > 0 {
        let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function.set_attribute(limit, dynamic as i32)?;
    }
    let [m, n, k] = extents;
    let size = product.format.bits() as usize / 8;
    for kind in Kind::ALL {
        let operands = product.operands(kind, extents, 7);
        let (simulated, _) = Product::simulate(&kernel, &operands)?;
        let [a, b] = [&operands.a, &operands.b].map(|words| bytes(words, size));
        let (a, b) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
        let mut c = stream.clone_htod(&vec![0x5eed_5eed_u32; m * n])?;
        let [at_a, at_b] = [&a, &b].map(|array| array.device_ptr(stream).0);
        let lens = [m * k, n * k, m * n].map(|len| len as u64);
        let arrays: Vec<Array<'_>> = contract
            .arrays()
            .zip([at_a, at_b, 0])
            .zip(lens)
            .map(|((array, address), len)| Array {
                name: &array.name,
                elem: if array.elem == Elem::Tf32 { Elem::F32 } else { array.elem },
                place: Place::One(Stretch { address, len }),
                axes: None,
            })
            .collect();
        let call = contract.bind_in_order(&arrays, &[m, n, k].map(|extent| extent as u64))?;
        let mut maps = Vec::new();
        for mapped in &call.maps {
            let Some(array) = contract.arrays().nth(mapped.position) else { continue };
            let Some(map) = &array.map else { continue };
            let address = [at_a, at_b][mapped.position];
            maps.push(tensor_map::encode(address, array.elem, map, mapped)?);
        }
        let config = LaunchConfig {
            grid_dim: (call.grid[0], call.grid[1], call.grid[2]),
            block_dim: (contract.block().0, contract.block().1, 1),
            shared_mem_bytes: dynamic,
        };
        let [m, n, k] = extents.map(|extent| extent as i32);
        let mut builder = stream.launch_builder(&function);
        match &maps[..] {
            [of_a, of_b] => builder.arg(of_a).arg(of_b),
            _ => builder.arg(&a).arg(&b),
        };
        builder.arg(&mut c).arg(&m).arg(&n).arg(&k);
        let scalars = contract.params().iter().filter(|p| matches!(p, Parameter::Scalar { .. }));
        if scalars.count() != 3 {
            return Err("the kernel takes three extents".into());
        }
        // SAFETY: the kernel takes two arrays or their tensor maps, a third array and three extents, which its contract has
        // been asked about, and the simulator has run it on as long ones without a fault.
        unsafe { builder.launch(config) }?;
        let found = stream.clone_dtoh(&c)?;
        if let Some(at) = (0..found.len()).find(|at| found[*at] != simulated[*at]) {
            let (found, simulated) = (found[at], simulated[at]);
            return Err(format!(
                "{product:?} of {extents:?}, {kind:?}: sum {at} is {found:#x} on the GPU, {simulated:#x} on the \
                 simulator\n{source}"
            )
            .into());
        }
    }
    Ok(())
}
