//! Kernels with inter-block synchronisation, and warps with roles.

mod gpu;
use gemm_fixtures::inter_block_sync;
use libtest_mimic::Trial;

fn what_blocks_leave_is_known_on_paper() {
    for kernel in inter_block_sync::kernels() {
        let found = kernel.simulate().unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        assert_eq!(found, kernel.after, "{}", kernel.name);
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [simulated![what_blocks_leave_is_known_on_paper,], gpu::trials()];
    trials.into_iter().flatten().collect()
}
