//! Tests of `ladder` and `profile` as programs.

use super::{program, refusal, run, text};
use gemm_dsl::stages;
use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Runs `ladder` on the simulator.
fn ladder(line: &str) -> Output {
    run("ladder", &format!("{line} --device simulator"))
}

/// JSON objects of a successful run.
fn rows(line: &str) -> Vec<Value> {
    let output = ladder(&format!("{line} --json"));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    let parse = |line: &str| serde_json::from_str(line).expect(line);
    text(&output.stdout).lines().map(parse).collect()
}

fn column<'r>(rows: &'r [Value], counter: &str) -> Vec<&'r Value> {
    rows.iter().map(|row| &row["counters"][counter]).collect()
}

/// Writes an array to an `npy` file and returns its path.
fn npy<T: AutoSerialize>(dir: &Path, name: &str, shape: &[u64], elements: &[T]) -> String {
    let path = dir.join(name);
    let file = std::fs::File::create(&path).expect("a file");
    let options = WriteOptions::<T>::new().default_dtype().shape(shape);
    let mut writer = options.writer(file).begin_nd().expect("a header");
    elements.iter().try_for_each(|element| writer.push(element)).expect("written");
    writer.finish().expect("all elements");
    path.display().to_string()
}

#[test]
fn the_reductions_are_eight_objects_with_all_keys() {
    let rows = rows("reduce --n 1000 --seed 3");
    assert_eq!(rows.len(), 8);
    let keys = [
        "ladder",
        "index",
        "stage",
        "spec",
        "device",
        "n",
        "result",
        "reference",
        "rel_err",
        "ok",
        "time_ms",
        "gb_s",
        "registers",
        "counters",
    ];
    for (index, row) in rows.iter().enumerate() {
        let object = row.as_object().expect("an object");
        assert!(keys.iter().all(|key| object.contains_key(*key)), "{row}");
        assert_eq!((&row["ladder"], &row["index"]), (&Value::from("reduce"), &Value::from(index)));
        assert_eq!((&row["device"], &row["n"]), (&Value::from("simulator"), &Value::from(1000)));
        assert_eq!((&row["ok"], &row["time_ms"]), (&Value::from(true), &Value::Null));
        assert!(row["counters"]["instructions"].as_u64() > Some(0));
    }
}

#[test]
fn the_counters_of_the_reductions_are_those_of_the_catalogue() {
    let rows = rows("reduce --n 12800 --block 128");
    assert_eq!(column(&rows, "block_barriers"), [8, 8, 8, 8, 2, 1, 3, 3]);
    let conflicts = column(&rows, "shared_bank_conflicts");
    assert!(conflicts[1].as_u64() > Some(0));
    assert!(conflicts[2..].iter().all(|count| **count == 0), "{conflicts:?}");
}

#[test]
fn every_operator_and_an_empty_array_are_right() {
    for op in ["sum", "prod", "max", "min"] {
        assert_eq!(rows(&format!("reduce --n 4097 --op {op}")).len(), 8);
    }
    for row in rows("reduce --n 0") {
        assert_eq!((&row["result"], &row["ok"]), (&Value::from(0.0), &Value::from(true)));
    }
}

#[test]
fn a_product_of_each_stage_is_an_object_with_its_extents() {
    let rows = rows("sgemm --m 33 --n 20 --k 17 --seed 3");
    assert_eq!(rows.len(), stages::sgemm().len());
    for row in &rows {
        let extent = |key: &str| row[key].as_u64();
        assert_eq!([extent("m"), extent("n"), extent("k")], [Some(33), Some(20), Some(17)]);
        assert_eq!(row["ok"], true);
        assert_eq!(row["rel_err"], row["max_err"]);
        let object = row.as_object().expect("an object");
        assert!(object.contains_key("gflops") && object.contains_key("vs_cublas"));
    }
}

#[test]
fn a_batch_is_an_object_of_all_its_products() {
    let rows = rows("sgemm --m 9 --n 20 --k 7 --batch 3 --seed 3");
    assert_eq!(rows.len(), stages::sgemm().len());
    for row in &rows {
        assert_eq!((&row["batch"], &row["ok"]), (&Value::from(3), &Value::from(true)), "{row}");
        assert!(row["spec"].as_str().is_some_and(|spec| spec.contains("batch: strided")), "{row}");
    }
    let fmas = |rows: &[Value]| rows[0]["counters"]["fmas"].as_u64();
    let single = self::rows("sgemm --m 9 --n 20 --k 7 --seed 3");
    assert_eq!((fmas(&rows), single[0]["batch"].is_null()), (fmas(&single).map(|n| 3 * n), true));
    let output = ladder("sgemm --size 5 --batch 2 --seed 1");
    assert!(text(&output.stdout).starts_with("GEMMs of 2 times 5 on simulator"));
    assert!(text(&ladder("sgemm --source 17 --batch 2").stdout).contains("BATCH"));
}

#[test]
fn a_degenerate_product_is_right_too() {
    assert_eq!(rows("sgemm --m 5 --n 4 --k 0").len(), stages::sgemm().len());
    // A GEMM without elements is refused.
    assert!(refusal("sgemm --size 0").contains("a GEMM of 0 x 0 x 0 has no elements"));
}

#[test]
fn stages_with_two_widths_run_at_both() {
    let rows = rows("sgemm --size 16 --block 16,32");
    let naive = rows.iter().filter(|row| row["stage"] == "naive");
    let specs: Vec<&Value> = naive.map(|row| &row["spec"]).collect();
    assert_eq!(specs.len(), 2);
    assert_eq!(rows.len(), stages::sgemm().len() + 6);
}

#[test]
fn real_input_is_reduced_and_multiplied() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let x = npy(dir.path(), "x.npy", &[3], &[1.5_f32, -2.0, 4.0]);
    for row in rows(&format!("reduce --input {x}")) {
        assert_eq!((&row["result"], &row["reference"]), (&Value::from(3.5), &Value::from(3.5)));
    }
    let a = npy(dir.path(), "a.npy", &[3, 5], &[1.0_f32; 15]);
    let b = npy(dir.path(), "b.npy", &[5, 2], &[1.0_f32; 10]);
    for row in rows(&format!("sgemm --input {a} {b}")) {
        assert_eq!((&row["m"], &row["n"]), (&Value::from(3), &Value::from(2)));
        assert_eq!(row["result"], 5.0);
    }
    let message = refusal(&format!("sgemm --input {a} {a}"));
    assert!(message.contains("3x5"), "{message}");
}

#[test]
fn faulty_input_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let wide = npy(dir.path(), "wide.npy", &[3], &[1.0_f64; 3]);
    let nan = npy(dir.path(), "nan.npy", &[2], &[1.0, f32::NAN]);
    let square = npy(dir.path(), "square.npy", &[2, 2], &[1.0_f32; 4]);
    let cut = npy(dir.path(), "cut.npy", &[100], &[1.0_f32; 100]);
    let bytes = std::fs::read(&cut).expect("the file");
    std::fs::write(&cut, &bytes[..bytes.len() - 10]).expect("written");
    for (path, reason) in [
        (wide.as_str(), "float64"),
        (nan.as_str(), "NaN at index 1"),
        (square.as_str(), "2 dimensions"),
        (cut.as_str(), "truncated"),
        ("no-such.npy", "no-such.npy"),
    ] {
        let message = refusal(&format!("reduce --input {path}"));
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_product_that_may_leave_the_range_on_the_way_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let beyond = [vec![1e30_f32, 1e30, 1e-30, 1e-30], [vec![1e30; 64], vec![0.0]].concat()];
    for values in beyond {
        let path = npy(dir.path(), "x.npy", &[values.len() as u64], &values);
        let message = refusal(&format!("reduce --op prod --input {path}"));
        assert!(message.contains("float32 ends at 3.4e38"), "{message}");
        assert!(message.contains("closer to 1"), "{message}");
    }
}

#[test]
fn numbers_that_json_lacks_have_names() {
    for row in rows("reduce --op max --n 0") {
        assert_eq!((&row["result"], &row["reference"]), (&"-inf".into(), &"-inf".into()));
        assert_eq!(row["ok"], true);
    }
}

#[test]
fn a_sum_of_small_numbers_is_a_number() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = npy(dir.path(), "x.npy", &[2], &[1e-39_f32, 2e-39]);
    assert_eq!(rows(&format!("reduce --input {path}")).len(), 8);
}

#[test]
fn bad_usage_is_refused() {
    assert!(refusal("reduce --block 100").contains("block: 100"));
    assert!(refusal("sgemm --op max").contains("ladder reduce"));
    assert!(refusal("reduce --plot picture.pdf").contains(".svg or .png"));
    assert!(refusal("reduce --source nothing").contains("no stage has this name"));
    assert!(refusal("reduce --n 2^60").contains("memory"));
    assert!(refusal("sgemm --size 2^40").contains("memory"));
    assert!(refusal("sgemm --size 8 --batch 2^60").contains("8 x 8 elements do not fit"));
    assert!(refusal("sgemm --size 8 --batch 0").contains("--batch 0"));
    assert_eq!(run("ladder", "--no-such-option").status.code(), Some(2));
}

#[test]
fn a_table_shows_every_stage_and_what_it_gained() {
    let output = ladder("reduce --n 10000 --block 128 --seed 1");
    let table = text(&output.stdout);
    assert_eq!(table.matches('✓').count(), 8, "{table}");
    assert!(table.contains("block barriers 8 → 2") && table.contains("seed 1"), "{table}");
}

#[test]
fn tables_are_as_wide_as_the_terminal() {
    let table = |line: &str, columns: Option<&str>| {
        let mut ladder = program("ladder");
        columns.map(|columns| ladder.env("COLUMNS", columns));
        let words = line.split_whitespace().chain(["--device", "simulator"]);
        let output = ladder.args(words).output().expect("a program that can be started");
        text(&output.stdout)
    };
    let width = |text: &str| text.lines().map(|line| line.chars().count()).max();
    for line in ["reduce --n 5000 --seed 1", "sgemm --size 20 --seed 1"] {
        for columns in ["80", "100", "120", "160"] {
            let table = table(line, Some(columns));
            assert!(width(&table) <= columns.parse().ok(), "{columns}:\n{table}");
            assert!(columns == "160" || table.contains("Too narrow for: error"), "{table}");
            assert!(table.contains("since the previous") && table.contains('→'), "{table}");
        }
        // Output to a pipe has no width limit.
        assert!(!table(line, None).contains("Too narrow") && width(&table(line, None)) > Some(160));
    }
}

#[test]
fn sources_and_pictures() {
    let source = text(&ladder("sgemm --source double_buffer").stdout);
    assert!(source.contains("__global__") && source.contains("double_buffer"));
    assert_eq!(source, text(&ladder("sgemm --source 17").stdout));
    // Stages that are not in the table also have a source.
    let online = text(&ladder("reduce --source online --op max").stdout);
    assert!(online.contains("reduce_kernel!(op: logsumexp"), "{online}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    for name in ["plot.svg", "plot.png"] {
        let path = dir.path().join(name);
        let output = ladder(&format!("sgemm --size 16,32 --plot {}", path.display()));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(path.metadata().expect("a picture").len() > 1000);
    }
}

/// An unwritable folder is refused before the pages are rendered.
#[test]
fn a_book_that_cannot_be_written_is_refused_at_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let start = std::time::Instant::now();
    for folder in [file.clone(), file.join("book")] {
        let folder = folder.display().to_string();
        assert!(refusal(&format!("--html {folder}")).contains(&folder));
    }
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert!(refusal(&format!("--html {} --seed 3", file.display())).contains("--seed"));
}

/// `profile` refuses requests that it cannot run. `--compiled` requires the simulator.
#[test]
fn a_profile_of_nothing_is_refused() {
    for (line, says) in [
        ("--device simulator", "--product 512"),
        ("--device simulator --stage 99", "nothing to launch"),
        ("--device simulator --stage 99 --matrix 8x8", "--stage 99"),
        ("--device simulator --stage 40 --matrix 8x8", "--stage 40"),
        ("--device cuda --compiled --stage 1 --matrix 8x8", "--compiled"),
    ] {
        let output = run("profile", line);
        let message = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{line}");
        assert!(message.contains(says), "{line}: {message}");
    }
    let asked = run("profile", "--device simulator --compiled --stage 1 --matrix 8x8");
    assert!(text(&asked.stdout).contains("\"compiled\""), "{}", text(&asked.stderr));
    let unasked = run("profile", "--compiled --stage 1 --matrix 8x8");
    assert_eq!(asked.stdout, unasked.stdout);
}
