//! Number formats of tensor cores.

/// Format of a matrix instruction's operands. In memory, the elements have a type of
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

    /// Time of a matrix instruction, relative to an instruction with a 16-bit format. It holds for
    /// every GPU of [`device`](crate::target::device).
    pub const fn relative_time(self) -> f64 {
        self.bits() as f64 / 16.0
    }

    /// Number of operands per 32-bit word.
    #[inline]
    pub const fn per_word(self) -> usize {
        (32 / self.bits()) as usize
    }

    /// K of one matrix instruction, which is 8 words.
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

    /// Greatest K of a matrix instruction among all formats.
    pub const MOST_TERMS: usize = {
        let (mut most, mut nth) = (0, 0);
        while nth < Format::ALL.len() {
            let terms = Format::ALL[nth].terms();
            most = if terms > most { terms } else { most };
            nth += 1;
        }
        most
    };

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

/// Bit layout of a floating-point number: from the top bit a sign, a biased exponent, and a
/// mantissa without its leading bit. As in IEEE 754, the greatest exponent encodes infinities
/// (mantissa 0) and NaN. Exponent 0 encodes zeros and subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatLayout {
    /// Width of the exponent field in bits.
    pub exponent: u32,
    /// Width of the stored mantissa in bits, without the leading bit.
    pub fraction: u32,
}

impl FloatLayout {
    /// Layout of IEEE binary32, Rust's `f32`.
    pub const BINARY32: Self = Self { exponent: 8, fraction: 23 };

    /// Total width in bits, including the sign.
    #[inline]
    pub const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// Exponent bias: a stored exponent is the exponent plus this value.
    #[inline]
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Greatest stored exponent, which encodes infinities and NaN.
    #[inline]
    pub const fn top(self) -> u32 {
        (1 << self.exponent) - 1
    }

    /// Bit pattern of positive infinity, right-aligned.
    #[inline]
    pub const fn infinity(self) -> u32 {
        self.top() << self.fraction
    }
}
