//! Decisions of a GEMM plan, in human-readable form.

#[cfg(test)]
mod tests;

use super::{
    DirectPlan, Edge, EpiloguePlan, Fill, Guards, KernelKind, MmaPlan, NaivePlan, OperandPlan,
    Pipeline, Pointers, Ragged, ReadPlan, SgemmPlan, TiledPlan, Walk, WgmmaPlan,
};
use crate::ir::{Mma, Swizzle, Variant, Wgmma};
use crate::plan::decision::{Decision, Decisions};
use crate::plan::residency;
use crate::spec::{Batch, Copies, Factor, Lanes, Sharing};

impl SgemmPlan {
    /// Lists all decisions, including the values that the spec states explicitly. Plans with equal
    /// lists generate the same source text except for the kernel name.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut list = Decisions::of_block(self.threads());
        let accesses = match self.variant() {
            Variant::Only => "4 bytes",
            Variant::Vector => "16 bytes where the layout allows",
            Variant::Scalar => "4 bytes, for operands that are not aligned",
            Variant::Guarded => "4 bytes, for K = 0",
        };
        list.say("global accesses", accesses);
        match self.kind() {
            KernelKind::Naive(plan) => {
                let lies = |by_col| if by_col { "column by column" } else { "row by row" };
                let layout = self.layout();
                list.say("A in memory", lies(layout.transposes_a()));
                list.say("B in memory", lies(layout.transposes_b()));
                naive(plan, &mut list);
            }
            KernelKind::Direct(plan) => direct(plan, &mut list),
            KernelKind::Tiled(plan) => tiled(plan, &mut list),
            KernelKind::Wgmma(plan) => wgmma(plan, &mut list),
        }
        if !matches!(self.kind(), KernelKind::Direct(_) | KernelKind::Wgmma(_)) {
            let unroll = self.unroll().map_or("the loop's own".to_owned(), |by| format!("by {by}"));
            list.say("unrolling along k", unroll);
            list.say("partial sums", self.partials().to_string());
        }
        list.say(
            "ranges of K",
            match (self.sharing(), if self.spec().tile.is_some() { "tiles" } else { "rounds" }) {
                (Sharing::Whole, _) => "one".to_owned(),
                (Sharing::Ranges(most), whole) => format!(
                    "{most} at most, of whole {whole}: added \
                    in their order by the last block of a tile"
                ),
                (Sharing::AutoRanges, whole) => format!(
                    "as many as fill the multiprocessors, of \
                    whole {whole}: added in their order by the last block of a tile"
                ),
                (Sharing::Stream, _) => "as blocks share the tiles that are left: added in their \
                    order by the last block of a tile"
                    .to_owned(),
            },
        );
        let order = match self.raster() {
            Some(group) => format!("groups of {group} tile rows"),
            None => "tile by tile along the rows".to_owned(),
        };
        list.say("blocks visit C", order);
        if self.cluster() > 1 {
            let blocks =
                format!("{} blocks below one another, which share columns of B", self.cluster());
            list.say("cluster", blocks);
        }
        if self.persistent() {
            list.say("blocks", "as many as fit, which go through all tiles");
        }
        list.say("resident blocks per SM", residency::told(self.least_resident()));
        list.say("shapes", if self.guarded() { "any" } else { "multiples of the tile" });
        list.say(
            "products",
            match self.batch() {
                None => "one",
                Some(Batch::Strided) => "a batch, its matrices a fixed distance apart",
                Some(Batch::Pointers) => "a batch, each matrix where its pointer says",
            },
        );
        list.say("rows", if self.pitched() { "of any pitch" } else { "packed" });
        let sums = if self.spec().scaled { "alpha * sum + beta * C" } else { "the sums" };
        let stored = match (self.epilogue(), self.spec().scaled) {
            (None, _) => sums.to_owned(),
            (Some(epilogue), false) => epilogue.to_string(),
            (Some(epilogue), true) => format!("{epilogue}, of {sums}"),
        };
        list.say("stored in C", stored);
        list.finish()
    }
}

fn naive(plan: &NaivePlan, list: &mut Decisions) {
    let coarsen = plan.coarsen();
    list.say("block", format!("{} rows x {} columns of C", plan.rows(), plan.cols() * coarsen));
    list.say("consecutive threads", if plan.by_rows() { "along m" } else { "along n" });
    list.say("outputs of a thread", format!("{coarsen}, one after the other"));
}

fn direct(plan: &DirectPlan, list: &mut Decisions) {
    let (of_warps, along) = match plan.lanes() {
        Lanes::N => ("threads", "along n"),
        Lanes::M => ("threads", "along m"),
        Lanes::K => ("warps", "along k, added by a tree: s above, for s = 16, 8, 4, 2, 1"),
    };
    list.say("block", format!("{} {of_warps} x {} along C", plan.rows(), plan.cols()));
    list.say("thread tile", format!("{} x {}", plan.tm(), plan.tn()));
    list.say("consecutive threads", along);
    list.say("slices", slices(plan.slices()));
    list.say("terms of a step", plan.step().to_string());
    list.say("steps under way", plan.unroll().to_string());
    let ragged = if plan.ragged() { "term by term" } else { "none" };
    list.because("ragged step of K", ragged, plan.ragged.why);
    for read in [plan.a(), plan.b()] {
        reading(&read, list);
    }
    epilogue(&plan.epilogue(), list);
}

fn reading(plan: &ReadPlan, list: &mut Decisions) {
    let of = |what: &str| format!("{what} of {}", plan.letter());
    list.say(of("neighbours"), format!("along {} in memory", plan.contiguous()));
    list.say(of("reads"), format!("{} bytes", plan.elem().size() * plan.width()));
    past_the_edge(plan.edge(), plan.letter(), list);
    if plan.overhangs() {
        list.say(of("padding"), "read to the end of a row's last vector");
    }
}

fn past_the_edge(edge: Edge, letter: char, list: &mut Decisions) {
    let past = match edge {
        Edge::Exact => "nothing: no tile passes it",
        Edge::Last => "the last element again",
        Edge::LastVector => "the last vector again",
        Edge::LastStart => "the last vector that starts inside, again",
    };
    list.say(format!("past the edge of {letter}"), past);
}

fn tiled(plan: &TiledPlan, list: &mut Decisions) {
    list.say("block tile", format!("{} x {} x {}", plan.bm(), plan.bn(), plan.bk()));
    let (threads_m, threads_n) = (plan.threads_m(), plan.threads_n());
    let thread = format!("{} x {}, {threads_m} threads x {threads_n}", plan.tm(), plan.tn());
    list.say("thread tile", thread);
    if plan.products() > 1 {
        let products = format!("{}, each by threads and tiles of its own", plan.products());
        list.say("products of a block", products);
    }
    list.say("slices", slices(plan.slices()));
    match plan.mma() {
        None => list.say("outputs of a thread", plan.fragment().to_string()),
        Some(mma) => tensor_cores(&mma, list),
    }
    if let Some(warp) = plan.warp() {
        let tile = format!("{} x {}", warp.m(), warp.n());
        let lanes = format!("{} lanes x {}", warp.lanes_m(), warp.lanes_n());
        let warps = format!("{} warps x {}", warp.warps_m(), warp.warps_n());
        list.say("warp tile", format!("{tile}: {lanes}, {warps}"));
    }
    list.say("pipeline", pipeline(plan.pipeline()));
    let ragged = match plan.ragged() {
        Ragged::Nowhere => "none",
        Ragged::First => "the first",
        Ragged::Last => "the last",
    };
    list.because("ragged tile of K", ragged, plan.ragged.why);
    operand(&plan.a(), list);
    operand(&plan.b(), list);
    if plan.mma().is_none() {
        list.say("multiply-adds", plan.order().to_string());
    }
    epilogue(&plan.epilogue(), list);
    let unsigned = if plan.unsigned_tid() { "unsigned int" } else { "int" };
    list.because("type of the thread index", unsigned, plan.unsigned_tid.why);
    let width = if plan.narrow_addresses() { "32 bits" } else { "a pointer" };
    list.because("shared addresses of copies", width, plan.narrow_addresses.why);
}

fn wgmma(plan: &WgmmaPlan, list: &mut Decisions) {
    list.say("block tile", format!("{} x {} x {}", plan.bm(), plan.bn(), plan.bk()));
    let (columns, terms) = (plan.columns(), plan.format().terms());
    let (groups_m, groups_n) = (plan.bm() / Wgmma::ROWS, plan.bn() / columns);
    list.say("warpgroups", format!("{groups_m} x {groups_n} multiply"));
    list.say("arithmetic", plan.arith().to_string());
    let (rows, format) = (Wgmma::ROWS, plan.format().name());
    list.say("matrix instructions", format!("{rows}x{columns}x{terms} in {format}"));
    let splits = plan.arith().splits();
    list.say("planes", format!("{splits} of A and of B, which a launch before makes"));
    let promote = match plan.promote() {
        None => "none: tensor cores sum all of K".to_owned(),
        Some(terms) => format!("IEEE, of {terms} terms each"),
    };
    list.because("additions", promote, plan.promote.why);
    let tiles = match (plan.copies(), plan.producer(), plan.stages()) {
        (Copies::Threads, ..) => "copied by all threads; one buffer".to_owned(),
        (Copies::Tma, producer, stages) => {
            let by = if producer { "a warpgroup of its own" } else { "the first thread" };
            format!("boxes through {stages} buffers, which {by} asks for")
        }
    };
    list.say("tiles", tiles);
    list.say("rows of a tile", format!("{} bytes", plan.bk() * plan.elem().size()));
    if plan.producer() {
        let registers = match plan.registers() {
            None => "as many for all".to_owned(),
            Some([few, many]) => format!("{few} of who asks, {many} of who multiplies"),
        };
        list.because("registers of a thread", registers, plan.registers.why);
    }
    epilogue(&plan.epilogue(), list);
}

fn tensor_cores(plan: &MmaPlan, list: &mut Decisions) {
    let (rows, cols, terms) = (plan.rows(), plan.cols(), plan.terms());
    let format = plan.format().name();
    let (m, n) = (Mma::ROWS, Mma::COLS);
    list.say("arithmetic", plan.arith().to_string());
    list.say("matrix instructions", format!("{rows} x {cols} of {m}x{n}x{terms} in {format}"));
    list.say("outputs of a thread", "as the instruction deals them out");
    let promote = match plan.promote() {
        None => "none: tensor cores sum all of K".to_owned(),
        Some(steps) => format!("IEEE, of {} terms each", steps * terms),
    };
    list.because("additions", promote, plan.promote.why);
    for (factor, loads) in [(Factor::A, plan.loads_a), (Factor::B, plan.loads_b)] {
        let by = if loads.value { "ldmatrix" } else { "4 bytes" };
        list.because(format!("matrices of {factor}"), by, loads.why);
    }
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

fn operand(plan: &OperandPlan, list: &mut Decisions) {
    let of = |what: &str| format!("{what} of {}", plan.letter());
    let (rows, row) = plan.shared_tile();
    let axes =
        format!("along {} in memory, along {} in the tile", plan.contiguous(), plan.shared());
    list.say(of("shared tile"), format!("{rows} rows of {row}, {} of them unused", plan.pad()));
    list.say(of("neighbours"), axes);
    if let Some(Swizzle { bits, shift, .. }) = plan.swizzle() {
        let (ways, rows) = (1 << bits, 1 << shift);
        let exchanged =
            format!("vectors of four, in {ways} ways, {rows} rows after one another alike");
        list.say(of("exchanged"), exchanged);
    }

    let walk = match plan.walk() {
        Walk::Lines { step } => format!("{step} whole lines at once"),
        Walk::Groups { step, passes } => {
            format!("eight of a line, {step} lines at once, {passes} times")
        }
        Walk::Linear { total, exact } => {
            format!("one by one, {total} in all{}", if exact { "" } else { ", the last guarded" })
        }
    };
    list.because(of("copies"), walk, plan.walk.why);
    let widths = format!(
        "{} a thread, {} bytes read, {} stored",
        plan.accesses(),
        plan.elem().size() * plan.width(),
        plan.elem().size() * plan.store_width(),
    );
    list.say(of("share"), widths);
    if let Some(by) = plan.unroll() {
        list.because(of("unrolled copies"), format!("by {by}"), plan.unroll.why);
    }
    let pointers = match plan.pointers() {
        Pointers::None => None,
        Pointers::One => Some("one"),
        Pointers::PerPass => Some("one for each pass"),
        Pointers::PerAccess => Some("one for each access"),
    };
    if let Some(pointers) = pointers {
        list.because(of("pointers"), pointers, plan.pointers.why);
    }
    past_the_edge(plan.edge(), plan.letter(), list);
    let fill = match plan.fill() {
        Fill::None => "nothing",
        Fill::PlusZero => "+0",
        Fill::MinusZero => "-0",
    };
    list.because(of("fill along K"), fill, plan.fill.why);
    if plan.straddles() {
        list.say(of("vectors across K"), "guarded element by element");
    }
    if plan.overhangs() {
        list.say(of("padding"), "read to the end of a row's last vector");
    }
    list.say(
        of("fragments"),
        format!("read by {} bytes", plan.elem().size() * plan.fragment_width()),
    );
}

fn epilogue(plan: &EpiloguePlan, list: &mut Decisions) {
    let straddles = if plan.straddles() { ", element by element at the end of a row" } else { "" };
    list.say("stores of C", format!("{} bytes{straddles}", plan.elem().size() * plan.width()));
    let guards = match plan.guards() {
        Guards::None => "none",
        Guards::Inline => "at each store",
        Guards::Hoisted => "at the edge of C only",
    };
    list.because("guards of C", guards, plan.guards.why);
    let loops = match plan.staged_rows() {
        0 => "written out".to_owned(),
        rows => format!("a loop, for which the sums of {rows} rows of a thread wait at once"),
    };
    list.because("epilogue", loops, plan.staged_rows.why);
}

fn slices(slices: u32) -> String {
    match slices {
        1 => "one".to_owned(),
        slices => {
            format!("{slices} take alternate steps of K: added in their order in shared memory")
        }
    }
}
