//! Check and timing of one GEMM.

use gemm_bench::cli::Failure;
use gemm_bench::epilogue::{as_small, first_launch};
use gemm_bench::gpu::{Blas, Gpu, Timer, Work, captured, failed};
use gemm_bench::grid::arena::Arena;
use gemm_bench::grid::repeats;
use gemm_bench::grid::repeats::Pace;
use gemm_bench::grid::report::GridRow;
use gemm_bench::shapes::GemmShape;
use gemm_oracle::product::Size;
use gemm_runtime::spec::{Accuracy, Arith};
use gemm_runtime::{Device, Error, SgemmSpec, SgemmTable};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// GPU with the matrices of all GEMMs, and cuBLAS if it is installed.
pub struct GridBench<'d> {
    device: &'d Device,
    gpu: Gpu<'d>,
    timer: Timer<'d>,
    blas: Option<Blas>,
    arena: Arena<'d>,
    /// Table that selects the kernels; `sgemm` selects them if there is none.
    table: Option<SgemmTable>,
}

impl<'d> GridBench<'d> {
    /// Uploads the matrices, and prints a note if cuBLAS is missing.
    pub fn new(
        device: &'d Device,
        table: Option<SgemmTable>,
        accuracy: Accuracy,
        shapes: &[GemmShape],
        seed: u64,
    ) -> Result<Self, Failure> {
        let gpu = Gpu::new(device);
        let gpu = gpu.ok_or_else(|| Failure::Missing("GEMMs are timed on a GPU".to_owned()))?;
        let gpu = gpu.without_events();
        let timer = Timer::new(gpu)?;
        let blas = Blas::for_graphs(gpu).map_err(|missing| eprintln!("note: {missing}")).ok();
        let arena = Arena::new(gpu, shapes, seed)?.accuracy(accuracy);
        Ok(Self { device, gpu, timer, blas, arena, table })
    }

    /// Words for the title: with or without cuBLAS.
    pub fn beside(&self) -> &'static str {
        if self.blas.is_some() { "beside cuBLAS" } else { "without cuBLAS" }
    }

    /// Compiles the kernels of all GEMMs in parallel. Returns a message with the number of specs
    /// and the time.
    ///
    /// Failures are ignored here, because they occur again at the launch.
    pub fn compile(&mut self, shapes: &[GemmShape]) -> Result<String, Failure> {
        let start = Instant::now();
        // The key is the spec, and small extents that select the same variant.
        let mut kernels: HashMap<(String, Size), SgemmSpec> = HashMap::new();
        for shape in shapes {
            let (spec, _) = self.chosen(*shape)?;
            kernels.insert((spec.to_string(), as_small(&spec, shape.size)?), spec);
        }
        let device = self.device;
        kernels.par_iter().for_each(|((_, size), spec)| _ = first_launch(device, spec, *size));
        device.synchronize()?;
        let seconds = start.elapsed().as_secs_f64();
        let lines: HashSet<&String> = kernels.keys().map(|(line, _)| line).collect();
        Ok(format!("the kernels of {} specs compiled in {seconds:.1} s", lines.len()))
    }

    /// Returns the kernel of a GEMM, and the condition of its rule.
    fn chosen(&mut self, shape: GemmShape) -> Result<(SgemmSpec, Option<String>), Error> {
        match &self.table {
            None => Ok((self.arena.spec(shape)?, None)),
            Some(table) => {
                let choice = table.choice(shape.of_table(), self.device)?;
                Ok((choice.spec.parse()?, choice.condition))
            }
        }
    }

    /// Checks a GEMM and times it against cuBLAS.
    ///
    /// # Errors
    /// Returns an error that would affect every GEMM.
    pub fn measure(&mut self, shape: GemmShape) -> Result<GridRow, Failure> {
        let mut row = GridRow::new(shape);
        match self.ours(shape, &mut row) {
            Ok(()) => {}
            Err(error @ (Error::Driver { .. } | Error::Internal(_))) => return Err(error.into()),
            Err(error) => row.message = Some(error.to_string()),
        }
        Ok(row)
    }

    fn ours(&mut self, shape: GemmShape, row: &mut GridRow) -> Result<(), Error> {
        let (spec, condition) = self.chosen(shape)?;
        (row.line, row.condition) = (spec.to_string(), condition);
        let (arena, table) = (&mut self.arena, self.table.as_ref());
        arena.expect(shape)?;
        let (error, ok) = arena.check(shape, spec.arith, |arena| launch(arena, table, shape))?;
        row.error = Some(error).filter(|error| error.is_finite());
        row.ok = Some(ok);
        if !ok {
            row.message = Some(format!("wrong result: error {error:.1e}"));
            return Ok(());
        }
        if let Some(blas) = &self.blas {
            let (error, ok) = arena.check(shape, Arith::F32, |arena| arena.blas(blas, shape))?;
            if !ok {
                row.message = Some(format!("cuBLAS has an error of {error:.1e}"));
            }
        }
        let Pace { launches, replays } = self.pace(shape)?;
        let ours = captured(
            self.gpu,
            &mut || launch(&mut self.arena, self.table.as_ref(), shape),
            launches,
        )?;
        let theirs = match &self.blas {
            None => None,
            Some(blas) => {
                let mut launch = || self.arena.blas(blas, shape);
                Some(captured(self.gpu, &mut launch, launches)?)
            }
        };
        let failed = || failed("launching a graph");
        let mut replay = || ours.launch().map_err(failed());
        let mut beside = || match &theirs {
            Some(graph) => graph.launch().map_err(failed()),
            None => Ok(()),
        };
        let mut work: Vec<&mut Work<'_>> = vec![&mut replay];
        if theirs.is_some() {
            work.insert(0, &mut beside);
        }
        let times = self.timer.medians(replays, &mut work)?;
        // The graphs are destroyed when this function returns.
        self.device.synchronize()?;
        let us = |ms: &f64| ms * 1e3 / launches as f64;
        let (ours, theirs) = match &times[..] {
            [theirs, ours] => (us(ours), Some(us(theirs))),
            times => (times.first().map_or(f64::NAN, us), None),
        };
        row.timed(ours, theirs);
        (row.launches, row.replays) = (Some(launches), Some(replays));
        Ok(())
    }

    /// Determines the number of launches from the shorter of our time and the time of cuBLAS.
    fn pace(&mut self, shape: GemmShape) -> Result<Pace, Error> {
        // Both closures need the arena.
        let arena = std::cell::RefCell::new(&mut self.arena);
        let (blas, table) = (self.blas.as_ref(), self.table.as_ref());
        let mut ours = || launch(&mut arena.borrow_mut(), table, shape);
        let mut theirs = || match blas {
            Some(blas) => arena.borrow_mut().blas(blas, shape),
            None => Ok(()),
        };
        let mut work: Vec<&mut Work<'_>> = vec![&mut ours];
        if blas.is_some() {
            work.push(&mut theirs);
        }
        let times = self.timer.medians(1, &mut work)?;
        let shortest = times.into_iter().fold(f64::INFINITY, f64::min);
        Ok(repeats::benchmark(shortest * 1e3))
    }
}

/// Enqueues a GEMM, with the kernel of the table if there is one.
fn launch(
    arena: &mut Arena<'_>,
    table: Option<&SgemmTable>,
    shape: GemmShape,
) -> Result<(), Error> {
    match table {
        Some(table) => arena.by_table(table, shape).map(drop),
        None => arena.sgemm(shape).map(drop),
    }
}
