//! Names that the CUDA source may use.

use crate::target::reserved::is_reserved;
use std::collections::BTreeSet;

/// Maximum length of a name that a user gives, in characters. Names appear in messages and sources,
/// and a kernel's name in file names.
pub(crate) const MAX_NAME: usize = 128;

/// Returns true if a name can be that of a kernel, a parameter or a variable in CUDA C++.
pub(crate) fn is_free(name: &str) -> bool {
    is_identifier(name) && !is_reserved(name)
}

/// Returns true if a name consists of ASCII letters, digits and `_`, and does not start with a
/// digit.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    head && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Removes leading, trailing and repeated underscores. C++ reserves names with two of them in a
/// row, and joining a user's name to another adds one.
pub(crate) fn joined(name: &str) -> String {
    let parts: Vec<&str> = name.split('_').filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

/// Names of a source, each given once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    pub(crate) fn without(taken: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(taken.into_iter().map(Into::into).collect())
    }

    /// Spelling of a user's name in the source. It is no C++ keyword, no function of the kernel,
    /// does not look like a macro, and is not taken, since two arms may define the same name.
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
        // A single capital looks like a macro once a number is appended.
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

    /// Holds for every name, even one that every kernel has or one that looks like a macro.
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
            // `Names::fresh` relies on this to terminate.
            assert!(is_free(&format!("{name}_2")), "{name}");
        }
        for name in ["atomic", "atomics", "atomic_number", "atomic_add", "block_shared"] {
            assert!(is_free(name), "{name}");
        }
    }
}
