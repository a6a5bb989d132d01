//! Prints a few kernels.
use gemm_dsl::spec::*;
fn main() {
    let base = ReduceSpec::default();
    let specs = [
        base.clone().tree(Tree::InterleavedDivergent),
        base.clone().tree(Tree::Interleaved).op(Op::Max),
        base.clone().items(2).unroll_last_warp(true),
        base.clone().tree(Tree::Interleaved).unroll_last_warp(true),
        base.clone().items(4).shuffle(true).float4(true),
    ];
    for (i, s) in specs.iter().enumerate() {
        let p = gemm_dsl::lower::reduce(&s.plan().unwrap()).unwrap();
        let t = gemm_dsl::cuda::source(&p.kernel);
        std::fs::write(format!("/tmp/show{i}.cu"), &t).unwrap();
        println!("{t}\n------");
    }
}
