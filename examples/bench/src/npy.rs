//! Operands from NumPy's `.npy` files: little-endian `float32`, finite, with the required number of
//! dimensions.

use gemm_oracle::product::transposed;
use gemm_world::{Block, NpyFault, NpyFile};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why an input file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not contain a vector or matrix of `float32`.
    #[error("{}: {fault}", path.display())]
    File { path: PathBuf, fault: NpyFault },
    /// The file has more bytes than its array.
    #[error("{} has {bytes} bytes after its data", path.display())]
    TooLong { path: PathBuf, bytes: u64 },
    /// The array has the wrong number of dimensions.
    #[error("{} has {has} dimensions, but {need}", path.display())]
    Dimensions {
        path: PathBuf,
        has: usize,
        /// Required number of dimensions, and the remedy.
        need: &'static str,
    },
    /// An element is NaN or infinite, so that no result could be checked.
    #[error(
        "{} has {value} at index {index}, but the elements must be finite for the result to be \
         checked. Replace it: numpy.nan_to_num(array)",
        path.display()
    )]
    NotFinite {
        path: PathBuf,
        /// Index of the element in row-major order.
        index: usize,
        value: f32,
    },
}

/// Matrix with its elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub elements: Vec<f32>,
    pub rows: usize,
    pub cols: usize,
}

/// Reads an array of one dimension.
///
/// # Errors
/// Returns any error of [`NpyError`].
pub fn read_vector(path: &Path) -> Result<Vec<f32>, NpyError> {
    let need = "a reduction requires 1. Flatten the array: numpy.save(path, array.ravel())";
    let mut file = open(path, 1, need)?;
    finite(path, elements(path, &mut file)?)
}

/// Reads an array of two dimensions, in row-major or column-major order.
///
/// # Errors
/// Returns any error of [`NpyError`].
pub fn read_matrix(path: &Path) -> Result<Matrix, NpyError> {
    let need =
        "a matrix requires 2. Reshape the array: numpy.save(path, array.reshape(rows, columns))";
    let mut file = open(path, 2, need)?;
    let [rows, cols] = file.stored();
    let stored = elements(path, &mut file)?;
    let (elements, rows, cols) = match file.is_by_column() {
        true => (transposed(&stored, rows, cols), cols, rows),
        false => (stored, rows, cols),
    };
    Ok(Matrix { elements: finite(path, elements)?, rows, cols })
}

/// Opens a file whose array must have `dimensions` dimensions. `need` is part of the error message
/// if it does not.
fn open(path: &Path, dimensions: usize, need: &'static str) -> Result<NpyFile<f32>, NpyError> {
    let dimensions_are = |has| NpyError::Dimensions { path: path.to_owned(), has, need };
    let file = NpyFile::open(path).map_err(|fault| match fault {
        NpyFault::Dimensions { has } => dimensions_are(has),
        fault => NpyError::File { path: path.to_owned(), fault },
    })?;
    match (file.shape().len(), file.trailing()) {
        (has, _) if has != dimensions => Err(dimensions_are(has)),
        (_, 0) => Ok(file),
        (_, bytes) => Err(NpyError::TooLong { path: path.to_owned(), bytes }),
    }
}

/// Reads all elements of a file, in the order of the file.
fn elements(path: &Path, file: &mut NpyFile<f32>) -> Result<Vec<f32>, NpyError> {
    let [rows, cols] = file.stored();
    let read = file.read(&Block::new(0..rows, 0..cols));
    read.map_err(|fault| NpyError::File { path: path.to_owned(), fault })
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
    use npyz::{AutoSerialize, Order, WriteOptions, WriterBuilder};

    /// Writes an array to a temporary file, with elements in the given order.
    fn saved<T: AutoSerialize>(
        shape: &[u64],
        order: Order,
        elements: &[T],
    ) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let options = WriteOptions::<T>::new().default_dtype().shape(shape).order(order);
        let mut writer = options.writer(file.as_file()).begin_nd().expect("a header");
        elements.iter().try_for_each(|element| writer.push(element)).expect("written");
        writer.finish().expect("all elements");
        file
    }

    fn vector<T: AutoSerialize>(elements: &[T]) -> tempfile::NamedTempFile {
        saved(&[elements.len() as u64], Order::C, elements)
    }

    fn vector_error(file: &tempfile::NamedTempFile) -> String {
        read_vector(file.path()).expect_err("a faulty file").to_string()
    }

    #[test]
    fn reads_vectors_and_matrices_of_either_order() {
        let file = vector(&[1.0_f32, 2.0, 3.0]);
        assert_eq!(read_vector(file.path()).expect("a vector"), [1.0, 2.0, 3.0]);

        let by_row = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let by_column = [1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0];
        for (order, elements) in [(Order::C, by_row), (Order::Fortran, by_column)] {
            let file = saved(&[2, 3], order, &elements);
            let matrix = read_matrix(file.path()).expect("a matrix");
            assert_eq!((matrix.rows, matrix.cols), (2, 3));
            assert_eq!(matrix.elements, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
    }

    #[test]
    fn an_empty_array_is_an_array() {
        let file = vector::<f32>(&[]);
        assert!(read_vector(file.path()).expect("a vector").is_empty());
    }

    #[test]
    fn names_a_foreign_element_type() {
        let message = vector_error(&vector(&[1.0_f64]));
        assert!(message.contains("float64 ('<f8')") && message.contains("astype"), "{message}");
        let message = vector_error(&vector(&[1_i32]));
        assert!(message.contains("int32"), "{message}");
    }

    #[test]
    fn names_the_number_of_dimensions() {
        let message = vector_error(&saved(&[1, 2], Order::C, &[1.0_f32, 2.0]));
        assert!(message.contains("2 dimensions") && message.contains("ravel"), "{message}");
        let error = read_matrix(vector(&[1.0_f32]).path()).expect_err("a vector");
        assert!(error.to_string().contains("reshape"), "{error}");
    }

    #[test]
    fn notices_a_file_that_is_cut_off_or_too_long() {
        let file = vector(&[1.0_f32, 2.0]);
        let whole = std::fs::read(file.path()).expect("the file");
        for len in [0, 3, 7, 20, whole.len() - 1] {
            std::fs::write(file.path(), &whole[..len]).expect("a file that can be written");
            let message = vector_error(&file);
            assert!(message.contains("truncated"), "{len}: {message}");
        }
        std::fs::write(file.path(), [&whole[..], &[0; 3]].concat()).expect("written");
        assert!(vector_error(&file).contains("3 bytes after"));
        for text in ["not an array at all", "1 2 3", "\n"] {
            std::fs::write(file.path(), text).expect("written");
            assert!(vector_error(&file).contains("not a .npy file"), "{text}");
        }
    }

    #[test]
    fn names_the_first_element_that_is_not_finite() {
        let message = vector_error(&vector(&[1.0_f32, f32::NAN, f32::INFINITY]));
        assert!(message.contains("NaN at index 1"), "{message}");
    }

    #[test]
    fn names_a_missing_file() {
        let error = read_vector(Path::new("no/such.npy")).expect_err("no file");
        assert!(error.to_string().contains("no/such.npy"), "{error}");
    }
}
