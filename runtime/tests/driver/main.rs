//! Devices on a fake driver, without a GPU. The tests are ignored without a `rustc` to compile the
//! library.

// Source of the library, included only for the formatter.
#[cfg(any())]
mod fake;

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
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let dir = TempDir::new()?;
    let bytes = BYTES.get_or_init(|| compiled("nvrtc/fake.rs", &[]));
    let path = dir.path().join("libnvrtc.so.13");
    std::fs::write(&path, bytes.as_deref().map_err(Clone::clone)?)?;
    whole(part, &[("GEMM_NVRTC_PATH", &path.to_string_lossy())])
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

fn all_transfers() -> Outcome {
    let device = Device::cuda(0)?;
    for check in [transfers::random_views, transfers::halves, transfers::asynchronous] {
        check(&device).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The host cannot wait for a stream that is captured.
fn transfers_in_a_capture() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let (mut x, y) = (device.upload(&[1.0; 4])?, device.upload(&[2.0; 4])?);
    let (event, one, two) = (device.record()?, device.pinned(4)?, device.pinned(4)?);
    fake.set_capturing(1)?;
    let calls = [
        x.write(&[3.0; 4]),
        x.read_into(&mut [0.0; 4]),
        device.download(&x).map(drop),
        device.pinned::<f32>(1).map(drop),
        device.wait_for(&event),
        device.record().map(drop),
        x.write_async(one).map(drop),
        x.read_async(two).map(drop),
    ];
    let (copied, filled) = (x.copy_from(&y), x.slice_mut(..1)?.fill(4.0));
    fake.set_capturing(0)?;
    for call in calls {
        ensure(matches!(call, Err(Error::Capturing { .. })), || format!("{call:?}"))?;
    }
    copied.and(filled)?;
    let got = device.download(&x)?;
    ensure(got == [4.0, 2.0, 2.0, 2.0], || format!("{got:?}"))
}

/// A view of a slice is consecutive elements, and does not know its device.
#[allow(unsafe_code, reason = "memory of 2 GB that no test touches")]
fn matrices_in_slices() -> Outcome {
    let device = Device::cuda(0)?;
    let (_, stream) = device.cudarc().ok_or("a GPU")?;
    let mut x = stream.clone_htod(&[0.0_f32; 6])?;
    let mut matrix = MatrixMut::new(&mut x, 2, 3)?;
    for (error, call) in [
        (matrix.write(&[1.0; 6]), "write("),
        (matrix.fill(1.0), "fill("),
        (matrix.read_into(&mut [0.0; 6]), "read_into("),
        (matrix.copy_from(&device.alloc(6)?), "copy("),
    ] {
        let error = error.err().ok_or("no device")?.to_string();
        ensure(error.contains(&format!("call `device.{call}")), || error)?;
    }
    device.write(&mut matrix, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let error = matrix.split_at_col_mut(1).map(drop);
    ensure(matches!(error, Err(Error::Interleaved)), || format!("{error:?}"))?;
    for at in 0..=2 {
        let value = at as f32;
        let (mut first, mut second) = matrix.split_at_row_mut(at)?;
        device.fill(&mut first, -value)?;
        device.fill(&mut second, value)?;
        let expected: Vec<f32> = (0..6).map(|i| if i < 3 * at { -value } else { value }).collect();
        let got = device.download(&matrix)?;
        ensure(got == expected, || format!("rows at {at}: {got:?}"))?;
    }
    let mut transposed = matrix.t();
    let (_, mut second) = transposed.split_at_col_mut(1)?;
    device.fill(&mut second, 9.0)?;
    for at in [0, 2] {
        let (mut first, mut second) = matrix.split_at_col_mut(if at == 0 { 0 } else { 3 })?;
        device.fill(if at == 0 { &mut first } else { &mut second }, 7.0)?;
    }
    let got = stream.clone_dtoh(&x)?;
    ensure(got == [-2.0, -2.0, -2.0, 9.0, 9.0, 9.0], || format!("{got:?}"))?;

    // The driver copies no rows that are 2^31 bytes apart.
    const PITCH: usize = (1 << 29) + 3;
    // SAFETY: the test reads only the elements that it has written.
    let mut large = unsafe { stream.alloc::<f32>(PITCH + 3) }?;
    let mut matrix = MatrixMut::pitched(&mut large, 2, 3, PITCH)?;
    device.write(&mut matrix, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    device.fill(&mut matrix.part(0..2, 1..2)?, 8.0)?;
    let got = device.download(&matrix)?;
    ensure(got == [1.0, 8.0, 3.0, 4.0, 8.0, 6.0], || format!("{got:?}"))
}

/// The fake copies pinned memory as late as it may.
fn pinned_memory() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let before = fake.get("allocations")?;
    let mut x = device.alloc(4)?;
    let mut elements = device.pinned(4)?;
    elements.fill(1.0);
    let transfer = x.write_async(elements)?;
    ensure(!transfer.is_done()?, || "the fake does not wait".to_owned())?;
    let event = device.record()?;
    ensure(!event.is_done()?, || "the event is done".to_owned())?;
    let mut elements = transfer.wait()?;
    ensure(!event.is_done()?, || "the later event is done".to_owned())?;
    elements.fill(2.0);
    let got = x.read_async(elements)?.wait()?.to_vec();
    ensure(got == [1.0; 4], || format!("{got:?}"))?;

    // A drop waits, and the buffer may be dropped before.
    let transfer = x.read_async(device.pinned(4)?)?;
    drop(x);
    drop(transfer);
    device.synchronize()?;
    let mut y = device.alloc(4)?;
    std::mem::forget(y.write_async(device.pinned(4)?)?);
    drop(y);
    device.synchronize()?;
    ensure(fake.get("freed early")? == 0, || "memory was freed early".to_owned())?;
    let more = fake.get("allocations")? - before;
    ensure(more == 1, || format!("{more} allocations are left instead of the forgotten one"))?;
    ensure(device.pinned::<f32>(0)?.is_empty(), || "an element".to_owned())
}

/// If nobody can know that a transfer is done, its memory is not freed.
fn failed_wait() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let mut x = device.alloc(4)?;
    let before = fake.get("allocations")?;
    let error = x.write_async(device.pinned(4)?)?.wait();
    ensure(matches!(error, Err(Error::Driver { status: 700, .. })), || format!("{error:?}"))?;
    drop(x.read_async(device.pinned(4)?)?);
    let more = fake.get("allocations")? - before;
    ensure(more == 2, || format!("{more} allocations"))
}

#[allow(unsafe_code, reason = "memory of another owner")]
fn foreign_memory() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let mut owner = device.upload(&[1.0, 2.0, 3.0, 4.0])?;
    let address = owner.raw_address().ok_or("an address")?;
    let before = fake.get("allocations")?;
    // SAFETY: `owner` has 3 elements from its second on, and is not used before the buffer is gone.
    let mut x = unsafe { Buffer::<f32>::from_raw_parts(&device, address + 4, 3) }?;
    ensure(device.download(&x)? == [2.0, 3.0, 4.0], || "other elements".to_owned())?;
    x.fill(7.0)?;
    drop(x);
    device.synchronize()?;
    ensure(fake.get("allocations")? == before, || "it was freed".to_owned())?;
    owner.write_at(3, &[5.0])?;
    ensure(device.download(&owner)? == [1.0, 7.0, 7.0, 5.0], || "not written".to_owned())?;
    for (address, len, words) in [
        (0, 1, "it is the null pointer"),
        (address + 2, 1, "the address is not a multiple of 4"),
        (address, usize::MAX / 4, "reach beyond the address space"),
        (address, usize::MAX, "reach beyond the address space"),
    ] {
        // SAFETY: the call is refused.
        let error = unsafe { Buffer::<f32>::from_raw_parts(&device, address, len) };
        let error = error.err().ok_or("it is accepted")?.to_string();
        ensure(error.contains(words), || error)?;
    }
    // SAFETY: no element is used.
    let empty = unsafe { Buffer::<f32>::from_raw_parts(&device, 0, 0) }?;
    ensure(device.download(&empty)?.is_empty(), || "elements".to_owned())
}

/// The fake executes the work of a stream as late as it may, so a missing wait changes a result.
fn several_streams() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    // With one stream, nothing waits.
    let mut x = device.alloc(2)?;
    x.fill(1.0)?;
    let (before, waits) = (fake.get("allocations")?, fake.get("waits before")?);
    ensure(waits == 0, || format!("{waits} waits"))?;
    transfers::streams(&device).map_err(|error| error.to_string())?;
    device.synchronize()?;
    ensure(fake.get("freed early")? == 0, || "memory was freed early".to_owned())?;
    let after = fake.get("allocations")?;
    ensure(after == before, || format!("{after} allocations, not {before}"))?;

    // Reads of two streams do not wait for each other.
    let other = device.on_new_stream()?;
    let read = |device: &Device| -> Outcome { Ok(device.copy(&x, &mut device.alloc(2)?)?) };
    read(&device)?;
    read(&other)?;
    let waits = fake.get("waits before")?;
    read(&device)?;
    read(&other)?;
    // One for the first write of `x`, which was before the second stream; each copy's target is
    // new.
    let more = fake.get("waits before")? - waits;
    ensure(more == 0, || format!("{more} waits"))?;

    // A list's launch is a use of its matrices.
    let mut c = [device.alloc_matrix(1, 1)?, device.alloc_matrix(1, 1)?];
    let (a, b) = (device.alloc_matrix(1, 1)?, device.alloc_matrix(1, 1)?);
    let gemm: SgemmKernel = SgemmKernel::new("block: 8x8, batch: pointers".parse()?)?;
    {
        let (a, b) = (MatrixList::new(&device, [&a, &a])?, MatrixList::new(&device, [&b, &b])?);
        let mut c = MatrixListMut::new(&device, &mut c)?;
        gemm.call(&device).launch(&a, &b, &mut c)?;
    }
    let waits = fake.get("waits after")?;
    other.fill(&mut c[1], 1.0)?;
    let mut a = a;
    other.fill(&mut a, 1.0)?;
    let more = fake.get("waits after")? - waits;
    ensure(more >= 2, || format!("{more} waits for the launch of a list"))
}
