//! Accepted and refused options.

use super::*;

fn parsed(line: &str) -> Result<ScaleOptions, String> {
    let words = std::iter::once("scale").chain(line.split_whitespace());
    ScaleOptions::try_parse_from(words).map_err(|error| error.to_string())
}

fn options(line: &str) -> ScaleOptions {
    parsed(line).expect(line)
}

fn told<T>(outcome: Result<T, Failure>) -> String {
    outcome.map(|_| ()).expect_err("it cannot be").to_string()
}

#[test]
fn invalid_numbers_are_reported_with_their_option() {
    for option in ["simulated", "ranks", "size", "sum", "predict", "rounds"] {
        for (value, need) in [
            ("0", "at least 1"),
            ("-3", "negative"),
            ("x", "not a whole number"),
            ("2^64", "too large"),
        ] {
            let error = parsed(&format!("--{option} {value}")).expect_err(option);
            assert!(
                error.contains(&format!("--{option} <"))
                    && error.contains(&format!("'{value}'"))
                    && error.contains(need),
                "{error}"
            );
        }
    }
    let error = parsed("--predict 4 --host 0").expect_err("no host");
    assert!(error.contains("--host") && error.contains("at least 1"), "{error}");
    let error = parsed("--predict 8,100000").expect_err("too many");
    assert!(error.contains("'100000'") && error.contains("at most 2048"), "{error}");
    let error = parsed("--carry pigeons").expect_err("nothing");
    assert!(error.contains("`peers`, `nccl` or `host`"), "{error}");
}

#[test]
fn contradictory_options_are_rejected() {
    for line in [
        "--simulated 2 --gpus 0",
        "--predict 2 --simulated 2",
        "--predict 2 --gpus 0",
        "--predict 2 --ranks 2",
    ] {
        let error = parsed(line).expect_err(line);
        assert!(error.contains("cannot be used with"), "{error}");
    }
    let error = parsed("--host 4").expect_err("it is for predictions");
    assert!(error.contains("--predict"), "{error}");
}

#[test]
fn gpus_that_are_not_there_are_not_simulated() {
    let options = options("--gpus 9999,0");
    assert!(matches!(options.is_simulated(), Ok(false)));
    for error in [told(options.ranks()), told(options.devices(2))] {
        assert!(error.starts_with("--gpus 9999: the"), "{error}");
    }
}

#[test]
fn ranks_are_those_that_there_are() {
    let of = |line: &str| options(line).ranks().map_err(|error| error.to_string());
    assert_eq!(of("--simulated 1"), Ok(vec![1]));
    assert_eq!(of("--simulated 6"), Ok(vec![1, 2, 4, 6]));
    assert_eq!(of("--simulated 8 --ranks 3,8"), Ok(vec![3, 8]));
    let error = of("--simulated 4 --ranks 2,5").expect_err("too many");
    assert_eq!(error, "--ranks 5: it must be from 1 to 4, the number of devices");
}

#[test]
fn the_carry_option_is_obeyed_or_rejected() {
    let options = options("--simulated 2 --carry nccl");
    let error = told(options.devices(2).and_then(|devices| options.world(devices)));
    assert_eq!(
        error,
        "--carry nccl: `nccl` for simulated devices cannot be used: their data goes \
         through the host"
    );
}

#[test]
fn predictions_are_of_what_was_measured() {
    let name = |line: &str, ranks| {
        options(line)
            .machine(ranks)
            .map(|machine| (machine.name, machine.hosts.map(|hosts| hosts.gpus)))
    };
    let of = |line: &str, ranks| name(line, ranks).map_err(|error| error.to_string());
    assert_eq!(of("--predict 8", 8), Ok(("H200, NCCL", None)));
    assert_eq!(of("--predict 9 --host 4", 9), Ok(("H200, NCCL", Some(4))));
    assert_eq!(of("--predict 8 --carry peers", 8), Ok(("H200, copy engines", None)));
    let error = of("--predict 9 --carry peers", 9).expect_err("several hosts");
    assert!(
        error.starts_with("--carry peers: 9 ranks span several hosts of 8 GPUs each"),
        "{error}"
    );
    let error = of("--predict 2 --carry host", 2).expect_err("not measured");
    assert!(
        error.starts_with("--carry host: the transfer rate through a host has not been measured"),
        "{error}"
    );
    let error = told(options("--predict 4 --size 2^33").check_predictions());
    assert!(
        error.starts_with("--size 8589934592: the matrices of such a GEMM on 4 ranks"),
        "{error}"
    );
    let error = told(options("--predict 2048 --weak --size 2^30").check_predictions());
    assert!(error.starts_with("--size 1073741824: "), "{error}");
}

#[test]
fn lines_are_predicted_where_their_arithmetic_has_a_rate() {
    let of = |line: &str| {
        let line = Some(line.to_owned());
        ScaleOptions { line, ..options("--predict 2 --size 4096") }.check_predictions()
    };
    let rated = "tile: 128x128x32, arith: bf16x6, mma: wgmma";
    for line in [rated, &fastest().expect("a stage").to_string()] {
        assert!(of(line).is_ok(), "{line}: {}", told(of(line)));
    }
    let error = told(of("tile: 32x32x16"));
    assert!(error.contains("only the stage `fastest`") && error.starts_with("--line"), "{error}");
    assert!(told(of("tile: 64x64x16x")).starts_with("--line"));
}

#[test]
fn lines_that_fold_no_array_are_named() {
    let mut of = options("");
    assert!(of.sum_kernel().is_ok());
    for (line, need) in [
        ("op: sum, over: rows, group: 256, run: 65536", "it reduces rows"),
        ("op: max", "Add it, as in `run: 65536`"),
        ("op: argmax, run: 65536", ""),
        ("op: sum, run: 7", "`run"),
        ("op: nothing", "nothing"),
    ] {
        of.sum_line = line.to_owned();
        let error = told(of.sum_kernel());
        assert!(
            error.starts_with(&format!("--sum-line \"{line}\": ")) && error.contains(need),
            "{error}"
        );
    }
    of.sum_line = "op: max, block: 256, run: 65536".to_owned();
    assert!(of.sum_kernel().is_ok());
    let error = told(options("--line nothing").kernel());
    assert!(error.starts_with("--line \"nothing\": "), "{error}");
}

#[test]
fn files_are_asked_for_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let of =
        |json: &str, plot: &str| options(&format!("--json {json} --plot {plot}")).check_files();
    assert!(of(&path("a.json"), &path("a.svg")).is_ok());
    for (json, plot, option) in [
        (path("no/a.json"), path("a.svg"), "--json"),
        (path(""), path("a.svg"), "--json"),
        (path("a.json"), path("no/a.svg"), "--plot"),
        (path("a.json"), path("a.gif"), "--plot"),
    ] {
        let error = told(of(&json, &plot));
        let wrong = if option == "--json" { &json } else { &plot };
        assert!(error.contains(option) && error.contains(wrong.as_str()), "{error}");
    }
}
