//! Source of a kernel, line by line: words with highlighting classes, and the cost of each line.

use gemm_dsl::ir::{Kernel, Space};
use gemm_sim::{Counters, Profile, SassCounters};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// Line of a kernel's source.
#[derive(Clone, Debug, Serialize)]
pub struct SourceLine {
    /// Line number, counted from 1.
    pub number: usize,
    /// Words of the line. Concatenated, they are the whole line.
    pub words: Vec<Word>,
    /// Cost of the statements that begin on the line, if there are any.
    pub charged: Option<LineCost>,
    /// Predicted profiler counts of these statements. `None` if all are 0 or no prediction was
    /// requested.
    pub compiled: Option<MachineCounts>,
}

/// Word of a line with its class for highlighting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// Class in the style sheet, or empty for plain text.
    pub class: &'static str,
    pub text: String,
}

/// Simulated cost of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineCost {
    /// Instructions counted per warp, not per thread.
    pub instructions: u64,
    pub fma: u64,
    pub wavefronts: u64,
    /// Wavefronts caused by bank conflicts: those beyond one for each phase.
    pub conflicts: u64,
    pub sectors: u64,
    pub divergent: u64,
}

impl LineCost {
    fn add(&mut self, c: &Counters) {
        self.instructions += c.instructions;
        self.fma += c.fma;
        self.wavefronts += c.shared_wavefronts;
        self.conflicts += c.shared_bank_conflicts;
        self.sectors += c.global_sectors;
        self.divergent += c.divergent_branches;
    }
}

/// Predicted profiler counts of a line, for the compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MachineCounts {
    /// Warp instructions. `None` if they are unknown, as for kernels with arrays in local memory.
    pub instructions: Option<u64>,
    pub wavefronts: u64,
    /// Wavefronts caused by bank conflicts.
    pub conflicts: u64,
    pub sectors: u64,
}

impl MachineCounts {
    /// Adds loads and stores of each count.
    pub fn from_counts(counts: &SassCounters) -> Self {
        Self {
            instructions: counts.instructions,
            wavefronts: counts.shared_load_wavefronts + counts.shared_store_wavefronts,
            conflicts: counts.shared_load_conflicts + counts.shared_store_conflicts,
            sectors: counts.global_load_sectors + counts.global_store_sectors,
        }
    }
}

/// Returns the lines of a source, each with the cost and the predicted counts of the statements
/// that begin on it. Without a profile, lines have neither.
pub fn lines(
    kernel: &Kernel,
    text: &str,
    places: &[Range<usize>],
    profile: Option<&Profile>,
) -> Vec<SourceLine> {
    let (mut charged, mut compiled) = (HashMap::new(), HashMap::new());
    if let Some(profile) = profile {
        for (place, counters) in places.iter().zip(&profile.statements) {
            if *counters != Counters::default() {
                charged.entry(place.start).or_insert_with(LineCost::default).add(counters);
            }
        }
        for (place, counts) in places.iter().zip(&profile.compiled_statements) {
            if *counts != SassCounters::default() {
                *compiled.entry(place.start).or_insert_with(SassCounters::default) += *counts;
            }
        }
    }
    let names = Names::new(kernel);
    let line = |(at, text): (usize, &str)| SourceLine {
        number: at + 1,
        words: names.words(text),
        charged: charged.get(&at).copied(),
        compiled: compiled.get(&at).map(MachineCounts::from_counts),
    };
    text.lines().enumerate().map(line).collect()
}

const KEYWORDS: [&str; 16] = [
    "const",
    "constexpr",
    "else",
    "extern",
    "for",
    "if",
    "inline",
    "return",
    "static",
    "struct",
    "template",
    "typename",
    "volatile",
    "asm",
    "while",
    "do",
];
const TYPES: [&str; 16] = [
    "bool",
    "char",
    "double",
    "float",
    "float4",
    "int",
    "int4",
    "long",
    "short",
    "signed",
    "size_t",
    "uint4",
    "unsigned",
    "void",
    "__half",
    "__nv_bfloat16",
];

/// Style class of each name that the kernel declares.
struct Names<'k>(HashMap<&'k str, &'static str>);

impl<'k> Names<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        let buffers = kernel.buffers.iter().map(|buffer| {
            let class = match buffer.space {
                Space::Global => "global",
                Space::Shared => "shared",
                Space::Register => "register",
            };
            (&*buffer.name, class)
        });
        let barriers = kernel.mbarriers.iter().map(|barrier| (&*barrier.name, "shared"));
        Self(buffers.chain(barriers).collect())
    }

    fn class(&self, word: &str) -> &'static str {
        if let Some(class) = self.0.get(word) {
            return class;
        }
        if KEYWORDS.contains(&word) {
            "keyword"
        } else if TYPES.contains(&word) {
            "type"
        } else if word.starts_with("__") || is_own(word) {
            "cuda"
        } else {
            ""
        }
    }

    /// Splits a line into words. The text between two words is a word without a class.
    fn words(&self, line: &str) -> Vec<Word> {
        let word = |class, text: &str| Word { class, text: text.to_owned() };
        if line.trim_start().starts_with('#') {
            return vec![word("directive", line)];
        }
        let (code, comment) = match line.find("//") {
            Some(at) => line.split_at(at),
            None => (line, ""),
        };
        let mut words: Vec<Word> = Vec::new();
        let mut rest = code;
        while !rest.is_empty() {
            let quoted = rest.starts_with('"').then(|| rest[1..].find('"').map(|end| end + 2));
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let (class, end) = match (quoted.flatten(), rest.find(|c| !is_word(c))) {
                (Some(end), _) => ("string", end),
                (None, Some(0)) => ("", rest.chars().next().map_or(1, char::len_utf8)),
                _ if rest.starts_with(|c: char| c.is_ascii_digit()) => ("number", number(rest)),
                (None, end) => {
                    let end = end.unwrap_or(rest.len());
                    (self.class(&rest[..end]), end)
                }
            };
            match words.last_mut() {
                Some(last) if class.is_empty() && last.class.is_empty() => {
                    last.text.push_str(&rest[..end]);
                }
                _ => words.push(word(class, &rest[..end])),
            }
            rest = &rest[end..];
        }
        if !comment.is_empty() {
            words.push(word("comment", comment));
        }
        words
    }
}

/// True for the built-in coordinates of CUDA.
fn is_own(word: &str) -> bool {
    matches!(word, "threadIdx" | "blockIdx" | "blockDim" | "gridDim")
}

/// Returns the length in bytes of the number at the start of a text, including its fraction,
/// exponent and suffix.
fn number(text: &str) -> usize {
    let is_hexadecimal = text.starts_with("0x");
    let mut before = ' ';
    let is_past = |c: char| {
        let is_exponent = if is_hexadecimal { "pP" } else { "eE" }.contains(before);
        let is_part = c.is_ascii_alphanumeric() || c == '.' || is_exponent && "+-".contains(c);
        before = c;
        !is_part
    };
    text.find(is_past).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_word() {
        let words = |line: &str| Names(HashMap::new()).words(line);
        let numbers = |line: &str| -> Vec<String> {
            let numbers = words(line).into_iter().filter(|word| word.class == "number");
            numbers.map(|word| word.text).collect()
        };
        assert_eq!(numbers("x = 0.25f * y1 - 1e-5f+2;"), ["0.25f", "1e-5f", "2"]);
        assert_eq!(numbers("0x1e-3, 0x1.8p+1f, a[16u].x"), ["0x1e", "3", "0x1.8p+1f", "16u"]);
        for line in ["x = 0.25f * y1 - 1e-5f+2;", "a[0].x = \"1.5\"; // 2.5"] {
            let text: String = words(line).into_iter().map(|word| word.text).collect();
            assert_eq!(text, line);
        }
    }
}
