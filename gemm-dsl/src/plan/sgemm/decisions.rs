//! Decisions of a GEMM plan, in human-readable form.

#[cfg(test)]
mod tests;

use super::{
    DirectPlan, Edge, EpiloguePlan, Fill, Guards, KernelKind, MmaPlan, NaivePlan, OperandPlan,
    Pipeline, Pointers, Ragged, ReadPlan, SgemmPlan, SplitsPlan, TiledPlan, Walk, WgmmaPlan,
};
use crate::ir::{Mma, Swizzle, Variant, Wgmma};
use crate::plan::decision::{Decision, Decisions};
use crate::plan::residency;
use crate::spec::{Batch, Copies, Factor, GemmTypes, Lanes, Sharing};

impl SgemmPlan {
    /// Lists all decisions, including the values that the spec states explicitly. Plans with equal
    /// lists generate the same source text except for the kernel name.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut list = Decisions::of_block(self.threads());
        let accesses = match self.variant() {
            Variant::Only => "single elements",
            Variant::Vector => "16-byte vectors where the layout allows",
            Variant::Scalar => "single elements, for unaligned operands",
            Variant::Guarded => "single elements, for K = 0",
        };
        list.say("global accesses", accesses);
        let types = self.types();
        if types != GemmTypes::F32 {
            let GemmTypes { a, b, c, .. } = types;
            let sums = types.name_of_sums();
            list.say("element types", format!("A {a}, B {b}, sums {sums}, C {c}"));
        }
        match self.kind() {
            KernelKind::Naive(plan) => {
                let major = |by_col| if by_col { "column-major" } else { "row-major" };
                let layout = self.layout();
                list.say("layout of A", major(layout.transposes_a()));
                list.say("layout of B", major(layout.transposes_b()));
                naive(plan, &mut list);
            }
            KernelKind::Direct(plan) => direct(plan, &mut list),
            KernelKind::Tiled(plan) => tiled(plan, &mut list),
            KernelKind::Wgmma(plan) => wgmma(plan, &mut list),
        }
        if !matches!(self.kind(), KernelKind::Direct(_) | KernelKind::Wgmma(_)) {
            let unroll = self.unroll().map_or("default".to_owned(), |by| format!("by {by}"));
            list.say("k loop unrolling", unroll);
            let when = if self.folds_tiles() { ", added after every K tile" } else { "" };
            list.say("partial sums", format!("{}{when}", self.partials()));
        }
        list.say(
            "split-K partitions",
            match (self.sharing(), if self.spec().tile.is_some() { "tiles" } else { "rounds" }) {
                (Sharing::Whole, _) => "one".to_owned(),
                (Sharing::Partitions(most), whole) => format!(
                    "at most {most}, of whole K {whole}; the last block of a tile adds them in \
                    order"
                ),
                (Sharing::AutoPartitions, whole) => format!(
                    "as many as fill the SMs, of whole K {whole}; the last block of a tile adds \
                    them in order"
                ),
                (Sharing::Stream, _) => "stream-K: blocks share the remaining tiles; the last \
                    block of a tile adds them in order"
                    .to_owned(),
            },
        );
        let order = match self.raster() {
            Some(group) => format!("groups of {group} tile rows"),
            None => "row by row".to_owned(),
        };
        list.say("raster", order);
        if self.cluster() > 1 {
            let blocks = format!("{} blocks along M, B's tiles by multicast", self.cluster());
            list.say("cluster", blocks);
        }
        if self.persistent() {
            list.say("grid", "persistent: resident blocks loop over all tiles");
        }
        list.say("minimum blocks per SM", residency::told(self.least_resident()));
        list.say("shapes", if self.guarded() { "any" } else { "multiples of the tile" });
        list.say(
            "GEMMs",
            match self.batch() {
                None => "one",
                Some(Batch::Strided) => "a strided batch",
                Some(Batch::Strided2) => "a strided batch with two axes",
                Some(Batch::Strided3) => "a strided batch with three axes",
                Some(Batch::Pointers) => "a batch given by pointers",
                Some(Batch::Grouped) => "groups of rows with a B each",
            },
        );
        list.say("row strides", if self.pitched() { "any" } else { "packed" });
        let sums = if self.spec().scaled { "alpha * acc + beta * C" } else { "the accumulator" };
        let stored = match (self.epilogue(), self.spec().scaled) {
            (None, _) => sums.to_owned(),
            (Some(epilogue), false) => epilogue.to_string(),
            (Some(epilogue), true) => format!("{epilogue}, applied to {sums}"),
        };
        list.say("value stored in C", stored);
        list.finish()
    }
}

fn naive(plan: &NaivePlan, list: &mut Decisions) {
    let coarsen = plan.coarsen();
    list.say("block tile", format!("{} x {}", plan.rows(), plan.cols() * coarsen));
    list.say("consecutive threads", if plan.by_rows() { "along M" } else { "along N" });
    list.say("outputs per thread", format!("{coarsen}, one at a time"));
}

fn direct(plan: &DirectPlan, list: &mut Decisions) {
    let (of_warps, along) = match plan.lanes() {
        Lanes::N => ("threads", "along N"),
        Lanes::M => ("threads", "along M"),
        Lanes::K => ("warps", "along K, combined by shuffles over 16, 8, 4, 2, 1 lanes"),
    };
    list.say("block", format!("{} x {} {of_warps}", plan.rows(), plan.cols()));
    list.say("thread tile", format!("{} x {}", plan.tm(), plan.tn()));
    list.say("consecutive threads", along);
    list.say("sliced-K", slices(plan.slices()));
    list.say("K step", plan.step().to_string());
    list.say("K steps in flight", plan.unroll().to_string());
    let ragged = if plan.ragged() { "element by element" } else { "none" };
    list.because("partial K step", ragged, plan.ragged.why);
    for read in [plan.a(), plan.b()] {
        reading(&read, list);
    }
    epilogue(&plan.epilogue(), list);
}

fn reading(plan: &ReadPlan, list: &mut Decisions) {
    let of = |what: &str| format!("{what} of {}", plan.letter());
    list.say(of("layout"), format!("{}-major", plan.contiguous()));
    list.say(of("loads"), format!("{} bytes", plan.elem().size() * plan.width()));
    past_the_edge(plan.edge(), plan.letter(), list);
    if plan.overhangs() {
        list.say(of("row padding"), "loaded with the last vector of a row");
    }
}

fn past_the_edge(edge: Edge, letter: char, list: &mut Decisions) {
    let past = match edge {
        Edge::Exact => "none: no tile extends beyond C",
        Edge::Last => "to the last row or column",
        Edge::LastVector => "to the last vector",
        Edge::LastStart => "to the last vector that starts in range",
    };
    list.say(format!("clamping of {letter}"), past);
}

fn tiled(plan: &TiledPlan, list: &mut Decisions) {
    list.say("block tile", format!("{} x {} x {}", plan.bm(), plan.bn(), plan.bk()));
    let (threads_m, threads_n) = (plan.threads_m(), plan.threads_n());
    let thread = format!("{} x {}, {threads_m} x {threads_n} threads", plan.tm(), plan.tn());
    list.say("thread tile", thread);
    if plan.products() > 1 {
        let products = format!("{}, each with its own threads and tiles", plan.products());
        list.say("GEMMs per block", products);
    }
    list.say("sliced-K", slices(plan.slices()));
    match plan.mma() {
        None => list.say("accumulator layout", plan.fragment().to_string()),
        Some(mma) => tensor_cores(&mma, list),
    }
    if let Some(warp) = plan.warp() {
        let tile = format!("{} x {}", warp.m(), warp.n());
        let lanes = format!("{} x {} lanes", warp.lanes_m(), warp.lanes_n());
        let warps = format!("{} x {} warps", warp.warps_m(), warp.warps_n());
        list.say("warp tile", format!("{tile}: {lanes}, {warps}"));
    }
    list.say("pipeline", pipeline(plan.pipeline()));
    let ragged = match plan.ragged() {
        Ragged::Nowhere => "none",
        Ragged::First => "the first",
        Ragged::Last => "the last",
    };
    list.because("partial K tile", ragged, plan.ragged.why);
    if let Some(splits) = plan.splits() {
        splitting(&splits, list);
    }
    operand(&plan.a(), list);
    operand(&plan.b(), list);
    if plan.mma().is_none() {
        list.say("multiply-add order", plan.order().to_string());
    }
    epilogue(&plan.epilogue(), list);
    let unsigned = if plan.unsigned_tid() { "unsigned int" } else { "int" };
    list.because("thread index type", unsigned, plan.unsigned_tid.why);
    let width = if plan.narrow_addresses() { "32-bit words" } else { "generic pointers" };
    list.because("copy destinations", width, plan.narrow_addresses.why);
}

fn wgmma(plan: &WgmmaPlan, list: &mut Decisions) {
    list.say("block tile", format!("{} x {} x {}", plan.bm(), plan.bn(), plan.bk()));
    let (columns, terms) = (plan.columns(), plan.format().terms());
    let (groups_m, groups_n) = (plan.bm() / Wgmma::ROWS, plan.bn() / columns);
    list.say(
        "consumer warpgroups",
        format!("{groups_m} x {groups_n}, each {} x {columns}", Wgmma::ROWS),
    );
    list.say("arithmetic", plan.arith().to_string());
    let (rows, formats) = (Wgmma::ROWS, plan.splits().formats());
    let formats = match formats[0] == formats[1] {
        true => formats[0].name().to_owned(),
        false => format!("{} by {}", formats[0].name(), formats[1].name()),
    };
    list.say("tensor cores", format!("wgmma m{rows}n{columns}k{terms} in {formats}"));
    match plan.splits().are_matrices() {
        true => list.say("A and B", "read as they are, without a preceding launch"),
        false => splitting(&plan.splits(), list),
    }
    let promote = match plan.promote() {
        None => "none: tensor cores accumulate all of K".to_owned(),
        Some(terms) => format!("IEEE additions, after every {terms} of K"),
    };
    list.because("promotion", promote, plan.promote.why);
    let tiles = match (plan.copies(), plan.producer(), plan.stages()) {
        (Copies::Threads, ..) => "none: all threads copy, then all multiply".to_owned(),
        (Copies::Tma, producer, stages) => {
            let by = if producer { "a producer warpgroup" } else { "the first thread" };
            format!("TMA, {stages} stages, issued by {by}")
        }
    };
    list.say("pipeline", tiles);
    if plan.multiplies_ahead() {
        list.say("K tiles in flight", "two: the instructions of the next one start first");
    }
    list.say("shared tile row", format!("{} bytes", plan.bk() * plan.elem().size()));
    if plan.producer() {
        let registers = match plan.registers() {
            None => "equal for all warpgroups".to_owned(),
            Some([few, many]) => format!("{few} for the producer, {many} for the consumers"),
        };
        list.because("registers per thread", registers, plan.registers.why);
    }
    epilogue(&plan.epilogue(), list);
}

fn splitting(plan: &SplitsPlan, list: &mut Decisions) {
    let padded = if plan.are_whole_tiles() { ", padded to whole tiles" } else { "" };
    let splits = plan.count();
    list.say("splits", format!("{splits} of A and of B, computed by a preceding launch{padded}"));
}

fn tensor_cores(plan: &MmaPlan, list: &mut Decisions) {
    let (rows, cols, terms) = (plan.rows(), plan.cols(), plan.terms());
    let format = plan.format().name();
    let (m, n) = (Mma::ROWS, Mma::COLS);
    list.say("arithmetic", plan.arith().to_string());
    list.say("tensor cores", format!("{rows} x {cols} mma.sync m{m}n{n}k{terms} in {format}"));
    let layout = match plan.exchanges() {
        false => "as mma.sync defines it",
        true => "pairs of lanes exchange those of mma.sync: four adjacent columns",
    };
    list.say("accumulator layout", layout);
    let promote = match plan.promote_steps() {
        None => "none: tensor cores accumulate all of K".to_owned(),
        Some(steps) => format!("IEEE additions, after every {} of K", steps * terms),
    };
    list.because("promotion", promote, plan.promote_steps.why);
    if plan.promote_steps() == Some(1) && plan.together() < plan.cols() {
        let columns = format!("{} columns of instructions", plan.together());
        list.because("fresh accumulators", columns, plan.together.why);
    }
    for (factor, loads) in [(Factor::A, plan.loads_a), (Factor::B, plan.loads_b)] {
        let by = if loads.value { "ldmatrix" } else { "4 bytes" };
        list.because(format!("mma loads of {factor}"), by, loads.why);
    }
}

fn pipeline(pipeline: Pipeline) -> String {
    match pipeline {
        Pipeline::Single => "none: load, barrier, compute, barrier".to_owned(),
        Pipeline::Parts { parts } => {
            format!("none: load, barrier, compute, barrier for each of {parts} parts of B")
        }
        Pipeline::Prefetch => "register prefetch of the next tile, one buffer".to_owned(),
        Pipeline::DoubleBuffer => "register prefetch of the next tile, two buffers".to_owned(),
        Pipeline::Async { stages, spread: 1 } => format!("cp.async, {stages} stages"),
        Pipeline::Async { stages, spread } => {
            format!("cp.async, {stages} stages, issued over {spread} k steps")
        }
    }
}

fn operand(plan: &OperandPlan, list: &mut Decisions) {
    let of = |what: &str| format!("{what} of {}", plan.letter());
    let (rows, row) = plan.shared_tile();
    let axes = format!("{}-major, {}-major in the tile", plan.contiguous(), plan.shared());
    list.say(of("shared tile"), format!("{rows} x {row}, {} columns of padding", plan.pad()));
    list.say(of("layout"), axes);
    if let Some(Swizzle { bits, shift, .. }) = plan.swizzle() {
        let (ways, rows) = (1 << bits, 1 << shift);
        let patterns = format!("16-byte vectors, {ways} XOR patterns of {rows} rows each");
        list.say(of("swizzle"), patterns);
    }

    let lines = if plan.lines_are_rows() { "rows" } else { "columns" };
    let walk = match plan.walk() {
        Walk::Lines { step } => format!("{step} whole {lines} per pass"),
        Walk::Groups { step, passes } => {
            format!("8 elements of {step} {lines} per pass, {passes} passes")
        }
        Walk::Linear { total, exact } => {
            format!("linear, {total} accesses{}", if exact { "" } else { ", the last guarded" })
        }
    };
    list.because(of("copies"), walk, plan.walk.why);
    let of_run = match (plan.runs(), plan.accesses_of_run()) {
        (_, 1) => String::new(),
        (1, accesses) => format!(" run of {accesses}"),
        (_, accesses) => format!(" runs of {accesses}"),
    };
    let widths = format!(
        "{}{of_run} per thread, {}-byte loads, {}-byte stores",
        plan.runs(),
        plan.elem().size() * plan.width(),
        plan.elem().size() * plan.store_width(),
    );
    list.say(of("copy accesses"), widths);
    if let Some(by) = plan.unroll() {
        list.because(of("copy unrolling"), format!("by {by}"), plan.unroll.why);
    }
    let pointers = match plan.pointers() {
        Pointers::None => None,
        Pointers::One => Some("one"),
        Pointers::PerPass => Some("one per pass"),
        Pointers::PerAccess => Some("one per access"),
    };
    if let Some(pointers) = pointers {
        list.because(of("copy pointers"), pointers, plan.pointers.why);
    }
    past_the_edge(plan.edge(), plan.letter(), list);
    let fill = match plan.fill() {
        Fill::None => "none",
        Fill::PlusZero => "+0",
        Fill::MinusZero => "-0",
    };
    list.because(of("K fill"), fill, plan.fill.why);
    if plan.straddles() {
        list.say(of("K-edge vectors"), "guarded per element");
    }
    if plan.overhangs() {
        list.say(of("row padding"), "loaded with the last vector of a row");
    }
    let fragment = plan.elem().size() * plan.fragment_width();
    list.say(of("fragment loads"), format!("{fragment} bytes"));
}

fn epilogue(plan: &EpiloguePlan, list: &mut Decisions) {
    let straddles = if plan.straddles() { ", single elements at the end of a row" } else { "" };
    let exchanged = match plan.groups() {
        0 => "",
        2 => ", exchanged between two lanes",
        _ => ", exchanged between four lanes",
    };
    let bytes = plan.elem().size() * plan.store_width();
    list.say("stores to C", format!("{bytes} bytes{straddles}{exchanged}"));
    let guards = match plan.guards() {
        Guards::None => "none",
        Guards::Inline => "one per store",
        Guards::Hoisted => "edge tiles only",
    };
    list.because("store guards", guards, plan.guards.why);
    let loops = match plan.staged_rows() {
        0 => "fully unrolled".to_owned(),
        rows => format!("a loop over accumulators in shared memory, {rows} rows at a time"),
    };
    list.because("epilogue", loops, plan.staged_rows.why);
}

fn slices(slices: u32) -> String {
    match slices {
        1 => "one slice".to_owned(),
        slices => format!("{slices} slices of alternate K steps, added in order in shared memory"),
    }
}
