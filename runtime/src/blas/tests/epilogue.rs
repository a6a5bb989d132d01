//! Rules of the tables with the epilogue of a call.

use super::*;

/// Epilogue that adds vectors with one element for each column of C to the accumulator.
fn sum_of_vectors(count: usize) -> CallEpilogue {
    let names: Vec<String> = (0..count).map(|n| format!("x{n}")).collect();
    // An expression has at most 64 levels, and each `+` of a sum is one.
    let parts: Vec<_> = names.chunks(20).map(|names| format!("({})", names.join(" + "))).collect();
    let text = format!("|acc, {}[n]| acc + {}", names.join("[n], "), parts.join(" + "));
    CallEpilogue::new(text.parse().expect("sound"))
}

/// Each rule takes an epilogue with a few operands or with a long expression, for each kind of
/// call, and its blocks still fit the SM of its architecture.
#[test]
fn every_rule_takes_an_epilogue() {
    let long = "|acc, c[m, n], r[m, n], s[m], x[n], y[n], z| { \
        let t = gelu(acc + x); let u = gelu(c + s); gelu(t * u) + gelu(r + y) * gelu(t + z) }";
    let epilogues = ["|acc, bias[n]| gelu(acc + bias)", long];
    let epilogues = epilogues.map(|text| CallEpilogue::new(text.parse().expect("sound")));
    for (arch, shipped, batches) in tables() {
        let sm = ALL.iter().find(|sm| sm.arch == arch);
        for row in 0..shipped.table.rules().len() {
            for (n, epilogue) in epilogues.iter().enumerate() {
                // Every kind of call occurs with every epilogue, but not with every rule.
                let (layout, at) = (LAYOUTS[(row + n) % 4], row / 4 + n);
                let (padded, scaled) = (at % 2 == 1, at / 2 % 2 == 1);
                let batch = batches[row % batches.len()];
                let asked = CallFeatures { scaled, batch, epilogue: Some(epilogue) };
                let spec = shipped.spec(row, layout, padded, asked);
                let spec = spec.unwrap_or_else(|faults| panic!("sm_{arch}, rule {row}: {faults}"));
                assert_eq!(spec.epilogue.as_ref(), Some(&epilogue.expression));
                let shared = spec.plan().expect("sound").shared_bytes();
                let of_all = |reserved| u64::from(spec.resident_blocks()) * (shared + reserved);
                let fits = match sm {
                    Some(sm) => {
                        shared <= sm.shared_per_block
                            && of_all(sm.shared_reserved) <= sm.shared_bytes
                    }
                    None => shared <= STATIC_SHARED_BYTES,
                };
                assert!(fits, "sm_{arch}: {shared} bytes: {spec}");
            }
        }
    }
}

/// A rule without registers for the operands of an epilogue is skipped, and the next rule that
/// matches is taken. If no rule can take them, the call fails with the reason.
#[test]
fn the_next_rule_takes_what_a_rule_cannot() {
    let shipped = Tables::for_arch(Some(90), Accuracy::Ieee).table(CallFeatures::default());
    let target = Target { arch: 90, sms: 132 };
    let (mut skipped, mut refused) = (0, 0);
    for (count, size) in [1, 3, 6, 9, 12, 20, 40, 200].into_iter().flat_map(|count| {
        [(64, 64, 512), (512, 512, 512), (4096, 4096, 4096), (128, 8192, 1024)]
            .map(|size| (count, size))
    }) {
        let problem = SgemmProblem { shape: size.into(), target };
        let epilogue = sum_of_vectors(count);
        let asked = CallFeatures { epilogue: Some(&epilogue), ..CallFeatures::default() };
        let first = shipped.table.rule(&problem).expect("in range");
        let takes = |rule: &usize| shipped.spec(*rule, GemmLayout::Nn, false, asked).is_ok();
        let mut matching = vec![first];
        while let Some(next) =
            shipped.table.rule_from(&problem, matching[matching.len() - 1] + 1).expect("in range")
        {
            matching.push(next);
        }
        let expected = matching.iter().copied().find(takes);
        for _ in 0..2 {
            let chosen = shipped.chosen(&problem, asked);
            assert_eq!(chosen.as_ref().ok().map(|(rule, _)| *rule), expected, "{count}: {size:?}");
            match (chosen, expected) {
                (Ok((rule, line)), _) => {
                    let spec = shipped.spec(rule, GemmLayout::Nn, false, asked).expect("sound");
                    assert_eq!(line, spec.to_string());
                    let choice = shipped.choice(&problem, asked).expect("in range");
                    assert_eq!((choice.rule, choice.spec.as_str()), (rule, line));
                    skipped += usize::from(rule != first);
                }
                (Err(error), _) => {
                    assert!(error.to_string().contains("registers"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(skipped > 0 && refused > 0, "{skipped} skipped, {refused} refused");
}
