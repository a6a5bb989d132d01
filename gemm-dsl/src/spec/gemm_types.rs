//! Element types of a GEMM.

use super::{Arith, Factor, Instruction, MatrixType, SgemmSpec, Spec};
use crate::ir::Elem;
use crate::target::Format;

/// Element types of a GEMM. They determine the declarations of matrices, the widths of vectors and
/// the sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GemmTypes {
    pub a: Elem,
    pub b: Elem,
    /// Type of accumulators. `U32` has the bits of sums in `i32`.
    pub acc: Elem,
    pub c: Elem,
}

impl GemmTypes {
    /// Single precision throughout.
    pub const F32: Self = Self { a: Elem::F32, b: Elem::F32, acc: Elem::F32, c: Elem::F32 };

    /// Element type of A or B.
    pub const fn factor(self, factor: Factor) -> Elem {
        match factor {
            Factor::A => self.a,
            Factor::B => self.b,
        }
    }

    /// Type to which accumulators are converted before they are stored, and of epilogue operands.
    pub const fn value(self) -> Elem {
        match (self.acc, self.c) {
            (Elem::U32, Elem::I32) => Elem::I32,
            (Elem::U32, _) => Elem::F32,
            (acc, _) => acc,
        }
    }

    /// Name of the type of sums.
    pub const fn name_of_sums(self) -> &'static str {
        match self.acc {
            Elem::U32 => Elem::I32.name(),
            acc => acc.name(),
        }
    }

    /// Element types of A, B and C.
    pub const fn matrices(self) -> [Elem; 3] {
        [self.a, self.b, self.c]
    }
}

impl GemmTypes {
    /// Returns the name of the macro for kernels with these types.
    pub fn macro_name(self) -> &'static str {
        if self == Self::F32 { SgemmSpec::MACRO } else { SgemmSpec::TYPED }
    }

    /// Returns the prefix of the names of kernels with these types.
    pub(crate) fn name_prefix(self) -> &'static str {
        if self == Self::F32 { SgemmSpec::PREFIX } else { "gemm_" }
    }
}

impl Arith {
    /// Returns the arithmetic of the `wgmma` instruction that reads matrices of these types. `None`
    /// if there is no instruction.
    pub fn of_types(a: MatrixType, b: MatrixType) -> Option<Self> {
        match (a, b) {
            (MatrixType::Bf16, MatrixType::Bf16) => Some(Self::Bf16),
            (MatrixType::F16, MatrixType::F16) => Some(Self::F16),
            (MatrixType::E4m3 | MatrixType::E5m2, MatrixType::E4m3 | MatrixType::E5m2) => {
                Some(Self::Fp8)
            }
            (MatrixType::I8 | MatrixType::U8, MatrixType::I8 | MatrixType::U8) => Some(Self::Int8),
            _ => None,
        }
    }
}

impl SgemmSpec {
    /// Name of the macro whose specs may have element types.
    pub const TYPED: &str = "gemm_kernel";

    /// Keys for the element types of A, B and C.
    pub const TYPES: [&str; 3] = ["a", "b", "c"];

    /// Returns the element types of the matrices and accumulators.
    pub const fn types(&self) -> GemmTypes {
        let (a, b, c) = (self.a.elem(), self.b.elem(), self.c.elem());
        GemmTypes { a, b, acc: self.a.acc(), c }
    }

    /// Returns the formats of A and B that tensor cores multiply; `None` for other GEMMs.
    pub fn formats(&self) -> Option<[Format; 2]> {
        match self.arith {
            Arith::F32 => None,
            Arith::Fp8 | Arith::Int8 => Some([self.a.format()?, self.b.format()?]),
            arith => arith.format().map(|format| [format; 2]),
        }
    }

    /// Sets the arithmetic of a spec without the key `arith` to that of the matrices' types, if
    /// `wgmma` reads them.
    pub(super) fn take_arith_of_types(&mut self) {
        if self.mma == Instruction::Wgmma {
            self.arith = Arith::of_types(self.a, self.b).unwrap_or(self.arith);
        }
    }

    /// Returns the bytes of an element of A or B in the main loop. If elements are split, the bytes
    /// of all splits count.
    pub fn staged_bytes(&self, factor: Factor) -> u32 {
        match self.arith.format().filter(|_| self.converts_matrices()) {
            Some(format) => self.arith.splits() * Elem::from_format(format).size(),
            None => self.types().factor(factor).size(),
        }
    }
}
