//! Persistent map with integer keys: maps share the parts they have in common.
//!
//! Each synchronising block knows almost the same as the previous one. The map is a Patricia trie:
//! equal parts of two maps are one node and are skipped, so a union takes time proportional to
//! their differences.

use std::rc::Rc;

/// Persistent map; clones share all nodes.
#[derive(Debug)]
pub(crate) struct PersistentMap<T>(Option<Rc<Node<T>>>);

#[derive(Debug)]
struct Node<T> {
    /// Common bits of all keys above `bit`; 0 from `bit` on.
    prefix: u32,
    /// Highest bit in which keys differ; 0 for a single key.
    bit: u32,
    kind: NodeKind<T>,
}

#[derive(Debug)]
enum NodeKind<T> {
    Leaf(T),
    /// Keys without the bit, then keys with it.
    Fork([Rc<Node<T>>; 2]),
}

/// Join of two values of one key.
pub(crate) enum Join<T> {
    First,
    Second,
    New(T),
}

impl<T> Default for PersistentMap<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Clone for PersistentMap<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> PersistentMap<T> {
    pub(crate) fn get(&self, key: u32) -> Option<&T> {
        let mut node = self.0.as_ref()?;
        loop {
            match &node.kind {
                _ if !node.spans(key) => return None,
                NodeKind::Leaf(value) => return Some(value),
                NodeKind::Fork(sides) => node = &sides[node.side(key)],
            }
        }
    }

    /// Returns a copy with this value, which replaces any other of its key.
    pub(crate) fn with(&self, key: u32, value: T) -> Self {
        let leaf = Self(Some(Rc::new(Node { prefix: key, bit: 0, kind: NodeKind::Leaf(value) })));
        self.and(&leaf, &|_, _| Join::Second)
    }

    /// Returns the union of two maps; `both` joins values of the same key.
    pub(crate) fn and(&self, other: &Self, both: &impl Fn(&T, &T) -> Join<T>) -> Self {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Self(self.0.as_ref().or(other.0.as_ref()).cloned());
        };
        Self(Some(Node::and(a, b, both)))
    }

    /// Returns true if both are the same nodes, rather than just equal maps.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl<T> Node<T> {
    /// Returns true if the key has the prefix.
    fn spans(&self, key: u32) -> bool {
        key & !self.low() == self.prefix
    }

    /// Bits in which keys may differ.
    fn low(&self) -> u32 {
        self.bit | self.bit.saturating_sub(1)
    }

    fn side(&self, key: u32) -> usize {
        usize::from(key & self.bit != 0)
    }

    fn and(a: &Rc<Self>, b: &Rc<Self>, both: &impl Fn(&T, &T) -> Join<T>) -> Rc<Self> {
        if Rc::ptr_eq(a, b) {
            return Rc::clone(a);
        }
        if (a.prefix, a.bit) == (b.prefix, b.bit) {
            return match (&a.kind, &b.kind) {
                (NodeKind::Fork([a0, a1]), NodeKind::Fork([b0, b1])) => {
                    let sides = [Self::and(a0, b0, both), Self::and(a1, b1, both)];
                    a.or_same(Some(b), sides)
                }
                (NodeKind::Leaf(x), NodeKind::Leaf(y)) => match both(x, y) {
                    Join::First => Rc::clone(a),
                    Join::Second => Rc::clone(b),
                    Join::New(z) => Rc::new(Self { kind: NodeKind::Leaf(z), ..**a }),
                },
                _ => unreachable!("the keys of a fork differ in its bit"),
            };
        }
        match (&a.kind, &b.kind) {
            (NodeKind::Fork([a0, a1]), _) if a.bit > b.bit && a.spans(b.prefix) => {
                let sides = match a.side(b.prefix) {
                    0 => [Self::and(a0, b, both), Rc::clone(a1)],
                    _ => [Rc::clone(a0), Self::and(a1, b, both)],
                };
                a.or_same(None, sides)
            }
            (_, NodeKind::Fork([b0, b1])) if b.bit > a.bit && b.spans(a.prefix) => {
                let sides = match b.side(a.prefix) {
                    0 => [Self::and(a, b0, both), Rc::clone(b1)],
                    _ => [Rc::clone(b0), Self::and(a, b1, both)],
                };
                b.or_same(None, sides)
            }
            _ => {
                let bit = 1 << (a.prefix ^ b.prefix).ilog2();
                let prefix = a.prefix & !(bit | (bit - 1));
                let sides = match a.prefix & bit {
                    0 => [Rc::clone(a), Rc::clone(b)],
                    _ => [Rc::clone(b), Rc::clone(a)],
                };
                Rc::new(Self { prefix, bit, kind: NodeKind::Fork(sides) })
            }
        }
    }

    /// Returns a fork of these sides: `self` or `other` if one of them has exactly these sides.
    fn or_same(self: &Rc<Self>, other: Option<&Rc<Self>>, sides: [Rc<Self>; 2]) -> Rc<Self> {
        let has = |node: &&Rc<Self>| match &node.kind {
            NodeKind::Fork(own) => own.iter().zip(&sides).all(|(a, b)| Rc::ptr_eq(a, b)),
            NodeKind::Leaf(_) => false,
        };
        match std::iter::once(self).chain(other).find(has) {
            Some(same) => Rc::clone(same),
            None => {
                let (prefix, bit) = (self.prefix, self.bit);
                Rc::new(Self { prefix, bit, kind: NodeKind::Fork(sides) })
            }
        }
    }
}
