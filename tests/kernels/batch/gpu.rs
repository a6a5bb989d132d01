//! Batches on the GPU: each GEMM has the bits of a separate GEMM.

use crate::{same_bits, trial};
use gemm_dsl::spec::{Batch, Bounds, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_runtime::{Buffer, Device, MatrixList, MatrixListMut, MatrixMut, MatrixRef, Sgemm};
use gemm_tests::arbitrary;
use gemm_tests::batch::{Lies, run};
use gemm_tests::product::Problem;
use gemm_tests::product::accepted;
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    let specs = arbitrary::sample(arbitrary::sgemm(512), 40).into_iter();
    let guarded = specs.filter(|spec| spec.bounds == Bounds::Guarded).take(24);
    let trials = guarded.enumerate().map(|(i, spec)| {
        trial(format!("batch::random::{i:02}"), move |gpu| {
            let padding = if spec.pitched { 3 } else { 0 };
            let (beside, turned, repeats) = (spec.pitched, true, None);
            let lies = [(false, 0), (true, 4), (false, 5), (false, 0)].map(|(shared, between)| {
                Lies { shared, between, padding, beside, turned, repeats }
            });
            for (size, count) in [
                (Size::new(7, 5, 3), 1),
                (Size::new(33, 65, 17), 3),
                (Size::new(16, 16, 16), 200),
                (Size::new(64, 32, 8), 9),
            ] {
                let what = |error| format!("`{spec}` at {size}, {count} times: {error}");
                let size = accepted(&spec, size);
                for batch in [Batch::Strided, Batch::Pointers] {
                    run(gpu, (&spec, batch), size, &[count], lies, 29).map_err(what)?;
                }
                for (batch, axes) in
                    [(Batch::Strided2, &[2, count][..]), (Batch::Strided3, &[2, count.min(9), 3])]
                {
                    run(gpu, (&spec, batch), size, axes, lies, 29).map_err(what)?;
                }
            }
            Ok(())
        })
    });
    let lists = [
        trial("batch::lists::dropped".to_owned(), a_list_is_dropped_behind_its_launch),
        trial("batch::lists::cudarc".to_owned(), slices_of_cudarc_are_listed),
    ];
    trials.chain(lists).collect()
}

/// Kernel with `batch: pointers`.
fn of_lists() -> Result<Sgemm, Failed> {
    let spec: SgemmSpec = "tile: 32x32x16, thread: 4x4, float4, batch: pointers".parse()?;
    Ok(Sgemm::new(spec)?)
}

fn problems(count: u64) -> Vec<Problem> {
    (0..count).map(|seed| Problem::new(Size::new(40, 36, 600), seed)).collect()
}

/// Expected C of all problems.
fn expected(problems: &[Problem]) -> Vec<f32> {
    problems.iter().flat_map(|problem| problem.ascending(&SgemmSpec::default())).collect()
}

/// Later allocations do not overwrite the pointer list of a launch in flight.
fn a_list_is_dropped_behind_its_launch(gpu: &Device) -> Result<(), Failed> {
    let (kernel, problems) = (of_lists()?, problems(64));
    let upload = |of: fn(&Problem) -> &[f32]| -> Result<Vec<Buffer>, Failed> {
        problems.iter().map(|problem| Ok(gpu.upload(of(problem))?)).collect()
    };
    let (a, b) = (upload(|problem| &problem.a)?, upload(|problem| &problem.b)?);
    let a = a.iter().map(|a| MatrixRef::new(a, 40, 600)).collect::<Result<Vec<_>, _>>()?;
    let b = b.iter().map(|b| MatrixRef::new(b, 600, 36)).collect::<Result<Vec<_>, _>>()?;
    let expected = expected(&problems);
    for round in 0..20 {
        let mut c = gpu.alloc(64 * 40 * 36)?;
        let mut whole = MatrixMut::new(&mut c, 64 * 40, 36)?;
        let firsts = (0..64).map(|n| (n * 40, 0));
        {
            let mut c = MatrixListMut::parts(gpu, &mut whole, (40, 36), firsts)?;
            let (a, b) = (MatrixList::new(gpu, &a)?, MatrixList::new(gpu, &b)?);
            kernel.call(gpu).launch(&a, &b, &mut c)?;
        }
        // Allocations of the same size as the pointer list.
        let others = (0..8).map(|_| gpu.upload_of(&[round as u64; 64]));
        let _others = others.collect::<Result<Vec<_>, _>>()?;
        same_bits(&format!("round {round}"), &gpu.download(&c)?, &expected)?;
    }
    Ok(())
}

/// Lists may consist of slices of a `cudarc` context. The matrices of C are parts of one slice.
fn slices_of_cudarc_are_listed(gpu: &Device) -> Result<(), Failed> {
    let (context, _) = gpu.cudarc().ok_or("a GPU has a context")?;
    let (kernel, problems) = (of_lists()?, problems(2));
    // Written on another stream, which the launch waits for.
    let stream = context.new_stream()?;
    let upload = |of: fn(&Problem) -> &[f32]| -> Result<Vec<_>, Failed> {
        problems.iter().map(|problem| Ok(stream.clone_htod(of(problem))?)).collect()
    };
    let (a, b) = (upload(|problem| &problem.a)?, upload(|problem| &problem.b)?);
    let a = a.iter().map(|a| MatrixRef::new(a, 40, 600)).collect::<Result<Vec<_>, _>>()?;
    let b = b.iter().map(|b| MatrixRef::new(b, 600, 36)).collect::<Result<Vec<_>, _>>()?;
    let mut c = stream.alloc_zeros::<f32>(2 * 40 * 36)?;
    {
        let (mut first, mut second) = c.split_at_mut(40 * 36);
        let mut views = [MatrixMut::new(&mut second, 40, 36)?, MatrixMut::new(&mut first, 40, 36)?];
        let mut c = MatrixListMut::new(gpu, &mut views)?;
        let (a, b) = (MatrixList::new(gpu, &a)?, MatrixList::new(gpu, &b)?);
        kernel.call(gpu).launch(&a, &b, &mut c)?;
    }
    // Read on the other stream, which waits for the launch.
    let found = stream.clone_dtoh(&c)?;
    let mut expected = expected(&problems);
    expected.rotate_left(40 * 36);
    same_bits("slices", &found, &expected)
}
