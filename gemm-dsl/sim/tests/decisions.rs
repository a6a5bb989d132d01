//! Reasons stated in a plan's decisions, compared with the simulator's counts.

use gemm_dsl::Plan;
use gemm_dsl::plan::SgemmPlan;
use gemm_dsl::spec::SgemmSpec;
use gemm_sim::{Buffer, launch};

/// Reason that the plan gives for a decision.
fn reason(line: &str, name: &str) -> &'static str {
    let spec: SgemmSpec = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
    let decisions = spec.plan().unwrap_or_else(|e| panic!("{line}: {e}")).decisions();
    let found = decisions.iter().find(|decision| decision.name == name);
    found.unwrap_or_else(|| panic!("{line} decides no `{name}`")).reason
}

/// The plan's statement about bank conflicts of transposing copies agrees with the simulator's
/// counts. Nothing else in these kernels has a conflict.
#[test]
fn copies_that_transpose_are_said_to_use_distinct_banks_where_they_do() {
    let mut told = [0, 0];
    for tile in ["64x64x8", "64x64x16", "32x64x16", "128x64x8"] {
        for (pad, bounds) in
            (0..=28).step_by(4).flat_map(|pad| [(pad, "guarded"), (pad, "aligned")])
        {
            let line = format!(
                "tile: {tile}, thread: 4x4, fragment: split, float4, transpose, stages: 3, \
                 pad_a: {pad}, bounds: {bounds}"
            );
            let (m, n, k) = (128, 64, 32);
            let program = line.parse::<SgemmPlan>().map(|plan| plan.program()).expect("a spec");
            let program = program.expect("a sound spec");
            let buffers = [m * k, k * n, m * n].map(Buffer::zeros);
            let extents = [m, n, k].map(|extent| extent as u64);
            let counted = launch(program.preferred(), &buffers, &extents).expect("a launch");
            let distinct = counted.shared_bank_conflicts == 0;
            let said = reason(&line, "copies of A").contains("without bank conflicts");
            assert_eq!(said, distinct, "{line}: {} conflicts", counted.shared_bank_conflicts);
            told[usize::from(said)] += 1;
        }
    }
    assert!(told.iter().all(|n| *n > 10), "{told:?}");
}
