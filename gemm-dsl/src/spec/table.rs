//! The tables that specs are declared by.

mod value;
mod words;

pub(crate) use value::KeyValue;
pub use value::{Datum, KeyKind};
pub use words::UnknownWord;
pub(crate) use words::words;

use super::Spec;
use crate::ir::joined;
use std::fmt;

/// One key of a spec.
pub(crate) struct Key<S: 'static> {
    /// The key as it is written.
    pub name: &'static str,
    /// What it means: the documentation of its field.
    pub meaning: &'static str,
    /// What may follow it.
    pub kind: KeyKind,
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
    /// What it says of what is computed; nothing, without this, but of how.
    pub what: Option<What<S>>,
    /// Takes the field of another spec.
    pub take: fn(&mut S, &S),
}

impl<S> Key<S> {
    /// Whether a spec has it and it has nothing to act on there.
    pub(crate) fn is_idle(&self, spec: &S) -> bool {
        let acts = self.acts_on.as_ref().is_none_or(|on| (on.includes)(spec));
        !acts && (self.text)(spec).is_some()
    }
}

/// What a key says of what is computed.
pub(crate) struct What<S> {
    /// Whether two specs compute the same as far as it goes.
    pub same: fn(&S, &S) -> bool,
    /// Of which operands the types follow from it, among others.
    pub types: &'static [Typed],
}

/// Operands that have types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// What a kernel reads.
    Inputs,
    /// What it writes.
    Results,
}

/// The kernels of a family that some keys act on.
pub(crate) struct ActsOn<S: 'static> {
    /// Whether the spec is one of these.
    pub includes: fn(&S) -> bool,
    /// The keys that decide it, the last of which is the first to be given.
    pub rests_on: &'static [&'static str],
    /// Why the key has nothing to act on elsewhere.
    pub because: &'static str,
    /// What to do then.
    pub suggestion: Suggestion<S>,
}

/// What to do about a key that has nothing to act on.
pub(crate) enum Suggestion<S: 'static> {
    /// This.
    Say(&'static str),
    /// To add those of these that there are not, or to leave it out.
    Add(&'static [Prerequisite<S>]),
}

/// An entry of a line, and whether a spec has it.
pub(crate) type Prerequisite<S> = (&'static str, fn(&S) -> bool);

impl<S> Suggestion<S> {
    /// What to do about it in a spec.
    pub(crate) fn text(&self, spec: &S) -> String {
        match self {
            Self::Say(text) => (*text).to_owned(),
            Self::Add(needs) => {
                let missing = needs.iter().filter(|(_, has)| !has(spec));
                let missing: Vec<&str> = missing.map(|(entry, _)| *entry).collect();
                format!("add `{}`, or leave it out", missing.join(", "))
            }
        }
    }
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
    pub kind: KeyKind,
    /// What each word means that may follow it, in the order of [`KeyKind::Word`].
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

    /// What the key of this name says of what is computed.
    fn what(name: &str) -> Option<&'static What<Self>> {
        Self::key(name).and_then(|key| key.what.as_ref())
    }

    /// The first key by which another spec computes something else.
    fn differs(&self, other: &Self) -> Option<&'static str> {
        let differs =
            |key: &&Key<Self>| key.what.as_ref().is_some_and(|what| !(what.same)(self, other));
        Self::KEYS.iter().find(differs).map(|key| key.name)
    }

    /// What another spec computes, in the way of this one.
    fn computing(mut self, what: &Self) -> Self {
        let keys = Self::KEYS.iter().filter(|key| key.what.is_some());
        keys.for_each(|key| (key.take)(&mut self, what));
        self
    }
}

/// Prints the fields that differ from the default, in the table's order.
pub(crate) fn line<S: Table>(spec: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "";
    for key in S::KEYS {
        if let Some(text) = (key.text)(spec) {
            match key.kind {
                KeyKind::Flag => write!(f, "{separator}{}", key.name)?,
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

/// Declares a spec: its macro, and for each key its name, the type a setter takes, the type of the
/// field, its default and its tag in a kernel's derived name; then, where there is one, the least
/// number with the reason, the kernels that the key acts on, and how the key is written where its field
/// cannot be called so. `what` marks a key of what is computed: specs that differ in others alone compute
/// the same. `what(Inputs)` is one from which the types of these operands follow, `as` what of the spec counts where it is
/// not the field. Every spec starts with the key `name`.
macro_rules! spec {
    ($(#[$doc:meta])* $spec:ident for $macro:literal {
        $(
            $(#[doc = $meaning:literal])*
            $key:ident($set:ty): $ty:ty = $default:expr, $tag:literal
                $(, least $least:literal $why:literal)?
                $(, on $on:expr)?
                $(, called $called:literal)?
                $(, what $(($($typed:ident),+))? $(as $same:expr)?)?;
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
                #[doc = concat!("Sets the key `", $crate::spec::table::spec!(@called $key $($called)?), "`.")]
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
                    $(name: $called,)?
                    $(what: Some($crate::spec::table::What {
                        same: $crate::spec::table::spec!(@same $key $($same)?),
                        types: &[$($($crate::spec::table::Typed::$typed),+)?],
                    }),)?
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
    (@same $key:ident) => { |spec, other| spec.$key == other.$key };
    (@same $key:ident $same:expr) => { |spec, other| $same(spec) == $same(other) };
    (@called $key:ident) => { stringify!($key) };
    (@called $key:ident $called:literal) => { $called };
    (@key $key:ident, $ty:ty, $default:expr, $tag:literal) => {
        $crate::spec::table::Key {
            name: stringify!($key),
            meaning: "",
            kind: <$ty as $crate::spec::table::KeyValue>::KIND,
            words: <$ty as $crate::spec::table::KeyValue>::MEANINGS,
            set: |spec, datum| {
                let value = <$ty as $crate::spec::table::KeyValue>::read(datum);
                let read = value.is_some();
                if let Some(value) = value {
                    spec.$key = value;
                }
                read
            },
            reset: |spec| spec.$key = $default,
            text: |spec| {
                (spec.$key != $default).then(|| $crate::spec::table::KeyValue::text(&spec.$key))
            },
            part: |spec| {
                (spec.$key != $default).then(|| $crate::spec::table::KeyValue::part(&spec.$key))
            },
            default: || <$ty as $crate::spec::table::KeyValue>::text(&$default),
            tag: $tag,
            smallest: |spec| $crate::spec::table::KeyValue::smallest(&spec.$key),
            least: None,
            acts_on: None,
            what: None,
            take: |spec, other| spec.$key = other.$key.clone(),
        }
    };
}
pub(crate) use spec;
