mod value;
mod words;

pub(crate) use value::KeyValue;
pub use value::{Datum, KeyKind};
pub(crate) use words::words;
pub use words::{UnknownWord, newer_word};

use super::Spec;
use crate::ir::joined;
use std::fmt;

/// One key of a spec.
pub(crate) struct Key<S: 'static> {
    pub name: &'static str,
    pub meaning: &'static str,
    pub kind: KeyKind,
    /// Documentation of each word, if the value is one of a few words.
    pub words: &'static [&'static str],
    /// Sets the field; returns false if the datum is of another kind.
    pub set: fn(&mut S, &Datum) -> bool,
    /// Resets the field to its default.
    pub reset: fn(&mut S),
    /// Returns the text of the field's value, empty for a flag; `None` for the default.
    pub text: fn(&S) -> Option<String>,
    /// Returns the value's part of a derived kernel name, usually its text; `None` for the default.
    pub part: fn(&S) -> Option<String>,
    /// Returns the text of the default; empty if there is no default value.
    pub default: fn() -> String,
    /// Key's part of a derived kernel name, with `{}` for the value's part; may be empty.
    pub tag: &'static str,
    /// Returns the field's number, or the smallest dimension of its size.
    pub smallest: fn(&S) -> Option<u32>,
    /// Smallest valid number, and the reason for this limit.
    pub least: Option<(u32, &'static str)>,
    /// Kernels that the key acts on; `None` for all of the family.
    pub acts_on: Option<ActsOn<S>>,
    /// Effect of the key on the result; `None` if the key only changes how the result is computed.
    pub what: Option<What<S>>,
    /// True if a spec begins with the value alone, without the key's name.
    pub is_bare: bool,
    /// Copies the field from another spec.
    pub take: fn(&mut S, &S),
}

impl<S> Key<S> {
    /// Returns true if the spec gives the key, but the key has no effect on the kernel.
    pub(crate) fn is_idle(&self, spec: &S) -> bool {
        let acts = self.acts_on.as_ref().is_none_or(|on| (on.includes)(spec));
        !acts && (self.text)(spec).is_some()
    }
}

/// Effect of a key on the result of a kernel.
pub(crate) struct What<S> {
    /// Returns true if two specs agree in this key's effect.
    pub same: fn(&S, &S) -> bool,
    /// Operands whose types depend on the key.
    pub types: &'static [Typed],
}

/// Operands of a kernel whose types are part of the kernel's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Inputs,
    Results,
}

/// Condition under which some keys act on a kernel of the family.
pub(crate) struct ActsOn<S: 'static> {
    /// Returns true if the keys act on the spec's kernel.
    pub includes: fn(&S) -> bool,
    /// Keys that decide the condition. If several are missing, the user should add the last one
    /// first.
    pub rests_on: &'static [&'static str],
    /// Reason why the key has no effect on other kernels.
    pub because: &'static str,
    /// Advice for a spec to which the condition does not apply.
    pub suggestion: Suggestion<S>,
}

/// Advice about a key that has no effect.
pub(crate) enum Suggestion<S: 'static> {
    /// Leave the key out.
    Leave,
    Say(&'static str),
    /// Follow this advice, or leave the key out.
    Or(&'static str),
    /// Add the entries of this list that are missing, or leave the key out.
    Add(&'static [Prerequisite<S>]),
}

/// Entry of a spec, and a predicate that is true if a spec has it.
pub(crate) type Prerequisite<S> = (&'static str, fn(&S) -> bool);

impl<S> Suggestion<S> {
    /// Returns the advice for a key of a spec.
    pub(crate) fn text(&self, key: &str, spec: &S) -> String {
        match self {
            Self::Leave => format!("leave `{key}` out"),
            Self::Say(text) => (*text).to_owned(),
            Self::Or(text) => format!("{text}, or leave `{key}` out"),
            Self::Add(needs) => {
                let missing = needs.iter().filter(|(_, has)| !has(spec));
                let missing: Vec<&str> = missing.map(|(entry, _)| *entry).collect();
                format!("add `{}`, or leave `{key}` out", missing.join(", "))
            }
        }
    }
}

/// Description of a key for documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInfo {
    pub name: &'static str,
    /// Documentation of the key: what it does, when to use it, what it costs.
    pub meaning: &'static str,
    pub kind: KeyKind,
    /// Documentation of each word, in the order of [`KeyKind::Word`].
    pub words: &'static [&'static str],
    /// Text of the default; empty for a flag, or if there is no default value.
    pub default: String,
}

/// Defaults of keys that follow from other keys.
pub(crate) trait Follow {
    /// Sets the keys that a text leaves out and whose values follow from other keys. `is_given`
    /// returns true for the keys of the text.
    fn follow(&mut self, _is_given: &dyn Fn(&str) -> bool) {}
}

/// Spec whose keys are declared in a table.
pub(crate) trait Table: Spec + Default + Follow {
    /// Every key, in printing order.
    const KEYS: &'static [Key<Self>];

    /// Returns the key whose value alone may begin a spec, if the family has one.
    fn bare() -> Option<&'static str> {
        Self::KEYS.iter().find(|key| key.is_bare).map(|key| key.name)
    }

    /// Returns the key with this name.
    fn key(name: &str) -> Option<&'static Key<Self>> {
        Self::KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the effect on the result of the key with this name.
    fn what(name: &str) -> Option<&'static What<Self>> {
        Self::key(name).and_then(|key| key.what.as_ref())
    }

    /// Returns the first key that makes the two specs compute different results.
    fn differs(&self, other: &Self) -> Option<&'static str> {
        let differs =
            |key: &&Key<Self>| key.what.as_ref().is_some_and(|what| !(what.same)(self, other));
        Self::KEYS.iter().find(differs).map(|key| key.name)
    }

    /// Returns this spec with every key that affects the result copied from `what`.
    fn computing(mut self, what: &Self) -> Self {
        let keys = Self::KEYS.iter().filter(|key| key.what.is_some());
        keys.for_each(|key| (key.take)(&mut self, what));
        self
    }
}

/// Prints the fields that differ from the default, in the table's order. A value without a key is
/// the first.
pub(crate) fn line<S: Table>(spec: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "";
    let others = S::KEYS.iter().filter(|key| !key.is_bare);
    for key in S::KEYS.iter().filter(|key| key.is_bare).chain(others) {
        if let Some(text) = (key.text)(spec) {
            match key.kind {
                KeyKind::Flag => write!(f, "{separator}{}", key.name)?,
                _ if key.is_bare => write!(f, "{separator}{text}")?,
                _ => write!(f, "{separator}{}: {text}", key.name)?,
            }
            separator = ", ";
        }
    }
    Ok(())
}

/// Returns a kernel name derived from the spec: the stem and the tags of all keys that differ from
/// their defaults. Tags that exceed [`LONGEST_NAME`] are replaced by their hash.
pub(crate) fn derived_name<S: Table>(stem: String, spec: &S) -> String {
    let keys = S::KEYS.iter().filter(|key| !key.tag.is_empty());
    let tags = keys.filter_map(|key| Some(key.tag.replace("{}", &(key.part)(spec)?)));
    let tags: Vec<String> = tags.collect();
    let length = |tags: &[String]| stem.len() + tags.iter().map(|tag| 1 + tag.len()).sum::<usize>();
    let shown = match length(&tags) <= LONGEST_NAME {
        true => tags.len(),
        false => {
            let fits = |count: &usize| length(&tags[..*count]) + HASH <= LONGEST_NAME;
            (0..tags.len()).rev().find(fits).unwrap_or(0)
        }
    };
    let (tags, rest) = tags.split_at(shown);
    let name = tags.iter().fold(stem.clone(), |name, tag| name + "_" + tag);
    if rest.is_empty() { name } else { name + "_" + &hash(&rest.join("_")) }
}

/// Maximum length of a derived name, in characters.
const LONGEST_NAME: usize = 64;
/// Length of a hash in a name, including the underscore before the hash.
const HASH: usize = 9;

/// Returns a hash of a text for a kernel name, the same on every machine (FNV-1a, by G. Fowler,
/// L. C. Noll and K.-P. Vo).
pub(super) fn hash(text: &str) -> String {
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}

/// Returns the function name of a kernel that a user names `name`. It starts with `family`, which
/// no name of CUDA does. It has no underscores that C++ reserves.
pub(crate) fn given_name(family: &str, name: &str) -> String {
    let name = joined(name);
    if name.starts_with(family) { name } else { format!("{family}{name}") }
}

/// Declares a spec: its macro and its keys. The first key is always `name`.
///
/// A row has the key's name, the type that the setter takes, the field's type, the default, and the
/// key's tag in a derived kernel name. Optional parts follow: the smallest valid number with the
/// reason (`least`), the kernels on which the key acts (`on`), the key's spelling if it cannot be a
/// field's name (`called`), and a mark if a spec begins with the value alone (`bare`).
///
/// `what` marks a key that affects the result. Specs that differ only in unmarked keys compute the
/// same. `what(Inputs)` names the operands whose types depend on the key. `as` names a property of
/// the spec to compare in place of the field.
macro_rules! spec {
    ($(#[$doc:meta])* $spec:ident for $macro:literal, functions $prefix:literal {
        $(
            $(#[doc = $meaning:literal])*
            $key:ident($set:ty): $ty:ty = $default:expr, $tag:literal
                $(, least $least:literal $why:literal)?
                $(, on $on:expr)?
                $(, called $called:literal)?
                $(, bare $bare:literal)?
                $(, what $(($($typed:ident),+))? $(as $same:expr)?)?;
        )*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct $spec {
            /// Kernel name; derived from the spec if none is given.
            pub name: Option<String>,
            $($(#[doc = $meaning])* pub $key: $ty,)*
        }

        impl Default for $spec {
            fn default() -> Self {
                Self { name: None, $($key: $default,)* }
            }
        }

        impl $spec {
            /// Sets the key `name`: the kernel's name.
            #[must_use]
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.name = Some(name.into());
                self
            }

            $(
                #[doc = concat!(
                    "Sets the key `", $crate::spec::table::spec!(@called $key $($called)?), "`."
                )]
                #[must_use]
                pub fn $key(mut self, $key: $set) -> Self {
                    self.$key = $key.into();
                    self
                }
            )*
        }

        impl $crate::spec::Spec for $spec {
            const MACRO: &'static str = $macro;
            const PREFIX: &'static str = $prefix;

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
                    meaning: concat!(
                        "Name of the kernel. The CUDA function of `name: foo` is `", $prefix,
                        "foo`; the prefix avoids clashes with CUDA's names. Without the key, the \
                         name is derived from the spec.",
                    ),
                    ..$crate::spec::table::spec!(@key name, Option<String>, None::<String>, "")
                },
                $($crate::spec::table::Key {
                    meaning: concat!($($meaning),*),
                    $(least: Some(($least, $why)),)?
                    $(acts_on: Some($on),)?
                    $(name: $called,)?
                    $(is_bare: $bare,)?
                    $(what: Some($crate::spec::table::What {
                        same: $crate::spec::table::spec!(@same $key $($same)?),
                        types: &[$($($crate::spec::table::Typed::$typed),+)?],
                    }),)?
                    ..$crate::spec::table::spec!(@key $key, $ty, $default, $tag)
                },)*
            ];
        }

        /// Prints the spec as DSL text: the keys that differ from the default, in the order of the
        /// fields.
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
            is_bare: false,
            take: |spec, other| spec.$key = other.$key.clone(),
        }
    };
}
pub(crate) use spec;
