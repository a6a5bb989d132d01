//! Matrices that are dealt out to ranks.

use super::error::{impossible, numbered};
use super::{Block, Distribution, Rank, WorldError};
use crate::{Error, Result};
use gemm_dsl::target::element::{Element, to_bytes};
use gemm_runtime::Matrix;
use gemm_runtime::internal::Shape;
use gemm_runtime::internal::{Exclusive, Shared, operand};
use gemm_runtime::{AsMatrix, AsMatrixMut, MatrixMut, MatrixOf, MatrixRef};
use gemm_runtime::{Input, InputOf, Output, OutputOf};

/// One rank's part of a matrix that is dealt out to the ranks of a world, or of an array, which is a matrix of one row.
/// What the others have it does not know, only which [`Block`] each has.
///
/// A part may have no elements. It is made by its [`Rank`]: of a loader ([`Rank::load`]), of zeros ([`Rank::alloc`]) or of
/// what lies on the rank's device ([`Rank::shard`]).
#[derive(Debug)]
pub struct Sharded<T: Element = f32> {
    distribution: Distribution,
    block: Block,
    matrix: Matrix<T>,
}

impl<T: Element> Sharded<T> {
    /// How the whole matrix is dealt out.
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Which rows and columns of it this part has.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The elements of this part on the rank's device.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }

    /// The elements of this part on the rank's device, given back.
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

    /// The part as a matrix to be read.
    pub fn view(&self) -> MatrixRef<'_, T> {
        self.matrix.view()
    }

    /// The part as a matrix to be written.
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
    /// This rank's part of a matrix that nobody need have as a whole: `load` is asked for the elements of a block, row
    /// after row, and only for the block that this rank has.
    ///
    /// ```
    /// use gemm_world::{Block, Distribution, World};
    ///
    /// let distribution = Distribution::rows(5, 2);
    /// let parts = World::simulated(2)?.run(|rank| {
    ///     let load = |block: &Block| Ok(block.rows.clone().flat_map(|row| [row as f32; 2]).collect());
    ///     let part = rank.load(&distribution, load)?;
    ///     Ok(rank.device().download(&part.view())?)
    /// })?;
    /// assert_eq!(parts, [vec![0.0, 0.0, 1.0, 1.0], vec![2.0, 2.0, 3.0, 3.0, 4.0, 4.0]]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`WorldError::Distribution`] for a layout that is not for so many ranks; what `load` fails with; [`Error::WrongExtent`](gemm_runtime::Error::WrongExtent) where
    /// it gives another number of elements; and those of [`Device::upload`](gemm_runtime::Device::upload).
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
                need: format!("the block {block} has {} elements", block.len()),
            }));
        }
        let buffer = self.device().upload_of(&elements)?;
        let (rows, cols) = (block.rows.len(), block.cols.len());
        let matrix = Matrix::from_buffer(buffer, rows, cols, cols)?;
        Ok(Sharded { distribution: distribution.clone(), block, matrix })
    }

    /// This rank's part of a matrix of which every rank has all elements on the host, row after row.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](gemm_runtime::Error::WrongExtent) where there are not `rows * cols` of the layout, and those of [`Rank::load`].
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
                need: format!("the layout `{distribution}` has {rows}·{cols} elements"),
            }));
        }
        self.load(distribution, |block| {
            let row = |row: usize| &elements[row * cols..][block.cols.clone()];
            Ok(block.rows.clone().flat_map(row).copied().collect())
        })
    }

    /// This rank's part of a matrix of zeros.
    ///
    /// # Errors
    /// As [`Rank::load`].
    pub fn alloc<T: Element>(&self, distribution: &Distribution) -> Result<Sharded<T>> {
        let block = self.block_of(distribution)?;
        let (rows, cols) = (block.rows.len(), block.cols.len());
        let buffer = self.device().alloc_of(block.len())?;
        let matrix = Matrix::from_buffer(buffer, rows, cols, cols)?;
        Ok(Sharded { distribution: distribution.clone(), block, matrix })
    }

    /// What lies on this rank's device as its part of a matrix.
    ///
    /// # Errors
    /// [`WorldError::Distribution`]; [`Error::WrongExtent`](gemm_runtime::Error::WrongExtent) where the part has other rows and columns than the matrix;
    /// [`Error::WrongDevice`](gemm_runtime::Error::WrongDevice) for one of another device.
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
                    "its shape {}x{} is not that of the block {block}, {rows}x{cols}",
                    matrix.rows(),
                    matrix.cols()
                ),
            }));
        }
        self.check_device("matrix", matrix.buffer().device())?;
        Ok(Sharded { distribution: distribution.clone(), block, matrix })
    }

    /// The elements of a matrix at one rank, row after row; none at the others. Where all have it whole, they are those of
    /// that rank.
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
    /// [`WorldError::RankLost`]; [`WorldError::Mismatch`] where ranks are at odds over the layout or over who gets the
    /// elements; [`WorldError::Impossible`] for a rank that is not there; [`Error::OutOfMemory`](gemm_runtime::Error::OutOfMemory) where the host has no room.
    pub fn gather<T: Element>(&mut self, part: &Sharded<T>, at: usize) -> Result<Option<Vec<T>>> {
        let (distribution, ranks) = (part.distribution().clone(), self.ranks());
        if at >= ranks {
            return Err(impossible(format!("rank {at}"), &numbered(ranks)));
        }
        let collective = self.collective(format!("gathering a matrix at rank {at}"));
        collective
            .agree("what is gathered", &format!("{distribution} of {} at rank {at}", T::ELEM))?;
        let shards = distribution.shards(ranks).map_err(WorldError::Distribution)?;
        // What the rank has all of nobody sends.
        let is_there = shards[at] == distribution.all();
        let sends = |rank: usize| !shards[rank].is_empty() && (rank == at || !is_there);
        let own = collective.telling(self.device.download(&part.view()))?;
        // What it waited for may have ended with the loss of a rank.
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

    /// Which part of a matrix this rank has.
    ///
    /// # Errors
    /// [`WorldError::Distribution`] for a layout that is not for so many ranks.
    pub fn block_of(&self, distribution: &Distribution) -> Result<Block> {
        let shards = distribution.shards(self.ranks()).map_err(WorldError::Distribution)?;
        let block = shards.into_iter().nth(self.number());
        block.ok_or_else(|| Error::internal(format!("no block for rank {}", self.number())))
    }
}
