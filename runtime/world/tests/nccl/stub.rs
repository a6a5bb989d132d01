//! Fake NCCL library, compiled once and copied for each test.

use crate::ensure;
use gemm_world::__private::nccl::Library;
use libtest_mimic::Failed;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Version of the available compiler, or the reason for its absence.
pub fn version_of_rustc() -> Result<String, String> {
    match rustc().arg("--version").output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("rustc --version: {}", output.status)),
        Err(error) => Err(format!("rustc cannot be started: {error}")),
    }
}

/// Compiled library.
pub fn bytes() -> Result<&'static [u8], Failed> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let made = || -> Result<Vec<u8>, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = dir.path().join("libnccl.so.2");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nccl/fake/lib.rs");
        let flags = ["--edition=2024", "--crate-type=cdylib", "-Dwarnings", "-Anon-snake-case"];
        let codegen = ["-Copt-level=1", "-Cpanic=abort", "-Cstrip=debuginfo"];
        let output = rustc().args(flags).args(codegen).arg("-o").arg(&path).arg(source).output();
        let output = output.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        std::fs::read(path).map_err(|error| error.to_string())
    };
    Ok(BYTES.get_or_init(made).as_deref().map_err(Clone::clone)?)
}

/// Copy of the library for one test.
pub struct Stub {
    dir: TempDir,
    library: libloading::Library,
}

#[allow(unsafe_code, reason = "calls of the library, whose types are in fake/lib.rs")]
impl Stub {
    pub fn new() -> Result<Self, Failed> {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("libnccl.so.2"), bytes()?)?;
        Self::of(dir, "libnccl.so.2")
    }

    /// Loads the library in a directory.
    pub fn of(dir: TempDir, name: &str) -> Result<Self, Failed> {
        // SAFETY: the library has only the initialisers of Rust's standard library.
        let library = unsafe { libloading::Library::new(dir.path().join(name)) }?;
        Ok(Self { dir, library })
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self) -> PathBuf {
        self.dir().join("libnccl.so.2")
    }

    /// Loads the library as the runtime does.
    pub fn nccl(&self) -> Result<Arc<Library>, Failed> {
        Ok(Library::at(self.dir())?)
    }

    pub fn set(&self, setting: &str, value: i64) -> Result<(), Failed> {
        let name = CString::new(setting)?;
        // SAFETY: the function has this type, and the name ends with a zero.
        unsafe {
            let set: Symbol<'_, unsafe extern "C" fn(*const c_char, i64)> =
                self.library.get("fake_set")?;
            set(name.as_ptr(), value);
        }
        Ok(())
    }

    pub fn get(&self, what: &str) -> Result<i64, Failed> {
        let name = CString::new(what)?;
        // SAFETY: the function has this type, and the name ends with a zero.
        unsafe {
            let get: Symbol<'_, unsafe extern "C" fn(*const c_char) -> i64> =
                self.library.get("fake_get")?;
            Ok(get(name.as_ptr()))
        }
    }

    /// Checks that everything was released, and that NCCL was not misused.
    pub fn is_clean(&self) -> Result<(), Failed> {
        let mut text = [0; 256];
        // SAFETY: the function has this type, and the buffer has this size.
        let len = unsafe {
            let misuse: Symbol<'_, unsafe extern "C" fn(*mut u8, usize) -> usize> =
                self.library.get("fake_misuse")?;
            misuse(text.as_mut_ptr(), text.len())
        };
        let misuse = String::from_utf8_lossy(&text[..len]);
        ensure(misuse.is_empty(), || format!("NCCL was misused: {misuse}"))?;
        let live = self.get("live")?;
        ensure(live == 0, || format!("{live} were not given back"))
    }
}

type Symbol<'a, F> = libloading::Symbol<'a, F>;

/// Deadline that is never reached.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Continues waiting.
pub fn go_on() -> gemm_world::__private::nccl::NcclResult<()> {
    Ok(())
}

/// Address of host memory, used in place of a device address.
pub fn address<T>(slice: &mut [T]) -> u64 {
    slice.as_mut_ptr() as usize as u64
}
