//! CUDA sources that a GPU compiles in place of generated sources, so that one process can time two
//! sources of one kernel.

use super::Gpu;
use std::collections::HashMap;
use std::sync::PoisonError;

/// CUDA source that is compiled in place of a generated source.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Name of the kernel in `source`.
    pub kernel: String,
    /// CUDA C of that kernel.
    pub source: String,
}

/// Replacements, by the generated source that each replaces.
pub(super) type Replacements = HashMap<String, Replacement>;

impl Gpu {
    /// Compiles `replacement` wherever a later launch would compile `source`. Kernels that are
    /// already loaded are not replaced.
    ///
    /// # Safety
    /// The contract of the replaced kernel still checks the launches. The replacement must
    /// therefore have the same parameters, access only the same elements, and need neither more
    /// threads nor more dynamic shared memory.
    #[allow(unsafe_code, reason = "a launch passes arguments that the text is trusted to take")]
    pub unsafe fn replace_source(&self, source: String, replacement: Replacement) {
        let replacements = self.replacements.lock();
        replacements.unwrap_or_else(PoisonError::into_inner).insert(source, replacement);
    }

    /// Returns the replacement of a generated source.
    pub(super) fn replacement(&self, source: &str) -> Option<Replacement> {
        let replacements = self.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        replacements.get(source).cloned()
    }
}
