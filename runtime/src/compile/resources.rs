//! Parser of the resource report of `ptxas`.

use std::fmt;

/// Resources of a thread or a block of a kernel on one architecture.
///
/// ```
/// use gemm_runtime::compile::Resources;
///
/// let log = "ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem";
/// let resources = Resources::parse(log).expect("a report");
/// assert_eq!((resources.registers, resources.shared_bytes), (40, 2048));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resources {
    /// Registers of a thread, 4 bytes each.
    pub registers: u32,
    /// Bytes that a thread spills to local memory.
    pub spill_stores: u32,
    /// Bytes that a thread reloads from spills.
    pub spill_loads: u32,
    /// Bytes of a thread's stack frame, including spills.
    pub stack: u32,
    /// Bytes of statically declared shared memory of a block.
    pub shared_bytes: u32,
    /// Number of named barriers of a block.
    pub barriers: u32,
}

impl Resources {
    /// Parses the resources of the first kernel in a log of `ptxas -v`; `None` if there is no
    /// report.
    pub fn parse(log: &str) -> Option<Self> {
        let mut found = Self::default();
        for line in log.lines() {
            for part in line.split([',', ':']) {
                let part = part.trim();
                if let Some(n) = before(part, "bytes stack frame") {
                    found.stack = n;
                } else if let Some(n) = before(part, "bytes spill stores") {
                    found.spill_stores = n;
                } else if let Some(n) = before(part, "bytes spill loads") {
                    found.spill_loads = n;
                } else if let Some(n) = before(part, "bytes smem") {
                    found.shared_bytes = n;
                } else if let Some(n) = between(part, "used", "barriers") {
                    found.barriers = n;
                } else if let Some(n) = between(part, "Used", "registers") {
                    found.registers = n;
                }
            }
            if line.contains(" registers") {
                return Some(found);
            }
        }
        None
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} registers, {} + {} bytes spilled (stores + loads), {} bytes of stack, \
             {} bytes of shared memory, {} barriers",
            self.registers,
            self.spill_stores,
            self.spill_loads,
            self.stack,
            self.shared_bytes,
            self.barriers
        )
    }
}

fn before(part: &str, unit: &str) -> Option<u32> {
    part.strip_suffix(unit)?.trim().parse().ok()
}

fn between(part: &str, head: &str, unit: &str) -> Option<u32> {
    before(part.strip_prefix(head)?.trim_start(), unit)
}

#[cfg(test)]
mod tests {
    use super::Resources;

    #[test]
    fn reads_a_report() {
        let log = "\
ptxas info    : 3 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 24 bytes cumulative stack size, 1024 bytes \
smem, 352 bytes cmem[0]
ptxas info    : Compile time = 3.4 ms
";
        let expected = Resources {
            registers: 255,
            spill_stores: 20,
            spill_loads: 16,
            stack: 24,
            shared_bytes: 1024,
            barriers: 1,
        };
        assert_eq!(Resources::parse(log), Some(expected));
    }

    #[test]
    fn unmentioned_resources_are_zero() {
        let log = "ptxas info    : Used 8 registers, 352 bytes cmem[0]";
        let resources = Resources::parse(log).expect("a report");
        assert_eq!((resources.registers, resources.shared_bytes), (8, 0));
    }

    #[test]
    fn a_log_without_a_report_gives_nothing() {
        assert_eq!(Resources::parse(""), None);
        assert_eq!(Resources::parse("ptxas info    : 0 bytes gmem"), None);
    }
}
