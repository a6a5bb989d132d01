//! Suggestions against bank conflicts that the keys of a spec can express.

use crate::access::{Access, LayoutChange, Suggestion};
use gemm_dsl::Plan as _;
use gemm_dsl::ir::{BufferLayout, Swizzle};
use gemm_dsl::spec::SgemmSpec;
use std::collections::BTreeSet;

/// Drops suggestions that the spec of a GEMM cannot express, because no key sets the layout or the
/// spec rejects it. Without a spec, drops all suggestions. For an array without padding, suggests a
/// swizzle if it reduces conflicts.
pub fn kept(spec: Option<&SgemmSpec>, mut accesses: Vec<Access>) -> Vec<Access> {
    let buffers: BTreeSet<String> = accesses
        .iter()
        .filter(|access| access.placement.is_some())
        .map(|access| access.buffer.clone())
        .collect();
    for buffer in buffers {
        let is_valid = |suggestion: &Suggestion| {
            let changed = spec.and_then(|spec| with(spec, &buffer, suggestion.by));
            changed.is_some_and(|spec| spec.plan().is_ok())
        };
        for access in accesses.iter_mut().filter(|access| access.buffer == buffer) {
            access.suggestion = access.suggestion.take().filter(is_valid);
        }
        let is_padded = accesses.iter().any(|of| of.buffer == buffer && of.suggestion.is_some());
        if let Some(swizzle) = spec.filter(|_| !is_padded).and_then(|spec| swizzle(spec, &buffer)) {
            suggest_swizzle(&mut accesses, &buffer, swizzle);
        }
    }
    accesses
}

/// Returns the spec with the layout change applied to an array, if a key exists for it.
pub fn with(spec: &SgemmSpec, buffer: &str, by: LayoutChange) -> Option<SgemmSpec> {
    let mut spec = spec.clone();
    match (buffer, by) {
        ("As", LayoutChange::Padding(more)) => spec.pad_a += more,
        ("Bs", LayoutChange::Padding(more)) => spec.pad_b += more,
        ("As" | "Bs", LayoutChange::Swizzle) => spec.swizzle = true,
        _ => return None,
    }
    Some(spec)
}

/// Returns the swizzle of an array under the key `swizzle`, if the spec accepts the key.
fn swizzle(spec: &SgemmSpec, buffer: &str) -> Option<Swizzle> {
    let spec = with(spec, buffer, LayoutChange::Swizzle).filter(|_| !spec.swizzle)?;
    let program = spec.plan().and_then(|plan| plan.program()).ok()?;
    let array = program.preferred().buffers.iter().find(|array| array.name == buffer)?;
    match array.layout {
        BufferLayout::Array { swizzle, .. } => swizzle,
        _ => None,
    }
}

/// Suggests a swizzle if it lowers the total cost of all accesses to the array.
fn suggest_swizzle(accesses: &mut [Access], buffer: &str, swizzle: Swizzle) {
    let suggestion = |access: &Access| {
        let (placed, length) = access.placement.as_ref().filter(|_| access.buffer == buffer)?;
        let word = |row: u32, column: u32| {
            let column = swizzle.apply(row.into(), column.into()) as u32;
            row * length + column
        };
        Some(Suggestion::new(LayoutChange::Swizzle, placed, word))
    };
    let suggestions: Vec<Option<Suggestion>> = accesses.iter().map(suggestion).collect();
    let both = accesses.iter().zip(&suggestions);
    let both = both.filter_map(|(access, suggestion)| Some((access, suggestion.as_ref()?)));
    let [now, then] = both.fold([0, 0], |[now, then], (access, suggestion)| {
        [now + access.times * access.cost, then + access.times * suggestion.wavefronts]
    });
    for (access, suggestion) in accesses.iter_mut().zip(suggestions).filter(|_| then < now) {
        access.suggestion = suggestion.filter(|of| of.wavefronts < access.cost);
    }
}
