//! Rules that no problem can reach.

use super::*;
use crate::expr::random::Random;

/// Rules that only just can be reached are accepted.
#[test]
fn rows_for_what_is_left_are_rows() {
    for text in [
        "m <= 8 => ; m <= 9 => ; else =>",
        "m <= 8 && n <= 8 => ; m <= 8 => ; n <= 8 => ; m > 9 => ; m == 9 && aligned => ; else =>",
        "waves(8x8) > 1.0 => ; waves(8x8) <= 1.0 => ; else =>",
        "m % 4 == 0 => ; m % 4 != 0 => ; else =>",
        "m != 4 => ; m == 4 => unroll: 2; else =>",
        "nn => ; nt => ; tn => ; else =>",
        "nn => ; nt => ; tn => ; tt => ; else =>",
    ] {
        // Nothing is left for these rules: no other integer and no other layout.
        let expected = usize::from(text.starts_with("m != 4") || text.contains("tt"));
        assert_eq!(faults(text).len(), expected, "{text}");
    }
}

/// Reachability is also known for a long table.
#[test]
fn a_long_table_has_no_row_to_which_nothing_comes() {
    let many: String = (1..60).map(|i| format!("m <= {i} && k <= {} => ;", 100 - i)).collect();
    let only = "nt && k > 200 => tile: 64x30x16, thread: 4x2, float4";
    assert_eq!(faults(&format!("{many} {only}; else =>")), []);
    let dead = faults(&format!("{many} {only}; nt && k > 300 => ; else =>"));
    assert!(matches!(dead.as_slice(), [(at, _)] if at == "nt && k > 300"), "{dead:?}");
    // An unreachable rule is checked nevertheless.
    let told = faults("m < 2 => ; m < 1 => tile: 8x8x8, thread: 3x3; else =>");
    assert_eq!(told.len(), 2, "{told:?}");
}

/// A rule is reported as unreachable only if no problem chooses it.
#[test]
fn no_problem_comes_to_a_row_that_is_told() {
    let atoms = [
        "m <= 3",
        "m == 2",
        "m != 1",
        "n > 2",
        "3 >= n",
        "aligned",
        "m % 2 == 0",
        "waves(1x1) > 0.01",
    ];
    let mut random = Random(5);
    let (mut told, mut rest) = (0, 0);
    for _ in 0..gemm_cases::scaled(3_000) {
        let mut pick = |n: usize| random.bits() as usize % n;
        let mut conditions = Vec::new();
        for _ in 0..1 + pick(4) {
            let mut when = atoms[pick(atoms.len())].to_owned();
            for _ in 0..pick(3) {
                let not = ["", "!"][pick(2)];
                let sign = ["&&", "||"][pick(2)];
                when = format!("({when}) {sign} {not}({})", atoms[pick(atoms.len())]);
            }
            conditions.push(when);
        }
        let rows: Vec<String> = conditions.iter().map(|when| format!("{when} => ;\n")).collect();
        let faults = faults(&format!("{}else =>", rows.concat()));
        if faults.iter().any(|(_, message)| message.starts_with("rule ")) {
            continue;
        }
        let dead: Vec<&String> = faults.iter().map(|(at, _)| at).collect();
        // Tests each condition alone, if some problem reaches it.
        let alone: Vec<Table> = conditions
            .iter()
            .filter_map(|when| format!("{when} => ; else => unroll: 2").parse().ok())
            .collect();
        if alone.len() < conditions.len() {
            continue;
        }
        let mut comes = vec![false; conditions.len() + 1];
        for n in 0..98 {
            let shape = SgemmShape::from((n % 7, n / 7 % 7, 4)).aligned(n >= 49);
            let problem = SgemmProblem { shape, target: Target::H200 };
            let holds = |table: &Table| table.choose(&problem) == Ok(0);
            comes[alone.iter().position(holds).unwrap_or(conditions.len())] = true;
        }
        for (n, when) in conditions.iter().map(String::as_str).chain(["else"]).enumerate() {
            let is_told = dead.iter().any(|at| *at == when);
            assert!(!is_told || !comes[n], "{when}: {rows:?}");
            told += usize::from(is_told);
            rest += usize::from(!is_told);
        }
    }
    assert!(told.min(rest) > gemm_cases::scaled(300), "{told} {rest}");
}
