//! Copies of one operand's tiles by loads and stores: straight to shared memory, or to registers
//! first.

use super::copy::{Place, Share, Side, TileCopy};
use super::edge::clamped;
use super::tile::Tiled;
use crate::ir::{Access, BufferId, Elem, Expr, KernelBuilder};

/// The loads of one operand.
pub(super) struct Loads<'t> {
    tiled: &'t Tiled<'t>,
    copy: &'t TileCopy,
    /// The row of A or the column of B that the thread's only access reads, if it has just one.
    only: Option<Expr>,
}

impl<'t> Loads<'t> {
    /// Names what stays the same in all tiles.
    pub fn declare(k: &mut KernelBuilder, tiled: &'t Tiled<'t>, copy: &'t TileCopy) -> Self {
        let mut loads = Self { tiled, copy, only: None };
        if let Some(place) = &copy.only {
            loads.only = Some(loads.name_edge(k, place));
        }
        loads
    }

    /// A register array for this thread's share of a tile.
    pub fn registers(&self, k: &mut KernelBuilder) -> BufferId {
        let (name, what) = match self.copy.side {
            Side::A => ("a_next", "share of the next tile of A"),
            Side::B => ("b_next", "share of the next tile of B"),
        };
        let lanes = (self.copy.width == 4).then_some(Expr::I32(4));
        k.registers(name, Elem::F32, [self.copy.count.into()].into_iter().chain(lanes), what)
    }

    /// Global to shared memory. `limit` is the number of k that exist where a tile may be ragged.
    pub fn to_shared(&self, k: &mut KernelBuilder, slot: &Expr, k0: &Expr, limit: Option<&Expr>) {
        self.copy.each(k, &Share::All, |k, place| {
            let value = self.value(k, &place, k0, limit);
            self.store(k, slot, place, value);
        });
    }

    /// Global memory to registers.
    pub fn to_registers(
        &self,
        k: &mut KernelBuilder,
        registers: BufferId,
        k0: &Expr,
        limit: Option<&Expr>,
    ) {
        self.copy.each(k, &Share::All, |k, place| {
            let value = self.value(k, &place, k0, limit);
            k.store(self.register(registers, place.i), value);
        });
    }

    /// Registers to shared memory.
    pub fn registers_to_shared(&self, k: &mut KernelBuilder, registers: BufferId, slot: &Expr) {
        self.copy.each(k, &Share::All, |k, place| {
            if self.copy.width == 1 || self.copy.stores_vector {
                let value = self.register(registers, place.i.clone()).load();
                return self.store(k, slot, place, value);
            }
            for j in 0..4 {
                let value = Access::new(registers, [place.i.clone(), j.into()]).load();
                let col = place.col.clone() + j;
                k.store(self.tiled.shared(self.copy.side).at(slot, place.row.clone(), col), value);
            }
        });
    }

    fn register(&self, registers: BufferId, i: Expr) -> Access {
        if self.copy.width == 4 {
            Access::new(registers, [i, 0.into()]).vector()
        } else {
            Access::new(registers, [i])
        }
    }

    /// Names the row of A, or the column of B, that a place reads.
    fn name_edge(&self, k: &mut KernelBuilder, place: &Place) -> Expr {
        let (row, col) = clamped(self.tiled, self.copy, place.row.clone(), place.col.clone());
        match self.copy.side {
            Side::A => k.let_("a_from", row).into(),
            Side::B => k.let_("b_from", col).into(),
        }
    }

    /// The value at a place of the tile. Past the end of K it is -0 in A and +0 in B: their product
    /// is -0, and that is the zero which leaves every sum as it is, -0 included.
    fn value(&self, k: &mut KernelBuilder, place: &Place, k0: &Expr, limit: Option<&Expr>) -> Expr {
        let edge = match &self.only {
            Some(edge) => edge.clone(),
            None => self.name_edge(k, place),
        };
        let (row, col, along_k) = match self.copy.side {
            Side::A => (edge, k0.clone() + place.col.clone(), place.col.clone()),
            Side::B => (k0.clone() + place.row.clone(), edge, place.row.clone()),
        };
        let access = self.tiled.matrix(self.copy.side).at(row, col);
        let wide = self.copy.width == 4;
        let value = if wide { access.vector().load() } else { access.load() };
        let Some(limit) = limit else { return value };
        let inside = along_k.clone().lt(limit.clone());
        let zero = if self.copy.side == Side::A { -0.0 } else { 0.0 };
        if !wide {
            return inside.select(value, zero);
        }
        let guarded = inside.select(value, Expr::Pack([zero; 4].map(Expr::F32).to_vec()));
        if self.copy.side == Side::B || !self.tiled.plan.pitched() {
            return guarded;
        }
        // The padding of a pitched row of A is not zero: what lies past K is cut off.
        let v = k.let_("padded", guarded);
        let lane = |j: u8| {
            let inside = (along_k.clone() + i32::from(j)).lt(limit.clone());
            inside.select(Expr::from(v).lane(j), zero)
        };
        Expr::Pack(vec![lane(0), lane(1), lane(2), lane(3)])
    }

    fn store(&self, k: &mut KernelBuilder, slot: &Expr, place: Place, value: Expr) {
        let shared = self.tiled.shared(self.copy.side);
        if self.copy.width == 1 {
            k.store(shared.at(slot, place.row, place.col), value);
        } else if self.copy.stores_vector {
            k.store(shared.at(slot, place.row, place.col).vector(), value);
        } else {
            let name = if self.copy.side == Side::A { "a_vector" } else { "b_vector" };
            let v = k.let_(name, value);
            for j in 0..4u8 {
                let col = place.col.clone() + i32::from(j);
                k.store(shared.at(slot, place.row.clone(), col), Expr::from(v).lane(j));
            }
        }
    }
}
