//! Sums of products by tensor cores: operands of every kind, and what GPUs have made of some.

use crate::random::Random;
use gemm_dsl::ir::{
    Access, Elem, Expr, For, Geometry, KernelBuilder, Mma, Operand as Argument, Special, Unroll,
    VerifiedKernel,
};
use gemm_dsl::target::tensor_core::{Format, MmaOperand, Rules};
use gemm_sim::{Buffer, Counters, SimError};
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
        let decoded = |words: &[u32]| -> Vec<MmaOperand> {
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

/// Words of a line of A, and of B, that one instruction takes.
const WORDS: i32 = 8;

/// Rows, and columns, of tiles of an instruction that a warp of [`kernel`] multiplies.
pub const TILES: [usize; 2] = [2, 3];

/// The extents of what a warp of [`kernel`] multiplies.
pub fn extents(format: Format) -> [usize; 3] {
    let [m, n] = TILES;
    [m * Mma::ROWS, n * Mma::COLS, format.terms()]
}

/// Products of so many tiles, one a block: a warp holds 2x3 of an instruction. Of four buffers the first two have the words
/// of A and of B, line by line, the others C and D. With `rolled` the loop over the columns is none that is unrolled.
///
/// # Panics
/// Never: the kernel is sound.
pub fn kernel(format: Format, tiles: usize, rolled: bool) -> VerifiedKernel {
    let [m, n] = TILES.map(|count| count as i32);
    let (rows, cols) = (Mma::ROWS as i32 * m, Mma::COLS as i32 * n);
    let mut k = KernelBuilder::new(format!("multiply_{}", format.name()));
    let mut global = |name, elem, argument, lines: i32, length: i32| {
        let buffer = k.global(name, elem, argument);
        k.shape(
            buffer,
            [(tiles as i32).into(), lines.into(), length.into()],
            [(lines * length).into(), length.into(), 1.into()],
        );
        buffer
    };
    let a = global("A", Elem::U32, Argument::Input(0), rows, WORDS);
    let b = global("B", Elem::U32, Argument::Input(1), cols, WORDS);
    let c = global("C", Elem::F32, Argument::Input(2), rows, cols);
    let out = global("D", Elem::F32, Argument::Output(0), rows, cols);
    let grid = [Expr::U64(tiles as u64), Expr::U64(1), Expr::U64(1)];
    k.geometry(Geometry { block: (32, 1), grid, blocks_per_sm: 1 });
    let tile = k.let_("tile", Special::BlockX);
    let group = k.let_("group", Expr::from(Special::ThreadX) / 4);
    let member = k.let_("member", Expr::from(Special::ThreadX) % 4);

    let held = |k: &mut KernelBuilder, name, elem, dims: &[i32], meaning| {
        k.registers(name, elem, dims.iter().map(|dim| Expr::from(*dim)), meaning)
    };
    let [of_d, of_a, of_b] = [Mma::OF_D, Mma::OF_A, Mma::OF_B].map(|count| count as i32);
    let words_a = held(&mut k, "a", Elem::U32, &[m, of_a], "words of A");
    let words_b = held(&mut k, "b", Elem::U32, &[n, of_b], "words of B");
    let sums = held(&mut k, "d", Elem::F32, &[m, n, of_d], "sums");
    let here = |i: Expr, j: Expr, s: Expr| -> [Expr; 3] {
        let row = i * Mma::ROWS as i32 + group + s.clone() / 2 * 8;
        [tile.into(), row, j * Mma::COLS as i32 + member * 2 + s % 2]
    };
    let sum = |i: Expr, j: Expr, s: Expr| Access::new(sums, [i, j, s]);
    let row_of = |i: Expr, w: Expr| i * Mma::ROWS as i32 + group + w % 2 * 8;
    k.unrolled("i", m, |k, i| {
        k.unrolled("w", of_a, |k, w| {
            let (i, w) = (Expr::from(i), Expr::from(w));
            let at = [tile.into(), row_of(i.clone(), w.clone()), w.clone() / 2 * 4 + member];
            k.store(Access::new(words_a, [i, w]), Access::new(a, at).load());
        });
    });
    k.unrolled("j", n, |k, j| {
        k.unrolled("w", of_b, |k, w| {
            let (j, w) = (Expr::from(j), Expr::from(w));
            let at = [tile.into(), j.clone() * Mma::COLS as i32 + group, w.clone() * 4 + member];
            k.store(Access::new(words_b, [j, w]), Access::new(b, at).load());
        });
    });
    let unroll = if rolled { Unroll::By(1) } else { Unroll::Full };
    k.unrolled("i", m, |k, i| {
        k.loop_("j", For::below(0, n).unroll(unroll), |k, j| {
            let (i, j) = (Expr::from(i), Expr::from(j));
            k.unrolled("s", of_d, |k, s| {
                let place = Access::new(c, here(i.clone(), j.clone(), s.into()));
                k.store(sum(i.clone(), j.clone(), s.into()), place.load());
            });
            k.mma(Mma {
                format,
                d: sum(i.clone(), j.clone(), 0.into()),
                a: Access::new(words_a, [i.clone(), 0.into()]),
                b: Access::new(words_b, [j.clone(), 0.into()]),
            });
            k.unrolled("s", of_d, |k, s| {
                let place = Access::new(out, here(i.clone(), j.clone(), s.into()));
                k.store(place, sum(i.clone(), j.clone(), s.into()).load());
            });
        });
    });
    k.finish().expect("a sound kernel")
}

/// What [`kernel`] takes of tiles: the words of A and of B, and C.
pub fn inputs(tiles: &[Tile]) -> [Vec<u32>; 3] {
    let word = |parts: &[u32], bits: u32| {
        // A part of 32 bits is all of its word.
        let word = parts.iter().rev().fold(0, |word: u64, part| word << bits | u64::from(*part));
        word as u32
    };
    let words = |elements: fn(&Tile) -> &Vec<u32>| -> Vec<u32> {
        let of = |tile: &Tile| {
            let bits = tile.format.bits();
            let parts = elements(tile).chunks(tile.format.per_word());
            parts.map(|parts| word(parts, bits)).collect::<Vec<u32>>()
        };
        tiles.iter().flat_map(of).collect()
    };
    let c = tiles.iter().flat_map(|tile| tile.c.iter().copied()).collect();
    [words(|tile| &tile.a), words(|tile| &tile.b), c]
}

/// What a kernel makes of tiles on a simulator with such tensor cores, and its counters.
///
/// # Errors
/// What the simulator finds.
pub fn simulate(
    kernel: &VerifiedKernel,
    tiles: &[Tile],
    rules: Rules,
) -> Result<(Vec<u32>, Counters), SimError> {
    let [a, b, c] = inputs(tiles);
    let sums = c.len();
    let buffer = |elem, bits: Vec<u32>| Buffer::from_bits(elem, bits.into_iter().map(u64::from));
    let mut buffers = vec![
        buffer(Elem::U32, a),
        buffer(Elem::U32, b),
        buffer(Elem::F32, c),
        Buffer::zeros_of(Elem::F32, sums),
    ];
    let mut options = gemm_sim::Options::default();
    options.tensor_cores = rules;
    let counters = gemm_sim::launch_with(kernel, &buffers, &[], &options)?;
    let d = buffers.pop().map(|d| d.bits()).unwrap_or_default();
    Ok((d.into_iter().map(|bits| bits as u32).collect(), counters))
}
