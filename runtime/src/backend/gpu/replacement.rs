//! Texts that a GPU compiles in place of generated ones, so that two texts of one kernel can be
//! timed in one process.

use super::Gpu;
use std::collections::HashMap;
use std::sync::PoisonError;

/// Text that is compiled in place of a generated one.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Name of the kernel in `source`.
    pub kernel: String,
    /// CUDA C of that kernel.
    pub source: String,
}

/// Replacements by the text that they replace.
pub(super) type Replacements = HashMap<String, Replacement>;

impl Gpu {
    /// Compiles another text wherever a later launch would compile `source`. Kernels that are
    /// loaded already stay.
    ///
    /// # Safety
    /// The other kernel must have the same parameters, keep to the same arrays, and need neither
    /// more threads nor more dynamic shared memory: launches are checked by the contract of the
    /// replaced one.
    #[allow(unsafe_code, reason = "a launch passes arguments that the text is trusted to take")]
    pub unsafe fn replace_source(&self, source: String, replacement: Replacement) {
        let replacements = self.replacements.lock();
        replacements.unwrap_or_else(PoisonError::into_inner).insert(source, replacement);
    }

    /// Returns the name and the text of a kernel, or those that replace them.
    pub(super) fn replaced(&self, kernel: &str, source: String) -> (String, String) {
        let replacements = self.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        match replacements.get(&source) {
            Some(Replacement { kernel, source }) => (kernel.clone(), source.clone()),
            None => (kernel.to_owned(), source),
        }
    }
}
