//! Lists that are built at run time or written as constants.

use std::fmt;
use std::ops::Deref;

/// A slice that a constant contains, or a vector.
#[derive(Clone)]
pub enum List<T: 'static> {
    Constant(&'static [T]),
    Owned(Vec<T>),
}

impl<T> List<T> {
    /// Empty list.
    pub const EMPTY: Self = Self::Constant(&[]);

    pub const fn as_slice(&self) -> &[T] {
        match self {
            Self::Constant(items) => items,
            Self::Owned(items) => items.as_slice(),
        }
    }
}

impl<T: Clone> List<T> {
    /// Vector to be changed, copied from the constant if it is one.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Self::Constant(items) = self {
            *self = Self::Owned(items.to_vec());
        }
        match self {
            Self::Owned(items) => items,
            Self::Constant(_) => unreachable!("it has just been copied"),
        }
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self::Owned(items)
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Owned(items.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
