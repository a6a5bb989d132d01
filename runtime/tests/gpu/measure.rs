//! Host times: a warm start from the disk cache, and the typed launch against the bare call.

use super::{Outcome, ensure, sum};
use gemm_runtime::compile::{self, Options};
use gemm_runtime::cudarc::driver::{DevicePtr, DevicePtrMut, LaunchConfig, PushKernelArg};
use gemm_runtime::cudarc::nvrtc::Ptx;
use gemm_runtime::{Device, Error};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Set in a process that launches one kernel and prints how long that took.
const CHILD: &str = "GEMM_TEST_GPU_CHILD";
const LAUNCHES: usize = 10_000;

/// Runs the measuring process's part, if this is one.
pub(super) fn child() -> Option<ExitCode> {
    std::env::var_os(CHILD)?;
    let first_launch = || -> Result<Duration, Error> {
        let gpu = Device::cuda(0)?;
        let kernel =
            gemm_runtime::ReduceKernel::new("shuffle".parse::<gemm_runtime::ReduceSpec>()?)?;
        let input = gpu.upload(&[1.0; 100])?;
        let mut output = gpu.alloc(1)?;
        let start = Instant::now();
        kernel.launch(&gpu, &input, &mut output)?;
        gpu.synchronize()?;
        Ok(start.elapsed())
    };
    Some(match first_launch() {
        Ok(time) => {
            println!("{}", time.as_micros());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

pub(super) fn warm_start() -> Outcome {
    let cache = tempfile::tempdir()?;
    let first_launch = || -> Result<u64, libtest_mimic::Failed> {
        let child = Command::new(std::env::current_exe()?)
            .env(CHILD, "1")
            .env("GEMM_CACHE_DIR", cache.path())
            .output()?;
        ensure(child.status.success(), || format!("{child:?}"))?;
        Ok(String::from_utf8(child.stdout)?.trim().parse()?)
    };
    let cold = first_launch()?;
    let entries: Vec<_> = cache.path().read_dir()?.flatten().map(|e| e.path()).collect();
    ensure(entries.len() == 1, || format!("{entries:?}"))?;
    let warm = first_launch()?;
    let mut damaged = std::fs::read(&entries[0])?;
    damaged.truncate(damaged.len() / 2);
    std::fs::write(&entries[0], damaged)?;
    let rebuilt = first_launch()?;
    eprintln!(
        "first launch: cold {cold} µs, from the disk cache {warm} µs, damaged entry {rebuilt} µs"
    );
    ensure(warm < cold, || format!("{warm} µs is not less than {cold} µs"))
}

pub(super) fn launch_cost() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (context, stream) = gpu.cudarc().ok_or("no GPU")?;
    let kernel = sum()?;
    let arch = gpu.arch().ok_or("no architecture")?;
    let compiled = compile::compile("bare", kernel.source(), arch, &Options::default())?;
    let function_name = function_name(kernel.source()).ok_or("no kernel in the source")?;
    let function =
        context.load_module(Ptx::from_binary(compiled.cubin))?.load_function(function_name)?;

    let input = gpu.upload(&[1.0; 100])?;
    let mut output = gpu.alloc(1)?;
    let typed =
        median(|| kernel.launch(&gpu, &input, &mut output).map(drop), || gpu.synchronize())?;

    let slice = stream.clone_htod(&[1.0_f32; 100])?;
    let mut value = stream.alloc_zeros::<f32>(1)?;
    let typed_slices =
        median(|| kernel.launch(&gpu, &slice, &mut value).map(drop), || gpu.synchronize())?;

    let (from, _) = slice.device_ptr(stream);
    let (to, _) = value.device_ptr_mut(stream);
    let length = 100_u64;
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    #[allow(unsafe_code, reason = "the bare driver call is what is compared with")]
    let bare = median(
        || {
            let mut launch = stream.launch_builder(&function);
            launch.arg(&from).arg(&to).arg(&length);
            // SAFETY: the kernel's parameters are in, out and n; both slices are live.
            unsafe { launch.launch(config) }.map(drop)
        },
        || stream.synchronize(),
    )?;
    eprintln!(
        "host time of a launch, median of {LAUNCHES}: typed {typed:?}, typed on slices \
         {typed_slices:?}, bare {bare:?}"
    );
    ensure(typed < bare + Duration::from_micros(5), || format!("{typed:?} against {bare:?}"))
}

/// The median time of a call; the stream is waited for now and then, so that it never fills up.
fn median<E>(
    mut call: impl FnMut() -> Result<(), E>,
    wait: impl Fn() -> Result<(), E>,
) -> Result<Duration, E> {
    let mut times = Vec::with_capacity(LAUNCHES);
    for i in 0..LAUNCHES {
        if i % 100 == 0 {
            wait()?;
        }
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    wait()?;
    times.sort_unstable();
    Ok(times[LAUNCHES / 2])
}

/// The word before the parameter list of the `extern "C"` function.
fn function_name(source: &str) -> Option<&str> {
    let (_, signature) = source.split_once("extern \"C\"")?;
    let (head, _) = signature.split_once("const float*")?;
    head.trim_end().strip_suffix('(')?.split_whitespace().last()
}
