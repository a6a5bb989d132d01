//! Tuning on a GPU. Prints the time of the table's choice and of the answer for each shape.

use super::{Outcome, ensure, values};
use gemm_runtime::spec::{Accuracy, GemmLayout};
use gemm_runtime::tuning::{Basis, Candidate, Tuned};
use gemm_runtime::{
    Device, Error, MatrixMut, MatrixRef, SgemmShape, SgemmTable, sgemm, sgemm_table, sgemm_tables,
};
use std::time::{Duration, Instant};

const BUDGET: Duration = Duration::from_secs(15);
/// Time by which a tuning may exceed its budget: the compilations and first launches of a group.
const EXCESS: Duration = Duration::from_secs(10);

const INVARIANT: SgemmTable = sgemm_table! {
    invariant;
    m <= 8 || n <= 8 => tile: 8x8x8, thread: 1x1;
    aligned && waves(128x128) >= 2.0 => tile: 128x128x8, thread: 8x8, float4, double_buffer;
    m >= 2000 => tile: 64x64x16, thread: 8x8;
    else => tile: 32x32x8, thread: 4x4;
};

/// The shipped table, for shapes at which it may be slower than another of its specs.
pub(super) fn shipped() -> Outcome {
    let device = Device::cuda(0)?;
    let [single, batch] = sgemm_tables(device.arch(), Accuracy::Ieee);
    let nt = SgemmShape::from((700, 1100, 5000)).layout(GemmLayout::Nt);
    for shape in [(1000, 768, 4096).into(), (37, 4096, 4096).into(), (3000, 3000, 60).into(), nt] {
        tuned(single, &device, shape)?;
    }
    tuned(batch, &device, SgemmShape::from((100, 100, 100)).batch(64))?;
    Ok(())
}

/// Tunes a shape, prints the times, and checks the answer.
fn tuned(table: &SgemmTable, device: &Device, shape: SgemmShape) -> Result<Tuned, Error> {
    let start = Instant::now();
    let tuned = table.autotune(device, shape, BUDGET)?;
    let took = start.elapsed();
    let us = |candidate: &Candidate| {
        candidate.measured.map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    let measured = tuned.candidates().iter().filter(|one| one.measured.is_some()).count();
    let (of_table, chosen) = (us(tuned.of_table()), us(tuned.chosen()));
    println!(
        "{}: table {of_table:.2} us, tuned {chosen:.2} us ({:.3}); {measured} of {} candidates \
         measured in {:.1} s{}\n{tuned}",
        device.name(),
        chosen / of_table,
        tuned.candidates().len(),
        took.as_secs_f64(),
        if tuned.is_cached() { ", before" } else { "" },
    );
    let failures = tuned.candidates().iter().filter_map(|one| one.error.as_deref());
    failures.for_each(|error| println!("left out: {error}"));
    let sound = tuned.basis() == Basis::Measured && chosen <= of_table && took <= BUDGET + EXCESS;
    let chooses = tuned.table()?.choice(shape, device)?.spec == tuned.spec();
    match sound && chooses {
        true => Ok(tuned),
        false => Err(Error::Internal(format!("{took:?}, {tuned:?}"))),
    }
}

/// An invariant table returns the same bits before and after a tuning.
pub(super) fn invariant() -> Outcome {
    let device = Device::cuda(0)?;
    for (m, n, k) in [(300, 200, 500), (65, 1000, 130), (2000, 300, 77), (7, 512, 512)] {
        let table = tuned(&INVARIANT, &device, (m, n, k).into())?.table()?;
        let of = |len| values(len).into_iter().map(|value| value / 3.0).collect::<Vec<f32>>();
        let (a, b) = (device.upload(&of(m * k))?, device.upload(&of(k * n))?);
        let (a, b) = (MatrixRef::new(&a, m, k)?, MatrixRef::new(&b, k, n)?);
        let bits = |table: &SgemmTable| {
            let mut c = device.alloc(m * n)?;
            table.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, m, n)?)?;
            let c = device.download(&c)?;
            Ok::<Vec<u32>, Error>(c.into_iter().map(f32::to_bits).collect())
        };
        ensure(bits(&INVARIANT)? == bits(&table)?, || format!("{m} x {n} x {k}"))?;
    }
    Ok(())
}

/// A call of `sgemm` computes the same with its answer, up to rounding, and with integers exactly.
pub(super) fn call() -> Outcome {
    let device = Device::cuda(0)?;
    for (m, n, k) in [(520, 1030, 2000), (64, 64, 20000), (3000, 40, 300)] {
        // Small integers, whose sums are exact in any order.
        let of = |len| values(len).into_iter().map(|value| value.round()).collect::<Vec<f32>>();
        let (a, b) =
            (device.upload_matrix(&of(m * k), m, k)?, device.upload_matrix(&of(k * n), k, n)?);
        let (mut c, mut expected) = (device.alloc_matrix(m, n)?, device.alloc_matrix(m, n)?);
        let answer = sgemm(&a, &b, &mut c).alpha(2.0).autotune(&device, BUDGET)?;
        let [of_table, chosen] = [answer.of_table(), answer.chosen()].map(|one| one.measured);
        println!("sgemm {m} x {n} x {k}: table {of_table:?}, tuned {chosen:?}: {}", answer.spec());
        ensure(answer.basis() == Basis::Measured && chosen <= of_table, || format!("{answer:?}"))?;
        let call = sgemm(&a, &b, &mut c).alpha(2.0).tuned(&answer);
        ensure(call.choice(&device)?.spec == answer.spec(), || format!("{answer:?}"))?;
        call.run(&device)?;
        sgemm(&a, &b, &mut expected).alpha(2.0).run(&device)?;
        let same = device.download_matrix(&c)? == device.download_matrix(&expected)?;
        ensure(same, || format!("{m} x {n} x {k}: another result"))?;
    }
    Ok(())
}
