//! Number formats of tensor cores.

/// Format of the operands of a matrix instruction; their elements in memory are of
/// [`Elem`](crate::ir::Elem).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Upper half of a binary32.
    Bf16,
    F16,
    /// A binary32 whose low 13 mantissa bits are ignored.
    Tf32,
}

impl Format {
    pub const ALL: [Format; 3] = [Format::Bf16, Format::F16, Format::Tf32];

    /// Bits of an operand: 16 or 32.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Format::Bf16 | Format::F16 => 16,
            Format::Tf32 => 32,
        }
    }

    /// Time of a matrix instruction relative to a 16-bit format, on every GPU of
    /// [`device`](crate::target::device).
    pub const fn relative_time(self) -> f64 {
        self.bits() as f64 / 16.0
    }

    /// Numbers of a word of 32 bits.
    #[inline]
    pub const fn per_word(self) -> usize {
        (32 / self.bits()) as usize
    }

    /// K of one matrix instruction: 8 words.
    #[inline]
    pub const fn terms(self) -> usize {
        8 * self.per_word()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Format::Bf16 => "bf16",
            Format::F16 => "f16",
            Format::Tf32 => "tf32",
        }
    }

    /// Fraction bits of the mantissa.
    #[inline]
    pub const fn fraction(self) -> u32 {
        match self {
            Format::Bf16 => 7,
            Format::F16 | Format::Tf32 => 10,
        }
    }

    #[inline]
    pub const fn bias(self) -> i32 {
        match self {
            Format::F16 => 15,
            Format::Bf16 | Format::Tf32 => 127,
        }
    }
}
