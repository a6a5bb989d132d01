//! Machine code without NVRTC: from archives and from the disk cache.

use super::*;
use gemm_build::{Contents, SgemmCalls};
use gemm_runtime::half::f16;
use gemm_runtime::spec::{Accuracy, Arith, GemmLayout};
use gemm_runtime::{
    Archive, Epilogue, MN, Map, MatrixRef, N, ReduceTable, SgemmTable, epilogue, map_kernel,
    reduce_kernel, reduce_table, sgemm, sgemm_kernel, sgemm_table,
};
use std::fs;
use std::path::PathBuf;

/// Environment variable with the folder of the archive.
const DIR: &str = "GEMM_TEST_ARCHIVE_DIR";

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 64, float4, items: 4, launch: passes);
const ARGMAX: ReduceKernel<f16, u32> = reduce_kernel!(op: argmax, type: f16);
const GEMM: SgemmKernel = sgemm_kernel!(tile: 32x32x8, thread: 4x4, pitched);
const WGMMA: SgemmKernel = sgemm_kernel!(tile: 64x64x32, arith: bf16x6, mma: wgmma);
const SUMS: ReduceTable = reduce_table! {
    len <= 64 && outer >= 1024 => over: rows, group: 4;
    else => over: rows, items: 4
};
const GEMMS: SgemmTable = sgemm_table! {
    m <= 8 && !tt => tile: 8x8x8, thread: 1x1;
    aligned => tile: 64x64x16, thread: 8x8, float4, transpose, pad_a: 4, pad_b: 4;
    else => tile: 16x16x8, thread: 2x2
};
const SWISH: Map<(MN, N), MN<f16>> = map_kernel!(|x[m, n], by[n]| -> f16 x * sigmoid(by * x));
const LAYER: Epilogue<(N,)> = epilogue!(|acc, bias[n]| relu(acc + bias));

/// Large GEMM, for which the table chooses an emulation.
const LARGE: usize = 4096;

fn file() -> Result<PathBuf, Failed> {
    Ok(PathBuf::from(std::env::var_os(DIR).ok_or("no folder")?).join("kernels.gemm"))
}

/// Builds the archive with a fake of NVRTC, and then launches all of its kernels without NVRTC.
pub(super) fn without_nvrtc() -> Outcome {
    let dir = TempDir::new()?;
    let [folder, cache, empty] = ["", "cache", "empty"].map(|name| dir.path().join(name));
    fs::create_dir(&empty)?;
    let [folder, cache, empty] = [&folder, &cache, &empty].map(|path| path.to_string_lossy());
    let settings = [(DIR, &*folder), ("GEMM_CACHE_DIR", &*cache)];
    with_nvrtc_and("write archive", &settings)?;
    let without = [settings[0], settings[1], ("GEMM_NVRTC_PATH", &empty)];
    whole("warm cache", &without)?;
    // The archive suffices without the disk cache.
    whole("archive", &[settings[0], ("GEMM_CACHE_DIR", ""), ("GEMM_NVRTC_PATH", &empty)])?;
    whole("bad archive", &without)?;
    let rejects = ("FAKE_CUDA_MODULE", "200");
    let no_cache = ("GEMM_CACHE_DIR", "");
    whole("rejected archive", &[without[0], no_cache, without[2], rejects])?;
    let once = ("FAKE_CUDA_MODULES", "1");
    whole("second archive", &[without[0], no_cache, without[2], rejects, once])?;
    for status in ["200", "209"] {
        let rejects = ("FAKE_CUDA_MODULE", status);
        with_nvrtc_and("compiled instead", &[without[0], no_cache, rejects, once])?;
    }
    let no_memory = ("FAKE_CUDA_MODULE", "2");
    with_nvrtc_and("failed load", &[without[0], no_cache, no_memory, once])
}

pub(super) fn write_archive() -> Outcome {
    let this = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/archive.rs");
    let layer = LAYER.expression().clone();
    let mut contents = Contents::new()
        .macros_in(this)?
        .sgemm(SgemmCalls::all().layouts(&[GemmLayout::Nt]).epilogue(layer))
        .sgemm(SgemmCalls::for_shapes(132, [(LARGE, LARGE, LARGE)]).accuracy(Accuracy::Bound))
        .with_splits();
    for n in 0..3 {
        contents = contents.reduce_kernel(named(n)?.spec_line())?;
    }
    let built = gemm_build::build(&["sm_90"], &contents)?;
    ensure(built.notes.is_empty(), || format!("{:?}", built.notes))?;
    fs::write(file()?, built.bytes)?;

    // For the test of the disk cache.
    let device = Device::cuda(0)?;
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    let report = launch(&device, &x, &mut to, 7)?;
    ensure(report.compiled().is_some(), || "not compiled".to_owned())
}

fn archive() -> Result<Archive, Failed> {
    Ok(Archive::new("kernels", fs::read(file()?)?.leak()))
}

fn has_no_nvrtc() -> Outcome {
    let maps = fs::read_to_string("/proc/self/maps")?;
    ensure(!maps.contains("nvrtc"), || "the process has loaded NVRTC".to_owned())
}

/// A kernel of the disk cache needs neither NVRTC nor an archive.
pub(super) fn warm_cache() -> Outcome {
    let device = Device::cuda(0)?;
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    for _ in 0..2 {
        let report = launch(&device, &x, &mut to, 7)?;
        let from = (report.compiled(), report.loaded_from_archive());
        ensure(from == (None, None), || format!("{from:?}"))?;
        has_no_nvrtc()?;
        device.add_archive(archive()?)?;
    }
    device.keep_at_most(0);
    let report = launch(&device, &x, &mut to, 7)?;
    ensure(report.loaded_from_disk().is_some(), || "not from the cache".to_owned())?;
    let report = launch(&device, &x, &mut to, 2)?;
    let from = (report.loaded_from_disk(), report.loaded_from_archive().is_some());
    ensure(from == (None, true), || format!("{from:?}"))
}

pub(super) fn archived() -> Outcome {
    let device = Device::cuda(0)?;
    device.add_archive(Archive::new(
        "empty",
        gemm_build::build(&["sm_80"], &Contents::new())?.bytes.leak(),
    ))?;
    device.add_archive(archive()?)?;
    // A device of another stream has the same archives.
    for device in [device.on_new_stream()?, device] {
        macros(&device)?;
        calls(&device)?;
        let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
        for n in 0..3 {
            let report = launch(&device, &x, &mut to, n)?;
            let from = (report.compiled(), report.loaded_from_disk());
            ensure(from == (None, None), || format!("{from:?}"))?;
            ensure(report.loaded_from_archive().is_some(), || "not from the archive".to_owned())?;
        }
        missing(&device, &x, &mut to)?;
    }
    has_no_nvrtc()
}

/// Loads all variants of each macro's kernels.
fn macros(device: &Device) -> Outcome {
    SUM.warm(device)?;
    ARGMAX.warm(device)?;
    GEMM.warm(device)?;
    WGMMA.warm(device)?;
    SWISH.warm(device)?;
    SUMS.warm(device, [(1024, 64, 1), (1, 100, 1)])?;
    let shapes = [(8, 8, 8), (64, 64, 64), (63, 63, 63)].map(gemm_runtime::SgemmShape::from);
    let layouts = GemmLayout::ALL.iter();
    let layouts = layouts.flat_map(|layout| shapes.map(|shape| shape.layout(*layout)));
    for shape in layouts {
        for padded in [false, true] {
            GEMMS.warm(device, [shape.padded(padded)])?;
        }
    }
    Ok(())
}

/// Launches calls of `sgemm` with random shapes, and one with prepared splits.
fn calls(device: &Device) -> Outcome {
    let mut random = fastrand::Rng::with_seed(39);
    for _ in 0..40 {
        let mut extent = || 2 << random.u32(0..10) | usize::from(random.bool());
        let (m, n, k) = (extent(), extent(), extent());
        let (x, w) = (device.alloc_matrix(m, k)?, device.alloc_matrix(n, k)?);
        let (bias, mut y) = (device.alloc(n)?, device.alloc_matrix(m, n)?);
        let w = w.t();
        let call = sgemm(&x, &w, &mut y).epilogue(LAYER).operands(&bias);
        let report = call.run(device).map_err(|error| format!("{m}x{n}x{k}: {error}"))?;
        let from = (report.compiled(), report.loaded_from_disk());
        ensure(from == (None, None), || format!("{m}x{n}x{k}: {from:?}"))?;
    }
    let (x, w) = (device.alloc_matrix(LARGE, LARGE)?, device.alloc(LARGE * LARGE)?);
    let mut y = device.alloc_matrix(LARGE, LARGE)?;
    let w = MatrixRef::new(&w, LARGE, LARGE)?;
    let call = sgemm(&x, &w, &mut y).accuracy(Accuracy::Bound);
    let arith = call.spec(device)?.arith;
    ensure(arith != Arith::F32, || format!("`{arith}` splits nothing"))?;
    call.warm(device)?;
    let split = device.prepare(arith, &w)?;
    Ok(sgemm(&x, &split, &mut y).accuracy(Accuracy::Bound).warm(device)?)
}

/// The error for a missing kernel names it, the architecture, the archives and the remedy.
fn missing(device: &Device, x: &Buffer, to: &mut Buffer) -> Outcome {
    let kernel = named(9)?;
    let error = kernel.launch(device, x, to).map(drop);
    let Err(error @ Error::NotArchived { .. }) = error else {
        return Err(format!("{error:?}").into());
    };
    let message = error.to_string();
    let archives = "archives of the device: `empty` (empty), `kernels` (kernels: ";
    for part in [
        "`reduce_k9` of the spec `name: k9, block: 32` has no machine code for sm_90",
        archives,
        ", for sm_90, sm_90a)",
        "Add the spec and sm_90 to the `gemm_build::embed` call",
        "NVRTC, the CUDA compiler library, was not found",
    ] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    Ok(())
}

/// A damaged entry is an error of the launches that need it, also if the disk cache has the kernel.
pub(super) fn bad_archive() -> Outcome {
    let mut bytes = fs::read(file()?)?;
    let device = Device::cuda(0)?;
    for len in [0, 8, 100, bytes.len() - 1] {
        let error = device.add_archive(Archive::new("cut off", bytes[..len].to_vec().leak()));
        let is_named =
            matches!(&error, Err(Error::Archive { archive, .. }) if archive == "cut off");
        ensure(is_named, || format!("{len} bytes: {error:?}"))?;
    }
    // The code of the fake is at the end of each entry.
    let text = b"reduce_kernel!(name: k2, block: 32)";
    let at = bytes.windows(text.len()).position(|part| part == text).ok_or("no entry")?;
    bytes[at + text.len()] ^= 1;
    device.add_archive(Archive::new("damaged", bytes.leak()))?;
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    launch(&device, &x, &mut to, 1)?;
    let error = named(2)?.launch(&device, &x, &mut to).map(drop);
    let Err(error @ Error::Archive { .. }) = error else {
        return Err(format!("{error:?}").into());
    };
    let part = "the archive `damaged` cannot be used: its machine code of a kernel for sm_90";
    ensure(error.to_string().contains(part), || error.to_string())
}

/// The error of a driver that rejects archived code names the archive and the compiler.
pub(super) fn rejected_archive() -> Outcome {
    let device = Device::cuda(0)?;
    device.add_archive(archive()?)?;
    let error = SUM.warm(&device).map(drop);
    let Err(error @ Error::Ahead { .. }) = error else { return Err(format!("{error:?}").into()) };
    let message = error.to_string();
    for part in ["from the archive `kernels`", "NVRTC 13.0", "of CUDA 12.0", "status 200"] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    Ok(())
}

/// A program may have an archive for old drivers beside one for new drivers.
pub(super) fn second_archive() -> Outcome {
    let device = Device::cuda(0)?;
    device.add_archive(archive()?)?;
    device.add_archive(Archive::new("second", fs::read(file()?)?.leak()))?;
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    let report = launch(&device, &x, &mut to, 1)?;
    let from = (report.compiled(), report.loaded_from_archive().is_some());
    ensure(from == (None, true), || format!("{from:?}"))
}

/// Where NVRTC is found, it compiles a kernel whose archived code the driver rejects.
pub(super) fn compiled_instead() -> Outcome {
    let device = Device::cuda(0)?;
    device.add_archive(archive()?)?;
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    let report = launch(&device, &x, &mut to, 1)?;
    let from = (report.compiled().is_some(), report.loaded_from_archive());
    ensure(from == (true, None), || format!("{from:?}"))?;
    let report = launch(&device, &x, &mut to, 2)?;
    ensure(report.loaded_from_archive().is_some(), || "not from the archive".to_owned())
}

/// Other failures of the driver are errors, because other code would not help.
pub(super) fn failed_load() -> Outcome {
    let device = Device::cuda(0)?;
    device.add_archive(archive()?)?;
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    let error = named(1)?.launch(&device, &x, &mut to).map(drop);
    ensure(matches!(error, Err(Error::Driver { status: 2, .. })), || format!("{error:?}"))
}
