//! Watcher thread that aborts NCCL when a rank is lost. GPU streams wait for data of other ranks.
//! If a rank is lost or NCCL fails, a call that waits for such a stream never returns, so a second
//! thread aborts the communicators.

use super::rank::End;
use std::io;
use std::thread::Scope;

/// Watcher of the ranks of this process that NCCL connects.
#[cfg(feature = "nccl")]
pub(crate) struct FailureWatch {
    of: Option<WatchTarget>,
}

#[cfg(feature = "nccl")]
struct WatchTarget {
    channel: std::sync::Arc<dyn crate::channel::Channel>,
    /// Number of this process's first rank.
    first: usize,
    all: std::sync::Arc<crate::transport::Communicators>,
    /// True once the ranks have ended.
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

    /// Starts the watcher.
    ///
    /// # Errors
    /// Returns the system's error if it cannot start a thread.
    pub(crate) fn watch<'s>(&self, scope: &'s Scope<'s, '_>) -> io::Result<()> {
        use super::error::LossReason;
        use crate::channel::RankLoss;
        use std::sync::atomic::Ordering;
        use std::thread::Builder;
        use std::time::Duration;
        const OFTEN: Duration = Duration::from_millis(20);
        let Some(WatchTarget { channel, first, all, ended }) = &self.of else { return Ok(()) };
        let (channel, first, all, ended) = (channel.clone(), *first, all.clone(), ended.clone());
        let look_on = move || {
            while !ended.load(Ordering::Acquire) {
                if channel.broken().is_none()
                    && let Some((place, error)) = all.failed()
                {
                    // The ranks of a process have consecutive numbers.
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

    /// Stops the watcher after the ranks have ended.
    pub(crate) fn end(&self) {
        if let Some(watch) = &self.of {
            watch.ended.store(true, std::sync::atomic::Ordering::Release);
            // The remaining communicators were not closed together with the other ranks, so they
            // are aborted.
            watch.all.abort();
        }
    }
}

/// Without NCCL every wait has a time limit, so nothing is watched.
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
