//! `sgemm` with a relaxed accuracy class: choice of the arithmetic, error bound, and operands split
//! in advance.

use crate::{equal_bits, trial};
use gemm_oracle::random::{Random, values};
use gemm_runtime::bounds::AsMatrixOf;
use gemm_runtime::spec::{Accuracy, Arith};
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, sgemm};
use libtest_mimic::{Failed, Trial};

/// Architecture whose shipped table has rules with tensor-core arithmetics.
const MEASURED: u32 = 90;

/// M, N and K. The sizes select different tensor-core rules, except for one that is too small for
/// any.
const SIZES: [[usize; 3]; 6] = [
    [1200, 700, 301],
    [300, 400, 3100],
    [200, 260, 5003],
    [1500, 1900, 130],
    [770, 900, 801],
    [100, 3000, 1000],
];

/// Matrix in an array with row stride `pitch`, which may be used as its transpose.
struct Stored {
    values: Vec<f32>,
    lines: [usize; 2],
    pitch: usize,
    is_turned: bool,
}

impl Stored {
    fn new(rows: usize, cols: usize, random: &mut Random) -> Self {
        let is_turned = random.bits() % 2 == 1;
        let lines = if is_turned { [cols, rows] } else { [rows, cols] };
        let pitch = lines[1] + (random.bits() % 4) as usize;
        let values = values(random.bits(), lines[0] * pitch);
        Self { values, lines, pitch, is_turned }
    }

    fn at(&self, row: usize, col: usize) -> f64 {
        let [line, place] = if self.is_turned { [col, row] } else { [row, col] };
        self.values[line * self.pitch + place].into()
    }

    fn view<'a>(&self, array: &'a gemm_runtime::Buffer) -> Result<MatrixRef<'a>, Error> {
        let view = MatrixRef::pitched(array, self.lines[0], self.lines[1], self.pitch)?;
        Ok(if self.is_turned { view.t() } else { view })
    }
}

pub fn trials() -> Vec<Trial> {
    let cases = SIZES.into_iter().enumerate();
    let of = |(nth, size): (usize, [usize; 3])| {
        trial(format!("accuracy::{}x{}x{}", size[0], size[1], size[2]), move |gpu| {
            products(gpu, size, nth as u64)
        })
    };
    cases.map(of).collect()
}

fn products(gpu: &Device, [m, n, k]: [usize; 3], seed: u64) -> Result<(), Failed> {
    let mut random = Random::new(seed);
    let (a, b) = (Stored::new(m, k, &mut random), Stored::new(k, n, &mut random));
    let in_columns = random.bits() % 2 == 1;
    let (on_a, on_b) = (gpu.upload(&a.values)?, gpu.upload(&b.values)?);
    let (in_a, in_b) = (a.view(&on_a)?, b.view(&on_b)?);
    for class in Accuracy::ALL {
        let run = |a: &dyn Fn(&mut MatrixMut<'_>) -> Result<Arith, Error>| {
            let mut c = gpu.upload(&vec![f32::NAN; m * n])?;
            let (rows, cols) = if in_columns { (n, m) } else { (m, n) };
            let mut lines = MatrixMut::new(&mut c, rows, cols)?;
            let arith = if in_columns { a(&mut lines.t()) } else { a(&mut lines) }?;
            Ok::<_, Error>((arith, gpu.download(&c)?))
        };
        let (arith, c) = run(&|c| multiply(gpu, *class, &in_a, &in_b, c))?;
        let is_large = m.min(n) >= 128 && gpu.arch().map(|arch| arch.number()) == Some(MEASURED);
        let granted = arith.accuracy().is_some_and(|own| own <= *class);
        if !granted || (is_large && *class > Accuracy::Ieee) != (arith != Arith::F32) {
            return Err(format!("accuracy {class}: the GEMM was computed in {arith}").into());
        }
        // Random elements of C are checked.
        for _ in 0..2000 {
            let (row, col) =
                ((random.bits() % m as u64) as usize, (random.bits() % n as u64) as usize);
            let terms = (0..k).map(|p| a.at(row, p) * b.at(p, col));
            let (value, magnitude) =
                terms.fold((0.0, 0.0), |(sum, all), term| (sum + term, all + term.abs()));
            let found = c[if in_columns { col * m + row } else { row * n + col }];
            let off = (f64::from(found) - value).abs();
            if off.is_nan() || off > arith.error_bound(k as u64) * magnitude {
                return Err(format!("{class}: C[{row}][{col}] is {found}, not {value}").into());
            }
        }
        if arith == Arith::F32 {
            continue;
        }
        let (of_a, of_b) = (gpu.prepare(arith, &in_a.t())?, gpu.prepare(arith, &in_b)?);
        let of_a = of_a.t();
        let with_b = run(&|c| multiply(gpu, *class, &in_a, &of_b, c))?;
        let with_both = run(&|c| multiply(gpu, *class, &of_a, &of_b, c))?;
        for (who, other) in [("B", with_b), ("A and B", with_both)] {
            let what = format!("{m}x{n}x{k} in {arith}");
            equal_bits(
                &what,
                ("without prepared operands", &c),
                (&format!("with {who} prepared"), &other.1),
            )?;
        }
    }
    Ok(())
}

/// Computes a GEMM and returns the arithmetic that was used.
fn multiply(
    gpu: &Device,
    class: Accuracy,
    a: &impl AsMatrixOf<f32>,
    b: &impl AsMatrixOf<f32>,
    c: &mut MatrixMut<'_>,
) -> Result<Arith, Error> {
    let call = sgemm(a, b, c).accuracy(class);
    let arith = call.spec(gpu)?.arith;
    call.run(gpu)?;
    Ok(arith)
}
