//! The key `epilogue`: what is stored is the expression of the sum that is stored without it.

use gemm_dsl::Family;
use gemm_dsl::cuda;
use gemm_dsl::spec::{Epilogue, SgemmSpec};
use gemm_reference::product::Size;
use gemm_runtime::Device;
use gemm_tests::product::{Placement, Problem};

const TEXT: &str = "|acc| { let t = 0.5 * acc; if col > row && n > 1 { max(t, 0.25) } else { t * \
                    f32(row - col) + f32(m * n + k) } }";

fn expected(sum: f32, (row, col): (usize, usize), Size { m, n, k }: Size) -> f32 {
    let t = 0.5 * sum;
    if col > row && n > 1 {
        t.max(0.25)
    } else {
        t * (row as i64 - col as i64) as f32 + (m * n + k) as f32
    }
}

/// Every way in which a kernel stores C.
const SPECS: &[&str] = &[
    "block: 8x8",
    "block: 8x8, lanes: m, coarsen: 3, partials: 4, unroll: 4",
    "tile: 16x16x8",
    "tile: 32x32x8, thread: 4x4, float4",
    "tile: 32x32x8, thread: 4x4, float4, pitched",
    "tile: 32x32x8, thread: 4x4, fragment: strided, prefetch",
    "tile: 32x64x8, thread: 4x8, fragment: split, float4, transpose, double_buffer",
    "tile: 32x32x8, thread: 4x4, float4, stages: 3, warp: 16x32",
    "tile: 32x32x8, thread: 4x4, float4, stages: 2, blocks_per_sm: 2, pitched",
    "tile: 16x16x8, thread: 4x4, float4, bounds: aligned",
];

#[test]
fn every_kernel_stores_the_expression_of_its_sum() {
    let device = Device::simulator();
    for line in SPECS {
        let plain: SgemmSpec = line.parse().expect("a sound spec");
        let fused: SgemmSpec = format!("{line}, epilogue: {TEXT}").parse().expect("a sound spec");
        let sizes: &[(usize, usize, usize)] = match line.contains("aligned") {
            true => &[(32, 48, 16)],
            false => &[(1, 1, 1), (33, 36, 9), (40, 35, 0), (17, 64, 32)],
        };
        for &(m, n, k) in sizes {
            let size = Size { m, n, k };
            let problem = Problem::new(size, 7);
            let placements = match plain.pitched {
                true => vec![
                    Placement::aligned_rows(plain.layout, size),
                    Placement { padding: [1, 1, 1], ..Default::default() },
                ],
                false => vec![Placement::default()],
            };
            for placement in placements {
                let run = |spec| problem.multiply(&device, spec, placement).expect("a launch").0;
                let (sums, found) = (run(&plain), run(&fused));
                for (i, (sum, found)) in sums.iter().zip(&found).enumerate() {
                    let at = (i / n, i % n);
                    let expected = expected(*sum, at, size);
                    let bits = (found.to_bits(), expected.to_bits());
                    assert_eq!(bits.0, bits.1, "{line} at {size}, {at:?}: {found}, not {expected}");
                }
            }
        }
    }
}

/// The text that a reader of an epilogue sees, and the names that a spec and its kernel have.
#[test]
fn the_text_has_the_epilogue_as_a_function() {
    let relu: Epilogue =
        "|acc|{let float=acc*2.0;relu(float)}".parse().expect("a sound expression");
    let spec = SgemmSpec::default().epilogue(relu);
    assert_eq!(spec.to_string(), "epilogue: |acc| { let float = acc * 2.0; relu(float) }");
    assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
    assert_eq!(spec.kernel_name(), "sgemm_naive_16x16_epilogue_17760c5f");
    let other = SgemmSpec::default().epilogue("|acc| acc".parse().expect("a sound expression"));
    assert_ne!(spec.kernel_name(), other.kernel_name());
    let program = spec.program().expect("a sound spec");
    let source = cuda::source(program.preferred());
    let function = "\
// epilogue: |acc| { let float = acc * 2.0; relu(float) }
__device__ __forceinline__ float epilogue(float acc)
{
    const float float_2 = acc * 2.0f;
    return maximum(float_2, 0.0f);
}
";
    assert!(source.contains(function), "{source}");
    assert!(source.contains("C[(size_t)row * N + col] = epilogue(acc);"), "{source}");
}
