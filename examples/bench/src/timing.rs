//! Timing of GEMMs, and the comparison with cuBLAS.

use crate::cli::Failure;
use crate::gpu::{Blas, Gpu, Product, Timer, Work, failed, fma_rate};
use crate::operands::{Launchable, Operands};
use crate::unfused::UnfusedEpilogue;
use gemm_dsl::spec::Arith;
use gemm_oracle::product::Verdict;
use gemm_runtime::{ByName, Device, Error, Sgemm, SgemmSpec};

/// GPU with its FMA ceiling, and cuBLAS if it is installed.
pub struct GemmBench<'d> {
    gpu: Gpu<'d>,
    timer: Timer<'d>,
    blas: Option<Blas>,
    /// Ceiling of multiply-adds, in 10^9 floating-point operations per second.
    pub fma_rate: f64,
}

/// Times of a kernel and of cuBLAS, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct KernelTimes {
    pub kernel: f64,
    /// Time of cuBLAS; `None` if it is not installed.
    pub blas: Option<f64>,
}

impl KernelTimes {
    /// Returns the time of cuBLAS divided by the time of the kernel.
    pub fn vs_blas(&self) -> Option<f64> {
        Some(self.blas? / self.kernel)
    }
}

/// Times in milliseconds of a fused epilogue and of its alternatives, which run in turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fusion {
    /// Time of the kernel with its epilogue.
    pub fused: f64,
    /// Time of the same kernel without the epilogue.
    pub plain: f64,
    /// Time of cuBLAS plus an epilogue kernel, if cuBLAS is installed and can compute the GEMM.
    pub separate: Option<f64>,
}

impl Fusion {
    /// Returns the overhead of the epilogue, as a share of the time without it.
    pub fn over_plain(&self) -> f64 {
        self.fused / self.plain - 1.0
    }
}

impl<'d> GemmBench<'d> {
    /// Prepares a GPU for timing. Returns `None` for the simulator. Prints a note if cuBLAS is
    /// missing.
    ///
    /// # Errors
    /// Returns the errors of the driver and of NVRTC.
    pub fn new(device: &'d Device) -> Result<Option<Self>, Failure> {
        let Some(gpu) = Gpu::new(device) else {
            return Ok(None);
        };
        let timer = Timer::new(gpu)?;
        let fma_rate = fma_rate(gpu, &timer)?;
        let blas = Blas::new(gpu).map_err(|missing| eprintln!("note: {missing}")).ok();
        Ok(Some(Self { gpu, timer, blas, fma_rate }))
    }

    /// Times a kernel and cuBLAS in turns, over `rounds` rounds.
    ///
    /// # Errors
    /// Returns the errors of the kernel and of cuBLAS.
    pub fn times(
        &self,
        kernel: &Sgemm<ByName>,
        launchable: &mut Launchable<'_>,
        peer: Option<Product<'_>>,
        rounds: usize,
    ) -> Result<KernelTimes, Error> {
        let mut launch = || launchable.launch(kernel, self.gpu.device).map(drop);
        let (Some(blas), Some(mut peer)) = (&self.blas, peer) else {
            let times = self.timer.medians(rounds, &mut [&mut launch])?;
            return Ok(KernelTimes {
                kernel: times.first().copied().unwrap_or(f64::NAN),
                blas: None,
            });
        };
        let mut beside = || blas.product(&mut peer);
        let times = self.timer.medians(rounds, &mut [&mut beside, &mut launch])?;
        let time = |i: usize| times.get(i).copied().unwrap_or(f64::NAN);
        Ok(KernelTimes { kernel: time(1), blas: Some(time(0)) })
    }

    /// Times a kernel with its epilogue, the same kernel without the epilogue, and cuBLAS plus an
    /// epilogue kernel. Returns `None` for a kernel without an epilogue.
    ///
    /// # Errors
    /// Returns the errors of all three.
    pub fn fusion(
        &self,
        spec: &SgemmSpec,
        operands: &Operands<'_>,
        rounds: usize,
    ) -> Result<Option<Fusion>, Error> {
        if spec.epilogue.is_none() {
            return Ok(None);
        }
        let mut without = spec.clone();
        without.epilogue = None;
        let device = self.gpu.device;
        let (fused, plain) = (Sgemm::new(spec.clone())?, Sgemm::new(without.clone())?);
        let mut on_fused = operands.launchable(device, spec)?;
        let mut on_plain = operands.launchable(device, &without)?;
        let separate = UnfusedEpilogue::new(self.gpu, operands, spec, on_fused.beside().on_host())?;
        let mut separate = self.blas.as_ref().zip(separate);
        let has_separate = separate.is_some();
        let mut fused = || on_fused.launch(&fused, device).map(drop);
        let mut plain = || on_plain.launch(&plain, device).map(drop);
        let mut apart = || match &mut separate {
            Some((blas, separate)) => separate.launch(blas),
            None => Ok(()),
        };
        let mut work: Vec<&mut Work<'_>> = vec![&mut fused, &mut plain];
        if has_separate {
            work.push(&mut apart);
        }
        let times = self.timer.medians(rounds, &mut work)?;
        let time = |i: usize| times.get(i).copied();
        let of = |i| time(i).unwrap_or(f64::NAN);
        Ok(Some(Fusion { fused: of(0), plain: of(1), separate: time(2) }))
    }

    /// Compares the last result of cuBLAS with the reference.
    ///
    /// # Errors
    /// Returns the errors of a download.
    pub fn judge_blas(&self, operands: &Operands<'_>) -> Result<Option<Verdict>, Error> {
        let (Some(_), Some(c)) = (&self.blas, &operands.blas_c) else {
            return Ok(None);
        };
        let size = operands.products().size;
        if size.m * size.n == 0 {
            return Ok(None);
        }
        let c = self.gpu.stream.clone_dtoh(c);
        let c = c.map_err(failed("copying the result of cuBLAS"))?;
        Ok(Some(operands.judge(&c, Arith::F32)))
    }
}
