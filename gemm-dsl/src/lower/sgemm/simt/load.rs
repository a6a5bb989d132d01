//! Copies of one operand's tiles by loads and stores, directly to shared memory or through
//! registers.

use crate::ir::{Access, BufferId, Expr, KernelBuilder};
use crate::lower::sgemm::common::copy::{CopyPlace, CopyShare, name_of};
use crate::lower::sgemm::common::edge::{clamped, zeros};
use crate::lower::sgemm::common::tile::StagedFactor;
use crate::plan::Axis;

/// Synchronous copies of one operand's tiles.
pub(crate) struct Loads<'t> {
    factor: &'t StagedFactor,
    /// Row of A or column of B that the thread reads, if it reads only one.
    only: Option<Expr>,
}

impl<'t> Loads<'t> {
    /// Declares the variables that have the same value for all tiles.
    pub fn declare(b: &mut KernelBuilder, factor: &'t StagedFactor) -> Self {
        let mut loads = Self { factor, only: None };
        let one = factor.copy.adjacent.is_none() || factor.plan.contiguous() == Axis::K;
        if let Some(place) = factor.copy.only.as_ref().filter(|_| one) {
            loads.only = Some(loads.name_edge(b, place));
        }
        loads
    }

    fn is_wide(&self) -> bool {
        self.factor.plan.width() > 1
    }

    fn stores_as_read(&self) -> bool {
        self.factor.plan.store_width() == self.factor.plan.width()
    }

    /// Declares an array of registers for this thread's share of a tile.
    pub fn registers(&self, b: &mut KernelBuilder) -> BufferId {
        let plan = &self.factor.plan;
        let what = format!("prefetched share of the next tile of {}", plan.letter());
        let lanes = match self.is_wide() {
            true => Some(Expr::I32(plan.width() as i32)),
            false => self.factor.copy.adjacent.map(Expr::from),
        };
        let splits = self.factor.split_count().map(Expr::from);
        let dims = splits.into_iter().chain([self.factor.copy.count.into()]).chain(lanes);
        b.registers(&name_of(plan, "next"), plan.elem(), dims, what)
    }

    /// Copies a tile from global to shared memory. If the tile may be ragged, `limit` is the number
    /// of valid k.
    pub fn to_shared(&self, b: &mut KernelBuilder, slot: &Expr, k0: &Expr, limit: Option<&Expr>) {
        self.each(b, |b, split, place| {
            let value = self.value(b, &split, &place, k0, limit);
            self.store(b, slot, &split, &place, value);
        });
    }

    /// Loads a tile from global memory to registers. If the tile may be ragged, `limit` is the
    /// number of valid k.
    pub fn to_registers(
        &self,
        b: &mut KernelBuilder,
        registers: BufferId,
        k0: &Expr,
        limit: Option<&Expr>,
    ) {
        self.each(b, |b, split, place| {
            let value = self.value(b, &split, &place, k0, limit);
            b.store(self.register(registers, split, &place), value);
        });
    }

    /// Stores the registers of a tile to shared memory.
    pub fn registers_to_shared(&self, b: &mut KernelBuilder, registers: BufferId, slot: &Expr) {
        self.each(b, |b, split, place| {
            if self.stores_as_read() {
                let value = self.register(registers, split.clone(), &place).load();
                return self.store(b, slot, &split, &place, value);
            }
            for j in 0..self.factor.plan.width() as i32 {
                let value = self.lane(registers, split.clone(), &place, Some(j.into())).load();
                b.store(self.factor.shared.split_at(slot, &split, place.lane(j)), value);
            }
        });
    }

    /// Emits `body` for each access of the thread to each split.
    fn each(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr, CopyPlace)) {
        self.factor.each_split(b, |b, split| {
            self.factor.copy.each(b, &CopyShare::All, |b, place| body(b, split, place));
        });
    }

    fn register(&self, registers: BufferId, split: Expr, place: &CopyPlace) -> Access {
        if self.is_wide() {
            self.lane(registers, split, place, Some(0.into())).vector()
        } else {
            self.lane(registers, split, place, place.element.clone())
        }
    }

    /// Register of an element of an access, or of its only element.
    fn lane(
        &self,
        registers: BufferId,
        split: Expr,
        place: &CopyPlace,
        lane: Option<Expr>,
    ) -> Access {
        let split = self.factor.split_count().map(|_| split);
        Access::new(registers, split.into_iter().chain([place.i.clone()]).chain(lane))
    }

    /// Declares a variable for the row of A or column of B at a position.
    fn name_edge(&self, b: &mut KernelBuilder, place: &CopyPlace) -> Expr {
        let from = clamped(self.factor, place.free.clone());
        let plan = &self.factor.plan;
        let what = if plan.free() == Axis::M { "src_row" } else { "src_col" };
        b.let_(&name_of(plan, what), from).into()
    }

    /// Value at a position of the tile. Past the end of K, it is -0 in A and +0 in B. Adding their
    /// product -0 leaves every accumulator unchanged, including -0.
    fn value(
        &self,
        b: &mut KernelBuilder,
        split: &Expr,
        place: &CopyPlace,
        k0: &Expr,
        limit: Option<&Expr>,
    ) -> Expr {
        let edge = match &self.only {
            Some(edge) => edge.clone(),
            None => self.name_edge(b, place),
        };
        let access = self.factor.source(split, edge, k0.clone() + place.k.clone());
        let value = if self.is_wide() { access.vector().load() } else { access.load() };
        let Some(limit) = limit else { return value };
        let plan = &self.factor.plan;
        let inside = place.k.clone().lt(limit.clone());
        let guarded = inside.select(value, zeros(plan, plan.width()));
        if !plan.straddles() {
            return guarded;
        }
        // With a row stride, the padding of a row need not be zero, so elements past K are
        // replaced.
        let v = b.let_(&name_of(plan, "padded"), guarded);
        let lane = |j: u8| {
            let [_, at] = place.lane(j.into());
            at.lt(limit.clone()).select(Expr::from(v).lane(j), zeros(plan, 1))
        };
        Expr::Pack((0..plan.width() as u8).map(lane).collect())
    }

    fn store(
        &self,
        b: &mut KernelBuilder,
        slot: &Expr,
        split: &Expr,
        place: &CopyPlace,
        value: Expr,
    ) {
        let shared = |lane| self.factor.shared.split_at(slot, split, place.lane(lane));
        if self.stores_as_read() {
            let target = shared(0);
            return b.store(if self.is_wide() { target.vector() } else { target }, value);
        }
        let v = b.let_(&name_of(&self.factor.plan, "vector"), value);
        for j in 0..self.factor.plan.width() as i32 {
            b.store(shared(j), Expr::from(v).lane(j as u8));
        }
    }
}
