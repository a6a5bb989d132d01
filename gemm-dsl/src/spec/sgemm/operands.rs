//! What a GEMM takes beside its matrices.

use super::SgemmSpec;
use crate::spec::epilogue::{Along, ArgSlot, Epilogue, EpilogueArg, EpilogueInput};
use std::borrow::Cow;

impl SgemmSpec {
    /// The factor of A·B in a `scaled` product.
    pub(crate) const ALPHA: &'static str = "alpha";
    /// The factor of C.
    pub(crate) const BETA: &'static str = "beta";
    /// Both, as they are given.
    pub(crate) const FACTORS: [&'static str; 2] = [Self::ALPHA, Self::BETA];

    /// A and B.
    const MATRICES: usize = 2;

    /// What the caller gives beside A, B and C, in this order: `alpha` and `beta` of a `scaled` product,
    /// then what the epilogue names, but for C itself.
    pub fn operands(&self) -> Vec<EpilogueArg> {
        let factors = Self::FACTORS.into_iter().filter(|_| self.scaled);
        let factors = factors.map(|name| (Cow::Borrowed(name), Along::Nothing));
        let named = self.epilogue.iter().flat_map(Epilogue::named);
        let named = named.filter_map(|(param, named)| match named {
            EpilogueInput::Output => None,
            EpilogueInput::Operand(along) => Some((param.name.clone().into(), along)),
        });
        let (mut arrays, mut numbers) = (Self::MATRICES.., 0..);
        let placed = factors.chain(named).map(|(name, along)| {
            let slot = match along {
                Along::Nothing => numbers.next().map(ArgSlot::Number),
                Along::N | Along::M | Along::Mn => arrays.next().map(ArgSlot::Array),
            };
            slot.map(|slot| EpilogueArg { name, along, slot })
        });
        placed.flatten().collect()
    }

    /// Whether the kernel's extent of K may differ from that of the problem, which the epilogue names.
    pub(crate) fn names_depth(&self) -> bool {
        self.scaled && self.epilogue.as_ref().is_some_and(|epilogue| epilogue.closure().reads("k"))
    }

    /// Whether C is read where it is written.
    pub fn reads_c(&self) -> bool {
        self.scaled || self.names_c()
    }

    /// Whether the epilogue names C.
    pub fn names_c(&self) -> bool {
        let named = |epilogue: &Epilogue| epilogue.named().any(|(_, n)| n == EpilogueInput::Output);
        self.epilogue.as_ref().is_some_and(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both lowerings and the launch find an operand by its slot: no two share one, and none is left out.
    #[test]
    fn each_operand_has_a_slot_of_its_own() {
        let line = "scaled, epilogue: |acc, x[n], y, c[m, n], z[m], w[m, n], v| acc + x + y + z + w + v + c";
        let spec: SgemmSpec = line.parse().expect("a sound line");
        let operands = spec.operands().into_iter();
        let slots: Vec<_> = operands.map(|operand| (operand.to_string(), operand.slot)).collect();
        let expected = [
            ("alpha", ArgSlot::Number(0)),
            ("beta", ArgSlot::Number(1)),
            ("x[n]", ArgSlot::Array(2)),
            ("y", ArgSlot::Number(2)),
            ("z[m]", ArgSlot::Array(3)),
            ("w[m, n]", ArgSlot::Array(4)),
            ("v", ArgSlot::Number(3)),
        ];
        assert_eq!(slots, expected.map(|(name, slot)| (name.to_owned(), slot)));
    }
}
