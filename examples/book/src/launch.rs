//! Page of a launch: the report of the kernel, or the fault.

use super::report::Report;
use crate::fault::FaultReport;
use gemm_bench::cli::{Failure, Outcome};

#[derive(Debug)]
pub enum PageContent<'a> {
    /// Report of a successful launch.
    Kernel(&'a Report),
    /// Fault found by the simulator: a race, or an access out of bounds.
    Fault(&'a FaultReport),
}

/// Draws the report of a successful launch, or the fault of a failed launch, if the failure is a
/// fault.
///
/// # Errors
/// Returns the failure of the launch, even if its fault is drawn, and the error of `draw`.
pub fn draw(
    report: Result<Report, Failure>,
    fault: impl FnOnce() -> Result<Option<FaultReport>, Failure>,
    draw: impl FnOnce(PageContent<'_>) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let failure = match report {
        Ok(report) => return draw(PageContent::Kernel(&report)),
        Err(failure) => failure,
    };
    // An error in the fault report must not hide the failure of the launch.
    if let Ok(Some(broken)) = fault() {
        draw(PageContent::Fault(&broken))?;
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis;
    use crate::analysis::Subject;
    use crate::observation::looked;
    use crate::sync;
    use gemm_bench::family::Family;
    use gemm_dsl::cuda;
    use gemm_runtime::Error;

    /// Generated kernels have no faults, so the test removes a barrier.
    #[test]
    fn a_launch_that_fails_is_drawn_and_fails() {
        let subject = Subject { line: "tile: 32x32x32".to_owned(), ..Subject::new(Family::Sgemm) };
        let race = || {
            let kernel = &looked(subject.family, &subject.line).kernel;
            let lines = sync::lines(kernel, &cuda::listing(kernel));
            analysis::without(&subject, *lines.first().expect("a barrier")).map(Some)
        };
        let failed = || Err(Failure::Runtime(Error::Internal("the launch".to_owned())));
        let mut drawn = String::new();
        let ended = draw(failed(), race, |page| {
            drawn = match page {
                PageContent::Kernel(_) => unreachable!("it has failed"),
                PageContent::Fault(broken) => {
                    crate::page::broken(broken, "explain").expect("a page")
                }
            };
            Ok(Outcome::Right)
        });
        assert!(matches!(ended, Err(Failure::Runtime(Error::Internal(_)))), "{ended:?}");
        assert!(drawn.contains("data race on As["), "{drawn}");

        let undrawn = |_: PageContent<'_>| unreachable!("no fault");
        for fault in [|| Ok(None), || Err(Failure::Usage("no shape".to_owned()))] {
            let ended = draw(failed(), fault, undrawn);
            assert!(matches!(ended, Err(Failure::Runtime(Error::Internal(_)))), "{ended:?}");
        }
    }

    #[test]
    fn a_launch_that_succeeds_is_drawn_as_its_kernel() {
        let subject = Subject { line: "items: 2".to_owned(), ..Subject::new(Family::Reduce) };
        let report = analysis::report(&subject);
        let ended = draw(
            report,
            || unreachable!("no fault"),
            |page| {
                assert!(matches!(page, PageContent::Kernel(_)), "{page:?}");
                Ok(Outcome::Right)
            },
        );
        assert!(matches!(ended, Ok(Outcome::Right)), "{ended:?}");
    }
}
