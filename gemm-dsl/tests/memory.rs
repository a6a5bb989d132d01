//! The memory of a service or search that parses specs for ever does not grow. The test has a file
//! of its own, so no other test allocates memory at the same time.

#![cfg(target_os = "linux")]

use gemm_dsl::spec::SgemmSpec;

/// Resident memory of the process, in pages of the system.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

fn parse(times: u32) {
    for _ in 0..times {
        let sound = "tile: 128x128x8, thread: 8x8, double_buffer".parse::<SgemmSpec>();
        assert!(sound.is_ok());
        let faulty = "tile: 128x128, thred: 8x8".parse::<SgemmSpec>();
        assert!(faulty.is_err());
    }
}

#[test]
fn parses_leave_no_memory_behind() {
    parse(1_000);
    let before = resident();
    assert!(before > 0);
    parse(20_000);
    let grown = resident().saturating_sub(before);
    // 100 bytes per spec would be about 1,000 pages of 4 KiB.
    assert!(grown < 200, "{before} pages, then {grown} more");
}
