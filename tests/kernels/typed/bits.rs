//! GEMMs on elements of 8 bits on a GPU, whose bits are those of the simulator.

use gemm_oracle::random::Random;
use gemm_runtime::fp8::{e4m3, e5m2};
use gemm_runtime::{Device, Element, Gemm};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};

/// Element of 8 bits, with random bits of several kinds.
trait Byte: Element {
    /// Returns a number from random bits. `kind` 0 takes any bits, 1 similar magnitudes, and 2
    /// small magnitudes.
    fn drawn(bits: u8, kind: usize) -> Self;
}

impl Byte for e4m3 {
    fn drawn(bits: u8, kind: usize) -> Self {
        Self::from_bits([bits, bits & 0x8f | 0x38, bits & 0x9f][kind])
    }
}

impl Byte for i8 {
    fn drawn(bits: u8, kind: usize) -> Self {
        [bits, bits | 0x70, bits & 0x8f][kind] as i8
    }
}

impl Byte for u8 {
    fn drawn(bits: u8, kind: usize) -> Self {
        [bits, bits | 0xf0, bits & 0x0f][kind]
    }
}

impl Byte for e5m2 {
    fn drawn(bits: u8, kind: usize) -> Self {
        Self::from_bits([bits, bits & 0x87 | 0x38, bits & 0x8f][kind])
    }
}

/// Compares the bits of sums on a GPU with those of the simulator.
fn same_bits<A: Byte, B: Byte, R: Element>(device: &Device) -> Result<(), Failed> {
    let [a, b, c] = [A::ELEM, B::ELEM, R::ELEM];
    let (m, n) = (64, 192);
    let simulator = simulator();
    for (nth, k) in [32, 64, 160].into_iter().enumerate() {
        for promote in ["", "promote: 32, "] {
            let line = format!(
                "a: {a}, b: {b}, c: {c}, layout: nt, tile: 64x64x64, mma: wgmma, copy: tma, \
                 {promote}stages: 2"
            );
            let kernel = Gemm::<A, B, R>::new(line.parse()?)?;
            for kind in 0..3 {
                let mut random = Random::new((10 * nth + kind) as u64);
                let mut bytes = |len: usize| -> Vec<u8> {
                    (0..len).map(|_| (random.bits() >> 16) as u8).collect()
                };
                let (a, b) = (bytes(m * k), bytes(n * k));
                let a: Vec<A> = a.into_iter().map(|bits| A::drawn(bits, kind)).collect();
                let b: Vec<B> = b.into_iter().map(|bits| B::drawn(bits, kind)).collect();
                let [found, expected] = [device, &simulator].map(|device| {
                    let a = device.upload_matrix_of(&a, m, k)?;
                    let b = device.upload_matrix_of(&b, n, k)?;
                    let mut c = device.alloc_matrix_of::<R>(m, n)?;
                    kernel.call(device).launch(&a, &b.t(), &mut c)?;
                    device.download(&c)
                });
                let (found, expected) = (found?, expected?);
                let differs = |(x, y): &(&R, &R)| x.into_bits() != y.into_bits();
                if let Some((x, y)) = found.iter().zip(&expected).find(differs) {
                    return Err(format!("`{line}`, K = {k}, kind {kind}: {x:?}, not {y:?}").into());
                }
            }
        }
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    vec![
        crate::trial("typed::bits_e4m3".into(), same_bits::<e4m3, e4m3, f32>),
        crate::trial("typed::bits_e5m2".into(), same_bits::<e5m2, e5m2, f32>),
        crate::trial("typed::bits_mixed".into(), same_bits::<e4m3, e5m2, f32>),
        crate::trial("typed::bits_i8".into(), same_bits::<i8, i8, i32>),
        crate::trial("typed::bits_u8_by_i8".into(), same_bits::<u8, i8, i32>),
        crate::trial("typed::bits_u8".into(), same_bits::<u8, u8, f32>),
    ]
}
