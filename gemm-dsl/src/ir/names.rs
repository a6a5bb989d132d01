//! Names that the CUDA source may use.

use crate::target::reserved::is_reserved;
use std::collections::BTreeSet;

/// Maximum length of a name that a user gives, in characters. Such names appear in messages, in
/// sources, and, for kernels, in file names.
pub(crate) const MAX_NAME: usize = 128;

/// Returns true if a kernel, parameter or variable in CUDA C++ can have this name.
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

/// Lists names in a sentence: `a`, `a and b`, or `a, b and c`.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, others @ [_, ..])) => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Removes leading, trailing and repeated underscores. C++ reserves names with two consecutive
/// underscores, and a prefix for a user's name ends in one.
pub(crate) fn joined(name: &str) -> String {
    let parts: Vec<&str> = name.split('_').filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

/// Set of names in a source; each is used once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    pub(crate) fn without(taken: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(taken.into_iter().map(Into::into).collect())
    }

    /// Returns the spelling of a user's name in the source. It differs from all earlier names,
    /// because both branches of an `if` may define the same name. It is neither a C++ keyword nor a
    /// function of the kernel, and does not look like a macro.
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
        // A single capital letter would look like a macro with a number appended.
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

    /// This holds for every name, including names that all kernels contain and names that look like
    /// macros.
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
    fn reserved_names_get_a_free_number() {
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
            // `Names::fresh` terminates only because of this.
            assert!(is_free(&format!("{name}_2")), "{name}");
        }
        for name in ["atomic", "atomics", "atomic_number", "atomic_add", "block_shared"] {
            assert!(is_free(name), "{name}");
        }
    }
}
