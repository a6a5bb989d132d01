use super::{Candidate, Places, files_beside};
use crate::library::spec::{LibrarySpec, NVRTC, SearchPlace};
use std::fs;
use std::path::{Path, PathBuf};

/// Places without any entry.
fn nowhere(wanted: &'static LibrarySpec) -> Places {
    let (names, toolkits) = (Vec::new(), Vec::new());
    Places { wanted, explicit: None, names, toolkits, virtual_env: None, python: None }
}

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("writable");
    fs::write(path, b"").expect("writable");
}

/// Returns everything that would be tried if nothing can be loaded.
fn all(places: &Places) -> (Vec<Candidate>, Vec<String>) {
    let mut seen = Vec::new();
    let tried = places.find(|candidate| {
        seen.push(candidate.clone());
        Err::<(), _>("cannot be loaded".to_owned())
    });
    (seen, tried.expect_err("nothing can be loaded"))
}

fn file(path: PathBuf) -> Candidate {
    Candidate::File(path)
}

#[test]
fn keeps_the_documented_order() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path();
    let toolkit = root.join("cuda/lib64/libnvrtc.so.12");
    let old = root.join("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib");
    let new = root.join("venv/lib/python3.13/site-packages/nvidia/cu13/lib");
    for file in [
        &toolkit,
        &old.join("libnvrtc.so.12"),
        &new.join("libnvrtc.so.13"),
        &new.join("libnvrtc.alt.so.13"),
        &new.join("libnvrtc-builtins.so.13.0"),
    ] {
        touch(file);
    }
    let places = Places {
        names: vec!["libnvrtc.so"],
        toolkits: vec![(Some("CUDA_HOME"), root.join("cuda"))],
        virtual_env: Some(root.join("venv")),
        ..nowhere(&NVRTC)
    };
    let expected = [
        Candidate::Name("libnvrtc.so"),
        file(toolkit),
        file(old.join("libnvrtc.so.12")),
        file(new.join("libnvrtc.so.13")),
    ];
    assert_eq!(all(&places).0, expected);
    let first = places.find(|c| match c {
        Candidate::File(path) => Ok(path.clone()),
        Candidate::Name(_) => Err(String::new()),
    });
    assert_eq!(first, Ok(root.join("cuda/lib64/libnvrtc.so.12")));
    let builtins =
        files_beside(&new.join("libnvrtc.so.13"), |name| name.starts_with("libnvrtc-builtins.so"));
    assert_eq!(builtins, [new.join("libnvrtc-builtins.so.13.0")]);
}

/// A toolkit may have a directory for each target.
#[test]
fn directories_of_targets_are_searched() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let library = dir.path().join("targets/sbsa-linux/lib/libnvrtc.so.13");
    touch(&library);
    let toolkits = vec![(Some("CONDA_PREFIX"), dir.path().to_owned())];
    assert_eq!(all(&Places { toolkits, ..nowhere(&NVRTC) }).0, [file(library)]);
}

#[test]
fn an_explicit_path_excludes_all_others() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let library = dir.path().join("lib/libnvrtc.so.13");
    touch(&library);
    let mut places = Places {
        explicit: Some(dir.path().to_owned()),
        names: vec!["libnvrtc.so"],
        ..nowhere(&NVRTC)
    };
    assert_eq!(all(&places).0, [file(library.clone())]);
    places.explicit = Some(library.clone());
    assert_eq!(all(&places).0, [file(library)]);
    places.explicit = Some(dir.path().join("nowhere"));
    let (seen, tried) = all(&places);
    assert!(seen.is_empty());
    assert_eq!(tried.len(), 1);
    assert!(tried[0].starts_with("GEMM_NVRTC_PATH="), "{tried:?}");
}

#[test]
fn every_place_is_reported() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let places = Places {
        names: vec!["libnvrtc.so"],
        toolkits: vec![(None, dir.path().to_owned())],
        ..nowhere(&NVRTC)
    };
    let (_, tried) = all(&places);
    assert_eq!(tried.len(), 2);
    assert_eq!(tried[0], "the loader's path: cannot be loaded");
    assert_eq!(tried[1], format!("{}: no NVRTC library there", dir.path().display()));
}

#[test]
fn a_missing_interpreter_is_no_error() {
    let places = Places { python: Some("gemm-no-such-interpreter".into()), ..nowhere(&NVRTC) };
    assert!(all(&places).0.is_empty());
}

/// Library whose wheels precede toolkits.
static NCCL: LibrarySpec = LibrarySpec {
    name: "NCCL",
    variable: "GEMM_NCCL_PATH",
    names: &["libnccl.so.2", "libnccl.so"],
    is_file: |name| name == "libnccl.so" || name.starts_with("libnccl.so."),
    order: [SearchPlace::Loader, SearchPlace::Wheels, SearchPlace::Toolkits],
};

/// Wheels precede toolkits, and plugins are not mistaken for the library.
#[test]
fn a_library_is_looked_for_in_its_own_order() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path();
    let toolkit = root.join("cuda/lib64");
    let wheel = root.join("venv/lib/python3.13/site-packages/nvidia/nccl/lib");
    for file in [
        toolkit.join("libnccl.so"),
        toolkit.join("libnccl.so.2.28.9"),
        toolkit.join("libnccl-net.so"),
        toolkit.join("libnccl_static.a"),
        toolkit.join("libnvrtc.so.13"),
        wheel.join("libnccl.so.2"),
    ] {
        touch(&file);
    }
    let mut places = Places {
        names: NCCL.names.to_vec(),
        toolkits: [("CUDA_PATH", "cuda"), ("CUDA_HOME", "other")]
            .map(|(variable, folder)| (Some(variable), root.join(folder)))
            .to_vec(),
        virtual_env: Some(root.join("venv")),
        ..nowhere(&NCCL)
    };
    let (seen, tried) = all(&places);
    let expected = [
        Candidate::Name("libnccl.so.2"),
        Candidate::Name("libnccl.so"),
        file(wheel.join("libnccl.so.2")),
        file(toolkit.join("libnccl.so.2.28.9")),
        file(toolkit.join("libnccl.so")),
    ];
    assert_eq!(seen, expected);
    let other = root.join("other");
    let last = format!("CUDA_HOME={}: no NCCL library there", other.display());
    assert_eq!(tried.last(), Some(&last));

    // The variable names the package directory of a virtual environment.
    places.explicit = Some(root.join("venv/lib/python3.13/site-packages"));
    assert_eq!(all(&places).0, [file(wheel.join("libnccl.so.2"))]);
    places.explicit = Some(other.clone());
    let (seen, tried) = all(&places);
    assert!(seen.is_empty());
    assert_eq!(tried, [format!("GEMM_NCCL_PATH={}: no NCCL library there", other.display())]);
}
