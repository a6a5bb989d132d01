//! What is drawn of a launch that may fail.

use super::report::Report;
use crate::fault::FaultReport;
use gemm_bench::cli::{Failure, Outcome};

/// What a launch has come to, to be drawn.
#[derive(Debug)]
pub enum PageContent<'a> {
    /// Its kernel has done its work.
    Kernel(&'a Report),
    /// Its kernel has failed by what the simulator sees: a race, or an access out of bounds.
    Fault(&'a FaultReport),
}

/// Draws the kernel of a launch; of one that fails the fault that it comes to, if that is why it does.
///
/// # Errors
/// What the launch has failed with, whether or not there is a fault to draw, and what `draw` fails with.
pub fn draw(
    report: Result<Report, Failure>,
    fault: impl FnOnce() -> Result<Option<FaultReport>, Failure>,
    draw: impl FnOnce(PageContent<'_>) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let failure = match report {
        Ok(report) => return draw(PageContent::Kernel(&report)),
        Err(failure) => failure,
    };
    // What cannot be drawn hides nothing of why the launch failed.
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
    use gemm_bench::family::Family;
    use gemm_runtime::Error;

    /// The generator makes no kernel that fails, so this one has lost a barrier.
    #[test]
    fn a_launch_that_fails_is_drawn_and_fails() {
        let subject = Subject { line: "tile: 32x32x32".to_owned(), ..Subject::new(Family::Sgemm) };
        let race = || {
            let lines = analysis::report(&subject).expect("a kernel").syncs;
            analysis::without(&subject, lines.first().expect("a barrier").line).map(Some)
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
        let subject = Subject { line: "tile: 32x32x32".to_owned(), ..Subject::new(Family::Sgemm) };
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
