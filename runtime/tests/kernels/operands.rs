//! Epilogue operands of a GEMM: results and errors.

use super::{product, values};
use gemm_runtime::error::{Need, Owner};
use gemm_runtime::generic::{Call, Typed};
use gemm_runtime::{
    Buffer, ByName, Device, Error, LaunchReport, M, MN, Matrix, MatrixMut, MatrixRef, N, Sgemm,
    SgemmKernel, SgemmSpec,
};

fn spec(line: &str) -> SgemmSpec {
    line.parse().expect("a spec")
}

fn by_name(line: &str) -> Sgemm<ByName> {
    Sgemm::new(spec(line)).expect("a sound spec")
}

/// GEMM with 6 rows, 7 columns and K = 5, with its operands on the device.
struct Problem {
    device: Device,
    a: Matrix,
    b: Matrix,
    bias: Buffer,
    scale: Buffer,
    /// 9 × 11 elements around the residual.
    around: Buffer,
}

const SIZE: (usize, usize, usize) = (6, 7, 5);

impl Problem {
    fn new() -> Self {
        let device = Device::simulator();
        let (m, n, k) = SIZE;
        let a = device.upload_matrix_padded(&values(m * k), m, k).expect("room");
        let b = device.upload_matrix_padded(&values(k * n), k, n).expect("room");
        let bias: Vec<f32> = (0..n).map(|col| col as f32 * 10.0).collect();
        // One element more than the kernel reads.
        let scale: Vec<f32> = (0..m).map(|row| 1.0 - row as f32).chain([f32::NAN]).collect();
        let [bias, scale] = [bias, scale].map(|v| device.upload(&v).expect("room"));
        let around: Vec<f32> = (0..99).map(|i| i as f32 * 1000.0).collect();
        let around = device.upload(&around).expect("room");
        Self { device, a, b, bias, scale, around }
    }

    /// Part of `around` with the shape of C.
    fn residual(&self) -> MatrixRef<'_> {
        let all = MatrixRef::new(&self.around, 9, 11).expect("room");
        all.part(2..8, 3..10).expect("inside")
    }

    /// C = (A·B)·scale + bias + alpha·residual.
    fn expected(&self, alpha: f32) -> Vec<f32> {
        let (m, n, k) = SIZE;
        let sums = product(&values(m * k), &values(k * n), SIZE);
        let at = |i: usize| {
            let (row, col) = (i / n, i % n);
            let residual = ((row + 2) * 11 + col + 3) as f32 * 1000.0;
            sums[i] * (1.0 - row as f32) + col as f32 * 10.0 + alpha * residual
        };
        (0..m * n).map(at).collect()
    }

    fn c(&self) -> Matrix {
        let (m, n, _) = SIZE;
        self.device.upload_matrix_padded(&vec![f32::NAN; m * n], m, n).expect("room")
    }
}

const LINE: &str = "pitched, epilogue: |acc, bias[n], alpha, scale[m], residual[m, n]| \
                    acc * scale + bias + alpha * residual";

#[test]
fn operands_reach_the_kernel_in_order_and_by_name() {
    let p = Problem::new();
    for more in ["", ", tile: 16x16x8, thread: 4x4, float4", ", block: 4x8, lanes: m"] {
        let line = format!("{LINE}{more}");
        let kernel = Sgemm::<(N, f32, M, MN)>::new(spec(&line)).expect("its operands");
        let named = by_name(&line);
        assert_eq!(kernel.source(), named.source());
        for alpha in [0.5, -2.0] {
            let (mut c, residual) = (p.c(), p.residual());
            let call = kernel.call(&p.device).operands((&p.bias, alpha, &p.scale, &residual));
            call.launch(&p.a, &p.b, &mut c).expect("sound");
            assert_eq!(p.device.download(&c).expect("ours"), p.expected(alpha), "{line}");

            let mut c = p.c();
            let call = named.call(&p.device).operand("residual", &residual).operand("alpha", alpha);
            let call = call.operand("scale", &p.scale).operand("bias", &p.bias);
            call.launch(&p.a, &p.b, &mut c).expect("sound");
            assert_eq!(p.device.download(&c).expect("ours"), p.expected(alpha), "{line}");
        }
    }
}

#[test]
fn the_type_of_a_kernel_lists_its_operands() {
    let told = |kernel: Result<SgemmKernel, Error>| kernel.expect_err("operands").to_string();
    assert_eq!(
        told(SgemmKernel::new(spec("scaled, epilogue: |acc, bias[n], r[m, n]| acc + bias + r"))),
        "a kernel of `scaled, epilogue: |acc, bias[n], r[m, n]| acc + bias + r` takes `alpha`, \
         `beta`, `bias[n]`, `r[m, n]`: its type is `Sgemm<(f32, f32, N, MN)>`, not `SgemmKernel`. \
         Use `Sgemm<(f32, f32, N, MN)>`, or `Sgemm<ByName>`, which takes any operands"
    );
    let one = told(SgemmKernel::new(spec("epilogue: |acc, scale[m]| acc * scale")));
    assert!(one.contains("takes `scale[m]`: its type is `Sgemm<(M,)>`, not"), "{one}");
    let error = Sgemm::<(N,)>::new(spec("block: 8x8")).expect_err("none").to_string();
    let none = "takes no operands: its type is `SgemmKernel`, not `Sgemm<(N,)>`";
    assert!(error.contains(none), "{error}");
    let error = Sgemm::<(N, M)>::new(spec("epilogue: |acc, x[m], y[n]| acc * x * y"));
    assert!(matches!(error, Err(Error::KernelType { .. })), "{error:?}");
    // More operands than a type can list.
    let names: Vec<String> = (0..13).map(|i| format!("x{i}")).collect();
    let many = spec(&format!("epilogue: |acc, {}| acc + {}", names.join(", "), names.join(" + ")));
    let error = told(SgemmKernel::new(many.clone()));
    assert!(error.contains("its type is `Sgemm<ByName>`, not `SgemmKernel`"), "{error}");
    assert!(Sgemm::<ByName>::new(many).is_ok() && Sgemm::<ByName>::new(spec("")).is_ok());
    // C itself is not an operand.
    assert!(SgemmKernel::new(spec("epilogue: |acc, c[m, n]| acc + c")).is_ok());
}

#[test]
fn operands_by_name_are_checked() {
    let p = Problem::new();
    let (kernel, residual, mut c) = (by_name(LINE), p.residual(), p.c());
    let call = || kernel.call(&p.device).operand("scale", &p.scale).operand("residual", &residual);
    let mut told = |call: Call<'_, SgemmSpec, Typed<f32, f32, f32, ByName>, _>| {
        call.launch(&p.a, &p.b, &mut c).expect_err("an operand is wrong").to_string()
    };
    assert_eq!(
        told(call().operand("alpha", 1.0)),
        "the call gives no `bias[n]`, a vector with an element for each column of C: add it with \
         `.operand(name, …)`"
    );
    assert_eq!(
        told(call().operand("bais", &p.bias)),
        "`bais` is not an operand of the kernel, which takes `bias[n]`, `alpha`, `scale[m]`, \
         `residual[m, n]`"
    );
    assert_eq!(
        told(call().operand("scale", &p.scale)),
        "the call gives `scale` twice: pass it only once"
    );
    let call = || call().operand("alpha", 1.0);
    assert_eq!(
        told(call().operand("bias", 1.0)),
        "`bias[n]` is a vector with an element for each column of C, but the call gives the number \
         1. Upload the elements and pass a reference to them"
    );
    assert_eq!(
        told(call().operand("bias", &p.a)),
        "`bias[n]` is a vector with an element for each column of C, but the call gives a matrix \
         of 6x5. Pass a buffer, or a part of one"
    );
    let call = kernel.call(&p.device).operand("bias", &p.bias).operand("scale", &p.scale);
    assert_eq!(
        told(call.operand("residual", &p.around).operand("alpha", 1.0)),
        "`residual[m, n]` is a matrix of the shape of C, but the call gives a vector of 99 \
         elements. Pass a view, such as `MatrixRef::new(&elements, m, n)`"
    );
    let call = kernel.call(&p.device).operand("bias", &p.bias).operand("scale", &p.scale);
    assert_eq!(
        told(call.operand("residual", &residual).operand("alpha", &p.bias)),
        "`alpha` is a number, but the call gives a vector of 7 elements. Pass the number itself, \
         an `f32`"
    );
    let kernel = by_name("");
    assert_eq!(
        told(kernel.call(&p.device).operand("alpha", 1.0)),
        "`alpha` is not an operand of the kernel, which takes no operands"
    );
}

/// Error of a launch with a wrong operand.
fn refused(outcome: Result<LaunchReport, Error>) -> Error {
    outcome.expect_err("an operand is wrong")
}

#[test]
fn shapes_devices_and_places_of_operands_are_checked() {
    let (p, other) = (Problem::new(), Device::simulator());
    let kernel = Sgemm::<(N, f32, M, MN)>::new(spec(LINE)).expect("its operands");
    let (call, residual, mut c) = (kernel.call(&p.device), p.residual(), p.c());
    let short = p.bias.slice(1..).expect("inside");
    let call_with = call.operands((&short, 1.0, &p.scale, &residual));
    assert_eq!(
        refused(call_with.launch(&p.a, &p.b, &mut c)).to_string(),
        "`bias` has 6 elements, but n = 7 are needed, one for each column of C"
    );
    let short = p.scale.slice(..5).expect("inside");
    let call_with = call.operands((&p.bias, 1.0, &short, &residual));
    assert_eq!(
        refused(call_with.launch(&p.a, &p.b, &mut c)).to_string(),
        "`scale` has 5 elements, but m = 6 are needed, one for each row of C"
    );
    let call_with = call.operands((&p.bias, 1.0, &p.scale, &p.a));
    assert_eq!(
        refused(call_with.launch(&p.a, &p.b, &mut c)).to_string(),
        "`residual` has 30 elements, but its shape 6 x 5 is not m x n = 6 x 7"
    );
    let foreign = other.upload(&[0.0; 7]).expect("room");
    let call_with = call.operands((&foreign, 1.0, &p.scale, &residual));
    let error = refused(call_with.launch(&p.a, &p.b, &mut c));
    assert!(
        matches!(
            &error,
            Error::WrongDevice { argument, belongs: Owner::Device { .. }, .. } if argument == "bias"
        ),
        "{error}"
    );
    // A padded matrix needs a kernel that takes row strides.
    let packed = Sgemm::<(MN,)>::new(spec("epilogue: |acc, r[m, n]| acc + r")).expect("sound");
    let (m, n, k) = SIZE;
    let [a, b] = [m * k, k * n].map(|len| p.device.alloc(len).expect("room"));
    let mut to = p.device.alloc(m * n).expect("room");
    let (a, b) = (MatrixRef::new(&a, m, k).expect("room"), MatrixRef::new(&b, k, n).expect("room"));
    let mut to = MatrixMut::new(&mut to, m, n).expect("room");
    let error = refused(packed.call(&p.device).operands((&residual,)).launch(&a, &b, &mut to));
    assert!(
        matches!(
            &error,
            Error::Unmet(unmet) if unmet.need == Need::Exactly(7) && unmet.value == 11
        ),
        "{error}"
    );
    assert!(error.to_string().contains("packed rows of `r` with a stride of 7"), "{error}");
}

#[test]
fn factors_are_operands_and_a_c_that_is_read_is_none() {
    let p = Problem::new();
    let (m, n, k) = SIZE;
    let scaled = Sgemm::<(f32, f32)>::new(spec("scaled, pitched")).expect("two factors");
    let before: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
    let mut c = p.device.upload_matrix_padded(&before, m, n).expect("room");
    let sums = product(&values(m * k), &values(k * n), SIZE);
    scaled.call(&p.device).operands((2.0, -1.0)).launch(&p.a, &p.b, &mut c).expect("sound");
    let expected: Vec<f32> = sums.iter().zip(&before).map(|(sum, c)| 2.0 * sum - c).collect();
    assert_eq!(p.device.download(&c).expect("ours"), expected);

    let added = SgemmKernel::new(spec("pitched, epilogue: |acc, c[m, n]| acc + c"));
    let added = added.expect("no operands");
    let mut c = p.device.upload_matrix_padded(&before, m, n).expect("room");
    added.call(&p.device).launch(&p.a, &p.b, &mut c).expect("sound");
    let expected: Vec<f32> = sums.iter().zip(&before).map(|(sum, c)| sum + c).collect();
    assert_eq!(p.device.download(&c).expect("ours"), expected);
    // A call on host slices has no previous C to read.
    let (a, b) = (values(m * k), values(k * n));
    assert_eq!(added.run(&p.device, &a, &b, SIZE).expect("sound"), sums);
}
