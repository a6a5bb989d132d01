//! Macro calls in files of Rust tokens.

use crate::error::Error;
use gemm_dsl::Plan;
use gemm_dsl::parse;
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::tables::{KernelTable, TableFamily};
use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

const SGEMM_KERNEL: &str = "sgemm_kernel";
const GEMM_KERNEL: &str = SgemmSpec::TYPED;
const REDUCE_KERNEL: &str = "reduce_kernel";
const MAP_KERNEL: &str = "map_kernel";
const ROW_KERNEL: &str = "row_kernel";
const SCAN_KERNEL: &str = "scan_kernel";
const SGEMM_TABLE: &str = "sgemm_table";
const GEMM_TABLE: &str = "gemm_table";
const REDUCE_TABLE: &str = "reduce_table";
const MACROS: [&str; 9] = [
    SGEMM_KERNEL,
    GEMM_KERNEL,
    REDUCE_KERNEL,
    MAP_KERNEL,
    ROW_KERNEL,
    SCAN_KERNEL,
    SGEMM_TABLE,
    GEMM_TABLE,
    REDUCE_TABLE,
];

/// Specs that a file contains.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) gemms: Vec<String>,
    pub(crate) reductions: Vec<String>,
    pub(crate) maps: Vec<String>,
    pub(crate) scans: Vec<String>,
    /// Calls whose tokens contain `$`, so that the spec depends on the call of another macro.
    pub(crate) unknown: Vec<String>,
}

impl Found {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { gemms, reductions, maps, scans, unknown } = self;
        [gemms, reductions, maps, scans, unknown].iter().all(|calls| calls.is_empty())
    }
}

/// Rust files at a path: the file itself, or all files `*.rs` in a folder and its subfolders, in
/// the order of their paths.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::File { path: path.to_owned(), error };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry)?);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Reads all calls of kernel macros in a file.
pub(crate) fn macro_calls(path: &Path) -> Result<Found, Error> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Error::File { path: path.to_owned(), error })?;
    let tokens: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| {
        Error::Tokens { path: path.to_owned(), reason: error.to_string() }
    })?;
    let mut found = Found::default();
    walk(path, tokens, &mut found)?;
    Ok(found)
}

fn walk(path: &Path, tokens: TokenStream, found: &mut Found) -> Result<(), Error> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let name = match &tokens[..at] {
            [.., TokenTree::Ident(name), TokenTree::Punct(mark)] if mark.as_char() == '!' => {
                name.to_string()
            }
            _ => String::new(),
        };
        if MACROS.contains(&&*name) {
            read(path, &name, group.stream(), found)?;
        } else {
            walk(path, group.stream(), found)?;
        }
    }
    Ok(())
}

/// Reads the spec or the table of a macro call.
fn read(path: &Path, name: &str, tokens: TokenStream, found: &mut Found) -> Result<(), Error> {
    let call = format!("{name}!({tokens})");
    if has_dollar(tokens.clone()) {
        found.unknown.push(format!("{}: {call}", path.display()));
        return Ok(());
    }
    let faulty = |faults: syn::Error| {
        let faults: Vec<String> = faults.into_iter().map(|fault| fault.to_string()).collect();
        Error::Macro { path: path.to_owned(), call: call.clone(), faults: faults.join("\n") }
    };
    match name {
        SGEMM_KERNEL | GEMM_KERNEL => {
            let tokens = parse::sgemm(without_item(tokens), name == GEMM_KERNEL);
            let plan = tokens.plan.map_err(faulty)?;
            found.gemms.push(plan.spec().to_string());
        }
        REDUCE_KERNEL => {
            let plan = parse::reduce(tokens).plan.map_err(faulty)?;
            found.reductions.push(plan.spec().to_string());
        }
        MAP_KERNEL | ROW_KERNEL => {
            let plan = parse::map(tokens, name == ROW_KERNEL).plan.map_err(faulty)?;
            found.maps.push(plan.spec().to_string());
        }
        SCAN_KERNEL => {
            let plan = parse::scan(tokens).plan.map_err(faulty)?;
            found.scans.push(plan.spec().to_string());
        }
        SGEMM_TABLE | GEMM_TABLE => {
            let table = parse::sgemm_table(tokens, name == GEMM_TABLE).table;
            found.gemms.extend(lines(&table.map_err(faulty)?));
        }
        _ => found.reductions.extend(lines(&parse::reduce_table(tokens).table.map_err(faulty)?)),
    }
    Ok(())
}

/// Specs of all kernels of a table, one for each rule and layout.
pub(crate) fn lines<S: TableFamily>(table: &KernelTable<S>) -> impl Iterator<Item = String> {
    let kernels = table.rules().iter().flat_map(|rule| rule.kernels());
    kernels.map(|plan| plan.spec().to_string())
}

fn has_dollar(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == '$',
        TokenTree::Group(group) => has_dollar(group.stream()),
        _ => false,
    })
}

/// Spec of a call, without the `struct Name;` that may precede it.
fn without_item(tokens: TokenStream) -> TokenStream {
    let all: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let item = all.windows(3).position(|three| match three {
        [TokenTree::Ident(word), TokenTree::Ident(_), TokenTree::Punct(end)] => {
            word == "struct" && end.as_char() == ';'
        }
        _ => false,
    });
    match item {
        Some(at) => all.into_iter().skip(at + 3).collect(),
        None => tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::{MACROS, files, macro_calls};
    use crate::error::Error;
    use std::fs;

    const SOURCE: &str = r##"
        //! sgemm_kernel!(in a comment)
        use gemm_runtime::{sgemm_kernel, reduce_kernel};
        const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 128);
        mod deep {
            fn kernel() -> Kernel {
                let max = gemm_runtime::reduce_kernel! { op: max };
                vec![sgemm_kernel![tile: 8x8x8]]
            }
        }
        sgemm_kernel! {
            /// A layer.
            #[derive(Debug)]
            pub(crate) struct Layer;
            tile: 16x16x8, thread: 2x2, epilogue: |acc, bias[n]| { let t = acc; t + bias }
        }
        sgemm_table! { m <= 8 && nn => tile: 8x8x8; else => tile: 16x16x8, thread: 4x4 }
        reduce_table! { else => over: rows }
        const SWISH: Map<(MN, N)> = map_kernel!(|x[m, n], by[n]| x * sigmoid(by * x), block: 128);
        const OFFSETS: Scan<u32> = scan_kernel!(type: u32, exclusive);
        const MEAN: Map<(MN,), M> = row_kernel!(|x[m, n]| -> f32[m] sum(x) / f32(n));
        const TEXT: &str = "reduce_kernel!(op: prod)";
        macro_rules! sum { ($($spec:tt)*) => { reduce_kernel!(op: sum, $($spec)*) } }
        other_kernel!(tile: 0);
    "##;

    #[test]
    fn macro_calls_are_found() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("main.rs");
        fs::write(&path, SOURCE)?;
        let found = macro_calls(&path)?;
        let layer =
            "tile: 16x16x8, thread: 2x2, epilogue: |acc, bias[n]| { let t = acc; t + bias }";
        assert_eq!(found.gemms[..2], ["tile: 8x8x8", layer]);
        // The first rule in layout `nn`, the second in all layouts; packed and padded.
        assert_eq!(found.gemms.len(), 2 + 2 + 8, "{:#?}", found.gemms);
        assert_eq!(found.reductions, ["block: 128", "op: max", "over: rows"]);
        assert_eq!(
            found.maps,
            [
                "|x[m, n], by[n]| x * sigmoid(by * x), block: 128",
                "|x[m, n]| -> f32[m] sum(x) / f32(n)",
            ]
        );
        let [unknown] = &found.unknown[..] else { panic!("{:?}", found.unknown) };
        let start = format!("{}: reduce_kernel!(op : sum", path.display());
        assert!(unknown.starts_with(&start), "{unknown}");
        Ok(())
    }

    /// `epilogue!` alone is no kernel: the calls of `sgemm` that it belongs to are listed instead.
    #[test]
    fn every_macro_of_a_kernel_is_known() -> Result<(), Box<dyn std::error::Error>> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gemm-macros/src/lib.rs");
        let text = fs::read_to_string(file)?;
        let macros = text.split("#[proc_macro]").skip(1);
        let names =
            macros.filter_map(|text| text.trim().strip_prefix("pub fn ")?.split('(').next());
        let mut names: Vec<&str> = names.filter(|name| *name != "epilogue").collect();
        let mut known = MACROS;
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
        Ok(())
    }

    #[test]
    fn folders_are_searched() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("b/c"))?;
        for name in ["z.rs", "b/c/y.rs", "b/x.rs", "b/notes.txt"] {
            fs::write(dir.path().join(name), "")?;
        }
        let found: Vec<_> = ["b/c/y.rs", "b/x.rs", "z.rs"].map(|name| dir.path().join(name)).into();
        assert_eq!(files(dir.path())?, found);
        assert_eq!(files(&found[0])?, found[..1]);
        let error = files(&dir.path().join("nowhere"));
        assert!(matches!(error, Err(Error::File { .. })), "{error:?}");
        Ok(())
    }

    #[test]
    fn faults_name_the_file_and_the_call() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("main.rs");
        for (text, part) in [
            ("x!(reduce_kernel!(op: summ, block: 7))", "main.rs: reduce_kernel!(op : summ"),
            ("sgemm_table! { m < 8 => tile: 8x8x8 }", "main.rs: sgemm_table!(m < 8"),
            ("fn f( {", "The file must consist of Rust tokens"),
        ] {
            fs::write(&path, text)?;
            let error = macro_calls(&path).map(drop).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
        Ok(())
    }
}
