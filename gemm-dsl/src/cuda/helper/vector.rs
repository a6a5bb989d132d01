//! Functions that read and write 16 bytes with one instruction.

use crate::cuda::types::{element_type, vector_type};
use crate::ir::{Access, Elem, Expr, Kernel, Space, Stmt};

/// Name of the function that reads 16 bytes.
pub(in crate::cuda) fn load(elem: Elem) -> &'static str {
    if elem == Elem::F32 { "load4" } else { "load16" }
}

/// Name of the function that writes 16 bytes.
pub(in crate::cuda) fn store(elem: Elem) -> &'static str {
    if elem == Elem::F32 { "store4" } else { "store16" }
}

/// Sentence on vector accesses to local arrays of the kernel; empty if it has none of this type.
fn local_access(k: &Kernel, elem: Elem, name: &str, is_load: bool) -> String {
    let is_local = |access: &Access| {
        access.is_vector()
            && element_type(access.buffer.elem) == element_type(elem)
            && k[access.buffer].space == Space::Register
    };
    let mut found = false;
    match is_load {
        true => k.visit_exprs(&mut |e| {
            found |= matches!(e, Expr::Load(access) if is_local(access));
        }),
        false => k.visit(&mut |stmt| {
            found |= matches!(stmt, Stmt::Store { target, .. } if is_local(target));
        }),
    }
    match found {
        true => format!(
            "// It accesses no memory if `{name}` is a local array that the compiler keeps in \
             registers.\n"
        ),
        false => String::new(),
    }
}

pub(super) fn load_definition(k: &Kernel, elem: Elem) -> String {
    let (name, ty, vector) = (load(elem), element_type(elem), vector_type(elem));
    let what = if elem == Elem::F32 { "a float4" } else { "16 bytes" };
    let local = local_access(k, elem, "from", true);
    format!(
        "\
// Loads {what} from `from`, which must be 16-byte aligned.
{local}__device__ __forceinline__ {vector} {name}(const {ty}* from)
{{
    return *reinterpret_cast<const {vector}*>(from);
}}
"
    )
}

pub(super) fn store_definition(k: &Kernel, elem: Elem) -> String {
    let (name, ty, vector) = (store(elem), element_type(elem), vector_type(elem));
    let what = if elem == Elem::F32 { "a float4" } else { "16 bytes" };
    let local = local_access(k, elem, "to", false);
    format!(
        "\
// Stores {what} to `to`, which must be 16-byte aligned.
{local}__device__ __forceinline__ void {name}({ty}* to, {vector} value)
{{
    *reinterpret_cast<{vector}*>(to) = value;
}}
"
    )
}
