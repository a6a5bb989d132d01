//! Dispatch on an element type that is known only at run time.

/// Evaluates an expression in which the second name is the type of the elements.
macro_rules! with_type {
    ($elem:expr, $ty:ident => $then:expr) => {
        crate::element_type::with_type!(@ $elem, $ty => $then, F32 f32, F64 f64, F16 half::f16,
            Bf16 half::bf16, I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64)
    };
    (@ $elem:expr, $ty:ident => $then:expr, $($name:ident $own:ty),*) => {
        match $elem {
            $(gemm_dsl::ir::Elem::$name => {
                type $ty = $own;
                $then
            })*
            other => unreachable!("no array of a case has elements of {other}"),
        }
    };
}

pub(crate) use with_type;
