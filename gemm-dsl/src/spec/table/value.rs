//! Values of keys: their kinds, and how they are written and parsed.

use crate::expr::{Closure, ExprScope};

/// Form of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyKind {
    /// No value: the key stands alone.
    Flag,
    /// A number that fits in `u32`.
    Number,
    Size {
        /// Names of the dimensions, as in `MxNxK`.
        form: &'static str,
        example: &'static str,
        dims: usize,
    },
    /// A number that fits in `u32`, or this word in place of a number.
    NumberOr(&'static str),
    /// One of a few words.
    Word(&'static [&'static str]),
    Name,
    /// An expression in a scope.
    Closure(&'static ExprScope),
}

/// Untyped value, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Datum {
    Flag,
    Number(u32),
    Size(Vec<u32>),
    /// A word of an enumeration, or a name.
    Word(String),
    Closure(Closure),
}

/// Type of a spec's field.
pub(crate) trait KeyValue: Sized {
    const KIND: KeyKind;
    /// Documentation of each word, if the value is one of a few words.
    const MEANINGS: &'static [&'static str] = &[];
    /// Returns the DSL's text of the value.
    fn text(&self) -> String;
    /// Returns the value's part of a derived kernel name.
    fn part(&self) -> String {
        self.text()
    }
    /// Returns the value, or `None` if the datum is of another kind.
    fn read(datum: &Datum) -> Option<Self>;
    /// Returns the number, or the smallest dimension of a size; `None` for other values.
    fn smallest(&self) -> Option<u32> {
        None
    }
}

impl KeyValue for bool {
    const KIND: KeyKind = KeyKind::Flag;
    fn text(&self) -> String {
        String::new()
    }
    fn read(datum: &Datum) -> Option<Self> {
        (*datum == Datum::Flag).then_some(true)
    }
}

impl KeyValue for u32 {
    const KIND: KeyKind = KeyKind::Number;
    fn text(&self) -> String {
        self.to_string()
    }
    fn read(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Number(number) => Some(*number),
            _ => None,
        }
    }
    fn smallest(&self) -> Option<u32> {
        Some(*self)
    }
}

impl KeyValue for String {
    const KIND: KeyKind = KeyKind::Name;
    fn text(&self) -> String {
        self.clone()
    }
    fn read(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Word(word) => Some(word.clone()),
            _ => None,
        }
    }
}

/// An absent value is never written.
impl<T: KeyValue> KeyValue for Option<T> {
    const KIND: KeyKind = T::KIND;
    const MEANINGS: &'static [&'static str] = T::MEANINGS;
    fn text(&self) -> String {
        self.as_ref().map(T::text).unwrap_or_default()
    }
    fn part(&self) -> String {
        self.as_ref().map(T::part).unwrap_or_default()
    }
    fn read(datum: &Datum) -> Option<Self> {
        T::read(datum).map(Some)
    }
    fn smallest(&self) -> Option<u32> {
        self.as_ref().and_then(T::smallest)
    }
}
