//! Shipped tables: every rule is correct for any shape, on the simulator.

use crate::reduce::each::{each, same};
use gemm_dsl::spec::{Over, ReduceSpec, newer_word};
use gemm_dsl::tables::KernelTable;
use gemm_dsl::tables::shipped::tuned;
use gemm_oracle::random::Random;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape};
use libtest_mimic::Trial;

/// Random small shape, including empty ones and lengths that are not a multiple of a vector.
fn shape(over: Over, random: &mut Random) -> Shape {
    let mut below = |n: usize| (random.bits() as usize) % n;
    let len = match below(4) {
        0 => [0, 1, 2, 3, 4, 15, 16, 17, 32, 255, 256, 257, 1000][below(13)],
        1 => 16 * below(20),
        _ => below(300),
    };
    let few = 2_000 / (len + 1) + 2;
    match over {
        Over::All => Shape::Tensor { outer: 1, len: len * 3, inner: 1 },
        Over::Rows => Shape::Tensor { outer: below(few.min(20)), len, inner: 1 },
        Over::Columns => {
            Shape::Tensor { outer: 1, len, inner: [below(10), 16 * below(4)][below(2)] }
        }
        Over::Middle => {
            Shape::Tensor { outer: below(4), len: len / 2, inner: [below(10), 16][below(2)] }
        }
        Over::Segments => {
            let mut offsets = vec![below(5) as u64];
            for _ in 0..below(few.min(20)) {
                let next =
                    offsets[offsets.len() - 1] + [0, below(2 * len + 1)][below(4).min(1)] as u64;
                offsets.push(next);
            }
            Shape::Segments(offsets)
        }
        over => newer_word(over),
    }
}

fn chosen(table: &KernelTable<ReduceSpec>, shape: &Shape) -> usize {
    let (outer, len, inner) = match shape {
        Shape::Tensor { outer, len, inner } => (*outer as u64, *len as u64, *inner as u64),
        Shape::Segments(offsets) => (offsets.len() as u64 - 1, offsets[offsets.len() - 1], 1),
    };
    table.choose(&(outer, len, inner)).unwrap_or_else(|error| panic!("{error}"))
}

/// Every rule is correct, even for shapes for which the table does not choose it.
fn every_row_of_every_table_is_right_of_any_shape() {
    each(|n, op, element| {
        for (at, over) in Over::ALL.iter().enumerate() {
            let mut random = Random::new((n * 16 + at) as u64);
            let line = format!("op: {op}, type: {element}, over: {over}");
            // Combinations of keys that the type does not support have no table.
            let Ok(what) = line.parse::<ReduceSpec>() else { continue };
            let table = tuned(&what).map_err(|faults| format!("{line}: {faults}"))?;
            for row in table.rules() {
                let machine = Simulator::default();
                for _ in 0..gemm_cases::scaled(2) {
                    let shape = shape(*over, &mut random);
                    let case = Case::new(&row.spec, shape, random.bits());
                    run(&machine, &case, &Placement::random(&mut random))?;
                }
            }
            for _ in 0..gemm_cases::scaled(3) {
                let shape = shape(*over, &mut random);
                let row = &table.rules()[chosen(&table, &shape)];
                let case = Case::new(&row.spec, shape.clone(), random.bits());
                let ran = run(&Simulator::default(), &case, &Placement::PACKED)?;
                // The choice, and therefore the bits, depend only on the shape.
                let again = tuned(&what.clone().block(64)).map_err(|faults| faults.to_string())?;
                same(&line, chosen(&again, &shape), chosen(&table, &shape))?;
                same(
                    &line,
                    run(&Simulator::default(), &case, &Placement::PACKED)?.results,
                    ran.results,
                )?;
            }
        }
        Ok(())
    });
}

/// Rules are correct for the shapes for which they were tuned: long rows, many rows, wide matrices.
fn rows_for_large_shapes_are_right_of_them() {
    for (line, shapes) in [
        (
            "over: rows",
            vec![[3, 32768, 1], [2, 32770, 1], [600, 300, 1], [3, 4096, 1], [2, 1026, 1]],
        ),
        ("type: u8, over: rows", vec![[2, 32768, 1], [512, 1040, 1], [2, 33_000, 1]]),
        (
            "over: columns",
            vec![
                [1, 3, 65536],
                [1, 17, 65536],
                [1, 129, 2048],
                [1, 130, 515],
                [1, 65536, 4],
                [1, 200, 33],
            ],
        ),
        ("op: mean_var, over: columns", vec![[1, 2, 65537], [1, 65536, 4]]),
        (
            "over: middle",
            vec![[2, 3, 32768], [8, 17, 8192], [128, 3, 513], [2, 1024, 70], [9, 20, 999]],
        ),
        ("op: argmax, type: f16, over: middle", vec![[128, 3, 513], [2, 1025, 70]]),
        ("", vec![[1, 300_000, 1]]),
        ("op: logsumexp, over: rows", vec![[2, 32768, 1], [513, 258, 1], [2, 2052, 1]]),
    ] {
        let what: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
        let table = tuned(&what).unwrap_or_else(|faults| panic!("{line}: {faults}"));
        let mut rows = Vec::new();
        for [outer, len, inner] in shapes {
            let shape = Shape::Tensor { outer, len, inner };
            let row = chosen(&table, &shape);
            rows.push(row);
            let case = Case::new(&table.rules()[row].spec, shape, len as u64);
            run(&Simulator::default(), &case, &Placement::PACKED)
                .unwrap_or_else(|wrong| panic!("{wrong}"));
        }
        rows.sort_unstable();
        rows.dedup();
        assert!(rows.len() > 1 || line.is_empty(), "{line}: {rows:?}");
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![
        every_row_of_every_table_is_right_of_any_shape,
        rows_for_large_shapes_are_right_of_them,
    ]
}
