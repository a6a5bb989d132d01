//! Every element type: moves, conversions and arithmetic.

mod gpu;
use gemm_fixtures::elements;
use libtest_mimic::Trial;

fn the_simulator_computes_what_rust_computes() {
    for case in elements::cases() {
        assert!(!case.is_empty(), "{}", case.name);
        let found = case.simulate().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        for (i, (found, expected)) in found.iter().zip(&case.expected).enumerate() {
            let operands: Vec<String> =
                case.inputs.iter().map(|(_, bits)| format!("{:#x}", bits[i])).collect();
            assert_eq!(
                found, expected,
                "{}, element {i} of {operands:?}: {found:#x}, not {expected:#x}",
                case.name
            );
        }
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [simulated![the_simulator_computes_what_rust_computes,], gpu::trials()];
    trials.into_iter().flatten().collect()
}
