//! Epilogue arguments of a GEMM.

use super::SgemmSpec;
use crate::expr::ClosureParam;
use crate::spec::epilogue::{Along, ArgSlot, Epilogue, EpilogueArg, EpilogueInput};
use crate::spec::{Batch, Pairs, Rect};
use std::borrow::Cow;

impl SgemmSpec {
    /// Factor of A·B under `scaled`.
    pub(crate) const ALPHA: &'static str = "alpha";
    /// Factor of C under `scaled`.
    pub(crate) const BETA: &'static str = "beta";
    /// Both factors, in the order of a launch.
    pub(crate) const FACTORS: [&'static str; 2] = [Self::ALPHA, Self::BETA];

    /// Number of matrices that a GEMM reads: A and B.
    const MATRICES: usize = 2;

    /// Returns the arguments of a launch other than A, B and C, in order: `alpha` and `beta` of
    /// `scaled`, then the operands of the epilogue except C, then the matrices for its values after
    /// the first.
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
                _ => arrays.next().map(ArgSlot::Array),
            };
            slot.map(|slot| EpilogueArg { name, along, slot })
        });
        let outputs = self.epilogue.iter().flat_map(Epilogue::outputs).zip(1..);
        let outputs = outputs.map(|((name, along), nth)| EpilogueArg {
            name,
            along,
            slot: ArgSlot::Output(nth),
        });
        placed.flatten().chain(outputs).collect()
    }

    /// Returns the index, among the arrays that a launch reads, of the offsets of the groups. They
    /// follow the arrays of the epilogue.
    pub fn offsets_input(&self) -> Option<usize> {
        Self::offsets_after(self.batch, &self.operands())
    }

    /// Returns the index of the offsets of a GEMM with these operands.
    pub fn offsets_after(batch: Option<Batch>, operands: &[EpilogueArg]) -> Option<usize> {
        let arrays = operands.iter().filter(|operand| matches!(operand.slot, ArgSlot::Array(_)));
        (batch == Some(Batch::Grouped)).then(|| Self::MATRICES + arrays.count())
    }

    /// Returns true if the epilogue uses the K of the whole problem, which may differ from the
    /// kernel's K.
    pub(crate) fn names_depth(&self) -> bool {
        self.scaled && self.epilogue.as_ref().is_some_and(|epilogue| epilogue.closure().reads("k"))
    }

    /// Returns the first operand with an element of its own for each GEMM of a batch.
    pub(crate) fn operand_of_batch(&self) -> Option<&ClosureParam> {
        let mut named = self.epilogue.iter().flat_map(Epilogue::named);
        let of_batch =
            |input| matches!(input, EpilogueInput::Operand(along) if along.is_of_batch());
        named.find(|(_, input)| of_batch(*input)).map(|(param, _)| param)
    }

    /// Returns the pairs of columns that the epilogue computes.
    pub fn pairs(&self) -> Pairs {
        self.epilogue.as_ref().map_or(Pairs::None, Epilogue::pairs)
    }

    /// Returns true if the kernel reads C before it writes C.
    pub fn reads_c(&self) -> bool {
        self.scaled || self.names_c()
    }

    /// Returns true if the epilogue names C.
    pub fn names_c(&self) -> bool {
        let named = |epilogue: &Epilogue| epilogue.named().any(|(_, n)| n == EpilogueInput::Output);
        self.epilogue.as_ref().is_some_and(named)
    }
}

impl Epilogue {
    /// Returns the operands that a call passes, in order: all parameters except `acc` and C.
    pub fn operands(&self) -> Vec<EpilogueArg> {
        SgemmSpec::default().epilogue(self.clone()).operands()
    }

    /// Returns the smallest kernel that can take the epilogue.
    pub(crate) fn smallest_kernel(self) -> SgemmSpec {
        let has_pairs = self.pairs() != Pairs::None;
        let spec = SgemmSpec::default().epilogue(self);
        // A thread needs both columns of a pair.
        let spec = if has_pairs { spec.thread(Rect::new(1, 2)) } else { spec };
        match spec.operand_of_batch() {
            Some(_) => spec.batch(Batch::Strided),
            None => spec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both lowerings and the launch find an operand by its slot. Each operand has a slot, and no
    /// two share one.
    #[test]
    fn each_operand_has_a_slot_of_its_own() {
        let line = "scaled, epilogue: |acc, x[n], y, c[m, n], z[m], w[m, n], v| (acc + x + y + z, \
            w + v + c, x)";
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
            ("c2[m, n]", ArgSlot::Output(1)),
            ("c3[m, n]", ArgSlot::Output(2)),
        ];
        assert_eq!(slots, expected.map(|(name, slot)| (name.to_owned(), slot)));
    }
}
