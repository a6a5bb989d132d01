//! Kernels with warpgroups, clusters and TMA copies compute the simulator's bits on a GPU.

use crate::trial;
use gemm_dsl::cuda;
use gemm_dsl::ir::contract::{ArrayPlace, BoundArray, Region};
use gemm_dsl::ir::{Elem, VerifiedKernel};
use gemm_dsl::target::Format;
use gemm_fixtures::clusters::{Clustered, End, Fault};
use gemm_fixtures::splits;
use gemm_fixtures::splits::PLANES;
use gemm_fixtures::tensor_copies;
use gemm_fixtures::tensor_copies::Boxes;
use gemm_fixtures::tensor_core::Kind;
use gemm_fixtures::warp_specialised::{Fill, Product};
use gemm_oracle::random::Random;
use gemm_runtime::Device;
use gemm_runtime::compile::{self, Options};
use gemm_runtime::cudarc::driver::sys::CUfunction_attribute as Attribute;
use gemm_runtime::cudarc::driver::{CudaSlice, DevicePtr, LaunchConfig, PushKernelArg};
use gemm_runtime::cudarc::nvrtc::Ptx;
use gemm_runtime::internal::tensor_map;
use libtest_mimic::{Failed, Trial};

/// Extents with partial tiles and with whole tiles.
const EXTENTS: [[usize; 3]; 3] = [[150, 104, 296], [256, 256, 1024], [64, 24, 8]];

pub fn trials() -> Vec<Trial> {
    let shapes = [(2, 1, 64), (3, 2, 128), (4, 2, 24), (3, 1, 256)];
    let mut products = Vec::new();
    for format in Format::FROM_F32 {
        for (stages, consumers, columns) in shapes {
            let product = Product { format, stages, consumers, columns, ..Product::default() };
            products.push((format!("{consumers}x{columns}_{stages}"), product, EXTENTS.to_vec()));
        }
        let overlap = Product { format, overlap: true, ..Product::default() };
        products.push(("overlap".to_owned(), overlap, EXTENTS.to_vec()));
        let stored = Product { format, fill: Fill::Stores, ..Product::default() };
        products.push(("stores".to_owned(), stored, vec![[128, 64, 512]]));
    }
    let products = products.into_iter().map(|(name, product, extents)| {
        let name = format!("warp_specialised::{}_{name}", product.format.name());
        trial(name, move |device| {
            let kernel = product.kernel()?;
            extents.iter().try_for_each(|extents| multiplies(&product, &kernel, *extents, device))
        })
    });
    let clusters = Format::FROM_F32.into_iter().flat_map(|format| {
        let ends = [(2, End::Barrier), (2, End::Drain), (4, End::Barrier), (8, End::Barrier)];
        ends.map(|(cluster, end)| {
            let name = format!("clusters::{}_{cluster}_{end:?}", format.name()).to_lowercase();
            let product = Product { format, ..Product::default() };
            let of = Clustered { product, cluster, end, fault: Fault::None };
            trial(name, move |device| {
                let kernel = of.kernel()?;
                let extents = EXTENTS.into_iter().chain([[384, 1024, 2048]]);
                extents
                    .into_iter()
                    .try_for_each(|extents| multiplies(&of.product, &kernel, extents, device))
            })
        })
    });
    let boxes = tensor_copies::cases().into_iter().map(|case| {
        trial(format!("tensor_copies::{}", case.name()), move |device| copies(&case, device))
    });
    let splits = trial("warp_specialised::planes".to_owned(), sums_splits);
    products.chain(clusters).chain(boxes).chain([splits]).collect()
}

/// Low bytes of elements in memory order.
fn bytes(words: impl IntoIterator<Item = u64>, elem: Elem) -> Vec<u8> {
    let size = elem.size() as usize;
    words.into_iter().flat_map(|word| word.to_le_bytes().into_iter().take(size)).collect()
}

/// Runs a kernel on two inputs, given as bytes. Returns the last array of the kernel, which has
/// `len` bytes.
#[allow(unsafe_code, reason = "a kernel built by hand is launched by the driver's call")]
fn launched(
    kernel: &VerifiedKernel,
    inputs: [&[u8]; 2],
    output: usize,
    scalars: &[i32],
    device: &Device,
) -> Result<Vec<u8>, Failed> {
    let (context, stream) = device.cudarc().ok_or("a GPU has a context")?;
    let (name, contract) = (&kernel.name, kernel.contract());
    let arch = device.arch().ok_or("a GPU has an architecture")?;
    if arch.number() < contract.min_arch || contract.is_specific && arch.number() != 90 {
        return Err(format!("the instructions are those of sm_90, and the GPU is {arch}").into());
    }
    let arch = if contract.is_specific { arch.specific() } else { arch };
    let source = cuda::source(kernel);
    let compiled = compile::compile(name, &source, arch, &Options::default())?;
    let function = context.load_module(Ptx::from_binary(compiled.cubin))?.load_function(name)?;
    let dynamic = contract.dynamic_shared_bytes() as u32;
    if dynamic > 0 {
        let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function.set_attribute(limit, dynamic as i32)?;
    }
    let [a, b] = inputs;
    let arrays: [CudaSlice<u8>; 3] =
        [stream.clone_htod(a)?, stream.clone_htod(b)?, stream.clone_htod(&vec![0x5e; output])?];
    let addresses = [0, 1, 2].map(|n: usize| arrays[n].device_ptr(stream).0);
    let bound: Vec<BoundArray<'_>> = contract
        .arrays()
        .zip(&arrays)
        .zip(addresses)
        .map(|((array, held), address)| {
            let len = held.len() as u64 / u64::from(array.elem.size());
            let place = ArrayPlace::One(Region { address, len });
            BoundArray { name: &array.name, elem: array.elem, place, axes: None }
        })
        .collect();
    let given: Vec<u64> = scalars.iter().map(|scalar| *scalar as u64).collect();
    let call = contract.bind_in_order(&bound, &given)?;
    let mut maps = [None, None, None];
    for mapped in &call.maps {
        let array = contract.arrays().nth(mapped.position).ok_or("an array that is none")?;
        let map = array.map.as_ref().ok_or("a map that is none")?;
        let address = addresses[mapped.position];
        maps[mapped.position] = Some(tensor_map::encode(address, array.elem, map, mapped)?);
    }
    let config = LaunchConfig {
        grid_dim: (call.grid[0], call.grid[1], call.grid[2]),
        block_dim: (contract.block.0, contract.block.1, 1),
        shared_mem_bytes: dynamic,
    };
    let mut builder = stream.launch_builder(&function);
    for (address, map) in addresses.iter().zip(&maps) {
        match map {
            Some(map) => builder.arg(map),
            None => builder.arg(address),
        };
    }
    scalars.iter().for_each(|scalar| _ = builder.arg(scalar));
    // SAFETY: the arguments are three arrays, or tensor maps of some of them, and these numbers.
    // They satisfy the kernel's contract, and the simulator has run the kernel without a fault on
    // arrays of the same lengths.
    unsafe { builder.launch(config) }?;
    Ok(stream.clone_dtoh(&arrays[2])?)
}

/// Fails unless both have the same bytes.
fn same(what: &str, elem: Elem, found: &[u8], simulated: &[u8]) -> Result<(), Failed> {
    if found.len() != simulated.len() {
        return Err(format!("{what}: {} bytes, not {}", found.len(), simulated.len()).into());
    }
    let size = elem.size() as usize;
    let mut pairs = found.chunks(size).zip(simulated.chunks(size)).enumerate();
    match pairs.find(|(_, (found, simulated))| found != simulated) {
        None => Ok(()),
        Some((at, (found, simulated))) => Err(format!(
            "{what}: element {at} has the bytes {found:x?} on the GPU, {simulated:x?} on the \
             simulator"
        )
        .into()),
    }
}

fn words(words: &[u32]) -> impl Iterator<Item = u64> {
    words.iter().map(|word| u64::from(*word))
}

fn multiplies(
    product: &Product,
    kernel: &VerifiedKernel,
    extents: [usize; 3],
    device: &Device,
) -> Result<(), Failed> {
    let elem = product.elem();
    for kind in Kind::ALL {
        let operands = product.operands(kind, extents, 7);
        let (simulated, _) = Product::simulate(kernel, &operands)?;
        let simulated = bytes(words(&simulated), Elem::F32);
        let [a, b] = [&operands.a, &operands.b].map(|of| bytes(words(of), elem));
        let scalars = extents.map(|extent| extent as i32);
        let found = launched(kernel, [&a, &b], simulated.len(), &scalars, device)?;
        same(
            &format!("{} of {extents:?}, {product:?}, {kind:?}", kernel.name),
            Elem::F32,
            &found,
            &simulated,
        )?;
    }
    Ok(())
}

fn sums_splits(device: &Device) -> Result<(), Failed> {
    for [m, n, k] in [[200, 72, 168], [256, 128, 1024]] {
        let extents = [PLANES * m, PLANES * n, k];
        let operands = Kind::Near.tile(Format::Bf16, extents, &mut Random::new(3));
        let (simulated, _) = splits::simulate(&operands)?;
        let simulated = bytes(words(&simulated), Elem::F32);
        let [a, b] = [&operands.a, &operands.b].map(|of| bytes(words(of), Elem::Bf16));
        let scalars = [m, n, k].map(|extent| extent as i32);
        let kernel = splits::kernel();
        let found = launched(&kernel, [&a, &b], simulated.len(), &scalars, device)?;
        same(&format!("{m}x{n}x{k}"), Elem::F32, &found, &simulated)?;
    }
    Ok(())
}

fn copies(case: &Boxes, device: &Device) -> Result<(), Failed> {
    let (bits, places) = case.inputs(11);
    let (simulated, _) = case.simulate(&bits, &places)?;
    let simulated = bytes(simulated, case.elem);
    let from = bytes(bits, case.elem);
    let at = bytes(places.iter().map(|at| *at as u32 as u64), Elem::I32);
    let found = launched(&case.kernel(), [&from, &at], simulated.len(), &[], device)?;
    same(&case.name(), case.elem, &found, &simulated)
}
