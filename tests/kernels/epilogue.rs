//! The key `epilogue`: the stored value is the expression applied to the sum that a kernel without
//! an epilogue stores.

mod gpu;
mod pairs;
mod results;
mod row_folds;
use crate::trial;
use gemm_dsl::Plan;
use gemm_dsl::cuda;
use gemm_dsl::spec::{Epilogue, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_runtime::{ByName, Device, Error, MN, MatrixMut, MatrixRef, N, Sgemm};
use gemm_tests::product::{Placement, Problem};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};

const TEXT: &str = "|acc| { let t = 0.5 * acc; if col > row && n > 1 { max(t, 0.25) } else { t * \
                    f32(row - col) + f32(m * n + k) } }";

fn expected(sum: f32, (row, col): (usize, usize), Size { m, n, k }: Size) -> f32 {
    let t = 0.5 * sum;
    if col > row && n > 1 {
        t.max(0.25)
    } else {
        t * (row as i64 - col as i64) as f32 + (m * n + k) as f32
    }
}

/// Specs with every kind of store to C.
const SPECS: &[&str] = &[
    "block: 8x8",
    "block: 8x8, lanes: m, coarsen: 3, partials: 4, unroll: 4",
    "tile: 16x16x8",
    "tile: 32x32x8, thread: 4x4, float4",
    "tile: 32x32x8, thread: 4x4, float4, pitched",
    "tile: 32x32x8, thread: 4x4, fragment: strided, prefetch",
    "tile: 32x64x8, thread: 4x8, fragment: split, float4, transpose, double_buffer",
    "tile: 32x32x8, thread: 4x4, float4, stages: 3, warp: 16x32",
    "tile: 32x32x8, thread: 4x4, float4, stages: 2, blocks_per_sm: 2, pitched",
    "tile: 16x16x8, thread: 4x4, float4, bounds: aligned",
];

/// Operands may have any name. In the generated source their names are distinct from all others.
fn operands_may_begin_with_underscores() {
    let device = Device::simulator();
    let elements = |from: u8| -> Vec<f32> { (from..from + 16).map(f32::from).collect() };
    let upload = |values: Vec<f32>| device.upload(&values).expect("room");
    let (a, b) = (upload(vec![0.0; 16]), upload(vec![0.0; 16]));
    let each = [1, 20, 40, 60, 80].map(|from| upload(elements(from)));
    for keys in ["", ", pitched, batch: strided", ", tile: 16x16x8, thread: 4x4, float4, pitched"] {
        let line = format!(
            "bounds: guarded{keys}, epilogue: |_acc, _r[m, n], r[m, n], r_[m, n], _n[n], _m_[m]| \
             _r + 2.0 * r + 4.0 * r_ + 8.0 * _n + 16.0 * _m_"
        );
        let spec: SgemmSpec = line.parse().expect("a sound spec");
        let kernel = Sgemm::<ByName>::new(spec).expect("a kernel");
        let view = |buffer| MatrixRef::new(buffer, 4, 4).expect("as many");
        let views = [view(&each[0]), view(&each[1]), view(&each[2])];
        let mut c = device.alloc(16).expect("room");
        let call = kernel.call(&device).operand("_r", &views[0]).operand("r", &views[1]);
        let call = call.operand("r_", &views[2]).operand("_n", &each[3]).operand("_m_", &each[4]);
        let mut out = MatrixMut::new(&mut c, 4, 4).expect("as many");
        call.launch(&view(&a), &view(&b), &mut out).expect("a launch");
        for (i, found) in device.download(&c).expect("ours").into_iter().enumerate() {
            let at = |from: f32, i: usize| from + i as f32;
            let matrices = at(1.0, i) + 2.0 * at(20.0, i) + 4.0 * at(40.0, i);
            let expected = matrices + 8.0 * at(60.0, i % 4) + 16.0 * at(80.0, i / 4);
            assert_eq!(found, expected, "`{line}` at {i}");
        }
    }
}

/// Operands may have the names of matrices, extents and other parameters.
fn operands_may_be_called_as_parameters_are() {
    let device = Device::simulator();
    let line = "epilogue: |acc, A[n], B[m], C, M, N, K, BATCH, lda| \
                acc + A + 2.0 * B + 4.0 * C + 8.0 * M + 16.0 * N + 32.0 * K + 64.0 * BATCH + 128.0 \
                * lda";
    for keys in ["", ", tile: 16x16x8, thread: 4x4, stages: 3, pitched, batch: strided"] {
        let spec: SgemmSpec = format!("{line}{keys}").parse().expect("a sound spec");
        let kernel = Sgemm::<ByName>::new(spec).expect("a kernel");
        let ones = device.upload(&[1.0; 4]).expect("room");
        let mut c = device.alloc(4).expect("room");
        let one = MatrixRef::new(&ones, 2, 2).expect("as many");
        let mut out = MatrixMut::new(&mut c, 2, 2).expect("as many");
        let call = kernel.call(&device).operand("A", &ones).operand("B", &ones);
        let numbers = ["C", "M", "N", "K", "BATCH", "lda"].into_iter();
        let call = numbers.fold(call, |call, name| call.operand(name, 1.0));
        call.launch(&one, &one, &mut out).expect("a launch");
        assert_eq!(device.download(&c).expect("ours"), [257.0; 4], "{keys}");
    }
}

/// A kernel reads an operand in vectors of four only if its rows and matrices are aligned to 16
/// bytes.
fn an_operand_lies_anywhere() {
    let device = Device::simulator();
    let line = "tile: 32x32x8, thread: 4x4, float4, pitched, batch: strided, \
                epilogue: |_acc, r[m, n], bias[n]| r + bias";
    let kernel = Sgemm::<(MN, N)>::new(line.parse().expect("sound")).expect("a kernel");
    let (m, n, count) = (5, 12, 3);
    let zeros = device.alloc(4096).expect("room");
    let values: Vec<f32> = (0..1024_u16).map(f32::from).collect();
    let memory = device.upload(&values).expect("room");
    for start in [0, 1, 4, 7] {
        for pitch in [12, 13, 14, 16] {
            for distance in [80, 81, 82, 84] {
                for bias in [0, 3, 8] {
                    let part = memory.slice(start..).expect("inside");
                    let r = MatrixRef::batch_apart(&part, (count, distance), m, n, pitch);
                    let bias_part = memory.slice(bias..bias + n).expect("inside");
                    let one = |rows, cols| MatrixRef::new(&zeros, rows, cols).expect("as many");
                    let mut c = device.alloc(count * m * n).expect("room");
                    let mut c = MatrixMut::batch(&mut c, count, m, n).expect("as many");
                    let r = r.expect("inside");
                    let call = kernel.call(&device).operands((&r, &bias_part));
                    call.launch(&one(m, 4), &one(4, n), &mut c).expect("it lies anywhere");
                    for (i, found) in device.download(&c).expect("ours").into_iter().enumerate() {
                        let (product, row, col) = (i / (m * n), i / n % m, i % n);
                        let at = start + product * distance + row * pitch + col;
                        assert_eq!(found, (at + bias + col) as f32, "{start} {pitch} {distance}");
                    }
                }
            }
        }
    }
}

/// As in BLAS, the term of a factor of +0 or −0 is left out, even if it contains NaN. An epilogue
/// with the operand C reads C nevertheless.
fn a_factor_of_zero_leaves_out_its_own_part_only() {
    let device = Device::simulator();
    let (m, n, k) = (32, 48, 16);
    let upload = |len: usize, value: f32| device.upload(&vec![value; len]).expect("room");
    let before: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
    for line in SPECS {
        let spec = |epilogue: &str| -> SgemmSpec {
            format!("{line}, scaled{epilogue}").parse().expect("a sound spec")
        };
        let specs = [
            (spec(", epilogue: |acc, c[m, n]| acc + 2.0 * c"), 2.0),
            (spec(", epilogue: |acc| 1.0 * acc"), 0.0),
            (spec(""), 0.0),
        ];
        for ((spec, own), alpha, beta) in specs.iter().flat_map(|spec| {
            let factors = [0.0, -0.0, 1.5].into_iter();
            factors.flat_map(move |alpha| [0.0, -0.0, 0.5].map(|beta| (spec.clone(), alpha, beta)))
        }) {
            let kernel = Sgemm::<(f32, f32)>::new(spec.clone()).expect("of these operands");
            let read = own != 0.0 || beta != 0.0;
            let a = upload(m * k, if alpha == 0.0 { f32::NAN } else { 1.0 });
            let b = upload(k * n, if alpha == 0.0 { f32::INFINITY } else { 2.0 });
            let mut c = device.upload(&if read { before.clone() } else { vec![f32::NAN; m * n] });
            let c = c.as_mut().expect("room");
            let (a, b) = (MatrixRef::new(&a, m, k), MatrixRef::new(&b, k, n));
            let mut view = MatrixMut::new(c, m, n).expect("as many");
            let call = kernel.call(&device).operands((alpha, beta));
            call.launch(&a.expect("as many"), &b.expect("as many"), &mut view).expect("a launch");
            let found = device.download(&view).expect("ours");
            for (i, found) in found.iter().enumerate() {
                let expected = alpha * 32.0 + (beta + own) * i as f32;
                assert_eq!(*found, expected, "`{spec}`, {alpha}, {beta}: element {i}");
            }
        }
    }
}

fn every_kernel_stores_the_expression_of_its_sum() {
    let device = Device::simulator();
    for line in SPECS {
        let plain: SgemmSpec = line.parse().expect("a sound spec");
        let fused: SgemmSpec = format!("{line}, epilogue: {TEXT}").parse().expect("a sound spec");
        let sizes: &[(usize, usize, usize)] = match line.contains("aligned") {
            true => &[(32, 48, 16)],
            false => &[(1, 1, 1), (33, 36, 9), (40, 35, 0), (17, 64, 32)],
        };
        for &(m, n, k) in sizes {
            let size = Size { m, n, k };
            let problem = Problem::new(size, 7);
            let placements = match plain.pitched {
                true => vec![
                    Placement::aligned_rows(plain.layout, size),
                    Placement { padding: [1, 1, 1], ..Default::default() },
                ],
                false => vec![Placement::default()],
            };
            for placement in placements {
                let run = |spec| problem.multiply(&device, spec, placement).expect("a launch").0;
                let (sums, found) = (run(&plain), run(&fused));
                for (i, (sum, found)) in sums.iter().zip(&found).enumerate() {
                    let at = (i / n, i % n);
                    let expected = expected(*sum, at, size);
                    let bits = (found.to_bits(), expected.to_bits());
                    assert_eq!(bits.0, bits.1, "{line} at {size}, {at:?}: {found}, not {expected}");
                }
            }
        }
    }
}

/// The CUDA source of an epilogue is a function. The spec and the kernel name contain the epilogue.
fn the_text_has_the_epilogue_as_a_function() {
    let relu: Epilogue =
        "|acc|{let float=acc*2.0;relu(float)}".parse().expect("a sound expression");
    let spec = SgemmSpec::default().epilogue(relu);
    assert_eq!(spec.to_string(), "epilogue: |acc| { let float = acc * 2.0; relu(float) }");
    assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
    assert_eq!(spec.kernel_name(), "sgemm_naive_16x16_epilogue_17760c5f");
    let other = SgemmSpec::default().epilogue("|acc| acc".parse().expect("a sound expression"));
    assert_ne!(spec.kernel_name(), other.kernel_name());
    let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
    let source = cuda::source(program.preferred());
    let function = "\
// `epilogue` of the spec.
__device__ __forceinline__ float epilogue(float acc)
{
    const float float_2 = acc * 2.0f;
    return maximum(float_2, 0.0f);
}
";
    assert!(source.contains(function), "{source}");
    assert!(source.contains("C[(size_t)row * N + col] = epilogue(acc);"), "{source}");
}

/// Bits of a NaN among the operands: several payloads of both signs.
const NANS: [u32; 6] =
    [0x7fff_ffff, 0xffff_ffff, 0x7fc0_0000, 0xffc0_1234, 0x7f80_0001, 0xff80_0001];

/// Expressions that copy an operand with the payload of a NaN.
const COPIES: [&str; 3] =
    ["r", "if acc < 1.0 { r } else { acc }", "{ let t = if acc > 1.0 { acc } else { r }; t }"];

/// Expressions whose NaN is the canonical one, whatever the payload of the operand.
const COMPUTED: [&str; 12] = [
    "r + 1.0",
    "acc - r",
    "0.5 * r",
    "r / 3.0",
    "fma(r, acc, 1.0)",
    "sqrt(r)",
    "max(r, acc)",
    "min(acc, r)",
    "floor(r)",
    "round(r)",
    "exp(r)",
    "if acc < 1.0 { -(r + 1.0) * 2.0 } else { r * 2.0 }",
];

/// Expressions whose NaN has unspecified bits: compilers drop these operations, or apply the sign
/// when the value is used.
const OPEN: [&str; 6] = [
    "-r",
    "abs(r)",
    "if acc < 1.0 { -r } else { r }",
    "if acc < 1.0 { abs(r) } else { r }",
    "r * 1.0",
    "r - 0.0",
];

/// Results of an epilogue `|acc, r[m, n]|` of sums 0, where r has NaN of all payloads and numbers.
fn of_nans(device: &Device, expression: &str) -> Result<Vec<f32>, Error> {
    let acc = if expression.contains("acc") { "acc" } else { "_acc" };
    let line = format!("tile: 16x16x8, epilogue: |{acc}, r[m, n]| {expression}");
    let kernel = Sgemm::<ByName>::new(line.parse()?)?;
    let numbers = [1.0f32, -2.5].map(f32::to_bits);
    let r: Vec<f32> = NANS.into_iter().chain(numbers).map(f32::from_bits).collect();
    let (zeros, r) = (device.upload(&vec![0.0; r.len()])?, device.upload(&r)?);
    let one = device.upload(&[1.0])?;
    let mut c = device.alloc(r.len())?;
    let row = |array| MatrixRef::new(array, 1, r.len());
    let mut out = MatrixMut::new(&mut c, 1, r.len())?;
    let (a, r) = (MatrixRef::new(&one, 1, 1)?, row(&r)?);
    kernel.call(device).operand("r", &r).launch(&a, &row(&zeros)?, &mut out)?;
    device.download(&c)
}

/// A copied NaN keeps its payload, and a computed one is canonical.
fn nan_has_the_promised_bits(device: &Device) -> Result<(), Failed> {
    let check = |expression: &str, expected: &dyn Fn(u32) -> Option<u32>| {
        for (nan, found) in NANS.into_iter().zip(of_nans(device, expression)?) {
            let found = found.to_bits();
            let right = expected(nan).map_or(f32::from_bits(found).is_nan(), |bits| bits == found);
            if !right {
                return Err(format!("`{expression}` of {nan:#x} is {found:#x}").into());
            }
        }
        Ok::<_, Failed>(())
    };
    COPIES.iter().try_for_each(|expression| check(expression, &Some))?;
    COMPUTED.iter().try_for_each(|expression| check(expression, &|_| Some(0x7fff_ffff)))?;
    OPEN.iter().try_for_each(|expression| check(expression, &|_| None))
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![
            operands_may_begin_with_underscores,
            operands_may_be_called_as_parameters_are,
            an_operand_lies_anywhere,
            a_factor_of_zero_leaves_out_its_own_part_only,
            every_kernel_stores_the_expression_of_its_sum,
            the_text_has_the_epilogue_as_a_function,
        ],
        vec![
            Trial::test("epilogue::nan_has_the_promised_bits", || {
                nan_has_the_promised_bits(&simulator())
            }),
            trial("epilogue::nan_has_the_promised_bits".to_owned(), nan_has_the_promised_bits),
        ],
        gpu::trials(),
        pairs::trials(),
        results::trials(),
        row_folds::trials(),
    ];
    trials.into_iter().flatten().collect()
}
