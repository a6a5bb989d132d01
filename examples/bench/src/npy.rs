//! Operands from NumPy's `.npy` files: little-endian `float32`, finite, of the right shape.

use ndarray::{ArrayView, ArrayView1, ArrayView2, Dimension};
use ndarray_npy::{ViewNpyError, ViewNpyExt};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What is wrong with an input file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It cannot be opened or read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// It does not start as a `.npy` file does.
    #[error("{} is no .npy file: {reason}. Write it with numpy.save", path.display())]
    NotNpy {
        /// The file.
        path: PathBuf,
        /// What is wrong with the header.
        reason: String,
    },
    /// Its elements are no `float32` of this machine's byte order.
    #[error(
        "{} holds elements of type {found}, but float32 ('<f4') is needed. Convert it: \
         numpy.save(path, array.astype('<f4'))",
        path.display()
    )]
    ElementType {
        /// The file.
        path: PathBuf,
        /// NumPy's name of the type.
        found: String,
    },
    /// It ends before its data does.
    #[error("{} is truncated: {missing}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is missing.
        missing: String,
    },
    /// It goes on after its data.
    #[error("{} has {bytes} bytes after its data", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The excess.
        bytes: usize,
    },
    /// The array has another number of dimensions.
    #[error("{} has {has} dimensions, but {need}", path.display())]
    Dimensions {
        /// The file.
        path: PathBuf,
        /// Its number of dimensions.
        has: usize,
        /// What is needed, and how to get it.
        need: &'static str,
    },
    /// An element is NaN or infinite, so that no result could be checked.
    #[error(
        "{} has {value} at index {index}, but the elements must be finite for the result to be \
         checked. Replace it: numpy.nan_to_num(array)",
        path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The element's index, in row-major order.
        index: usize,
        /// The element.
        value: f32,
    },
}

/// What every `.npy` file starts with.
const MAGIC: &[u8] = b"\x93NUMPY";

/// A matrix in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The elements, row after row.
    pub elements: Vec<f32>,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
}

/// Reads an array of one dimension.
///
/// # Errors
/// All of [`NpyError`].
pub fn read_vector(path: &Path) -> Result<Vec<f32>, NpyError> {
    let bytes = read(path)?;
    let need = "a reduction needs 1. Flatten it: numpy.save(path, array.ravel())";
    let view: ArrayView1<'_, f32> = view(path, &bytes, need)?;
    finite(path, view.iter().copied().collect())
}

/// Reads an array of two dimensions, of either memory order.
///
/// # Errors
/// All of [`NpyError`].
pub fn read_matrix(path: &Path) -> Result<Matrix, NpyError> {
    let bytes = read(path)?;
    let need = "a matrix needs 2. Reshape it: numpy.save(path, array.reshape(rows, columns))";
    let view: ArrayView2<'_, f32> = view(path, &bytes, need)?;
    let (rows, cols) = view.dim();
    // Iteration is in row-major order, whatever the order in memory.
    let elements = finite(path, view.iter().copied().collect())?;
    Ok(Matrix { elements, rows, cols })
}

fn read(path: &Path) -> Result<Vec<u8>, NpyError> {
    std::fs::read(path).map_err(|error| NpyError::Unreadable { path: path.to_owned(), error })
}

fn view<'a, D: Dimension>(
    path: &Path,
    bytes: &'a [u8],
    need: &'static str,
) -> Result<ArrayView<'a, f32, D>, NpyError> {
    // A file that ends early is one only if it starts like one.
    if bytes.iter().zip(MAGIC).any(|(byte, magic)| byte != magic) {
        let reason = "it does not start as one does".to_owned();
        return Err(NpyError::NotNpy { path: path.to_owned(), reason });
    }
    ArrayView::view_npy(bytes).map_err(|error| {
        let path = path.to_owned();
        match error {
            ViewNpyError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                NpyError::Truncated { path, missing: "it ends inside its header".to_owned() }
            }
            ViewNpyError::Io(error) => NpyError::Unreadable { path, error },
            ViewNpyError::WrongDescriptor(found) => {
                NpyError::ElementType { path, found: type_name(&found.to_string()) }
            }
            ViewNpyError::NonNativeEndian => {
                NpyError::ElementType { path, found: "float32 of another byte order".to_owned() }
            }
            ViewNpyError::MissingBytes(bytes) => NpyError::Truncated {
                path,
                missing: format!("{bytes} bytes of the data that its header declares are missing"),
            },
            ViewNpyError::ExtraBytes(bytes) => NpyError::TooLong { path, bytes },
            ViewNpyError::WrongNdim(_, has) => NpyError::Dimensions { path, has, need },
            other => NpyError::NotNpy { path, reason: other.to_string() },
        }
    })
}

/// NumPy's own name beside the usual descriptors.
fn type_name(descriptor: &str) -> String {
    let name = match descriptor.trim_matches('\'').trim_start_matches(['<', '>', '|', '=']) {
        "f8" => "float64",
        "f2" => "float16",
        "i4" => "int32",
        "i8" => "int64",
        "c8" => "complex64",
        _ => return descriptor.to_owned(),
    };
    format!("{name} ({descriptor})")
}

fn finite(path: &Path, elements: Vec<f32>) -> Result<Vec<f32>, NpyError> {
    match elements.iter().position(|x| !x.is_finite()) {
        None => Ok(elements),
        Some(index) => {
            Err(NpyError::NotFinite { path: path.to_owned(), index, value: elements[index] })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, ShapeBuilder, array};
    use ndarray_npy::{WritableElement, write_npy};

    fn saved<T: WritableElement, D: Dimension>(
        array: &ndarray::Array<T, D>,
    ) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        write_npy(file.path(), array).expect("a file that can be written");
        file
    }

    fn vector_error(file: &tempfile::NamedTempFile) -> String {
        read_vector(file.path()).expect_err("a faulty file").to_string()
    }

    #[test]
    fn reads_vectors_and_matrices_of_either_order() {
        let file = saved(&array![1.0_f32, 2.0, 3.0]);
        assert_eq!(read_vector(file.path()).expect("a vector"), [1.0, 2.0, 3.0]);

        let rows = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mut columns = ndarray::Array2::zeros((2, 3).f());
        columns.assign(&rows);
        for array in [rows, columns] {
            let matrix = read_matrix(saved(&array).path()).expect("a matrix");
            assert_eq!((matrix.rows, matrix.cols), (2, 3));
            assert_eq!(matrix.elements, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
    }

    #[test]
    fn an_empty_array_is_an_array() {
        let file = saved(&Array1::<f32>::zeros(0));
        assert!(read_vector(file.path()).expect("a vector").is_empty());
    }

    #[test]
    fn names_a_foreign_element_type() {
        let message = vector_error(&saved(&array![1.0_f64]));
        assert!(message.contains("float64 ('<f8')") && message.contains("astype"), "{message}");
        let message = vector_error(&saved(&array![1_i32]));
        assert!(message.contains("int32"), "{message}");
    }

    #[test]
    fn names_the_number_of_dimensions() {
        let message = vector_error(&saved(&array![[1.0_f32]]));
        assert!(message.contains("2 dimensions") && message.contains("ravel"), "{message}");
        let error = read_matrix(saved(&array![1.0_f32]).path()).expect_err("a vector");
        assert!(error.to_string().contains("reshape"), "{error}");
    }

    #[test]
    fn notices_a_file_that_is_cut_off_or_too_long() {
        let file = saved(&array![1.0_f32, 2.0]);
        let whole = std::fs::read(file.path()).expect("the file");
        for len in [0, 3, 20, whole.len() - 1] {
            std::fs::write(file.path(), &whole[..len]).expect("a file that can be written");
            let message = vector_error(&file);
            assert!(message.contains("truncated"), "{len}: {message}");
        }
        std::fs::write(file.path(), [&whole[..], &[0; 3]].concat()).expect("written");
        assert!(vector_error(&file).contains("3 bytes after"));
        for text in ["not an array at all", "1 2 3", "\n"] {
            std::fs::write(file.path(), text).expect("written");
            assert!(vector_error(&file).contains("no .npy file"), "{text}");
        }
    }

    #[test]
    fn names_the_first_element_that_is_not_finite() {
        let message = vector_error(&saved(&array![1.0_f32, f32::NAN, f32::INFINITY]));
        assert!(message.contains("NaN at index 1"), "{message}");
    }

    #[test]
    fn names_a_missing_file() {
        let error = read_vector(Path::new("no/such.npy")).expect_err("no file");
        assert!(error.to_string().contains("no/such.npy"), "{error}");
    }
}
