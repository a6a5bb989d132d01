//! Keys whose value is an expression.

use super::table::{Datum, KeyKind, KeyValue, hash};
use crate::error::SpecErrors;
use crate::expr::{Closure, ELEMENTWISE, FINISH, FOLD, IDENTITY, MAP};
use std::fmt::{Display, Formatter, Result as Formatted};
use std::str::FromStr;

/// Declares types for values that are expressions in a given scope.
macro_rules! expressions {
    ($($(#[$doc:meta])* $name:ident in $scope:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(Closure);

        impl $name {
            pub fn closure(&self) -> &Closure {
                &self.0
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = SpecErrors;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Closure::parse(&$scope, text).map(Self)
            }
        }

        impl KeyValue for $name {
            const KIND: KeyKind = KeyKind::Closure(&$scope);

            fn text(&self) -> String {
                self.to_string()
            }

            fn part(&self) -> String {
                hash(&self.text())
            }

            fn read(datum: &Datum) -> Option<Self> {
                match datum {
                    Datum::Closure(closure) if *closure.scope() == $scope => {
                        Some(Self(closure.clone()))
                    }
                    _ => None,
                }
            }
        }
    )*};
}

expressions! {
    /// Expression of the results of an elementwise kernel, such as `|x[m, n], y[m, n]| x + y`. The
    /// types depend on the spec, and the plan checks them.
    Elementwise in ELEMENTWISE;
    /// Expression of one element of each input, such as `|x, y| x * y`; its values are folded. The
    /// types depend on the spec, and the plan checks them.
    Map in MAP;
    /// Expression of a result, such as `|s, len| sqrt(s / len)`.
    Finish in FINISH;
    /// Expression that combines two values into one, such as `|a, b| max(a, b)`.
    Fold in FOLD;
    /// Value that leaves any other value unchanged in a fold, such as `-1.0 / 0.0`.
    Identity in IDENTITY;
}
