//! GEMMs compared with f64 and with one another.

mod counters;
mod gpu;
mod tables;
use gemm_dsl::plan::KernelKind;
use gemm_dsl::spec::{Bounds, SgemmSpec, Tile};
use gemm_dsl::stages;
use gemm_oracle::beside::plain;
use gemm_oracle::product::Size;
use gemm_oracle::random::Hard;
use gemm_runtime::Variant;
use gemm_tests::product::{Placement, Problem, SIZES, accepted};
use gemm_tests::simulator;
use gemm_tests::{arbitrary, bits};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::sample::select;
use rayon::prelude::*;

/// C of a spec at a size, checked against f64.
fn product(spec: &SgemmSpec, size: Size, placement: Placement) -> (Vec<f32>, Variant) {
    let problem = Problem::new(size, 7);
    let (c, variant) =
        problem.multiply(&simulator(), spec, placement).unwrap_or_else(|error| panic!("{error}"));
    problem
        .check(&simulator(), spec, placement, &c)
        .unwrap_or_else(|error| panic!("`{spec}` at {size}: {error}"));
    (c, variant)
}

fn every_stage_is_right_and_all_give_the_same_bits() {
    let stages = stages::sgemm();
    SIZES.par_iter().for_each(|&size| {
        let mut ascending: Option<Vec<u32>> = None;
        for stage in &stages {
            let (c, _) =
                product(&stage.spec, size, Placement::aligned_rows(stage.spec.layout, size));
            // Other orders of summation compute other bits. Stages with epilogues are excluded,
            // because `check` compares their bits with those of the plain GEMM.
            if stage.spec.is_invariant() && plain(&stage.spec).is_none() {
                let bits = bits(&c);
                let first = ascending.get_or_insert_with(|| bits.clone());
                assert!(*first == bits, "{} differs at {size}", stage.name);
            }
        }
    });
}

fn aligned_stages_give_the_bits_of_guarded_ones() {
    stages::sgemm().par_iter().for_each(|stage| {
        let aligned = stage.spec.clone().bounds(Bounds::Aligned);
        let size = accepted(&aligned, Size::new(1, 1, 40));
        let placement = Placement::default();
        let (c, _) = product(&aligned, size, placement);
        let (guarded, _) = product(&stage.spec, size, placement);
        assert!(bits(&c) == bits(&guarded), "{} differs at {size}", stage.name);
    });
}

fn both_access_variants_give_the_same_bits() {
    let stages = stages::sgemm();
    let vectors = stages.iter().filter(|stage| stage.spec.float4);
    let size = Size::new(132, 68, 36);
    vectors.enumerate().for_each(|(nth, stage)| {
        let (vector, name) = product(&stage.spec, size, Placement::default());
        assert_eq!(name, Variant::Vector, "{}", stage.name);
        let (a, b, c) = if stage.spec.pitched {
            let padded = |padding| Placement { padding, ..Placement::default() };
            (padded([1, 0, 0]), padded([0, 2, 0]), padded([0, 0, 3]))
        } else {
            let moved = |offsets| Placement { offsets, ..Placement::default() };
            (moved([1, 0, 0]), moved([0, 2, 0]), moved([0, 0, 3]))
        };
        // By default, only one matrix of each stage is moved.
        let moved = [a, b, c].into_iter().enumerate();
        let is_tested = |of: usize| !gemm_cases::is_thinned() || of == nth % 3;
        for (moved, placement) in moved.filter(|(of, _)| is_tested(*of)) {
            let (scalar, name) = product(&stage.spec, size, placement);
            // Kernels that access a matrix in units of 4 bytes, such as by transposing asynchronous
            // copies, accept any alignment.
            let plan = stage.spec.plan().expect("a stage has a plan");
            let widths = match plan.kind() {
                KernelKind::Naive(_) => [1; 3],
                KernelKind::Wgmma(t) => [1, 1, t.epilogue().store_width()],
                KernelKind::Direct(d) => [d.a().width(), d.b().width(), d.epilogue().width()],
                KernelKind::Tiled(t) => t.widths(),
            };
            let expected = if widths[moved] == 1 { Variant::Vector } else { Variant::Scalar };
            assert_eq!(name, expected, "{} with {placement:?}", stage.name);
            assert!(bits(&scalar) == bits(&vector), "{} with {placement:?}", stage.name);
        }
    });
}

/// Both access variants compute the same bits, even if the position of a K element in its tile
/// determines its partial sum.
fn both_access_variants_split_sums_alike() {
    let size @ Size { k, .. } = Size::new(3, 8, 29);
    for keys in [
        "slices: 2",
        "partials: 2",
        "partials: 2, fold_tiles",
        "slices: 2, split_k: 2",
        "slices: 2, stream_k",
    ] {
        for spec in vector_pipelines() {
            let spec: SgemmSpec = format!("{spec}, pitched, {keys}").parse().expect("a sound spec");
            let problem = Problem::hard(size, 5, Hard::Cancel);
            let by = |padding| {
                let placement = Placement { padding: [padding, 0, 0], ..Placement::default() };
                let outcome = problem.multiply(&simulator(), &spec, placement);
                outcome.unwrap_or_else(|error| panic!("{error}"))
            };
            let ((c, vector), (other, scalar)) = (by(k.next_multiple_of(4) - k), by(0));
            assert!(bits(&c) == bits(&other), "`{spec}`: {vector} and {scalar}");
        }
    }
}

fn rows_that_are_no_multiple_of_four_take_the_scalar_variant() {
    for stage in stages::sgemm().iter().filter(|s| s.spec.float4 && !s.spec.pitched) {
        let (_, variant) = product(&stage.spec, Size::new(33, 35, 37), Placement::default());
        assert_eq!(variant, Variant::Scalar, "{}", stage.name);
    }
}

fn padded_rows_keep_the_vectors_at_any_width() {
    for stage in stages::sgemm().iter().filter(|s| s.spec.pitched) {
        let size = Size::new(130, 67, 41);
        let (_, variant) =
            product(&stage.spec, size, Placement::aligned_rows(stage.spec.layout, size));
        assert_eq!(variant, Variant::Vector, "{}", stage.name);
    }
}

/// Returns each pipeline with 16-byte accesses, both to plain and to transposed tiles.
fn vector_pipelines() -> impl Iterator<Item = SgemmSpec> {
    let base = "tile: 64x64x8, thread: 4x4, float4";
    let pipelines = ["", ", prefetch", ", double_buffer", ", stages: 2", ", stages: 4, spread: 3"];
    let layouts = ["", ", transpose"];
    pipelines.into_iter().flat_map(move |pipeline| {
        layouts.map(|layout| format!("{base}{layout}{pipeline}").parse().expect("a sound spec"))
    })
}

fn vectors_read_no_padding_but_the_rest_of_a_row_s_last_one() {
    // The memory of A and B ends with the last vector of the last row, before the end of the
    // padding of the row.
    let placement = Placement { padding: [11, 11, 11], ..Placement::default() };
    for spec in vector_pipelines().map(|spec| spec.pitched(true)) {
        for size in [Size::new(2, 5, 5), Size::new(65, 69, 9), Size::new(1, 1, 1)] {
            let (_, variant) = product(&spec, size, placement);
            assert_eq!(variant, Variant::Vector, "{spec}");
        }
    }
}

/// A raster group may be much larger than C. The kernel counts its tiles in an `int`. If the count
/// does not fit, the launch is refused; otherwise the result is correct.
fn groups_beyond_c(base: &SgemmSpec, raster: u32, size: Size) -> Result<(), TestCaseError> {
    let spec = base.clone().raster(raster);
    let (width, problem) = (spec.tile.map_or(32, |tile| tile.n), Problem::new(size, 3));
    let tiles = u64::from(raster) * size.n.div_ceil(width as usize) as u64;
    let c = problem.multiply(&simulator(), &spec, Placement::default());
    match (c, tiles <= i32::MAX as u64) {
        (Ok((c, _)), true) => problem
            .check(&simulator(), &spec, Placement::default(), &c)
            .map_err(TestCaseError::fail),
        (Err(error), false) => {
            let most = i32::MAX as u32 / raster * width;
            prop_assert!(error.contains(&format!("needs n to be at most {most}, but")), "{error}");
            Ok(())
        }
        (Ok(_), false) => Err(TestCaseError::fail(format!("`{spec}` at {size} runs"))),
        (Err(error), true) => Err(TestCaseError::fail(error)),
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(64))]

    fn groups_of_tile_rows_fit_or_are_refused(
        line in select(vec![
            "block: 1x32", "tile: 8x16x4, thread: 1x2", "tile: 4x32x2, thread: 1x2, double_buffer",
        ]),
        raster in prop_oneof![1u32 << 24..=1 << 27, 1u32..64],
        (m, n) in (1usize..20, 1usize..600),
    ) {
        groups_beyond_c(&line.parse().expect("a sound line"), raster, Size::new(m, n, 3))?;
    }
}

fn the_largest_group_of_tile_rows_is_computed_within_an_int() {
    let base: SgemmSpec = "block: 1x32".parse().expect("a sound line");
    for n in [1, 32, 33, 64, 65] {
        groups_beyond_c(&base, 1 << 30, Size::new(3, n, 2))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Checks that C has the bits of ascending chains of multiply-adds, including the sign of zero. The
/// payload of a NaN is ignored, because it depends on the machine.
fn ascending(
    spec: &SgemmSpec,
    size: Size,
    placement: Placement,
    hard: Hard,
    seed: u64,
) -> Result<(), String> {
    let problem = Problem::hard(size, seed, hard);
    let (c, variant) = problem.multiply(&simulator(), spec, placement)?;
    for (at, (value, expected)) in c.iter().zip(problem.ascending(spec)).enumerate() {
        if value.to_bits() != expected.to_bits() && !(value.is_nan() && expected.is_nan()) {
            return Err(format!(
                "`{spec}` ({variant}) at {size} with {hard:?}: C[{}][{}] is {value:?}, not \
                 {expected:?}",
                at / size.n,
                at % size.n,
            ));
        }
    }
    Ok(())
}

/// Extent of a block's K tile, at least 8, so that smaller and larger K can be tested.
fn depth(spec: &SgemmSpec) -> usize {
    spec.plan().map_or(8, |plan| plan.k_step().max(8)) as usize
}

/// Kernels without shared memory. Some process four K elements per step, and the last step may be
/// partial.
const DIRECT: [&str; 8] = [
    "block: 2x3, thread: 2x3",
    "block: 1x8, thread: 4x4, float4, unroll: 2",
    "block: 4x2, lanes: m, thread: 4x1, float4, layout: tt",
    "block: 2x2, lanes: k, thread: 4x2, float4, unroll: 2",
    "block: 1x2, lanes: k, thread: 1x4, float4, layout: nt, slices: 3",
    "block: 2x1, lanes: k, thread: 2x2, slices: 2, split_k: 2",
    "block: 1x4, thread: 4x8, float4, slices: 4, unroll: 2, split_k: 3",
    "block: 4x4, thread: 8x4, layout: tn, float4, unroll: 3, split_k: 2",
];

fn padding_of_partial_tiles_changes_no_bit() {
    let specs = stages::sgemm().into_iter().map(|stage| stage.spec);
    let sliced = |s: SgemmSpec| [s.clone(), s.pitched(true)].map(|s| s.slices(2));
    let pipelines = vector_pipelines().flat_map(|s| [s.clone(), s.pitched(true)]);
    let folded =
        |s: SgemmSpec| [s.clone(), s.pitched(true)].map(|s| s.partials(2).fold_tiles(true));
    let specs = specs.chain(pipelines).chain(vector_pipelines().flat_map(sliced));
    let specs = specs.chain(vector_pipelines().flat_map(folded));
    let direct = DIRECT.iter().map(|line| line.parse::<SgemmSpec>().expect("a sound line"));
    let direct = direct.flat_map(|s| [s.clone(), s.pitched(true)]);
    let specs: Vec<SgemmSpec> = specs.chain(direct).collect();
    specs.par_iter().enumerate().for_each(|(nth, spec)| {
        let bk = depth(spec);
        let packed = Placement { offsets: [1, 0, 0], ..Placement::default() };
        let ks = [0, 1, 4, bk - 1, bk, bk + 1, bk + 4, 3 * bk - 1, 3 * bk + 3, 7 * bk + 4];
        for (turn, k) in ks.into_iter().enumerate() {
            let size = Size::new(3, 8, k);
            let placements = [Placement::aligned_rows(spec.layout, size), packed];
            let cases =
                Hard::ALL.into_iter().zip(1..).flat_map(|hard| placements.map(|p| (hard, p)));
            let is_tested = |case: usize| gemm_cases::is_in_turn(case, 16, nth + turn);
            for (_, ((hard, seed), placement)) in cases.enumerate().filter(|(n, _)| is_tested(*n)) {
                ascending(spec, size, placement, hard, seed).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    });
}

fn infinities_and_nans_stay_in_their_rows_and_columns() {
    let size @ Size { m, n, k } = Size::new(37, 41, 19);
    let problem = Problem::new(size, 3);
    let (mut a, mut b) = (problem.a, problem.b);
    a[5 * k + 18] = f32::NAN;
    b[2 * n + 40] = f32::INFINITY;
    let problem = Problem::of(size, a, b);
    // Stages with an epilogue are skipped, because an epilogue may change sums arbitrarily.
    for stage in stages::sgemm().into_iter().filter(|stage| plain(&stage.spec).is_none()) {
        let placement = Placement::aligned_rows(stage.spec.layout, size);
        let (c, _) = problem.multiply(&simulator(), &stage.spec, placement).expect("C");
        for (at, value) in c.iter().enumerate() {
            let (row, col) = (at / n, at % n);
            let expected = if row == 5 {
                value.is_nan()
            } else if col == 40 {
                value.is_infinite()
            } else {
                value.is_finite()
            };
            assert!(expected, "{}: C[{row}][{col}] is {value}, m = {m}", stage.name);
        }
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    fn any_spec_is_right_at_any_size(
        spec in arbitrary::sgemm(256),
        (m, n, k) in (0..70usize, 0..70usize, 0..50usize),
        placement in placement(),
        seed: u64,
    ) {
        let size = accepted(&spec, Size::new(m, n, k));
        let problem = Problem::new(size, seed);
        // A kernel with `bounds: aligned` refuses placements for which a guarded kernel has a
        // variant.
        let aligned = placement.is_none() || spec.bounds == Bounds::Aligned;
        let rows = Placement::aligned_rows(spec.layout, size);
        let placement = placement.filter(|_| !aligned).unwrap_or(rows);
        let (c, _) = problem
            .multiply(&simulator(), &spec, placement)
            .map_err(TestCaseError::fail)?;
        let wrong = |e| TestCaseError::fail(format!("`{spec}` at {size}: {e}"));
        problem.check(&simulator(), &spec, placement, &c).map_err(wrong)?;
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    fn any_spec_gives_the_bits_of_ascending_chains(
        spec in arbitrary::sgemm(256),
        size in (1..20usize, 1..20usize, 0..70usize),
        placement in placement(),
        hard in select(Hard::ALL.to_vec()),
        seed: u64,
    ) {
        let size = accepted(&spec, Size::new(size.0, size.1, size.2));
        let aligned = placement.is_none() || spec.bounds == Bounds::Aligned;
        let rows = Placement::aligned_rows(spec.layout, size);
        let placement = placement.filter(|_| !aligned).unwrap_or(rows);
        ascending(&spec, size, placement, hard, seed).map_err(TestCaseError::fail)?;
    }
}

/// Keys that turn stages into published kernels, in any geometry that accepts them.
fn published() -> impl Strategy<Value = SgemmSpec> {
    let pipeline = select(vec!["", ", prefetch", ", double_buffer", ", stages: 2"]);
    let keys = ["", ", layout: nt", ", layout: tn", ", transpose", ", slices: 2", ", pitched"];
    let geometry = (1..=6u32, 1..=3u32, 1..=3u32, 1..=3u32, 1..=2u32);
    let variant = prop_oneof![
        (2..=5u32).prop_map(|run| (run, format!("adjacent: {run}"))),
        Just((1, "fragment: split_n".to_owned())),
        Just((1, "fragment: split_n, float4".to_owned())),
        (2..=4u32).prop_map(|partials| (partials, format!("partials: {partials}, fold_tiles"))),
        Just((1, "fragment: strided, b_in_parts".to_owned())),
        Just((4, "fragment: strided, b_in_parts, float4".to_owned())),
        Just((3, "fragment: strided, b_in_parts, adjacent: 3".to_owned())),
        Just((2, "fragment: strided, b_in_parts, partials: 2, fold_tiles".to_owned())),
    ];
    let spec = (variant, geometry, pipeline, select(keys.to_vec()));
    spec.prop_filter_map("sound", |((unit, variant), (rows, cols, m, n, k), pipeline, keys)| {
        // The extents are multiples of the run, and of the partial sums of two slices.
        let in_parts = variant.contains("b_in_parts");
        let (tm, tn) = if in_parts { (1, n + 1) } else { (m, 4 * n) };
        let tile = Tile::new(tm * rows * unit, tn * cols * unit, 4 * unit * k);
        let pipeline = if in_parts { "" } else { pipeline };
        let line = format!("tile: {tile}, thread: {tm}x{tn}, {variant}{pipeline}{keys}");
        let spec: SgemmSpec = line.parse().ok()?;
        spec.plan().is_ok_and(|plan| plan.threads() <= 256).then_some(spec)
    })
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    fn published_variants_give_the_bits_of_ascending_chains(
        spec in published(),
        (m, n, k) in (1..40usize, 1..40usize, 0..70usize),
        placement in placement(),
        hard in select(Hard::ALL.to_vec()),
        seed: u64,
    ) {
        let size = Size::new(m, n, k);
        let placement = placement.unwrap_or(Placement::aligned_rows(spec.layout, size));
        ascending(&spec, size, placement, hard, seed).map_err(TestCaseError::fail)?;
    }
}

/// Random offsets and paddings, or None for a placement that permits 16-byte accesses.
fn placement() -> impl Strategy<Value = Option<Placement>> {
    let anything = (prop::array::uniform3(0..4usize), prop::array::uniform3(0..6usize));
    proptest::option::of(anything.prop_map(|(offsets, padding)| Placement { offsets, padding }))
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![
            every_stage_is_right_and_all_give_the_same_bits,
            aligned_stages_give_the_bits_of_guarded_ones,
            both_access_variants_give_the_same_bits,
            both_access_variants_split_sums_alike,
            rows_that_are_no_multiple_of_four_take_the_scalar_variant,
            padded_rows_keep_the_vectors_at_any_width,
            vectors_read_no_padding_but_the_rest_of_a_row_s_last_one,
            groups_of_tile_rows_fit_or_are_refused,
            the_largest_group_of_tile_rows_is_computed_within_an_int,
            padding_of_partial_tiles_changes_no_bit,
            infinities_and_nans_stay_in_their_rows_and_columns,
            any_spec_is_right_at_any_size,
            any_spec_gives_the_bits_of_ascending_chains,
            published_variants_give_the_bits_of_ascending_chains,
        ],
        counters::trials(),
        gpu::trials(),
        tables::trials(),
    ];
    trials.into_iter().flatten().collect()
}
