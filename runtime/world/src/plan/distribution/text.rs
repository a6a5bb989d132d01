//! Text form of distributions: `4096x1024 grid 2x4 rows/128 cols`.

use super::{Cut, Distribution, DistributionError, Split};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} {}", self.rows, self.cols, self.split)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("whole"),
            Self::Rows(cut) => write!(f, "rows{cut}"),
            Self::Cols(cut) => write!(f, "cols{cut}"),
            Self::Grid { ranks: [down, across], patch, down: is_down, cuts: [rows, cols] } => {
                write!(f, "grid {down}x{across}{}", if *is_down { " down" } else { "" })?;
                if *patch != [1, 1] {
                    write!(f, " patch {}x{}", patch[0], patch[1])?;
                }
                match (rows, cols) {
                    (&Cut::EVEN, &Cut::EVEN) => Ok(()),
                    _ => write!(f, " rows{rows} cols{cols}"),
                }
            }
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even(1) => Ok(()),
            Self::Even(unit) => write!(f, "/{unit}"),
            Self::Lengths(lengths) => {
                let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
                write!(f, "[{}]", lengths.join(","))
            }
        }
    }
}

impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let wrong = || DistributionError::Text(text.to_owned());
        let mut words = text.split_ascii_whitespace().peekable();
        let [rows, cols] = words.next().and_then(pair).ok_or_else(wrong)?;
        let split = match words.next().ok_or_else(wrong)? {
            "whole" => Split::Whole,
            "grid" => {
                let ranks = words.next().and_then(pair).ok_or_else(wrong)?;
                let down = words.next_if_eq(&"down").is_some();
                let patch = match words.next_if_eq(&"patch") {
                    None => [1, 1],
                    Some(_) => words.next().and_then(pair).ok_or_else(wrong)?,
                };
                let cuts = match words.next() {
                    None => [Cut::EVEN, Cut::EVEN],
                    Some(rows) => {
                        let rows = cut(rows, "rows").ok_or_else(wrong)?;
                        let cols = words.next().and_then(|word| cut(word, "cols"));
                        [rows, cols.ok_or_else(wrong)?]
                    }
                };
                Split::Grid { ranks, patch, down, cuts }
            }
            word => {
                let rows = cut(word, "rows").map(Split::Rows);
                rows.or_else(|| cut(word, "cols").map(Split::Cols)).ok_or_else(wrong)?
            }
        };
        match words.next() {
            Some(_) => Err(wrong()),
            None => Ok(Self { rows, cols, split }),
        }
    }
}

/// Parses two numbers with an `x` between them.
fn pair(word: &str) -> Option<[usize; 2]> {
    let (first, second) = word.split_once('x')?;
    Some([number(first)?, number(second)?])
}

/// Parses a number that consists of digits only, as `Display` prints it.
fn number(word: &str) -> Option<usize> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

/// Parses `rows`, `rows/128` or `rows[100,0,56]`.
fn cut(word: &str, name: &str) -> Option<Cut> {
    let rest = word.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(Cut::EVEN);
    }
    if let Some(unit) = rest.strip_prefix('/') {
        return number(unit).map(Cut::Even);
    }
    let lengths = rest.strip_prefix('[')?.strip_suffix(']')?;
    let lengths: Option<Vec<usize>> = match lengths {
        "" => Some(Vec::new()),
        lengths => lengths.split(',').map(number).collect(),
    };
    lengths.map(Cut::Lengths)
}
