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
    /// 8 bits, 3 of them fraction, without infinities.
    E4m3,
    /// 8 bits, 2 of them fraction.
    E5m2,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
}

/// Properties of a format: a row of the table in [`Format::facts`].
struct FormatFacts {
    name: &'static str,
    /// Name in PTX.
    ptx: &'static str,
    /// Bits of an operand.
    bits: u32,
    /// Layout of a floating-point number; `None` for integers.
    layout: Option<FloatLayout>,
}

impl Format {
    /// Table of the properties of all formats.
    const fn facts(self) -> FormatFacts {
        let (name, ptx, bits, layout) = match self {
            Format::Bf16 => ("bf16", "bf16", 16, Self::ieee(8, 7)),
            Format::F16 => ("f16", "f16", 16, Self::ieee(5, 10)),
            Format::Tf32 => ("tf32", "tf32", 32, Self::ieee(8, 10)),
            Format::E4m3 => {
                let layout = FloatLayout { exponent: 4, fraction: 3, infinities: false };
                ("e4m3", "e4m3", 8, Some(layout))
            }
            Format::E5m2 => ("e5m2", "e5m2", 8, Self::ieee(5, 2)),
            Format::I8 => ("i8", "s8", 8, None),
            Format::U8 => ("u8", "u8", 8, None),
        };
        FormatFacts { name, ptx, bits, layout }
    }

    const fn ieee(exponent: u32, fraction: u32) -> Option<FloatLayout> {
        Some(FloatLayout { exponent, fraction, infinities: true })
    }

    pub const ALL: [Format; 7] = [
        Format::Bf16,
        Format::F16,
        Format::Tf32,
        Format::E4m3,
        Format::E5m2,
        Format::I8,
        Format::U8,
    ];

    /// Formats to which numbers in `f32` are converted. `mma.sync` multiplies them, too.
    pub const FROM_F32: [Format; 3] = [Format::Bf16, Format::F16, Format::Tf32];

    /// Bits of an operand: 8, 16 or 32.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.facts().bits
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
        self.facts().name
    }

    /// Name of the format in PTX.
    pub const fn ptx(self) -> &'static str {
        self.facts().ptx
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

    /// Bit layout of a number; `None` for integers.
    #[inline]
    pub const fn layout(self) -> Option<FloatLayout> {
        self.facts().layout
    }

    /// Returns true for the formats of integers, whose sums are integers of 32 bits.
    pub const fn is_integer(self) -> bool {
        self.layout().is_none()
    }

    /// Low bits of an operand that the instruction ignores.
    #[inline]
    pub const fn unused_bits(self) -> u32 {
        match self.layout() {
            Some(layout) => self.bits() - layout.bits(),
            None => 0,
        }
    }
}

/// Bit layout of a floating-point number: from the top bit a sign, a biased exponent, and a
/// mantissa without its leading bit. Exponent 0 encodes zeros and subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatLayout {
    /// Width of the exponent field in bits.
    pub exponent: u32,
    /// Width of the stored mantissa in bits, without the leading bit.
    pub fraction: u32,
    /// True if, as in IEEE 754, the greatest exponent encodes infinities (mantissa 0) and NaN.
    /// False if there are no infinities, and only the greatest magnitude of all encodes NaN.
    pub infinities: bool,
}

impl FloatLayout {
    /// Layout of IEEE binary32, Rust's `f32`.
    pub const BINARY32: Self = Self { exponent: 8, fraction: 23, infinities: true };

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

    /// Greatest stored exponent.
    #[inline]
    pub const fn top(self) -> u32 {
        (1 << self.exponent) - 1
    }

    /// Greatest bit pattern without the sign, which is a NaN.
    #[inline]
    pub const fn greatest(self) -> u32 {
        (1 << (self.exponent + self.fraction)) - 1
    }

    /// Bit pattern of positive infinity, right-aligned, if the layout has infinities.
    #[inline]
    pub const fn infinity(self) -> u32 {
        self.top() << self.fraction
    }
}
