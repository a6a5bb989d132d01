//! The names that a text may use.

use crate::target::reserved::is_reserved;
use std::collections::BTreeSet;

/// The most characters of a name that a user gives. A longer one serves nobody: it stands in messages
/// and texts, and a kernel's names files.
pub(crate) const MAX_NAME: usize = 128;

/// Whether a name can be that of a kernel, a parameter or a variable in CUDA C.
pub(crate) fn is_free(name: &str) -> bool {
    is_identifier(name) && !is_reserved(name)
}

/// Whether a name is made of ASCII letters, digits and `_`, and starts with no digit.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    head && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A name without underscores before it, behind it, or in a row: C++ keeps two of them for itself,
/// and what a user's name is joined to brings one of its own.
pub(crate) fn joined(name: &str) -> String {
    let parts: Vec<&str> = name.split('_').filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

/// Names of a text, each given once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// All names but these.
    pub(crate) fn without(taken: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(taken.into_iter().map(Into::into).collect())
    }

    /// A name of the user as the text may spell it: no word of C++, no function of the kernel, nothing
    /// that looks like a macro, and none that is taken already, since two arms may define the same.
    pub(crate) fn fresh(&mut self, name: &str) -> String {
        let joined = joined(name);
        let is_word = joined.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = if is_word { joined.as_str() } else { "v" };
        let is_macro = |name: &str| name.len() > 1 && !name.contains(|c: char| c.is_lowercase());
        let taken = |name: &str| {
            !is_free(name) || name.ends_with("_f32") || is_macro(name) || self.0.contains(name)
        };
        let lower = plain.to_lowercase();
        let plain = if is_macro(plain) { &lower } else { plain };
        // A capital that stands alone looks like a macro with a number behind it.
        let stem = if plain.len() == 1 { &lower } else { plain };
        let numbered = |n: usize| if n == 1 { plain.to_owned() } else { format!("{stem}_{n}") };
        let fresh = (1..).map(numbered).find(|name| !taken(name));
        let Some(fresh) = fresh else { unreachable!("there is always another number") };
        self.0.insert(fresh.clone());
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, is_free};

    /// Whatever the name, even one that every kernel has, or one that could only be a macro's.
    #[test]
    fn there_is_always_another_name() {
        let mut names = Names::default();
        let mut given = std::collections::BTreeSet::new();
        for name in
            ["A", "B", "M", "X", "_", "1", "_1", "A1", "AB", "x", "while", "Q_", "v1", "A_2"]
        {
            for _ in 0..4 {
                let fresh = names.fresh(name);
                assert!(is_free(&fresh), "{fresh}");
                assert!(given.insert(fresh.clone()), "{fresh}");
            }
        }
    }

    #[test]
    fn what_is_taken_is_free_with_a_number_behind_it() {
        let taken = [
            "atomicAdd",
            "atomicCAS_block",
            "atomic_add_acquire",
            "atomic_compare_exchange_acq_rel_block_shared",
            "named_barrier",
            "fence_acq_rel_block",
            "load16",
            "copy_wait",
            "float4",
            "while",
            "fmaf",
        ];
        for name in taken {
            assert!(!is_free(name), "{name}");
            // Who seeks another name finds one this way, or would never end.
            assert!(is_free(&format!("{name}_2")), "{name}");
        }
        for name in ["atomic", "atomics", "atomic_number", "atomic_add", "block_shared"] {
            assert!(is_free(name), "{name}");
        }
    }
}
