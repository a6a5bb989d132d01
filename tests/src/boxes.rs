//! Boxes of arrays, copied to shared memory and read there by ordinary loads, wherever they begin.

use crate::random::Random;
use gemm_dsl::ir::{
    Access, BufferLayout, Change, Elem, Expr, For, Geometry, KernelBuilder, Operand, ProxyFence,
    Special, TensorMap, TensorSwizzle, VerifiedKernel,
};
use gemm_sim::{Buffer, Counters, SimError};

/// Boxes of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    /// What the elements are.
    pub elem: Elem,
    /// How rows are swizzled.
    pub swizzle: TensorSwizzle,
    /// The extents of the array, outermost first.
    pub extents: Vec<i32>,
    /// Those of a box.
    pub tile: Vec<i32>,
}

/// Boxes that a launch copies, one a block.
pub const COUNT: usize = 24;
const THREADS: u32 = 64;

/// Arrays of two and of three dimensions, elements of every size, rows as each swizzle has them and without.
pub fn cases() -> Vec<Boxes> {
    let elems = [Elem::U8, Elem::Bf16, Elem::F16, Elem::F32, Elem::I32, Elem::F64];
    let swizzles = TensorSwizzle::ALL.into_iter().chain([TensorSwizzle::None]);
    let pairs = swizzles.enumerate().flat_map(|(i, swizzle)| {
        elems.into_iter().enumerate().map(move |(j, elem)| (i + j, swizzle, elem))
    });
    let of = |(at, swizzle, elem): (usize, TensorSwizzle, Elem)| {
        let size = elem.size() as i32;
        let row = swizzle.bytes().map_or(48, |bytes| bytes as i32) / size;
        // The length of a line of the array is a multiple of 16 bytes.
        let line = 160 / size;
        let (extents, tile) = match at % 2 {
            0 => (vec![19, line], vec![16, row]),
            _ => (vec![3, 11, line], vec![2, 8, row]),
        };
        Boxes { elem, swizzle, extents, tile }
    };
    pairs.map(of).collect()
}

impl Boxes {
    /// What tells it from the others.
    pub fn name(&self) -> String {
        let bytes = self.swizzle.bytes().unwrap_or_default();
        format!("{}_{}d_{bytes}", self.elem, self.tile.len())
    }

    /// Elements of a box.
    pub fn len(&self) -> usize {
        self.tile.iter().product::<i32>() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kernel. It takes the array, where each box begins, and what it copies, box by box.
    ///
    /// # Panics
    /// Never: the kernel is sound.
    pub fn kernel(&self) -> VerifiedKernel {
        let (elem, rank, len) = (self.elem, self.tile.len(), self.len() as i32);
        let mut k = KernelBuilder::new("boxes");
        let tile = self.tile.iter().map(|extent| *extent as u32).collect();
        let map = TensorMap { tile, swizzle: self.swizzle };
        let from = k.tensor_map("from", elem, Operand::Input(0), map);
        let places = k.global("places", Elem::I32, Operand::Input(1));
        let out = k.global("out", elem, Operand::Output(0));
        let strides = self.strides().into_iter().map(Expr::I32);
        k.shape(from, self.extents.iter().copied().map(Expr::I32), strides);
        let count = COUNT as i32;
        k.shape(places, [count.into(), (rank as i32).into()], [(rank as i32).into(), 1.into()]);
        k.shape(out, [count.into(), len.into()], [len.into(), 1.into()]);
        let grid = [Expr::U64(COUNT as u64), Expr::U64(1), Expr::U64(1)];
        k.geometry(Geometry { block: (THREADS, 1), grid, blocks_per_sm: 1 });
        let order = (0..rank).collect();
        let layout =
            BufferLayout::Array { order, pad: 0.into(), swizzle: self.swizzle.layout(elem) };
        let dims = self.tile.iter().copied().map(Expr::I32);
        let held = k.shared("held", elem, dims, layout, "a box");
        let come = k.mbarriers("come", 1, "the box has come");
        let tid = || Expr::from(Special::ThreadX);
        k.if_(tid().equals(0), |k| {
            k.mbarrier_init(come, 0, 1);
            k.proxy_fence(ProxyFence::MbarrierInit);
            k.mbarrier_arrive_expect(come, 0, len * elem.size() as i32);
            let at: Vec<Expr> = (0..rank as i32)
                .map(|d| Access::new(places, [Special::BlockX.into(), d.into()]).load())
                .collect();
            let first = Access::new(held, vec![0.into(); rank]);
            k.tensor_copy(from, at, first, (come, 0.into()));
        });
        k.barrier();
        k.mbarrier_wait(come, 0, 0);
        let threads =
            For::below(Special::ThreadX, len).change(Change::Add((THREADS as i32).into()));
        k.loop_("i", threads, |k, i| {
            let mut rest = Expr::from(i);
            let mut index = Vec::new();
            for extent in self.tile.iter().rev() {
                index.push(rest.clone() % *extent);
                rest = rest / *extent;
            }
            index.reverse();
            let place = Access::new(out, [Special::BlockX.into(), i.into()]);
            k.store(place, Access::new(held, index).load());
        });
        k.finish().expect("a sound kernel")
    }

    /// The distances between neighbours of the array.
    fn strides(&self) -> Vec<i32> {
        let strides = self.extents.iter().rev().scan(1, |stride, extent| {
            *stride *= extent;
            Some(*stride / extent)
        });
        let mut strides: Vec<i32> = strides.collect();
        strides.reverse();
        strides
    }

    /// The bits of the array, and where each box begins: inside and outside.
    pub fn inputs(&self, seed: u64) -> (Vec<u64>, Vec<i32>) {
        let mut random = Random::new(seed);
        let len = self.extents.iter().product::<i32>() as usize;
        let mask = u64::MAX >> (64 - 8 * self.elem.size());
        let bits = (0..len).map(|_| random.bits() & mask).collect();
        let rank = self.tile.len();
        let mut place = |d: usize| {
            let (extent, tile) = (self.extents[d], self.tile[d]);
            // In a row at multiples of 16 bytes.
            let step = if d + 1 == rank { 16 / self.elem.size() as i32 } else { 1 };
            let of = |length: i32| length / step;
            ((random.bits() % (of(extent) + 2 * of(tile)) as u64) as i32 - of(tile)) * step
        };
        let places = (0..COUNT).flat_map(|_| (0..rank).collect::<Vec<_>>());
        (bits, places.map(&mut place).collect())
    }

    /// What the boxes hold, one after the other.
    pub fn expected(&self, bits: &[u64], places: &[i32]) -> Vec<u64> {
        let strides = self.strides();
        let element = |place: &[i32], mut i: i32| {
            let mut offset = Some(0);
            for d in (0..place.len()).rev() {
                let index = place[d] + i % self.tile[d];
                i /= self.tile[d];
                let inside = (0..self.extents[d]).contains(&index);
                offset = offset.filter(|_| inside).map(|offset| offset + index * strides[d]);
            }
            offset.map_or(0, |offset| bits[offset as usize])
        };
        let boxes = places.chunks(self.tile.len());
        boxes.flat_map(|place| (0..self.len() as i32).map(move |i| element(place, i))).collect()
    }

    /// What the kernel copies, and its counters.
    ///
    /// # Errors
    /// What the simulator finds.
    pub fn simulate(&self, bits: &[u64], places: &[i32]) -> Result<(Vec<u64>, Counters), SimError> {
        let buffers = [
            Buffer::from_bits(self.elem, bits.iter().copied()),
            Buffer::from_slice(places),
            Buffer::zeros_of(self.elem, COUNT * self.len()),
        ];
        let counters = gemm_sim::launch(&self.kernel(), &buffers, &[])?;
        Ok((buffers[2].bits(), counters))
    }
}
