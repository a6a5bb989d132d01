//! Looks on while ranks work: streams of GPUs wait for what comes of others, and no call that waits for such a stream comes
//! back where a rank is lost. So a thread beside them waits for that, and has NCCL give up.

use super::run::End;
use std::thread::Scope;

/// The ranks of this process whose devices NCCL connects.
#[cfg(feature = "nccl")]
pub(super) struct Watched {
    of: Option<Watch>,
}

#[cfg(feature = "nccl")]
struct Watch {
    wire: std::sync::Arc<dyn super::wire::Wire>,
    all: std::sync::Arc<super::carrier::Communicators>,
    /// Whether the ranks have ended.
    ended: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

#[cfg(feature = "nccl")]
impl Watched {
    pub(super) fn of(ends: &[End]) -> Self {
        use super::carrier::Links;
        let of = ends.iter().find_map(|end| match &end.links {
            Links::Nccl(nccl) => Some(Watch {
                wire: std::sync::Arc::clone(&end.wire),
                all: nccl.all(),
                ended: std::sync::Arc::default(),
            }),
            _ => None,
        });
        Self { of }
    }

    /// Begins to look on.
    pub(super) fn watch<'s>(&self, scope: &'s Scope<'s, '_>) {
        use std::sync::atomic::Ordering;
        use std::time::Duration;
        /// How soon a loss is seen.
        const OFTEN: Duration = Duration::from_millis(20);
        let Some(Watch { wire, all, ended }) = &self.of else { return };
        let (wire, all, ended) = (wire.clone(), all.clone(), ended.clone());
        scope.spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if wire.broken().is_some() {
                    return all.abort();
                }
                std::thread::sleep(OFTEN);
            }
        });
    }

    /// The ranks have ended.
    pub(super) fn end(&self) {
        if let Some(watch) = &self.of {
            watch.ended.store(true, std::sync::atomic::Ordering::Release);
            // What is left was not parted from in agreement.
            watch.all.abort();
        }
    }
}

/// Where there is no NCCL nothing waits for ever.
#[cfg(not(feature = "nccl"))]
pub(super) struct Watched;

#[cfg(not(feature = "nccl"))]
impl Watched {
    pub(super) fn of(_: &[End]) -> Self {
        Self
    }

    pub(super) fn watch<'s>(&self, _: &'s Scope<'s, '_>) {}

    pub(super) fn end(&self) {}
}
