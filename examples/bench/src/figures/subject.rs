//! Texts that decide a figure, by name:
//!
//! * `sgemm/22_fastest`: a pinned spec, named after its snapshot.
//! * `gemm SPEC`, `reduce SPEC`: a spec.
//! * `table ACCURACY`: all kernels of the table that `sgemm` uses on an H200, and its conditions.
//! * `rows TABLE FOLD`: the kernels that the program `rows` launches.
//! * `times SET`: the programs of a set in `tests/data/profiler/times.csv`.
//!
//! Scalar variants are included for tables only: other figures are measured on aligned operands.

use super::times;
use crate::cli::Failure;
use crate::rows::launch::KernelChoice;
use crate::rows::problem::Kind;
use crate::rows::shapes;
use crate::texts;
use crate::texts::folder::key;
use gemm_dsl::ir::Variant;
use gemm_dsl::plan::{ReducePlan, SgemmPlan};
use gemm_dsl::spec::{Accuracy, SgemmSpec};
use gemm_dsl::stages::pinned::{self, PinnedSpec};
use gemm_dsl::tables::KernelTable;
use gemm_dsl::{Plan, SpecErrors, cuda};
use gemm_runtime::compile::Arch;
use gemm_runtime::sgemm_tables;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Architecture of the measured GPUs.
const ARCH: u32 = 90;

/// Kernels whose texts are hashed, or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// Kernels of a pinned spec, by their key.
    Pinned(String),
    /// Kernels that a spec launches on aligned operands.
    Gemm(String),
    Reduction(String),
    /// All kernels of a spec.
    EveryVariant(String),
    Text(String),
}

/// Returns the hash of the texts of each list of names.
///
/// # Errors
/// Returns [`Failure::Usage`] for an unknown name, and the faults of a spec.
pub fn hashes<'n>(lists: impl IntoIterator<Item = &'n [String]>) -> Result<Vec<String>, Failure> {
    let lists: Vec<&[String]> = lists.into_iter().collect();
    let names: BTreeSet<&String> = lists.iter().copied().flatten().collect();
    let named = names.into_par_iter().map(|name| Ok((name, subjects(name)?)));
    let named: BTreeMap<&String, BTreeSet<Subject>> = named.collect::<Result<_, Failure>>()?;
    let pinned = pinned::all()?;
    // Tables share most of their specs.
    let all: BTreeSet<&Subject> = named.values().flatten().collect();
    let texts = all.into_par_iter().map(|subject| Ok((subject, subject.texts(&pinned)?)));
    let texts: BTreeMap<&Subject, Vec<String>> = texts.collect::<Result<_, Failure>>()?;
    let hash = |list: &&[String]| {
        let subjects: BTreeSet<&Subject> = list.iter().flat_map(|name| &named[name]).collect();
        texts::hash(subjects.iter().flat_map(|subject| &texts[subject]))
    };
    Ok(lists.par_iter().map(hash).collect())
}

impl Subject {
    fn texts(&self, pinned: &[PinnedSpec]) -> Result<Vec<String>, Failure> {
        Ok(match self {
            Self::Pinned(name) => {
                let spec = pinned.iter().find(|spec| key(spec, "") == *name);
                let kernels = &spec.ok_or_else(|| unknown(name))?.kernels;
                let kernels = kernels.iter().filter(|kernel| kernel.variant != Variant::Scalar);
                kernels.map(cuda::source).collect()
            }
            Self::Gemm(line) => {
                let program = line.parse::<SgemmPlan>()?.program()?;
                program.launched().map(cuda::source).collect()
            }
            Self::Reduction(line) => {
                let program = line.parse::<ReducePlan>()?.program()?;
                program.launched().map(cuda::source).collect()
            }
            Self::EveryVariant(line) => {
                let program = line.parse::<SgemmPlan>()?.program()?;
                program.variants().chain(program.launched()).map(cuda::source).collect()
            }
            Self::Text(text) => vec![text.clone()],
        })
    }
}

fn unknown(name: &str) -> Failure {
    Failure::Usage(format!("`{name}` names no texts"))
}

fn subjects(name: &str) -> Result<BTreeSet<Subject>, Failure> {
    let Some((kind, rest)) = name.split_once(' ') else {
        return Ok(BTreeSet::from([Subject::Pinned(name.to_owned())]));
    };
    let found = match kind {
        "gemm" => BTreeSet::from([Subject::Gemm(rest.to_owned())]),
        "reduce" => BTreeSet::from([Subject::Reduction(rest.to_owned())]),
        "table" => table(rest.parse().map_err(|_| unknown(name))?)?,
        "rows" => rows(rest)?,
        "times" => times::specs(rest).into_iter().map(Subject::Gemm).collect(),
        _ => BTreeSet::new(),
    };
    if found.is_empty() { Err(unknown(name)) } else { Ok(found) }
}

/// Text of the table that `sgemm` uses, and all of its kernels.
fn table(accuracy: Accuracy) -> Result<BTreeSet<Subject>, SpecErrors> {
    let [table, _] = sgemm_tables(Some(Arch::sm(ARCH)), accuracy);
    let read: KernelTable<SgemmSpec> = table.text().parse()?;
    let plans = read.rules().iter().flat_map(|rule| rule.kernels());
    let kernels = plans.map(|plan| Subject::EveryVariant(plan.spec().to_string()));
    Ok(kernels.chain([Subject::Text(table.text().to_owned())]).collect())
}

/// Kernels that the program `rows` launches for a table and a fold.
fn rows(of: &str) -> Result<BTreeSet<Subject>, Failure> {
    let (table, fold) = of.split_once(' ').unwrap_or((of, ""));
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.name() == table);
    let problems = kinds.flat_map(|kind| shapes::problems(kind, false));
    let problems = problems.filter(|problem| problem.fold.name() == fold);
    let chosen = problems
        .map(|problem| Ok(Subject::Reduction(KernelChoice::new(&problem)?.spec.to_string())));
    chosen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(names: &[&str]) -> Result<String, Failure> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(hashes([&*names])?.remove(0))
    }

    #[test]
    fn names_have_the_texts_that_are_launched() {
        let fastest = gemm_dsl::stages::sgemm().into_iter().find(|stage| stage.name == "fastest");
        let fastest = format!("gemm {}", fastest.expect("a stage").spec);
        assert_eq!(hash(&["sgemm/22_fastest"]).ok(), hash(&[&fastest]).ok());
        assert_eq!(hash(&["reduce/02_sequential"]).ok(), hash(&["reduce op: sum"]).ok());
        let mut all = BTreeSet::new();
        let names =
            ["table ieee", "rows rows sum", "rows rows max", "rows whole sum", "times large"];
        for name in names {
            all.insert(hash(&[name]).expect(name));
        }
        assert_eq!(all.len(), names.len());
        let both = hash(&["sgemm/22_fastest", "sgemm/02_naive"]).expect("two stages");
        assert_eq!(hash(&["sgemm/02_naive", "sgemm/22_fastest"]).ok(), Some(both));
    }

    #[test]
    fn unknown_subjects_are_rejected() {
        for name in ["sgemm/22", "table fast", "rows rows mean", "times sgemm", "spec tile: 8x8x8"]
        {
            let error = hash(&[name]).expect_err(name).to_string();
            assert!(error.contains(&format!("`{name}` names no texts")), "{error}");
        }
        assert!(hash(&["gemm tile: 32x"]).is_err());
    }
}
