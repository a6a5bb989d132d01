//! NVRTC libraries. For each need, a process uses the first library of the search that meets it.
//!
//! This module looks up the functions itself, for two reasons. `cudarc` resolves the library only
//! by name, so another version on the loader's path could override an explicit path. `cudarc` also
//! panics if the library is missing.

use super::{Arch, Compilation, listing::listing};
use crate::error::{Error, Result};
use crate::library::{self, Candidate, NVRTC, Places, files_beside, open};
use crate::trace::span;
use gemm_dsl::target::release::Release;
use libloading::Library;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

type Handle = *mut c_void;
/// `nvrtcResult` as an integer, because newer libraries may return unknown values.
type Status = c_int;
const SUCCESS: Status = 0;

/// Requirements of a source on the compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Need {
    /// Architecture to compile for. Any library meets `None`.
    pub(crate) arch: Option<Arch>,
    /// Oldest release that knows the instructions.
    pub(crate) release: Release,
}

/// Version of NVRTC with the build: major, minor, build.
pub(super) type Build = (u32, u32, u32);

/// Entry points of NVRTC, with the library that they belong to.
pub(super) struct Nvrtc {
    /// Name or path by which the library was loaded.
    file: String,
    version: Release,
    /// Number of the build, once it has been read.
    build: OnceLock<u32>,
    /// Architectures for which it compiles, 90 for `sm_90`. Empty before CUDA 11.2, which cannot
    /// list them.
    archs: Vec<u32>,
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status,
    ptx: Output,
    /// `None` before CUDA 11.1.
    cubin: Option<Output>,
    log: Output,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    /// NVRTC and its builtins, which stay loaded as long as the entry points are reachable.
    _libraries: Vec<Library>,
}

/// Libraries of this process.
#[derive(Default)]
struct Found {
    /// Result of loading each candidate so far. Libraries are never unloaded.
    loaded: Vec<(Candidate, Result<&'static Nvrtc, String>)>,
    /// Result of the search for each need.
    chosen: HashMap<Need, Result<&'static Nvrtc, SearchFailure>>,
}

/// Places that were searched, each with the reason why its library was not used.
#[derive(Clone, Debug)]
struct SearchFailure {
    searched: Vec<String>,
    /// True if a library could be loaded, but does not meet the need.
    is_unmet: bool,
}

static FOUND: Mutex<Option<Found>> = Mutex::new(None);

impl Found {
    /// Loads a candidate, unless it was loaded before.
    fn load(&mut self, candidate: &Candidate) -> Result<&'static Nvrtc, String> {
        if let Some((_, result)) = self.loaded.iter().find(|(known, _)| known == candidate) {
            return result.clone();
        }
        let result = Nvrtc::load(candidate).map(|nvrtc| &*Box::leak(Box::new(nvrtc)));
        self.loaded.push((candidate.clone(), result.clone()));
        result
    }

    fn search(&mut self, need: Need) -> Result<&'static Nvrtc, SearchFailure> {
        let mut is_unmet = false;
        let found = Places::from_env(&NVRTC).find(|candidate| {
            let nvrtc = self.load(candidate)?;
            nvrtc.meets(need).inspect_err(|_| is_unmet = true)?;
            Ok(nvrtc)
        });
        found.map_err(|searched| SearchFailure { searched, is_unmet })
    }
}

/// Library that this process uses for a need, if it has been searched.
pub(super) fn loaded(need: Need) -> Option<&'static Nvrtc> {
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.as_ref()?.chosen.get(&need)?.as_ref().ok().copied()
}

/// Newest of the libraries that this process uses; zeros if it has loaded none.
pub(super) fn newest_loaded() -> Build {
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let chosen = found.iter().flat_map(|found| found.chosen.values().flatten());
    let chosen: Vec<&Nvrtc> = chosen.copied().collect();
    drop(found);
    chosen.into_iter().map(Nvrtc::build).max().unwrap_or_default()
}

/// Library that this process uses for a need. The first call searches and loads it.
pub(super) fn get(need: Need) -> Result<&'static Nvrtc> {
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    let known = found.chosen.get(&need).cloned();
    let chosen = known.unwrap_or_else(|| {
        let chosen = found.search(need);
        found.chosen.insert(need, chosen.clone());
        chosen
    });
    chosen.map_err(|SearchFailure { searched, is_unmet }| match is_unmet {
        true => Error::NvrtcUnsuitable { need: need.to_string(), searched },
        false => Error::NvrtcMissing { searched },
    })
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.release;
        let instructions = format!("instructions of CUDA {major}.{minor}");
        match (self.arch, self.release) {
            (Some(arch), (0, 0)) => write!(f, "{arch}"),
            (Some(arch), _) => write!(f, "{arch} and {instructions}"),
            (None, _) => f.write_str(&instructions),
        }
    }
}

#[allow(unsafe_code, reason = "NVRTC is a C library, loaded at run time")]
impl Nvrtc {
    fn load(candidate: &Candidate) -> Result<Self, String> {
        let mut libraries = Vec::new();
        let library = match candidate {
            Candidate::Name(name) => open(Path::new(name))?,
            Candidate::File(path) => {
                // NVRTC asks the loader for its builtins library only by name. Once this library is
                // loaded, the loader resolves the name without a search path.
                libraries.extend(builtins_beside(path).iter().flat_map(|path| open(path)));
                open(path)?
            }
        };
        // SAFETY: nvrtc.h declares these types, unchanged since CUDA 11.0.
        let mut nvrtc = unsafe {
            Self {
                file: candidate.to_string(),
                version: (0, 0),
                build: OnceLock::new(),
                archs: Vec::new(),
                create: symbol(&library, "nvrtcCreateProgram")?,
                compile: symbol(&library, "nvrtcCompileProgram")?,
                ptx: Output::find(&library, "nvrtcGetPTX")?,
                cubin: Output::find(&library, "nvrtcGetCUBIN").ok(),
                log: Output::find(&library, "nvrtcGetProgramLog")?,
                destroy: symbol(&library, "nvrtcDestroyProgram")?,
                error_string: symbol(&library, "nvrtcGetErrorString")?,
                _libraries: Vec::new(),
            }
        };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: nvrtc.h declares this type, and both pointers are valid for the call.
        let status = unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status =
                symbol(&library, "nvrtcVersion")?;
            version(&mut major, &mut minor)
        };
        match (status, u32::try_from(major), u32::try_from(minor)) {
            (SUCCESS, Ok(major), Ok(minor)) => nvrtc.version = (major, minor),
            _ => return Err(format!("{candidate}: nvrtcVersion failed")),
        }
        nvrtc.archs = supported_archs(&library);
        libraries.push(library);
        nvrtc._libraries = libraries;
        Ok(nvrtc)
    }

    /// Version of the library with its build.
    ///
    /// `nvrtcVersion` does not report the build, and the libraries of Python wheels do not have it
    /// in their names. All releases write it into the PTX of any program, so the first call
    /// compiles an empty one. That takes 30 to 200 ms, and is only done where kernels are compiled.
    /// The build is 0 if the PTX does not have it.
    pub(super) fn build(&self) -> Build {
        let (major, minor) = self.version;
        let read = || {
            let ptx = self.translate("version.cu", "", &[], self.ptx).map(|(ptx, _)| ptx);
            let ptx = String::from_utf8_lossy(&ptx.unwrap_or_default()).into_owned();
            build_in(&ptx, self.version).unwrap_or(0)
        };
        (major, minor, *self.build.get_or_init(read))
    }

    /// Checks that the library meets a need.
    fn meets(&self, need: Need) -> Result<(), String> {
        let Self { file, version: (major, minor), .. } = self;
        if let Some(arch) = need.arch
            && !self.archs.is_empty()
            && !self.archs.contains(&arch.number())
        {
            return Err(format!("{file}: NVRTC {major}.{minor} does not know {arch}"));
        }
        if self.cubin.is_none() {
            return Err(format!(
                "{file}: NVRTC {major}.{minor} returns no machine code, which needs NVRTC 11.1 or \
                 later"
            ));
        }
        if self.version < need.release {
            let (least, minor_least) = need.release;
            return Err(format!(
                "{file}: NVRTC {major}.{minor} is older than {least}.{minor_least}"
            ));
        }
        Ok(())
    }

    /// Compiles one translation unit to machine code.
    pub(super) fn compile(
        &self,
        name: &str,
        source: &str,
        arch: Arch,
        flags: &[String],
    ) -> Result<Compilation> {
        span!("compile", kernel = name, arch = arch);
        let file = format!("{name}.cu");
        let Some(cubin) = self.cubin else { unreachable!("Found::search: `meets` needs it") };
        let compiled = self.translate(&file, source, flags, cubin);
        let (cubin, log) = compiled.map_err(|(reason, log)| Error::Compile {
            name: name.to_owned(),
            arch: arch.to_string(),
            reason,
            listing: listing(&log, &file, source),
        })?;
        Ok(Compilation { cubin, log })
    }

    /// Translates one file. Returns the output and the log, or the reason for a failure and the
    /// log.
    fn translate(
        &self,
        file: &str,
        source: &str,
        flags: &[String],
        output: Output,
    ) -> Result<(Vec<u8>, String), (String, String)> {
        let failed = |reason: String| (reason, String::new());
        let c_string = |text: &str| {
            CString::new(text).map_err(|_| failed("the text contains a NUL byte".to_owned()))
        };
        let (c_source, c_name) = (c_string(source)?, c_string(file)?);
        let c_flags = flags.iter().map(|f| c_string(f)).collect::<Result<Vec<CString>, _>>()?;
        let flag_pointers: Vec<*const c_char> = c_flags.iter().map(|f| f.as_ptr()).collect();
        let flag_count = c_int::try_from(flag_pointers.len())
            .map_err(|_| failed("too many options".to_owned()))?;

        let mut handle = ptr::null_mut();
        // SAFETY: both strings are NUL-terminated and outlive the program; there are no headers.
        let status = unsafe {
            (self.create)(
                &mut handle,
                c_source.as_ptr(),
                c_name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if status != SUCCESS {
            return Err(failed(self.describe(status)));
        }
        let program = Program { nvrtc: self, handle };
        // SAFETY: the handle is live, and the pointers refer to `flag_count` NUL-terminated
        // strings.
        let status = unsafe { (self.compile)(handle, flag_count, flag_pointers.as_ptr()) };
        let log = program.bytes(self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
        let done = if status == SUCCESS { program.bytes(output) } else { Err(status) };
        match done {
            Ok(bytes) => Ok((bytes, log)),
            Err(status) => Err((self.describe(status), log)),
        }
    }

    /// NVRTC's name of a status.
    fn describe(&self, status: Status) -> String {
        // SAFETY: the function takes any value and returns a static string or null.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return format!("NVRTC status {status}");
        }
        // SAFETY: the pointer is not null, so it refers to a NUL-terminated string of static
        // lifetime.
        let text = unsafe { CStr::from_ptr(text) };
        let text = text.to_string_lossy().into_owned();
        if text.contains("BUILTIN") {
            return format!(
                "{text}: the library libnvrtc-builtins, of the same version, must be next to NVRTC"
            );
        }
        text
    }
}

/// Functions that return the size and the content of an output of a program.
#[derive(Clone, Copy)]
struct Output {
    size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    content: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
}

impl Output {
    /// Looks up `name` and the function of its size.
    ///
    /// # Safety
    /// The functions must have the types of nvrtc.h for outputs.
    #[allow(unsafe_code, reason = "a symbol's type cannot be checked")]
    unsafe fn find(library: &Library, name: &str) -> Result<Self, String> {
        // SAFETY: the caller ensures that the types are right.
        unsafe {
            let size = symbol(library, &format!("{name}Size"))?;
            Ok(Self { size, content: symbol(library, name)? })
        }
    }
}

/// Number of the build in PTX, from the comment `release 13.0, V13.0.88`.
fn build_in(ptx: &str, (major, minor): Release) -> Option<u32> {
    let (_, rest) = ptx.split_once(&format!("V{major}.{minor}."))?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// NVRTC program, destroyed when dropped.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

#[allow(unsafe_code, reason = "calls of the C library")]
impl Program<'_> {
    /// Reads an output of the program.
    fn bytes(&self, output: Output) -> Result<Vec<u8>, Status> {
        let mut len = 0;
        // SAFETY: the handle is live and the pointer valid for the call.
        let status = unsafe { (output.size)(self.handle, &mut len) };
        if status != SUCCESS {
            return Err(status);
        }
        let mut bytes = vec![0_u8; len];
        // SAFETY: the buffer has as many bytes as the library will write.
        let status = unsafe { (output.content)(self.handle, bytes.as_mut_ptr().cast()) };
        if status == SUCCESS { Ok(bytes) } else { Err(status) }
    }
}

#[allow(unsafe_code, reason = "a call of the C library")]
impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is live and never used again. A failure leaks a little memory.
        unsafe { (self.nvrtc.destroy)(&mut self.handle) };
    }
}

/// Architectures for which NVRTC compiles. Empty if the library cannot list them.
#[allow(unsafe_code, reason = "calls of the C library")]
fn supported_archs(library: &Library) -> Vec<u32> {
    type Number = unsafe extern "C" fn(*mut c_int) -> Status;
    // SAFETY: nvrtc.h declares this type for both functions, unchanged since CUDA 11.2.
    let found = unsafe {
        let count: Result<Number, String> = symbol(library, "nvrtcGetNumSupportedArchs");
        count.and_then(|count| Ok((count, symbol::<Number>(library, "nvrtcGetSupportedArchs")?)))
    };
    let Ok((count, all)) = found else { return Vec::new() };
    let mut len = 0;
    // SAFETY: the pointer is valid for the call.
    let status = unsafe { count(&mut len) };
    let mut archs = vec![0; usize::try_from(len).unwrap_or(0)];
    // SAFETY: the array has as many elements as the library will write.
    if status != SUCCESS || unsafe { all(archs.as_mut_ptr()) } != SUCCESS {
        return Vec::new();
    }
    archs.into_iter().flat_map(u32::try_from).collect()
}

/// Looks up a function of NVRTC.
///
/// # Safety
/// `F` must be the function's type.
#[allow(unsafe_code, reason = "a symbol's type cannot be checked")]
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller ensures that the type is right.
    unsafe { library::symbol(library, name, "NVRTC") }
}

/// Builtins libraries in the directory of NVRTC, which NVRTC will request from the loader by name.
fn builtins_beside(library: &Path) -> Vec<PathBuf> {
    files_beside(library, |name| {
        name.starts_with("libnvrtc-builtins.so") || name.starts_with("nvrtc-builtins64_")
    })
}

#[cfg(test)]
mod tests {
    use super::{build_in, builtins_beside};

    #[test]
    fn the_build_is_read_from_ptx() {
        let ptx = |version: &str| {
            format!("//\n// Cuda compilation tools, release 13.0, {version}\n// Based on NVVM\n")
        };
        for (version, build) in [
            ("V13.0.48", Some(48)),
            ("V13.0.88", Some(88)),
            ("V13.0.0", Some(0)),
            ("V13.1.3", None),
            ("V13.0.", None),
            ("13.0.88", None),
        ] {
            assert_eq!(build_in(&ptx(version), (13, 0)), build, "{version}");
        }
        assert_eq!(build_in("V13.0.48", (13, 0)), Some(48));
        assert_eq!(build_in("", (13, 0)), None);
    }

    #[test]
    fn builtins_are_found_beside_the_library_alone() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str| dir.path().join(name);
        for name in ["libnvrtc.so.13", "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0"] {
            std::fs::write(file(name), b"").expect("writable");
        }
        let found = builtins_beside(&file("libnvrtc.so.13"));
        assert_eq!(found, [file("libnvrtc-builtins.so.13.0")]);
        assert!(builtins_beside(std::path::Path::new("libnvrtc.so.13")).is_empty());
    }
}
