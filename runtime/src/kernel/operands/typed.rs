//! Operands of GEMMs whose matrices have other element types than `f32`.

use super::{Operands, sealed};
use gemm_dsl::target::element::Element;
use std::fmt;
use std::marker::PhantomData;

/// Element types of A, B and C, and the [operands](Operands) of a [`Gemm`](crate::Gemm).
pub struct Typed<A, B, C, E> {
    of: PhantomData<Markers<A, B, C, E>>,
}

type Markers<A, B, C, E> = (fn() -> A, fn() -> B, fn() -> C, fn() -> E);

impl<A, B, C, E> fmt::Debug for Typed<A, B, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("of", &self.of).finish()
    }
}

impl<A: Element, B: Element, C: Element, E: Operands> Operands for Typed<A, B, C, E> {
    type List = E;
    type Unset<'a> = E::Unset<'a>;
    type A = A;
    type B = B;
    type C = C;
}

impl<A, B, C, E: Operands> sealed::Operands for Typed<A, B, C, E> {
    const KINDS: Option<&'static [&'static str]> = E::KINDS;
}
