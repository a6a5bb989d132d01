//! Kernels with inter-block synchronisation, and warps with roles.

mod gpu;
use gemm_fixtures::inter_block_sync;
use libtest_mimic::Trial;

fn simulated_results_match_hand_computed_ones() {
    for kernel in inter_block_sync::kernels() {
        let found = kernel.simulate().unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        assert_eq!(found, kernel.after, "{}", kernel.name);
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [simulated![simulated_results_match_hand_computed_ones,], gpu::trials()];
    trials.into_iter().flatten().collect()
}
