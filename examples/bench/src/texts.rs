//! Generated CUDA sources, called texts: hashes of their code, folders of texts, and launches of
//! their kernels.

pub mod cases;
pub mod changes;
pub mod entry;
pub mod folder;
pub mod launches;
pub mod machine;
pub mod turns;

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Number of bytes of a hash.
const HASH: usize = 8;

/// Returns a text without comments and blanks. Only this code affects the compiled kernel.
pub fn code(text: &str) -> String {
    text.lines().flat_map(|line| without_comment(line).split_whitespace()).collect()
}

/// Returns a line up to `//`, unless it is part of a string literal.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '/' if !quoted && line[at..].starts_with("//") => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Returns the hash of the [`code`] of several texts: 16 hexadecimal digits of SHA-256. The
/// order of the texts does not matter.
pub fn hash<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let codes: BTreeSet<String> = texts.into_iter().map(|text| code(text.as_ref())).collect();
    let mut hash = Sha256::new();
    for code in codes {
        hash.update(code);
        hash.update("\n");
    }
    let mut digits = String::new();
    for byte in &hash.finalize()[..HASH] {
        // Writing to a string cannot fail.
        _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_are_no_code() {
        let text =
            "// A title.\n\nint a = 1;   // one\n    asm(\"// \\\" no // comment\"); // but this\n";
        assert_eq!(code(text), "inta=1;asm(\"//\\\"no//comment\");");
        assert_eq!(code("int a = 4 / 2 / 1;"), "inta=4/2/1;");
    }

    #[test]
    fn a_hash_follows_from_the_code_of_all_texts() {
        let [a, b] = ["int a; // one\n", "int b;\n"];
        assert_eq!(hash([a, b]), hash(["int b;", "\nint\n  a;", "int a;"]));
        assert_eq!(hash([a, b]).len(), 2 * HASH);
        for other in [&[a][..], &[a, "int c;"], &[]] {
            assert_ne!(hash([a, b]), hash(other));
        }
        // SHA-256 of the code.
        assert_eq!(hash(["a b c // d"]), "edeaaff3f1774ad2");
    }
}
