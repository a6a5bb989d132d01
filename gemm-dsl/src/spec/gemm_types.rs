//! Element types of a GEMM.

use super::table::Follow;
use super::{Arith, Factor, Instruction, MatrixType, SgemmSpec, Spec};
use crate::ir::Elem;

/// Element types of a GEMM. They determine the declarations of matrices, the widths of vectors and
/// the sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GemmTypes {
    pub a: Elem,
    pub b: Elem,
    /// Type of accumulators and epilogue operands.
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

impl Follow for SgemmSpec {
    /// `wgmma` multiplies 16-bit elements in their own format.
    fn follow(&mut self, is_given: &dyn Fn(&str) -> bool) {
        if self.mma == Instruction::Wgmma && !is_given("arith") {
            self.arith = match self.a {
                MatrixType::Bf16 => Arith::Bf16,
                MatrixType::F16 => Arith::F16,
                _ => self.arith,
            };
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

    /// Returns the bytes of an element of A or B in the main loop. If elements are split, the bytes
    /// of all splits count.
    pub fn staged_bytes(&self, factor: Factor) -> u32 {
        match self.arith.format().filter(|_| self.converts_matrices()) {
            Some(format) => self.arith.splits() * Elem::from_format(format).size(),
            None => self.types().factor(factor).size(),
        }
    }
}
