//! What the text of a product says of itself, and what it leaves out.

use crate::Family;
use crate::cuda::source;
use crate::spec::SgemmSpec;

/// The texts of all kernels of a line.
fn texts(line: &str) -> Vec<String> {
    let spec: SgemmSpec = line.parse().expect("a sound line");
    let program = spec.program().expect("a sound spec");
    program.kernels.iter().map(source).collect()
}

/// Half of BLAS's rule for alpha = 0 is the caller's to keep: every text says so.
#[test]
fn the_text_of_a_scaled_product_says_which_k_it_is_given() {
    let rule = "// Where alpha is 0 the caller passes K = 0: A and B are then not read.\n";
    let depth = "// DEPTH is the extent of A and B all the same";
    for tile in ["block: 8x8", "tile: 16x16x8, thread: 4x4, float4, bounds: aligned"] {
        for (keys, says) in [
            ("unroll: 2", [false, false]),
            ("scaled", [true, false]),
            ("scaled, epilogue: |acc| acc * f32(n)", [true, false]),
            ("scaled, epilogue: |acc| acc * f32(k)", [true, true]),
            ("epilogue: |acc| acc * f32(k)", [false, false]),
        ] {
            for text in texts(&format!("{tile}, {keys}")) {
                assert_eq!([rule, depth].map(|line| text.contains(line)), says, "{text}");
                assert_eq!(text.contains("int DEPTH"), says[1], "{text}");
            }
        }
    }
}

/// What has an element for each row or column is the same for all products of a batch: it has no distance.
#[test]
fn vectors_of_a_batch_have_no_stride() {
    for tile in ["block: 8x8", "tile: 16x16x8, thread: 4x4, float4"] {
        let epilogue = "epilogue: |acc, bias[n], scale[m], r[m, n]| acc * scale + bias + r";
        for text in texts(&format!("{tile}, batch: strided, {epilogue}")) {
            for name in ["stride_a", "stride_b", "stride_c", "stride_r"] {
                assert!(text.contains(&format!("size_t {name}")), "no {name} in\n{text}");
            }
            assert_eq!(text.matches("size_t stride_").count(), 4, "{text}");
            assert!(
                text.contains("// A batch: product p of BATCH has its A, B and C at "),
                "{text}"
            );
        }
        for text in texts(&format!("{tile}, {epilogue}")) {
            assert!(!text.contains("batch") && !text.contains("stride_"), "{text}");
        }
    }
}
