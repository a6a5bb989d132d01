//! Matrices from NumPy's `.npy` files, of which each rank reads its own part.

use super::{Block, Distribution, Rank, Sharded, Split, WorldError};
use crate::{Error, Result};
use gemm_dsl::ir::Elem;
use gemm_dsl::target::element::{Element, from_bytes};
use npyz::{NpyHeader, Order};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

impl Rank {
    /// This rank's part of the matrix in a `.npy` file, of which it reads no more than that; an array of one dimension is a
    /// matrix of one row. All ranks need the file, each where it runs.
    ///
    /// ```
    /// use gemm_world::{Cut, Split, World};
    ///
    /// // As `numpy.save("x.npy", numpy.arange(6, dtype="float32").reshape(3, 2))` writes it.
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("x.npy");
    /// let mut file = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }".to_vec();
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
    /// [`WorldError::Npy`] for a file that cannot be read, is none of these, has elements of another type, lies column by
    /// column, has more than two dimensions, or ends too early; and those of [`Rank::load`].
    pub fn load_npy<T: Element>(&self, path: &Path, split: Split) -> Result<Sharded<T>> {
        let wrong = |reason: String| {
            Error::World(WorldError::Npy { path: path.display().to_string(), reason })
        };
        let unread = |error: io::Error| wrong(error.to_string());
        let mut file = File::open(path).map_err(unread)?;
        let header = NpyHeader::from_reader(&mut file).map_err(unread)?;
        let start = file.stream_position().map_err(unread)?;
        let Some(expected) = descr(T::ELEM) else {
            return Err(wrong(format!("there are no files of {}", T::ELEM)));
        };
        let found = header.dtype().descr();
        if found != expected {
            return Err(wrong(format!(
                "its elements are {found}, but {expected}, those of {}, are needed: convert it with \
                 numpy's `astype`",
                T::ELEM
            )));
        }
        let extent = |extent: u64| {
            usize::try_from(extent)
                .map_err(|_| wrong(format!("an extent of {extent} is too large")))
        };
        let (rows, cols) = match header.shape() {
            [] => (1, 1),
            [cols] => (1, extent(*cols)?),
            [rows, cols] => (extent(*rows)?, extent(*cols)?),
            more => {
                let has = more.len();
                return Err(wrong(format!("it has {has} dimensions, but a matrix has 2")));
            }
        };
        if header.order() == Order::Fortran && rows > 1 && cols > 1 {
            let remedy = "write it with numpy.save(path, numpy.ascontiguousarray(array))";
            return Err(wrong(format!("it lies column by column: {remedy}")));
        }
        let distribution = Distribution { rows, cols, split };
        self.load(&distribution, |block| {
            let read = read(&mut file, start, cols, block, T::ELEM.size() as usize);
            let bytes = read.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => wrong("it ends before its data does".to_owned()),
                _ => unread(error),
            })?;
            let elements = from_bytes(&bytes);
            elements.ok_or_else(|| Error::internal("elements were cut in two".to_owned()))
        })
    }
}

/// The bytes of a block of a matrix whose rows begin at `start`, one behind the other.
fn read(
    file: &mut File,
    start: u64,
    cols: usize,
    block: &Block,
    size: usize,
) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::UnexpectedEof, "beyond all files");
    let line = block.cols.len().checked_mul(size).ok_or_else(too_large)?;
    let len = line.checked_mul(block.rows.len()).ok_or_else(too_large)?;
    // A header says what it likes; nothing is allocated for more than there is.
    if len as u64 > file.metadata()?.len().saturating_sub(start) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    bytes.resize(len, 0);
    for (row, bytes) in block.rows.clone().zip(bytes.chunks_exact_mut(line.max(1))) {
        let at = (row as u64).checked_mul(cols as u64);
        let at =
            at.and_then(|at| at.checked_add(block.cols.start as u64)?.checked_mul(size as u64));
        let at = at.and_then(|at| at.checked_add(start)).ok_or_else(too_large)?;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)?;
    }
    Ok(bytes)
}

/// What NumPy calls elements, those of this machine's order of bytes.
fn descr(elem: Elem) -> Option<&'static str> {
    Some(match elem {
        Elem::F64 => "'<f8'",
        Elem::F32 => "'<f4'",
        Elem::F16 => "'<f2'",
        Elem::I64 => "'<i8'",
        Elem::U64 => "'<u8'",
        Elem::I32 => "'<i4'",
        Elem::U32 => "'<u4'",
        Elem::I8 => "'|i1'",
        Elem::U8 => "'|u1'",
        _ => return None,
    })
}
