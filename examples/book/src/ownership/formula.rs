//! Compact encoding of a number for each element of a tile, so that a page can contain the numbers
//! of all elements.

use serde::{Serialize, Serializer};

/// Numbers of elements as a function of row and column, with a text encoding for the script of a
/// page.
///
/// * `s5;1,2;4`: sum of 5, of 1 and 2 for the set bits of the row, and of 4 for the set bit of the
///   column;
/// * `x5;1,2;4`: the same with XOR instead of the sum;
/// * `l7*3,,8`: a row-major list with run lengths. An entry is empty for an element without a
///   number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Base plus a stride for each set bit of row and column.
    Sum(i64, [Vec<i64>; 2]),
    /// XOR of a base and a stride for each set bit of row and column.
    Xor(i64, [Vec<i64>; 2]),
    /// Explicit list of the numbers, row-major.
    List(Vec<Option<i64>>),
}

/// Number of bits of the numbers below `count`.
fn bits(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

impl Formula {
    /// Encodes the row-major numbers of a tile with `columns` columns.
    pub(super) fn fit(numbers: Vec<Option<i64>>, columns: usize) -> Self {
        let extents = [numbers.len() / columns.max(1), columns];
        let sum = strides(&numbers, extents, |a, b| a - b).map(|(base, all)| Self::Sum(base, all));
        let xor = strides(&numbers, extents, |a, b| a ^ b).map(|(base, all)| Self::Xor(base, all));
        let holds = |law: &Self| law.numbers(extents.map(|extent| extent as u64)) == numbers;
        sum.filter(holds).or(xor.filter(holds)).unwrap_or(Self::List(numbers))
    }

    /// Evaluates the formula on a tile, row-major.
    pub fn numbers(&self, [rows, columns]: [u64; 2]) -> Vec<Option<i64>> {
        let added = |more: fn(i64, i64) -> i64,
                     base: i64,
                     [of_rows, of_columns]: &[Vec<i64>; 2]| {
            let from = |strides: &[i64], at: u64, start: i64| {
                let on = strides.iter().enumerate().filter(|(bit, _)| at >> bit & 1 == 1);
                on.fold(start, |all, (_, stride)| more(all, *stride))
            };
            let row = |row: u64| {
                let start = from(of_rows, row, base);
                (0..columns).map(|column| Some(from(of_columns, column, start))).collect::<Vec<_>>()
            };
            (0..rows).flat_map(row).collect()
        };
        match self {
            Self::Sum(base, strides) => added(|a, b| a + b, *base, strides),
            Self::Xor(base, strides) => added(|a, b| a ^ b, *base, strides),
            Self::List(all) => all.clone(),
        }
    }

    /// Encodes the formula for the script of a page.
    pub fn text(&self) -> String {
        let list = |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::Sum(base, [rows, columns]) => format!("s{base};{};{}", list(rows), list(columns)),
            Self::Xor(base, [rows, columns]) => format!("x{base};{};{}", list(rows), list(columns)),
            Self::List(all) => {
                let run = |run: &[Option<i64>]| {
                    let number = run.first().copied().flatten();
                    let number = number.map_or(String::new(), |number| number.to_string());
                    if run.len() == 1 { number } else { format!("{number}*{}", run.len()) }
                };
                format!("l{}", all.chunk_by(|a, b| a == b).map(run).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// Returns the base, and the strides of the bits of row and column. `less` is the inverse of the
/// operation that combines base and strides.
fn strides(
    numbers: &[Option<i64>],
    [rows, columns]: [usize; 2],
    less: fn(i64, i64) -> i64,
) -> Option<(i64, [Vec<i64>; 2])> {
    let at = |row: usize, column: usize| numbers.get(row * columns + column).copied().flatten();
    let base = at(0, 0)?;
    let strides = |count: usize, place: &dyn Fn(usize) -> [usize; 2]| -> Option<Vec<i64>> {
        let of = |bit: usize| {
            let [row, column] = place(1 << bit);
            Some(less(at(row, column)?, base))
        };
        (0..bits(count)).map(of).collect()
    };
    let of_rows = strides(rows, &|row| [row, 0])?;
    let of_columns = strides(columns, &|column| [0, column])?;
    Some((base, [of_rows, of_columns]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a text as the script does.
    fn numbers(text: &str, [rows, columns]: [usize; 2]) -> Vec<Option<i64>> {
        let (kind, rest) = text.split_at(1);
        if kind == "l" {
            let run = |run: &str| {
                let (number, count) = run.split_once('*').unwrap_or((run, "1"));
                vec![number.parse().ok(); count.parse().expect("a count")]
            };
            return rest.split(',').flat_map(run).collect();
        }
        let parts: Vec<Vec<i64>> = rest
            .split(';')
            .map(|part| part.split(',').filter_map(|n| n.parse().ok()).collect())
            .collect();
        let more = |a: i64, b: i64| if kind == "s" { a + b } else { a ^ b };
        let of = |strides: &[i64], number: usize, start: i64| {
            (0..strides.len())
                .filter(|bit| number >> bit & 1 == 1)
                .fold(start, |all, bit| more(all, strides[bit]))
        };
        let row = |row: usize| {
            let start = of(&parts[1], row, parts[0][0]);
            (0..columns).map(|column| Some(of(&parts[2], column, start))).collect::<Vec<_>>()
        };
        (0..rows).flat_map(row).collect()
    }

    fn law([rows, columns]: [usize; 2], of: impl Fn(usize, usize) -> Option<i64>) -> String {
        let all: Vec<Option<i64>> = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(r, c)| of(r, c))
            .collect();
        let text = Formula::fit(all.clone(), columns).text();
        assert_eq!(numbers(&text, [rows, columns]), all, "{text}");
        text
    }

    /// Every list of numbers is restored from its text. The texts of regular layouts are short.
    #[test]
    fn a_law_gives_back_its_numbers() {
        let of = |number: usize| Some(number as i64);
        // Padded rows, and their transpose.
        assert_eq!(law([4, 8], |r, c| of(r * 9 + c)), "s0;9,18;1,2,4");
        assert_eq!(law([8, 4], |r, c| of(7 + c * 132 + r)), "s7;1,2,4;132,264");
        // Three is not a power of two, but the layout is still linear.
        assert_eq!(law([3, 3], |r, c| of(r * 3 + c)), "s0;3,6;1,2");
        assert_eq!(law([4, 4], |r, c| of(r * 4 + (c ^ r))), "x0;5,10;1,2");
        assert_eq!(law([2, 6], |_, c| of(c / 3)), "l0*3,1*3,0*3,1*3");
        assert_eq!(law([1, 4], |_, c| (c != 2).then_some(4)), "l4*2,,4");
        assert_eq!(law([1, 1], |_, _| of(5)), "s5;;");
        let mut state = 7u64;
        for _ in 0..50 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (seed, extents) =
                (state >> 33, [1 + (state >> 40) as usize % 7, 1 + (state >> 50) as usize % 9]);
            law(extents, |r, c| {
                ((r + 3 * c) as u64 * seed % 5 != 1)
                    .then_some(((r * 31 + c * 17) as u64 * seed % 3) as i64)
            });
        }
    }
}
