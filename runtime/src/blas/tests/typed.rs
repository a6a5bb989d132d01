//! Tables for matrices of `bf16`, `f16` and `f64`.

use super::super::gemm::GemmElement;
use super::super::tables::{CallFeatures, Tables};
use super::shapes;
use crate::GemmTable;
use gemm_dsl::spec::{Accuracy, Batch, GemmTypes, Instruction};
use gemm_dsl::tables::{KernelTable, SgemmProblem, Target};
use gemm_dsl::target::element::Element;
use half::{bf16, f16};
use std::collections::BTreeSet;

/// Each rule of the tables is reached, each chosen kernel has the types of the table and the
/// features of the call, and only kernels for `sm_90` use tensor cores.
fn sound<T: GemmElement<C>, C: Element>() {
    for arch in [75, 80, 90, 100] {
        let Tables { one, batch } = T::tables(Some(arch), Accuracy::Ieee);
        let kinds = [(one, None), (batch, Some(Batch::Strided)), (batch, Some(Batch::Pointers))];
        for (shipped, kind) in kinds {
            let mut reached = BTreeSet::new();
            let counts: &[u64] = if kind.is_some() { &[1, 3, 100] } else { &[1] };
            for shape in shapes(counts) {
                let shape = shape.of_types(shipped.table.types());
                let problem = SgemmProblem { shape, target: Target { arch, sms: 132 } };
                let asked = CallFeatures { batch: kind, ..CallFeatures::default() };
                let (rule, line) = shipped.chosen(&problem, asked).expect("a rule for each shape");
                if reached.insert((rule, shape.lies() as usize)) {
                    let spec: crate::SgemmSpec = line.parse().expect("a sound line");
                    assert_eq!(spec.types().matrices(), [T::ELEM, T::ELEM, C::ELEM], "{line}");
                    assert_eq!((spec.batch, spec.layout), (kind, shape.lies()), "{line}");
                    assert!(arch == 90 || spec.mma != Instruction::Wgmma, "sm_{arch}: {line}");
                }
            }
            let reached: BTreeSet<usize> = reached.into_iter().map(|(rule, _)| rule).collect();
            let rules = shipped.table.rules().len();
            assert_eq!(reached, (0..rules).collect(), "sm_{arch} {kind:?}: {}", shipped.table);
            let again: KernelTable<crate::SgemmSpec> =
                shipped.table.text().parse().expect("the text of a table");
            assert_eq!(again.to_string(), shipped.table.text());
            assert!(GemmTable::<T, T, C>::new(&again).is_ok());
        }
    }
}

#[test]
fn tables_of_typed_matrices_are_sound() {
    sound::<bf16, bf16>();
    sound::<bf16, f32>();
    sound::<bf16, f16>();
    sound::<f16, f16>();
    sound::<f16, f32>();
    sound::<f16, bf16>();
    sound::<f64, f64>();
    sound::<f64, f32>();
}

/// Large matrices of 16-bit elements are multiplied by `wgmma` on an H200.
#[test]
fn large_gemms_use_tensor_cores() {
    let [single, _] = crate::gemm_tables::<f16, f16>(Some(crate::compile::Arch::sm(90)));
    assert_ne!(single.types(), GemmTypes::F32);
    for size in [64, 128, 512, 1000, 4096] {
        let shape = gemm_dsl::tables::SgemmShape::from((size, size, size));
        let shape = shape.of_types(single.types());
        let problem = SgemmProblem { shape, target: Target::H200 };
        let spec = single.chosen(&problem).expect("a rule").spec;
        assert!(spec.contains("arith: f16, mma: wgmma"), "{size}: {spec}");
    }
}
