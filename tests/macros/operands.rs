//! Operands of a kernel. The type of a kernel lists its operands, and a named kernel has them as
//! fields.

use gemm_runtime::spec::{Along, ArgSlot, EpilogueArg};
use gemm_runtime::{
    ByName, Device, Error, M, MN, Matrix, MatrixMut, MatrixRef, N, Sgemm, SgemmKernel, SgemmSpec,
    sgemm_kernel,
};

const NONE: SgemmKernel = sgemm_kernel!(epilogue: |acc, c[m, n]| acc + c);
const ONE: Sgemm<(M,)> = sgemm_kernel!(epilogue: |acc, scale[m]| acc * scale);
const ALL: Sgemm<(f32, f32, N, MN, f32, M)> = sgemm_kernel! {
    scaled, tile: 32x32x8, thread: 4x4, pitched,
    epilogue: |acc, bias[n], residual[m, n], slope, c[m, n], scale[m]| {
        let t = acc * scale + bias;
        if t < 0.0 { slope * t } else { t } + residual + c
    }
};
type Most = (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, N);
const MOST: Sgemm<Most> = sgemm_kernel! {
    scaled,
    epilogue: |acc, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11[n]|
        acc + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11
};

#[test]
fn the_type_of_a_macro_s_kernel_is_that_of_its_line() -> Result<(), Error> {
    fn same<E: gemm_runtime::bounds::Operands>(kernel: &Sgemm<E>) -> Result<SgemmSpec, Error> {
        let spec: SgemmSpec = kernel.spec_line().parse()?;
        assert_eq!(Sgemm::<E>::new(spec.clone())?, *kernel);
        assert_eq!(Sgemm::<ByName>::new(spec.clone())?.source(), kernel.source());
        Ok(spec)
    }
    assert_eq!(same(&NONE)?.operands(), []);
    let scale = EpilogueArg { name: "scale".into(), along: Along::M, slot: ArgSlot::Array(2) };
    assert_eq!(same(&ONE)?.operands(), [scale]);
    let names: Vec<String> = same(&ALL)?.operands().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["alpha", "beta", "bias[n]", "residual[m, n]", "slope", "scale[m]"]);
    assert_eq!(same(&MOST)?.operands().len(), EpilogueArg::MOST_LISTED);
    Ok(())
}

sgemm_kernel! {
    /// Named kernel with the spec of [`ALL`].
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Layer;
    scaled, tile: 32x32x8, thread: 4x4, pitched,
    epilogue: |acc, bias[n], residual[m, n], slope, c[m, n], scale[m]| {
        let t = acc * scale + bias;
        if t < 0.0 { slope * t } else { t } + residual + c
    }
}

/// Numbers between -1 and 1 with few bits, so that no sum is rounded.
fn values(seed: usize, count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 29 + seed * 17) % 31) as f32 / 16.0 - 1.0).collect()
}

const SIZE: (usize, usize, usize) = (37, 21, 10);

/// A and B with the extents [`SIZE`].
fn factors(device: &Device) -> Result<[Matrix; 2], Error> {
    let (m, n, k) = SIZE;
    Ok([
        device.upload_matrix_padded(&values(1, m * k), m, k)?,
        device.upload_matrix_padded(&values(2, k * n), k, n)?,
    ])
}

/// Exact sums of the GEMM.
fn sums() -> Vec<f32> {
    let (m, n, k) = SIZE;
    let (a, b) = (values(1, m * k), values(2, k * n));
    let at = |i: usize| (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum();
    (0..m * n).map(at).collect()
}

#[test]
fn a_named_kernel_takes_its_operands_by_name() -> Result<(), Error> {
    let device = Device::simulator();
    let (m, n, _) = SIZE;
    let [a, b] = factors(&device)?;
    let (bias, scale, around) = (values(3, n), values(4, m), values(5, 40 * 32));
    let [bias_there, scale_there, around_there] =
        [&bias, &scale, &around].map(|values| device.upload(values));
    let (bias_there, scale_there, around_there) = (bias_there?, scale_there?, around_there?);
    let residual = MatrixRef::new(&around_there, 40, 32)?.part(2..2 + m, 7..7 + n)?;
    let (alpha, beta, slope) = (0.5, -2.0, 0.25);
    let before = values(6, m * n);
    let expected: Vec<f32> = sums()
        .iter()
        .enumerate()
        .map(|(i, sum)| {
            let (row, col) = (i / n, i % n);
            let t = (alpha * sum + beta * before[i]) * scale[row] + bias[col];
            let t = if t < 0.0 { slope * t } else { t };
            t + around[(row + 2) * 32 + col + 7] + before[i]
        })
        .collect();

    let mut c = device.upload_matrix_padded(&before, m, n)?;
    let (bias, scale) = (&bias_there, &scale_there);
    let operands = LayerOperands { alpha, slope, scale, residual: &residual, beta, bias };
    Layer::launch(&device, &a, &b, &mut c, operands)?;
    assert_eq!(device.download(&c)?, expected);

    let mut c = device.upload_matrix_padded(&before, m, n)?;
    ALL.call(&device)
        .operands((alpha, beta, bias, &residual, slope, scale))
        .launch(&a, &b, &mut c)?;
    assert_eq!(device.download(&c)?, expected);

    assert_eq!(Layer::KERNEL, ALL);
    // The kernel is a unit struct with the user's attributes, and its operands are `Copy`.
    let copied = operands;
    assert_eq!((copied.alpha, format!("{Layer:?}").as_str()), (alpha, "Layer"));
    assert!(format!("{operands:?}").starts_with("LayerOperands { alpha: 0.5, beta: -2.0, bias: "));
    Ok(())
}

/// A named kernel has the matrices of further values, and operands of each GEMM, as fields.
#[test]
fn a_named_kernel_has_results_as_fields() -> Result<(), Error> {
    sgemm_kernel! {
        struct Both;
        batch: strided, epilogue: |acc, bias[batch, n], factor[batch]| {
            let t = factor * acc + bias;
            (relu(t), t)
        }
    }
    let device = Device::simulator();
    let ones = device.upload(&[1.0; 4])?;
    let (x, mut y, mut t) = (MatrixRef::batch(&ones, 2, 2, 1)?, device.alloc(8)?, device.alloc(8)?);
    let bias = device.upload_matrix(&[0.0, -5.0, 1.0, -2.0], 2, 2)?;
    let factor = device.upload(&[1.0, 2.0])?;
    let mut to = MatrixMut::batch(&mut y, 2, 2, 2)?;
    let c2 = &mut MatrixMut::batch(&mut t, 2, 2, 2)?;
    let operands = BothOperands { bias: &bias, factor: &factor, c2 };
    Both::launch(&device, &x, &MatrixRef::batch(&ones, 2, 1, 2)?, &mut to, operands)?;
    assert_eq!(device.download(&t)?, [1.0, -4.0, 1.0, -4.0, 3.0, 0.0, 3.0, 0.0]);
    assert_eq!(device.download(&y)?, [1.0, 0.0, 1.0, 0.0, 3.0, 0.0, 3.0, 0.0]);
    Ok(())
}

/// As in BLAS, a zero factor prevents the read of its operand.
#[test]
fn factors_of_zero_stop_nan() -> Result<(), Error> {
    sgemm_kernel! { struct Scaled; scaled, pitched }
    const BY_BLAS: &[&str] =
        &["scaled, pitched", "scaled, pitched, tile: 16x16x8, thread: 4x4, float4"];
    let device = Device::simulator();
    let (m, n, k) = SIZE;
    let [a, b] = factors(&device)?;
    let nan = device.upload_matrix_padded(&vec![f32::NAN; m * k], m, k)?;
    let before = values(7, m * n);
    let halves = |of: &[f32]| of.iter().map(|x| 0.5 * x).collect::<Vec<f32>>();
    for zero in [0.0, -0.0] {
        let mut c = device.upload_matrix_padded(&vec![f32::NAN; m * n], m, n)?;
        Scaled::launch(&device, &a, &b, &mut c, ScaledOperands { alpha: 0.5, beta: zero })?;
        assert_eq!(device.download(&c)?, halves(&sums()));
        let mut c = device.upload_matrix_padded(&before, m, n)?;
        Scaled::launch(&device, &nan, &b, &mut c, ScaledOperands { alpha: zero, beta: 0.5 })?;
        assert_eq!(device.download(&c)?, halves(&before));
        for line in BY_BLAS {
            let kernel = Sgemm::<ByName>::new(line.parse()?)?;
            let with = |alpha: f32, beta: f32| {
                kernel.call(&device).operand("beta", beta).operand("alpha", alpha)
            };
            let mut c = device.upload_matrix_padded(&vec![f32::NAN; m * n], m, n)?;
            with(0.5, zero).launch(&a, &b, &mut c)?;
            assert_eq!(device.download(&c)?, halves(&sums()), "{line}");
            let mut c = device.upload_matrix_padded(&before, m, n)?;
            with(zero, 0.5).launch(&nan, &b, &mut c)?;
            assert_eq!(device.download(&c)?, halves(&before), "{line}");
        }
    }
    Ok(())
}

#[test]
fn a_named_kernel_without_operands_is_launched_without() -> Result<(), Error> {
    sgemm_kernel! { struct Added; pitched, epilogue: |acc, c[m, n]| acc + c }
    let device = Device::simulator();
    let (m, n, _) = SIZE;
    let [a, b] = factors(&device)?;
    let before = values(8, m * n);
    let mut c = device.upload_matrix_padded(&before, m, n)?;
    Added::launch(&device, &a, &b, &mut c)?;
    let expected: Vec<f32> = sums().iter().zip(&before).map(|(sum, c)| sum + c).collect();
    assert_eq!(device.download(&c)?, expected);
    Ok(())
}

/// The user's attributes apply to all items of a kernel, so a false `cfg` removes the kernel
/// entirely.
#[test]
fn a_kernel_is_there_as_a_whole_or_not_at_all() -> Result<(), Error> {
    sgemm_kernel! {
        #[cfg(any())]
        struct Layer;
        epilogue: |acc, other[n], names| acc + other * names
    }
    // If an item were not removed, its name would be defined twice.
    sgemm_kernel! {
        #[cfg(all())]
        #[expect(non_camel_case_types, reason = "a test")]
        #[derive(Debug)]
        struct layer;
        epilogue: |acc, bias[n]| acc + bias
    }
    macro_rules! absent {
        ($(#[$attribute:meta])*) => {
            sgemm_kernel! { $(#[$attribute])* struct Layer; epilogue: |acc, x| acc * x }
        };
    }
    absent!(#[cfg(any())] #[doc = "None."]);
    /// Type of the user. The macros above define no type of this name.
    struct Layer;
    impl Layer {
        const KERNEL: f32 = 1.5;
    }

    let device = Device::simulator();
    let (one, mut room) = (device.upload(&[Layer::KERNEL])?, device.alloc(1)?);
    let a = MatrixRef::new(&one, 1, 1)?;
    let to = &mut MatrixMut::new(&mut room, 1, 1)?;
    layer::launch(&device, &a, &a, to, layerOperands { bias: &one })?;
    assert_eq!(device.download(&room)?, [1.5 * 1.5 + 1.5]);
    Ok(())
}

/// Operands may have Rust keywords as names, and names that the generated items use.
#[test]
fn any_name_is_a_field() -> Result<(), Error> {
    sgemm_kernel! {
        struct Words;
        epilogue: |acc, type, fn[n], move[m], device, operands, launch, loop, t0| {
            let both = acc * move + fn;
            both + type + device + operands + launch + loop + t0
        }
    }
    let device = Device::simulator();
    let [one, two, four] = [1.0, 2.0, 4.0].map(|value| device.upload(&[value]));
    let (one, two, four) = (one?, two?, four?);
    let (a, b) = (MatrixRef::new(&one, 1, 1)?, MatrixRef::new(&two, 1, 1)?);
    let mut room = device.alloc(1)?;
    let operands = WordsOperands {
        r#type: 16.0,
        r#fn: &four,
        r#move: &two,
        device: 32.0,
        operands: 64.0,
        launch: 128.0,
        r#loop: 256.0,
        t0: 512.0,
    };
    Words::launch(&device, &a, &b, &mut MatrixMut::new(&mut room, 1, 1)?, operands)?;
    assert_eq!(device.download(&room)?, [2.0 * 2.0 + 4.0 + 1008.0]);
    Ok(())
}

mod named_elsewhere {
    /// Macro of a user that defines a kernel type.
    macro_rules! layer {
        ($(#[$attribute:meta])* $visibility:vis $name:ident, $operand:ident) => {
            gemm_runtime::sgemm_kernel! {
                $(#[$attribute])*
                $visibility struct $name;
                block: 8x8, epilogue: |acc, $operand[n]| acc + $operand
            }
        };
    }
    layer!(#[derive(PartialEq)] pub(super) Seen, bias);
    layer!(Unseen, bias);

    pub(super) const UNSEEN: gemm_runtime::Sgemm<(gemm_runtime::N,)> = Unseen::KERNEL;
}

#[test]
fn a_macro_of_the_users_may_name_a_kernel() -> Result<(), Error> {
    use named_elsewhere::{Seen, SeenOperands, UNSEEN};
    let device = Device::simulator();
    let (one, mut room) = (device.upload(&[3.0])?, device.alloc(1)?);
    let a = MatrixRef::new(&one, 1, 1)?;
    let operands = SeenOperands { bias: &one };
    Seen::launch(&device, &a, &a, &mut MatrixMut::new(&mut room, 1, 1)?, operands)?;
    assert_eq!(device.download(&room)?, [12.0]);
    assert!(UNSEEN == Seen::KERNEL && Seen == Seen);
    Ok(())
}
