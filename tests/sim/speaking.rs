//! Blocks that speak to one another, and warps with roles.

use gemm_tests::speaking;

#[test]
fn what_blocks_leave_is_known_on_paper() {
    for kernel in speaking::kernels() {
        let found = kernel.simulate().unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        assert_eq!(found, kernel.after, "{}", kernel.name);
    }
}
