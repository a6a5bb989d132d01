//! The matrix instructions of `sm_90` have the bits of `gemm_sim::tensor_core`, for ten million
//! sums of each format.
//!
//! If `GEMM_TENSOR_VECTORS` names a folder, the first tiles of each kind are written to it, with
//! one file per format. The first tile whose result depends on the exact value of the least
//! exponent is added. Concatenated, the files are `tests/data/tensor_core/sm_90.txt`.

use crate::trial;
use gemm_dsl::cuda;
use gemm_dsl::target::Format;
use gemm_fixtures::tensor_core;
use gemm_fixtures::tensor_core::{Kind, Tile, Vector};
use gemm_oracle::random::Random;
use gemm_runtime::Device;
use gemm_runtime::compile::{self, Arch, Options};
use gemm_runtime::cudarc::driver::{LaunchConfig, PushKernelArg};
use gemm_runtime::cudarc::nvrtc::Ptx;
use gemm_sim::tensor_core::AccumulationRules;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;

/// Rows and columns of a tile.
const SIDES: [usize; 2] = [64, 8];

/// Tiles of a launch.
const LAUNCH: usize = 1024;

/// Launches of a kind: 4096 tiles, which are two million sums.
const LAUNCHES: usize = 4;

/// Tiles to write for each kind.
const WRITTEN: usize = 2;

pub fn trials() -> Vec<Trial> {
    let of = |format: Format| {
        trial(format!("tensor_core::{}", format.name()), move |device| check(format, device))
    };
    let built = |format: Format| {
        let name = format!("tensor_core::kernel_{}", format.name());
        trial(name, move |device| same_as_simulated(format, device))
    };
    Format::FROM_F32.into_iter().map(of).chain(Format::FROM_F32.into_iter().map(built)).collect()
}

/// Checks that a hand-written IR kernel computes the simulator's bits on the GPU.
#[allow(unsafe_code, reason = "a kernel built by hand is launched by the driver's call")]
fn same_as_simulated(format: Format, device: &Device) -> Result<(), Failed> {
    let (context, stream) = device.cudarc().ok_or("a GPU has a context")?;
    let arch = device.arch().ok_or("a GPU has an architecture")?;
    for kind in Kind::ALL {
        let mut random = Random::new(format as u64 + 10 * kind as u64);
        let mut tile = || kind.tile(format, tensor_core::extents(format), &mut random);
        let tiles: Vec<Tile> = (0..200).map(|_| tile()).collect();
        let kernel = tensor_core::kernel(format, tiles.len(), kind == Kind::Wide);
        let (simulated, _) = tensor_core::simulate(&kernel, &tiles, AccumulationRules::SM_90)?;
        let (name, source) = (&kernel.name, cuda::source(&kernel));
        let compiled = compile::compile(name, &source, arch, &Options::default())?;
        let function =
            context.load_module(Ptx::from_binary(compiled.cubin))?.load_function(name)?;
        let [a, b, c] = tensor_core::inputs(&tiles);
        let mut d = stream.clone_htod(&vec![0x5eed_5eed_u32; c.len()])?;
        let [a, b, c] = [stream.clone_htod(&a)?, stream.clone_htod(&b)?, stream.clone_htod(&c)?];
        let config = LaunchConfig {
            grid_dim: (tiles.len() as u32, 1, 1),
            block_dim: (32, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut builder = stream.launch_builder(&function);
        builder.arg(&a).arg(&b).arg(&c).arg(&mut d);
        // SAFETY: the arguments are the four arrays of the kernel. The simulator has run it without
        // a fault on arrays of the same lengths.
        unsafe { builder.launch(config) }?;
        let found = stream.clone_dtoh(&d)?;
        if let Some(at) = (0..found.len()).find(|at| found[*at] != simulated[*at]) {
            let (found, simulated) = (found[at], simulated[at]);
            return Err(format!(
                "{kind:?}: sum {at} is {found:#x} on the GPU, {simulated:#x} on the \
                 simulator\n{source}"
            )
            .into());
        }
    }
    Ok(())
}

fn check(format: Format, device: &Device) -> Result<(), Failed> {
    if device.arch().map(Arch::number) != Some(90) {
        return Err("the instructions are those of sm_90".into());
    }
    let folder = std::env::var_os("GEMM_TENSOR_VECTORS");
    let (mut vectors, mut has_least) = (String::new(), false);
    let mut sums = 0;
    for kind in Kind::ALL {
        let mut random = Random::new(kind as u64 * 1000 + format.bits() as u64 + format as u64);
        for launch in 0..LAUNCHES {
            let [m, n] = SIDES;
            let tile = |_| kind.tile(format, [m, n, format.terms()], &mut random);
            let tiles: Vec<Tile> = (0..LAUNCH).map(tile).collect();
            let found = multiply(format, &tiles, device)?;
            for (number, tile) in tiles.iter().enumerate() {
                let expected = tile.multiplied(AccumulationRules::SM_90);
                for (by, found) in ["mma.sync", "wgmma"].iter().zip(&found) {
                    let found = &found[number * m * n..][..m * n];
                    if let Some(at) = (0..m * n).find(|at| found[*at] != expected[*at]) {
                        let (row, col, k) = (at / n, at % n, format.terms());
                        return Err(format!(
                            "{by} of {kind:?}: {:#x}, and not {:#x}, of {:x?} times {:x?} and \
                             {:#x}",
                            found[at],
                            expected[at],
                            &tile.a[row * k..][..k],
                            &tile.b[col * k..][..k],
                            tile.c[at]
                        )
                        .into());
                    }
                    sums += m * n;
                }
                if folder.is_none() {
                    continue;
                }
                let tells = !has_least && tells_least(tile, &expected);
                has_least |= tells;
                if tells || (launch == 0 && number < WRITTEN) {
                    let gpu = device.name().replace(' ', "_");
                    writeln!(vectors, "{}", Vector { gpu, tile: tile.clone(), d: expected })?;
                }
            }
        }
    }
    if sums < 2 * 10_000_000 {
        return Err(format!("only {sums} sums").into());
    }
    if let Some(folder) = folder {
        let path = std::path::Path::new(&folder).join(format!("{}.txt", format.name()));
        std::fs::write(path, vectors)?;
    }
    Ok(())
}

/// True if the sums differ from those with a least exponent that is higher or lower by one.
fn tells_least(tile: &Tile, expected: &[u32]) -> bool {
    let AccumulationRules { least, .. } = AccumulationRules::SM_90;
    let others =
        [least - 1, least + 1].map(|least| AccumulationRules { least, ..AccumulationRules::SM_90 });
    others.iter().all(|rules| tile.multiplied(*rules) != *expected)
}

/// Results of `mma.sync` and of `wgmma` for some tiles.
#[allow(unsafe_code, reason = "a kernel written by hand is launched by the driver's call")]
fn multiply(format: Format, tiles: &[Tile], device: &Device) -> Result<[Vec<u32>; 2], Failed> {
    let (context, stream) = device.cudarc().ok_or("a GPU has a context")?;
    let source = include_str!("gpu.cu")
        .replace("FORMAT", format.name())
        .replace("TERMS", &format.terms().to_string())
        .replace("PER_WORD", &format.per_word().to_string())
        .replace("TRANSPOSE", if format == Format::Tf32 { "" } else { ", 0" });
    let arch = Arch::sm(90).specific();
    let compiled = compile::compile("multiply", &source, arch, &Options::default())?;
    let function =
        context.load_module(Ptx::from_binary(compiled.cubin))?.load_function("multiply")?;
    let words = |of: fn(&Tile) -> &Vec<u32>| tiles.iter().flat_map(of).copied().collect::<Vec<_>>();
    let a = stream.clone_htod(&words(|tile| &tile.a))?;
    let b = stream.clone_htod(&words(|tile| &tile.b))?;
    let c = stream.clone_htod(&words(|tile| &tile.c))?;
    let poison = vec![0x5eed_5eed_u32; c.len()];
    let (mut by_mma, mut by_wgmma) = (stream.clone_htod(&poison)?, stream.clone_htod(&poison)?);
    let config = LaunchConfig {
        grid_dim: (tiles.len() as u32, 1, 1),
        block_dim: (128, 1, 1),
        shared_mem_bytes: 0,
    };
    let mut builder = stream.launch_builder(&function);
    builder.arg(&a).arg(&b).arg(&c).arg(&mut by_mma).arg(&mut by_wgmma);
    // SAFETY: a block reads and writes one tile of each array, and the grid has one block per tile.
    unsafe { builder.launch(config) }?;
    Ok([stream.clone_dtoh(&by_mma)?, stream.clone_dtoh(&by_wgmma)?])
}
