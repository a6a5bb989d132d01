//! The tables that specs are declared by.

use super::Spec;
use crate::error::SpecErrors;
use crate::value::{Closure, Environment};
use std::fmt;
use thiserror::Error;

/// What may follow a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
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
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Any identifier.
    Name,
    /// An expression in an environment.
    Closure(&'static Environment),
}

/// A value as it was written, before it has a type of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datum {
    Flag,
    Number(u32),
    Size(Vec<u32>),
    Word(String),
    Closure(Closure),
}

/// A type that a field of a spec can have.
pub(crate) trait Value: Sized {
    /// How it is written.
    const KIND: Kind;
    /// The DSL's text of the value.
    fn text(&self) -> String;
    /// Its part of a kernel's derived name.
    fn part(&self) -> String {
        self.text()
    }
    /// The value, if the datum is of this kind.
    fn read(datum: &Datum) -> Option<Self>;
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;
    fn text(&self) -> String {
        String::new()
    }
    fn read(datum: &Datum) -> Option<Self> {
        (*datum == Datum::Flag).then_some(true)
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Number;
    fn text(&self) -> String {
        self.to_string()
    }
    fn read(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl Value for String {
    const KIND: Kind = Kind::Name;
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
impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn text(&self) -> String {
        self.as_ref().map(T::text).unwrap_or_default()
    }
    fn part(&self) -> String {
        self.as_ref().map(T::part).unwrap_or_default()
    }
    fn read(datum: &Datum) -> Option<Self> {
        T::read(datum).map(Some)
    }
}

/// One key of a spec.
pub(crate) struct Key<S> {
    /// The key as it is written.
    pub name: &'static str,
    /// What may follow it.
    pub kind: Kind,
    /// Gives the field a value; false if the datum is of another kind.
    pub set: fn(&mut S, &Datum) -> bool,
    /// The text of the field's value, empty for a flag; `None` where it is the default.
    pub text: fn(&S) -> Option<String>,
    /// What the value adds to a kernel's derived name, usually its text; `None` as for `text`.
    pub part: fn(&S) -> Option<String>,
    /// The key's part of a kernel's derived name, with `{}` for that of the value; may be empty.
    pub tag: &'static str,
}

/// A spec as the grammar sees it.
pub(crate) trait Family: Spec + Default {
    /// Every key, in the order in which they are printed.
    const KEYS: &'static [Key<Self>];
    /// Whether the spec has a plan, and its name, if one is given, is free in the text.
    fn check(&self) -> Result<(), SpecErrors>;
}

/// Prints the fields that differ from the default, in the table's order.
pub(crate) fn line<S: Family>(spec: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "";
    for key in S::KEYS {
        if let Some(text) = (key.text)(spec) {
            match key.kind {
                Kind::Flag => write!(f, "{separator}{}", key.name)?,
                _ => write!(f, "{separator}{}: {text}", key.name)?,
            }
            separator = ", ";
        }
    }
    Ok(())
}

/// The derived name of a kernel: `stem`, then the tag of every field that differs from the default.
pub(crate) fn derived_name<S: Family>(stem: String, spec: &S) -> String {
    S::KEYS
        .iter()
        .filter(|key| !key.tag.is_empty())
        .filter_map(|key| Some(key.tag.replace("{}", &(key.part)(spec)?)))
        .fold(stem, |name, tag| name + "_" + &tag)
}

/// A word that is none of an enumeration's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{word}` is none of {expected}")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The words there are, quoted and separated by commas.
    pub expected: String,
}

/// Declares an enumeration with the DSL's word for each variant; the first is the default.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident {
        $(#[$first_doc:meta])* $first:ident = $first_word:literal,
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            #[default]
            $(#[$first_doc])* $first,
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the documentation.
            pub const ALL: &[Self] = &[Self::$first, $(Self::$variant),*];

            const WORDS: &[&str] = &[$first_word, $($word),*];

            /// The word of the DSL.
            pub fn word(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::spec::table::UnknownWord;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|variant| variant.word() == word)
                    .ok_or_else(|| $crate::spec::table::UnknownWord {
                        word: word.to_owned(),
                        expected: $crate::error::quoted(Self::WORDS),
                    })
            }
        }

        impl $crate::spec::table::Value for $name {
            const KIND: $crate::spec::table::Kind = $crate::spec::table::Kind::Word(Self::WORDS);
            fn text(&self) -> String {
                self.word().to_owned()
            }
            fn read(datum: &$crate::spec::table::Datum) -> Option<Self> {
                match datum {
                    $crate::spec::table::Datum::Word(word) => word.parse().ok(),
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use words;

/// Declares a spec: its macro, its lowering, and for each key its name, the type a setter takes, the type of the field, its
/// default and its tag in a kernel's derived name. Every spec starts with the key `name`.
macro_rules! spec {
    ($(#[$doc:meta])* $spec:ident for $macro:literal, $lower:path {
        $($(#[$key_doc:meta])* $key:ident($set:ty): $ty:ty = $default:expr, $tag:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct $spec {
            /// The kernel's name, a C++ identifier; without one it is derived from the spec.
            pub name: Option<String>,
            $($(#[$key_doc])* pub $key: $ty,)*
        }

        impl Default for $spec {
            fn default() -> Self {
                Self { name: None, $($key: $default,)* }
            }
        }

        impl $spec {
            /// Sets the key `name`.
            #[must_use]
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.name = Some(name.into());
                self
            }

            $(
                #[doc = concat!("Sets the key `", stringify!($key), "`.")]
                #[must_use]
                pub fn $key(mut self, $key: $set) -> Self {
                    self.$key = $key.into();
                    self
                }
            )*
        }

        impl $crate::spec::Spec for $spec {
            const MACRO: &'static str = $macro;

            fn keys() -> Vec<&'static str> {
                <Self as $crate::spec::table::Family>::KEYS.iter().map(|key| key.name).collect()
            }

            fn program(&self) -> Result<$crate::ir::VerifiedProgram, $crate::error::SpecErrors> {
                $lower(&self.plan()?).map_err(|broken| match &self.name {
                    // What holds under the derived name is broken by the user's.
                    Some(name) if (Self { name: None, ..self.clone() }).program().is_ok() => {
                        $crate::error::name::used(name).into()
                    }
                    _ => broken.into(),
                })
            }
        }

        impl $crate::spec::table::Family for $spec {
            const KEYS: &'static [$crate::spec::table::Key<Self>] = &[
                $crate::spec::table::spec!(@key name, Option<String>, None::<String>, ""),
                $($crate::spec::table::spec!(@key $key, $ty, $default, $tag),)*
            ];

            fn check(&self) -> Result<(), $crate::error::SpecErrors> {
                match self.name {
                    None => self.plan().map(drop),
                    Some(_) => $crate::spec::Spec::program(self).map(drop),
                }
            }
        }

        /// The line of the DSL: the keys that differ from the default, in the order of the fields.
        impl ::std::fmt::Display for $spec {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::spec::table::line(self, f)
            }
        }

        /// Reads a line of the DSL and checks it as its plan does, with the messages of the macro.
        impl ::std::str::FromStr for $spec {
            type Err = $crate::error::SpecErrors;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::parse::from_text(text)
            }
        }
    };
    (@key $key:ident, $ty:ty, $default:expr, $tag:literal) => {
        $crate::spec::table::Key {
            name: stringify!($key),
            kind: <$ty as $crate::spec::table::Value>::KIND,
            set: |spec, datum| {
                let value = <$ty as $crate::spec::table::Value>::read(datum);
                let read = value.is_some();
                if let Some(value) = value {
                    spec.$key = value;
                }
                read
            },
            text: |spec| {
                (spec.$key != $default).then(|| $crate::spec::table::Value::text(&spec.$key))
            },
            part: |spec| {
                (spec.$key != $default).then(|| $crate::spec::table::Value::part(&spec.$key))
            },
            tag: $tag,
        }
    };
}
pub(crate) use spec;
