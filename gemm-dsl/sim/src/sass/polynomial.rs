//! Integers as polynomials of values that are unknown at build time. Polynomials show which
//! addresses differ only by a constant, and which part of an address is loop-invariant.

pub(super) type ValueId = u32;

/// Maximum number of factors of a term; [`MAX_TERMS`] is the maximum number of terms of a sum.
const MAX_FACTORS: usize = 4;
const MAX_TERMS: usize = 24;

/// Product of values in ascending order, and its coefficient.
pub(super) type Term = (Vec<ValueId>, i64);

/// Sum of products of values, plus a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Polynomial {
    /// Terms in ascending order of their products. Coefficients are not zero.
    pub(super) terms: Vec<Term>,
    pub(super) constant: i64,
}

impl Polynomial {
    pub(super) fn constant(constant: i64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(super) fn value(id: ValueId) -> Self {
        Self { terms: vec![(vec![id], 1)], constant: 0 }
    }

    /// Value of the polynomial; `None` unless it is constant.
    pub(super) fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Returns the value of a polynomial that is a single value; `None` for any other polynomial.
    pub(super) fn single(&self) -> Option<ValueId> {
        match &self.terms[..] {
            [(of, 1)] if of.len() == 1 && self.constant == 0 => Some(of[0]),
            _ => None,
        }
    }

    pub(super) fn add(&self, other: &Self, times: i64) -> Self {
        let mut sum = self.clone();
        sum.constant = sum.constant.wrapping_add(other.constant.wrapping_mul(times));
        for (of, by) in &other.terms {
            sum.include(of, by.wrapping_mul(times));
        }
        sum
    }

    fn include(&mut self, of: &[ValueId], by: i64) {
        match self.terms.binary_search_by(|(known, _)| known[..].cmp(of)) {
            Ok(at) => {
                self.terms[at].1 = self.terms[at].1.wrapping_add(by);
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) if by != 0 => self.terms.insert(at, (of.to_vec(), by)),
            Err(_) => {}
        }
    }

    pub(super) fn times(&self, by: i64) -> Self {
        Self::default().add(self, by)
    }

    /// Returns the product, or `None` if it exceeds [`MAX_FACTORS`] or [`MAX_TERMS`].
    pub(super) fn product(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default().add(self, other.constant);
        for (of, by) in &other.terms {
            product.include(of, by.wrapping_mul(self.constant));
            for (own, times) in &self.terms {
                let mut factors = [&own[..], of].concat();
                factors.sort_unstable();
                if factors.len() > MAX_FACTORS {
                    return None;
                }
                product.include(&factors, by.wrapping_mul(*times));
            }
        }
        (product.terms.len() <= MAX_TERMS).then_some(product)
    }

    pub(super) fn varying(&self) -> Self {
        Self { terms: self.terms.clone(), constant: 0 }
    }

    /// Partitions the terms by a predicate on their factors.
    pub(super) fn split(&self, is: impl Fn(&[ValueId]) -> bool) -> (Vec<Term>, Vec<Term>) {
        self.terms.iter().cloned().partition(|(of, _)| is(of))
    }

    /// Polynomial of these terms, without a constant.
    pub(super) fn from_terms(terms: Vec<Term>) -> Self {
        Self { terms, constant: 0 }
    }

    /// Numbers of differing terms: of single values, and of products.
    pub(super) fn distance(&self, other: &Self) -> (usize, usize) {
        let apart = |a: &Self, b: &Self, product: bool| {
            let terms = a.terms.iter().filter(|t| (t.0.len() > 1) == product);
            terms.filter(|t| !b.terms.contains(t)).count()
        };
        let of = |product| apart(self, other, product).max(apart(other, self, product));
        (of(false), of(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_taken_apart() {
        // (3a + 2)(a - b + 1) = 3aa - 3ab + 5a - 2b + 2
        let (a, b) = (Polynomial::value(0), Polynomial::value(1));
        let left = a.times(3).add(&Polynomial::constant(2), 1);
        let right = a.add(&b, -1).add(&Polynomial::constant(1), 1);
        let product = left.product(&right).expect("four terms");
        let terms = [(vec![0], 5), (vec![0, 0], 3), (vec![0, 1], -3), (vec![1], -2)];
        assert_eq!(product, Polynomial { terms: terms.into(), constant: 2 });
    }

    #[test]
    fn cancelled_terms_disappear() {
        let a = Polynomial::value(7).times(4);
        assert_eq!(a.add(&a, -1).known(), Some(0));
        assert_eq!(a.add(&Polynomial::constant(8), 1).distance(&a), (0, 0));
        assert_eq!(a.distance(&Polynomial::value(7)), (1, 0));
    }
}
