//! Search and loading of C libraries at run time.

mod search;
mod spec;

pub use search::{Candidate, Places, files_beside, find_at};
pub use spec::{LibrarySpec, NVRTC, SearchPlace};

use libloading::Library;
use std::path::Path;

/// Loads the library at a path, or by a name that the loader resolves.
#[allow(unsafe_code, reason = "a library is loaded at run time")]
pub fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: all of these libraries are from NVIDIA, and their initialisers have no preconditions.
    unsafe { Library::new(path) }.map_err(|error| format!("{}: {}", path.display(), causes(&error)))
}

/// Looks up a function of a library. `what` names the expected library in the error.
///
/// # Safety
/// `F` must be the function's type.
#[allow(unsafe_code, reason = "a symbol's type cannot be checked")]
pub unsafe fn symbol<F: Copy>(library: &Library, name: &str, what: &str) -> Result<F, String> {
    // SAFETY: the caller ensures that the type is right.
    let found = unsafe { library.get::<F>(name) }.map(|symbol| *symbol);
    found.map_err(|error| format!("it has no {name}, so it is not {what} ({})", causes(&error)))
}

/// Message of an error with its chain of causes. The loader's own message is the last.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        text = format!("{text}: {cause}");
        behind = cause.source();
    }
    text
}
