//! What an epilogue makes of sums, computed apart from any product.

use gemm_dsl::ir::{Access, Elem, Expr, Geometry, KernelBuilder, Operand, Special, VerifiedKernel};
use gemm_dsl::sim::{self, Buffer};
use gemm_dsl::spec::{Epilogue, SgemmSpec};
use gemm_reference::product::Size;

/// C of the spec, where a kernel without its epilogue stores these sums.
pub fn stored(spec: &SgemmSpec, sums: &[f32], size: Size) -> Vec<f32> {
    let Some(epilogue) = spec.epilogue.as_ref().filter(|_| !sums.is_empty()) else {
        return sums.to_vec();
    };
    let buffers = [Buffer::from_f32(sums), Buffer::zeros(sums.len())];
    let kernel = kernel(epilogue, size);
    sim::launch(&kernel, &buffers, &[]).unwrap_or_else(|error| panic!("`{spec}`: {error}"));
    buffers[1].to_vec()
}

/// Threads of a block.
const THREADS: u32 = 128;

/// A kernel with a thread for each element of C.
fn kernel(epilogue: &Epilogue, Size { m, n, k: depth }: Size) -> VerifiedKernel {
    let mut k = KernelBuilder::new("epilogues");
    let sums = k.global("sums", Elem::F32, Operand::Input(0));
    let c = k.global("C", Elem::F32, Operand::Output(0));
    let len = m * n;
    for buffer in [sums, c] {
        k.shape(buffer, [Expr::U64(len as u64)], [1.into()]);
    }
    let blocks = Expr::U64(len.div_ceil(THREADS as usize) as u64);
    let grid = [blocks, Expr::U64(1), Expr::U64(1)];
    k.geometry(Geometry { block: (THREADS, 1), grid, blocks_per_sm: 1 });
    let lowered = epilogue.closure().lower(&mut k);
    let e = k.let_("e", Expr::from(Special::BlockX) * THREADS as i32 + Special::ThreadX);
    let [m, n, depth, len] = [m, n, depth, len].map(|extent| Expr::from(extent as i32));
    let sum = Access::new(sums, [e.into()]).load();
    let value = lowered.apply([sum], |name| match name {
        "m" => m.clone(),
        "n" => n.clone(),
        "k" => depth.clone(),
        "row" => Expr::from(e) / n.clone(),
        "col" => Expr::from(e) % n.clone(),
        other => unreachable!("an epilogue has no `{other}`"),
    });
    k.if_(Expr::from(e).lt(len), |k| k.store(Access::new(c, [e.into()]), value));
    k.finish().expect("a sound closure makes a valid kernel")
}
