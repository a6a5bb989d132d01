//! Operand lists as tuples: tuples of kinds, and tuples of values. A single value stands for a
//! tuple of one.

use super::sealed::Give;
use super::{
    EpilogueArg, GivenOperands, OperandFor, OperandForms, OperandKind, Operands, OperandsFor,
    sealed,
};
use crate::error::Result;

impl Operands for () {
    type List = Self;
    type Unset<'a> = ();
    type A = f32;
    type B = f32;
    type C = f32;
}

impl sealed::Operands for () {
    const KINDS: Option<&'static [&'static str]> = Some(&[]);
}

impl OperandsFor<()> for () {}

impl sealed::GiveAll for () {
    fn forms(&self, _: &[EpilogueArg]) -> Result<OperandForms> {
        Ok(OperandForms::new())
    }

    fn give_all(&mut self, _: &[EpilogueArg]) -> Result<GivenOperands<'_>> {
        Ok(GivenOperands::default())
    }
}

/// Implements the traits for a single value, which stands for a tuple of one.
macro_rules! alone {
    ([$($generic:tt)*] $given:ty) => {
        impl<K: OperandKind, $($generic)*> OperandsFor<(K,)> for $given where Self: OperandFor<K> {}

        impl<$($generic)*> sealed::GiveAll for $given
        where
            Self: Give,
        {
            fn forms(&self, _: &[EpilogueArg]) -> Result<OperandForms> {
                Ok(OperandForms::from_slice(&[self.form()]))
            }

            fn give_all(&mut self, _: &[EpilogueArg]) -> Result<GivenOperands<'_>> {
                let mut beside = GivenOperands::default();
                beside.push(self.give());
                Ok(beside)
            }
        }
    };
}

alone!([V: ?Sized] &V);
alone!([V: ?Sized] &mut V);
alone!([] f32);

/// Implements the traits for the list in brackets, then for each longer list: every step adds one
/// of the following kinds.
macro_rules! lists {
    ([$(($kind:ident $given:ident $at:tt))*] $next:tt $($more:tt)*) => {
        lists!([$(($kind $given $at))*]);
        lists!([$(($kind $given $at))* $next] $($more)*);
    };
    ([$(($kind:ident $given:ident $at:tt))*]) => {
        impl<$($kind: OperandKind,)*> Operands for ($($kind,)*) {
            type List = Self;
            type Unset<'a> = ();
            type A = f32;
            type B = f32;
            type C = f32;
        }

        impl<$($kind: OperandKind,)*> sealed::Operands for ($($kind,)*) {
            const KINDS: Option<&'static [&'static str]> = Some(&[$($kind::KIND,)*]);
        }

        impl<$($kind, $given: OperandFor<$kind>,)*> OperandsFor<($($kind,)*)> for ($($given,)*) {}

        impl<$($given: Give,)*> sealed::GiveAll for ($($given,)*) {
            fn forms(&self, _: &[EpilogueArg]) -> Result<OperandForms> {
                Ok([$(self.$at.form()),*].into_iter().collect())
            }

            fn give_all(&mut self, _: &[EpilogueArg]) -> Result<GivenOperands<'_>> {
                let mut beside = GivenOperands::default();
                $(beside.push(self.$at.give());)*
                Ok(beside)
            }
        }
    };
}

lists!([(K0 G0 0)] (K1 G1 1) (K2 G2 2) (K3 G3 3) (K4 G4 4) (K5 G5 5) (K6 G6 6) (K7 G7 7) (K8 G8 8)
    (K9 G9 9) (K10 G10 10) (K11 G11 11));
