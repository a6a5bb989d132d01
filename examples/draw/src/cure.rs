//! Which padding is advised: only what the spec takes.

use crate::access::Access;
use gemm_dsl::spec::SgemmSpec;

/// Leaves out the advice that no plan follows: of a product, whose spec is given, what its keys cannot say, and of any other
/// kernel all.
pub fn kept(spec: Option<&SgemmSpec>, mut accesses: Vec<Access>) -> Vec<Access> {
    for access in &mut accesses {
        let takes = |pad| {
            let padded = spec.and_then(|spec| padded(spec, &access.buffer, pad));
            padded.is_some_and(|spec| spec.plan().is_ok())
        };
        access.cure = access.cure.filter(|cure| takes(cure.pad));
    }
    accesses
}

/// The spec with more elements behind each row of an array.
pub fn padded(spec: &SgemmSpec, buffer: &str, more: u32) -> Option<SgemmSpec> {
    let mut spec = spec.clone();
    match buffer {
        "As" => spec.pad_a += more,
        "Bs" => spec.pad_b += more,
        _ => return None,
    }
    Some(spec)
}
