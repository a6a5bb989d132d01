//! Suggestions against bank conflicts, for the specs of the book.

use super::access::Access;
use crate::observation::Spec;
use gemm_draw::suggestion;

/// Drops the suggestions that no plan can follow.
pub(super) fn kept(spec: &Spec, accesses: Vec<Access>) -> Vec<Access> {
    let product = match spec {
        Spec::Sgemm(plan) => Some(plan.spec()),
        Spec::Reduce(_) => None,
    };
    suggestion::kept(product, accesses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access;
    use crate::observation::Observation;
    use gemm_bench::family::Family;
    use gemm_dsl::cuda;

    fn accesses(spec: &Spec, looked: &Observation) -> Vec<Access> {
        let lines = cuda::listing(&looked.kernel).lines;
        kept(spec, access::all(&looked.kernel, &lines, &looked.trace))
    }

    fn looked(spec: &Spec) -> Observation {
        spec.look(spec.at().expect("a shape")).expect("a launch")
    }

    /// With the suggested change, accesses keep their width, the accesses with a suggestion have
    /// the stated cost, and the total cost decreases.
    #[test]
    fn suggestions_have_the_stated_effect() {
        let lines = [
            "tile: 64x64x16, thread: 4x4, float4, transpose, pad_b: 4",
            "tile: 64x64x16, thread: 4x4, float4, transpose, pad_a: 1",
            "tile: 64x64x16, thread: 4x4, float4, transpose",
            "tile: 32x32x8, thread: 4x4, transpose",
            "tile: 64x64x16, thread: 8x8",
            // With this spec, a padding that removes conflicts does not fit in shared memory, but a
            // swizzle does.
            "tile: 256x192x128, thread: 16x12, float4",
        ];
        let mut advised = 0;
        for line in lines {
            let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
            let before = looked(&spec);
            let all = accesses(&spec, &before);
            for access in all.iter().filter(|access| access.suggestion.is_some()) {
                let suggestion = access.suggestion.as_ref().expect("a suggestion");
                let Spec::Sgemm(product) = &spec else { panic!("a product") };
                let padded =
                    suggestion::with(product.spec(), &access.buffer, suggestion.by).expect("a key");
                let padded = Spec::Sgemm(Box::new(padded.plan().expect("a plan")));
                let after = looked(&padded);
                let theirs = accesses(&padded, &after);
                let shape = |of: &Access| (of.buffer.clone(), of.kind, of.bytes, of.lanes);
                let is_there = theirs.iter().any(|other| {
                    shape(other) == shape(access) && other.cost == suggestion.wavefronts
                });
                assert!(is_there, "{line}: {access:?}, {theirs:#?}");
                let widths = |all: &[Access]| {
                    let mut widths: Vec<_> =
                        all.iter().map(|of| (of.buffer.clone(), of.bytes)).collect();
                    widths.sort();
                    widths.dedup();
                    widths
                };
                assert_eq!(widths(&all), widths(&theirs), "{line}");
                let wavefronts = |looked: &Observation| looked.profile.total.shared_wavefronts;
                assert!(wavefronts(&after) < wavefronts(&before), "{line}: {suggestion:?}");
                advised += 1;
            }
        }
        assert!(advised > 0, "no advice");
    }
}
