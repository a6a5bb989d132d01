//! Formats of the numbers that tensor cores multiply.

/// What the operands of a matrix instruction are; their elements in memory are of [`Elem`](crate::ir::Elem).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The upper half of a binary32.
    Bf16,
    /// IEEE binary16.
    F16,
    /// A binary32 of which the low 13 bits of the mantissa do not count.
    Tf32,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Bf16, Format::F16, Format::Tf32];

    /// Bits of a word.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Format::Bf16 | Format::F16 => 16,
            Format::Tf32 => 32,
        }
    }

    /// Time of a product relative to one of 16-bit numbers, on every GPU of [`device`](crate::target::device).
    pub const fn relative_time(self) -> f64 {
        self.bits() as f64 / 16.0
    }

    /// Numbers of a word of 32 bits.
    #[inline]
    pub const fn per_word(self) -> usize {
        (32 / self.bits()) as usize
    }

    /// Terms of a sum that one matrix instruction takes: 8 words.
    #[inline]
    pub const fn terms(self) -> usize {
        8 * self.per_word()
    }

    /// As PTX writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Bf16 => "bf16",
            Format::F16 => "f16",
            Format::Tf32 => "tf32",
        }
    }

    /// Bits of the mantissa behind the point.
    #[inline]
    pub const fn fraction(self) -> u32 {
        match self {
            Format::Bf16 => 7,
            Format::F16 | Format::Tf32 => 10,
        }
    }

    /// The exponent of a number whose bits are all but the sign's and the mantissa's.
    #[inline]
    pub const fn bias(self) -> i32 {
        match self {
            Format::F16 => 15,
            Format::Bf16 | Format::Tf32 => 127,
        }
    }
}
