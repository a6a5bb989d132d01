//! Valid and malformed NumPy files.

use gemm_world::Error;
use gemm_world::{Cut, Split, World, WorldError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// File with a header of this shape and `bytes` bytes of data.
fn file(folder: &Path, shape: &str, bytes: usize) -> PathBuf {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let path = folder.join("x.npy");
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(b"\x93NUMPY\x01\x00").expect("room");
    file.write_all(&(header.len() as u16).to_le_bytes()).expect("room");
    file.write_all(header.as_bytes()).expect("room");
    file.write_all(&vec![0; bytes]).expect("room");
    path
}

/// Headers are not trusted: allocations never exceed the size of the file.
#[test]
fn a_file_that_lies_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for (shape, bytes) in [
        ("(2, 3)", 23),
        ("(1048576, 1048576)", 24),
        ("(1048576, 67108864)", 24),
        ("(4294967296, 4294967295)", 24),
        ("(1, 18446744073709551615)", 24),
        ("(18446744073709551615, 1)", 24),
    ] {
        let path = file(folder.path(), shape, bytes);
        for split in [Split::Whole, Split::Rows(Cut::EVEN), Split::Cols(Cut::EVEN)] {
            let loaded = World::simulated(2)
                .expect("a world")
                .run(|rank| rank.load_npy::<f32>(&path, split.clone()).map(drop));
            let error = loaded.expect_err(shape);
            let is_told = matches!(
                &error,
                Error::World(WorldError::Npy { .. } | WorldError::Distribution(_))
                    | Error::Device(
                        gemm_runtime::Error::OutOfMemory { .. }
                            | gemm_runtime::Error::TooLarge { .. }
                    )
            );
            assert!(is_told, "{shape}: {error:?}");
            if shape == "(1048576, 1048576)" {
                // The fault is reported before memory is allocated, which would also fail.
                assert!(
                    error.to_string().contains("announces more data than the file has"),
                    "{error}"
                );
            }
        }
    }
    let path = file(folder.path(), "(2, 3)", 24);
    let loaded = World::simulated(2).expect("a world").run(|rank| {
        let part = rank.load_npy::<f32>(&path, Split::Rows(Cut::EVEN))?;
        rank.gather(&part, 0)
    });
    assert_eq!(loaded.expect("it is whole")[0], Some(vec![0.0; 6]));
}
