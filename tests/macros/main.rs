//! The macros can be used in constants, in constant arrays, in a user's own macros, and under
//! another crate name. A macro call has the same kernel as the spec that is parsed at run time.

mod constants;
mod operands;
mod reductions;
mod tables;

use gemm_dsl::plan::SgemmPlan;
use gemm_dsl::{Plan, cuda};
use gemm_runtime::{Device, Error, ReduceKernel, ReduceSpec, SgemmKernel, SgemmSpec};
use gemm_runtime::{reduce_kernel, sgemm_kernel};

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 256, items: 4, shuffle);
static GEMM: SgemmKernel = sgemm_kernel!(tile: 128x128x8, thread: 8x8, double_buffer);

const REDUCTIONS: &[ReduceKernel] = &[
    SUM,
    reduce_kernel!(),
    reduce_kernel!(op: prod, block: 32),
    reduce_kernel! { op: max, tree: interleaved, unroll_last_warp, name: largest },
    reduce_kernel![op: min, tree: interleaved_divergent, block: 1024, float4, items: 2],
];

const PRODUCTS: [SgemmKernel; 5] = [
    sgemm_kernel!(),
    sgemm_kernel!(block: 8x32, lanes: m, coarsen: 2, unroll: 4, partials: 2),
    sgemm_kernel!(
        tile: 64x64x16, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 2, warp: 16x32, raster: 4, order: row_serpentine, blocks_per_sm: 2
    ),
    sgemm_kernel!(tile: 32x32x8, thread: 2x2, prefetch, bounds: aligned, pitched),
    sgemm_kernel!(name: mine),
];

#[test]
fn a_macro_makes_what_the_line_makes_at_run_time() -> Result<(), Error> {
    for kernel in REDUCTIONS {
        let spec: ReduceSpec = kernel.spec_line().parse()?;
        assert_eq!(ReduceKernel::new(spec)?, *kernel);
    }
    for kernel in PRODUCTS.iter().chain([&GEMM]) {
        let spec: SgemmSpec = kernel.spec_line().parse()?;
        assert_eq!(SgemmKernel::new(spec)?, *kernel);
    }
    let spec = SgemmSpec::default().double_buffer(true);
    let (tile, thread) =
        (gemm_runtime::spec::Tile::new(128, 128, 8), gemm_runtime::spec::Rect::new(8, 8));
    assert_eq!(SgemmKernel::new(spec.tile(tile).thread(thread))?.source(), GEMM.source());
    Ok(())
}

#[test]
fn order_defaults_brackets_and_commas_make_no_difference() {
    for same in [
        sgemm_kernel!(double_buffer, thread: 8x8, tile: 128x128x8),
        sgemm_kernel!(tile: 128x128x8, thread: 8x8, double_buffer, fragment: blocked, pad_a: 0,),
        sgemm_kernel! { <tile: 128x128x8, thread: 8x8, double_buffer> },
        sgemm_kernel![<tile: 128x128x8, thread: 8x8, double_buffer,>],
        gemm_runtime::sgemm_kernel!(tile:128x128x8,thread:8x8,double_buffer),
    ] {
        assert_eq!(same, GEMM);
    }
    assert_eq!(reduce_kernel!(<>), reduce_kernel!());
}

/// Kernel of a macro call, and the spec as text.
macro_rules! both {
    ($($spec:tt)*) => {
        (sgemm_kernel!($($spec)*), stringify!($($spec)*))
    };
}

#[test]
fn an_epilogue_of_tokens_is_the_one_of_their_text() -> Result<(), Error> {
    for (kernel, text) in [
        both!(epilogue: |acc| gelu(acc)),
        both!(block: 8x32, coarsen: 2, epilogue: |sum,| { sum }, name: same),
        both!(
            tile: 64x64x8, thread: 4x4, float4,
            epilogue: |acc| clamp(-acc * 1.5e-3 + 0.25e1, -0.5, 1_0.0)
        ),
        both!(
            epilogue: |x|
                if x>=0.0&&x!=1.||!(row<=col) { --x } else if m*n%7==k { x/2. } else { 1e-45 }
        ),
        both!(tile: 32x32x8, thread: 2x2, stages: 3, pitched, epilogue: |acc| {
            let float = 0.5 * acc; // a word of C++
            let t = (fma(float, float, f32(row - col)));
            max(t, if col > row { float } else { 0.0 },)
        }),
    ] {
        let spec: SgemmSpec = text.parse()?;
        assert!(spec.epilogue.is_some(), "{text}");
        assert_eq!(kernel.spec_line().parse(), Ok(spec.clone()), "{text}");
        assert_eq!(kernel.spec_line(), spec.to_string(), "{text}");
        let program = spec.plan()?.program()?;
        assert_eq!(kernel.spec_line().parse::<SgemmPlan>()?.program()?, program, "{text}");
        assert_eq!(kernel.source(), cuda::source(program.preferred()), "{text}");
    }
    Ok(())
}

macro_rules! square {
    ($op:ident, $block:literal) => {
        reduce_kernel!(op: $op, block: $block)
    };
    ($tile:tt) => {
        sgemm_kernel!(tile: $tile, thread: 2x2)
    };
}

macro_rules! stored {
    (again: $stored:expr) => {
        stored!($stored)
    };
    (scaled: $factor:expr) => {
        sgemm_kernel!(epilogue: |acc| acc * $factor)
    };
    ($stored:expr) => {
        sgemm_kernel!(block: 8x8, epilogue: $stored, coarsen: 2)
    };
}

#[test]
fn a_macro_of_the_users_may_pass_an_expression() {
    let relu = sgemm_kernel!(block: 8x8, coarsen: 2, epilogue: |acc| max(acc, 0.0));
    assert_eq!(stored!(|acc| max(acc, 0.0)), relu);
    assert_eq!(stored!(again: |acc| max(acc, 0.0)), relu);
    let scaled = sgemm_kernel!(epilogue: |acc| acc * (1.0 + 0.5));
    assert_eq!(stored!(scaled: 1.0 + 0.5), scaled);
}

#[test]
fn a_macro_of_the_users_may_pass_parts_of_a_spec() {
    assert_eq!(square!(max, 64), reduce_kernel!(op: max, block: 64));
    assert_eq!(square!(16x16x4), sgemm_kernel!(tile: 16x16x4, thread: 2x2));
}

#[test]
fn a_renamed_dependency_works() -> Result<(), Error> {
    use gemm_tests_renamed as renamed;
    assert_eq!(renamed::MAX, reduce_kernel!(op: max, block: 64));
    assert_eq!(renamed::GEMM, sgemm_kernel!(tile: 32x32x8, thread: 2x2));
    assert_eq!(renamed::unhygienic(), sgemm_kernel!(block: 8x8));
    let device = Device::simulator();
    assert_eq!(renamed::MAX.run(&device, &[1.0, 3.0, 2.0])?, 3.0);
    assert_eq!(renamed::GEMM.run(&device, &[1.0, 2.0], &[3.0, 4.0], (1, 1, 2))?, [11.0]);
    Ok(())
}
