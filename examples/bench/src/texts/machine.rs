//! Machine code of texts.

use super::changes::ChangedSpec;
use super::entry::Entry;
use super::folder::{Texts, key};
use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::stages::pinned::PinnedSpec;
use gemm_runtime::Error;
use gemm_runtime::compile::{self, Arch, Options};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Name of every kernel that is compiled here, because a cubin contains the name.
const NAME: &str = "kernel";

/// Removes the kernels whose two texts have the same machine code, and returns their keys. Such
/// texts differ only in names, types or the layout of the source.
pub fn remove_same(
    changed: &mut Vec<ChangedSpec<'_>>,
    texts: [&Texts; 2],
    arch: Arch,
) -> BTreeSet<String> {
    let key = |spec: &PinnedSpec, kernel: &VerifiedKernel| key(spec, PinnedSpec::suffix(kernel));
    let is_same = |kernel: &VerifiedKernel, key: &String| {
        let arch = if kernel.contract().is_specific { arch.specific() } else { arch };
        let codes = texts.map(|texts| Some(machine_code(&texts.get(key)?.source, arch)));
        // A text that does not compile is left, because the launch reports it with its spec.
        matches!(codes, [Some(Ok(old)), Some(Ok(new))] if old == new)
    };
    let same = changed.par_iter().flat_map(|ChangedSpec { spec, kernels, .. }| {
        let keys = kernels.par_iter().map(|kernel| (kernel, key(spec, kernel)));
        keys.filter(|(kernel, key)| is_same(kernel, key)).map(|(_, key)| key)
    });
    let same: BTreeSet<String> = same.collect();
    for ChangedSpec { spec, kernels, .. } in &mut *changed {
        kernels.retain(|kernel| !same.contains(&key(spec, kernel)));
    }
    changed.retain(|changed| !changed.kernels.is_empty());
    same
}

/// Compiles a text. The result does not depend on the name of the kernel.
fn machine_code(text: &str, arch: Arch) -> Result<Vec<u8>, Error> {
    let text = match Entry::new(text) {
        Some(Entry { name, .. }) => text.replace(&name, NAME),
        None => text.to_owned(),
    };
    Ok(compile::compile(NAME, &text, arch, &Options::default())?.cubin)
}

#[cfg(test)]
mod tests {
    use super::super::changes::Changes;
    use super::super::folder::generated;
    use super::*;
    use gemm_dsl::stages::pinned;

    #[test]
    fn names_and_layout_do_not_change_machine_code() {
        if let Err(missing) = compile::nvrtc_version() {
            let required = std::env::var_os("GEMM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
            assert!(!required, "{missing}");
            eprintln!("not compiled: {missing}");
            return;
        }
        let specs = pinned::all().expect("sound");
        let new = generated(&specs);
        let mut old = new.clone();
        for (key, from, to) in [
            ("sgemm/05_shared_tile", "As[", "tile_of_a["),
            ("sgemm/02_naive", "sgemm_", "gemm_"),
            ("sgemm/38_tma", "const int", "int"),
            ("sgemm/06_shared_tile_k", "acc = 0.0f", "acc = 1.0f"),
        ] {
            let text = old.get_mut(key).expect(key);
            assert!(text.source.contains(from), "{key}");
            text.source = text.source.replace(from, to);
        }
        let mut changed = Changes::new(&specs, &new, [&old, &new]).specs;
        let same = remove_same(&mut changed, [&old, &new], Arch::sm(90));
        let expected = ["sgemm/02_naive", "sgemm/05_shared_tile", "sgemm/38_tma"];
        assert_eq!(same, expected.map(str::to_owned).into());
        let left: Vec<&str> = changed.iter().map(|changed| &*changed.spec.stem).collect();
        assert_eq!(left, ["06_shared_tile_k"]);
    }
}
