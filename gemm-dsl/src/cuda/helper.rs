//! Device functions that the source defines, and operations for which CUDA C++ has no operator:
//! 16-byte accesses, asynchronous copies, and conversions of storage-only types. Definitions are
//! printed in the order of [`HelperFamily`].

pub(super) mod asynchronous;
pub(super) mod atomic;
pub(super) mod cluster;
mod fp8;
pub(super) mod sync;
#[cfg(test)]
mod tests;
pub(super) mod vector;

use super::types::{element_type, vector_type};
use super::{WIDTH, wrap};
use crate::ir::{Access, Elem, Expr, Guard, Intrinsic, Kernel, Stmt, Ty};
use crate::target::Format;
use crate::target::intrinsic::Spelling;
use std::collections::BTreeSet;

fn packed(first: Option<Ty>) -> Elem {
    match first {
        Some(Ty::Scalar(elem)) => elem,
        _ => unreachable!("verified: a vector is packed of numbers"),
    }
}

/// Prints a vector of zeros.
pub(super) fn zeros(first: Option<Ty>) -> String {
    format!("make_{}(0u, 0u, 0u, 0u)", vector_type(packed(first)))
}

/// Prints the packing of elements into a vector.
pub(super) fn pack(first: Option<Ty>, parts: &[String]) -> String {
    let elem = packed(first);
    let name = vector_type(elem);
    if elem.size() >= 4 {
        return format!("make_{name}({})", parts.join(", "));
    }
    // Packs the elements of a word; the first element is in the lowest bits. The unsigned cast
    // removes the copies of the sign bit.
    let (per_word, bits) = (4 / elem.size() as usize, 8 * elem.size());
    let unsigned = if elem.size() == 1 { "unsigned char" } else { "unsigned short" };
    let word = |parts: &[String]| {
        let part = |(i, part): (usize, &String)| match i {
            0 => format!("(unsigned int)({unsigned})({part})"),
            i => format!("((unsigned int)({unsigned})({part}) << {})", i as u32 * bits),
        };
        parts.iter().enumerate().map(part).collect::<Vec<_>>().join(" | ")
    };
    let words: Vec<String> = parts.chunks(per_word).map(word).collect();
    format!("make_{name}({})", words.join(", "))
}

/// Prints an element of a vector. The flag is true if the text never needs parentheses.
pub(super) fn lane(elem: Elem, vector: &str, lane: u8) -> (String, bool) {
    let per_word = (4 / elem.size()).max(1) as u8;
    let component = ["x", "y", "z", "w"][usize::from(lane / per_word)];
    if per_word == 1 {
        return (format!("{vector}.{component}"), true);
    }
    let name = element_type(elem);
    match u32::from(lane % per_word) * 8 * elem.size() {
        0 => (format!("({name}){vector}.{component}"), false),
        bits => (format!("({name})({vector}.{component} >> {bits})"), false),
    }
}

/// Returns the spelling of an intrinsic whose first operand has type `first`.
pub(super) fn spelling(f: Intrinsic, first: Ty) -> Spelling {
    match first {
        Ty::Scalar(elem) => f.spelling(elem),
        Ty::Bool => f.info().single,
        Ty::Vector(_) => unreachable!("verified: no intrinsic takes a vector"),
    }
}

/// Returns the function for a conversion that a C cast cannot do; `None` if a cast can. A cast to
/// an integer is undefined for values that do not fit. Values of storage-only types are bit
/// patterns in CUDA C++.
pub(super) fn conversion(from: Ty, to: Elem) -> Option<Spelling> {
    let Ty::Scalar(from) = from else {
        unreachable!("verified: a number is converted");
    };
    let (name, definition) = match from {
        Elem::F32 => match to {
            Elem::I32 => ("__float2int_rz", ""),
            Elem::U32 => ("__float2uint_rz", ""),
            Elem::I64 => ("__float2ll_rz", ""),
            Elem::U64 => ("__float2ull_rz", ""),
            Elem::F16 => ("to_f16", TO_F16),
            Elem::Bf16 => ("to_bf16", TO_BF16),
            Elem::E4m3 => ("to_e4m3", fp8::TO_E4M3),
            Elem::E5m2 => ("to_e5m2", fp8::TO_E5M2),
            Elem::Tf32 => ("to_tf32", TO_TF32),
            Elem::F64 | Elem::F32 => return None,
            Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => return None,
        },
        Elem::F64 => match to {
            Elem::I32 => ("__double2int_rz", ""),
            Elem::U32 => ("__double2uint_rz", ""),
            Elem::I64 => ("__double2ll_rz", ""),
            Elem::U64 => ("__double2ull_rz", ""),
            Elem::F64 | Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 => return None,
            Elem::E4m3 | Elem::E5m2 => return None,
            Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => return None,
        },
        // Storage-only types can be converted only to `f32`.
        Elem::F16 if to == Elem::F32 => ("from_f16", FROM_F16),
        Elem::Bf16 if to == Elem::F32 => ("from_bf16", FROM_BF16),
        Elem::E4m3 if to == Elem::F32 => ("from_e4m3", fp8::FROM_E4M3),
        Elem::E5m2 if to == Elem::F32 => ("from_e5m2", fp8::FROM_E5M2),
        Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2 => return None,
        Elem::I64 | Elem::U64 | Elem::I32 | Elem::U32 => return None,
        Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => return None,
    };
    Some(Spelling { name, definition })
}

/// Name of the function for a bit cast that a C cast cannot do.
pub(super) fn reinterpretation(from: Ty, to: Elem) -> Option<&'static str> {
    Some(match (from, to) {
        (Ty::F32 | Ty::Scalar(Elem::Tf32), Elem::I32) => "__float_as_int",
        (Ty::F32 | Ty::Scalar(Elem::Tf32), Elem::U32) => "__float_as_uint",
        (Ty::I32, Elem::F32 | Elem::Tf32) => "__int_as_float",
        (Ty::U32, Elem::F32 | Elem::Tf32) => "__uint_as_float",
        (Ty::F64, Elem::I64 | Elem::U64) => "__double_as_longlong",
        (Ty::I64 | Ty::U64, Elem::F64) => "__longlong_as_double",
        _ => return None,
    })
}

/// Name of the function for an asynchronous copy.
pub(super) fn copy(target: &Access, guard: Option<&Guard>) -> String {
    copy_name(copy_bytes(target), guard.map(|guard| guard.or_zero))
}

/// Name of the device function that loads `count` matrices.
pub(super) fn load_matrix(count: u8, transposed: bool) -> String {
    format!("load_matrix_x{count}{}", if transposed { "_transposed" } else { "" })
}

/// Name of the device function that multiplies matrices of this format.
pub(super) fn mma(format: Format) -> String {
    format!("mma_{}", format.name())
}

/// Name of the function that copies `bytes` bytes. `guarded` is `None` without a guard. Otherwise
/// it is true if a false guard writes zeros.
fn copy_name(bytes: u32, guarded: Option<bool>) -> String {
    let how = match guarded {
        None => "",
        Some(true) => "_or_zero",
        Some(false) => "_if",
    };
    format!("copy_async_{bytes}{how}")
}

fn copy_bytes(target: &Access) -> u32 {
    u32::from(target.lanes) * target.buffer.elem.size()
}

/// Returns true if the expression is a literal with all bits zero.
pub(super) fn is_zero(e: &Expr) -> bool {
    match e {
        Expr::Cast(to, e) => is_zero(e) || (to.size() == 1 && **e == Expr::I32(0)),
        Expr::F32(value) => value.to_bits() == 0,
        _ => false,
    }
}

/// Families of device functions, in the order of their definitions in the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HelperFamily {
    Load,
    Store,
    Conversion,
    Intrinsic,
    Copy,
    CopyGroup,
    NamedBarrier,
    Fence,
    Atomic,
    LoadMatrix,
    Mma,
    Cluster,
    Mbarrier,
    ProxyFence,
    TensorCopy,
    Descriptor,
    Wgmma,
    WgmmaSync,
    RegisterLimit,
}

/// Definitions of the device functions that a kernel calls, in source order.
pub(super) fn definitions(k: &Kernel) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut note = |order: (HelperFamily, u8), text: String| {
        if !text.is_empty() {
            found.insert((order, text));
        }
    };
    let mut zeros = Vec::new();
    k.visit_exprs(&mut |e| match e {
        Expr::Load(access) if access.is_vector() => {
            note((HelperFamily::Load, 0), vector::load_definition(k, access.buffer.elem));
        }
        Expr::Pack(parts) if parts.iter().all(is_zero) => {
            zeros.extend(parts.iter().map(std::ptr::from_ref));
        }
        // A vector of zeros is printed without conversions of its elements.
        Expr::Cast(..) if zeros.contains(&std::ptr::from_ref(e)) => {}
        Expr::Cast(to, e) => {
            if let Some(spelling) = conversion(e.ty(), *to) {
                let is_from = u8::from(e.ty() != Ty::F32);
                note((HelperFamily::Conversion, is_from), spelling.definition.to_owned());
            }
        }
        Expr::Call(f, args) => {
            if let Some(first) = args.first() {
                note(
                    (HelperFamily::Intrinsic, *f as u8),
                    spelling(*f, first.ty()).definition.to_owned(),
                );
            }
        }
        _ => {}
    });
    k.visit(&mut |stmt| match stmt {
        Stmt::Store { target, .. } if target.is_vector() => {
            note((HelperFamily::Store, 0), vector::store_definition(k, target.buffer.elem));
        }
        Stmt::CopyAsync { target, guard, .. } => {
            let guarded = guard.as_ref().map(|g| g.or_zero);
            let rank = guarded.map_or(0, |or_zero| if or_zero { 1 } else { 2 });
            let bytes = copy_bytes(target);
            let text = copy_definition(k, element_type(target.buffer.elem), bytes, guarded);
            note((HelperFamily::Copy, 32 * rank + bytes as u8), text);
        }
        Stmt::CopyCommit => note((HelperFamily::CopyGroup, 0), COPY_COMMIT.to_owned()),
        Stmt::CopyWait { .. } => note((HelperFamily::CopyGroup, 1), COPY_WAIT.to_owned()),
        Stmt::NamedBarrier { wait, .. } => {
            note((HelperFamily::NamedBarrier, 0), sync::named_barrier_definition(*wait).to_owned());
        }
        Stmt::Fence { order, scope } => {
            note((HelperFamily::Fence, 0), sync::fence_definition(*order, *scope).to_owned());
        }
        Stmt::Atomic(atomic) => note((HelperFamily::Atomic, 0), atomic::definition(k, atomic)),
        Stmt::LoadMatrix(load) => {
            let [word, row] = [&load.to, &load.from].map(|access| access.buffer.elem);
            let text = load_matrix_definition(load.count, load.transposed, [word, row]);
            let rank = 4 * load.count + 2 * u8::from(word == Elem::F32);
            note((HelperFamily::LoadMatrix, rank + u8::from(load.transposed)), text);
        }
        Stmt::Mma(mma) => note((HelperFamily::Mma, mma.format as u8), mma_definition(mma.format)),
        _ => {}
    });
    asynchronous::definition(k, &mut note);
    cluster::definition(k, &mut note);
    found.into_iter().map(|(_, text)| text).collect()
}

/// Prints the head of a `void` function, wrapped if it is too long.
fn head(name: &str, params: &str) -> String {
    let line = format!("__device__ __forceinline__ void {name}({params})");
    wrap::code(&line, WIDTH).join("\n")
}

/// Defines a copy of `bytes` bytes. `guarded` is `None` without a guard. Otherwise it is true if a
/// false guard writes zeros.
fn copy_definition(k: &Kernel, ty: &str, bytes: u32, guarded: Option<bool>) -> String {
    // `cg` bypasses L1, but `cp.async` supports it only for 16 bytes.
    let cache = if bytes == 16 { "cg" } else { "ca" };
    let zeros = if bytes == 16 { "zeros" } else { "a zero" };
    let around = if bytes == 16 { " and L1" } else { "" };
    let (width, constraint) = match k.narrow_addresses {
        true => ("unsigned int", "r"),
        false => ("size_t", "l"),
    };
    let address = format!("const {width} dst = __cvta_generic_to_shared(shared);");
    let name = copy_name(bytes, guarded);
    let head = |params: &str| head(&name, params);
    let pointers = format!("{ty}* shared, const {ty}* global");
    let guarded_pointers = format!("{pointers}, bool valid");
    match guarded {
        None => format!(
            "\
// Asynchronous copy of {bytes} bytes from global to shared memory, bypassing registers{around}.
{}
{{
    {address}
    asm volatile(\"cp.async.{cache}.shared.global [%0], [%1], {bytes};\" \
        :: \"{constraint}\"(dst), \"l\"(global) : \"memory\");
}}
",
            head(&pointers)
        ),
        Some(true) => format!(
            "\
// Asynchronous copy of {bytes} bytes if `valid`; otherwise writes {zeros} and reads nothing.
{}
{{
    {address}
    asm volatile(\"cp.async.{cache}.shared.global [%0], [%1], {bytes}, %2;\"
                 :: \"{constraint}\"(dst), \"l\"(global), \"r\"(valid ? {bytes} : 0) : \"memory\");
}}
",
            head(&guarded_pointers)
        ),
        Some(false) => format!(
            "\
// Asynchronous copy of {bytes} bytes if `valid`. The predicate needs no branch, unlike an `if`.
{}
{{
    {address}
    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %2, 0;\"
                 \"  @p cp.async.{cache}.shared.global [%0], [%1], {bytes}; }}\"
                 :: \"{constraint}\"(dst), \"l\"(global), \"r\"((int)valid) : \"memory\");
}}
",
            head(&guarded_pointers)
        ),
    }
}

fn load_matrix_definition(count: u8, transposed: bool, [word, row]: [Elem; 2]) -> String {
    let name = load_matrix(count, transposed);
    let matrices = match count {
        1 => "a matrix of 8".to_owned(),
        _ => format!("{count} matrices of 8"),
    };
    let (how, trans) = if transposed { (", transposed", ".trans") } else { ("", "") };
    let from = 8 * count - 1;
    let outputs: Vec<String> = (0..count).map(|i| format!("%{i}")).collect();
    let (register, gets) = match word {
        Elem::F32 => ("f", "a float"),
        _ => ("r", "two halves"),
    };
    let [word, row] = [word, row].map(element_type);
    let words: Vec<String> = (0..count).map(|i| format!("\"={register}\"(to[{i}])")).collect();
    let (outputs, words) = (outputs.join(", "), words.join(", "));
    let head = head(&name, &format!("{word}* to, const {row}* row"));
    format!(
        "\
// Loads {matrices} rows of 16 bytes{how}. Lanes 0 to {from} pass the addresses of the rows;
// each lane receives {gets} of each matrix.
{head}
{{
    const size_t src = __cvta_generic_to_shared(row);
    asm volatile(\"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 \
        {{{outputs}}}, [%{count}];\"
                 : {words} : \"l\"(src) : \"memory\");
}}
"
    )
}

fn mma_definition(format: Format) -> String {
    let (name, of) = (mma(format), format.name());
    let terms = format.terms();
    let words = if format.per_word() == 2 { ", two per word" } else { "" };
    let params = "float (&d)[4], const unsigned int (&a)[4], const unsigned int (&b)[2]";
    let head = head(&name, params);
    format!(
        "\
// d += a * b on tensor cores, m16n8k{terms}: {of} operands{words}, f32 accumulators.
// With g = lane / 4 and t = lane % 4, a lane holds rows g, g + 8 and columns 2t, 2t + 1 of d
// (PTX ISA, fragments of mma.m16n8k{terms}).
{head}
{{
    asm volatile(\"mma.sync.aligned.m16n8k{terms}.row.col.f32.{of}.{of}.f32\"
                 \" {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};\"
                 : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])
                 : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
}}
"
    )
}

/// Name of the function that closes a group of asynchronous copies.
pub(super) const COMMIT: &str = "copy_commit";
/// Name of the function that waits for groups of asynchronous copies.
pub(super) const WAIT: &str = "copy_wait";

const COPY_COMMIT: &str = "\
// Commits the asynchronous copies issued so far as one group.
__device__ __forceinline__ void copy_commit()
{
    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");
}
";

const COPY_WAIT: &str = "\
// Waits until at most `pending` groups of this thread's asynchronous copies are in flight. A thread
// must pass a barrier after this before it reads other threads' copies.
template <int pending>
__device__ __forceinline__ void copy_wait()
{
    asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(pending) : \"memory\");
}
";

const TO_F16: &str = "\
// Rounds to binary16, ties to even, and returns the bits.
__device__ __forceinline__ unsigned short to_f16(float x)
{
    unsigned short r;
    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));
    return r;
}
";

const FROM_F16: &str = "\
// Converts the bits of a binary16 to float.
__device__ __forceinline__ float from_f16(unsigned short x)
{
    float r;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x));
    return r;
}
";

const TO_BF16: &str = "\
// Rounds to bfloat16, ties to even, and returns the bits.
__device__ __forceinline__ unsigned short to_bf16(float x)
{
#if __CUDA_ARCH__ >= 800
    unsigned short r;
    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));
    return r;
#else
    const unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
#endif
}
";

const FROM_BF16: &str = "\
// Converts a bfloat16, the upper half of a binary32, to float.
__device__ __forceinline__ float from_bf16(unsigned short x)
{
    return __uint_as_float((unsigned int)x << 16);
}
";

// `cvt.rna.tf32.f32` would suffice, except that on an H200 it keeps the payload of a NaN.
const TO_TF32: &str = "\
// Rounds to tf32 (10 fraction bits), ties away from zero.
__device__ __forceinline__ float to_tf32(float x)
{
    const unsigned int bits = __float_as_uint(x);
    if (x != x) return __int_as_float(0x7fffffff);
    if ((bits & 0x7f800000) == 0x7f800000) return x;
    return __uint_as_float((bits + 0x1000) & 0xffffe000);
}
";
