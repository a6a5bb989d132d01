//! Reductions over rows, columns, matrices of a batch and segments, in every geometry.

use crate::reduce::each::{each, right, same};
use gemm_dsl::ir::Variant;
use gemm_dsl::spec::{AccType, DataType, IndexType, LaunchForm, Op, Over, ReduceSpec};
use gemm_oracle::random::Random;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape};
use libtest_mimic::Trial;

/// Lengths at the limits of groups, warps, blocks and rounds.
const LENGTHS: &[usize] = &[0, 1, 2, 31, 32, 33, 64, 255, 256, 257, 1000];

/// Spec of an operator and a type without a `map`. None if there is no such spec: `f64` has no
/// `logsumexp`.
fn of(over: Over, op: Op, element: DataType) -> Option<ReduceSpec> {
    let spec = ReduceSpec::default().over(over).op(op).element(element).block(64);
    let float = spec.clone().acc(AccType::F32);
    [spec, float].into_iter().find(|spec| spec.plan().is_ok())
}

/// Shape with several results of `len` elements each.
fn tensor(over: Over, len: usize, random: &mut Random) -> Shape {
    let mut below = |n: u64| (random.bits() % n) as usize;
    let (outer, inner) = match over {
        Over::All => (1, 1),
        Over::Rows => (below(70), 1),
        Over::Columns => (1, below(70)),
        _ => (below(5), below(20)),
    };
    // Long reductions have few results, to save time.
    let few = if len > 300 { 4 } else { usize::MAX };
    Shape::Tensor { outer: outer.min(few), len, inner: inner.min(few.saturating_mul(3)) }
}

/// Offsets of segments, some of them empty, with a random start.
fn segments(count: usize, most: u64, random: &mut Random) -> Shape {
    let mut offsets = vec![random.bits() % 9];
    for _ in 0..count {
        let length = if random.bits().is_multiple_of(4) { 0 } else { random.bits() % most };
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    Shape::Segments(offsets)
}

/// Rows are correct, whether a thread, a part of a warp, a warp, or a block reduces them.
fn rows_are_right_whoever_folds_them() {
    each(|n, op, element| {
        let Some(spec) = of(Over::Rows, op, element) else { return Ok(()) };
        let mut random = Random::new(n as u64);
        let groups = [1, 2, 8, 16, 32, 64];
        for group in [groups[n % 6], groups[(n + 3) % 6]] {
            let spec = spec.clone().group(group).items(1 + random.bits() as u32 % 3);
            let machine = Simulator::default();
            for &len in LENGTHS {
                let shape = tensor(Over::Rows, len, &mut random);
                run(
                    &machine,
                    &Case::new(&spec, shape, random.bits()),
                    &Placement::random(&mut random),
                )?;
            }
        }
        Ok(())
    });
}

fn columns_are_right_however_many_threads_fold_one() {
    each(|n, op, element| {
        for over in [Over::Columns, Over::Middle] {
            let Some(spec) = of(over, op, element) else { return Ok(()) };
            let mut random = Random::new(n as u64 + 1000);
            let groups = [1, 2, 4, 8, 32, 64];
            let spec = spec.group(groups[n % 6]).items(1 + n as u32 % 2);
            let spec = if n % 2 == 0 { spec.pitched(true) } else { spec };
            let machine = Simulator::default();
            for &len in LENGTHS {
                let shape = tensor(over, len, &mut random);
                run(
                    &machine,
                    &Case::new(&spec, shape, random.bits()),
                    &Placement::random(&mut random),
                )?;
            }
        }
        Ok(())
    });
}

fn segments_are_right_and_empty_ones_too() {
    each(|n, op, element| {
        let Some(spec) = of(Over::Segments, op, element) else { return Ok(()) };
        let mut random = Random::new(n as u64 + 2000);
        let groups = [1, 4, 32, 64];
        let index = [IndexType::U32, IndexType::U64][n % 2];
        let spec = spec.group(groups[n % 4]).index(index).items(1 + n as u32 % 3);
        let machine = Simulator::default();
        for (count, most) in [(0, 1), (1, 1), (1, 300), (50, 40), (70, 2), (9, 700)] {
            let shape = segments(count, most, &mut random);
            run(
                &machine,
                &Case::new(&spec, shape, random.bits()),
                &Placement::random(&mut random),
            )?;
        }
        Ok(())
    });
}

/// Several blocks compute a result. In both launch forms, a fixed tree over block numbers reduces
/// their partial results.
fn launch_forms_give_the_same_bits() {
    each(|n, op, element| {
        for over in [Over::Rows, Over::Columns, Over::Middle] {
            let Some(spec) = of(over, op, element) else { return Ok(()) };
            let mut random = Random::new(n as u64 + 3000);
            let group = if over == Over::Rows { 64 } else { [1, 4, 64][n % 3] };
            let spec = spec.group(group).blocks(2 + n as u32 % 4);
            let in_one = spec.clone().launch(LaunchForm::Once);
            let (passes, once) = (Simulator::default(), Simulator::default());
            for len in [0, 1, 63, 64, 65, 300, 700] {
                let Shape::Tensor { outer, inner, .. } = tensor(over, len, &mut random) else {
                    continue;
                };
                let shape = Shape::Tensor { outer: outer.min(3), len, inner: inner.min(9) };
                let (seed, placement) = (random.bits(), Placement::random(&mut random));
                let ran = run(&passes, &Case::new(&spec, shape.clone(), seed), &placement)?;
                let other = run(&once, &Case::new(&in_one, shape, seed), &placement)?;
                same(format!("`{in_one}` of {len}"), ran.results, other.results)?;
            }
        }
        Ok(())
    });
}

/// A block of a single warp reduces whole rows. With `group`, it supports the keys of a block and
/// computes the same bits as without `group`.
fn the_only_warp_of_a_block_is_the_block() {
    let machine = Simulator::default();
    let more =
        ["", "shuffle", "tree: interleaved", "blocks: 3", "shuffle, blocks: 2, launch: once"];
    for (n, more) in more.into_iter().enumerate() {
        let [said, unsaid] = ["group: 32, ", ""].map(|group| {
            let line = format!("over: rows, block: 32, {group}items: 2, {more}");
            let spec: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
            let shape = Shape::Tensor { outer: 5, len: 331, inner: 1 };
            right(&machine, &Case::new(&spec, shape, n as u64), &Placement::PACKED).results
        });
        assert_eq!(said, unsaid, "{more}");
    }
    let wide: Result<ReduceSpec, _> = "over: rows, block: 64, blocks: 3".parse();
    assert!(wide.is_err_and(|faults| faults.to_string().contains("use `group: 64`")));
}

/// Kernels read aligned rows in 16-byte vectors and other rows in single elements. The bits are the
/// same.
fn rows_of_vectors_are_as_rows_of_elements() {
    each(|n, op, element| {
        let Some(spec) = of(Over::Rows, op, element) else { return Ok(()) };
        let mut random = Random::new(n as u64 + 4000);
        let spec = spec.group([2, 16, 32, 64][n % 4]).float4(true).pitched(n % 3 > 0);
        let machine = Simulator::default();
        for len in [0, 16, 48, 160, 1008] {
            let shape = Shape::Tensor { outer: 5, len, inner: 1 };
            let case = Case::new(&spec, shape, random.bits());
            let padding = if spec.pitched { [16, 0] } else { [0, 0] };
            let aligned = Placement::padded(padding);
            let vectors = run(&machine, &case, &aligned)?;
            let elements =
                run(&machine, &case, &Placement { offset: 1, ..Placement::padded([3, 0]) })?;
            same(format!("`{spec}` of {len}"), vectors.results, elements.results)?;
            same(format!("`{spec}` of {len}"), vectors.variants, vec![Variant::Vector])?;
            same(format!("`{spec}` of {len}"), elements.variants, vec![Variant::Scalar])?;
        }
        // The lengths of the rows are not multiples of the vector length.
        for len in [1, 7, 33, 251] {
            let case = Case::new(&spec, Shape::Tensor { outer: 4, len, inner: 1 }, random.bits());
            let ran = run(&machine, &case, &Placement::PACKED)?;
            same(format!("`{spec}` of {len}"), ran.variants, vec![Variant::Scalar])?;
        }
        Ok(())
    });
}

/// Kernels access neighbouring columns in vectors if all arrays, including results, are aligned to
/// 16 bytes. Otherwise they access single elements. The bits are the same.
fn columns_of_vectors_are_as_columns_of_elements() {
    each(|n, op, element| {
        let axes = [Over::Columns, Over::Middle].into_iter().enumerate();
        // By default, each operator and type is tested along one of the axes.
        for (_, over) in axes.filter(|(axis, _)| gemm_cases::is_in_turn(*axis, 2, n)) {
            let Some(spec) = of(over, op, element) else { return Ok(()) };
            let mut random = Random::new(n as u64 + 6000);
            let spec = spec.group([1, 4, 64][n % 3]).float4(true).pitched(n % 2 > 0);
            let several = spec.clone().blocks(3);
            let once = several.clone().launch(LaunchForm::Once);
            for spec in [spec, several, once] {
                let plan = spec.plan().map_err(|faults| faults.to_string())?;
                let by_vectors = |elem| plan.lanes_of_columns(elem).is_some();
                // The second launch of `passes` reduces partial results one by one.
                let stores = plan.has_partials() && !plan.is_once();
                let stores = !stores && spec.results().iter().any(|(_, elem)| by_vectors(*elem));
                let machine = Simulator::default();
                for (len, inner) in [(3, 48), (200, 16)] {
                    let shape = Shape::Tensor { outer: 2, len, inner };
                    let shape = match over {
                        Over::Columns => Shape::Tensor { outer: 1, len, inner },
                        _ => shape,
                    };
                    let case = Case::new(&spec, shape, random.bits());
                    let padding = if spec.pitched { [16, 32] } else { [0, 0] };
                    let aligned = Placement::padded(padding);
                    let vectors = run(&machine, &case, &aligned)?;
                    same(format!("`{spec}` of {len}"), vectors.variants[0], Variant::Vector)?;
                    // The first array is aligned to 16 bytes. The later arrays, which are the
                    // results, are not.
                    let ran = run(&machine, &case, &Placement { shift: 1, ..aligned })?;
                    let variant = if stores { Variant::Scalar } else { Variant::Vector };
                    same(format!("`{spec}` of {len}"), ran.variants[0], variant)?;
                    same(format!("`{spec}` of {len}"), &vectors.results, &ran.results)?;
                    let ran = run(&machine, &case, &Placement { offset: 1, ..aligned })?;
                    same(format!("`{spec}` of {len}"), ran.variants[0], Variant::Scalar)?;
                    same(format!("`{spec}` of {len}"), &vectors.results, &ran.results)?;
                }
            }
        }
        Ok(())
    });
}

/// A row has the bits of an array of the same elements if the same threads reduce both. This is
/// guaranteed to users.
fn a_row_has_the_bits_of_an_array() {
    each(|n, op, element| {
        let Some(spec) = of(Over::Rows, op, element) else { return Ok(()) };
        let mut random = Random::new(n as u64 + 5000);
        let (blocks, items) = (2 + n as u32 % 3, 1 + n as u32 % 2);
        let rows = spec.group(64).blocks(blocks).items(items);
        let mut array = rows.clone().over(Over::All);
        array.group = None;
        let (by_row, whole) = (Simulator::default(), Simulator::default());
        for len in [1, 64, 130, 900] {
            let case = Case::new(&rows, Shape::Tensor { outer: 3, len, inner: 1 }, random.bits());
            let results = run(&by_row, &case, &Placement::PACKED)?.results;
            for row in 0..3 {
                let shape = Shape::Tensor { outer: 1, len, inner: 1 };
                let mut alone = Case::new(&array, shape, 0);
                for (own, all) in alone.inputs.iter_mut().zip(&case.inputs) {
                    own.copy_from_slice(&all[row * len..][..len]);
                }
                let own = run(&whole, &alone, &Placement::PACKED)?.results;
                for (all, own) in results.iter().zip(&own) {
                    same(format!("`{array}` of row {row} of {len}"), all[row], own[0])?;
                }
            }
        }
        Ok(())
    });
}

/// A result of a single element depends only on this element.
fn single_elements_are_right_whatever_they_are() {
    use gemm_oracle::fold::Number;
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.5, 6e-8, 65504.0];
    each(|n, op, element| {
        for over in [Over::Rows, Over::Columns, Over::Segments] {
            let Some(spec) = of(over, op, element) else { continue };
            if !element.elem().is_float() {
                continue;
            }
            let spec = spec.group([1, 1, 2, 32][n % 4]).items(1 + n as u32 % 2);
            let machine = Simulator::default();
            for len in [1, 2, 3] {
                let (rows, inner) = if over == Over::Columns { (1, 8) } else { (8, 1) };
                let shape = match over {
                    Over::Segments => Shape::Segments((0..=8).map(|n| n * len as u64).collect()),
                    _ => Shape::Tensor { outer: rows, len, inner },
                };
                let mut case = Case::new(&spec, shape, n as u64);
                for (n, bits) in case.inputs[0].iter_mut().enumerate() {
                    let nth = if over == Over::Columns { n } else { n / len };
                    *bits = Number::Float(values[nth % 8]).bits(element.elem());
                }
                run(&machine, &case, &Placement::PACKED)?;
            }
        }
        Ok(())
    });
}

/// Among equal values, the index of the first is returned, even if the values are in different
/// threads, parts or rounds. The same holds for NaN.
fn the_first_of_equal_values_wins_anywhere() {
    use gemm_oracle::fold::Number;
    for op in [Op::Argmax, Op::Argmin] {
        for line in
            ["blocks: 3, block: 32", "over: rows, group: 4", "over: columns, block: 32", "float4"]
        {
            for value in [1.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let spec: ReduceSpec = line.parse().expect("a line");
                let spec = spec.op(op);
                let machine = Simulator::default();
                for len in [1, 33, 130, 300] {
                    let mut case = Case::new(&spec, Shape::Tensor { outer: 1, len, inner: 1 }, 1);
                    let bits = |x: f64| Number::Float(x).bits(case.elem());
                    let best = bits(if op == Op::Argmax { value } else { -value });
                    let worst =
                        bits(if op == Op::Argmax { f64::NEG_INFINITY } else { f64::INFINITY });
                    for at in [0, len / 2, len - 1] {
                        case.inputs[0].fill(worst);
                        case.inputs[0][at..].fill(best);
                        let ran = right(&machine, &case, &Placement::PACKED);
                        if best != worst {
                            assert_eq!(ran.results, [[at as u64]], "`{spec}` of {value}");
                        }
                    }
                }
            }
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![
        rows_are_right_whoever_folds_them,
        columns_are_right_however_many_threads_fold_one,
        segments_are_right_and_empty_ones_too,
        launch_forms_give_the_same_bits,
        the_only_warp_of_a_block_is_the_block,
        rows_of_vectors_are_as_rows_of_elements,
        columns_of_vectors_are_as_columns_of_elements,
        a_row_has_the_bits_of_an_array,
        single_elements_are_right_whatever_they_are,
        the_first_of_equal_values_wins_anywhere,
    ]
}
