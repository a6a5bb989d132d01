//! Lint of the generated CUDA sources. Every helper and constant must be used. A number that has a
//! constant must be written by this constant. Arrays that a kernel only reads must be `const`.

use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::stages::pinned::PinnedSpec;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeMap;

/// Minimum number for which a constant must be used. Smaller numbers are lanes, vectors and
/// exponents, which may equal the size of a tile by chance.
const LEAST: u64 = 48;

/// Trial of the lint itself.
pub fn own_trial() -> Trial {
    Trial::test("lint::finds_faults", || {
        let text = "constexpr int BM = 64;\nconstexpr int BN = 2;\n\n\
                    extern __global__ void k(float* C)\n{\n    C[64] = BN;  // BM\n}\n";
        let expected = "BM is defined and not used\n64 stands where BM names it";
        match faults(text).join("\n") {
            found if found == expected => Ok(()),
            found => Err(found.into()),
        }
    })
}

pub fn trials(stage: &PinnedSpec) -> Vec<Trial> {
    let trial = |kernel: &VerifiedKernel| {
        let kernel = kernel.clone();
        let name = format!("lint::{}::{}", stage.folder, kernel.name);
        Trial::test(format!("{name}::{}", kernel.variant), move || {
            let source = cuda::source(&kernel);
            let mut faults = faults(&source);
            faults.extend(mutable_inputs(&kernel, &source));
            if faults.is_empty() { Ok(()) } else { Err(Failed::from(faults.join("\n"))) }
        })
    };
    stage.kernels.iter().map(trial).collect()
}

/// Returns a source without comments and string literals.
fn code(source: &str) -> String {
    let mut code = String::new();
    for line in source.lines() {
        let line = line.split("//").next().unwrap_or_default();
        // Every second part is between quotes.
        let parts: Vec<&str> = line.split('"').step_by(2).collect();
        code.push_str(parts.join(" ").trim_end());
        code.push('\n');
    }
    code
}

/// Words of a source: identifiers and numbers.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Name of the device function or constant that a line defines.
fn defined(line: &str) -> Option<&str> {
    let head = match line.strip_prefix("constexpr ") {
        Some(rest) => rest.split(" =").next()?,
        None => line.strip_prefix("__device__ __forceinline__ ")?.split('(').next()?,
    };
    words(head).last()
}

fn faults(source: &str) -> Vec<String> {
    let code = code(source);
    let mut counts = BTreeMap::new();
    words(&code).for_each(|word| *counts.entry(word).or_insert(0) += 1);
    let mut faults = Vec::new();
    for name in code.lines().filter_map(defined) {
        if counts.get(name) == Some(&1) {
            faults.push(format!("{name} is defined and not used"));
        }
    }
    let kernel = code.find("__global__").unwrap_or(code.len());
    let open = code[kernel..].find("\n{\n").map_or(code.len(), |open| kernel + open);
    let (head, body) = code.split_at(open);
    for line in head.lines().filter(|line| line.starts_with("constexpr ")) {
        let Some((name, value)) = defined(line).zip(line.split(" = ").nth(1)) else { continue };
        let value = value.trim().trim_end_matches(';').trim_end_matches('u');
        let Ok(number) = value.parse::<u64>() else { continue };
        let plain = |word: &&str| word.trim_end_matches('u').parse() == Ok(number);
        if number >= LEAST && words(body).any(|word| plain(&word)) {
            faults.push(format!("{number} stands where {name} names it"));
        }
    }
    faults
}

/// Arrays that the kernel only reads and whose parameters are not `const`.
fn mutable_inputs<'k>(kernel: &'k VerifiedKernel, source: &'k str) -> impl Iterator<Item = String> {
    let is_mutable = |name: &str| {
        let declares = |part: &&str| part.trim_end().ends_with(&format!(" {name}"));
        let signature = source.rsplit("__global__").next().unwrap_or_default();
        let mut params = signature.split([',', '(', ')']).filter(|part| part.contains('*'));
        !params.find(declares).is_some_and(|part| part.trim_start().starts_with("const "))
    };
    // A tensor map is passed by value.
    let arrays = kernel.contract().arrays().filter(|array| array.map.is_none());
    let inputs = arrays.filter(|array| !array.is_written);
    let mutable = inputs.filter(move |array| is_mutable(&array.name));
    mutable.map(|array| format!("{} is only read, and not const", array.name))
}
