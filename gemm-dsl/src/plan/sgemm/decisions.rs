//! The decisions of a product's plan, one by one.

use super::{
    Edge, EpiloguePlan, Fill, Guards, NaivePlan, OperandPlan, Pipeline, Pointers, Ragged,
    SgemmPlan, Shape, TiledPlan, Walk,
};
use crate::ir::Variant;
use crate::plan::decision::{Decision, Decisions};

impl SgemmPlan {
    /// All that was decided, the spec's own words included: plans with the same list are the same.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut list = Decisions::of_block(self.threads());
        let accesses = match self.variant() {
            Variant::Only => "4 bytes",
            Variant::Vector => "16 bytes where the layout allows",
            Variant::Scalar => "4 bytes, for operands that are not aligned",
            Variant::Guarded => "4 bytes, for K = 0",
        };
        list.say("global accesses", accesses);
        match self.shape() {
            Shape::Naive(plan) => naive(plan, &mut list),
            Shape::Tiled(plan) => tiled(plan, &mut list),
        }
        let unroll = self.unroll().map_or("the loop's own".to_owned(), |by| format!("by {by}"));
        list.say("unrolling along k", unroll);
        list.say("partial sums", self.partials().to_string());
        let order = match self.raster() {
            Some(group) => format!("groups of {group} tile rows"),
            None => "tile by tile along the rows".to_owned(),
        };
        list.say("blocks visit C", order);
        list.say("blocks wished for", format!("{} on a multiprocessor", self.blocks_per_sm()));
        list.say("shapes", if self.guarded() { "any" } else { "multiples of the tile" });
        list.say("rows", if self.pitched() { "of any pitch" } else { "packed" });
        list.finish()
    }
}

fn naive(plan: &NaivePlan, list: &mut Decisions) {
    let coarsen = plan.coarsen();
    list.say("block", format!("{} rows x {} columns of C", plan.rows(), plan.cols() * coarsen));
    list.say("consecutive threads", format!("along {}", plan.lanes()));
    list.say("outputs of a thread", format!("{coarsen}, one after the other"));
}

fn tiled(plan: &TiledPlan, list: &mut Decisions) {
    list.say("block tile", format!("{} x {} x {}", plan.bm(), plan.bn(), plan.bk()));
    let (threads_m, threads_n) = (plan.threads_m(), plan.threads_n());
    let thread = format!("{} x {}, {threads_m} threads x {threads_n}", plan.tm(), plan.tn());
    list.say("thread tile", thread);
    list.say("outputs of a thread", plan.fragment().to_string());
    if let Some(warp) = plan.warp() {
        let tile = format!("{} x {}", warp.m(), warp.n());
        let lanes = format!("{} lanes x {}", warp.lanes_m(), warp.lanes_n());
        let warps = format!("{} warps x {}", warp.warps_m(), warp.warps_n());
        list.say("warp tile", format!("{tile}: {lanes}, {warps}"));
    }
    list.say("pipeline", pipeline(plan.pipeline()));
    let (ragged, why) = match plan.ragged() {
        Ragged::Nowhere => ("none", "K is a multiple of the tile's"),
        Ragged::First => ("the first", "so that the main loop needs no guard along K"),
        Ragged::Last => ("the last", "only then does every other one of a pitch start on 16 bytes"),
    };
    list.because("ragged tile of K", ragged, why);
    operand(&plan.a(), list);
    operand(&plan.b(), list);
    list.say("multiply-adds", plan.order().to_string());
    epilogue(&plan.epilogue(), list);
    let (assume, why) = match (plan.assume(), plan.pipeline()) {
        (true, Pipeline::Async { .. }) => ("yes", "an instruction less in the main loop"),
        (true, _) => ("yes", "it would spill otherwise"),
        (false, Pipeline::DoubleBuffer) => ("no", "its registers would be placed worse"),
        (false, _) => ("no", "nothing is gained"),
    };
    list.because("tid >= 0 is promised", assume, why);
}

fn pipeline(pipeline: Pipeline) -> String {
    match pipeline {
        Pipeline::Single => "none: load, barrier, compute, barrier".to_owned(),
        Pipeline::Prefetch => "the next tile waits in registers; one buffer".to_owned(),
        Pipeline::DoubleBuffer => "the next tile waits in registers; two buffers".to_owned(),
        Pipeline::Async { stages, spread: 1 } => format!("cp.async through {stages} buffers"),
        Pipeline::Async { stages, spread } => {
            format!("cp.async through {stages} buffers, issued over {spread} steps of k")
        }
    }
}

fn bytes(width: u32) -> u32 {
    4 * width
}

fn operand(plan: &OperandPlan, list: &mut Decisions) {
    let of = |what: &str| format!("{what} of {}", plan.letter());
    let (rows, row) = plan.shared_tile();
    let axes =
        format!("along {} in memory, along {} in the tile", plan.contiguous(), plan.shared());
    list.say(of("shared tile"), format!("{rows} rows of {row}, {} of them unused", plan.pad()));
    list.say(of("neighbours"), axes);

    let (walk, why) = match plan.walk() {
        Walk::Lines { step } => (format!("{step} whole lines at once"), ""),
        Walk::Groups { step, passes } => (
            format!("eight of a line, {step} lines at once, {passes} times"),
            "transposed to distinct banks",
        ),
        Walk::Linear { total, exact } => (
            format!("one by one, {total} in all{}", if exact { "" } else { ", the last guarded" }),
            "whole lines do not divide among the threads",
        ),
    };
    list.because(of("copies"), walk, why);
    let widths = format!(
        "{} a thread, {} bytes read, {} stored",
        plan.accesses(),
        bytes(plan.width()),
        bytes(plan.store_width()),
    );
    list.say(of("share"), widths);
    if let Some(by) = plan.unroll() {
        let why = "a long run need not be in registers all at once";
        list.because(of("unrolled copies"), format!("by {by}"), why);
    }
    match plan.pointers() {
        Pointers::None => {}
        Pointers::One => list.because(of("pointers"), "one", "lines lie a fixed distance apart"),
        Pointers::PerPass => list.say(of("pointers"), "one for each pass"),
        Pointers::PerAccess => {
            let why = "no fixed distance apart at the edge of C";
            list.because(of("pointers"), "one for each access", why);
        }
    }
    let past = match plan.edge() {
        Edge::Exact => "nothing: no tile passes it",
        Edge::Last => "the last element again",
        Edge::LastVector => "the last vector again",
        Edge::LastStart => "the last vector that starts inside, again",
    };
    list.say(of("past the edge"), past);
    let (fill, why) = match plan.fill() {
        Fill::None => ("nothing", "K is a multiple of the tile's"),
        Fill::PlusZero => ("+0", ""),
        Fill::MinusZero => ("-0", "its product with +0 changes no sum, not the sign of a zero"),
    };
    list.because(of("fill along K"), fill, why);
    if plan.straddles() {
        list.say(of("vectors across K"), "guarded element by element");
    }
    if plan.overhangs() {
        list.say(of("padding"), "read to the end of a row's last vector");
    }
    list.say(of("fragments"), format!("read by {} bytes", bytes(plan.fragment_width())));
}

fn epilogue(plan: &EpiloguePlan, list: &mut Decisions) {
    let straddles = if plan.straddles() { ", element by element at the end of a row" } else { "" };
    list.say("stores of C", format!("{} bytes{straddles}", bytes(plan.width())));
    let (guards, why) = match plan.guards() {
        Guards::None => ("none", "C is a multiple of tiles"),
        Guards::Inline => ("at each store", ""),
        Guards::Hoisted => ("at the edge of C only", "leaves the main loop better registers"),
    };
    list.because("guards of C", guards, why);
}
