//! Parts of messages.

use gemm_dsl::error::counted;

/// Remedy for a machine without a GPU.
pub(super) const WITHOUT_GPU: &str = if cfg!(feature = "sim") {
    "use Device::simulator()"
} else {
    "enable the feature `sim` of gemm-runtime, and use Device::simulator()"
};

pub(super) fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" (further failures: {others})") }
}

/// Spec of a kernel in messages.
pub(super) fn spec(line: &str) -> String {
    if line.is_empty() { "the spec without keys".to_owned() } else { format!("the spec `{line}`") }
}

pub(super) fn out_of_range(start: usize, end: usize, len: usize, of: &str) -> String {
    let is_backwards = start > end;
    if is_backwards && end != len {
        return format!(
            "the range {start}..{end} of {of} ends before it starts: write the smaller number first"
        );
    }
    // A range without an end, such as `6..`, ends at `len`.
    let range = if is_backwards { format!("{start}..") } else { format!("{start}..{end}") };
    format!("the range {range} is not within 0..{len}, {of}: use a range within it")
}

pub(super) fn kernel_type(
    line: &str,
    operands: &[String],
    needed: &str,
    found: &str,
    by_name: &str,
) -> String {
    let takes = listed(operands);
    let kernel = match line {
        "" => "the kernel without keys".to_owned(),
        line => format!("a kernel of `{line}`"),
    };
    let or = match by_name {
        "" => String::new(),
        by_name => format!(", or `{by_name}`, which takes any operands"),
    };
    format!("{kernel} takes {takes}: its type is `{needed}`, not `{found}`. Use `{needed}`{or}")
}

/// Size in bytes. The greatest number stands for all sizes that a `u64` cannot count.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        u64::MAX => "2^64 bytes or more".to_owned(),
        bytes => counted(bytes, "byte"),
    }
}

/// List of operands in messages.
pub(super) fn listed(operands: &[String]) -> String {
    let operands: Vec<String> = operands.iter().map(|operand| format!("`{operand}`")).collect();
    if operands.is_empty() { "no operands".to_owned() } else { operands.join(", ") }
}

pub(super) fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|l| format!("  {l}")).collect();
    lines.join("\n")
}
