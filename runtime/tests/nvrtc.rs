//! Compilation with NVRTC, which needs no GPU. Without NVRTC the tests that need it are ignored.

// Source of a fake library, included only for the formatter.
#[cfg(any())]
#[path = "nvrtc/fake.rs"]
mod fake;

mod common;

use common::{Prerequisite, ensure};
use gemm_runtime::compile::{self, Arch, Options};
use gemm_runtime::{Error, ReduceKernel, SgemmKernel, SgemmSpec, reduce_kernel};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::process::{Command, ExitCode};

const SUM: ReduceKernel = reduce_kernel!(items: 4, float4, shuffle);

/// Environment variable that marks a process which looks for NVRTC in a place without it.
const CHILD: &str = "GEMM_TEST_NVRTC_CHILD";

const SCALE: &str = r#"extern "C" __global__ void __launch_bounds__(128) scale(float* x, float by)
{
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x] * by;
    __syncthreads();
    x[threadIdx.x] = tile[127 - threadIdx.x] + 1.0f;
}
"#;

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let nvrtc = Prerequisite::nvrtc();
    let needs_nvrtc = |name: &str, test| nvrtc.trial(name, test);
    let trials = vec![
        Trial::test("a_missing_library_says_what_to_install", missing_library),
        Trial::test("a_broken_library_is_reported", broken_library),
        Trial::test("a_missing_library_fails_tests_that_require_it", required),
        needs_nvrtc("compiles_for_every_architecture", architectures),
        needs_nvrtc("compiles_generated_kernels", generated),
        needs_nvrtc("reports_resources", resources),
        needs_nvrtc("an_error_shows_the_lines_of_the_source", error_lines),
        needs_nvrtc("an_unknown_architecture_is_an_error", unknown_architecture),
        Trial::ignorable_test("a_library_without_machine_code_is_passed_over", without_cubins),
        Trial::ignorable_test("a_library_without_the_architecture_is_passed_over", passed_over),
        needs_nvrtc("a_source_with_a_nul_is_an_error", nul),
        needs_nvrtc("products_and_sums_are_not_fused", no_contraction),
        needs_nvrtc("threads_may_compile_at_once", threads),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Tries to compile without a usable NVRTC and prints the result.
fn child() -> ExitCode {
    let compiled = compile::compile("scale", SCALE, Arch::sm(90), &Options::default());
    match compiled.and_then(|_| compile::nvrtc_version()) {
        Ok((major, minor, build)) => println!("compiled by {major}.{minor}.{build}"),
        Err(error) => println!("{error}"),
    }
    ExitCode::SUCCESS
}

fn look_in(path: &std::path::Path) -> Result<String, Failed> {
    let child = Command::new(std::env::current_exe()?)
        .env(CHILD, "1")
        .env("GEMM_NVRTC_PATH", path)
        .output()?;
    ensure(child.status.success(), || format!("the process failed: {child:?}"))?;
    Ok(String::from_utf8(child.stdout)?)
}

fn missing_library() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let message = look_in(dir.path())?;
    for part in ["NVRTC", "pip install nvidia-cuda-nvrtc", &dir.path().display().to_string()] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    Ok(())
}

/// Without the library, a test that needs it is ignored, and fails if the environment requires it.
fn required() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    for (value, passes) in [("1", false), ("0", true), ("", true)] {
        let child = Command::new(std::env::current_exe()?)
            .args(["--exact", "reports_resources"])
            .env("GEMM_NVRTC_PATH", dir.path())
            .env("GEMM_REQUIRE_NVRTC", value)
            .output()?;
        let told = String::from_utf8_lossy(&child.stdout);
        ensure(child.status.success() == passes, || format!("{value:?}: {told}"))?;
        let word = if passes { "1 ignored" } else { "NVRTC, the CUDA compiler library" };
        ensure(told.contains(word), || format!("{value:?}: no {word:?} in\n{told}"))?;
    }
    Ok(())
}

fn broken_library() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let library = dir.path().join("libnvrtc.so.13");
    std::fs::write(&library, b"not a library")?;
    let message = look_in(dir.path())?;
    let shown = library.display().to_string();
    ensure(message.contains(&shown), || format!("no {shown:?} in:\n{message}"))?;
    if cfg!(not(target_os = "linux")) {
        return Ok(());
    }
    // Messages of the dynamic loader: the file is not an ELF file, or one of another architecture.
    for part in ["file too short", "invalid ELF header"] {
        if message.contains(part) {
            return other_library(&library);
        }
    }
    Err(format!("no reason in:\n{message}").into())
}

/// The error for a library that is not NVRTC names the missing symbol.
fn other_library(library: &std::path::Path) -> Result<(), Failed> {
    let libraries = ["/lib64/libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6"];
    let Some(other) = libraries.iter().find(|path| std::path::Path::new(path).exists()) else {
        return Ok(());
    };
    std::fs::copy(other, library)?;
    let dir = library.parent().ok_or("a library lies in a directory")?;
    let message = look_in(dir)?;
    let part = "it has no nvrtcCreateProgram, so it is not NVRTC";
    ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))
}

fn architectures() -> Result<(), Failed> {
    for arch in [Arch::sm(75), Arch::sm(80), Arch::sm(90), Arch::sm(90).specific(), Arch::sm(120)] {
        let compiled = compile::compile("scale", SCALE, arch, &Options::default())?;
        ensure(compiled.cubin.starts_with(b"\x7fELF"), || format!("{arch}: no cubin"))?;
    }
    Ok(())
}

fn generated() -> Result<(), Failed> {
    let gemm = SgemmKernel::new("tile: 64x64x8, thread: 4x4, float4".parse::<SgemmSpec>()?)?;
    for source in [SUM.source(), gemm.source()] {
        let compiled = compile::compile("generated", source, Arch::sm(90), &Options::default())?;
        ensure(compiled.resources()?.spill_stores == 0, || compiled.log)?;
    }
    Ok(())
}

fn resources() -> Result<(), Failed> {
    let compiled = compile::compile("scale", SCALE, Arch::sm(90), &Options::default())?;
    let r = compiled.resources()?;
    let expected = (512, 1, 0, 0);
    let got = (r.shared_bytes, r.barriers, r.spill_stores, r.spill_loads);
    ensure(got == expected && (4..64).contains(&r.registers), || format!("{r:?}"))
}

fn error_lines() -> Result<(), Failed> {
    let faulty = SCALE.replace("__syncthreads()", "__syncthreadz()");
    let error = compile::compile("scale", &faulty, Arch::sm(90), &Options::default());
    let Err(error @ Error::Compile { .. }) = error else {
        return Err(format!("{error:?}").into());
    };
    let message = error.to_string();
    for part in [
        "could not compile `scale` for sm_90",
        "identifier \"__syncthreadz\" is undefined",
        "     4 |     tile[threadIdx.x] = x[threadIdx.x] * by;",
        ">    5 |     __syncthreadz();",
    ] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    Ok(())
}

fn unknown_architecture() -> Result<(), Failed> {
    let error = compile::compile("scale", SCALE, Arch::sm(11), &Options::default());
    let Err(error @ Error::NvrtcUnsuitable { .. }) = error else {
        return Err(format!("{error:?}").into());
    };
    let (message, (major, minor, _)) = (error.to_string(), compile::nvrtc_version()?);
    let version = format!("NVRTC {major}.{minor} does not know sm_11");
    for part in ["compiles for sm_11", "pip install nvidia-cuda-nvrtc", &version] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    Ok(())
}

/// Of two libraries in a directory, the first is too old for sm_90. Ignored unless
/// `GEMM_OLD_NVRTC` and `GEMM_NVRTC_PATH` name a directory with NVRTC 11.7 and one with a newer
/// NVRTC, as in `.ci/long`.
#[cfg(unix)]
fn passed_over() -> Result<Completion, Failed> {
    let folders = ["GEMM_OLD_NVRTC", "GEMM_NVRTC_PATH"].map(std::env::var_os);
    let [Some(old), Some(new)] = folders.map(|folder| folder.filter(|f| !f.is_empty())) else {
        return Ok(Completion::ignored_with("GEMM_OLD_NVRTC and GEMM_NVRTC_PATH name no folders"));
    };
    let dir = tempfile::tempdir()?;
    let link = |folder: &std::ffi::OsStr| -> Result<(), Failed> {
        for file in std::fs::read_dir(folder)? {
            let file = file?;
            // The name of the older library sorts last, so it is tried first.
            let name = match file.file_name() {
                name if name == "libnvrtc.so.11.2" => "libnvrtc.so.99".into(),
                name => name,
            };
            std::os::unix::fs::symlink(file.path(), dir.path().join(name))?;
        }
        Ok(())
    };
    link(&old)?;
    let message = look_in(dir.path())?;
    for part in ["libnvrtc.so.99: NVRTC 11.7 does not know sm_90", "compiles for sm_90"] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    link(&new)?;
    let message = look_in(dir.path())?;
    ensure(message.starts_with("compiled by "), || message)?;
    Ok(Completion::Completed)
}

/// NVRTC 11.0 returns PTX only. Of two libraries in a directory it is tried first. Ignored without
/// a `rustc` to compile the fakes.
#[cfg(target_os = "linux")]
fn without_cubins() -> Result<Completion, Failed> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    if Command::new(&rustc).arg("--version").output().is_err() {
        return Ok(Completion::ignored_with("rustc cannot be started"));
    }
    let dir = tempfile::tempdir()?;
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvrtc/fake.rs");
    let library = |name: &str, flags: &[&str]| -> Result<(), Failed> {
        let crate_flags = ["--edition=2024", "--crate-type=cdylib", "-Dwarnings"];
        let names = ["-Anon-snake-case", "--check-cfg=cfg(old)", "-Cpanic=abort"];
        let mut command = Command::new(&rustc);
        command.args(crate_flags).args(names).args(flags);
        let compiled = command.arg("-o").arg(dir.path().join(name)).arg(&source).output()?;
        ensure(compiled.status.success(), || String::from_utf8_lossy(&compiled.stderr).into())
    };
    library("libnvrtc.so.99", &["--cfg=old"])?;
    let message = look_in(dir.path())?;
    for part in [
        "no NVRTC library found here compiles for sm_90",
        "libnvrtc.so.99: NVRTC 11.0 returns no machine code, which needs NVRTC 11.1 or later",
    ] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    library("libnvrtc.so.13", &[])?;
    let message = look_in(dir.path())?;
    ensure(message == "compiled by 13.0.48\n", || message)?;
    Ok(Completion::Completed)
}

#[cfg(not(target_os = "linux"))]
fn without_cubins() -> Result<Completion, Failed> {
    Ok(Completion::ignored_with("the fakes are libraries of Linux"))
}

#[cfg(not(unix))]
fn passed_over() -> Result<Completion, Failed> {
    Ok(Completion::ignored_with("the test links files, which needs Unix"))
}

fn nul() -> Result<(), Failed> {
    let error = compile::compile("scale", "int\0x;", Arch::sm(90), &Options::default());
    ensure(matches!(error, Err(Error::Compile { .. })), || format!("{error:?}"))
}

/// With contraction enabled, `a * b + c` and the explicit `fmaf` compile to the same machine code.
fn no_contraction() -> Result<(), Failed> {
    let text = |expr: &str| format!("extern \"C\" __global__ void k(float* x) {{ *x = {expr}; }}");
    let cubin = |expr: &str| {
        compile::compile("k", &text(expr), Arch::sm(90), &Options::default()).map(|c| c.cubin)
    };
    let (sum, fused) = (cubin("x[1] * x[2] + x[3]")?, cubin("fmaf(x[1], x[2], x[3])")?);
    ensure(sum != fused, || "the product and the sum were fused".to_owned())
}

fn threads() -> Result<(), Failed> {
    let compile = |i: u32| {
        let source = SCALE.replace("1.0f", &format!("{i}.0f"));
        compile::compile("scale", &source, Arch::sm(80), &Options::default())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|i| scope.spawn(move || compile(i))).collect();
        for thread in running {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}
