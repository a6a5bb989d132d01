//! Rows and matrices of several inputs, each with its own strides.

use crate::reduce::each::right;
use gemm_dsl::ir::Variant;
use gemm_dsl::spec::{DataType, ReduceSpec};
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::Simulator;
use gemm_tests::fold::{Case, Shape, closures};
use libtest_mimic::Trial;

/// Kernels read vectors only if all row and matrix strides of all inputs are multiples of the
/// vector length. Otherwise they read single elements. The bits are the same.
fn one_odd_stride_of_any_input_selects_the_scalar_variant() {
    let lines = [
        ("over: rows, group: 8", Shape::Tensor { outer: 5, len: 48, inner: 1 }),
        ("over: rows, group: 256, blocks: 2", Shape::Tensor { outer: 3, len: 2048, inner: 1 }),
        ("over: columns, group: 4", Shape::Tensor { outer: 1, len: 7, inner: 32 }),
        ("over: middle, group: 4", Shape::Tensor { outer: 3, len: 7, inner: 32 }),
    ];
    let maps = closures::maps(DataType::F32.elem(), Some(DataType::F32.elem()));
    for (line, shape) in lines {
        let spec: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
        let spec = spec.float4(true).pitched(true);
        let strides = shape.elements(spec.over).len() - 1;
        let mut most = 0;
        for map in &maps {
            let given = (Some(*map), None, None);
            let case = Case::with(&spec, given, shape.clone(), 8);
            let machine = Simulator::default();
            let mut aligned = Placement::PACKED;
            for (nth, padding) in aligned.padding.iter_mut().enumerate() {
                *padding = [16 * nth, 4 * (nth + 1)];
            }
            let by_vectors = right(&machine, &case, &aligned);
            assert_eq!(by_vectors.variants[0], Variant::Vector, "`{}`", case.spec);
            for input in 0..map.inputs {
                for stride in 0..strides {
                    for more in 1..4 {
                        let mut placement = aligned;
                        placement.padding[input][stride] += more;
                        if stride + 1 < strides {
                            // Padding of a row also changes the matrix stride. The matrix padding
                            // rounds this stride up to whole vectors.
                            let Shape::Tensor { len, .. } = shape else { continue };
                            placement.padding[input][stride + 1] += (4 - more) * len % 4;
                        }
                        let ran = right(&machine, &case, &placement);
                        let what = format!("`{}` {placement:?}", case.spec);
                        assert_eq!(ran.variants[0], Variant::Scalar, "{what}");
                        assert_eq!(ran.results, by_vectors.results, "{what}");
                    }
                }
            }
            most = most.max(map.inputs);
        }
        assert_eq!(most, 4);
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![one_odd_stride_of_any_input_selects_the_scalar_variant,]
}
