//! Pages of faults: a race in a kernel from which a barrier was removed, and out-of-bounds accesses
//! in a kernel whose guards were removed.

use gemm_bench::epilogue::launch_once;
use gemm_bench::family::Family;
use gemm_book::analysis;
use gemm_book::analysis::Subject;
use gemm_book::fault::{self, ReplayedLaunch};
use gemm_book::page;
use gemm_dsl::ir::{Expr, Stmt};
use gemm_oracle::product::Size;
use gemm_runtime::Device;
use gemm_runtime::sim::Simulation;
use gemm_runtime::sim::watch::{Arguments, KernelRun, VerifiedKernel, Watch};
use libtest_mimic::Failed;
use std::sync::{Arc, Mutex, OnceLock};

/// Spec whose kernel needs its barriers and its guards.
pub const LINE: &str = "tile: 32x32x32";
/// Size at which the last tiles along M and N are partial.
const RAGGED: Size = Size { m: 40, n: 40, k: 32 };
/// Limit on the simulated instructions of the failing launch.
const PATIENCE: u64 = 1 << 24;

/// File names of the pages.
pub const NAMES: [&str; 2] = ["race.html", "out_of_bounds.html"];

/// File names and HTML of the pages.
pub fn pages() -> Result<&'static [(String, String)], Failed> {
    static PAGES: OnceLock<Result<Vec<(String, String)>, String>> = OnceLock::new();
    let made = || {
        let made = [race_of_a_barrier(), out_of_bounds()];
        let named = NAMES.into_iter().zip(made).map(|(name, page)| Ok((name.to_owned(), page?)));
        named.collect::<Result<_, Failed>>().map_err(|failed| format!("{failed:?}"))
    };
    PAGES.get_or_init(made).as_deref().map_err(Failed::from)
}

pub fn race() -> Result<&'static str, Failed> {
    Ok(&pages()?.first().ok_or("a race has a page")?.1)
}

fn race_of_a_barrier() -> Result<String, Failed> {
    let subject = Subject { line: LINE.to_owned(), ..Subject::new(Family::Sgemm) };
    let syncs = analysis::report(&subject)?.syncs;
    let barrier = syncs.last().ok_or("the kernel has barriers")?.line;
    Ok(page::broken(&analysis::without(&subject, barrier)?, "a test")?)
}

/// Kernel, grid and arguments of a launch.
type Launch = (VerifiedKernel, [u32; 3], Arguments);

/// Observer that keeps the launch.
#[derive(Default)]
struct Keeps(Mutex<Option<Launch>>);

impl Watch for Keeps {
    fn blocks(&self, _: &VerifiedKernel, _: [u32; 3]) -> Vec<u32> {
        Vec::new()
    }

    fn ran(&self, seen: KernelRun<'_>) {
        let launch = (seen.kernel.clone(), seen.grid, seen.arguments);
        *self.0.lock().expect("nobody panics") = Some(launch);
    }
}

fn out_of_bounds() -> Result<String, Failed> {
    let keeps = Arc::new(Keeps::default());
    let watch: Option<Arc<dyn Watch>> = Some(keeps.clone());
    let device = Device::simulator_of(Simulation { watch, ..Simulation::default() });
    let Size { m, n, k } = RAGGED;
    launch_once(&device, &LINE.parse()?, &vec![1.0; m * k], &vec![1.0; k * n], RAGGED)?;
    let launch = keeps.0.lock().expect("nobody panics").take();
    let (kernel, grid, arguments) = launch.ok_or("a launch is seen")?;
    let mut unguarded = kernel.into_inner();
    unguarded.visit_mut(&mut |stmt, _| {
        if let Stmt::If { cond, then, .. } = stmt
            && matches!(then[..], [Stmt::Store { .. }])
        {
            *cond = Expr::I32(0).equals(0);
        }
    });
    let unguarded = VerifiedKernel::new(unguarded).map_err(|error| format!("{error:?}"))?;
    let launch = ReplayedLaunch { kernel: &unguarded, grid, arguments: &arguments };
    let broken = fault::drawn("sgemm_kernel", LINE.to_owned(), launch, None, PATIENCE)?;
    let broken = broken.ok_or("stores beyond the columns of C are a fault")?;
    Ok(page::broken(&broken, "a test")?)
}

/// Each page states the fault and shows the lanes that cause it.
pub fn says_what_is_wrong() -> Result<(), Failed> {
    let says: [&[&str]; 2] = [
        &["data race on As[", "id=\"past\""],
        &["id=\"reached\"", "<code>C[0][40]</code>", "<td>no</td>"],
    ];
    for ((name, html), says) in pages()?.iter().zip(says) {
        for part in says.iter().chain(&["id=\"accesses\"", " on\""]) {
            if !html.contains(part) {
                return Err(format!("{name} lacks {part}").into());
            }
        }
    }
    Ok(())
}
