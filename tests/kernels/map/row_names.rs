//! Names of definitions in kernels that fold over rows: any name that a definition may have.

use super::row_clusters::{kernels, program, run};
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::spec::MapSpec;
use libtest_mimic::Trial;
use std::collections::BTreeSet;

/// Spec with a fold of this name, and with folds that have other variables.
fn folded(name: &str) -> String {
    format!(
        "|x[m, n], y[m, n]: bf16, gamma[n]| -> (f32, f32[m], i64[m]) {{
            let {name} = sum(x * x);
            let high = max(y);
            let e = exp(x - {name} / f32(n));
            (e / sum(e) * gamma, {name} + high, max(col))
        }}, block: 32, items: 1, name: kernel_of_rows"
    )
}

/// Spec with a value of a row that has this name.
fn computed(name: &str) -> String {
    format!(
        "|x[m, n], y[m, n]: bf16, gamma[n]| {{
            let high = max(y);
            let {name} = high / f32(n);
            x * {name} + gamma
        }}, block: 32, items: 1, name: kernel_of_rows"
    )
}

/// Identifiers in the sources of a program.
fn identifiers(program: &VerifiedProgram) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for kernel in program.launched() {
        let source = cuda::source(kernel);
        let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words = words.filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()));
        found.extend(words.map(str::to_owned));
    }
    found
}

/// Every identifier of a source is the name of a definition in another spec. The language itself
/// rejects some; all others give the same values.
fn every_identifier_may_be_a_definition() {
    let ordinary = program(&folded("ordinary"));
    let results = |program: &VerifiedProgram| {
        let kernels = kernels(program, 1040);
        assert_eq!(kernels.len(), 4, "two for clusters, and two for blocks");
        let found = kernels.iter().map(|kernel| run(kernel, program, [3, 1040]));
        found.collect::<Result<Vec<_>, _>>().expect("no fault")
    };
    let expected = results(&ordinary);
    let mut names = identifiers(&ordinary);
    names.extend(identifiers(&program(&computed("ordinary"))));
    let mut taken = 0;
    for name in &names {
        if ["x", "y", "gamma", "high", "e"].contains(&name.as_str()) {
            continue;
        }
        if let Err(error) = folded(name).parse::<MapSpec>().and_then(|spec| spec.plan()) {
            let error = error.to_string();
            let reasons = ["is reserved", "is a function", "expected a name"];
            assert!(reasons.iter().any(|reason| error.contains(reason)), "{name}: {error}");
            continue;
        }
        program(&computed(name));
        assert_eq!(results(&program(&folded(name))), expected, "{name}");
        taken += 1;
    }
    for name in ["values", "next", "clusters", "ordinary_of_warps", "ordinary_of_blocks"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    assert!(taken > 60, "{taken}");
}

pub fn trials() -> Vec<Trial> {
    simulated![every_identifier_may_be_a_definition]
}
