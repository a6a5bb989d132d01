//! Devices on a fake driver, without a GPU. The tests are ignored without a `rustc` to compile the
//! library.

// Source of the library, included only for the formatter.
#[cfg(any())]
mod fake;

mod archive;
mod autotune;
mod memory;
#[allow(dead_code, reason = "a fake computes nothing, so it cannot check launches")]
#[path = "../gpu/transfers.rs"]
mod transfers;

use gemm_runtime::cudarc::driver::CudaContext;
use gemm_runtime::internal::{elapsed_ms, gpus};
use gemm_runtime::{
    Buffer, Device, Error, LaunchReport, MatrixList, MatrixListMut, MatrixMut, ReduceKernel,
    SgemmKernel,
};
use libtest_mimic::{Arguments, Failed, Trial};
use memory::{
    all_transfers, failed_wait, foreign_memory, matrices_in_slices, pinned_memory, several_streams,
    transfers_in_a_capture,
};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use tempfile::TempDir;

type Outcome = Result<(), Failed>;

/// Environment variable that names the part of a test that runs in a process with a fake driver.
const CHILD: &str = "GEMM_TEST_DRIVER_CHILD";

/// Part of a test that runs in a process with a fake driver, with its name.
type Part = (&'static str, fn() -> Outcome);

const PARTS: &[Part] = &[
    ("stub", stub_is_no_driver),
    ("no GPU", no_gpu),
    ("time", times_between_events),
    ("failed time", failed_time),
    ("no time", no_time),
    ("code", unloaded_code),
    ("captured code", captured_code),
    ("per thread", per_thread_stream),
    ("other object", other_object),
    ("other context", other_context),
    ("transfers", all_transfers),
    ("transfers in a capture", transfers_in_a_capture),
    ("matrices in slices", matrices_in_slices),
    ("pinned memory", pinned_memory),
    ("streams", several_streams),
    ("failed wait", failed_wait),
    ("foreign memory", foreign_memory),
    ("write archive", archive::write_archive),
    ("warm cache", archive::warm_cache),
    ("archive", archive::archived),
    ("bad archive", archive::bad_archive),
    ("rejected archive", archive::rejected_archive),
    ("measure", autotune::measure),
    ("measured before", autotune::measured_before),
    ("no cache", autotune::no_cache),
    ("budget", autotune::budget),
    ("failures", autotune::failures),
    ("second archive", archive::second_archive),
    ("compiled instead", archive::compiled_instead),
    ("failed load", archive::failed_load),
];

fn main() -> ExitCode {
    if let Some(part) = std::env::var_os(CHILD) {
        return child(&part.to_string_lossy());
    }
    let missing = match rustc().arg("--version").output() {
        _ if cfg!(not(target_os = "linux")) => Some("the fake is a library of Linux".to_owned()),
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("rustc --version: {}", output.status)),
        Err(error) => Some(format!("rustc cannot be started: {error}")),
    };
    let trial = |name: &str, test: fn() -> Outcome| {
        let kind = missing.as_deref().unwrap_or_default();
        Trial::test(name, test).with_kind(kind).with_ignored_flag(missing.is_some())
    };
    let trials = vec![
        trial("a_stub_of_the_driver_is_no_driver", || whole("stub", &[("FAKE_CUDA_INIT", "34")])),
        trial("a_driver_without_a_gpu_is_reported", || whole("no GPU", &[("FAKE_CUDA_GPUS", "0")])),
        trial("old_drivers_have_times_between_events", || whole("time", &[])),
        trial("a_failed_time_is_an_error", || whole("failed time", &[("FAKE_CUDA_EVENTS", "600")])),
        trial("a_driver_without_times_is_named", || {
            static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
            run(&BYTES, &["--cfg=without_elapsed"], "no time", &[])
        }),
        trial("code_of_evicted_kernels_is_unloaded", || with_nvrtc("code")),
        trial("a_device_takes_the_stream_per_thread", || with_nvrtc("per thread")),
        trial("slices_of_another_object_for_the_context_are_ordered", || {
            with_nvrtc("other object")
        }),
        trial("slices_of_another_context_are_refused", || {
            whole("other context", &[("FAKE_CUDA_GPUS", "2")])
        }),
        trial("transfers_copy_the_elements_of_a_view", || whole("transfers", &[])),
        trial("a_capture_admits_no_host_memory", || whole("transfers in a capture", &[])),
        trial("matrices_in_slices_are_written", || whole("matrices in slices", &[])),
        trial("transfers_own_pinned_memory_until_they_are_done", || whole("pinned memory", &[])),
        trial("streams_that_share_buffers_are_ordered", || with_nvrtc("streams")),
        trial("memory_of_a_failed_transfer_is_never_freed", || {
            whole("failed wait", &[("FAKE_CUDA_WAIT", "700")])
        }),
        trial("foreign_memory_is_used_and_not_freed", || whole("foreign memory", &[])),
        trial("archives_and_warm_caches_need_no_nvrtc", archive::without_nvrtc),
        trial("tuning_measures_once_for_all_processes", autotune::processes),
        trial("tuning_without_a_cache_measures_again", || autotune::with("no cache", "")),
        trial("the_budget_of_a_tuning_bounds_its_launches", || autotune::alone("budget")),
        trial("failures_of_a_tuning_are_told", || autotune::alone("failures")),
        trial("captured_code_stays_loaded", || with_nvrtc("captured code")),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Compiled fake, from its source in the folder of tests.
fn compiled(source: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = dir.path().join("library.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let crate_flags = ["--edition=2024", "--crate-type=cdylib", "-Dwarnings", "-Anon-snake-case"];
    let codegen = ["-Copt-level=1", "-Cpanic=abort", "-Cstrip=debuginfo"];
    let cfg = "--check-cfg=cfg(without_elapsed, old)";
    let mut command = rustc();
    command.args(crate_flags).args(codegen).arg(cfg).args(flags).arg("-o").arg(&path).arg(source);
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// Runs a part with the whole fake.
fn whole(part: &str, settings: &[(&str, &str)]) -> Outcome {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    run(&BYTES, &[], part, settings)
}

/// Runs a part with the whole fake, and a fake of NVRTC.
fn with_nvrtc(part: &str) -> Outcome {
    with_nvrtc_and(part, &[])
}

fn with_nvrtc_and(part: &str, settings: &[(&str, &str)]) -> Outcome {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let dir = TempDir::new()?;
    let bytes = BYTES.get_or_init(|| compiled("nvrtc/fake.rs", &[]));
    let path = dir.path().join("libnvrtc.so.13");
    std::fs::write(&path, bytes.as_deref().map_err(Clone::clone)?)?;
    let path = path.to_string_lossy();
    let nvrtc = ("GEMM_NVRTC_PATH", &*path);
    whole(part, &[settings, &[nvrtc]].concat())
}

/// Runs a part in a process whose driver is a fake.
fn run(
    bytes: &'static OnceLock<Result<Vec<u8>, String>>,
    flags: &[&str],
    part: &str,
    settings: &[(&str, &str)],
) -> Outcome {
    let dir = TempDir::new()?;
    let bytes =
        bytes.get_or_init(|| compiled("driver/fake.rs", flags)).as_deref().map_err(Clone::clone)?;
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::fs::write(dir.path().join(name), bytes)?;
    }
    let child = Command::new(std::env::current_exe()?)
        .env(CHILD, part)
        .env("LD_LIBRARY_PATH", dir.path())
        .env("GEMM_CACHE_DIR", dir.path().join("cache"))
        .envs(settings.iter().copied())
        .output()?;
    ensure(child.status.success(), || String::from_utf8_lossy(&child.stderr).into_owned())
}

fn child(part: &str) -> ExitCode {
    let test = PARTS.iter().find(|(name, _)| *name == part).map(|(_, test)| test);
    match test.map_or_else(|| Err("no such part".into()), |test| test()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{}", failed.message().unwrap_or("failed"));
            ExitCode::FAILURE
        }
    }
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(message().into()) }
}

fn stub_is_no_driver() -> Outcome {
    let error = Device::cuda(0).map(drop).err().map(|error| error.to_string()).unwrap_or_default();
    let words = "the library found is the stub of a CUDA toolkit. Remove the toolkit's directory \
                 `stubs`";
    ensure(error.contains(words), || error.clone())?;
    ensure(Device::auto()?.is_simulator(), || "not the simulator".to_owned())?;
    ensure(gpus()? == 0, || "a stub has no GPUs".to_owned())
}

fn no_gpu() -> Outcome {
    let error = Device::cuda(0).map(drop);
    ensure(matches!(error, Err(Error::NoGpu)), || format!("{error:?}"))?;
    ensure(Device::auto()?.is_simulator(), || "not the simulator".to_owned())?;
    ensure(gpus()? == 0, || "no GPUs".to_owned())
}

/// Time between two events of a new stream.
fn time() -> Result<Result<f32, Error>, Failed> {
    let stream = CudaContext::new(0)?.new_stream()?;
    let (start, end) = (stream.record_event(None)?, stream.record_event(None)?);
    Ok(elapsed_ms(&start, &end))
}

fn times_between_events() -> Outcome {
    let time = time()?;
    ensure(matches!(time, Ok(1.5)), || format!("{time:?}"))
}

fn failed_time() -> Outcome {
    let time = time()?;
    ensure(matches!(time, Err(Error::Driver { status: 600, .. })), || format!("{time:?}"))
}

fn no_time() -> Outcome {
    let Err(error @ Error::DriverMissing { .. }) = time()? else { return Err("a time".into()) };
    let words = "the installed one is too old: it has no cuEventElapsedTime";
    ensure(error.to_string().contains(words), || error.to_string())
}

/// Calls the fake, which this process has loaded.
struct Fake(libloading::Library);

#[allow(unsafe_code, reason = "calls of the library, whose types are in fake.rs")]
impl Fake {
    fn new() -> Result<Self, Failed> {
        // SAFETY: the library has only the initialisers of Rust's standard library.
        Ok(Self(unsafe { libloading::Library::new("libcuda.so") }?))
    }

    fn get(&self, what: &str) -> Result<i64, Failed> {
        let name = CString::new(what)?;
        // SAFETY: the function has this type, and the name ends with a zero.
        unsafe {
            let get = self.0.get::<unsafe extern "C" fn(*const c_char) -> i64>("fake_get")?;
            Ok(get(name.as_ptr()))
        }
    }

    fn set_capturing(&self, value: i64) -> Outcome {
        let name = c"capturing".as_ptr();
        // SAFETY: the function has this type, and the name ends with a zero.
        unsafe {
            let set = self.0.get::<unsafe extern "C" fn(*const c_char, i64)>("fake_set")?;
            set(name, value);
        }
        Ok(())
    }

    fn has_modules(&self, expected: i64) -> Outcome {
        let modules = self.get("modules")?;
        ensure(modules == expected, || format!("{modules} modules, not {expected}"))?;
        let early = self.get("unloaded early")?;
        ensure(early == 0, || format!("{early} were unloaded while launches may have run"))
    }
}

/// Launches a kernel of one module whose spec differs from all others by its name.
fn launch(device: &Device, x: &Buffer, to: &mut Buffer, n: usize) -> Result<LaunchReport, Failed> {
    Ok(named(n)?.launch(device, x, to)?)
}

fn named(n: usize) -> Result<ReduceKernel, Failed> {
    Ok(ReduceKernel::new(format!("block: 32, name: k{n}").parse()?)?)
}

fn unloaded_code() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    device.keep_at_most(3);
    for n in 0..10 {
        launch(&device, &x, &mut to, n)?;
        fake.has_modules((n as i64 + 1).min(3))?;
    }
    // A report keeps the code of its launch.
    let report = launch(&device, &x, &mut to, 20)?;
    for n in 30..33 {
        launch(&device, &x, &mut to, n)?;
    }
    fake.has_modules(3)?;
    device.keep_at_most(0);
    fake.has_modules(1)?;
    ensure(device.forget(&named(20)?), || "the kernel is kept".to_owned())?;
    fake.has_modules(1)?;
    drop(report);
    fake.has_modules(0)?;
    let launches = fake.get("launches")?;
    ensure(launches == 14, || format!("{launches} launches"))
}

/// A graph refers to the code of the launches in it, as long as the device lives.
fn captured_code() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let (x, mut to) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    for n in 0..3 {
        launch(&device, &x, &mut to, n)?;
    }
    fake.set_capturing(1)?;
    launch(&device, &x, &mut to, 1)?;
    // Evicts two kernels, whose code cannot be unloaded during the capture.
    device.keep_at_most(0);
    fake.set_capturing(0)?;
    fake.has_modules(3)?;
    ensure(device.kept_kernels() == 1, || format!("{} kernels", device.kept_kernels()))?;
    ensure(!device.forget(&named(1)?), || "a captured kernel was forgotten".to_owned())?;
    launch(&device, &x, &mut to, 7)?;
    device.keep_at_most(0);
    fake.has_modules(3)?;
    drop((x, to, device));
    fake.has_modules(2)
}

/// As in candle's default device. The device's stream and that of the thread wait for each other.
fn per_thread_stream() -> Outcome {
    let (context, fake) = (CudaContext::new(0)?, Fake::new()?);
    let stream = context.per_thread_stream();
    let device = Device::from_cudarc(context.clone(), stream.clone())?;
    let (_, own) = device.cudarc().ok_or("a GPU")?;
    ensure(own.cu_stream() as usize > 2, || "not a stream of its own".to_owned())?;
    let (x, mut to) = (stream.clone_htod(&[1.0_f32; 4])?, stream.alloc_zeros::<f32>(1)?);
    named(0)?.launch(&device, &x, &mut to)?;
    let before = fake.get("waits before")?;
    ensure(before >= 2, || format!("{before} waits for two slices"))?;
    stream.clone_dtoh(&to)?;
    let after = fake.get("waits after")?;
    ensure(after >= 1, || format!("{after} waits for the result"))?;

    // Without events, nothing could order the threads' work.
    drop(device);
    // SAFETY: the test has no further work.
    #[allow(unsafe_code, reason = "cudarc leaves the order to the caller")]
    unsafe {
        context.disable_event_tracking();
    }
    let error = Device::from_cudarc(context, stream);
    ensure(matches!(error, Err(Error::Stream { .. })), || format!("{error:?}"))
}

/// Slices of an object with one stream, in which `cudarc` records no events.
fn other_object() -> Outcome {
    let (context, fake) = (CudaContext::new(0)?, Fake::new()?);
    let (device, stream) = (Device::cuda(0)?, context.default_stream());
    let (x, mut to) = (stream.clone_htod(&[1.0_f32; 4])?, stream.alloc_zeros::<f32>(1)?);
    named(0)?.launch(&device, &x, &mut to)?;
    let waits = (fake.get("waits before")?, fake.get("waits after")?);
    ensure(waits == (2, 2), || format!("{waits:?} waits for two slices"))?;
    ensure(fake.get("running")? == 1, || "the host waited".to_owned())?;

    // The slices' object relies on events, which the device's object does not record: the host
    // waits.
    let (stream, own) = (context.new_stream()?, CudaContext::new(0)?);
    let device = Device::from_cudarc(context.clone(), own.default_stream())?;
    let (x, mut to) = (stream.clone_htod(&[1.0_f32; 4])?, stream.alloc_zeros::<f32>(1)?);
    named(0)?.launch(&device, &x, &mut to)?;
    ensure(fake.get("running")? == 0, || "the host did not wait".to_owned())
}

fn other_context() -> Outcome {
    let (device, context) = (Device::cuda(0)?, CudaContext::new(1)?);
    let stream = context.new_stream()?;
    let input = stream.clone_htod(&[1.0_f32])?;
    let error = named(0)?.launch(&device, &input, &mut device.alloc(1)?);
    ensure(
        matches!(&error, Err(Error::WrongDevice { argument, .. }) if argument == "input"),
        || format!("{error:?}"),
    )?;
    let error = Device::from_cudarc(CudaContext::new(0)?, stream);
    ensure(matches!(error, Err(Error::Stream { .. })), || format!("{error:?}"))
}
