//! Artifacts as Rust expressions.
//!
//! Each type lists its fields or variants once, here. A field that is missing does not compile.

use super::items::*;
use std::fmt::Write;

/// Rust expression under construction.
pub(super) struct Text<'p> {
    text: String,
    /// Path of the items.
    items: &'p str,
}

/// Rust expression of an artifact.
pub(super) fn text(artifact: &Artifact, items: &str) -> String {
    let mut out = Text { text: String::new(), items };
    artifact.write(&mut out);
    out.text
}

/// Data with a Rust expression of the same value.
trait Constant {
    fn write(&self, out: &mut Text<'_>);
}

impl Text<'_> {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes an item's path.
    fn item(&mut self, path: &str) {
        _ = write!(self.text, "{}::{path}", self.items);
    }

    /// Writes values with commas between brackets.
    fn all<'v>(
        &mut self,
        [open, close]: [&str; 2],
        values: impl IntoIterator<Item = &'v (impl Constant + ?Sized + 'v)>,
    ) {
        self.push(open);
        for value in values {
            value.write(self);
            self.push(", ");
        }
        self.push(close);
    }

    fn field(&mut self, name: &str, value: &impl Constant) {
        _ = write!(self.text, "{name}: ");
        value.write(self);
        self.push(", ");
    }

    /// Writes a text so that it can be read: as it is, if a raw literal can hold it.
    fn literal(&mut self, text: &str) {
        if !text.contains(['\n', '"']) || text.contains('\r') {
            _ = write!(self.text, "{text:?}");
            return;
        }
        let mut hashes = "#".to_owned();
        while text.contains(&format!("\"{hashes}")) {
            hashes.push('#');
        }
        _ = write!(self.text, "r{hashes}\"{text}\"{hashes}");
    }
}

/// Implements [`Constant`] for structs with named fields.
macro_rules! structs {
    ($($name:ident $(<$of:ty>)? { $($field:ident),* $(,)? })*) => {
        $(impl Constant for $name $(<$of>)? {
            fn write(&self, out: &mut Text<'_>) {
                let Self { $($field),* } = self;
                out.item(concat!(stringify!($name), " { "));
                $(out.field(stringify!($field), $field);)*
                out.push("}");
            }
        })*
    };
}

/// Implements [`Constant`] for structs and variants with positions. A name is written as given.
macro_rules! tuples {
    ($($name:ident($($field:ident),*);)*) => {
        $(impl Constant for $name {
            fn write(&self, out: &mut Text<'_>) {
                let Self($($field),*) = self;
                out.item(concat!(stringify!($name), "("));
                $($field.write(out); out.push(", ");)*
                out.push(")");
            }
        })*
    };
}

/// Implements [`Constant`] for enums.
macro_rules! enums {
    ($($name:ident $(<$of:ty>)? {
        $($variant:ident $(($($at:ident),*))? $({ $($field:ident),* })?,)*
    })*) => {
        $(impl Constant for $name $(<$of>)? {
            fn write(&self, out: &mut Text<'_>) {
                match self {
                    $(Self::$variant $(($($at),*))? $({ $($field),* })? => {
                        out.item(concat!(stringify!($name), "::", stringify!($variant)));
                        $(
                            out.push("(");
                            $($at.write(out); out.push(", ");)*
                            out.push(")");
                        )?
                        $(
                            out.push(" { ");
                            $(out.field(stringify!($field), $field);)*
                            out.push("}");
                        )?
                    })*
                }
            }
        })*
    };
}

/// Implements [`Constant`] for enums without fields, whose `Debug` is the name of the variant.
macro_rules! names {
    ($($name:ident),*) => {
        $(impl Constant for $name {
            fn write(&self, out: &mut Text<'_>) {
                out.item(&format!("{}::{self:?}", stringify!($name)));
            }
        })*
    };
}

/// Implements [`Constant`] for types whose `Debug` is a literal.
macro_rules! literals {
    ($($name:ty),*) => {
        $(impl Constant for $name {
            fn write(&self, out: &mut Text<'_>) {
                _ = write!(out.text, "{self:?}");
            }
        })*
    };
}

structs! {
    Artifact { line, interface, program, sources }
    LaunchProgram { extents, inputs, outputs, arguments, values, temps, contracts, steps }
    Array<HostExpr> { operand, name, elem, count, dims, is_given }
    Argument { name, ty }
    Temp<HostExpr> { name, elem, dims, fill }
    Launch<HostExpr> { choose, bind, extents }
    Contract {
        kernel, family, variant, params, requires, block, grid, cluster, shared_bytes,
        shared_is_dynamic, min_arch, min_release, is_specific, is_optional,
    }
    ArrayParameter {
        name, operand, elem, is_read, is_written, is_atomic, is_transposed, map, count, dims,
        strides,
    }
    TensorMap { tile, swizzle }
    Scalar { param, ty }
    EpilogueArg { name, along, slot }
}
tuples! {
    Extent(name);
    KernelId(number);
}
enums! {
    Interface {
        Gemm { operands, batch, pairs },
        Elementwise { operands, is_flat },
        Reduction { over, index, topk },
    }
    Step<HostExpr> { Launch(launch), If { cond, then, otherwise }, }
    Slot { Input(n), Output(n), Temp(n), }
    Operand { Input(n), Output(n), Temp(n), }
    Parameter { Array(array), Scalar { name, ty, source }, }
    Source { Extent(extent), Stride { operand, dim }, Argument(n), }
    Requirement {
        Aligned { operand, bytes },
        Multiple { scalar, of },
        Range { scalar, min, max },
        Piece { first, len, total, of },
    }
    HostExpr { Number(value), Scalar(index), Code(code), }
    HostOp {
        Number(value),
        Scalar(index, ty),
        Neg(ty),
        Not,
        Cast(ty),
        Binary(op, ty),
        SkipUnless(count),
        Skip(count),
    }
    BinaryOp { Arith(op), Integer(op), Cmp(op), Logic(op), }
    Ty { Bool, Scalar(elem), Vector(elem), }
    ArgSlot { Array(n), Number(n), Output(n), }
}
names!(
    Arith,
    Batch,
    Integer,
    Cmp,
    Logic,
    Elem,
    TensorSwizzle,
    Variant,
    KernelFamily,
    TempFill,
    Along,
    Over,
    Op,
    Pairs
);
literals!(bool, u32, u64, usize);

impl Constant for &'static str {
    fn write(&self, out: &mut Text<'_>) {
        out.literal(self);
    }
}

impl Constant for Cow<'static, str> {
    fn write(&self, out: &mut Text<'_>) {
        out.item("Cow::Borrowed(");
        out.literal(self);
        out.push(")");
    }
}

impl<T: Constant> Constant for List<T> {
    fn write(&self, out: &mut Text<'_>) {
        if self.is_empty() {
            return out.item("List::EMPTY");
        }
        out.item("List::Constant(&");
        out.all(["[", "]"], self);
        out.push(")");
    }
}

impl<T: Constant> Constant for Option<T> {
    fn write(&self, out: &mut Text<'_>) {
        match self {
            None => out.item("Option::None"),
            Some(value) => {
                out.item("Option::Some(");
                value.write(out);
                out.push(")");
            }
        }
    }
}

impl<T: Constant, const N: usize> Constant for [T; N] {
    fn write(&self, out: &mut Text<'_>) {
        out.all(["[", "]"], self);
    }
}

impl<A: Constant, B: Constant> Constant for (A, B) {
    fn write(&self, out: &mut Text<'_>) {
        out.push("(");
        self.0.write(out);
        out.push(", ");
        self.1.write(out);
        out.push(")");
    }
}
