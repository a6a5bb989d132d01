//! Tiles for which several blocks compute partial sums. Each part of the code that lets one block
//! add all partial sums is needed.

use crate::planted_faults::*;
use gemm_dsl::ir::{Elem, Expr, MemoryOrder, Scope, VerifiedKernel};
use gemm_dsl::spec::{SgemmSpec, SplitK};
use gemm_oracle::product::Size;
use gemm_oracle::random;
use gemm_oracle::random::Random;
use gemm_oracle::sharing;
use gemm_oracle::sharing::{SIMULATED, Sharing};
use gemm_sim::Buffer;
use gemm_tests::arbitrary;
use gemm_tests::product::accepted;
use libtest_mimic::Trial;
use std::collections::BTreeMap;

/// Split-K kernels with three partitions and stream-K kernels, with every pipeline, with several
/// GEMMs per block, and without a pipeline. The number is the minimum number of barriers in the
/// kernel.
const LINES: [(&str, usize); 15] = [
    ("tile: 16x16x8, thread: 2x2, split_k: 3", 4),
    ("tile: 16x16x8, thread: 4x4, split_k: 3, double_buffer, float4", 4),
    ("tile: 16x16x8, thread: 4x4, split_k: 3, stages: 3, fragment: split", 4),
    ("tile: 8x8x8, thread: 2x2, split_k: 3, prefetch, batch: strided, products: 2", 4),
    ("tile: 16x16x8, thread: 4x2, split_k: auto, double_buffer", 4),
    ("tile: 16x16x8, thread: 2x2, stream_k, raster: 2", 4),
    ("tile: 16x16x8, thread: 4x4, stream_k, stages: 3, spread: 2, float4", 4),
    ("tile: 8x8x8, thread: 2x2, stream_k, batch: strided, products: 2", 4),
    ("tile: 16x16x8, thread: 4x4, split_k: 3, slices: 4, double_buffer, float4", 5),
    (
        "tile: 16x16x8, thread: 4x4, stream_k, slices: 2, stages: 3, spread: 2, float4, transpose, \
         pad_a: 4",
        5,
    ),
    ("tile: 8x8x8, thread: 2x2, slices: 2, split_k: auto, batch: strided, products: 2", 5),
    ("block: 8x8, thread: 2x2, unroll: 8, split_k: 3", 2),
    ("block: 2x8, thread: 4x1, float4, slices: 2, split_k: 3, batch: strided", 3),
    ("block: 2x2, lanes: k, thread: 4x4, slices: 2, split_k: 3", 3),
    ("block: 2x2, lanes: k, thread: 4x1, float4, split_k: auto", 2),
];

/// Size with at least two tiles along M and N. K has five tiles or rounds, of which the last is
/// partial. The three partitions have two, two and one of these.
fn size(spec: &SgemmSpec) -> Size {
    let depth = spec.plan().expect("a sound spec").k_step() as usize;
    Size { m: 20, n: 24, k: 4 * depth + (depth / 2).next_multiple_of(4) }
}

const RANGES: u32 = 3;
/// Numbers of stream-K blocks. Five blocks start and end inside tiles. Of three blocks, some
/// compute a whole tile and start another.
const BLOCKS: [usize; 2] = [5, 3];
const BATCH: usize = 3;

fn spec(line: &str) -> SgemmSpec {
    line.parse().expect("a line")
}

/// Launch parameters: problem size, batch size, and the number of stream-K blocks.
#[derive(Clone, Copy, Debug)]
struct Launch {
    size: Size,
    /// Number of GEMMs in the batch, or 1.
    count: usize,
    blocks: usize,
}

impl Launch {
    fn of(spec: &SgemmSpec, size: Size, blocks: usize) -> Self {
        Self { size, count: if spec.batch.is_some() { BATCH } else { 1 }, blocks }
    }

    fn factors(&self) -> [Vec<f32>; 2] {
        let Size { m, n, k } = self.size;
        [random::values(1, self.count * m * k), random::values(2, self.count * k * n)]
    }

    fn sharing(&self, spec: &SgemmSpec) -> Sharing {
        // For the reference, `auto` is replaced with the number of partitions that the kernel gets.
        let spec = match spec.split_k {
            SplitK::Auto => &spec.clone().split_k(RANGES),
            SplitK::Partitions(_) => spec,
        };
        Sharing::new(spec, self.size, self.count, SIMULATED).by_blocks(self.blocks)
    }

    /// Expected C: the sums of all partitions of K, added in order.
    fn expected(&self, spec: &SgemmSpec) -> Vec<f32> {
        let Size { m, n, k } = self.size;
        let ([a, b], sharing) = (self.factors(), self.sharing(spec));
        let element = |at: usize| {
            let (nth, at) = (at / (m * n), (at / n % m, at % n));
            let term = |p: usize| (a[(nth * m + at.0) * k + p], b[(nth * k + p) * n + at.1]);
            sharing.sum(nth, at, term)
        };
        (0..self.count * m * n).map(element).collect()
    }

    fn shown(&self, spec: &SgemmSpec, kernel: &VerifiedKernel) -> Shown {
        let (Size { m, n, k }, Self { count, blocks, .. }) = (self.size, *self);
        let [a, b] = self.factors();
        let plan = spec.plan().expect("a sound spec");
        let ((rows, cols), depth) = (plan.block_tile(), plan.k_step() as usize);
        let of_part = (rows * cols * spec.products) as usize;
        let tiles = m.div_ceil(rows as usize) * n.div_ceil(cols as usize);
        let tiles = tiles * count.div_ceil(spec.products as usize);
        // The scratch memory has the minimum size. It is empty if no two blocks share a tile.
        let (parts, words) = match (spec.stream_k, self.sharing(spec).parts(0, (0, 0))) {
            (true, _) if tiles.is_multiple_of(blocks) || k <= depth => (0, 0),
            (true, _) => (2 * blocks, 2 * blocks),
            (false, 1) => (0, 0),
            (false, ranges) => (tiles * ranges, tiles),
        };
        let c = Buffer::from_f32(&vec![f32::NAN; count * m * n]);
        let partials = Buffer::from_f32(&vec![f32::NAN; parts * of_part]);
        let tickets = Buffer::zeros_of(Elem::U32, words);
        let buffers = [Buffer::from_f32(&a), Buffer::from_f32(&b), c, partials, tickets];
        let mut scalars = vec![m as u64, n as u64, k as u64];
        if spec.batch.is_some() {
            scalars.push(count as u64);
            scalars.extend([m * k, k * n, m * n].map(|apart| apart as u64));
        }
        match (spec.stream_k, spec.split_k) {
            (true, _) => scalars.extend([tiles as u64, blocks as u64]),
            (false, SplitK::Auto) => scalars.push(RANGES.into()),
            (false, SplitK::Partitions(_)) => {}
        }
        match gemm_sim::launch(kernel, &buffers, &scalars) {
            Ok(_) if buffers[4].bits().iter().any(|word| *word != 0) => Shown::NotKept,
            Ok(_) => {
                let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
                let (all, expected) = (buffers[2].to_vec(), self.expected(spec));
                let right = all.iter().zip(&expected).all(same);
                if right { Shown::Not } else { Shown::Wrong }
            }
            Err(error) => Shown::by(error),
        }
    }
}

/// First symptom of a fault, over all numbers of blocks.
fn shown(spec: &SgemmSpec, kernel: &VerifiedKernel) -> Shown {
    let all = BLOCKS.map(|blocks| Launch::of(spec, size(spec), blocks).shown(spec, kernel));
    all.into_iter().find(|shown| *shown != Shown::Not).unwrap_or(Shown::Not)
}

fn ranges_are_added_in_their_order_and_every_barrier_is_needed() {
    for (line, barriers) in LINES {
        let spec = spec(line);
        let sound = kernel(&spec);
        assert_eq!(shown(&spec, &sound), Shown::Not, "{line}");
        let planted = each(|n| without_barrier(&sound, Scope::Block, n));
        assert!(planted.len() >= barriers, "{line}: {}", planted.len());
        for (n, kernel) in planted.iter().enumerate() {
            let found = shown(&spec, kernel);
            let told = [Shown::Race, Shown::Uninitialised].contains(&found);
            assert!(told, "`{line}` without barrier {n}: {found:?}");
        }
    }
}

fn tickets_order_what_ranges_leave_and_are_put_back() {
    for (line, _) in LINES {
        let spec = spec(line);
        let sound = kernel(&spec);
        for order in [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release] {
            let weak = with_ticket(&sound, order, 1).expect("a ticket");
            assert_eq!(shown(&spec, &weak), Shown::Race, "`{line}`, {order:?}");
        }
        let forgotten = without_store(&sound, "tickets", 0).expect("a reset");
        assert_eq!(shown(&spec, &forgotten), Shown::NotKept, "{line}");
        let early = with_ticket(&sound, MemoryOrder::AcqRel, 2).expect("a ticket");
        let found = shown(&spec, &early);
        let told =
            [Shown::Race, Shown::Uninitialised, Shown::MemoryOrder, Shown::NotKept, Shown::Wrong];
        assert!(told.contains(&found), "`{line}` that does not wait: {found:?}");
        let fewer = with_other_end(&sound, "other", -2).expect("the other partitions");
        assert_eq!(shown(&spec, &fewer), Shown::Wrong, "{line}");
    }
}

/// Any number of blocks can share any number of tiles and steps. Results are correct in every order
/// of blocks that the simulator tries.
fn blocks_share_all_tiles_whatever_their_number() {
    for (line, _) in LINES.into_iter().filter(|(line, _)| line.contains("stream_k")) {
        let spec = spec(line);
        let sound = kernel(&spec);
        let mut random = Random::new(7);
        for _ in 0..40 {
            let mut below = |most: u64| (random.bits() % most) as usize;
            let four = if spec.float4 { 4 } else { 1 };
            let size = Size::new(
                1 + below(40),
                four * (1 + below(40 / four as u64)),
                four * below(80 / four as u64),
            );
            let launch = Launch::of(&spec, size, 1 + below(12));
            assert_eq!(launch.shown(&spec, &sound), Shown::Not, "{line}, {launch:?}");
        }
    }
}

/// If a block computes all of a tile, it stores no partial sum and takes no ticket. The condition
/// for this path must be exact.
fn a_block_that_has_a_whole_tile_stores_at_once() {
    let holds = |holds: bool| Expr::I32(holds.into()).equals(1);
    for (line, _) in LINES {
        let spec = spec(line);
        let sound = kernel(&spec);
        let never = with_initial(&sound, "stores", &holds(false)).expect("the flag");
        let always = with_initial(&sound, "stores", &holds(true)).expect("the flag");
        let depth = spec.plan().expect("a sound spec").k_step() as usize;
        for k in [0, 4, depth] {
            let size = Size { k, ..size(&spec) };
            let tiles = Launch::of(&spec, size, 1);
            // These numbers of blocks divide the number of tiles.
            for blocks in [1, 2] {
                let launch = Launch { blocks, ..tiles };
                assert_eq!(launch.shown(&spec, &sound), Shown::Not, "{line}, {launch:?}");
                assert_eq!(launch.shown(&spec, &always), Shown::Not, "{line}, {launch:?}");
                // There is no memory for partial sums.
                let found = launch.shown(&spec, &never);
                assert!(matches!(found, Shown::Otherwise(_)), "{line}, {launch:?}: {found:?}");
            }
        }
        let found = shown(&spec, &always);
        let told = [Shown::Race, Shown::MemoryOrder, Shown::Wrong];
        assert!(told.contains(&found), "`{line}` that stores its part: {found:?}");
    }
}

/// Random specs at random sizes cover each kind of sharing, both with shared and with whole tiles.
fn random_specs_share_in_every_way() {
    let mut seen = BTreeMap::new();
    let cases = (arbitrary::sgemm(256), 1..20usize, 1..20usize, 0..70usize);
    for (spec, m, n, k) in arbitrary::sample(cases, 600) {
        let size = accepted(&spec, Size::new(m, n, k));
        let parts = Sharing::new(&spec, size, 1, SIMULATED).parts(0, (0, 0));
        let way = match (spec.stream_k, spec.split_k) {
            (true, _) => "stream_k",
            (_, SplitK::Auto) => "auto",
            (_, SplitK::Partitions(2..)) => "ranges",
            _ => continue,
        };
        *seen.entry((way, parts > 1, spec.slices > 1)).or_insert(0) += 1;
    }
    let ways = ["stream_k", "auto", "ranges"];
    let all = ways.into_iter().flat_map(|way| [false, true].map(|shares| (way, shares)));
    for (way, shares) in all {
        for slices in [false, true] {
            let key = (way, shares, slices);
            assert!(seen.contains_key(&key), "none of {key:?} in {seen:?}");
        }
    }
}

/// On a device with at least 80 SMs, blocks share tiles for each spec of the concurrency and graph
/// tests.
fn every_line_shares() {
    for (name, line) in sharing::LINES {
        for (size, sms) in [(Size::new(130, 200, 204), 80), (Size::new(160, 192, 208), 200)] {
            let shares = Sharing::new(&spec(line), size, 1, sms).parts(0, (0, 0)) > 1;
            assert!(shares, "{name} at {size} by {sms}");
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![
        ranges_are_added_in_their_order_and_every_barrier_is_needed,
        tickets_order_what_ranges_leave_and_are_put_back,
        blocks_share_all_tiles_whatever_their_number,
        a_block_that_has_a_whole_tile_stores_at_once,
        random_specs_share_in_every_way,
        every_line_shares,
    ]
}
