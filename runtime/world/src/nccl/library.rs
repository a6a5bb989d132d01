//! The NCCL library, loaded once per process.

use super::NcclResult;
use super::config::OLDEST;
use super::functions::{Code, Functions, IN_PROGRESS, SUCCESS, UniqueId};
use crate::WorldError;
use gemm_runtime::internal::{Candidate, LibrarySpec, Places, SearchPlace, find_at, open, symbol};
use std::ffi::{c_char, c_int};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Search for NCCL. The wheels `nvidia-nccl-*` are searched before toolkits, which rarely contain
/// NCCL. A wheel contains only `libnccl.so.2`; development packages also contain the name without a
/// number.
static NCCL: LibrarySpec = LibrarySpec {
    name: "NCCL",
    variable: "GEMM_NCCL_PATH",
    names: &["libnccl.so.2", "libnccl.so"],
    is_file: is_nccl,
    order: [SearchPlace::Loader, SearchPlace::Wheels, SearchPlace::Toolkits],
};

/// Returns true for a file name of NCCL itself, not of a plugin such as `libnccl-net.so`.
fn is_nccl(name: &str) -> bool {
    name == "libnccl.so" || name.starts_with("libnccl.so.")
}

/// Loaded NCCL library. It is never unloaded, because it has its own threads.
pub struct Library {
    pub(super) functions: Functions,
    version: u32,
    path: PathBuf,
    _library: ManuallyDrop<libloading::Library>,
}

/// Result of loading a candidate: the library, or the reason for its rejection.
type Tried = Result<Library, String>;

impl Library {
    /// Returns the NCCL library of this process. `GEMM_NCCL_PATH` selects it. Otherwise it is the
    /// first library of version 2.22 or later. The loader's path is searched first, then the Python
    /// wheels of the virtual environment and of `GEMM_PYTHON`, then the CUDA toolkits.
    ///
    /// All ranks must load the same version. NCCL compares the versions, and fails if they differ.
    ///
    /// # Errors
    /// [`WorldError::NcclMissing`] if no library is found, [`WorldError::NcclOld`] if all libraries
    /// are older than [`OLDEST`].
    pub fn load() -> NcclResult<Arc<Self>> {
        static LIBRARY: OnceLock<NcclResult<Arc<Library>>> = OnceLock::new();
        LIBRARY.get_or_init(|| Self::found(|load| Places::from_env(&NCCL).find(load))).clone()
    }

    /// Loads the NCCL library from a file or a directory, regardless of the environment. Each call
    /// loads the library anew.
    ///
    /// # Errors
    /// Same as [`Library::load`].
    pub fn at(path: &Path) -> NcclResult<Arc<Self>> {
        Self::found(|load| find_at(path, &NCCL, load))
    }

    fn found(
        find: impl FnOnce(&mut dyn FnMut(&Candidate) -> Tried) -> Result<Self, Vec<String>>,
    ) -> NcclResult<Arc<Self>> {
        let mut old = None;
        let found = find(&mut |candidate| Self::open(candidate, &mut old));
        found.map(Arc::new).map_err(|searched| old.unwrap_or(WorldError::NcclMissing { searched }))
    }

    /// Loads a candidate. If it is too old, and is the first such candidate, `old` receives it.
    #[allow(unsafe_code, reason = "NCCL is a C library, loaded at run time")]
    fn open(candidate: &Candidate, old: &mut Option<WorldError>) -> Tried {
        let path = match candidate {
            Candidate::Name(name) => Path::new(name),
            Candidate::File(path) => path,
        };
        let library = open(path)?;
        // SAFETY: nccl.h declares this type in all versions.
        let version: unsafe extern "C" fn(*mut c_int) -> Code =
            unsafe { symbol(&library, "ncclGetVersion", "NCCL")? };
        let path = file_of(version as *const () as usize).unwrap_or_else(|| path.to_owned());
        let mut number = 0;
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { version(&mut number) };
        let number = match u32::try_from(number) {
            Ok(number) if code == SUCCESS => number,
            _ => return Err(format!("{}: ncclGetVersion returned {code}", path.display())),
        };
        if number < OLDEST {
            let path = path.display().to_string();
            let why = format!("{path}: too old");
            old.get_or_insert(WorldError::NcclOld { path, has: number, need: OLDEST });
            return Err(why);
        }
        let functions =
            Functions::load(&library).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self { functions, version: number, path, _library: ManuallyDrop::new(library) })
    }

    /// Version in NCCL's numbering: 22809 is 2.28.9.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Path of the library file, or the name passed to the loader if the system does not report the
    /// path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if exchanges within one process access the buffers of other ranks directly, so
    /// that all devices of the process must be able to access them. This is the case before 2.24,
    /// unless the environment sets `NCCL_P2P_DIRECT_DISABLE=1`.
    pub fn reaches_into_buffers(&self) -> bool {
        let is_set = |value: String| value.trim().parse::<i64>().is_ok_and(|number| number != 0);
        self.version < 22_400 && !std::env::var("NCCL_P2P_DIRECT_DISABLE").is_ok_and(is_set)
    }

    /// Returns a new id for a communicator. One rank calls this method once and passes the id to
    /// all ranks. NCCL opens a port, at which this rank waits for the others.
    ///
    /// # Errors
    /// [`WorldError::Nccl`] if NCCL fails.
    #[allow(unsafe_code, reason = "a call of the C library")]
    pub fn unique_id(&self) -> NcclResult<[u8; 128]> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { (self.functions.unique_id)(&mut id) };
        self.done("the name of a communicator", code)?;
        Ok(id.0)
    }

    /// Checks the code of an operation that is complete when its call returns.
    pub(super) fn done(&self, doing: &str, code: Code) -> NcclResult<()> {
        if code == SUCCESS { Ok(()) } else { Err(self.failure(doing, code)) }
    }

    /// Checks the code of an operation that may continue after its call. Returns true if the
    /// operation is complete.
    pub(super) fn begun(&self, doing: &str, code: Code) -> NcclResult<bool> {
        if code == IN_PROGRESS { Ok(false) } else { self.done(doing, code).map(|()| true) }
    }

    #[allow(unsafe_code, reason = "calls of the C library")]
    fn failure(&self, doing: &str, code: Code) -> WorldError {
        // SAFETY: the function accepts any value, and returns a static text or null.
        let meaning = unsafe { text((self.functions.error_string)(code)) };
        // SAFETY: NCCL does not read the communicator, which may be null (`ncclGetLastError` in
        // `src/init.cc`).
        let last = unsafe { text((self.functions.last_error)(std::ptr::null_mut())) };
        let mut text = meaning.unwrap_or_else(|| "NCCL has no text for this code".to_owned());
        if let Some(last) = last {
            text = format!("{text}; its last error was: {last}");
        }
        WorldError::Nccl { doing: doing.to_owned(), code, text }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, path, .. } = self;
        f.debug_struct("Library")
            .field("version", version)
            .field("path", path)
            .finish_non_exhaustive()
    }
}

/// Copies a text of NCCL, trimmed. Returns `None` for null or an empty text.
///
/// # Safety
/// The pointer is null, or the bytes up to the next zero are readable.
#[allow(unsafe_code, reason = "a text of the C library")]
unsafe fn text(pointer: *const c_char) -> Option<String> {
    /// Size in bytes of the array with NCCL's last error. Other threads may be writing it.
    const LONGEST: usize = 1024;
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller ensures that all bytes up to the first zero are readable. No byte after it
    // is read.
    let bytes = (0..LONGEST).map(|at| unsafe { pointer.cast::<u8>().add(at).read_volatile() });
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the file from which Linux has mapped an address of this process.
fn file_of(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bound = |text| usize::from_str_radix(text, 16).ok();
        range.is_some_and(|(from, to)| {
            bound(from).is_some_and(|from| from <= address)
                && bound(to).is_some_and(|to| address < to)
        })
    })?;
    line.find('/').and_then(|at| line.get(at..)).map(PathBuf::from)
}
