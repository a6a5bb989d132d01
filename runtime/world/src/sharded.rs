//! Matrices and arrays distributed over ranks.

use super::error::{impossible, numbered};
use super::{Block, Distribution, Rank, WorldError};
use crate::{Error, Result};
use gemm_dsl::error::counted;
use gemm_dsl::target::element::{Element, to_bytes};
use gemm_runtime::Matrix;
use gemm_runtime::bounds::{AsMatrix, AsMatrixMut, AsMatrixMutOf, AsMatrixOf, MatrixOf};
use gemm_runtime::bounds::{Input, InputOf, Output, OutputOf};
use gemm_runtime::internal::Shape;
use gemm_runtime::internal::{Exclusive, Shared, operand};
use gemm_runtime::{MatrixMut, MatrixRef};

/// One rank's part of a distributed matrix, or of an array, which is a matrix of one row. It has
/// only the elements of this rank. Its [`distribution`](Self::distribution) determines the
/// [`Block`] of every rank.
///
/// A part may be empty. A [`Rank`] creates it from a loader ([`Rank::load`]), from zeros
/// ([`Rank::alloc`]), or from a matrix on its device ([`Rank::shard`]).
#[derive(Debug)]
pub struct Sharded<T: Element = f32> {
    distribution: Distribution,
    block: Block,
    matrix: Matrix<T>,
}

impl<T: Element> Sharded<T> {
    /// Distribution of the whole matrix.
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Range of rows and columns of this part within the whole matrix.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Elements of this part on the rank's device, row-major.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }

    /// Returns the elements of this part as a matrix on the rank's device.
    ///
    /// ```
    /// use gemm_world::{Distribution, World};
    ///
    /// let own = World::simulated(2)?.run(|rank| {
    ///     let part = rank.load(&Distribution::rows(4, 3), |block| Ok(vec![1.0; block.len()]))?;
    ///     let own = part.into_matrix();
    ///     assert_eq!((own.rows(), own.cols()), (2, 3));
    ///     Ok(rank.device().download(&own)?)
    /// })?;
    /// assert_eq!(own, [[1.0; 6], [1.0; 6]]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    pub fn into_matrix(self) -> Matrix<T> {
        self.matrix
    }

    /// Read-only view of this part.
    pub fn view(&self) -> MatrixRef<'_, T> {
        self.matrix.view()
    }

    /// Writable view of this part.
    pub fn view_mut(&mut self) -> MatrixMut<'_, T> {
        self.matrix.view_mut()
    }
}

impl<T: Element> Input for Sharded<T> {
    type Element = T;
}

impl<T: Element> InputOf<T> for Sharded<T> {}

impl<T: Element> operand::Input<T> for Sharded<T> {
    fn input(&self) -> (Shared<'_, T>, Option<Shape>) {
        (Shared::Buffer(self.matrix.buffer().whole()), Some(self.matrix.shape()))
    }
}

impl<T: Element> Output for Sharded<T> {
    type Element = T;
}

impl<T: Element> OutputOf<T> for Sharded<T> {}

impl<T: Element> operand::Output<T> for Sharded<T> {
    fn output(&mut self) -> (Exclusive<'_, T>, Option<Shape>) {
        (Exclusive::Buffer(self.matrix.buffer().whole()), Some(self.matrix.shape()))
    }
}

impl<T: Element> MatrixOf<T> for Sharded<T> {}
impl<T: Element> AsMatrixOf<T> for Sharded<T> {}
impl<T: Element> AsMatrixMutOf<T> for Sharded<T> {}

impl<T: Element> AsMatrixMut for Sharded<T> {
    fn as_matrix_mut(&mut self) -> MatrixMut<'_, T> {
        self.view_mut()
    }
}

impl<T: Element> AsMatrix for Sharded<T> {
    fn as_matrix(&self) -> MatrixRef<'_, T> {
        self.view()
    }
}

impl Rank {
    /// Loads this rank's part of a matrix. No rank needs the whole matrix: `load` is called only
    /// for this rank's block, and must return the elements of the block row by row.
    ///
    /// ```
    /// use gemm_world::{Block, Distribution, World};
    ///
    /// let distribution = Distribution::rows(5, 2);
    /// let parts = World::simulated(2)?.run(|rank| {
    ///     let load = |block: &Block| {
    ///         let rows = block.rows.clone();
    ///         Ok(rows.flat_map(|row| [row as f32; 2]).collect())
    ///     };
    ///     let part = rank.load(&distribution, load)?;
    ///     Ok(rank.device().download(&part.view())?)
    /// })?;
    /// assert_eq!(parts, [vec![0.0, 0.0, 1.0, 1.0], vec![2.0, 2.0, 3.0, 3.0, 4.0, 4.0]]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`WorldError::Distribution`] if the distribution does not fit the number of ranks.
    /// * Any error of `load`.
    /// * [`Error::WrongExtent`](gemm_runtime::Error::WrongExtent) if `load` returns a wrong number
    ///   of elements.
    /// * The errors of [`Device::upload`](gemm_runtime::Device::upload).
    pub fn load<T: Element>(
        &self,
        distribution: &Distribution,
        load: impl FnOnce(&Block) -> Result<Vec<T>>,
    ) -> Result<Sharded<T>> {
        let block = self.block_of(distribution)?;
        let elements = if block.is_empty() { Vec::new() } else { load(&block)? };
        if elements.len() != block.len() {
            return Err(Error::Device(gemm_runtime::Error::WrongExtent {
                argument: "load".to_owned(),
                has: elements.len() as u64,
                need: format!("the block {block} has {}", counted(block.len() as u64, "element")),
            }));
        }
        let buffer = self.device().upload_of(&elements)?;
        let (rows, cols) = (block.rows.len(), block.cols.len());
        let matrix = Matrix::from_buffer(buffer, rows, cols, cols)?;
        Ok(Sharded { distribution: distribution.clone(), block, matrix })
    }

    /// Uploads this rank's part of a matrix that every rank has on the host. `elements` is the
    /// whole matrix, row-major.
    ///
    /// # Errors
    /// Returns [`Error::WrongExtent`](gemm_runtime::Error::WrongExtent) if `elements` does not have
    /// as many elements as the whole matrix, and the errors of [`Rank::load`].
    pub fn upload<T: Element>(
        &self,
        distribution: &Distribution,
        elements: &[T],
    ) -> Result<Sharded<T>> {
        let (rows, cols) = (distribution.rows, distribution.cols);
        if rows.checked_mul(cols) != Some(elements.len()) {
            return Err(Error::Device(gemm_runtime::Error::WrongExtent {
                argument: "elements".to_owned(),
                has: elements.len() as u64,
                need: format!("the distribution `{distribution}` has {rows}·{cols} elements"),
            }));
        }
        self.load(distribution, |block| {
            let row = |row: usize| &elements[row * cols..][block.cols.clone()];
            Ok(block.rows.clone().flat_map(row).copied().collect())
        })
    }

    /// Allocates this rank's part of a matrix of zeros.
    ///
    /// # Errors
    /// Same as [`Rank::load`].
    pub fn alloc<T: Element>(&self, distribution: &Distribution) -> Result<Sharded<T>> {
        let block = self.block_of(distribution)?;
        let (rows, cols) = (block.rows.len(), block.cols.len());
        let buffer = self.device().alloc_of(block.len())?;
        let matrix = Matrix::from_buffer(buffer, rows, cols, cols)?;
        Ok(Sharded { distribution: distribution.clone(), block, matrix })
    }

    /// Wraps a matrix on this rank's device as its part of a distributed matrix.
    ///
    /// # Errors
    /// * [`WorldError::Distribution`] if the distribution does not fit the number of ranks.
    /// * [`Error::WrongExtent`](gemm_runtime::Error::WrongExtent) if `matrix` does not have the
    ///   rows and columns of this rank's block.
    /// * [`Error::WrongDevice`](gemm_runtime::Error::WrongDevice) if `matrix` is on another device.
    pub fn shard<T: Element>(
        &self,
        distribution: &Distribution,
        matrix: Matrix<T>,
    ) -> Result<Sharded<T>> {
        let block = self.block_of(distribution)?;
        let (rows, cols) = (block.rows.len(), block.cols.len());
        if (matrix.rows(), matrix.cols()) != (rows, cols) {
            return Err(Error::Device(gemm_runtime::Error::WrongExtent {
                argument: "matrix".to_owned(),
                has: matrix.rows().saturating_mul(matrix.cols()) as u64,
                need: format!(
                    "its shape {} x {} is not {rows} x {cols}, the shape of the block {block}",
                    matrix.rows(),
                    matrix.cols()
                ),
            }));
        }
        self.check_device("matrix", matrix.buffer().device())?;
        Ok(Sharded { distribution: distribution.clone(), block, matrix })
    }

    /// Gathers a matrix at rank `at`, row-major. Returns `None` on the other ranks. If the matrix
    /// is replicated, rank `at` returns its own copy.
    ///
    /// ```
    /// use gemm_world::{Distribution, World};
    ///
    /// let distribution = Distribution::cols(2, 3);
    /// let gathered = World::simulated(2)?.run(|rank| {
    ///     let part = rank.upload(&distribution, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    ///     rank.gather(&part, 0)
    /// })?;
    /// assert_eq!(gathered, [Some(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), None]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`WorldError::RankLost`] if another rank fails.
    /// * [`WorldError::Mismatch`] if ranks disagree on the distribution or on `at`.
    /// * [`WorldError::Impossible`] if rank `at` does not exist.
    /// * [`Error::OutOfMemory`](gemm_runtime::Error::OutOfMemory) if the matrix does not fit in
    ///   host memory.
    pub fn gather<T: Element>(&mut self, part: &Sharded<T>, at: usize) -> Result<Option<Vec<T>>> {
        let (distribution, ranks) = (part.distribution().clone(), self.ranks());
        if at >= ranks {
            return Err(impossible(format!("rank {at}"), &numbered(ranks)));
        }
        let collective = self.collective(format!("gathering a matrix at rank {at}"));
        collective
            .agree("the gathered matrix", &format!("{distribution} of {} at rank {at}", T::ELEM))?;
        let shards = distribution.shards(ranks).map_err(WorldError::Distribution)?;
        // If the receiver has the whole matrix, no rank sends anything.
        let is_there = shards[at] == distribution.all();
        let sends = |rank: usize| !shards[rank].is_empty() && (rank == at || !is_there);
        let own = collective.telling(self.device.download(&part.view()))?;
        // If a rank was lost, the awaited work may have ended early.
        collective.held()?;
        if self.number() != at {
            if sends(self.number()) {
                collective.send(at, 0, to_bytes(&own))?;
            }
            return Ok(None);
        }
        let mut all = Vec::new();
        let len = distribution.rows.checked_mul(distribution.cols);
        let room = len.filter(|len| all.try_reserve_exact(*len).is_ok());
        let len = collective.telling(room.ok_or_else(|| {
            Error::Device(gemm_runtime::Error::OutOfMemory {
                bytes: (distribution.rows as u64)
                    .saturating_mul(distribution.cols as u64)
                    .saturating_mul(size_of::<T>() as u64),
                device: "the host".to_owned(),
            })
        }))?;
        all.resize(len, T::default());
        for (rank, block) in shards.iter().enumerate().filter(|(rank, _)| sends(*rank)) {
            let elements =
                if rank == at { own.clone() } else { collective.elements(rank, block.len())? };
            for (row, line) in block.rows.clone().zip(elements.chunks_exact(block.cols.len())) {
                all[row * distribution.cols..][block.cols.clone()].copy_from_slice(line);
            }
        }
        Ok(Some(all))
    }

    /// Returns this rank's block of a distributed matrix.
    ///
    /// # Errors
    /// [`WorldError::Distribution`] if the distribution does not fit the number of ranks.
    pub fn block_of(&self, distribution: &Distribution) -> Result<Block> {
        let shards = distribution.shards(self.ranks()).map_err(WorldError::Distribution)?;
        let block = shards.into_iter().nth(self.number());
        block.ok_or_else(|| Error::internal(format!("no block for rank {}", self.number())))
    }
}
