//! Live page, which embeds the compiler and the simulator. They report on the spec that the reader
//! types.

use super::page::{STYLE, base64, policy, rendered};
use askama::Template;
use gemm_bench::cli::Failure;
use gemm_dsl::spec::{ReduceSpec, SgemmSpec, Spec};
use gemm_dsl::stages;
use miniz_oxide::deflate::compress_to_vec_zlib;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use thiserror::Error;

/// Target of the embedded module.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// File name of the page in the book.
pub const FILE: &str = "live.html";

const LIVE_STYLE: &str = include_str!("../templates/live.css");
const SCRIPT: &str = include_str!("../templates/live.js");

/// Compression level of the module, from 0 to 10.
const PACKED: u8 = 9;

/// Example stages: GEMMs and reductions.
const PRODUCTS: [&str; 5] = ["naive", "float4", "split_fragment", "fastest", "ldmatrix"];
const REDUCTIONS: [&str; 2] = ["interleaved", "shuffle"];
/// Stage shown before a spec is typed.
const FIRST: &str = "split_fragment";
/// Faulty example specs, each with a title.
const FAULTY: [(&str, &str); 2] = [
    ("a misspelt key", "tile: 128x128x8, thread: 8x8, flaot4"),
    ("too much shared memory", "tile: 256x256x64, thread: 16x16, float4, transpose, stages: 4"),
];

/// Reason why the live page cannot be built.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// A tool cannot be executed.
    #[error("`{0}` cannot run: {1}")]
    Tool(String, std::io::Error),
    /// The target is not installed.
    #[error("Rust's target {TARGET} is not installed: `rustup target add {TARGET}`")]
    Target,
    /// The sources of the module are missing.
    #[error("sources not found at {}", .0.display())]
    Sources(PathBuf),
    /// Cargo failed with these errors.
    #[error("cannot build the module: {0}")]
    Build(String),
}

#[derive(Template)]
#[template(path = "live.html")]
struct LivePage {
    policy: String,
    style: String,
    /// Names of the macros, and what they generate.
    families: [(&'static str, &'static str); 2],
    /// Spec that is shown if the address contains none.
    first: String,
    examples: Vec<Example>,
    module: String,
    script: String,
    command: &'static str,
    version: &'static str,
}

struct Example {
    href: String,
    text: String,
}

/// Renders the page with an embedded module.
///
/// # Errors
/// Returns an error only if the template fails.
pub fn page(module: &[u8], command: &'static str) -> Result<String, Failure> {
    let style = format!("{STYLE}{LIVE_STYLE}");
    let policy = policy(&style, Some(SCRIPT)) + " 'wasm-unsafe-eval'";
    let module = base64(&compress_to_vec_zlib(module, PACKED));
    let (script, version) = (SCRIPT.to_owned(), env!("CARGO_PKG_VERSION"));
    let first = stages::sgemm().into_iter().find(|stage| stage.name == FIRST);
    let first = first.map_or(String::new(), |stage| stage.spec.to_string());
    let families = [(SgemmSpec::MACRO, "a GEMM"), (ReduceSpec::MACRO, "a reduction")];
    let examples = examples();
    let page =
        LivePage { policy, style, families, first, examples, module, script, command, version };
    rendered(&page)
}

/// URL fragment for a spec, to append to the address of the page.
pub fn address(family: &str, line: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
            char::from(byte).to_string()
        }
        b' ' => "+".to_owned(),
        byte => format!("%{byte:02X}"),
    };
    let line: String = line.bytes().map(escaped).collect();
    format!("#family={family}&line={line}")
}

fn examples() -> Vec<Example> {
    let example = |family, text: &str, line: &str| Example {
        href: address(family, line),
        text: text.replace('_', " "),
    };
    let products = stages::sgemm().into_iter().filter(|stage| PRODUCTS.contains(&stage.name));
    let reductions = stages::reduce().into_iter().filter(|stage| REDUCTIONS.contains(&stage.name));
    let products =
        products.map(|stage| example(SgemmSpec::MACRO, stage.name, &stage.spec.to_string()));
    let reductions =
        reductions.map(|stage| example(ReduceSpec::MACRO, stage.name, &stage.spec.to_string()));
    let faulty = FAULTY.into_iter().map(|(text, line)| example(SgemmSpec::MACRO, text, line));
    products.chain(reductions).chain(faulty).collect()
}

/// Builds the module into cargo's target folder.
///
/// # Errors
/// Returns a [`ModuleError`] that names the missing tool, target or sources, or the failure of the
/// build.
pub fn module() -> Result<Vec<u8>, ModuleError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !sources.join("live/Cargo.toml").exists() {
        return Err(ModuleError::Sources(sources.join("live")));
    }
    let tool = |variable: &str, name: &str| env::var(variable).unwrap_or_else(|_| name.to_owned());
    let run = |tool: String, arguments: &[&str]| {
        let ran = Command::new(&tool).args(arguments).current_dir(sources).output();
        ran.map_err(|error| ModuleError::Tool(tool, error))
    };
    let folder = run(tool("RUSTC", "rustc"), &["--print", "target-libdir", "--target", TARGET])?;
    if !Path::new(String::from_utf8_lossy(&folder.stdout).trim()).is_dir() {
        return Err(ModuleError::Target);
    }
    let arguments =
        ["build", "--profile", "wasm", "--package", "gemm-live", "--lib", "--target", TARGET];
    let format = "--message-format=json-render-diagnostics";
    let built = run(tool("CARGO", "cargo"), &[&arguments[..], &[format]].concat())?;
    let said = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() {
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error")).collect();
        return Err(ModuleError::Build(errors.join("; ")));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let path = messages.lines().rev().find_map(artifact);
    let path = path.ok_or_else(|| ModuleError::Build("cargo names no file".to_owned()))?;
    fs::read(&path).map_err(|error| ModuleError::Tool(path, error))
}

/// Path of the module, if this message of cargo contains it.
fn artifact(message: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let files = message.get("filenames")?.as_array()?.iter().filter_map(|file| file.as_str());
    files.filter(|file| file.ends_with("gemm_live.wasm")).map(str::to_owned).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_stages_or_have_a_fault() {
        assert_eq!(examples().len(), PRODUCTS.len() + REDUCTIONS.len() + FAULTY.len());
        for (text, line) in FAULTY {
            assert!(line.parse::<SgemmSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_keeps_a_line() {
        assert_eq!(
            address("sgemm_kernel", "a: |x| x + 1"),
            "#family=sgemm_kernel&line=a%3A+%7Cx%7C+x+%2B+1"
        );
    }
}
