//! Conversions of floating-point numbers of 8 bits. They are exact on every architecture; sm_89 has
//! instructions for two numbers at once.

pub(super) const TO_E4M3: &str = "\
// Rounds to e4m3 (3 fraction bits), ties to even, and returns the bits. Numbers above 448 become
// 448; there are no infinities.
__device__ __forceinline__ unsigned char to_e4m3(float x)
{
    const unsigned int bits = __float_as_uint(x);
    const unsigned int sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (x != x) return 0x7f;
    if (size >= 0x43e00000) return sign | 0x7e;
    // Adding 2^14 rounds a subnormal number to a multiple of 2^-9.
    if (size < 0x3c800000) return sign | (__float_as_uint(fabsf(x) + 16384.0f) & 0xf);
    return sign | ((size + 0x7ffff + (size >> 20 & 1)) >> 20) - (120 << 3);
}
";

pub(super) const FROM_E4M3: &str = "\
// Converts the bits of an e4m3 (4 exponent and 3 fraction bits) to float.
__device__ __forceinline__ float from_e4m3(unsigned char x)
{
    // Shifted to the fields of a binary16, whose bias is greater by 8, it is 2^-8 of the number.
    const unsigned short half = (x & 0x80) << 8 | (x & 0x7f) << 7;
    float r;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(half));
    return (x & 0x7f) == 0x7f ? __int_as_float(0x7fffffff) : r * 256.0f;
}
";

pub(super) const TO_E5M2: &str = "\
// Rounds to e5m2 (2 fraction bits), ties to even, and returns the bits. Numbers above 57344, the
// greatest finite one, become 57344.
__device__ __forceinline__ unsigned char to_e5m2(float x)
{
    const unsigned int bits = __float_as_uint(x);
    const unsigned int sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (x != x) return 0x7f;
    if (size >= 0x47600000) return sign | 0x7b;
    // Adding 2^7 rounds a subnormal number to a multiple of 2^-16.
    if (size < 0x38800000) return sign | (__float_as_uint(fabsf(x) + 128.0f) & 0x7);
    return sign | ((size + 0xfffff + (size >> 21 & 1)) >> 21) - (112 << 2);
}
";

pub(super) const FROM_E5M2: &str = "\
// Converts the bits of an e5m2, the upper half of a binary16, to float.
__device__ __forceinline__ float from_e5m2(unsigned char x)
{
    const unsigned short half = x << 8;
    float r;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(half));
    return r;
}
";
