//! Sums of products by tensor cores: operands of every kind, and what GPUs have made of some.

use crate::random::Random;
use gemm_dsl::tensor_core::{Format, Operand, Rules};
use std::fmt::{self, Write};
use std::ops::Range;

/// `D = A·B + C` of small matrices, as the words of their elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// What the elements of A and B are.
    pub format: Format,
    /// Rows of A, columns of B, and terms of an element.
    pub extents: [usize; 3],
    /// Row by row.
    pub a: Vec<u32>,
    /// Column by column.
    pub b: Vec<u32>,
    /// In binary32, row by row.
    pub c: Vec<u32>,
}

impl Tile {
    /// What the rules say of it, row by row.
    pub fn multiplied(&self, rules: Rules) -> Vec<u32> {
        let [_, n, k] = self.extents;
        let decoded = |words: &[u32]| -> Vec<Operand> {
            words.iter().map(|word| self.format.decode(*word)).collect()
        };
        let (a, b) = (decoded(&self.a), decoded(&self.b));
        let element = |(at, c): (usize, &u32)| {
            let (row, col) = (at / n, at % n);
            rules.dot(self.format, &a[row * k..][..k], &b[col * k..][..k], *c)
        };
        self.c.iter().enumerate().map(element).collect()
    }
}

/// What the numbers of a sum have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: any bits, infinities and none among them.
    Any,
    /// Exponents around that of 1.
    Near,
    /// Products that are subnormal, or nothing.
    Tiny,
    /// The second half of a sum takes most of the first one away.
    Cancelling,
    /// Exponents far from each other.
    Wide,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Any, Kind::Near, Kind::Tiny, Kind::Cancelling, Kind::Wide];

    /// A tile of this kind.
    pub fn tile(self, format: Format, extents: [usize; 3], random: &mut Random) -> Tile {
        let [m, n, k] = extents;
        let mut words =
            |count: usize| -> Vec<u32> { (0..count).map(|_| self.word(format, random)).collect() };
        let (mut a, mut b) = (words(m * k), words(n * k));
        if self == Kind::Cancelling {
            let half = k / 2;
            for row in a.chunks_mut(k) {
                for at in 0..half {
                    row[half + at] = row[at] ^ sign(format);
                    if random.bits().is_multiple_of(4) {
                        // The last bit of the mantissa: of tf32 it is the 13th.
                        row[half + at] ^= if format == Format::Tf32 { 1 << 13 } else { 1 };
                    }
                }
            }
            for column in b.chunks_mut(k) {
                column.copy_within(..half, half);
            }
        }
        let c = (0..m * n).map(|_| self.addend(random)).collect();
        Tile { format, extents, a, b, c }
    }

    /// An element of A or B.
    fn word(self, format: Format, random: &mut Random) -> u32 {
        let bits = random.bits();
        let word = (bits >> 32) as u32;
        if self == Kind::Any {
            // Of few bits now and then, so that there are zeros, subnormal numbers and infinities enough.
            let few = match bits & 15 {
                0 => 0,
                1 => word & mantissa(format),
                2 => !mantissa(format),
                _ => word,
            };
            let word = few & !sign(format) | word & sign(format);
            return word & (u64::from(sign(format)) * 2 - 1) as u32;
        }
        let one = match format {
            Format::F16 => 15,
            Format::Bf16 | Format::Tf32 => 127,
        };
        let exponents = match (self, format) {
            (Kind::Tiny, Format::F16) => 0..6,
            (Kind::Tiny, _) => 0..70,
            (Kind::Cancelling, _) => one - 1..one + 1,
            (Kind::Wide, Format::F16) => 1..30,
            (Kind::Wide, _) => one - 27..one + 27,
            _ => one - 6..one + 7,
        };
        let exponent = drawn(exponents, bits) << mantissa(format).count_ones();
        word & (sign(format) | mantissa(format)) | exponent
    }

    /// An element of C.
    fn addend(self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let word = (bits >> 32) as u32;
        let exponents = match self {
            Kind::Any => 0..256,
            Kind::Near => 115..145,
            Kind::Tiny => 0..60,
            Kind::Cancelling => 120..132,
            Kind::Wide => 80..170,
        };
        match bits & 63 {
            // A zero, a subnormal number, an infinity.
            0..8 => word & 0x8000_0000,
            8 => word & 0x807f_ffff,
            9 if self == Kind::Any => word & 0x8000_0000 | 0x7f80_0000,
            _ => word & 0x807f_ffff | drawn(exponents, bits >> 6) << 23,
        }
    }
}

/// One of a range.
fn drawn(range: Range<u32>, bits: u64) -> u32 {
    range.start + (bits >> 8) as u32 % (range.end - range.start)
}

/// The bit of the sign.
fn sign(format: Format) -> u32 {
    1 << (format.bits() - 1)
}

/// The bits behind the point.
fn mantissa(format: Format) -> u32 {
    match format {
        Format::Bf16 => 0x7f,
        Format::F16 => 0x3ff,
        Format::Tf32 => 0x7f_ffff,
    }
}

/// A tile, and what a GPU has made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The GPU.
    pub gpu: String,
    /// The operands.
    pub tile: Tile,
    /// The result, row by row.
    pub d: Vec<u32>,
}

/// A line of a file of vectors.
impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tile { format, extents: [m, n, k], a, b, c } = &self.tile;
        write!(f, "{} {} {m}x{n}x{k}", self.gpu, format.name())?;
        let digits = (format.bits() / 4) as usize;
        for (words, digits) in [(a, digits), (b, digits), (c, 8), (&self.d, 8)] {
            f.write_char(' ')?;
            words.iter().try_for_each(|word| write!(f, "{word:0digits$x}"))?;
        }
        Ok(())
    }
}

impl Vector {
    /// Reads the lines of a file; those that begin with `#` say what it is.
    ///
    /// # Panics
    /// On a line that is none of such a file.
    pub fn all(text: &str) -> Vec<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Self::read(line).unwrap_or_else(|| panic!("no vector: {line}"))).collect()
    }

    fn read(line: &str) -> Option<Self> {
        let parts: Vec<&str> = line.split(' ').collect();
        let [gpu, format, extents, a, b, c, d] = parts[..] else { return None };
        let format = Format::ALL.into_iter().find(|known| known.name() == format)?;
        let extents: Vec<usize> = extents.split('x').filter_map(|part| part.parse().ok()).collect();
        let extents: [usize; 3] = extents.try_into().ok()?;
        let [m, n, k] = extents;
        let words = |text: &str, count: usize, digits: usize| -> Option<Vec<u32>> {
            let word =
                |at: usize| u32::from_str_radix(text.get(at * digits..(at + 1) * digits)?, 16).ok();
            (text.len() == count * digits).then(|| (0..count).map(word).collect())?
        };
        let digits = (format.bits() / 4) as usize;
        let (a, b) = (words(a, m * k, digits)?, words(b, n * k, digits)?);
        let (c, d) = (words(c, m * n, 8)?, words(d, m * n, 8)?);
        Some(Self { gpu: gpu.to_owned(), tile: Tile { format, extents, a, b, c }, d })
    }
}
