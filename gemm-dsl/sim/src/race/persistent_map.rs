//! Persistent map with integer keys. Maps share the parts that are equal.
//!
//! Each block that synchronises knows almost the same as the previous block. The map is a Patricia
//! trie, in which equal parts of two maps can be the same node. A union skips such nodes, so it
//! takes time proportional to the differences.

use std::rc::Rc;

/// Persistent map; clones share all nodes.
#[derive(Debug)]
pub(crate) struct PersistentMap<T>(Option<Rc<Node<T>>>);

#[derive(Debug)]
struct Node<T> {
    /// Bits above `bit`, which all keys have in common; the other bits are 0.
    prefix: u32,
    /// Highest bit in which keys differ; 0 for a single key.
    bit: u32,
    kind: NodeKind<T>,
}

#[derive(Debug)]
enum NodeKind<T> {
    Leaf(T),
    /// Keys in which the bit is 0, and keys in which it is 1.
    Fork([Rc<Node<T>>; 2]),
}

/// Result of joining two values with the same key.
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

    /// Returns a copy in which the key has this value.
    pub(crate) fn with(&self, key: u32, value: T) -> Self {
        let leaf = Self(Some(Rc::new(Node { prefix: key, bit: 0, kind: NodeKind::Leaf(value) })));
        self.and(&leaf, &|_, _| Join::Second)
    }

    /// Returns the union of two maps. `both` joins two values of the same key.
    pub(crate) fn and(&self, other: &Self, both: &impl Fn(&T, &T) -> Join<T>) -> Self {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Self(self.0.as_ref().or(other.0.as_ref()).cloned());
        };
        Self(Some(Node::and(a, b, both)))
    }

    /// Returns true if both maps consist of the same nodes. Equal maps may have different nodes.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl<T> Node<T> {
    /// Returns true if the key has this node's prefix.
    fn spans(&self, key: u32) -> bool {
        key & !self.low() == self.prefix
    }

    /// Mask of the bits in which keys may differ.
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

    /// Returns a fork of these sides. If `self` or `other` has exactly these sides, returns it
    /// instead of a new node.
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
