//! The names that a text may use.

/// Whether a name can be that of a kernel, a parameter or a variable in CUDA C.
pub(super) fn is_free(name: &str) -> bool {
    is_identifier(name) && !is_reserved(name)
}

/// Whether a name is made of ASCII letters, digits and `_`, and starts with no digit.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    head && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether the text needs the name for something else. Only the generator names things, a user's
/// name being the end of a function's: keywords need no list.
fn is_reserved(name: &str) -> bool {
    const TAKEN: &[&str] = &[
        // CUDA's own names, and functions that the text calls.
        "blockDim",
        "blockIdx",
        "gridDim",
        "threadIdx",
        "warpSize",
        "size_t",
        "float2",
        "float3",
        "float4",
        "dim3",
        "main",
        "fmaf",
        "fmaxf",
        "fminf",
        "make_float4",
        "load4",
        "store4",
        "min",
        "shared_memory",
        "maximum",
        "minimum",
        "copy_async_4",
        "copy_async_16",
        "copy_async_4_or_zero",
        "copy_async_16_or_zero",
        "copy_async_4_if",
        "copy_async_16_if",
        "copy_commit",
        "copy_wait",
    ];
    TAKEN.contains(&name) || name.starts_with("__")
}
