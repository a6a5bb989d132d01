//! Looks on while ranks work: streams of GPUs wait for what comes of others, and no call that waits for such a stream comes
//! back where a rank is lost, or where NCCL fails. So a thread beside them waits for that, and has NCCL give up.

use super::rank::End;
use std::io;
use std::thread::Scope;

/// The ranks of this process whose devices NCCL connects.
#[cfg(feature = "nccl")]
pub(crate) struct FailureWatch {
    of: Option<WatchTarget>,
}

#[cfg(feature = "nccl")]
struct WatchTarget {
    channel: std::sync::Arc<dyn crate::channel::Channel>,
    /// The number of the first rank of this process.
    first: usize,
    all: std::sync::Arc<crate::transport::Communicators>,
    /// Whether the ranks have ended.
    ended: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

#[cfg(feature = "nccl")]
impl FailureWatch {
    pub(crate) fn new(ends: &[End]) -> Self {
        use crate::transport::Links;
        let of = ends.iter().find_map(|end| match &end.links {
            Links::Nccl(nccl) => Some(WatchTarget {
                channel: std::sync::Arc::clone(&end.channel),
                first: end.channel.rank(),
                all: nccl.all(),
                ended: std::sync::Arc::default(),
            }),
            _ => None,
        });
        Self { of }
    }

    /// Begins to look on.
    ///
    /// # Errors
    /// Where the system has no thread for it.
    pub(crate) fn watch<'s>(&self, scope: &'s Scope<'s, '_>) -> io::Result<()> {
        use super::error::LossReason;
        use crate::channel::RankLoss;
        use std::sync::atomic::Ordering;
        use std::thread::Builder;
        use std::time::Duration;
        /// How soon a loss is seen.
        const OFTEN: Duration = Duration::from_millis(20);
        let Some(WatchTarget { channel, first, all, ended }) = &self.of else { return Ok(()) };
        let (channel, first, all, ended) = (channel.clone(), *first, all.clone(), ended.clone());
        let look_on = move || {
            while !ended.load(Ordering::Acquire) {
                if channel.broken().is_none()
                    && let Some((place, error)) = all.failed()
                {
                    // The numbers of the ranks of a process follow one another.
                    let rank = first + place;
                    channel.abort(RankLoss { rank, why: LossReason::Failed(error.to_string()) });
                }
                if channel.broken().is_some() {
                    return all.abort();
                }
                std::thread::sleep(OFTEN);
            }
        };
        Builder::new().spawn_scoped(scope, look_on).map(drop)
    }

    /// The ranks have ended.
    pub(crate) fn end(&self) {
        if let Some(watch) = &self.of {
            watch.ended.store(true, std::sync::atomic::Ordering::Release);
            // What is left was not parted from in agreement.
            watch.all.abort();
        }
    }
}

/// Where there is no NCCL nothing waits for ever.
#[cfg(not(feature = "nccl"))]
pub(crate) struct FailureWatch;

#[cfg(not(feature = "nccl"))]
impl FailureWatch {
    pub(crate) fn new(_: &[End]) -> Self {
        Self
    }

    pub(crate) fn watch<'s>(&self, _: &'s Scope<'s, '_>) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn end(&self) {}
}
