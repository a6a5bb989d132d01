//! Buffers of every element type.

use gemm_runtime::error::Need;
use gemm_runtime::fp8::{e4m3, e5m2};
use gemm_runtime::generic::Kernel;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::sim::fault::Elem;
use gemm_runtime::{ByName, Device, Element, Error, ReduceKernel, ReduceSpec, reduce_kernel};
use std::fmt::Debug;

/// Type whose values are compared by their bytes. With `==`, NaN would differ from itself, and 0
/// would equal −0.
trait Bits: Element {
    fn of(seed: u64) -> Self;
    fn bytes(self) -> Vec<u8>;
}

macro_rules! bits {
    ($($ty:ty, $of:expr;)*) => {
        $(impl Bits for $ty {
            fn of(seed: u64) -> Self {
                $of(seed as _)
            }
            fn bytes(self) -> Vec<u8> {
                self.into_bits().to_le_bytes()[..Self::ELEM.size() as usize].to_vec()
            }
        })*

        /// Runs a test for every type.
        fn each(test: &impl Test) {
            let mut elems = vec![Elem::Tf32];
            $(
                test.run::<$ty>(&Device::simulator());
                elems.push(<$ty>::ELEM);
            )*
            // Only tf32 is missing, for which Rust has no type.
            assert!(Elem::ALL.iter().all(|elem| elems.contains(elem)) && elems.len() == 15);
        }
    };
}

bits! {
    f64, f64::from_bits; f32, f32::from_bits; f16, f16::from_bits; bf16, bf16::from_bits;
    e4m3, e4m3::from_bits; e5m2, e5m2::from_bits;
    i64, |bits: i64| bits; u64, |bits: u64| bits; i32, |bits: i32| bits; u32, |bits: u32| bits;
    i16, |bits: i16| bits; u16, |bits: u16| bits; i8, |bits: i8| bits; u8, |bits: u8| bits;
}

trait Test {
    fn run<T: Bits>(&self, device: &Device);
}

/// All bits set, none, the highest, the lowest, signalling NaNs of every width, and pseudo-random
/// bits.
fn values<T: Bits>(len: usize) -> Vec<T> {
    let first = [u64::MAX, 0, 1 << 63 | 0x8000_8080, 1, 0x7ff0_0000_7f80_0001, 0x7f81_7c01];
    let rest = (1_u64..).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    first.into_iter().chain(rest).take(len).map(T::of).collect()
}

#[track_caller]
fn same<T: Bits>(got: &[T], expected: &[T]) {
    let bytes = |values: &[T]| -> Vec<u8> { values.iter().flat_map(|v| v.bytes()).collect() };
    assert_eq!(bytes(got), bytes(expected), "of {}", T::ELEM);
}

#[track_caller]
fn sound<T, E: Debug>(outcome: Result<T, E>) -> T {
    outcome.unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
fn every_type_comes_back_bit_for_bit() {
    struct RoundTrip;
    impl Test for RoundTrip {
        fn run<T: Bits>(&self, device: &Device) {
            for len in [0, 1, 3, 16, 37] {
                let values = values::<T>(len);
                let mut buffer = sound(device.upload_of(&values));
                assert_eq!((buffer.len(), buffer.is_empty()), (len, len == 0));
                same(&sound(device.download(&buffer)), &values);
                // Aligned to 16 bytes and not.
                for start in 0..=len.min(17) {
                    for end in [start, (start + 5).min(len), len] {
                        let view = sound(buffer.slice(start..end));
                        same(&sound(device.download(&view)), &values[start..end]);
                        let view = sound(buffer.slice_mut(start..end));
                        same(&sound(device.download(&view)), &values[start..end]);
                    }
                }
                let zeros = sound(device.alloc_of::<T>(len));
                same(&sound(device.download(&zeros)), &vec![T::of(0); len]);
            }
        }
    }
    each(&RoundTrip);
}

#[test]
fn matrices_are_packed_and_padded_rows_start_on_16_bytes() {
    struct Rows;
    impl Test for Rows {
        fn run<T: Bits>(&self, device: &Device) {
            for (rows, cols) in [(3, 5), (1, 16), (2, 17), (0, 3), (3, 0)] {
                let values = values::<T>(rows * cols);
                let packed = sound(device.upload_matrix_of(&values, rows, cols));
                let zeros = sound(device.alloc_matrix_of::<T>(rows, cols));
                assert_eq!((packed.pitch(), zeros.pitch()), (cols, cols));
                assert_eq!(zeros.buffer().len(), rows * cols);
                same(&sound(device.download(packed.buffer())), &values);
                let matrix = sound(device.upload_matrix_padded_of(&values, rows, cols));
                let pitch = matrix.pitch() * size_of::<T>();
                assert!(pitch.is_multiple_of(16) && pitch < cols * size_of::<T>() + 16);
                same(&sound(device.download_matrix(&matrix)), &values);
                let zeros = sound(device.alloc_matrix_padded_of::<T>(rows, cols));
                assert_eq!(zeros.pitch(), matrix.pitch());
                same(&sound(device.download_matrix(&zeros)), &vec![T::of(0); rows * cols]);
            }
        }
    }
    each(&Rows);
}

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 32);

/// Unmet requirement of a launch.
fn need<T: Debug>(outcome: Result<T, Error>) -> Need {
    match outcome {
        Err(Error::Unmet(unmet)) => unmet.need,
        other => panic!("an unmet requirement was expected: {other:?}"),
    }
}

/// A statically typed kernel does not compile with another type. A launch by name is rejected.
#[test]
fn a_reduction_takes_its_own_type_only() {
    struct Others;
    impl Test for Others {
        fn run<T: Bits>(&self, device: &Device) {
            let other = sound(device.alloc_of::<T>(16));
            let mut others = sound(device.alloc_of::<T>(16));
            let (own, mut out) = (sound(device.alloc(16)), sound(device.alloc(16)));
            let sum = Kernel::<ReduceSpec, ByName>::new(sound(SUM.spec_line().parse()));
            let sum = sound(sum);
            let outcomes = [
                sum.call(device).input("input", &other).output("output", &mut out).launch(),
                sum.call(device).input("input", &own).output("output", &mut others).launch(),
            ];
            for outcome in outcomes {
                if T::ELEM == Elem::F32 {
                    sound(outcome);
                    continue;
                }
                let expected = Need::Element { expected: Elem::F32, found: T::ELEM };
                assert_eq!(need(outcome), expected);
            }
        }
    }
    each(&Others);
}

#[test]
fn the_message_says_which_types() {
    let device = Device::simulator();
    let (input, mut output) = (sound(device.upload_of(&[1.0_f64])), sound(device.alloc(1)));
    let sum = Kernel::<ReduceSpec, ByName>::new(sound(SUM.spec_line().parse()));
    let sum = sound(sum);
    let call = sum.call(&device).input("input", &input).output("output", &mut output);
    let error = call.launch().expect_err("of another type");
    let text = error.to_string();
    let words = "needs elements of type f32 in `input`, but they are of type f64. Convert them";
    assert!(text.contains(words), "{text}");

    // The type of an output is that of its allocation.
    let single = sound(device.upload(&[1.0]));
    let any = sound(Kernel::<ReduceSpec, ByName>::new(sound("op: any".parse())));
    let call = any.call(&device).input("input", &single).output("output", &mut output);
    let text = call.launch().expect_err("of another type").to_string();
    let words = "needs elements of type u8 in `output`, but they are of type f32. Allocate it with \
                 elements of type u8";
    assert!(text.contains(words), "{text}");
}

/// The default type of a call is `f32`, also for literals.
#[test]
fn the_default_is_f32() {
    let device = Device::simulator();
    let mut output = sound(device.alloc(1));
    let input = sound(device.upload(&[1.0, 2.0]));
    sound(SUM.launch(&device, &input, &mut output));
    assert_eq!(sound(device.download(&output)), [3.0]);
    let bytes = |len: usize| device.alloc_of::<u8>(len).map(|buffer| buffer.len());
    assert_eq!(sound(bytes(5)), 5);
    let error = device.alloc_of::<f64>(usize::MAX / 8).expect_err("too much");
    assert!(matches!(error, Error::OutOfMemory { bytes, .. } if bytes > u64::MAX / 2), "{error}");
}
