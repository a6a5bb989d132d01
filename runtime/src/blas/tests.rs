//! Tests of every shipped table, independently of the device.

mod epilogue;
mod typed;

use super::epilogue::CallEpilogue;
use super::tables::{CallFeatures, F32Tables, Tables};
use super::{Device, Epilogue, MatrixMut, MatrixRef, Shipped, sgemm, warm};
use crate::kernel::operands::{M, N};
use gemm_dsl::Plan;
use gemm_dsl::spec::{Accuracy, Arith, Batch, GemmLayout, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, SgemmShape, TableFamily, Target};
use gemm_dsl::target::arch::{ALL, OLDEST, STATIC_SHARED_BYTES};
use std::collections::{BTreeMap, BTreeSet};

const LAYOUTS: [GemmLayout; 4] = [GemmLayout::Nn, GemmLayout::Nt, GemmLayout::Tn, GemmLayout::Tt];

/// Tables of each architecture and accuracy class.
fn all() -> impl Iterator<Item = (u32, Accuracy, &'static F32Tables)> {
    let classes = |arch| Accuracy::ALL.iter().map(move |class| (arch, *class));
    let kinds = Tables::ARCHS.into_iter().flat_map(classes);
    let tables = kinds.map(|(arch, class)| (arch, class, Tables::for_arch(Some(arch), class)));
    // A class without its own tables uses the tables of `f32`.
    let has_own = |arch: u32, class| {
        class == Accuracy::Ieee
            || !std::ptr::eq(
                Tables::for_arch(Some(arch), class),
                Tables::for_arch(Some(arch), Accuracy::Ieee),
            )
    };
    tables.filter(move |(arch, class, _)| has_own(*arch, *class))
}

/// Both tables of each architecture and class, with the batch kinds of their calls.
fn tables() -> impl Iterator<Item = (u32, &'static Shipped<f32, f32>, Vec<Option<Batch>>)> {
    all().flat_map(|(arch, _, Tables { one, batch })| {
        [(arch, one, vec![None]), (arch, batch, vec![Some(Batch::Strided), Some(Batch::Pointers)])]
    })
}

/// Shapes around every extent that hand-written conditions use.
fn shapes(batches: &[u64]) -> Vec<SgemmShape> {
    const EXTENTS: [usize; 16] =
        [1, 2, 4, 8, 9, 16, 32, 64, 100, 128, 200, 256, 512, 1024, 2048, 4096];
    let mut shapes = Vec::new();
    for m in EXTENTS {
        for n in EXTENTS {
            for k in [8, 64, 512, 4096, 32768] {
                for layout in LAYOUTS {
                    for batch in batches {
                        shapes.push(SgemmShape::from((m, n, k)).layout(layout).batch(*batch));
                    }
                }
            }
        }
    }
    // Shapes of all magnitudes, for conditions of the measured tables between these extents.
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..20_000 {
        let mut extent = || 2_f64.powf(draw(17_000) as f64 / 1000.0).round() as usize;
        let size = (extent(), extent(), extent());
        let (layout, aligned) = (LAYOUTS[draw(4) as usize], draw(2) == 0);
        for batch in batches {
            shapes.push(SgemmShape::from(size).layout(layout).batch(*batch).aligned(aligned));
        }
    }
    shapes
}

/// Number of SMs of a large GPU and of a small one.
fn targets(arch: u32) -> [Target; 2] {
    [132, 24].map(|sms| Target { arch, sms })
}

/// Each rule is reached. For each layout that reaches a rule, its kernel has a plan and the
/// features of the call, and is launched by its own line.
#[test]
fn every_row_is_reached_and_sound() {
    for (arch, shipped, batches) in tables() {
        let mut reached: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        let counts: &[u64] = if batches == [None] { &[1] } else { &[1, 3, 100, 1000] };
        for shape in shapes(counts) {
            for target in targets(arch) {
                let problem = SgemmProblem { shape, target };
                let row = shipped.table.rule(&problem).expect("in range");
                let of_row = reached.entry(row).or_default();
                if !of_row.insert(shape.lies().to_string()) {
                    continue;
                }
                for (padded, scaled) in [(false, false), (true, false), (false, true), (true, true)]
                {
                    for &batch in &batches {
                        let problem = SgemmProblem { shape: shape.padded(padded), target };
                        // A condition may test `padded`.
                        let row = shipped.table.rule(&problem).expect("in range");
                        let asked = CallFeatures { scaled, batch, epilogue: None };
                        let (chosen, line) = shipped.chosen(&problem, asked).expect("in range");
                        assert_eq!(chosen, row);
                        let spec: SgemmSpec = line.parse().expect("printed");
                        let lies = shape.padded(padded).lies();
                        assert_eq!(spec, shipped.spec(row, lies, padded, asked).expect("sound"));
                        let of_call = (spec.layout, spec.pitched, spec.scaled, spec.batch);
                        assert_eq!(of_call, (lies, padded, scaled, batch), "{line}");
                        spec.plan().unwrap_or_else(|error| panic!("sm_{arch}: {line}: {error}"));
                        let choice = shipped.choice(&problem, asked).expect("in range");
                        assert_eq!((choice.rule, choice.spec.as_str()), (row, line));
                        assert_eq!(shipped.chosen(&problem, asked).expect("kept").1, line);
                    }
                }
            }
        }
        let rows = shipped.table.rules();
        // The rules for FP32 emulation may cover all problems of some later `f32` rules.
        let is_granted = rows.iter().any(|row| row.spec.arith != Arith::F32);
        let counts = |row: &usize| !is_granted || rows[*row].spec.arith != Arith::F32;
        let missed = (0..rows.len()).filter(|row| !reached.contains_key(row)).filter(counts);
        let missed: Vec<String> = missed.map(|row| rows[row].to_string()).collect();
        assert!(missed.is_empty(), "sm_{arch}: no product comes to {missed:?}");
    }
}

/// Large tiles without split-K leave at most a third of the SMs idle.
#[test]
fn large_tiles_fill_the_device_or_are_shared() {
    let shipped = Tables::for_arch(Some(90), Accuracy::Ieee).table(CallFeatures::default());
    let sides = (512..4200).step_by(64).map(|side| SgemmShape::from((side, side, side)));
    let mut seen = 0;
    for shape in sides.chain(shapes(&[1])) {
        let problem = SgemmProblem { shape, target: Target { arch: 90, sms: 132 } };
        let spec = &shipped.table.rules()[shipped.table.rule(&problem).expect("in range")].spec;
        let plan = spec.plan().expect("sound");
        let (m, n) = plan.block_tile();
        let line = spec.to_string();
        let is_shared = ["split_k", "stream_k"].iter().any(|key| line.contains(key));
        if !is_shared && m * n >= 128 * 256 {
            let waves = SgemmSpec::waves(&problem, (m, n)).expect("of products");
            assert!(waves >= 0.66 * waves.ceil(), "{shape:?}: {line}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Groups of rows take half of the largest tile, which two blocks of an SM share.
#[test]
fn groups_halve_the_largest_tile() {
    let shape = SgemmShape::from((65_536, 4096, 1024));
    let problem = SgemmProblem { shape, target: Target { arch: 90, sms: 132 } };
    let tables = Tables::for_arch(Some(90), Accuracy::Ieee);
    let line = |batch| {
        let asked = CallFeatures { batch, ..CallFeatures::default() };
        let (_, line) = tables.table(asked).chosen(&problem, asked).expect("in range");
        line.to_owned()
    };
    let says = |line: &str, keys: [&str; 4]| keys.iter().all(|key| line.contains(key));
    let one = line(None);
    assert!(
        says(&one, ["tile: 128x256x16", "warp: 32x128", "raster: 8", "blocks_per_sm: 1"]),
        "{one}"
    );
    let groups = line(Some(Batch::Grouped));
    let keys = ["tile: 64x256x16", "warp: 64x64", "raster: 16", "blocks_per_sm: 2"];
    assert!(says(&groups, keys), "{groups}");
}

/// No rule has a key that a call would overwrite or reject.
#[test]
fn rows_say_how_and_not_what() {
    for (arch, shipped, batches) in tables() {
        for row in shipped.table.rules() {
            let SgemmSpec { pitched, scaled, batch, epilogue, .. } = &row.spec;
            assert!(!pitched && !scaled && epilogue.is_none(), "sm_{arch}: {row}");
            assert_eq!(*batch, batches[0], "sm_{arch}: {row}");
        }
    }
}

#[test]
fn every_architecture_has_tables_that_it_can_take() {
    let of = |arch| Tables::for_arch(arch, Accuracy::Ieee);
    for arch in (50..=130).map(Some).chain([None]) {
        let Tables { one, batch } = of(arch);
        // An architecture between two of the list is assumed to have as much shared memory as the
        // earlier one: within a generation, NVIDIA adds memory and removes none.
        let has = ALL.iter().find(|sm| Some(sm.arch) == arch);
        let limit = match has {
            Some(sm) => (sm.arch, sm.shared_per_block),
            // Some architectures are not in the list, but similar to one in the list. Nothing is
            // known about the others.
            None if std::ptr::eq(of(arch), of(None)) => (OLDEST, STATIC_SHARED_BYTES),
            None => continue,
        };
        for (shipped, batch) in [(one, None), (batch, Some(Batch::Strided))] {
            let asked = CallFeatures { batch, ..CallFeatures::default() };
            for (row, layout) in
                (0..shipped.table.rules().len()).flat_map(|row| LAYOUTS.map(|l| (row, l)))
            {
                let spec = shipped.spec(row, layout, false, asked).expect("sound");
                let program = spec.plan().and_then(|plan| plan.program()).expect("sound");
                for kernel in program.kernels() {
                    let contract = kernel.contract();
                    let needed = (contract.min_arch, contract.shared_bytes);
                    assert!(
                        needed.0 <= limit.0 && needed.1 <= limit.1,
                        "{arch:?}: {spec}: {needed:?}"
                    );
                    // All blocks that the spec names are resident at once, as `stream_k` requires.
                    if let Some(sm) = has {
                        let of_all =
                            u64::from(spec.resident_blocks()) * (needed.1 + sm.shared_reserved);
                        assert!(of_all <= sm.shared_bytes, "{arch:?}: {spec}: {of_all}");
                    }
                }
            }
        }
    }
    // On the measured GPU, rules are used unchanged. On other GPUs, keys of some rules are reduced.
    let changed = |arch| {
        let Tables { one, .. } = of(Some(arch));
        let asked = CallFeatures::default();
        let rows = one.table.rules().iter().enumerate();
        let own = |spec: &SgemmSpec| (spec.stages, spec.blocks_per_sm);
        let taken = |n| one.spec(n, GemmLayout::Nn, false, asked).expect("sound");
        rows.filter(|(n, row)| own(&taken(*n)) != own(&row.spec)).count()
    };
    assert_eq!(changed(90), 0);
    assert!(changed(89) > 0);
    assert!(std::ptr::eq(Tables::on(&Device::simulator(), Accuracy::Norm), of(Some(75))));
}

/// Linear congruential generator, seeded.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    /// Values so small that every sum of them is exact.
    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.below(9) as f32 - 4.0).collect()
    }
}

/// Launches a random GEMM through `sgemm` and checks its result.
fn product(seed: u64, tables: &'static F32Tables) {
    let device = Device::simulator();
    let mut random = Random(seed);
    let mut extent = || [1, 3, 8, 12, 16, 33, 64][random.below(7)];
    let (m, n, k) = (extent(), extent(), extent());
    let batch = [None, None, Some(1), Some(3)][random.below(4)];
    let count = batch.unwrap_or(1);
    let (a, b) = (random.values(count * m * k), random.values(count * k * n));
    let before = random.values(count * m * n);
    let columns = [(); 3].map(|()| random.below(2) == 1);
    let padding = random.below(3);
    let (alpha, beta) = [(1.0, 0.0), (1.0, 1.0), (-2.0, 0.0)][random.below(3)];

    // Row-major or column-major memory, with padding behind each row or column.
    let place = |(rows, cols): (usize, usize), by_columns: bool, at: usize| {
        let (n, row, col) = (at / (rows * cols), at / cols % rows, at % cols);
        match by_columns {
            true => (n * cols + col) * (rows + padding) + row,
            false => (n * rows + row) * (cols + padding) + col,
        }
    };
    let stored = |values: &[f32], shape: (usize, usize), by_columns: bool| {
        let lines = if by_columns { (shape.1, shape.0) } else { shape };
        let mut memory = vec![0.0; count * lines.0 * (lines.1 + padding)];
        for (at, value) in values.iter().enumerate() {
            memory[place(shape, by_columns, at)] = *value;
        }
        (device.upload(&memory).expect("room"), lines, lines.1 + padding)
    };
    let (a_memory, a_lines, a_pitch) = stored(&a, (m, k), columns[0]);
    let (b_memory, b_lines, b_pitch) = stored(&b, (k, n), columns[1]);
    let (mut c_memory, c_lines, c_pitch) = stored(&before, (m, n), columns[2]);
    let view = |memory, (rows, cols): (usize, usize), pitch, by_columns| {
        let view = match batch {
            Some(_) => MatrixRef::batch_apart(memory, (count, rows * pitch), rows, cols, pitch),
            None => MatrixRef::pitched(memory, rows, cols, pitch),
        };
        let view = view.expect("room");
        if by_columns { view.t() } else { view }
    };
    let in_a = view(&a_memory, a_lines, a_pitch, columns[0]);
    let in_b = view(&b_memory, b_lines, b_pitch, columns[1]);
    let to = match batch {
        Some(_) => {
            let apart = (count, c_lines.0 * c_pitch);
            MatrixMut::batch_apart(&mut c_memory, apart, c_lines.0, c_lines.1, c_pitch)
        }
        None => MatrixMut::pitched(&mut c_memory, c_lines.0, c_lines.1, c_pitch),
    };
    let mut to = to.expect("room");
    let mut to = if columns[2] { to.t() } else { to };
    // Half of the calls have an epilogue, whose vectors have a value for each row and column.
    let (rows, cols) = (random.values(m), random.values(n));
    let fused = random.below(2) == 1;
    let call = sgemm(&in_a, &in_b, &mut to).alpha(alpha).beta(beta);
    let (choice, launched) = match fused {
        true => {
            let upload = |values: &[f32]| device.upload(values).expect("room");
            let (rows, cols) = (upload(&rows), upload(&cols));
            let epilogue = "|acc, x[m], y[n]| acc + f32(2 * m + row) * x + f32(n - col) * y";
            let epilogue: Epilogue<(M, N)> = epilogue.parse().expect("sound");
            let call = call.epilogue(epilogue).operands((&rows, &cols));
            (call.choice_by(tables, &device), call.run_by(tables, &device))
        }
        false => (call.choice_by(tables, &device), call.run_by(tables, &device)),
    };
    let (choice, launched) = (choice.expect("views that fit"), launched.expect("views that fit"));

    let spec: SgemmSpec = choice.spec.parse().expect("sound");
    let ran = launched.steps().next().expect("something to compute").kernel().to_owned();
    assert!(ran.starts_with(&spec.kernel_name()), "{ran} for {choice:?}");
    let row =
        &tables.table(CallFeatures { batch: spec.batch, ..CallFeatures::default() }).table.rules()
            [choice.rule];
    assert_eq!((row.spec.tile, row.spec.thread), (spec.tile, spec.thread), "{choice:?}");

    let found = device.download(&c_memory).expect("ours");
    for (at, before) in before.iter().enumerate() {
        let (product, row, col) = (at / (m * n), at / n % m, at % n);
        let terms = (0..k).map(|p| a[(product * m + row) * k + p] * b[(product * k + p) * n + col]);
        let added = (2 * m + row) as f32 * rows[row] + (n - col) as f32 * cols[col];
        let added = if fused { added } else { 0.0 };
        let expected = alpha * terms.sum::<f32>() + beta * before + added;
        let found = found[place((m, n), columns[2], at)];
        assert!(
            found == expected,
            "{seed}: {choice:?}: C[{row}][{col}] is {found}, not {expected}"
        );
    }
}

/// The kernel that each table chooses computes random GEMMs correctly.
#[test]
fn products_are_right_by_every_table() {
    for (arch, _, tables) in all() {
        for n in 0..24 {
            product(u64::from(arch) * 1000 + n, tables);
        }
    }
}

/// FP32 emulation is chosen only if the class permits it and the GEMM is large enough.
#[test]
fn tensor_cores_are_asked_where_that_is_granted() {
    let target = Target { arch: 90, sms: 132 };
    let arith = |class, batch, (size, count)| {
        let shape = SgemmShape::from(size).batch(count);
        let shipped = Tables::for_arch(Some(90), class)
            .table(CallFeatures { batch, ..CallFeatures::default() });
        let row = shipped.table.rule(&SgemmProblem { shape, target }).expect("in range");
        shipped.table.rules()[row].spec.arith
    };
    for batch in [None, Some(Batch::Strided)] {
        let (large, small) = (((4096, 4096, 4096), 1), ((1, 4096, 4096), 1));
        let found = Accuracy::ALL.iter().map(|class| arith(*class, batch, large));
        assert_eq!(found.collect::<Vec<_>>(), [Arith::F32, Arith::Bf16x6, Arith::F16x3]);
        for class in Accuracy::ALL {
            assert_eq!(arith(*class, batch, small), Arith::F32);
        }
    }
    for (arch, class, Tables { one, batch }) in all() {
        let rows = one.table.rules().iter().chain(batch.table.rules());
        for row in rows {
            let own = row.spec.arith.accuracy();
            assert!(own.is_some_and(|own| own <= class), "sm_{arch}, {class}: {row}");
        }
    }
    let device = Device::simulator();
    let x = device.alloc(64).expect("room");
    let a = MatrixRef::new(&x, 8, 8).expect("room");
    let mut c = device.alloc_matrix(8, 8).expect("room");
    let found = Accuracy::ALL.iter().map(|class| {
        let call = sgemm(&a, &a, &mut c).accuracy(*class);
        call.choice_by(Tables::for_arch(Some(90), *class), &device).expect("views that fit").rule
    });
    // The rules for FP32 emulation precede all others.
    let rows: Vec<usize> = found.collect();
    assert!(rows[0] < rows[1] && rows[0] < rows[2], "{rows:?}");
}

/// A launch after `warm` adds no program.
#[test]
fn a_launch_of_what_is_warm_makes_nothing() {
    let device = Device::simulator();
    let shapes = [(5, 6, 7), (40, 6, 7), (40, 7, 7)].map(SgemmShape::from);
    let batches = shapes.map(|shape| shape.batch(3).layout(GemmLayout::Tn));
    warm(&device, shapes.into_iter().chain(batches)).expect("sound");
    // One program for small shapes and one for other shapes, each for single GEMMs and for batches.
    assert_eq!(device.programs().made(), 4);
    let (x, mut room) =
        (device.alloc(3 * 40 * 40).expect("room"), device.alloc(3 * 40 * 7).expect("room"));
    for m in [5, 40] {
        let (a, b) =
            (MatrixRef::new(&x, m, 7).expect("room"), MatrixRef::new(&x, 7, 6).expect("room"));
        let mut c = MatrixMut::new(&mut room, m, 6).expect("room");
        let launched = sgemm(&a, &b, &mut c).run(&device).expect("views that fit");
        assert_eq!((launched.compiled(), launched.loaded_from_disk()), (None, None));
        let a = MatrixRef::batch(&x, 3, 7, m).expect("room");
        let b = MatrixRef::batch(&x, 3, 7, 6).expect("room");
        let mut c = MatrixMut::batch(&mut room, 3, m, 6).expect("room");
        sgemm(&a.t(), &b, &mut c).run(&device).expect("views that fit");
    }
    assert_eq!(device.programs().made(), 4);
    let (a, b) = (MatrixRef::new(&x, 5, 7).expect("room"), MatrixRef::new(&x, 7, 6).expect("room"));
    let mut c = MatrixMut::new(&mut room, 5, 6).expect("room");
    let call = sgemm(&a, &b, &mut c).beta(1.0);
    call.warm(&device).expect("sound");
    assert_eq!(device.programs().made(), 5);
    call.run(&device).expect("views that fit");
    assert_eq!(device.programs().made(), 5);
}

/// Prepared splits select another program, whose kernels are compiled too.
#[test]
fn split_specs_are_warmed_up() {
    let device = Device::simulator();
    let x = device.alloc(200 * 3000).expect("room");
    let (a, b) = (MatrixRef::new(&x, 200, 3000), MatrixRef::new(&x, 3000, 400));
    let (a, b) = (a.expect("room"), b.map(|_| ()));
    assert!(b.is_err(), "x has too few elements");
    let y = device.alloc(3000 * 400).expect("room");
    let b = MatrixRef::new(&y, 3000, 400).expect("room");
    let weights = device.prepare(Arith::Bf16x6, &b).expect("splits");
    let mut c = device.alloc_matrix(200, 400).expect("room");
    let call = sgemm(&a, &weights, &mut c).accuracy(Accuracy::Bound);
    let tables = Tables::for_arch(Some(90), Accuracy::Bound);
    let choice = call.choice_by(tables, &device).expect("views that fit");
    assert!(choice.spec.contains("bf16x6"), "{choice:?}");
    let (line, made) = call.program(tables, &device).expect("views that fit");
    let made = made.expect("sound");
    assert_eq!(line, choice.spec);
    let own = device.programs().get::<SgemmSpec>(&choice.spec).expect("sound");
    assert!(!std::sync::Arc::ptr_eq(&made, &own), "it takes the splits of B");
    assert_eq!(made.program().inputs.len(), own.program().inputs.len() + 1);
    let bias: Epilogue<(N,)> = "|acc, bias[n]| acc + bias".parse().expect("sound");
    let call = sgemm(&a, &weights, &mut c).accuracy(Accuracy::Bound).epilogue(bias).operands(&x);
    let (line, fused) = call.program(tables, &device).expect("views that fit");
    assert_eq!(line, format!("{}, epilogue: |acc, bias[n]| acc + bias", choice.spec));
    let inputs = fused.expect("sound").program().inputs.len();
    assert_eq!(inputs, made.program().inputs.len() + 1);
}

/// For a column-major C, the rule is chosen for the transposed GEMM.
#[test]
fn c_in_columns_is_chosen_for_as_the_transpose() {
    let device = Device::simulator();
    let memory = device.alloc(64).expect("room");
    let (a, b) = (MatrixRef::new(&memory, 3, 5), MatrixRef::new(&memory, 5, 7));
    let (a, b) = (a.expect("room"), b.expect("room"));
    let [mut in_columns, mut in_rows] = [(); 2].map(|()| device.alloc(21).expect("room"));
    let mut in_columns = MatrixMut::new(&mut in_columns, 7, 3).expect("room");
    let mut in_rows = MatrixMut::new(&mut in_rows, 7, 3).expect("room");
    let asked = CallFeatures::default();
    let problem = sgemm(&a, &b, &mut in_columns.t()).problem(&device, asked).expect("views");
    let turned = sgemm(&b.t(), &a.t(), &mut in_rows).problem(&device, asked).expect("views");
    let extents = (problem.shape.m, problem.shape.n, problem.shape.k);
    assert_eq!(extents, (7, 3, 5));
    assert_eq!(format!("{problem:?}"), format!("{turned:?}"));
}
