//! Results of an epilogue for given sums, computed without a GEMM.

use crate::beside::Beside;
use crate::product::Size;
use gemm_dsl::ir::{Access, Elem, Expr, Geometry, KernelBuilder, Operand, Special, VerifiedKernel};
use gemm_dsl::spec::{Epilogue, SgemmSpec};
use gemm_sim::{Buffer, SimError};

/// Values that a kernel stores for some elements of C. The elements are given by index, with the
/// sums that a kernel without scale and epilogue stores.
///
/// # Errors
/// Returns an error of the simulator, which evaluates the expression.
pub fn stored(
    spec: &SgemmSpec,
    sums: &[(usize, f32)],
    size: Size,
    beside: &Beside,
) -> Result<Vec<f32>, SimError> {
    let scaled = |&(index, sum): &(usize, f32)| beside.scaled(spec, sum, index, size);
    let scaled: Vec<f32> = sums.iter().map(scaled).collect();
    let Some(epilogue) = spec.epilogue.as_ref().filter(|_| !scaled.is_empty()) else {
        return Ok(scaled);
    };
    // Here every operand has one element per sum, independent of its index.
    let n = size.n;
    let place = |index: usize| (index / n, index % n);
    let given = named(epilogue).filter(|name| *name != "c").count();
    let mut next = beside.operands.len() - given..;
    let mut arrays = vec![Buffer::from_f32(&scaled)];
    for name in named(epilogue) {
        let operand = if name == "c" { None } else { next.next() };
        let value = |index: usize| match (operand, &beside.c) {
            (Some(operand), _) => beside.at(operand, place(index), n),
            (None, Some(c)) => c[index],
            (None, None) => f32::NAN,
        };
        let values: Vec<f32> = sums.iter().map(|(index, _)| value(*index)).collect();
        arrays.push(Buffer::from_f32(&values));
    }
    let places = |of: fn((usize, usize)) -> usize| -> Vec<i32> {
        sums.iter().map(|(index, _)| of(place(*index)) as i32).collect()
    };
    arrays.push(Buffer::from_slice(&places(|(row, _)| row)));
    arrays.push(Buffer::from_slice(&places(|(_, col)| col)));
    arrays.push(Buffer::zeros(scaled.len()));
    gemm_sim::launch(&kernel(epilogue, size, sums.len()), &arrays, &[])?;
    Ok(arrays[arrays.len() - 1].to_vec())
}

/// Operand names of an epilogue, without the sum.
fn named(epilogue: &Epilogue) -> impl Iterator<Item = &str> {
    epilogue.closure().params().iter().skip(1).map(|param| param.name.as_str())
}

const THREADS: u32 = 128;

/// Kernel with one thread for each of `len` sums.
fn kernel(epilogue: &Epilogue, Size { m, n, k: depth }: Size, len: usize) -> VerifiedKernel {
    let mut b = KernelBuilder::new("epilogues");
    let values = epilogue.closure().params().len();
    let mut read = Vec::new();
    for i in 0..values + 2 {
        let elem = if i < values { Elem::F32 } else { Elem::I32 };
        read.push(b.global(&format!("x{i}"), elem, Operand::Input(i)));
    }
    let c = b.global("C", Elem::F32, Operand::Output(0));
    for buffer in read.iter().copied().chain([c]) {
        b.shape(buffer, [Expr::U64(len as u64)], [1.into()]);
    }
    let blocks = Expr::U64(len.div_ceil(THREADS as usize) as u64);
    let grid = [blocks, Expr::U64(1), Expr::U64(1)];
    b.geometry(Geometry { block: (THREADS, 1), grid, blocks_per_sm: Some(1) });
    let lowered = epilogue.closure().lower(&mut b);
    let e = b.let_("e", Expr::from(Special::BlockX) * THREADS as i32 + Special::ThreadX);
    let [m, n, depth, len] = [m, n, depth, len].map(|extent| Expr::from(extent as i32));
    b.if_(Expr::from(e).lt(len), |b| {
        let mut read = read.iter().map(|array| Access::new(*array, [e.into()]).load());
        let params: Vec<Expr> = read.by_ref().take(values).collect();
        let place: Vec<Expr> = read.collect();
        let value = lowered.apply(params, |name| match name {
            "m" => m.clone(),
            "n" => n.clone(),
            "k" => depth.clone(),
            "row" => place[0].clone(),
            "col" => place[1].clone(),
            other => unreachable!("an epilogue has no `{other}`"),
        });
        b.store(Access::new(c, [e.into()]), value);
    });
    b.finish().unwrap_or_else(|error| unreachable!("a sound closure makes a valid kernel: {error}"))
}
