//! Matrices in NumPy's `.npy` files. Each rank reads its own part of a file.

use super::{Block, Distribution, NpyFault, Rank, Sharded, Split, WorldError};
use crate::{Error, Result};
use gemm_dsl::ir::Elem;
use gemm_dsl::target::element::{Element, from_bytes};
use npyz::{NpyHeader, Order};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::Path;

/// First bytes of every `.npy` file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Offset of the first byte after the magic bytes and the version.
const VERSION_END: u64 = MAGIC.len() as u64 + 2;

/// Supported element types, with NumPy's descriptors and names.
const TYPES: [(Elem, &str, &str); 9] = [
    (Elem::F64, "'<f8'", "float64"),
    (Elem::F32, "'<f4'", "float32"),
    (Elem::F16, "'<f2'", "float16"),
    (Elem::I64, "'<i8'", "int64"),
    (Elem::U64, "'<u8'", "uint64"),
    (Elem::I32, "'<i4'", "int32"),
    (Elem::U32, "'<u4'", "uint32"),
    (Elem::I8, "'|i1'", "int8"),
    (Elem::U8, "'|u1'", "uint8"),
];

/// Open `.npy` file with elements of type `T`. Blocks of its data are read individually.
#[derive(Debug)]
pub struct NpyFile<T> {
    file: File,
    shape: Vec<usize>,
    is_by_column: bool,
    /// Position of the first element.
    start: u64,
    trailing: u64,
    element: PhantomData<T>,
}

impl<T: Element> NpyFile<T> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Returns a [`NpyFault`] if the file cannot be read, is not a `.npy` file, has elements of
    /// another type or more than two dimensions, or ends too early.
    pub fn open(path: &Path) -> Result<Self, NpyFault> {
        let mut file = File::open(path)?;
        let mut first = Vec::new();
        (&mut file).take(VERSION_END).read_to_end(&mut first)?;
        // A short file counts as truncated only if it starts with the magic bytes.
        if first.iter().zip(MAGIC).any(|(byte, magic)| byte != magic) {
            return Err(NpyFault::Format(
                "its first bytes are not those of a .npy file".to_owned(),
            ));
        }
        if (first.len() as u64) < VERSION_END {
            return Err(NpyFault::Truncated);
        }
        file.rewind()?;
        let header = NpyHeader::from_reader(&mut file)?;
        check_type(&header.dtype().descr(), T::ELEM)?;
        let has = header.shape().len();
        if has > 2 {
            return Err(NpyFault::Dimensions { has });
        }
        let start = file.stream_position()?;
        let data = file.metadata()?.len().saturating_sub(start);
        let need = header
            .shape()
            .iter()
            .try_fold(u64::from(T::ELEM.size()), |all, extent| all.checked_mul(*extent));
        // The header is not trusted: allocations never exceed the size of the file.
        let trailing = need.and_then(|need| data.checked_sub(need)).ok_or(NpyFault::Truncated)?;
        let extent = |extent: &u64| usize::try_from(*extent).map_err(|_| NpyFault::Truncated);
        let shape = header.shape().iter().map(extent).collect::<Result<Vec<usize>, _>>()?;
        // A single row or column has the same bytes in both orders.
        let is_matrix = matches!(shape[..], [rows, cols] if rows > 1 && cols > 1);
        let is_by_column = header.order() == Order::Fortran && is_matrix;
        Ok(Self { file, shape, is_by_column, start, trailing, element: PhantomData })
    }

    /// Extents of the array, at most two.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Rows and columns of the matrix as the file stores it, row-major. For a column-major file,
    /// this is the transpose. A one-dimensional array is one row.
    pub fn stored(&self) -> [usize; 2] {
        match self.shape[..] {
            [] => [1, 1],
            [cols] => [1, cols],
            [rows, cols, ..] if self.is_by_column => [cols, rows],
            [rows, cols, ..] => [rows, cols],
        }
    }

    /// Returns true for a column-major matrix with at least two rows and two columns.
    pub fn is_by_column(&self) -> bool {
        self.is_by_column
    }

    /// Number of bytes after the data.
    pub fn trailing(&self) -> u64 {
        self.trailing
    }

    /// Reads a block of the [stored](Self::stored) matrix, row-major.
    ///
    /// # Errors
    /// [`NpyFault::Unreadable`] if the system cannot read the file, [`NpyFault::Truncated`] for a
    /// block outside the matrix.
    pub fn read(&mut self, block: &Block) -> Result<Vec<T>, NpyFault> {
        let [rows, cols] = self.stored();
        if block.rows.end > rows || block.cols.end > cols {
            return Err(NpyFault::Truncated);
        }
        if block.is_empty() {
            return Ok(Vec::new());
        }
        // All elements are in the file, so the number of bytes does not overflow.
        let size = T::ELEM.size() as usize;
        let (line, len) = (block.cols.len() * size, block.len() * size);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        bytes.resize(len, 0);
        for (row, bytes) in block.rows.clone().zip(bytes.chunks_exact_mut(line)) {
            let at = (row * cols + block.cols.start) as u64 * size as u64;
            self.file.seek(SeekFrom::Start(self.start + at))?;
            self.file.read_exact(bytes)?;
        }
        from_bytes(&bytes).ok_or(NpyFault::Truncated)
    }
}

/// Checks the element type of a file.
fn check_type(found: &str, elem: Elem) -> Result<(), NpyFault> {
    let Some((_, descr, need)) = TYPES.iter().find(|(of, ..)| *of == elem) else {
        return Err(NpyFault::Untyped(elem));
    };
    if found == *descr {
        return Ok(());
    }
    let kind =
        |descr: &str| descr.trim_matches('\'').trim_start_matches(['<', '>', '|', '=']).to_owned();
    let known = TYPES.iter().find(|(_, descr, _)| kind(descr) == kind(found));
    let found = known.map_or(found.to_owned(), |(.., name)| format!("{name} ({found})"));
    Err(NpyFault::ElementType { found, need, descr })
}

impl Rank {
    /// Loads this rank's part of the matrix in a `.npy` file. The rank reads only its own part of
    /// the data. A one-dimensional array is a matrix of one row. Every rank needs access to the
    /// file.
    ///
    /// ```
    /// use gemm_world::{Cut, Split, World};
    ///
    /// // Same bytes as `numpy.save("x.npy", numpy.arange(6, dtype="float32").reshape(3, 2))`.
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("x.npy");
    /// let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    /// file.extend(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }");
    /// file.resize(127, b' ');
    /// file.push(b'\n');
    /// file.extend((0..6).flat_map(|i| (i as f32).to_le_bytes()));
    /// std::fs::write(&path, file)?;
    ///
    /// let parts = World::simulated(2)?.run(|rank| {
    ///     let part = rank.load_npy::<f32>(&path, Split::Rows(Cut::EVEN))?;
    ///     Ok(rank.device().download(&part)?)
    /// })?;
    /// assert_eq!(parts, [vec![0.0, 1.0], vec![2.0, 3.0, 4.0, 5.0]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// * [`WorldError::Npy`] if the file cannot be read, is not a `.npy` file, has elements of
    ///   another type, is column-major, has more than two dimensions, or ends too early.
    /// * The errors of [`Rank::load`].
    pub fn load_npy<T: Element>(&self, path: &Path, split: Split) -> Result<Sharded<T>> {
        let wrong =
            |fault| Error::World(WorldError::Npy { path: path.display().to_string(), fault });
        let mut file = NpyFile::open(path).map_err(wrong)?;
        let [rows, cols] = file.stored();
        if file.is_by_column() {
            return Err(wrong(NpyFault::ByColumn));
        }
        self.load(&Distribution { rows, cols, split }, |block| file.read(block).map_err(wrong))
    }
}
