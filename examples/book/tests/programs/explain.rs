//! Tests of `explain` as a program.

use super::{program, text};
use std::process::Output;

pub(super) fn explain(words: &[&str]) -> Output {
    program("explain").args(words).output().expect("a program that can be started")
}

/// Report of a spec without its source.
fn report(spec: &str) -> String {
    let output = explain(&[spec, "--no-source", "--arch", "90"]);
    assert!(output.status.success(), "{spec}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_spec_is_explained() {
    let product = explain(&["tile: 32x32x8, thread: 4x4, double_buffer", "--arch", "sm_90"]);
    let shown = text(&product.stdout);
    assert!(product.status.success(), "{}", text(&product.stderr));
    for part in ["64 (2 warps)", "4096 bytes", "Load of an SM, predicted", "__global__"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(product.stderr.is_empty(), "{}", text(&product.stderr));
    let reduction = report("block: 64, shuffle");
    assert!(reduction.contains("reduce_kernel!") && !reduction.contains("__global__"));

    let faulty = explain(&["tile: 32x32x8, thread: 5x4, warp: 7x7"]);
    assert_eq!(faulty.status.code(), Some(2));
    let faults = "tile: 32x32x8, thread: 5x4, warp: 7x7".parse::<gemm_runtime::SgemmSpec>();
    for fault in faults.expect_err("a faulty spec").iter() {
        assert!(text(&faulty.stderr).contains(fault.message()), "{}", text(&faulty.stderr));
    }
}

/// If a barrier is removed, the page shows the race. If the given line has no barrier, the message
/// names the lines with one.
#[test]
fn a_fault_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("fault.html");
    let words =
        |line| ["tile: 32x32x32", "--html", page.to_str().expect("a path"), "--without", line];
    let wrong = explain(&words("1"));
    assert_eq!(wrong.status.code(), Some(2));
    let lines = text(&wrong.stderr);
    let last = lines.trim_end().rsplit(' ').next().expect("a line with a barrier").to_owned();
    let right = explain(&words(&last));
    assert!(right.status.success(), "{}", text(&right.stderr));
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("data race on As[0][0]") && html.contains("this one"));
    let nowhere = explain(&["tile: 32x32x32", "--without", &last]);
    assert!(text(&nowhere.stderr).contains("Give --html FILE"), "{}", text(&nowhere.stderr));
}

/// The commands of the guide that draw a fault create their pages.
#[test]
fn the_guide_draws_a_fault() {
    let guide = include_str!("../../../../runtime/docs/guide/races.md");
    let commands =
        guide.lines().filter(|line| line.contains("explain -- ") && line.contains("--without"));
    let commands: Vec<&str> = commands.collect();
    assert!(!commands.is_empty());
    for command in commands {
        let folder = tempfile::tempdir().expect("a folder");
        let (_, words) = command.split_once(" -- ").expect("words");
        let words = shlex::split(words).expect("words of a shell");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output =
            program("explain").current_dir(&folder).args(&words).output().expect("it runs");
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        let at = words.iter().position(|word| *word == "--html").expect("a page") + 1;
        let html = std::fs::read_to_string(folder.path().join(words[at])).expect("the page");
        assert!(html.contains("data race on "), "{command}");
    }
}

/// An architecture-specific kernel is compiled for its architecture and refused on all others.
/// Labels do not touch their values.
#[test]
fn warpgroups_are_explained_where_they_are() {
    let line = "tile: 128x128x64, float4, arith: bf16, mma: wgmma";
    let all = explain(&[line, "--no-source"]);
    let shown = text(&all.stdout);
    assert!(all.status.success(), "{}", text(&all.stderr));
    assert!(
        shown.contains("2 x 1, each 64 x 128") && !shown.contains("could not compile"),
        "{shown}"
    );
    if !shown.contains("NVRTC") {
        assert_eq!(
            shown.matches("needs sm_90a").count(),
            gemm_dsl::target::arch::ALL.len() - 1,
            "{shown}"
        );
        let own = shown.lines().find(|line| line.contains("sm_90a") && !line.contains("needs"));
        let figures = own.map(|line| line.split_whitespace().count());
        assert!(figures.is_some_and(|figures| figures > 5), "{shown}");
    }
    let facts = shown.lines().take_while(|line| !line.contains("arch") && !line.contains("NVRTC"));
    for fact in facts.filter(|line| line.starts_with("  ") && line.len() > 24) {
        let (label, _) =
            fact.split_at(fact.char_indices().nth(24).map_or(fact.len(), |(at, _)| at));
        assert!(label.ends_with(' '), "{fact}");
    }
    for arch in ["90a", "sm_90a"] {
        assert!(explain(&[line, "--no-source", "--arch", arch]).status.success(), "{arch}");
    }
    assert_eq!(explain(&[line, "--arch", "80a"]).status.code(), Some(2));
}

#[test]
fn no_count_is_called_a_limit() {
    // On stage 12, a GPU reaches 0.51 of its peak FMA rate, although the wavefronts of the source
    // would allow only 0.32.
    for spec in ["", "tile: 64x64x8, thread: 8x8", "block: 128, items: 4, shuffle"] {
        let report = report(spec);
        assert!(report.contains("A GPU may need fewer cycles"), "{report}");
        for word in ["at most", "at least", "limit it", "keeps"] {
            assert!(!report.contains(word), "{word}: {report}");
        }
    }
}

#[test]
fn a_block_that_is_too_large_is_not_simulated() {
    for spec in ["coarsen: 67108864", "items: 4194304"] {
        let report = report(spec);
        assert!(report.contains("the block is too large to simulate: it"), "{report}");
    }
    // The shape shrinks to one block with small extents.
    assert!(
        report("items: 32769").contains("Counters at 16777728 elements (the first of 2 launches)")
    );
    assert!(report("coarsen: 4096").contains("Counters at m = 16, n = 65536, k = 64, on"));
}

#[test]
fn every_kind_of_reduction_is_counted() {
    for (line, counted) in [
        ("op: argmax", "2048 elements"),
        ("map: |x, y| x * y, launch: once", "2048 elements, on"),
        ("op: mean_var, over: rows, type: f16, pitched", "rows of 64 elements, on"),
        ("op: max, type: u64, over: columns, launch: once, blocks: 8", "columns of"),
        ("over: middle, float4, group: 2", "matrices of"),
        ("over: segments, group: 8", "segments of 16 elements, on"),
        ("fold: |a, b| max(a, b), identity: 0, type: i64", "2048 elements"),
    ] {
        let output = explain(&[line, "--arch", "90", "--family", "reduce"]);
        let (report, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        assert!(report.contains(counted) && report.contains("__global__"), "{line}: {report}");
    }
}

#[test]
fn a_line_goes_to_the_macro_that_it_is_written_for() {
    let message = |words: &[&str]| {
        let output = explain(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    let power = "`block: 96` is not a power of two";
    for line in ["block: 96", "reduce_kernel!(block: 96)", "<block: 96>"] {
        assert!(message(&[line]).contains(power), "{line}: {}", message(&[line]));
    }
    assert!(message(&["block: 96", "--family", "sgemm"]).contains("RxC"));
    assert!(message(&["sgemm_kernel!(block: 96)"]).contains("RxC"));
    let size = message(&["block: 48x48"]);
    assert!(size.contains("`block: 48x48`") && size.contains("read as sgemm_kernel!"), "{size}");
    assert!(message(&["max_kernel!(op: max)"]).contains("reduce_kernel! and sgemm_kernel!"));
    let twice = message(&["reduce_kernel!(op: max)", "--family", "sgemm"]);
    assert!(twice.contains("Leave out --family"), "{twice}");

    // The output repeats the call of the macro.
    let report = report("reduce_kernel!(op: max)");
    let first = report.lines().next().expect("a line");
    assert_eq!(first, "reduce_kernel!(op: max)");

    let output = explain(&["name: foo", "--no-source", "--arch", "90"]);
    let note = text(&output.stderr);
    assert!(text(&output.stdout).starts_with("sgemm_kernel!(name: foo)"));
    let other = "reduce_kernel!(name: foo)";
    for part in ["read as sgemm_kernel!(name: foo)", other, "--family reduce"] {
        assert!(note.contains(part), "{note}");
    }
    for words in [&[other][..], &["name: foo", "--family", "reduce"]] {
        assert!(text(&explain(words).stdout).starts_with(other));
    }

    // The note suggests the other macro only if the spec is valid for it.
    for (line, read) in [("block: 256", "reduce_kernel"), ("block: 16x16", "sgemm_kernel")] {
        let output = explain(&[line, "--no-source", "--arch", "90"]);
        let note = text(&output.stderr);
        let expected = format!("read as {read}!({line})");
        assert!(note.contains(&expected) && !note.contains("other macro"), "{note}");
    }
}

#[test]
fn a_line_that_nests_without_end_is_refused() {
    let output = explain(&[&format!("tile: {}{}", "(".repeat(30_000), ")".repeat(30_000))]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

/// The page states the reason for a missing compiler report.
#[test]
fn a_refusal_is_on_the_page() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let page = folder.path().join("page.html").display().to_string();
    let line = "tile: 64x64x16, float4, arith: bf16, mma: wgmma";
    let output = explain(&["--html", &page, "--arch", "80", "--family", "sgemm", line]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("The compiler reported nothing: for sm_80, needs sm_90a."), "{html}");
    assert!(html.contains("explain --html FILE --family sgemm --arch 80 &#39;tile: 64x64x16"));
}

/// A page is written to the given file and shows the changes since another spec. After an error
/// there is no file.
#[test]
fn a_page_is_written() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let spec = "tile: 32x32x8, thread: 4x4, float4";
    let page = path("page.html");
    let output = explain(&["--html", &page, "--against", "tile: 32x32x8, thread: 4x4", spec]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let html = std::fs::read_to_string(&page).expect("the page");
    for part in ["<!doctype html>", "What changed since", "<code>float4</code>", "bank"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains(&folder.path().display().to_string()), "a page knows no path");
    let again = path("again.html");
    let output = explain(&["--html", &again, "--against", "tile: 32x32x8, thread: 4x4", spec]);
    assert!(output.status.success());
    assert_eq!(html, std::fs::read_to_string(&again).expect("the page"));

    let command = "explain --html FILE --against &#39;tile: 32x32x8, thread: 4x4&#39; &#39;tile: \
                   32x32x8, thread: 4x4, float4&#39;";
    assert!(html.contains(command), "the page names what makes it");

    let object = explain(&["--json", spec]);
    let object: serde_json::Value = serde_json::from_slice(&object.stdout).expect("JSON");
    assert_eq!((&object["line"], &object["threads"]), (&spec.into(), &64.into()));
    assert!(object["source"].as_array().is_some_and(|lines| lines.len() > 40));

    let none = path("none.html");
    for (words, says) in [
        (vec!["--html", &none, "tile: 32x32x8, thread: 5x4"], "thread: 5x4"),
        (vec!["--html", &none, spec, "--against", "block: 7, shuffle"], "block"),
        (vec![spec, "--against", "tile: 32x32x8, thread: 4x4"], "--html"),
    ] {
        let output = explain(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
        assert!(!std::path::Path::new(&none).exists());
    }
    let nowhere = explain(&["--html", &path("nowhere/page.html"), spec]);
    let message = text(&nowhere.stderr);
    assert!(!nowhere.status.success() && message.contains("nowhere/page.html"), "{message}");
    // An unwritable page is reported before the long computation, and leaves no file.
    let folder_itself = folder.path().display().to_string();
    for (page, says) in [(&*folder_itself, &*folder_itself), (&none, "too large to simulate")] {
        let refused = explain(&["--html", page, "items: 4194304"]);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(says), "{}", text(&refused.stderr));
        assert!(!std::path::Path::new(&none).exists());
    }
    // `-` is the standard output, as in other programs.
    let piped = program("explain").args(["--html", "-", spec]).current_dir(folder.path()).output();
    let piped = piped.expect("a program that can be started");
    let html = text(&piped.stdout);
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    assert!(!folder.path().join("-").exists());
}

/// Output of `explain --json` for these arguments.
fn object(words: &[&str]) -> serde_json::Value {
    let output = explain(&[&["--json"], words].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The page of a GEMM with `bounds: aligned` explains the missing edges. Specs with pointer lists,
/// and reductions with `any` and `all`, also have pages.
#[test]
fn lines_of_every_kind_have_a_page() {
    for line in [
        "block: 16x16, bounds: aligned",
        "tile: 32x32x8, thread: 4x4, bounds: aligned, split_k: 3",
        "tile: 32x32x8, thread: 4x4, bounds: aligned, batch: strided, products: 3",
        "tile: 64x64x16, float4, arith: bf16, warp: 32x32, bounds: aligned",
        "tile: 64x64x64, float4, arith: bf16, mma: wgmma, bounds: aligned",
    ] {
        let object = object(&[line]);
        let why = object["no_edges"].as_str().unwrap_or_default();
        assert!(
            object["edges"].is_null() && why.contains("m must be a multiple of"),
            "{line}: {why}"
        );
    }
    let page = text(&explain(&["--html", "-", "block: 16x16, bounds: aligned"]).stdout);
    assert!(page.contains("<h2 id=\"edges-h\">") && page.contains("no access is guarded"));
    for line in [
        "op: any",
        "op: all, type: i32",
        "op: any, over: rows, type: f16",
        "over: segments, index: u64",
    ] {
        assert!(object(&[line])["work"].as_u64() > Some(0), "{line}");
        assert!(report(line).contains("Counters at"), "{line}");
    }
    let lists = object(&["tile: 32x32x8, thread: 4x4, batch: pointers"]);
    let alone = object(&["tile: 32x32x8, thread: 4x4"]);
    assert_eq!(lists["work"], alone["work"]);
    assert!(report("tile: 32x32x8, thread: 4x4, batch: pointers").contains("multiply-adds"));
}

/// Two specs are compared at a common shape. If there is no common shape, or the other spec fails,
/// the message says so.
#[test]
fn specs_are_compared_where_both_can_be_launched() {
    let small = "tile: 32x32x8, thread: 4x4";
    let large = "tile: 128x128x8, thread: 8x8, bounds: aligned";
    let together = object(&[small, "--against", large]);
    assert_eq!(together["shape"], "m = 128, n = 128, k = 64");
    assert!(together["change"]["counters"].as_array().is_some_and(|of| !of.is_empty()));
    let same = object(&[small, "--against", small]);
    assert_eq!(same["change"]["is_same_kernel"], true);
    let page = text(&explain(&["--html", "-", small, "--against", small]).stdout);
    assert!(page.contains("<p>Both specs have the same <a") && !page.contains("<tbody></tbody>"));
    // A spec without a batch is launched once for each GEMM of the batch of the other spec.
    let batch = object(&[small, "--against", &format!("{small}, batch: strided, products: 2")]);
    assert_eq!(batch["change"]["launches"], serde_json::json!([1, 3]));
    let [of_48, of_32] = ["tile: 48x48x12, thread: 4x4", "tile: 32x32x8, thread: 4x4"]
        .map(|tile| format!("{tile}, bounds: aligned"));
    let coprime = object(&[&of_48, "--against", &of_32]);
    assert_eq!(coprime["shape"], "m = 96, n = 96, k = 96");

    for (line, other, says) in [
        ("tile: 30x30x8, thread: 2x2, bounds: aligned", large, "no shape that both specs accept"),
        (small, "reduce_kernel!(items: 4)", "the spec is a call of reduce_kernel!"),
    ] {
        let output = explain(&["--json", line, "--against", other]);
        let message = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{message}");
        assert!(message.contains(says) && !message.contains("--family"), "{message}");
    }
    assert_eq!(explain(&["--html", "-", "--no-source", small]).status.code(), Some(2));
}

/// A closed pipe is not an error, but a full device is.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_nobody_reads_is_no_fault() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let page = folder.path().join("page.html");
    for target in [page.as_os_str(), "-".as_ref()] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let explained = |out: std::process::Stdio| {
            let mut explain = program("explain");
            explain.arg("--html").arg(target).arg("tile: 16x16x8, thread: 2x2").stdout(out);
            explain.stderr(std::process::Stdio::piped()).output().expect("a program that starts")
        };
        let closed = explained(writer.into());
        assert!(closed.status.success(), "{}", text(&closed.stderr));
        let full = explained(full.into());
        let message = text(&full.stderr);
        assert_eq!(full.status.code(), Some(2), "{message}");
        assert!(message.starts_with("error: cannot write"), "{message}");
    }
}
