//! Values that are one of a few words.

use std::fmt::Display;

use thiserror::Error;

/// Error for a word that is not in an enumeration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{word}` is not one of {expected}")]
pub struct UnknownWord {
    pub word: String,
    /// All words of the enumeration, quoted and separated by commas.
    pub expected: String,
}

/// Stops at a word that is newer than the crate that asks. Crates of the workspace require each
/// other in one version, so no program reaches it.
#[doc(hidden)]
pub fn newer_word(word: impl Display) -> ! {
    unreachable!("`{word}` is newer than this crate")
}

/// Declares a non-exhaustive enumeration with the DSL's word for each variant. The first variant is
/// the default.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident {
        $(#[doc = $first_doc:literal])* $first:ident = $first_word:literal,
        $($(#[doc = $variant_doc:literal])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            #[default]
            $(#[doc = $first_doc])* $first,
            $($(#[doc = $variant_doc])* $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the documentation.
            pub const ALL: &[Self] = &[Self::$first, $(Self::$variant),*];

            const WORDS: &[&str] = &[$first_word, $($word),*];

            /// Returns the DSL's word for the variant.
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

        impl $crate::spec::table::KeyValue for $name {
            const KIND: $crate::spec::table::KeyKind =
                $crate::spec::table::KeyKind::Word(Self::WORDS);
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
