//! Distributed GEMMs return the same bits as one device.

use crate::sampling;
use fastrand::Rng;
use gemm_runtime::{
    ByName, Device, Matrix, MatrixMut, MatrixRef, Sgemm, SgemmKernel, SgemmSpec, SgemmTable,
    sgemm_table, spec,
};
use gemm_world::{
    ClusterModel, Distribution, Distributions, Error, OnRank, Rank, Schedule, Sharded, Strategy,
    World, WorldError,
};

/// Specs without operands. Those without `pitched` need contiguous rows of C.
const LINES: [&str; 11] = [
    "block: 16x16",
    "tile: 16x16x8, thread: 2x2, slices: 2",
    "tile: 16x16x8, thread: 2x2",
    "tile: 32x16x8, thread: 4x2, double_buffer, pitched",
    "tile: 32x32x8, thread: 4x4, stages: 3, float4, pitched",
    "tile: 16x16x8, thread: 2x2, slices: 2, pitched",
    "tile: 16x16x8, thread: 2x2, split_k: 3, pitched",
    "tile: 32x32x16, arith: bf16x6, warp: 16x32, pitched",
    "tile: 64x32x32, arith: bf16x6, mma: wgmma, pitched",
    "tile: 64x16x32, arith: f16x3, mma: wgmma, pitched",
    "tile: 64x32x32, arith: bf16, mma: wgmma, pitched",
];

fn bits(elements: &[f32]) -> Vec<u32> {
    // Bits of a NaN carry no information: the simulator makes all NaNs canonical.
    elements.iter().map(|element| element.to_bits()).collect()
}

/// Uploads a rank's part with `apart` unused elements between rows, and none after the last row.
fn up(
    rank: &Rank,
    distribution: &Distribution,
    elements: &[f32],
    apart: usize,
) -> Result<Sharded, Error> {
    if apart == 0 {
        return rank.upload(distribution, elements);
    }
    let block = rank.block_of(distribution)?;
    let (rows, cols) = (block.rows.len(), block.cols.len());
    let mut all = Vec::new();
    for row in block.rows.clone() {
        all.extend(&elements[row * distribution.cols..][block.cols.clone()]);
        if row + 1 < block.rows.end && cols > 0 {
            all.resize(all.len() + apart, f32::NAN);
        }
    }
    let buffer = rank.device().upload(&all)?;
    rank.shard(distribution, Matrix::from_buffer(buffer, rows, cols, cols + apart)?)
}

/// Result of the GEMM on one device, with A and B as stored for the kernel.
fn alone(
    kernel: &SgemmKernel,
    a: &[f32],
    b: &[f32],
    (m, n, k): (usize, usize, usize),
) -> (Vec<f32>, [Vec<f32>; 2]) {
    let lies = kernel.spec_line().parse::<SgemmSpec>().expect("a line").layout;
    let [a, b] = sampling::transposition(lies, a, b, (m, n, k));
    let product = kernel.run(&Device::simulator(), &a, &b, (m, n, k));
    (product.expect("one device computes it"), [a, b])
}

#[test]
fn the_bits_are_those_of_one_device() {
    let mut rng = Rng::with_seed(14);
    let mut refused = 0;
    for round in 0..240 {
        let ranks = *rng.choice(&[1, 2, 3, 4, 7, 8]).expect("there are some");
        let line = LINES[round % LINES.len()];
        let spec = sampling::with_layout(&mut rng, line);
        let most = if line.contains("wgmma") { 100 } else { 60 };
        let [m, n, k] = [0; 3].map(|_| sampling::extent(&mut rng, most));
        let mut values = sampling::numbers(&mut rng, m * k);
        if rng.bool() {
            // Values that the splits can represent.
            values.iter_mut().for_each(|value| *value = value.clamp(-4.0, 4.0).max(0.25));
        }
        let (a, b) = (values, sampling::numbers(&mut rng, k * n));
        let kernel = SgemmKernel::new(spec.clone()).expect("a kernel");
        let (expected, transposition) = alone(&kernel, &a, &b, (m, n, k));
        let [a, b] = transposition;
        let [of_a, of_b, of_c] = sampling::distributions(&mut rng, spec.layout, (m, n, k), ranks);
        let strategy = sampling::strategy(&mut rng);
        // Rows of a rank's part may be padded, if the kernel's bits do not depend on it.
        let is_apart = line != LINES[1] && rng.u32(0..4) == 0;
        let apart = [0; 3].map(|_| if is_apart { rng.usize(0..7) } else { 0 });
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let (a, b) = (up(rank, &of_a, &a, apart[0])?, up(rank, &of_b, &b, apart[1])?);
            let mut c = up(rank, &of_c, &vec![f32::NAN; m * n], apart[2])?;
            let call = kernel.on(rank);
            let call = if let Some(strategy) = strategy { call.strategy(strategy) } else { call };
            call.launch(&a, &b, &mut c)?;
            rank.gather(&c, ranks - 1)
        });
        let what =
            format!("{spec}, {m}x{n}x{k}, A {of_a}, B {of_b}, C {of_c}, {strategy:?}, {apart:?}");
        let found = match found {
            // Parts of columns are padded, and this kernel's bits depend on padding.
            Err(Error::World(WorldError::Unpitched { .. })) if line == LINES[1] => {
                refused += 1;
                continue;
            }
            found => found.unwrap_or_else(|error| panic!("{what}: {error}")),
        };
        let found = found.last().cloned().flatten().expect("the last rank has them");
        let differ = bits(&found).into_iter().zip(bits(&expected)).position(|(f, e)| f != e);
        assert_eq!((found.len(), differ), (expected.len(), None), "{what}");
    }
    assert!(
        (1..20).contains(&refused),
        "{refused} products by the line that may not be pitched were refused"
    );
}

#[test]
fn products_whose_terms_are_dealt_out_have_the_bits_of_one_device() {
    const LINES: [&str; 5] = [
        "tile: 16x16x8, thread: 2x2, split_k: 4, pitched",
        "tile: 32x16x8, thread: 4x2, double_buffer, split_k: 7, pitched",
        "tile: 32x32x8, thread: 4x4, stages: 3, float4, split_k: 3, pitched",
        "thread: 2x4, lanes: k, split_k: 3, pitched",
        "tile: 16x16x8, thread: 2x2, pitched",
    ];
    let mut rng = Rng::with_seed(15);
    for round in 0..80 {
        let ranks = *rng.choice(&[1, 2, 3, 4, 7]).expect("there are some");
        let spec = sampling::with_layout(&mut rng, LINES[round % LINES.len()]);
        let [m, n, k] = [30, 40, 200].map(|most| sampling::extent(&mut rng, most));
        let (a, b) = (sampling::numbers(&mut rng, m * k), sampling::numbers(&mut rng, k * n));
        let kernel = SgemmKernel::new(spec.clone()).expect("a kernel");
        let (expected, [a, b]) = alone(&kernel, &a, &b, (m, n, k));
        let [of_a, of_b] = sampling::terms(&mut rng, &spec, (m, n, k), ranks);
        let of_c = sampling::distribution(&mut rng, m, n, ranks);
        let what = format!("{spec}, {m}x{n}x{k}, A {of_a}, B {of_b}, C {of_c}");
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let (a, b) = (rank.upload(&of_a, &a)?, rank.upload(&of_b, &b)?);
            let mut c = rank.upload(&of_c, &vec![f32::NAN; m * n])?;
            kernel.on(rank).launch_split_k(&a, &b, &mut c)?;
            rank.gather(&c, 0)
        });
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = found[0].as_deref().expect("rank 0 has them");
        let differ = bits(found).into_iter().zip(bits(&expected)).position(|(f, e)| f != e);
        assert_eq!((found.len(), differ), (expected.len(), None), "{what}");
    }
}

/// An epilogue with all kinds of operands.
#[test]
fn operands_are_those_of_what_a_rank_has_of_c() {
    const LINE: &str = "tile: 16x16x8, thread: 2x2, pitched, scaled, epilogue: |acc, bias[n], \
        scale[m], residual[m, n], slope| slope * (acc * scale + bias) + residual";
    let mut rng = Rng::with_seed(16);
    for _ in 0..60 {
        let ranks = rng.usize(1..6);
        let [m, n, k] = [0; 3].map(|_| sampling::extent(&mut rng, 40));
        let mut numbers = |len: usize| sampling::numbers(&mut rng, len);
        let (a, b, c) = (numbers(m * k), numbers(k * n), numbers(m * n));
        let (bias, scale, residual) = (numbers(n), numbers(m), numbers(m * n));
        let spec = sampling::with_layout(&mut rng, LINE);
        let kernel = Sgemm::<ByName>::new(spec.clone()).expect("a kernel");
        let [a, b] = sampling::transposition(spec.layout, &a, &b, (m, n, k));
        let device = Device::simulator();
        let expected = {
            let up = |values: &[f32]| device.upload(values).expect("room");
            let (a, b, mut c) = (up(&a), up(&b), up(&c));
            let (bias, scale, residual) = (up(&bias), up(&scale), up(&residual));
            let matrix = |of, rows, cols| MatrixRef::new(of, rows, cols).expect("a matrix");
            let a = match spec.layout.transposes_a() {
                true => matrix(&a, k, m).t(),
                false => matrix(&a, m, k),
            };
            let b = match spec.layout.transposes_b() {
                true => matrix(&b, n, k).t(),
                false => matrix(&b, k, n),
            };
            let residual = matrix(&residual, m, n);
            let call = kernel
                .call(&device)
                .operand("alpha", 0.5)
                .operand("beta", 2.0)
                .operand("slope", 1.5);
            let call =
                call.operand("bias", &bias).operand("scale", &scale).operand("residual", &residual);
            let mut to = MatrixMut::new(&mut c, m, n).expect("a matrix");
            call.launch(&a, &b, &mut to).expect("one device");
            device.download(&c).expect("it comes back")
        };
        let [of_a, of_b, of_c] = sampling::distributions(&mut rng, spec.layout, (m, n, k), ranks);
        let strategy = sampling::strategy(&mut rng);
        let what =
            format!("{}, {m}x{n}x{k}, A {of_a}, B {of_b}, C {of_c}, {strategy:?}", spec.layout);
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let (a, b) = (rank.upload(&of_a, &a)?, rank.upload(&of_b, &b)?);
            let (mut c, residual) = (rank.upload(&of_c, &c)?, rank.upload(&of_c, &residual)?);
            let (rows, cols) = (c.block().rows.clone(), c.block().cols.clone());
            let (bias, scale) =
                (rank.device().upload(&bias[cols])?, rank.device().upload(&scale[rows])?);
            let call =
                kernel.on(rank).operand("alpha", 0.5).operand("beta", 2.0).operand("slope", 1.5);
            let call =
                call.operand("bias", &bias).operand("scale", &scale).operand("residual", &residual);
            let call = if let Some(strategy) = strategy { call.strategy(strategy) } else { call };
            call.launch(&a, &b, &mut c)?;
            rank.gather(&c, 0)
        });
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(bits(found[0].as_deref().expect("rank 0 has them")), bits(&expected), "{what}");
    }
}

/// Ranks may have only parts of the rows that an epilogue folds.
#[test]
fn epilogues_over_pairs_of_columns_are_refused() {
    let spec = "thread: 1x2, pitched, epilogue: |acc| pair(next(acc), acc)".parse().expect("sound");
    let kernel = Sgemm::<()>::new(spec).expect("a kernel");
    let of: Distribution = "4x4 rows".parse().expect("a distribution");
    let found = World::simulated(1).expect("a world").run(|rank| {
        let (a, mut c) = (rank.upload(&of, &[1.0; 16])?, rank.upload(&of, &[0.0; 16])?);
        kernel.on(rank).launch(&a, &a, &mut c).map(drop)
    });
    let error = found.expect_err("a rank may have one column of a pair");
    assert!(matches!(error, Error::World(WorldError::Impossible { .. })), "{error}");
    assert!(error.to_string().contains("computes pairs of columns"), "{error}");
}

#[test]
fn epilogues_that_fold_rows_are_refused() {
    let spec = "pitched, epilogue: |acc| (acc, sum(acc))".parse().expect("sound");
    let kernel = Sgemm::<ByName>::new(spec).expect("a kernel");
    let of: Distribution = "4x4 rows".parse().expect("a distribution");
    let found = World::simulated(1).expect("a world").run(|rank| {
        let (a, mut sums) = (rank.upload(&of, &[1.0; 16])?, rank.device().alloc(4)?);
        let mut c = rank.upload(&of, &[0.0; 16])?;
        kernel.on(rank).operand("c2", &mut sums).launch(&a, &a, &mut c).map(drop)
    });
    let error = found.expect_err("a rank may have a part of a row");
    assert!(matches!(error, Error::World(WorldError::Impossible { .. })), "{error}");
    assert!(error.to_string().contains("folds the rows of C"), "{error}");
}

/// A table selects one rule for the whole GEMM, for any division between ranks and any padding.
#[test]
fn tables_have_the_same_bits_on_any_number_of_ranks() {
    static TABLE: SgemmTable = sgemm_table! {
        m >= 30 => tile: 32x32x8, thread: 4x4, slices: 2;
        n >= 30 && aligned => tile: 16x16x8, thread: 2x2, float4;
        tt => tile: 16x16x8, thread: 2x2, slices: 2;
        else => tile: 16x16x8, thread: 2x2, partials: 2;
    };
    let mut rng = Rng::with_seed(17);
    for round in 0..40 {
        let [m, n, k] = [0; 3].map(|_| rng.usize(1..48));
        let (a, b) = (sampling::numbers(&mut rng, m * k), sampling::numbers(&mut rng, k * n));
        let lies = spec::GemmLayout::ALL[round % 4];
        let [a, b] = sampling::transposition(lies, &a, &b, (m, n, k));
        let mut first: Option<Vec<u32>> = None;
        for ranks in [1, 2, 3, 5] {
            let [of_a, of_b, of_c] = sampling::distributions(&mut rng, lies, (m, n, k), ranks);
            let strategy = sampling::strategy(&mut rng);
            let found = World::simulated(ranks).expect("a world").run(|rank| {
                let (a, b) = (rank.upload(&of_a, &a)?, rank.upload(&of_b, &b)?);
                let mut c = rank.alloc(&of_c)?;
                let call = TABLE.on(rank).layout(lies);
                let call =
                    if let Some(strategy) = strategy { call.strategy(strategy) } else { call };
                call.launch(&a, &b, &mut c)?;
                rank.gather(&c, 0)
            });
            let found = found.unwrap_or_else(|error| {
                panic!("{lies}, {m}x{n}x{k}, {of_a}, {of_b}, {of_c}: {error}")
            });
            let found = bits(found[0].as_deref().expect("rank 0 has them"));
            assert_eq!(
                first.get_or_insert_with(|| found.clone()),
                &found,
                "{lies}, {m}x{n}x{k}, {of_a}, {of_b}, {of_c}"
            );
        }
    }
}

#[test]
fn ranks_that_would_choose_otherwise_are_at_odds() {
    let kernel =
        SgemmKernel::new("tile: 16x16x8, thread: 2x2".parse().expect("a line")).expect("a kernel");
    let scaled =
        Sgemm::<ByName>::new("tile: 16x16x8, thread: 2x2, scaled".parse().expect("a line"));
    let scaled = scaled.expect("a kernel");
    let errors = World::simulated(2).expect("a world").run(|rank| {
        let (a, b) =
            (rank.alloc(&Distribution::rows(8, 8))?, rank.alloc(&Distribution::cols(8, 8))?);
        let mut c = rank.alloc(&Distribution::cols(8, 8))?;
        let alpha = if rank.number() == 0 { 1.0 } else { 2.0 };
        let call = scaled.on(rank).operand("alpha", alpha).operand("beta", 0.0);
        Ok(call.launch(&a, &b, &mut c).expect_err("they are at odds").to_string())
    });
    let errors = errors.expect("all go on");
    assert!(errors[0].contains("disagree") && errors[0] == errors[1], "{errors:?}");
    // Received data exceeds the memory limit.
    let world = World::simulated(3).expect("a world").memory(16);
    let error = world.run(|rank| {
        let (a, b) =
            (rank.alloc(&Distribution::rows(64, 64))?, rank.alloc(&Distribution::cols(64, 64))?);
        let mut c = rank.alloc(&Distribution::cols(64, 64))?;
        kernel.on(rank).launch(&a, &b, &mut c).map(|_| ())
    });
    assert!(matches!(error, Err(Error::World(WorldError::Schedule(_)))), "{error:?}");
}

/// Errors for a wrong layout name the matrix and the required layout.
#[test]
fn differently_stored_matrices_are_reported() {
    let product = |line: &str,
                   lies: Option<spec::GemmLayout>,
                   a: Distribution,
                   b: Distribution,
                   by_terms: bool| {
        let kernel = SgemmKernel::new(line.parse().expect("a line")).expect("a kernel");
        let outcome = World::simulated(2).expect("a world").run(|rank| {
            let (a, b) = (rank.alloc(&a)?, rank.alloc(&b)?);
            let mut c = rank.alloc(&Distribution::cols(5, 6))?;
            let call = kernel.on(rank);
            let call = if let Some(lies) = lies { call.layout(lies) } else { call };
            let made = match by_terms {
                true => call.launch_split_k(&a, &b, &mut c),
                false => call.launch(&a, &b, &mut c).map(|_| ()),
            };
            // Later calls still work.
            rank.barrier()?;
            Ok(made.expect_err("it cannot be").to_string())
        });
        let errors = outcome.expect("all go on");
        assert_eq!(errors[0], errors[1]);
        errors[0].clone()
    };
    const NT: &str = "layout: nt, tile: 16x16x8, thread: 2x2, split_k: 2, pitched";
    const TN: &str = "layout: tn, tile: 16x16x8, thread: 2x2, split_k: 2, pitched";
    let (a, b) = (Distribution::rows(5, 16), Distribution::cols(16, 6));
    let error = product(NT, None, a.clone(), b.clone(), false);
    let need =
        "B, whose transpose is stored (`layout`), is 6x16, but that of a GEMM of 5x6x16 is 16x6";
    assert!(error.contains(need), "{error}");
    let error = product(TN, None, a.clone(), b.clone(), false);
    let need =
        "A, whose transpose is stored (`layout`), is 16x5, but that of a GEMM of 5x6x5 is 5x5";
    assert!(error.contains(need), "{error}");
    let error = product(NT, None, a.clone(), b.clone(), true);
    assert!(error.contains("B, whose transpose is stored (`layout`), as many columns"), "{error}");
    for by_terms in [false, true] {
        let error = product(NT, Some(spec::GemmLayout::Tn), a.clone(), b.t(), by_terms);
        assert!(error.contains("stored as `tn`") && error.contains("stored as `nt`"), "{error}");
    }
    // A cut within a partition of K.
    for (line, a, b, need) in [
        (NT, a.clone(), b.t(), "Distribute the stored A by columns and B by columns"),
        (TN, a.t(), b.clone(), "Distribute the stored A by rows and B by rows"),
    ] {
        let error = product(line, None, a, b, true);
        assert!(error.contains(need), "{error}");
    }
    // Ranks with different layouts disagree.
    let table: SgemmTable = sgemm_table!(else => tile: 16x16x8, thread: 2x2);
    let errors = World::simulated(2).expect("a world").run(|rank| {
        let (a, b) =
            (rank.alloc(&Distribution::rows(8, 8))?, rank.alloc(&Distribution::rows(8, 8))?);
        let mut c = rank.alloc(&Distribution::rows(8, 8))?;
        let lies = [spec::GemmLayout::Nn, spec::GemmLayout::Nt][rank.number()];
        let made = table.on(rank).layout(lies).launch(&a, &b, &mut c);
        Ok(made.expect_err("they are at odds").to_string())
    });
    let errors = errors.expect("all go on");
    assert!(errors[0].contains("disagree") && errors[0] == errors[1], "{errors:?}");
}

/// A kernel that must not be `pitched` accepts parts that are whole rows as stored.
#[test]
fn parts_that_lie_apart_are_refused_as_they_are_stored() {
    const LINE: &str = "tile: 16x16x8, thread: 2x2, slices: 2";
    let (m, n, k) = (32, 48, 8);
    for (lies, of_c, is_refused) in [
        (spec::GemmLayout::Nn, Distribution::rows(m, n), false),
        (spec::GemmLayout::Nt, Distribution::rows(m, n), false),
        (spec::GemmLayout::Tn, Distribution::rows(m, n), true),
        (spec::GemmLayout::Tt, Distribution::rows(m, n), true),
        (spec::GemmLayout::Nn, Distribution::cols(m, n), true),
        (spec::GemmLayout::Nt, Distribution::cols(m, n), false),
        (spec::GemmLayout::Tn, Distribution::cols(m, n), true),
        (spec::GemmLayout::Tt, Distribution::cols(m, n), false),
    ] {
        let line: SgemmSpec = LINE.parse().expect("a line");
        let kernel = SgemmKernel::new(line.for_matrices(lies, false)).expect("a kernel");
        let a =
            if lies.transposes_a() { Distribution::whole(k, m) } else { Distribution::whole(m, k) };
        let b =
            if lies.transposes_b() { Distribution::whole(n, k) } else { Distribution::whole(k, n) };
        let outcome = World::simulated(2).expect("a world").run(|rank| {
            let (a, b) = (rank.alloc(&a)?, rank.alloc(&b)?);
            let mut c = rank.alloc(&of_c)?;
            kernel.on(rank).launch(&a, &b, &mut c).map(|_| ())
        });
        match outcome {
            Err(Error::World(WorldError::Unpitched { .. })) => {
                assert!(is_refused, "{lies}, {of_c}")
            }
            other => assert!(other.is_ok() && !is_refused, "{lies}, {of_c}: {other:?}"),
        }
    }
}

/// Columns of B may arrive in parts or slots. The parts of C are then padded, which this kernel
/// does not accept. It accepts contiguous parts under any strategy.
#[test]
fn contiguous_parts_need_no_pitched_kernel() {
    let kernel = SgemmKernel::new(LINES[1].parse().expect("a line")).expect("a kernel");
    let mut rng = Rng::with_seed(77);
    for _ in 0..40 {
        let ranks = rng.usize(2..6);
        let [m, n, k] = [0; 3].map(|_| rng.usize(ranks..40));
        let (a, b) = (sampling::numbers(&mut rng, m * k), sampling::numbers(&mut rng, k * n));
        let (expected, _) = alone(&kernel, &a, &b, (m, n, k));
        // C by rows, A by columns and B by rows.
        let together =
            [Distribution::cols(m, k), Distribution::rows(k, n), Distribution::rows(m, n)];
        // C by columns and B replicated: a rank multiplies some columns of its B.
        let apart =
            [Distribution::whole(m, k), Distribution::whole(k, n), Distribution::cols(m, n)];
        // C by columns and B by rows: a rank receives its columns of B contiguously.
        let narrow =
            [Distribution::whole(m, k), Distribution::rows(k, n), Distribution::cols(m, n)];
        for ([of_a, of_b, of_c], is_apart) in [(together, false), (apart, true), (narrow, false)] {
            let found = World::simulated(ranks).expect("a world").run(|rank| {
                let (a, b) = (rank.upload(&of_a, &a)?, rank.upload(&of_b, &b)?);
                let mut c = rank.alloc(&of_c)?;
                kernel.on(rank).strategy(Strategy::Sequential).launch(&a, &b, &mut c)?;
                rank.gather(&c, 0)
            });
            let what = format!("{m}x{n}x{k} on {ranks}, C {of_c}");
            match found {
                Err(Error::World(WorldError::Unpitched { .. })) => assert!(is_apart, "{what}"),
                found => {
                    let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let found = found[0].as_deref().expect("rank 0 has it");
                    assert_eq!((bits(found), is_apart), (bits(&expected), false), "{what}");
                }
            }
        }
    }
}

/// A kernel without `pitched` uses a slower strategy rather than exceed the memory limit.
#[test]
fn memory_bounds_kernels_that_are_not_pitched_too() {
    let kernel = SgemmKernel::new(LINES[1].parse().expect("a line")).expect("a kernel");
    let (m, n, k, ranks) = (16, 512, 32, 4);
    // Parts of B arrive as columns. The parts of C are padded unless all of B has arrived.
    let distributions = Distributions {
        a: Distribution::rows(m, k),
        b: Distribution::cols(k, n),
        c: Distribution::rows(m, n),
    };
    let machine = ClusterModel::h200_nccl();
    let memory = |strategy| {
        let schedule = Schedule::new(distributions.clone(), ranks, strategy).expect("a schedule");
        schedule.estimate(&machine).most_memory()
    };
    let (least, all) = (memory(Strategy::Rotate), memory(Strategy::Sequential));
    assert!(least < all);
    for (limit, fits) in [(all, true), (all - 1, false), (least, false)] {
        let found = World::simulated(ranks).expect("a world").memory(limit).run(|rank| {
            let (a, b) = (rank.alloc(&distributions.a)?, rank.alloc(&distributions.b)?);
            let mut c = rank.alloc(&distributions.c)?;
            Ok(kernel.on(rank).launch(&a, &b, &mut c)?.estimate.most_memory())
        });
        match found {
            Ok(taken) => assert!(fits && taken.iter().all(|taken| *taken <= limit), "{taken:?}"),
            Err(Error::World(WorldError::Unpitched { .. })) => assert!(!fits, "{limit}"),
            Err(error) => panic!("{limit}: {error}"),
        }
    }
}
