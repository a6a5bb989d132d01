//! Tables of GEMMs: choice of the rule by views, and errors.

use super::{product, values};
use gemm_runtime::{
    ByName, Device, Error, KernelTable, LaunchReport, MatrixList, MatrixListMut, MatrixMut,
    MatrixRef, N, SgemmShape, SgemmSpec, SgemmTable, sgemm_table, spec::GemmLayout,
};

const LAYERS: SgemmTable<(N, f32)> = sgemm_table! {
    m <= 2 => tile: 8x8x8, epilogue: |acc, bias[n], slope| max(acc, slope * acc) + bias;
    else => block: 8x8, epilogue: |acc, bias[n], slope| max(acc, slope * acc) + bias;
};

static ANY: SgemmTable = sgemm_table! {
    padded => unroll: 2;
    tn => tile: 8x8x8, float4;
    else => tile: 8x8x8, transpose;
};

fn table(text: &str) -> KernelTable<SgemmSpec> {
    text.parse().unwrap_or_else(|faults| panic!("{text}: {faults}"))
}

fn ran(launched: &LaunchReport) -> String {
    launched.steps().next().expect("it ran").kernel().to_owned()
}

#[test]
fn a_table_takes_operands_as_its_kernels_do() -> Result<(), Error> {
    let device = Device::simulator();
    let by_name = SgemmTable::<ByName>::new(&table(LAYERS.text()))?;
    for (m, kernel) in [(2, "8x8x8"), (3, "naive")] {
        let (n, k) = (5, 4);
        let (a, b) = (device.upload(&values(m * k))?, device.upload(&values(k * n))?);
        let (a, b) = (MatrixRef::new(&a, m, k)?, MatrixRef::new(&b, k, n)?);
        let bias = device.upload(&values(n))?;
        let sums = product(&values(m * k), &values(k * n), (m, n, k));
        let stored = |i: usize| f32::max(sums[i], 0.5 * sums[i]) + values(n)[i % n];
        let expected: Vec<f32> = (0..m * n).map(stored).collect();
        let (mut one, mut other) = (device.alloc(m * n)?, device.alloc(m * n)?);
        let mut to = MatrixMut::new(&mut one, m, n)?;
        let launched = LAYERS.call(&device).operands((&bias, 0.5)).launch(&a, &b, &mut to)?;
        assert!(ran(&launched).contains(kernel), "{launched:?}");
        let mut to = MatrixMut::new(&mut other, m, n)?;
        by_name
            .call(&device)
            .operand("slope", 0.5)
            .operand("bias", &bias)
            .launch(&a, &b, &mut to)?;
        assert_eq!(
            (device.download(&one)?, device.download(&other)?),
            (expected.clone(), expected)
        );

        let mut to = MatrixMut::new(&mut other, m, n)?;
        let outcome = by_name.call(&device).operand("bias", &bias).launch(&a, &b, &mut to);
        assert!(matches!(outcome, Err(Error::MissingOperand { .. })));
        let call = by_name.call(&device).operand("bias", &bias).operand("slope", 0.5);
        let outcome = call.operand("alpha", 1.0).launch(&a, &b, &mut to);
        assert!(matches!(outcome, Err(Error::UnknownOperand { .. })));
    }
    let told = SgemmTable::<(N,)>::new(&table(LAYERS.text())).map(drop).expect_err("two operands");
    assert!(told.to_string().contains("`Sgemm<(N, f32)>`, not `Sgemm<(N,)>`"), "{told}");
    Ok(())
}

#[test]
fn layouts_choose_the_rule() -> Result<(), Error> {
    let device = Device::simulator();
    let (m, n, k) = (6, 7, 5);
    let (by_rows, by_columns) = (values(m * k), |values: &[f32], rows: usize, cols: usize| {
        let at = |i: usize| values[i % rows * cols + i / rows];
        (0..rows * cols).map(at).collect::<Vec<f32>>()
    });
    let of_b = values(k * n);
    let expected = product(&by_rows, &of_b, (m, n, k));
    for (layout, name) in [
        (GemmLayout::Nn, "8x8x8"),
        (GemmLayout::Nt, "_nt"),
        (GemmLayout::Tn, "_tn"),
        (GemmLayout::Tt, "_tt"),
    ] {
        let a = match layout.transposes_a() {
            true => device.upload(&by_columns(&by_rows, m, k))?,
            false => device.upload(&by_rows)?,
        };
        let b = match layout.transposes_b() {
            true => device.upload(&by_columns(&of_b, k, n))?,
            false => device.upload(&of_b)?,
        };
        let a = if layout.transposes_a() {
            MatrixRef::new(&a, k, m)?.t()
        } else {
            MatrixRef::new(&a, m, k)?
        };
        let b = if layout.transposes_b() {
            MatrixRef::new(&b, n, k)?.t()
        } else {
            MatrixRef::new(&b, k, n)?
        };
        let mut c = device.alloc(m * n)?;
        let launched = ANY.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, m, n)?)?;
        assert!(ran(&launched).contains(name), "{launched:?}");
        assert_eq!(device.download(&c)?, expected, "{layout}");
        let choice = ANY.choice(SgemmShape::from((m, n, k)).layout(layout), &device)?;
        assert!(
            choice.spec.contains(&layout.to_string()) || layout == GemmLayout::Nn,
            "{choice:?}"
        );
    }
    // Only C has a row stride.
    let (a, b) = (device.upload(&by_rows)?, device.upload(&of_b)?);
    let (a, b) = (MatrixRef::new(&a, m, k)?, MatrixRef::new(&b, k, n)?);
    let mut c = device.alloc(m * (n + 1))?;
    let launched =
        ANY.call(&device).launch(&a, &b, &mut MatrixMut::pitched(&mut c, m, n, n + 1)?)?;
    assert!(ran(&launched).contains("unroll2_pitched"), "{launched:?}");
    Ok(())
}

/// A packed column is read as one contiguous row, for any row stride of the other matrices.
#[test]
fn a_packed_column_lies_along_k() -> Result<(), Error> {
    let device = Device::simulator();
    let of = sgemm_table! { nt && aligned => unroll: 2; nt => unroll: 3; else => };
    let (m, k) = (3, 8);
    let (x, mut c) = (device.upload(&values(40))?, device.alloc(m)?);
    let column = MatrixRef::new(&x, k, 1)?;
    for (pitch, kernel) in [(k, "unroll3"), (k + 4, "unroll3_pitched")] {
        let a = MatrixRef::pitched(&x, m, k, pitch)?;
        let launched = of.call(&device).launch(&a, &column, &mut MatrixMut::new(&mut c, m, 1)?)?;
        assert!(ran(&launched).contains(kernel), "{launched:?}");
        let dot =
            |row: usize| (0..k).map(|i| values(40)[row * pitch + i] * values(40)[i]).sum::<f32>();
        assert_eq!(device.download(&c)?, (0..m).map(dot).collect::<Vec<f32>>());
    }
    // If C has one row, all rows begin at a 16-byte boundary.
    let a = MatrixRef::new(&x, 1, k)?;
    let mut one = device.alloc(1)?;
    let launched = of.call(&device).launch(&a, &column, &mut MatrixMut::new(&mut one, 1, 1)?)?;
    assert!(ran(&launched).contains("unroll2"), "{launched:?}");
    // A column with a row stride, whose elements are separate rows, is not packed.
    let apart = MatrixRef::pitched(&x, k, 1, 2)?;
    let launched = of.call(&device).launch(&a, &apart, &mut MatrixMut::new(&mut one, 1, 1)?)?;
    assert!(!ran(&launched).contains("unroll"), "{launched:?}");
    Ok(())
}

#[test]
fn every_matrix_of_a_list_counts_for_alignment() -> Result<(), Error> {
    let device = Device::simulator();
    let of = sgemm_table! {
        aligned && batch >= 2 => batch: pointers, block: 8x8;
        else => batch: pointers, block: 4x4;
    };
    let (a, b) = (device.upload(&[1.0; 64])?, device.upload(&[2.0; 64])?);
    for (at, name) in [(16, "8x8"), (17, "4x4")] {
        let parts = [a.slice(..16)?, a.slice(at..at + 16)?];
        let of_a = [MatrixRef::new(&parts[0], 4, 4)?, MatrixRef::new(&parts[1], 4, 4)?];
        let of_b = [MatrixRef::new(&b, 4, 4)?, MatrixRef::new(&b, 4, 4)?];
        let (of_a, of_b) = (MatrixList::new(&device, &of_a)?, MatrixList::new(&device, &of_b)?);
        let mut c = device.alloc(32)?;
        let mut whole = MatrixMut::new(&mut c, 8, 4)?;
        let mut of_c = MatrixListMut::parts(&device, &mut whole, (4, 4), [(0, 0), (4, 0)])?;
        let launched = of.call(&device).launch(&of_a, &of_b, &mut of_c)?;
        assert!(ran(&launched).contains(name), "{launched:?}");
    }
    Ok(())
}

#[test]
fn wrong_arguments_are_reported_before_a_rule_is_chosen() -> Result<(), Error> {
    let device = Device::simulator();
    let foreign = Device::simulator();
    let (a, b) = (device.upload(&[1.0; 9])?, foreign.upload(&[1.0; 9])?);
    let (a, b) = (MatrixRef::new(&a, 3, 3)?, MatrixRef::new(&b, 3, 3)?);
    let mut c = device.alloc(9)?;
    let outcome = ANY.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, 3, 3)?);
    assert!(matches!(outcome, Err(Error::WrongDevice { .. })));
    let outcome =
        ANY.call(&device).launch(&a, &a.part(0..2, 0..3)?, &mut MatrixMut::new(&mut c, 3, 3)?);
    assert!(matches!(outcome, Err(Error::Extents { .. })));
    let large = sgemm_table! { m > 5 => block: 8x8; else => };
    assert_eq!(
        large.choice((1 << 31, 1, 1), &device).expect_err("too large").to_string(),
        "`m` is 2147483648, but tables accept only 0 to 2147483647: the limit is 2147483647. Check \
         the order of the extents"
    );
    assert!(large.kernel((1 << 31, 1, 1), &device).is_err());
    assert_eq!(large.choice((6, usize::MAX, 1), &device)?.rule, 0);
    Ok(())
}

/// Many threads use the table of one macro call at once.
#[test]
fn threads_share_a_table() {
    let device = Device::simulator();
    std::thread::scope(|scope| {
        for n in 0..8_usize {
            let device = &device;
            scope.spawn(move || {
                let table = sgemm_table! { m > 4 => block: 8x8; k < n => unroll: 2; else => };
                for m in 0..200 {
                    let choice = table.choice((m, n, 4), device).expect("in range");
                    let row = if m > 4 {
                        0
                    } else if n > 4 {
                        1
                    } else {
                        2
                    };
                    assert_eq!(choice.rule, row);
                }
            });
        }
    });
}
