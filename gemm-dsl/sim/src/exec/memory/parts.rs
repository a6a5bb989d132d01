//! Elements of a vector of four words.

use gemm_dsl::ir::Elem;

/// Extends an element of at most 4 bytes to the 32 bits of a lane.
pub(super) fn extended(elem: Elem, bits: u64) -> u32 {
    match elem {
        Elem::I16 => bits as i16 as u32,
        Elem::I8 => bits as i8 as u32,
        _ => bits as u32,
    }
}

/// Bits of element `i` of a vector of four words.
pub(super) fn part_bits(elem: Elem, words: &[u32; 4], i: usize) -> u64 {
    let size = elem.size() as usize;
    let word = |byte: usize| u64::from(words[byte / 4 % 4]);
    match size {
        8 => word(8 * i) | word(8 * i + 4) << 32,
        _ => word(size * i) >> (8 * (size * i % 4)) & (u64::MAX >> (64 - 8 * size)),
    }
}

/// Element `i`, of at most 4 bytes, of a vector of four words, extended to 32 bits.
pub(crate) fn part(elem: Elem, words: &[u32; 4], i: usize) -> u32 {
    extended(elem, part_bits(elem, words, i))
}

/// Packs elements into a vector of four words.
pub(crate) fn words_of(elem: Elem, bits: impl Fn(usize) -> u64) -> [u32; 4] {
    let size = elem.size() as usize;
    let mut words = [0; 4];
    for i in 0..elem.vector_lanes().into() {
        let (bits, byte) = (bits(i) & (u64::MAX >> (64 - 8 * size)), size * i);
        words[byte / 4] |= (bits << (8 * (byte % 4))) as u32;
        if size == 8 {
            words[byte / 4 + 1] = (bits >> 32) as u32;
        }
    }
    words
}
