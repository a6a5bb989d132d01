//! First launches in separate processes, which use the disk cache instead of the compiler. The
//! example `launch_overhead` measures their cost.

use super::{Outcome, ensure};
use gemm_dsl::artifact::Artifact;
use gemm_runtime::__private::KernelSlot;
use gemm_runtime::internal::{DeviceBackend, Replacement};
use gemm_runtime::{
    Device, Error, LaunchReport, MatrixMut, MatrixRef, ReduceKernel, ReduceSpec, SgemmKernel,
    SgemmShape, sgemm, sgemm_kernel, sgemm_table, spec::GemmLayout, warm,
};
use std::fs::{self, File};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

/// Environment variable that marks a process which launches one kernel.
const CHILD: &str = "GEMM_TEST_GPU_CHILD";

/// Runs the part of the child process, if this is one.
pub(super) fn child() -> Option<ExitCode> {
    std::env::var_os(CHILD)?;
    let launch = || -> Result<f32, Error> {
        let (sum, gpu) = (<ReduceKernel>::new("shuffle".parse::<ReduceSpec>()?)?, Device::cuda(0)?);
        let (input, mut output) = (gpu.upload(&[1.0; 100])?, gpu.alloc(1)?);
        for what in ["first", "second"] {
            let launched = sum.launch(&gpu, &input, &mut output)?;
            let took = [launched.compiled(), launched.loaded_from_disk()];
            println!("{what}: {:?}", took.map(|took| took.is_some_and(|took| !took.is_zero())));
        }
        println!("NVRTC: {}", has_nvrtc());
        Ok(gpu.download(&output)?[0])
    };
    Some(match launch() {
        Ok(100.0) => ExitCode::SUCCESS,
        other => {
            eprintln!("{other:?}");
            ExitCode::FAILURE
        }
    })
}

/// Returns true if the process has loaded NVRTC.
fn has_nvrtc() -> bool {
    fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("nvrtc"))
}

pub(super) fn warm_start() -> Outcome {
    let cache = tempfile::tempdir()?;
    let launch = |first: [bool; 2]| -> Outcome {
        let child = Command::new(std::env::current_exe()?)
            .env(CHILD, "1")
            .env("GEMM_CACHE_DIR", cache.path())
            .output()?;
        ensure(child.status.success(), || format!("{child:?}"))?;
        let told = String::from_utf8_lossy(&child.stdout).into_owned();
        let [compiles, _] = first;
        let expected = format!("first: {first:?}\nsecond: [false, false]\nNVRTC: {compiles}\n");
        ensure(told == expected, || format!("compiled and loaded: {told}, not {expected}"))
    };
    let (compiles, loads) = ([true, false], [false, true]);
    launch(compiles)?;
    let entries: Vec<_> = cache.path().read_dir()?.flatten().map(|e| e.path()).collect();
    let [entry] = &entries[..] else { return Err(format!("{entries:?}").into()) };
    let compiled = fs::read(entry)?;

    // A compiled kernel is written to disk, so an entry with an old time was read from disk. The
    // time is too recent for a hit to renew it.
    let old = SystemTime::now() - Duration::from_secs(60);
    let modified = || entry.metadata()?.modified();
    let age = || -> std::io::Result<SystemTime> {
        File::options().write(true).open(entry)?.set_modified(old)?;
        modified() // as the file system stores it
    };
    let old = age()?;
    launch(loads)?;
    ensure(modified()? == old, || "a whole entry was compiled anew".to_owned())?;

    fs::write(entry, &compiled[..compiled.len() / 2])?;
    age()?;
    launch(compiles)?;
    ensure(modified()? != old, || "a damaged entry was not replaced".to_owned())?;
    ensure(fs::read(entry)? == compiled, || "the new entry is another one".to_owned())
}

/// A launch of a warmed kernel compiles and loads nothing, whether its arrays are 16-byte aligned
/// or not.
pub(super) fn ahead() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (side, shape) = (256, SgemmShape::from((256, 256, 256)));
    warm(&gpu, [shape, shape, shape.layout(GemmLayout::Nt), shape.batch(2)])?;
    let (x, mut room) = (gpu.upload(&vec![1.0; 2 * side * side + 1])?, gpu.alloc(2 * side * side)?);
    let made = |launched: LaunchReport, what: &str| {
        let took = (launched.compiled(), launched.loaded_from_disk());
        ensure(took == (None, None), || format!("{what} took {took:?}"))
    };
    for start in [0, 1] {
        let x = x.slice(start..)?;
        let a = MatrixRef::new(&x, side, side)?;
        let mut c = MatrixMut::new(&mut room, side, side)?;
        made(sgemm(&a, &a, &mut c).run(&gpu)?, "a product")?;
        made(sgemm(&a, &a.t(), &mut c).run(&gpu)?, "a product with a transpose")?;
        let a = MatrixRef::batch(&x, 2, side, side)?;
        let mut c = MatrixMut::batch(&mut room, 2, side, side)?;
        made(sgemm(&a, &a, &mut c).run(&gpu)?, "a batch")?;
    }
    ensure(gpu.download(&room)?.iter().all(|sum| *sum == 256.0), || "wrong sums".to_owned())?;

    let table = sgemm_table! { m <= 8 => tile: 8x8x8; else => tile: 16x16x8, thread: 2x2 };
    table.warm(&gpu, [(8, 8, 8), (9, 9, 9)])?;
    let (a, mut c) = (MatrixRef::new(&x, 9, 9)?, MatrixMut::new(&mut room, 9, 9)?);
    made(table.call(&gpu).launch(&a, &a, &mut c)?, "a table's row")
}

/// The replacement of a CUDA source is launched under its own name, and only on the device on which
/// it was set.
#[allow(unsafe_code, reason = "the replacement differs from the text by a sign and a name")]
pub(super) fn replaced() -> Outcome {
    let (gpu, other) = (Device::cuda(0)?, Device::cuda(0)?);
    let kernel = SgemmKernel::new("block: 16x16".parse()?)?;
    let source = kernel.source().to_owned();
    let negative = source.replace("= acc;", "= -acc;").replace("sgemm_naive_16x16(", "negative(");
    ensure(!negative.contains("sgemm_naive"), || negative.clone())?;
    let DeviceBackend::Gpu(backend) = gpu.backend() else { return Err("not a GPU".into()) };
    let replacement = Replacement { kernel: "negative".to_owned(), source: negative };
    // SAFETY: parameters, accesses and block are those of the original.
    unsafe { backend.replace_source(source, replacement) };
    let got = [&gpu, &other].map(|device| kernel.run(device, &[2.0], &[3.0], (1, 1, 1)));
    let [replaced, own] = got;
    let got = (replaced?, own?);
    ensure(got == (vec![-6.0], vec![6.0]), || format!("{got:?}"))
}

/// A launch of a macro's kernel compiles the text of the constant and does not read the spec: with
/// another text and a line that is not a spec, it launches the other text.
pub(super) fn constant() -> Outcome {
    const GEMM: SgemmKernel = sgemm_kernel!(block: 16x16);
    let text = GEMM.source().replace("= acc;", "= -acc;");
    ensure(text != GEMM.source(), || text.clone())?;
    let sources = [text.into()].into_iter().collect();
    let artifact = Artifact { line: "no spec".into(), sources, ..GEMM.artifact().clone() };
    let kernel = SgemmKernel::__from_macro(Box::leak(Box::new(artifact)), || {
        static SLOT: KernelSlot = KernelSlot::new();
        &SLOT
    });
    let gpu = Device::cuda(0)?;
    let got = kernel.run(&gpu, &[2.0], &[3.0], (1, 1, 1))?;
    ensure(got == [-6.0], || format!("{got:?}"))
}
