//! Sizes of the DSL: dimensions joined by `x`.

use super::table::{Datum, KeyKind, KeyValue};
use std::fmt;

/// Declares a size: its dimensions in their written order, and the form that messages quote.
macro_rules! size {
    ($(#[$doc:meta])* $name:ident, $form:literal, $example:literal {
        $($(#[$dim_doc:meta])* $dim:ident),*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$dim_doc])* pub $dim: u32,)*
        }

        impl $name {
            #[doc = concat!("The size written `", $form, "`.")]
            pub const fn new($($dim: u32),*) -> Self {
                Self { $($dim),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let dims = [$(self.$dim.to_string()),*];
                f.write_str(&dims.join("x"))
            }
        }

        impl KeyValue for $name {
            const KIND: KeyKind = KeyKind::Size {
                form: $form,
                example: $example,
                dims: [$(stringify!($dim)),*].len(),
            };

            fn text(&self) -> String {
                self.to_string()
            }

            fn read(datum: &Datum) -> Option<Self> {
                match datum {
                    Datum::Size(dims) => match dims[..] {
                        [$($dim),*] => Some(Self { $($dim),* }),
                        _ => None,
                    },
                    _ => None,
                }
            }

            fn smallest(&self) -> Option<u32> {
                [$(self.$dim),*].into_iter().min()
            }
        }
    };
}

size! {
    /// Threads of a block that computes C without shared memory.
    Block, "RxC", "16x16" {
        /// Threads along the rows of C.
        rows,
        /// Threads along the columns of C.
        cols
    }
}

size! {
    /// Block tile: `m` by `n` elements of C, and the extent `k` of K that a block processes per
    /// round.
    Tile, "MxNxK", "128x128x8" {
        /// Rows of A and C.
        m,
        /// Columns of B and C.
        n,
        /// Columns of A, rows of B.
        k
    }
}

size! {
    /// A rectangle of C, in elements.
    Rect, "MxN", "8x8" {
        /// Rows of C.
        m,
        /// Columns of C.
        n
    }
}

impl Rect {
    pub fn area(self) -> u64 {
        u64::from(self.m) * u64::from(self.n)
    }
}
