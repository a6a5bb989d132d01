//! Architectures for which a kernel is compiled.

use crate::ARCHITECTURES;
use gemm_dsl::ir::VerifiedKernel;

/// Architectures for which a kernel is compiled.
pub(crate) enum Targets {
    /// All of these that have the kernel's instructions.
    Each(Vec<u32>),
    /// One that has the kernel's instructions, by the number of the test. All of them if the run is
    /// not thinned.
    InTurn(usize),
}

impl Targets {
    pub(crate) fn of(&self, kernel: &VerifiedKernel) -> Vec<u32> {
        let has = |arch: &u32| match kernel.contract().is_specific {
            true => *arch == kernel.min_arch(),
            false => *arch >= kernel.min_arch(),
        };
        match self {
            Self::Each(architectures) => architectures.iter().copied().filter(has).collect(),
            &Self::InTurn(nth) => {
                let able: Vec<u32> = ARCHITECTURES.into_iter().filter(has).collect();
                let is_chosen = |(i, _): &(usize, u32)| gemm_cases::is_in_turn(*i, able.len(), nth);
                able.iter().copied().enumerate().filter(is_chosen).map(|(_, arch)| arch).collect()
            }
        }
    }
}
