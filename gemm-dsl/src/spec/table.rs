//! The tables that specs are declared by.

use super::Spec;
use crate::ir::joined;
use crate::value::{Closure, Environment};
use std::fmt;
use thiserror::Error;

/// What may follow a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
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
pub(crate) trait Value: Sized {
    /// How it is written.
    const KIND: Kind;
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
    fn smallest(&self) -> Option<u32> {
        Some(*self)
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

/// One key of a spec.
pub(crate) struct Key<S> {
    /// The key as it is written.
    pub name: &'static str,
    /// What it means: the documentation of its field.
    pub meaning: &'static str,
    /// What may follow it.
    pub kind: Kind,
    /// What each of its words means.
    pub words: &'static [&'static str],
    /// Gives the field a value; false if the datum is of another kind.
    pub set: fn(&mut S, &Datum) -> bool,
    /// Gives the field its default.
    pub reset: fn(&mut S),
    /// The text of the field's value, empty for a flag; `None` where it is the default.
    pub text: fn(&S) -> Option<String>,
    /// What the value adds to a kernel's derived name, usually its text; `None` as for `text`.
    pub part: fn(&S) -> Option<String>,
    /// The text of the default, empty where it is the absence of a value.
    pub default: fn() -> String,
    /// The key's part of a kernel's derived name, with `{}` for that of the value; may be empty.
    pub tag: &'static str,
    /// The field's number, or its smallest dimension.
    pub smallest: fn(&S) -> Option<u32>,
    /// The least number that makes sense, and why.
    pub least: Option<(u32, &'static str)>,
    /// The kernels that it acts on; all of the family without this.
    pub acts_on: Option<ActsOn<S>>,
}

/// The kernels of a family that some keys act on.
pub(crate) struct ActsOn<S> {
    /// Whether the spec is one of these.
    pub includes: fn(&S) -> bool,
    /// The key that decides it.
    pub key: &'static str,
    /// Why the key has nothing to act on elsewhere.
    pub because: &'static str,
    /// What to do then.
    pub remedy: &'static str,
}

/// A key as its documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInfo {
    /// The key as it is written.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What may follow it.
    pub kind: Kind,
    /// What each word means that may follow it, in the order of [`Kind::Word`].
    pub words: &'static [&'static str],
    /// The text of its default; empty for a flag, and where the default is no value at all.
    pub default: String,
}

/// A spec as its table declares it.
pub(crate) trait Table: Spec + Default {
    /// Every key, in the order in which they are printed.
    const KEYS: &'static [Key<Self>];

    /// The key of this name.
    fn key(name: &str) -> Option<&'static Key<Self>> {
        Self::KEYS.iter().find(|key| key.name == name)
    }
}

/// Prints the fields that differ from the default, in the table's order.
pub(crate) fn line<S: Table>(spec: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
pub(crate) fn derived_name<S: Table>(stem: String, spec: &S) -> String {
    S::KEYS
        .iter()
        .filter(|key| !key.tag.is_empty())
        .filter_map(|key| Some(key.tag.replace("{}", &(key.part)(spec)?)))
        .fold(stem, |name, tag| name + "_" + &tag)
}

/// The name of a function that a user calls `name`: one of the family `family`, so that nothing of
/// CUDA's has it, and without the underscores that C++ keeps for itself.
pub(crate) fn given_name(family: &str, name: &str) -> String {
    let name = joined(name);
    if name.starts_with(family) { name } else { format!("{family}{name}") }
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
        $(#[doc = $first_doc:literal])* $first:ident = $first_word:literal,
        $($(#[doc = $variant_doc:literal])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            #[default]
            $(#[doc = $first_doc])* $first,
            $($(#[doc = $variant_doc])* $variant,)*
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
            const MEANINGS: &'static [&'static str] =
                &[concat!($($first_doc),*), $(concat!($($variant_doc),*)),*];
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

/// Declares a spec: its macro, and for each key its name, the type a setter takes, the type of the
/// field, its default and its tag in a kernel's derived name; then, where there is one, the least
/// number with the reason, and the kernels that the key acts on. Every spec starts with the key
/// `name`.
macro_rules! spec {
    ($(#[$doc:meta])* $spec:ident for $macro:literal {
        $(
            $(#[doc = $meaning:literal])*
            $key:ident($set:ty): $ty:ty = $default:expr, $tag:literal
                $(, least $least:literal $why:literal)?
                $(, on $on:expr)?;
        )*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct $spec {
            /// The kernel's name; without one it is derived from the spec.
            pub name: Option<String>,
            $($(#[doc = $meaning])* pub $key: $ty,)*
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

            fn table() -> Vec<$crate::spec::KeyInfo> {
                let keys = <Self as $crate::spec::table::Table>::KEYS.iter();
                keys.map(|key| $crate::spec::KeyInfo {
                    name: key.name,
                    meaning: key.meaning,
                    kind: key.kind,
                    words: key.words,
                    default: (key.default)(),
                })
                .collect()
            }

            fn set(&mut self, key: &str, value: &$crate::spec::Datum) -> bool {
                let key = <Self as $crate::spec::table::Table>::key(key);
                key.is_some_and(|key| (key.set)(self, value))
            }

            fn reset(&mut self, key: &str) {
                if let Some(key) = <Self as $crate::spec::table::Table>::key(key) {
                    (key.reset)(self);
                }
            }
        }

        impl $crate::spec::table::Table for $spec {
            const KEYS: &'static [$crate::spec::table::Key<Self>] = &[
                $crate::spec::table::Key {
                    meaning: "The kernel's name. `foo` makes a function `reduce_foo` or `sgemm_foo`, so that nothing of CUDA's has its name; without one it is derived from the spec.",
                    ..$crate::spec::table::spec!(@key name, Option<String>, None::<String>, "")
                },
                $($crate::spec::table::Key {
                    meaning: concat!($($meaning),*),
                    $(least: Some(($least, $why)),)?
                    $(acts_on: Some($on),)?
                    ..$crate::spec::table::spec!(@key $key, $ty, $default, $tag)
                },)*
            ];
        }

        /// The line of the DSL: the keys that differ from the default, in the order of the fields.
        impl ::std::fmt::Display for $spec {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::spec::table::line(self, f)
            }
        }
    };
    (@key $key:ident, $ty:ty, $default:expr, $tag:literal) => {
        $crate::spec::table::Key {
            name: stringify!($key),
            meaning: "",
            kind: <$ty as $crate::spec::table::Value>::KIND,
            words: <$ty as $crate::spec::table::Value>::MEANINGS,
            set: |spec, datum| {
                let value = <$ty as $crate::spec::table::Value>::read(datum);
                let read = value.is_some();
                if let Some(value) = value {
                    spec.$key = value;
                }
                read
            },
            reset: |spec| spec.$key = $default,
            text: |spec| {
                (spec.$key != $default).then(|| $crate::spec::table::Value::text(&spec.$key))
            },
            part: |spec| {
                (spec.$key != $default).then(|| $crate::spec::table::Value::part(&spec.$key))
            },
            default: || <$ty as $crate::spec::table::Value>::text(&$default),
            tag: $tag,
            smallest: |spec| $crate::spec::table::Value::smallest(&spec.$key),
            least: None,
            acts_on: None,
        }
    };
}
pub(crate) use spec;
