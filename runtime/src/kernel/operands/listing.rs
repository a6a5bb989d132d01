//! Check of a kernel's type against the operands and the element types of its spec.

use super::Operands;
use crate::error::{Error, Result};
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{EpilogueArg, GemmTypes};
use gemm_dsl::target::element::Element;

/// Type whose parameter lists the operands of its values.
pub(crate) struct ListingType {
    name: &'static str,
    without_operands: &'static str,
    by_name: &'static str,
}

impl ListingType {
    pub(crate) const SGEMM: Self =
        Self { name: "Sgemm", without_operands: "SgemmKernel", by_name: "Sgemm<ByName>" };
    pub(crate) const EPILOGUE: Self =
        Self { name: "Epilogue", without_operands: "Epilogue", by_name: "Epilogue<ByName>" };

    /// Checks that `E` lists the operands of a spec or of an epilogue, whose text is `line`.
    pub(crate) fn check<E: Operands>(&self, line: &str, operands: &[EpilogueArg]) -> Result<()> {
        self.check_matrices::<E>(line, operands, GemmTypes::F32.matrices())
    }

    /// Checks that `E` has the element types of A, B and C, and lists the operands.
    pub(crate) fn check_matrices<E: Operands>(
        &self,
        line: &str,
        operands: &[EpilogueArg],
        matrices: [Elem; 3],
    ) -> Result<()> {
        let needed: Vec<&str> = operands.iter().map(EpilogueArg::kind).collect();
        let found = [E::A::ELEM, E::B::ELEM, E::C::ELEM];
        let kinds = E::KINDS.unwrap_or(&needed);
        if kinds == needed && found == matrices {
            return Ok(());
        }
        Err(Error::KernelType {
            line: line.to_owned(),
            operands: operands.iter().map(ToString::to_string).collect(),
            needed: self.of_types(matrices, &needed),
            found: self.of_types(found, kinds),
            by_name: if matrices == GemmTypes::F32.matrices() { self.by_name } else { "" },
        })
    }

    /// Type for matrices of these types and operands of these kinds, in the user's notation.
    fn of_types(&self, matrices: [Elem; 3], kinds: &[&str]) -> String {
        let [a, b, c] = matrices;
        match kinds {
            kinds if matrices == GemmTypes::F32.matrices() => self.of_kinds(kinds),
            [] => format!("Gemm<{a}, {b}, {c}>"),
            [kind] => format!("Gemm<{a}, {b}, {c}, ({kind},)>"),
            kinds if kinds.len() > EpilogueArg::MOST_LISTED => {
                format!("Gemm<{a}, {b}, {c}, ByName>")
            }
            kinds => format!("Gemm<{a}, {b}, {c}, ({})>", kinds.join(", ")),
        }
    }

    /// Type for operands of these kinds, in the user's notation.
    fn of_kinds(&self, kinds: &[&str]) -> String {
        match kinds {
            [] => self.without_operands.to_owned(),
            [kind] => format!("{}<({kind},)>", self.name),
            kinds if kinds.len() > EpilogueArg::MOST_LISTED => self.by_name.to_owned(),
            kinds => format!("{}<({})>", self.name, kinds.join(", ")),
        }
    }
}
