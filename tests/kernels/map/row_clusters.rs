//! Rows that a cluster of blocks keeps: all kernels for rows of a length give the same bits, on
//! GPUs with and without clusters, and every barrier is needed.

use crate::planted_faults::without_barrier;
use gemm_dsl::Plan as _;
use gemm_dsl::ir::contract::{Contract, Parameter};
use gemm_dsl::ir::program::KernelId;
use gemm_dsl::ir::{
    Elem, Extent, Operand, Scope, Source, Variant, VerifiedKernel, VerifiedProgram,
};
use gemm_dsl::plan::MapPlan;
use gemm_oracle::random::Random;
use gemm_sim::{Buffer, FaultKind, SimError};
use libtest_mimic::Trial;

const SOFTMAX: &str =
    "|x[m, n]| { let top = max(x); let e = exp(x - top); e / sum(e) }, block: 32, items: 1";
/// Two folds in one pass, a fold of an operand that depends on the column, and results of the row.
const NORM: &str = "|x[m, n], y[m, n]: bf16, gamma[n]| -> (f32, f32[m], i64[m]) {
    let h = x + y;
    let mean = sum(h) / f32(n);
    let low = min(x);
    let d = h - mean;
    let scale = rsqrt(sum(d * d) / f32(n) + 1e-5);
    (d * scale * gamma, mean + low, max(col))
}, block: 32, items: 1";
const INTEGERS: &str = "|x[m, n]: i8| -> i64[m] sum(x) - max(x) * min(x), block: 64, items: 1";

pub(super) fn program(line: &str) -> VerifiedProgram {
    let plan: MapPlan = line.parse().expect("a sound spec");
    plan.program().expect("a sound program")
}

/// Kernels of a program for rows of `n` columns, in order of preference.
pub(super) fn kernels(program: &VerifiedProgram, n: u64) -> Vec<VerifiedKernel> {
    let values = program
        .bind(&[(Extent::M, 3), (Extent::N, n), (Extent::SMS, 132)], &[])
        .expect("all extents");
    let launches = program.launches(&values).expect("a launch");
    let [launch] = &launches[..] else { panic!("one launch computes the rows") };
    launch.choose.iter().map(|id: &KernelId| program.kernel(*id).clone()).collect()
}

/// Operands with random elements, and results of rows of `n` elements, without padding.
fn arrays(program: &VerifiedProgram, m: usize, n: usize) -> Vec<(Operand, Buffer)> {
    let mut random = Random::new(n as u64);
    let len = |rank: usize, operand: Operand| match rank {
        1 if operand == Operand::Input(2) => n,
        1 => m,
        _ => m * n,
    };
    let inputs = program.inputs.iter().map(|array| {
        let bits = (0..len(array.dims.len(), array.operand)).map(|_| match array.elem {
            Elem::Bf16 => 0x3f80 + random.bits() % 0x100,
            Elem::I8 => random.bits() % 256,
            _ => {
                let value = (random.bits() % 4096) as f32 / 255.0 - 8.0;
                value.to_bits().into()
            }
        });
        (array.operand, Buffer::from_bits(array.elem, bits.collect::<Vec<u64>>().into_iter()))
    });
    let inputs: Vec<_> = inputs.collect();
    let outputs = program.outputs.iter().map(|array| {
        let len = len(array.dims.len(), array.operand);
        (array.operand, Buffer::zeros_of(array.elem, len))
    });
    inputs.into_iter().chain(outputs).collect()
}

/// Launches a kernel on rows without padding, and returns the bits of the results.
pub(super) fn run(
    kernel: &VerifiedKernel,
    program: &VerifiedProgram,
    [m, n]: [usize; 2],
) -> Result<Vec<Vec<u64>>, SimError> {
    let arrays = arrays(program, m, n);
    let contract: &Contract = kernel.contract();
    let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
    for parameter in &contract.params {
        match parameter {
            Parameter::Array(of) => {
                let found = arrays.iter().find(|(operand, _)| *operand == of.operand);
                buffers.push(found.expect("an array of the program").1.clone());
            }
            Parameter::Scalar { source: Source::Extent(Extent::M), .. } => scalars.push(m as u64),
            // The first of two clusters computes two of three rows.
            Parameter::Scalar { source: Source::Extent(Extent::CLUSTERS), .. } => scalars.push(2),
            Parameter::Scalar { source: Source::Extent(_), .. } => scalars.push(n as u64),
            Parameter::Scalar { source: Source::Stride { dim: 0, .. }, .. } => {
                scalars.push(n as u64);
            }
            Parameter::Scalar { .. } => scalars.push(1),
        }
    }
    gemm_sim::launch(kernel, &buffers, &scalars)?;
    let is_result = |operand: &Operand| matches!(operand, Operand::Output(_));
    Ok(arrays.iter().filter(|(operand, _)| is_result(operand)).map(|(_, b)| b.bits()).collect())
}

/// The kernels of a cluster, of which a GPU without clusters takes none, and those of a block have
/// the same bits at the ends of all classes.
fn a_cluster_and_a_block_give_the_same_bits() {
    for (line, wide) in [(SOFTMAX, 512), (NORM, 1024), (INTEGERS, 4096)] {
        let program = program(line);
        let mut clusters = Vec::new();
        for longest in [2, 4, 8].map(|blocks| blocks * wide) {
            let shortest = longest / 2 + 1;
            for n in [shortest, longest / 2 + 16, longest - 1, longest] {
                let kernels = kernels(&program, n as u64);
                let optional: Vec<u32> = kernels
                    .iter()
                    .filter(|kernel| kernel.contract().is_optional)
                    .map(|kernel| kernel.contract().cluster)
                    .collect();
                let blocks = if longest == 2 * wide { 4 } else { 8 };
                assert_eq!(optional, [blocks; 2], "{n}");
                assert_eq!(kernels.len(), 4);
                clusters.extend(optional);
                let takes = kernels.iter().filter(|kernel| {
                    let is_vector = kernel.contract().variant == Variant::Vector;
                    !is_vector || n % 16 == 0
                });
                let found: Vec<_> = takes
                    .map(|kernel| {
                        assert_eq!(kernel.min_arch(), if kernel.cluster > 1 { 90 } else { 75 });
                        run(kernel, &program, [3, n]).unwrap_or_else(|e| panic!("{n}: {e}"))
                    })
                    .collect();
                assert!(found.len() > 1 && found.iter().all(|bits| *bits == found[0]), "{n}");
            }
        }
        clusters.dedup();
        assert_eq!(clusters, [4, 8]);
        // Longer rows have no kernel of a cluster.
        let long = kernels(&program, 8 * wide as u64 + 1);
        assert!(long.iter().all(|kernel| !kernel.is_optional && kernel.cluster == 1));
    }
}

/// Without any one barrier, the simulator reports a fault.
fn every_barrier_is_needed() {
    let program = program(SOFTMAX);
    let mut removed = [0; 2];
    for kernel in kernels(&program, 1000) {
        for (scope, removed) in [Scope::Block, Scope::Cluster].into_iter().zip(&mut removed) {
            let faulty = (0..).map_while(|nth| without_barrier(&kernel, scope, nth));
            for (nth, faulty) in faulty.enumerate() {
                let error = run(&faulty, &program, [3, 1000]);
                let Err(SimError::Fault(fault)) = error else {
                    panic!("{}: nothing found without barrier {nth} of {scope:?}", kernel.name)
                };
                let is_expected = match fault.kind {
                    FaultKind::Race { .. } | FaultKind::Uninitialised { .. } => true,
                    FaultKind::Mbarrier { .. } => scope == Scope::Cluster,
                    _ => false,
                };
                assert!(is_expected, "{fault}");
                *removed += 1;
            }
        }
    }
    // Two folds: in a cluster one barrier of the block each, in a block two.
    assert_eq!(removed, [2 * 2 + 2 * 4, 2]);
}

pub fn trials() -> Vec<Trial> {
    simulated![a_cluster_and_a_block_give_the_same_bits, every_barrier_is_needed]
}
