//! Distributed split-K: each rank computes partial sums over its partitions of K. The ranks add
//! these sums in the order of K, as a kernel with `split_k` does on one device.

use super::call::{ShardedCall, What};
use super::collective::CollectiveContext;
use super::error::impossible;
use super::{Block, Distributions, Factor, Rank, Sharded, WorldError};
use crate::selection::check_layout;
use crate::staging::{area, area_of, part};
use crate::transport::{
    ExchangeStart, OwnBlock, Transfer, Transport, TransportWork, with_transport,
};
use crate::transposition::Transposition;
use crate::{Error, Result};
use gemm_dsl::spec::{Arith, SgemmSpec, SplitK};
use gemm_runtime::internal::{Area, Areas, Backend, DeviceBackend, On, call_program, load};
use gemm_runtime::{Buffer, MatrixMut, MatrixRef, ReduceKernel};
use std::ops::Range;

/// Reduction that adds the partial sums in the order of K.
const ADD: &str = "over: columns, group: 1";

impl ShardedCall<'_> {
    /// Computes C = A·B with *K* distributed: A by columns and B by rows. Each rank computes
    /// partial sums over its partitions of K. The ranks then exchange these sums instead of A and
    /// B, which pays for a small M·N and a large K.
    ///
    /// The key `split_k: n` of the kernel's spec determines the partitions, which
    /// [`SgemmPlan::partitions`](gemm_dsl::plan::SgemmPlan::partitions) returns. Their sums are
    /// added in the order of K. The result therefore has the same bits as on one device, for any
    /// distribution of the partitions. A partition must not be divided between ranks.
    ///
    /// Pass the matrices as they are stored, like to [`launch`](ShardedCall::launch). With
    /// `layout: tn`, for example, memory holds A's transpose, so distribute this matrix by rows.
    ///
    /// ```
    /// use gemm_world::{OnRank, Distribution, World};
    /// use gemm_runtime::{Device, SgemmKernel, sgemm_kernel};
    ///
    /// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 2x2, split_k: 4, pitched);
    ///
    /// let (m, n, k) = (5, 6, 64);
    /// let a: Vec<f32> = (0..m * k).map(|i| 1.0 / (1 + i) as f32).collect();
    /// let b = vec![0.1; k * n];
    /// let products = World::simulated(2)?.run(|rank| {
    ///     let of_a = rank.upload(&Distribution::cols(m, k), &a)?;
    ///     let of_b = rank.upload(&Distribution::rows(k, n), &b)?;
    ///     let mut c = rank.alloc(&Distribution::rows(m, n))?;
    ///     GEMM.on(rank).launch_split_k(&of_a, &of_b, &mut c)?;
    ///     rank.gather(&c, 0)
    /// })?;
    /// assert_eq!(products[0], Some(GEMM.run(&Device::simulator(), &a, &b, (m, n, k))?));
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`WorldError::Mismatch`] and [`WorldError::RankLost`], as for
    ///   [`launch`](ShardedCall::launch).
    /// * [`WorldError::Divided`] for a kernel whose partitions depend on the extents of C.
    /// * [`WorldError::Impossible`] if A is not distributed by columns or B not by rows, or if a
    ///   partition is divided between ranks.
    /// * [`WorldError::Impossible`] for a table, and for a [`strategy`](ShardedCall::strategy).
    /// * [`WorldError::Impossible`] for a kernel that is not a plain `f32` GEMM. An epilogue needs
    ///   complete sums, and `f16x3` scales whole rows of A and columns of B.
    pub fn launch_split_k(self, a: &Sharded, b: &Sharded, c: &mut Sharded) -> Result<()> {
        let (what, rank, said) = self.parts();
        for (name, of) in [("a", a), ("b", b), ("c", &*c)] {
            rank.check_device(name, of.matrix().buffer().device())?;
        }
        let What::Kernel(kernel) = what else {
            return Err(impossible(
                "a kernel table for a distributed K".to_owned(),
                "only a single spec determines split-K partitions. Use the kernel of one rule",
            ));
        };
        let line = kernel.spec_line();
        let spec: SgemmSpec = line.parse()?;
        let collective = rank.collective("multiplying along a distributed K");
        let of_all =
            format!("A {}, B {}, C {}", a.distribution(), b.distribution(), c.distribution());
        collective
            .agree("the GEMM", &format!("`{line}` along the distributed K of {of_all}{}", said))?;
        check_layout(&spec, said.lies)?;
        if let Some(strategy) = said.strategy {
            return Err(impossible(
                format!("the strategy `{strategy}` for a distributed K"),
                "the ranks exchange all partial sums at once, at the end. Leave `strategy` out",
            ));
        }
        let transposition = Transposition::from_spec(&spec);
        let distributions =
            transposition.distributions(a.distribution(), b.distribution(), c.distribution());
        let Distributions { a: of_a, b: of_b, c: of_c } = &distributions;
        let ranges = ranges(line, &spec, of_a.cols)?;
        if (of_a.rows, of_b.rows, of_b.cols) != (of_c.rows, of_a.cols, of_c.cols) {
            let [a, b] = Factor::BOTH.map(|factor| transposition.name(factor));
            return Err(impossible(
                format!("a GEMM of {of_all}"),
                &format!(
                    "{a} must have as many rows as C, {b} as many columns, and both the same K"
                ),
            ));
        }
        let owners = owners(&distributions, transposition, &of_all, rank.ranks(), &ranges)?;
        let made = by_ranges(
            rank,
            &collective,
            &SplitPlan { spec: &spec, ranges: &ranges, owners: &owners },
            a,
            b,
            c,
        );
        collective.telling(made)
    }
}

/// Partitions of K, and the rank that owns each partition.
struct SplitPlan<'p> {
    spec: &'p SgemmSpec,
    ranges: &'p [Range<usize>],
    owners: &'p [usize],
}

/// Computes and exchanges partial sums, once all ranks have agreed.
fn by_ranges(
    rank: &Rank,
    collective: &CollectiveContext,
    plan: &SplitPlan<'_>,
    a: &Sharded,
    b: &Sharded,
    c: &mut Sharded,
) -> Result<()> {
    let SplitPlan { spec, ranges, owners } = *plan;
    let (m, n) = (c.distribution().rows, c.distribution().cols);
    let own = rank.number();
    let mine: Range<usize> = match owners.iter().position(|of| *of == own) {
        None => 0..0,
        Some(first) => {
            first..owners.iter().rposition(|of| *of == own).map_or(first, |last| last + 1)
        }
    };
    let device = rank.device().clone();
    let sums = Sums { ranges, mine: mine.clone(), m, n };
    let mut sent = device.alloc(sums.len(mine.len(), m, n)?)?;
    for range in mine.clone() {
        sums.multiply(rank, spec, a, b, range, &mut sent)?;
    }
    let kept = c.block().clone();
    let got = device.alloc(sums.len(ranges.len(), kept.rows.len(), kept.cols.len())?)?;
    let blocks = c.distribution().shards(rank.ranks()).map_err(WorldError::Distribution)?;
    let add = <ReduceKernel>::new(ADD.parse()?)?;
    load(&device, &*add.prepare(&device)?)?;
    rank.links.all_ready(collective)?;
    let step = SumsExchange { sums: &sums, own, owners, blocks: &blocks, sent: &sent, got: &got };
    step.exchange(rank, collective)?;
    if kept.is_empty() {
        return Ok(());
    }
    if ranges.is_empty() {
        // The sum over an empty K is +0, but a reduction without elements returns its identity, -0.
        let zeros = device.alloc(kept.len())?;
        return copy(&device, &zeros, c);
    }
    let sums = MatrixRef::new(&got, ranges.len(), kept.len())?;
    if c.matrix().pitch() == kept.cols.len() || kept.rows.len() == 1 {
        add.launch(&device, &sums, &mut c.view_mut())?;
        return Ok(());
    }
    let mut packed = device.alloc(kept.len())?;
    add.launch(&device, &sums, &mut packed)?;
    copy(&device, &packed, c)
}

/// Copies packed elements to the rows of C.
fn copy(device: &gemm_runtime::Device, from: &Buffer, c: &mut Sharded) -> Result<()> {
    let matrix = c.matrix();
    let (rows, cols, pitch) = (matrix.rows(), matrix.cols(), matrix.pitch());
    let packed = Rows { buffer: from, rows, cols, pitch: cols };
    let to = Rows { buffer: matrix.buffer(), rows, cols, pitch };
    match device.backend() {
        DeviceBackend::Gpu(gpu) => packed.copy(gpu, &to),
        DeviceBackend::Simulator(simulator) => packed.copy(simulator, &to),
    }
}

/// Rows with a stride, at the start of a buffer.
struct Rows<'b> {
    buffer: &'b Buffer,
    rows: usize,
    cols: usize,
    pitch: usize,
}

impl Rows<'_> {
    fn copy<B: Areas>(&self, backend: &B, to: &Self) -> Result<()> {
        Ok(backend.copy_area(&self.area()?, &to.area()?)?)
    }

    fn area<B: Backend>(&self) -> Result<Area<B>> {
        area_of(self.buffer, self.rows, self.cols, self.pitch)
    }
}

/// Returns a kernel's partitions of K, each of which can be summed separately.
fn ranges(line: &str, spec: &SgemmSpec, k: usize) -> Result<Vec<Range<usize>>> {
    if spec.arith != Arith::F32 || !spec.is_plain() {
        return Err(impossible(
            format!("a GEMM by `{line}` whose K is distributed"),
            "the kernel must be a plain `f32` GEMM. Leave `arith`, `epilogue`, `scaled` and \
             `batch` out",
        ));
    }
    let Some(ranges) = spec.plan()?.partitions(k as u64) else {
        let key = spec.depends_on_size().unwrap_or("split_k");
        return Err(Error::World(WorldError::Divided { line: line.to_owned(), key }));
    };
    // The bounds fit in a `usize`, since they do not exceed K.
    Ok(ranges.into_iter().map(|range| range.start as usize..range.end as usize).collect())
}

/// Returns the owner of each partition.
fn owners(
    distributions: &Distributions,
    transposition: Transposition,
    of_all: &str,
    ranks: usize,
    ranges: &[Range<usize>],
) -> Result<Vec<usize>> {
    let of_a = distributions.a.shards(ranks).map_err(WorldError::Distribution)?;
    let of_b = distributions.b.shards(ranks).map_err(WorldError::Distribution)?;
    let (rows, cols) = (distributions.a.rows, distributions.b.cols);
    let holds = |rank: usize, range: &Range<usize>| {
        let inside = |has: &Range<usize>| has.start <= range.start && range.end <= has.end;
        let (of_a, of_b) = (&of_a[rank], &of_b[rank]);
        let whole = of_a.rows == (0..rows) && of_b.cols == (0..cols);
        whole && inside(&of_a.cols) && inside(&of_b.rows)
    };
    let owner = |range: &Range<usize>| {
        let owner = (0..ranks).find(|rank| holds(*rank, range));
        owner.ok_or_else(|| {
            let [of_a, of_b] = match Factor::BOTH.map(|factor| transposition.is_turned(factor)) {
                [false, false] => ["columns", "rows"],
                [false, true] => ["columns", "columns"],
                [true, false] => ["rows", "rows"],
                [true, true] => ["rows", "columns"],
            };
            impossible(
                format!("split-K of a GEMM distributed as {of_all}"),
                &format!(
                    "partition K = {}..{} must lie on one rank. Distribute the stored A by {of_a} \
                     and B by {of_b}, with boundaries only between partitions",
                    range.start, range.end
                ),
            )
        })
    };
    ranges.iter().map(owner).collect()
}

/// Partial sums: one M x N matrix per partition, stacked vertically.
struct Sums<'s> {
    ranges: &'s [Range<usize>],
    /// Partitions that this rank computes.
    mine: Range<usize>,
    m: usize,
    n: usize,
}

impl Sums<'_> {
    /// Number of elements of `count` matrices of `rows` x `cols`.
    fn len(&self, count: usize, rows: usize, cols: usize) -> Result<usize> {
        let len = count.checked_mul(rows).and_then(|all| all.checked_mul(cols));
        len.ok_or_else(|| {
            Error::Device(gemm_runtime::Error::TooLarge {
                what: format!("the sums of {count} partitions have {count}·{rows}·{cols} elements"),
                limit: usize::MAX as u64,
                remedy: "Use fewer partitions, or distribute rows or columns instead of K",
            })
        })
    }

    /// Returns the block of one partition's sums within the matrix of all sums.
    fn block(&self, range: usize, of: &Block) -> Block {
        let first = range * self.m;
        Block::new(first + of.rows.start..first + of.rows.end, of.cols.clone())
    }

    /// Computes the sums of a partition.
    fn multiply(
        &self,
        rank: &Rank,
        spec: &SgemmSpec,
        a: &Sharded,
        b: &Sharded,
        range: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        let (terms, m, n) = (&self.ranges[range], self.m, self.n);
        let within = |has: &Range<usize>| terms.start - has.start..terms.end - has.start;
        let transposition = Transposition::from_spec(spec);
        let terms_of_a = within(&transposition.block(Factor::A, a.block()).cols);
        let terms_of_b = within(&transposition.block(Factor::B, b.block()).rows);
        let of_a = transposition.view(Factor::A, a.view()).part(0..m, terms_of_a)?;
        let of_b = transposition.view(Factor::B, b.view()).part(terms_of_b, 0..n)?;
        // A part of a matrix may be padded, even if the spec requires packed matrices.
        let is_padded = of_a.shape().is_padded() || of_b.shape().is_padded();
        let spec = spec.clone().split_k(SplitK::Partitions(1));
        let spec = if is_padded { spec.pitched(true) } else { spec };
        let device = rank.device();
        let program = device.programs().get::<SgemmSpec>(&spec.to_string())?;
        let nth = range - self.mine.start;
        let mut to = to.slice_mut(nth * m * n..(nth + 1) * m * n)?;
        let to = &mut MatrixMut::new(&mut to, m, n)?;
        call_program::<(), _>(&program, device, ()).launch(&of_a, &of_b, to)?;
        Ok(())
    }
}

/// Exchange of partial sums: each rank receives the sums of all partitions for its block of C.
struct SumsExchange<'s> {
    sums: &'s Sums<'s>,
    own: usize,
    owners: &'s [usize],
    /// Block of C kept by each rank.
    blocks: &'s [Block],
    sent: &'s Buffer,
    got: &'s Buffer,
}

impl SumsExchange<'_> {
    fn exchange(self, rank: &Rank, collective: &CollectiveContext) -> Result<()> {
        let device = &rank.device;
        with_transport::<f32>(device, &rank.links, collective, self)
    }
}

impl TransportWork for SumsExchange<'_> {
    fn run<B: Areas>(self, on: On<'_, B>, transport: &mut dyn Transport<B>) -> Result<()> {
        let Self { sums, own, owners, blocks, sent, got } = self;
        let (factor, n) = (Factor::A, sums.n);
        let held = Block::new(sums.mine.start * sums.m..sums.mine.end * sums.m, 0..n);
        let source = area::<B>(sent, &held)?;
        let own_part = OwnBlock { factor, block: held.clone(), area: source.clone() };
        transport.start(on.backend, &[own_part])?;
        let (rows, cols) = (blocks[own].rows.len(), blocks[own].cols.len());
        let all = Block::new(0..owners.len() * rows, 0..cols);
        let target = area::<B>(got, &all)?;
        let mut transfers = Vec::new();
        for (range, owner) in owners.iter().enumerate() {
            if *owner == own {
                for (rank, block) in blocks.iter().enumerate() {
                    if rank != own && !block.is_empty() {
                        let from = part(&source, &held, &sums.block(range, block))?;
                        transfers.push(Transfer::Send { to: rank, from });
                    }
                }
            }
            if blocks[own].is_empty() {
                continue;
            }
            let block = sums.block(range, &blocks[own]);
            let to = part(&target, &all, &Block::new(range * rows..(range + 1) * rows, 0..cols))?;
            transfers.push(match *owner == own {
                true => Transfer::Copy { from: part(&source, &held, &block)?, to },
                false => Transfer::Receive { from: *owner, block, to },
            });
        }
        transport
            .begin(on.backend, ExchangeStart { exchange: 0, factor, transfers, behind: false })?;
        transport.wait(on.backend, 0)?;
        transport.end(on.backend)
    }
}
