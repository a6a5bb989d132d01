//! Names that a user chooses, together with names of the generated source.

use super::{reduce, shard};
use crate::cuda;
use crate::ir::VerifiedProgram;
use crate::spec::ReduceSpec;
use std::collections::BTreeSet;

/// Specs in which `$` stands for a user's name.
const LINES: &[&str] = &[
    "map: |$, y| $ * y, finish: |s, len| s / len, launch: once",
    "map: |x| { let $ = x * x; $ + x }, finish: |s| { let $ = s + 1.0; $ * $ }, over: rows",
    "map: |$| $ * $, over: rows, group: 256, pitched, float4, blocks: 4, launch: once",
    "map: |$, y| $ * y, over: middle, pitched, group: 4",
    "map: |$| $ + 1.0, over: segments, group: 8",
    "op: argmin, map: |$| $ - 1.0, over: columns, blocks: 4",
    "op: logsumexp, map: |$, y| $ + y",
    "op: mean_var, map: |$| $ * $, over: rows, group: 8",
    "fold: |$, b| $ * b, identity: 1.0, map: |x| x + 1.0",
    "fold: |a, b| a * b, identity: 1.0, map: |$| { let b = exp($); b / 2.0 }",
    "op: sum, compensated, map: |$| $ * $",
    "op: argmax, map: |$, y| $ + y, run: 512",
    "op: mean_var, map: |x| { let $ = x * x; $ + x }, over: middle, run: 32, launch: once",
];

/// Names that C++ reserves, or that have another meaning.
const OTHERS: &[&str] = &[
    "_", "x_", "__x", "x__y", "A", "in", "in_", "int", "__half", "N", "output", "mean", "var",
    "offsets",
];

fn identifiers(line: &str) -> BTreeSet<String> {
    let spec: ReduceSpec = line.replace('$', "own").parse().expect(line);
    let plan = spec.plan().expect(line);
    let mut programs = vec![reduce(&plan).expect(line)];
    programs.extend(spec.run.map(|_| shard(&plan).expect(line)));
    let mut all: BTreeSet<String> = OTHERS.iter().map(|name| (*name).to_owned()).collect();
    for kernel in programs.iter().flat_map(VerifiedProgram::variants) {
        let source = cuda::source(kernel);
        let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        all.extend(words.filter(is_name).map(str::to_owned));
    }
    all
}

#[test]
fn users_may_reuse_all_generated_names() {
    for line in LINES {
        let (mut built, names) = (0, identifiers(line));
        for name in &names {
            // Keywords and names of results are rejected by other checks.
            let Ok(spec) = line.replace('$', name).parse::<ReduceSpec>() else { continue };
            let Ok(plan) = spec.plan() else { continue };
            let mut programs = vec![reduce(&plan)];
            programs.extend(spec.run.map(|_| shard(&plan)));
            for program in programs {
                program.unwrap_or_else(|error| panic!("{spec}: {error}"));
            }
            built += 1;
        }
        assert!(10 * built > 7 * names.len(), "{line}: {built} of {}", names.len());
    }
}
