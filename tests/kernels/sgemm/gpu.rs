//! GEMMs on the GPU.

use crate::{same_bits, trial};
use gemm_dsl::spec::{Bounds, GemmLayout, Instruction, SgemmSpec};
use gemm_dsl::stages;
use gemm_oracle::product::Size;
use gemm_oracle::random::Hard;
use gemm_oracle::sharing::SIMULATED;
use gemm_runtime::Device;
use gemm_tests::arbitrary;
use gemm_tests::prepared::compare;
use gemm_tests::product::{Placement, Problem, SIZES, accepted};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};
use std::sync::{Arc, OnceLock};

/// Sizes that are too slow for the simulator.
const LARGE: [Size; 7] = [
    Size::new(512, 512, 512),
    Size::new(1024, 1024, 1024),
    Size::new(1111, 1111, 1111),
    Size::new(2048, 2048, 2048),
    Size::new(1000, 37, 3001),
    Size::new(37, 4001, 129),
    Size::new(515, 1029, 77),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let large: Vec<Lazy> = LARGE.iter().map(|_| Lazy::default()).collect();
    for stage in stages::sgemm() {
        let (name, spec) = (stage.stem(), stage.spec);
        let guarded = spec.clone();
        trials.push(trial(format!("sgemm::small::{name}"), move |gpu| {
            SIZES.iter().try_for_each(|&size| like_the_simulator(gpu, &guarded, size))
        }));
        let aligned = spec.clone().bounds(Bounds::Aligned);
        trials.push(trial(format!("sgemm::aligned::{name}"), move |gpu| {
            like_the_simulator(gpu, &aligned, accepted(&aligned, Size::new(130, 130, 40)))
        }));
        if spec.is_invariant() {
            let spec = spec.clone();
            trials.push(trial(format!("sgemm::hard::{name}"), move |gpu| ascending(gpu, &spec)));
        }
        if spec.arith.is_emulation() {
            let spec = spec.clone();
            trials.push(trial(format!("sgemm::special::{name}"), move |gpu| {
                with_special_numbers(gpu, &spec)
            }));
        }
        if spec.mma == Instruction::Wgmma {
            let spec = spec.clone();
            trials.push(trial(format!("sgemm::prepared::{name}"), move |gpu| {
                with_splits_given(gpu, &spec)
            }));
        }
        let problems = large.clone();
        trials.push(trial(format!("sgemm::large::{name}"), move |gpu| {
            LARGE.iter().zip(&problems).try_for_each(|(&size, p)| is_right(gpu, &spec, size, p))
        }));
    }
    for (i, spec) in arbitrary::sample(arbitrary::sgemm(512), 60).into_iter().enumerate() {
        trials.push(trial(format!("sgemm::random::{i:02}"), move |gpu| {
            let sizes = [Size::new(1, 1, 1), Size::new(33, 65, 17), Size::new(64, 128, 32)];
            sizes.iter().try_for_each(|&size| like_the_simulator(gpu, &spec, accepted(&spec, size)))
        }));
    }
    trials
}

/// Checks that C is correct and has the simulator's bits, for aligned and unaligned rows.
fn like_the_simulator(gpu: &Device, spec: &SgemmSpec, size: Size) -> Result<(), Failed> {
    let problem = Problem::new(size, 11);
    let mut placements = vec![Placement::aligned_rows(spec.layout, size)];
    if spec.bounds == Bounds::Guarded {
        placements.push(Placement { offsets: [1, 2, 3], padding: [1, 0, 2] });
    }
    for placement in placements {
        let what = format!("`{spec}` at {size}, {placement:?}");
        let (c, variant) = problem.multiply(gpu, spec, placement)?;
        problem.check(gpu, spec, placement, &c).map_err(|e| format!("{what}: {e}"))?;
        let (simulated, expected) = problem.multiply(&simulator(), spec, placement)?;
        if variant != expected {
            return Err(format!("{what} ran as {variant}").into());
        }
        same_bits(&what, &c, &simulated)?;
    }
    Ok(())
}

/// Checks for the simulator's bits if one or both matrices contain values that the split cannot
/// represent, and then for ordinary numbers again.
fn with_special_numbers(gpu: &Device, spec: &SgemmSpec) -> Result<(), Failed> {
    let size = accepted(spec, Size::new(150, 140, 70));
    let ordinary = Problem::new(size, 5);
    for special in [f32::INFINITY, f32::NAN, f32::MAX, 1e-42, -1e-36] {
        for (of_a, of_b) in [(true, false), (false, true), (true, true), (false, false)] {
            let (mut a, mut b) = (ordinary.a.clone(), ordinary.b.clone());
            if of_a {
                a[3 * size.k + 7] = special;
            }
            if of_b {
                b[5 * size.n + 9] = special;
            }
            let problem = Problem::of(size, a, b);
            let on = |device: &Device| problem.multiply(device, spec, Placement::default());
            let ((c, _), (simulated, _)) = (on(gpu)?, on(&simulator())?);
            let what = format!("`{spec}` with {special} in A: {of_a}, in B: {of_b}");
            same_bits(&what, &c, &simulated)?;
        }
    }
    Ok(())
}

/// Checks that GEMMs have the same bits with and without prepared A and B, in any layout.
fn with_splits_given(gpu: &Device, spec: &SgemmSpec) -> Result<(), Failed> {
    let ordinary = Problem::new(accepted(spec, Size::new(150, 140, 70)), 7);
    let (mut in_a, mut in_b) = (ordinary.clone(), ordinary.clone());
    (in_a.a[100], in_b.b[100]) = (f32::NAN, f32::NAN);
    let holds = !spec.arith.is_emulation();
    for (problem, is_whole) in
        [(&ordinary, [true, true]), (&in_a, [holds, true]), (&in_b, [true, holds])]
    {
        for layout in GemmLayout::ALL {
            for pitch in [0, 3] {
                let spec = spec.clone().layout(*layout).pitched(pitch > 0);
                let found = compare(gpu, &spec, problem, pitch)?;
                if found.is_whole != is_whole {
                    let found = found.is_whole;
                    return Err(
                        format!("`{spec}`: the split represents all numbers: {found:?}").into()
                    );
                }
            }
        }
    }
    Ok(())
}

/// Checks for the bits of ascending chains of multiply-adds, including the sign of zero, on
/// operands that underflow, cancel and overflow.
fn ascending(gpu: &Device, spec: &SgemmSpec) -> Result<(), Failed> {
    let bk = spec.plan().map_or(8, |plan| plan.k_step().max(8)) as usize;
    for k in [1, 4, bk - 1, bk, bk + 1, 3 * bk + 4] {
        let size = Size::new(5, 12, k);
        for hard in Hard::ALL {
            let problem = Problem::hard(size, 23, hard);
            let packed = Placement { offsets: [1, 0, 0], ..Placement::default() };
            for placement in [Placement::aligned_rows(spec.layout, size), packed] {
                let (c, _) = problem.multiply(gpu, spec, placement)?;
                // The payload of a NaN depends on the machine, so both NaNs are made canonical.
                same_bits(
                    &format!("`{spec}` at {size} with {hard:?}"),
                    &c,
                    &canonical(gpu, spec, &problem),
                )?;
            }
        }
    }
    Ok(())
}

fn canonical(gpu: &Device, spec: &SgemmSpec, problem: &Problem) -> Vec<f32> {
    let sms = gpu.multiprocessors().map_or(SIMULATED, |sms| sms as usize);
    let chains = problem.ascending_on(sms, spec).into_iter();
    chains.map(|c| if c.is_nan() { f32::from_bits(0x7fff_ffff) } else { c }).collect()
}

/// Problem with an expensive reference, computed once for all stages.
type Lazy = Arc<OnceLock<Problem>>;

fn is_right(gpu: &Device, spec: &SgemmSpec, size: Size, problem: &Lazy) -> Result<(), Failed> {
    let problem = problem.get_or_init(|| Problem::new(size, 13));
    let rows = Placement::aligned_rows(spec.layout, size);
    let (c, _) = problem.multiply(gpu, spec, rows)?;
    Ok(problem.check(gpu, spec, rows, &c).map_err(|e| format!("`{spec}` at {size}: {e}"))?)
}
