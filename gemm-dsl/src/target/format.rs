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

    /// The most terms of one matrix instruction, of all formats.
    pub const MOST_TERMS: usize = {
        let (mut most, mut nth) = (0, 0);
        while nth < Format::ALL.len() {
            let terms = Format::ALL[nth].terms();
            most = if terms > most { terms } else { most };
            nth += 1;
        }
        most
    };

    /// The parts of a number.
    #[inline]
    pub const fn layout(self) -> FloatLayout {
        match self {
            Format::Bf16 => FloatLayout { exponent: 8, fraction: 7 },
            Format::F16 => FloatLayout { exponent: 5, fraction: 10 },
            Format::Tf32 => FloatLayout { exponent: 8, fraction: 10 },
        }
    }

    #[inline]
    pub const fn unused_bits(self) -> u32 {
        self.bits() - self.layout().bits()
    }
}

/// The parts of a floating-point number, from its topmost bit on: a sign, an exponent and a
/// mantissa without its leading bit. As IEEE 754 has it, the greatest exponent is that of
/// infinities, with a mantissa of 0, and of what is no number; the least is that of zeros and
/// subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatLayout {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the mantissa behind the point.
    pub fraction: u32,
}

impl FloatLayout {
    /// Those of an `f32`.
    pub const BINARY32: Self = Self { exponent: 8, fraction: 23 };

    /// Bits of all parts.
    #[inline]
    pub const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// What exponents are stored with: they are stored as numbers that are not negative.
    #[inline]
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The stored exponent of infinities, and of what is no number.
    #[inline]
    pub const fn top(self) -> u32 {
        (1 << self.exponent) - 1
    }

    /// The bits of the infinity above zero.
    #[inline]
    pub const fn infinity(self) -> u32 {
        self.top() << self.fraction
    }
}
