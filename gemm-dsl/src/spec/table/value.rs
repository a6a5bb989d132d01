//! The values of keys: how each is written and read.

use crate::expr::{Closure, ExprScope};

/// What may follow a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyKind {
    /// Nothing: the key itself is the statement.
    Flag,
    /// A number that fits in `u32`.
    Number,
    /// Dimensions joined by `x`.
    Size {
        /// What the dimensions are called, as in `MxNxK`.
        form: &'static str,
        /// A size of this form.
        example: &'static str,
        /// How many there are.
        dims: usize,
    },
    /// A number that fits in `u32`, or a word in place of one.
    NumberOr(&'static str),
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Any identifier.
    Name,
    /// An expression in an environment.
    Closure(&'static ExprScope),
}

/// A value as it was written, before it has a type of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Datum {
    /// That of a flag.
    Flag,
    /// A number.
    Number(u32),
    /// The dimensions of a size.
    Size(Vec<u32>),
    /// One of an enumeration's words, or a name.
    Word(String),
    /// An expression.
    Closure(Closure),
}

/// A type that a field of a spec can have.
pub(crate) trait KeyValue: Sized {
    /// How it is written.
    const KIND: KeyKind;
    /// What each of its words means, if it is one of a few.
    const MEANINGS: &'static [&'static str] = &[];
    /// The DSL's text of the value.
    fn text(&self) -> String;
    /// Its part of a kernel's derived name.
    fn part(&self) -> String {
        self.text()
    }
    /// The value, if the datum is of this kind.
    fn read(datum: &Datum) -> Option<Self>;
    /// The number, or the smallest dimension, if it has one.
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
