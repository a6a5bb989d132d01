//! Programs of a device by spec. The least recently used are evicted.

use super::CachedProgram;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of programs that a device keeps unless the user sets another. Each takes 0.1 to 0.4 MB of
/// host memory.
pub(super) const MAX_KEPT: usize = 512;

/// Programs by family and name.
pub(super) struct KeptPrograms {
    programs: HashMap<&'static str, HashMap<String, Kept>>,
    max: usize,
    /// Number of uses so far, which orders the uses of all programs.
    clock: AtomicU64,
}

struct Kept {
    program: Arc<CachedProgram>,
    /// Value of the clock at the last use.
    used: AtomicU64,
}

impl Kept {
    /// Returns true if only the device has the program: no launch, report or other handle uses it,
    /// and neither a macro call nor a captured graph refers to it.
    fn is_evictable(&self) -> bool {
        // No thread can clone the pointer in the meantime, because the map is borrowed exclusively.
        Arc::strong_count(&self.program) == 1 && !self.program.is_permanent()
    }
}

impl Default for KeptPrograms {
    fn default() -> Self {
        Self { programs: HashMap::new(), max: MAX_KEPT, clock: AtomicU64::new(0) }
    }
}

impl KeptPrograms {
    pub(super) fn len(&self) -> usize {
        self.programs.values().map(HashMap::len).sum()
    }

    /// Returns true if there is a program of this name, without a record of the question.
    #[cfg(test)]
    pub(super) fn contains(&self, family: &str, name: &str) -> bool {
        self.programs.get(family).is_some_and(|programs| programs.contains_key(name))
    }

    /// Returns a program, and records its use.
    pub(super) fn get(&self, family: &str, name: &str) -> Option<Arc<CachedProgram>> {
        let kept = self.programs.get(family)?.get(name)?;
        kept.used.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&kept.program))
    }

    /// Keeps a program, unless there is one of this name. Returns the one that is kept, and the
    /// programs that it displaces.
    pub(super) fn insert(
        &mut self,
        family: &'static str,
        name: &str,
        program: Arc<CachedProgram>,
    ) -> (Arc<CachedProgram>, Vec<Arc<CachedProgram>>) {
        let used = self.tick();
        let programs = self.programs.entry(family).or_default();
        let kept = programs.entry(name.to_owned());
        let kept = kept.or_insert_with(|| Kept { program, used: AtomicU64::new(0) });
        kept.used.store(used, Ordering::Relaxed);
        let program = Arc::clone(&kept.program);
        (program, self.evict())
    }

    /// Sets the greatest number of programs, and returns those beyond it.
    pub(super) fn keep_at_most(&mut self, max: usize) -> Vec<Arc<CachedProgram>> {
        self.max = max;
        self.evict()
    }

    /// Records that no captured graph refers to the programs any more.
    pub(super) fn release(&self) {
        let all = self.programs.values().flat_map(HashMap::values);
        all.for_each(|kept| kept.program.release());
    }

    /// Removes a program, unless a macro call or a captured graph refers to it.
    pub(super) fn remove(&mut self, family: &str, name: &str) -> Option<Arc<CachedProgram>> {
        let programs = self.programs.get_mut(family)?;
        if programs.get(name)?.program.is_permanent() {
            return None;
        }
        programs.remove(name).map(|kept| kept.program)
    }

    /// Removes the least recently used programs beyond the greatest number. Programs in use stay,
    /// also if there are more of them.
    fn evict(&mut self) -> Vec<Arc<CachedProgram>> {
        let surplus = self.len().saturating_sub(self.max);
        if surplus == 0 {
            return Vec::new();
        }
        let mut idle = Vec::new();
        for (family, programs) in &self.programs {
            let programs = programs.iter().filter(|(_, kept)| kept.is_evictable());
            idle.extend(
                programs
                    .map(|(name, kept)| (kept.used.load(Ordering::Relaxed), *family, name.clone())),
            );
        }
        idle.sort_unstable();
        idle.truncate(surplus);
        idle.iter().filter_map(|(_, family, name)| self.remove(family, name)).collect()
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}
