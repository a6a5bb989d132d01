//! Texts that differ between two builds. For each, the module checks that a launch of this build
//! can run the text of either build.

use super::code;
use super::entry::Entry;
use super::folder::{KernelText, Texts, key};
use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::stages::pinned::PinnedSpec;

/// Differences between the texts of two builds.
#[derive(Debug)]
pub struct Changes<'s> {
    pub specs: Vec<ChangedSpec<'s>>,
    /// Keys of texts that only the old build has, and of texts that only the new build has.
    pub missing: [Vec<String>; 2],
}

/// Spec whose texts differ.
#[derive(Debug)]
pub struct ChangedSpec<'s> {
    pub spec: &'s PinnedSpec,
    /// Kernels whose texts differ.
    pub kernels: Vec<&'s VerifiedKernel>,
    /// Reasons why this build cannot launch a text, each with the key of the text.
    pub refused: Vec<String>,
}

impl<'s> Changes<'s> {
    /// Compares the texts of an old and of a new build. `generated` contains the texts of this
    /// build, whose launches run both texts.
    pub fn new(specs: &'s [PinnedSpec], generated: &Texts, [old, new]: [&Texts; 2]) -> Self {
        let mut changed = Vec::new();
        for spec in specs {
            let mut found = ChangedSpec { spec, kernels: Vec::new(), refused: Vec::new() };
            for kernel in &spec.kernels {
                let key = key(spec, PinnedSpec::suffix(kernel));
                let (Some(before), Some(after)) = (old.get(&key), new.get(&key)) else { continue };
                if code(&before.source) == code(&after.source) {
                    continue;
                }
                found.kernels.push(kernel);
                let own = generated.get(&key);
                for text in [before, after] {
                    let refused = own.and_then(|own| refusal(own, text));
                    found.refused.extend(refused.map(|reason| format!("{key}: {reason}")));
                }
            }
            if !found.kernels.is_empty() {
                changed.push(found);
            }
        }
        let only = |texts: &Texts, other: &Texts| {
            texts.keys().filter(|key| !other.contains_key(*key)).cloned().collect()
        };
        Self { specs: changed, missing: [only(old, new), only(new, old)] }
    }
}

/// Reason why a launch of this build cannot run `other` instead of its own text.
fn refusal(own: &KernelText, other: &KernelText) -> Option<String> {
    let (Some(expected), Some(found)) = (Entry::new(&own.source), Entry::new(&other.source)) else {
        return Some("the text contains no kernel".to_owned());
    };
    if expected.parameters != found.parameters {
        let [expected, found] = [expected, found].map(|entry| entry.parameters.join(", "));
        return Some(format!("its parameters are ({found}), this build passes ({expected})"));
    }
    match (own.dynamic_shared, other.dynamic_shared) {
        (Some(own), Some(other)) if other > own => {
            Some(format!("it needs {other} bytes of dynamic shared memory, this build gives {own}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::generated;
    use super::*;
    use gemm_dsl::stages::pinned;

    #[test]
    fn only_code_that_differs_is_a_change() {
        let specs = pinned::all().expect("sound");
        let new = generated(&specs);
        let mut old = new.clone();
        let change = |old: &mut Texts, key: &str, from: &str, to: &str| {
            let text = old.get_mut(key).expect(key);
            assert!(text.source.contains(from), "{key}");
            text.source = text.source.replace(from, to);
        };
        change(&mut old, "sgemm/02_naive", "// Consecutive threads", "// Threads");
        change(&mut old, "sgemm/05_shared_tile", "acc", "sum");
        change(&mut old, "sgemm/22_fastest.scalar", "int M, int N", "int M, long N");
        change(&mut old, "reduce/05_shuffle", "reduce_", "other_");
        old.get_mut("sgemm/38_tma").expect("it").dynamic_shared = Some(1 << 20);
        change(&mut old, "sgemm/38_tma", "tid", "thread");
        old.remove("batch/pointers");
        old.insert("sgemm/99_gone".to_owned(), new["sgemm/02_naive"].clone());

        let changes = Changes::new(&specs, &new, [&old, &new]);
        let stems: Vec<&str> = changes.specs.iter().map(|found| &*found.spec.stem).collect();
        assert_eq!(stems, ["05_shuffle", "05_shared_tile", "22_fastest", "38_tma"]);
        assert!(changes.specs.iter().all(|found| found.kernels.len() == 1));
        assert_eq!(
            changes.missing,
            [vec!["sgemm/99_gone".to_owned()], vec!["batch/pointers".to_owned()]]
        );
        let refused: Vec<&[String]> = changes.specs.iter().map(|found| &*found.refused).collect();
        assert!(refused[0].is_empty() && refused[1].is_empty(), "{refused:?}");
        assert!(refused[2][0].contains("parameters are (float*, float*, float*, int, long, int)"));
        assert!(refused[3][0].contains("needs 1048576 bytes"), "{refused:?}");
        assert!(Changes::new(&specs, &new, [&new, &new]).specs.is_empty());
    }
}
