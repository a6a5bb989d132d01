//! Stages of a ladder on the page of a macro.

use super::{COLUMNS, paragraph, parts};
use gemm_dsl::spec::Spec;
use gemm_dsl::stages::Stage;

/// Stages of a ladder, in columns.
pub(super) fn lines<S: Spec>(ladder: &[Stage<S>]) -> String {
    let about = "Number, name and keys of each stage. A kernel of these keys is";
    let mut text = paragraph(&format!("{about} `{}!(keys)`.", S::MACRO)) + "\n```text\n";
    for Stage { index, name, spec, .. } in ladder {
        let head = format!("{index:2} {name:24}");
        let mut line = head.clone();
        for part in parts(&spec.to_string()) {
            if line.len() > head.len() && line.len() + part.len() > COLUMNS {
                text += &format!("{}\n", line.trim_end());
                line = " ".repeat(head.len());
            }
            line += &format!("{part} ");
        }
        text += &format!("{}\n", line.trim_end());
    }
    text + "```\n"
}
