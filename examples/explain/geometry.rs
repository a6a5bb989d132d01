//! The geometry of a plan, in words.

use gemm_dsl::plan::{Finish, NaivePlan, Pipeline, ReducePlan, SgemmPlan, Shape, TiledPlan};

/// Lines of a name and a value.
pub type Lines = Vec<(&'static str, String)>;

/// The geometry of a reduction.
pub fn of_reduction(plan: &ReducePlan) -> Lines {
    let finish = match plan.finish() {
        Finish::Tree => format!("{} tree in shared memory", plan.tree()),
        Finish::UnrolledWarp => format!("{} tree, the last warp unrolled", plan.tree()),
        Finish::Shuffle => "shuffles in the warp, then across the warps".to_owned(),
    };
    let items = match plan.vector() {
        1 => plan.items().to_string(),
        vector => format!("{} of {vector} elements", plan.items()),
    };
    vec![
        ("operator", plan.op().to_string()),
        ("threads", threads(plan.block())),
        ("items of a thread", items),
        ("elements of a block", plan.elements_per_block().to_string()),
        ("combined by", finish),
    ]
}

/// The geometry of a product.
pub fn of_product(plan: &SgemmPlan) -> Lines {
    let mut lines = match plan.shape() {
        Shape::Naive(naive) => of_naive(naive),
        Shape::Tiled(tiled) => of_tiled(tiled),
    };
    lines.insert(0, ("threads", threads(plan.threads())));
    if let Some(group) = plan.raster() {
        lines.push(("rasterisation", format!("groups of {group} tile rows")));
    }
    if plan.blocks_per_sm() > 1 {
        lines.push(("blocks wished for", format!("{} on a multiprocessor", plan.blocks_per_sm())));
    }
    let shapes = if plan.guarded() { "any" } else { "multiples of the tile" };
    lines.push(("shapes", shapes.to_owned()));
    lines
}

fn of_naive(plan: &NaivePlan) -> Lines {
    let coarsen = plan.coarsen();
    let mut lines = vec![
        ("block", format!("{} rows x {} columns of C", plan.rows(), plan.cols() * coarsen)),
        ("consecutive threads", format!("along {}", plan.lanes())),
    ];
    if coarsen > 1 {
        lines.push(("outputs of a thread", format!("{coarsen}, one after the other")));
    }
    lines
}

fn of_tiled(plan: &TiledPlan) -> Lines {
    let width = |vector: bool| if vector { "16" } else { "4" };
    let mut lines = vec![
        ("block tile", format!("{} x {} x {}", plan.bm(), plan.bn(), plan.bk())),
        (
            "thread tile",
            format!(
                "{} x {}, {} threads x {}",
                plan.tm(),
                plan.tn(),
                plan.threads_m(),
                plan.threads_n()
            ),
        ),
    ];
    if plan.tm() * plan.tn() > 1 {
        lines.push(("outputs of a thread", plan.fragment().to_string()));
    }
    if let Some(warp) = plan.warp() {
        let tile = format!(
            "{} x {}: {} lanes x {}, {} warps x {}",
            warp.m(),
            warp.n(),
            warp.lanes_m(),
            warp.lanes_n(),
            warp.warps_m(),
            warp.warps_n()
        );
        lines.push(("warp tile", tile));
    }
    let shared = |(rows, cols): (u32, u32)| format!("{rows} rows of {cols}");
    let order = if plan.transpose() { ", K-major" } else { "" };
    lines.push(("shared tile of A", shared(plan.a_shared()) + order));
    lines.push(("shared tile of B", shared(plan.b_shared())));
    lines.push(("pipeline", pipeline(plan)));
    let copies = |accesses: u32, global, shared| {
        format!("{accesses} a thread; {} bytes read, {} bytes stored", width(global), width(shared))
    };
    let a = copies(plan.a_accesses(), plan.a_global_vector(), plan.a_shared_store_vector());
    let b = copies(plan.b_accesses(), plan.b_global_vector(), plan.b_shared_store_vector());
    lines.push(("copies of A", a));
    lines.push(("copies of B", b));
    let fragments =
        format!("A by {} bytes, B by {}", width(plan.a_frag_vector()), width(plan.b_frag_vector()));
    lines.push(("fragments", fragments));
    lines
}

fn pipeline(plan: &TiledPlan) -> String {
    match plan.pipeline() {
        Pipeline::Single => "none: load, barrier, compute, barrier".to_owned(),
        Pipeline::Prefetch => "the next tile waits in registers; one buffer".to_owned(),
        Pipeline::DoubleBuffer => "the next tile waits in registers; two buffers".to_owned(),
        Pipeline::Async { stages, spread: 1 } => format!("cp.async through {stages} buffers"),
        Pipeline::Async { stages, spread } => {
            format!("cp.async through {stages} buffers, issued over {spread} steps of k")
        }
    }
}

fn threads(threads: u32) -> String {
    format!("{threads} ({} warps)", threads.div_ceil(32))
}
