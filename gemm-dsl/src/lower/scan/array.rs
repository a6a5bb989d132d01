//! Scans of arrays in one launch: a tile for each block, whose prefix the block folds from the sums
//! that earlier blocks publish.

use super::held_tile::{HeldTile, TilePlace};
use super::item::BlockSums;
use super::words::{Level, Words};
use super::{Scan, WARP, thread};
use crate::ir::{
    Access, BufferLayout, Change, Elem, Expr, For, Geometry, Intrinsic, KernelBuilder, Unroll, Var,
};

pub(super) fn build(b: &mut KernelBuilder, scan: &Scan<'_>) {
    b.title("Workspace: words are 0 before each launch.");
    let tiles = Expr::from(scan.n).div_ceil(u64::from(scan.plan.tile()));
    let blocks_per_sm = scan.plan.blocks_per_sm(scan.is_wide);
    let grid = [tiles, 1u64.into(), 1u64.into()];
    b.geometry(Geometry { block: (scan.plan.block(), 1), grid, blocks_per_sm });
    let words = Words::declare(b, scan);
    let tid: Expr = b.let_("tid", thread()).into();
    let word = |b: &mut KernelBuilder, name: &str, elem, meaning: &str| {
        let word = b.shared(name, elem, [], BufferLayout::row_major(0), meaning);
        Access::new(word, [])
    };
    let taken = word(b, "taken", Elem::U32, "number of the block's tile");
    let prefix = word(b, "prefix", scan.held, "sum of all elements before the tile");
    let sums = BlockSums::declare(b, scan);
    let held = HeldTile::declare(b, scan);
    b.comment(
        "Take the next tile. Blocks with the earlier tiles have therefore started, so this block \
         may wait for them.",
    );
    b.if_(tid.clone().equals(0), |b| {
        let ticket = words.take(b);
        b.store(taken.clone(), ticket);
    });
    b.barrier();
    let tile = b.let_("tile", taken.load().cast(Elem::U64));
    let first = b.let_("first", tile * scan.tile);
    let left = (Expr::from(scan.n) - first).min(Expr::from(scan.tile).wide()).cast(Elem::I32);
    let left = b.let_("left", left);
    let place = TilePlace { first, left, tid: &tid };
    held.load(b, scan, &place);
    held.scan(b, scan, &place, &sums);
    b.barrier();
    b.if_(tid.clone().lt(WARP), |b| {
        let back = LookBack::start(b, scan, &words, tile, &tid);
        sums.scan(b, scan, &tid, |b, sum| {
            let all = back.prefix(b, sum);
            b.if_(tid.clone().equals(0), |b| b.store(prefix.clone(), all));
        });
    });
    b.barrier();
    held.store(b, scan, &place, |item| {
        scan.folded(prefix.clone().load(), sums.before(scan, &tid, item))
    });
}

/// Fold of everything before a tile, by one warp. Each lane reads one word of each level.
struct LookBack<'l> {
    scan: &'l Scan<'l>,
    words: &'l Words,
    lane: Expr,
    tile: Var,
    /// Index of the tile's group and section, and the tile's index in the group and the group's in
    /// the section.
    group: Var,
    section: Var,
    nth_tile: Var,
    nth_group: Var,
    /// Words of the lane's tile and group, and of the section before the tile's.
    of_tile: Var,
    of_group: Var,
    of_section: Var,
}

impl<'l> LookBack<'l> {
    /// Reads the words for the first time.
    fn start(
        b: &mut KernelBuilder,
        scan: &'l Scan<'l>,
        words: &'l Words,
        tile: Var,
        lane: &Expr,
    ) -> Self {
        b.comment(
            "Look back: 32 tiles are a group, 32 groups a section. A lane reads the words of an \
             earlier tile of this group and of an earlier group of this section.",
        );
        let group = b.let_("group", tile / WARP);
        let section = b.let_("section", group / WARP);
        let nth_tile = b.let_("nth_tile", tile - group * WARP);
        let nth_group = b.let_("nth_group", group - section * WARP);
        let [of_tile, of_group, of_section] =
            ["of_tile", "of_group", "of_section"].map(|name| words.unset(b, name));
        let lane = lane.clone();
        let back = Self {
            scan,
            words,
            lane,
            tile,
            group,
            section,
            nth_tile,
            nth_group,
            of_tile,
            of_group,
            of_section,
        };
        b.if_(back.has_tile(), |b| words.read(b, of_tile, Level::Tile, back.lane_of(group)));
        b.if_(back.has_group(), |b| words.read(b, of_group, Level::Group, back.lane_of(section)));
        b.if_(back.has_section(), |b| words.read(b, of_section, Level::Section, section - 1));
        back
    }

    fn has_tile(&self) -> Expr {
        self.lane.clone().wide().lt(self.nth_tile)
    }

    fn has_group(&self) -> Expr {
        self.lane.clone().wide().lt(self.nth_group)
    }

    fn has_section(&self) -> Expr {
        self.lane.clone().equals(0).and(Expr::from(self.section).gt(0u64))
    }

    /// Index of the lane's tile of a group, or of its group of a section.
    fn lane_of(&self, whole: impl Into<Expr>) -> Expr {
        whole.into() * WARP + self.lane.clone()
    }

    /// Publishes the sum of the tile, which the last lane has as `sum`. Returns the fold of
    /// everything before the tile, which is defined in lane 0.
    fn prefix(&self, b: &mut KernelBuilder, sum: Var) -> Var {
        let Self { scan, words, section, nth_tile, nth_group, .. } = *self;
        let is_last = |nth: Var| Expr::from(nth).equals(Expr::U64(WARP as u64 - 1));
        b.if_(self.lane.clone().equals(WARP - 1), |b| {
            words.publish(b, Level::Tile, self.tile.into(), sum.into());
        });
        let own = b.mut_("tile_sum", scan.identity());
        b.if_(self.has_tile(), |b| {
            let nth = self.lane_of(self.group);
            words.wait(b, self.of_tile, Level::Tile, nth.clone());
            b.assign(own, words.value(scan, self.of_tile, Level::Tile, nth));
        });
        let tiles = b.mut_("sum_of_tiles", own);
        self.fold_lanes(b, &[tiles]);
        let group_sum = b.mut_("group_sum", scan.identity());
        b.if_(is_last(nth_tile), |b| {
            b.comment("The last block of a group publishes the sum of the group.");
            b.assign(group_sum, self.lane.clone().equals(WARP - 1).select(sum, own));
            self.fold_lanes(b, &[group_sum]);
            b.if_(self.lane.clone().equals(0), |b| {
                words.publish(b, Level::Group, self.group.into(), group_sum.into());
            });
        });
        let of_groups = self.groups(b);
        let groups = b.mut_("sum_of_groups", of_groups);
        self.fold_lanes(b, &[groups]);
        let all = b.mut_("before_tile", scan.identity());
        b.if_(self.has_section(), |b| {
            words.wait(b, self.of_section, Level::Section, section - 1);
            b.assign(all, words.value(scan, self.of_section, Level::Section, section - 1));
        });
        b.if_(is_last(nth_tile).and(is_last(nth_group)), |b| {
            b.comment("The last block of a section publishes the prefix of the next section.");
            b.if_(self.lane.clone().equals(0), |b| {
                let of_section = scan.folded(groups, group_sum);
                let sum = scan.folded(all, of_section);
                words.publish(b, Level::Section, section.into(), sum);
            });
        });
        b.assign(all, scan.folded(scan.folded(all, groups), tiles));
        all
    }

    /// Sum of the lane's group, if it is an earlier one of the section.
    fn groups(&self, b: &mut KernelBuilder) -> Var {
        let Self { scan, words, section, of_group, .. } = *self;
        b.comment(
            "If the sum of a group is not published yet, compute it from the sums of its tiles. \
             These are the same operations, so no bit depends on timing.",
        );
        let sum = b.mut_("lane_group_sum", scan.identity());
        let nth = self.lane_of(section);
        let is_missing = b.mut_("is_missing", Expr::I32(0));
        let take = |b: &mut KernelBuilder| {
            let is_set = words.is_set(of_group);
            b.if_else(
                is_set,
                |b| {
                    b.assign(sum, words.value(scan, of_group, Level::Group, nth.clone()));
                    b.assign(is_missing, 0);
                },
                |b| b.assign(is_missing, 1),
            );
        };
        b.if_(self.has_group(), take);
        let latest = b.mut_("latest", self.latest(is_missing));
        self.maximum(b, latest);
        let more = move |_: Var| Expr::from(latest).ge(0);
        b.loop_("poll", For::new(0, more), |b, _| {
            let other = b.let_("other", section * WARP + latest);
            let tile = words.unset(b, "of_other_tile");
            words.read(b, tile, Level::Tile, self.lane_of(other));
            b.if_(Expr::from(is_missing).equals(1), |b| {
                words.read(b, of_group, Level::Group, nth.clone());
                take(b);
            });
            let unset = b.mut_("unset", words.is_set(tile).select(0, 1));
            self.maximum(b, unset);
            b.if_(Expr::from(unset).equals(0), |b| {
                let value = words.value(scan, tile, Level::Tile, self.lane_of(other));
                let computed = b.mut_("computed", value);
                self.fold_lanes(b, &[computed]);
                b.if_(self.lane.clone().equals(latest), |b| {
                    b.assign(sum, computed);
                    b.assign(is_missing, 0);
                });
            });
            b.assign(latest, self.latest(is_missing));
            self.maximum(b, latest);
        });
        sum
    }

    /// The lane, if its group is missing, else -1.
    fn latest(&self, is_missing: Var) -> Expr {
        Expr::from(is_missing).equals(1).select(self.lane.clone(), -1)
    }

    /// Folds values of all lanes in a fixed tree. Every lane gets the results.
    fn fold_lanes(&self, b: &mut KernelBuilder, values: &[Var]) {
        self.each_step(b, |b, step| {
            for value in values {
                let other = Expr::Call(Intrinsic::ShuffleXor, vec![(*value).into(), step.into()]);
                let other = b.let_("other_lane", other);
                b.assign(*value, self.scan.folded(*value, other));
            }
        });
    }

    /// Maximum of all lanes.
    fn maximum(&self, b: &mut KernelBuilder, value: Var) {
        self.each_step(b, |b, step| {
            let other = Expr::Call(Intrinsic::ShuffleXor, vec![value.into(), step.into()]);
            let other = b.let_("other_lane", other);
            b.assign(value, Expr::from(value).max(other));
        });
    }

    fn each_step(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Var)) {
        let halve = For::above(WARP / 2, 0).change(Change::Div(2.into())).unroll(Unroll::Full);
        b.loop_("step", halve, body);
    }
}
