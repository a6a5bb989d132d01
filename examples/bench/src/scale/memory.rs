//! Memory demand of a measurement, checked before anything is allocated.

use crate::cli::Failure;
use gemm_runtime::Device;

/// Minimum number of bytes that a measurement needs at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Bytes on the device of each rank.
    pub device: u128,
    /// Additional bytes on the device of rank 0.
    pub of_first: u128,
    /// Bytes on the host, while a rank draws its elements.
    pub host: u128,
}

const ELEMENT: u128 = 4;

/// Returns the demand of a GEMM: shards of A, B and C, a second C, a full A, and buffers for the
/// gathered parts of A.
pub fn product(n: usize, ranks: usize, is_weak: bool) -> Need {
    let (n, p) = (n as u128, ranks.max(1) as u128);
    let cols = if is_weak { n } else { n.div_ceil(p) };
    let whole = n.saturating_mul(n);
    let by_columns = n.saturating_mul(cols);
    let shards = n.saturating_mul(n.div_ceil(p)).saturating_add(by_columns.saturating_mul(3));
    let room = if p > 1 { whole } else { 0 };
    let device = whole.saturating_add(shards).saturating_add(room).saturating_mul(ELEMENT);
    Need { device, of_first: 0, host: whole.saturating_mul(ELEMENT) }
}

/// Returns the demand of a sum: a shard for each rank, and the whole array on rank 0.
pub fn sum(len: usize, ranks: usize) -> Need {
    let (len, p) = (len as u128, ranks.max(1) as u128);
    let shard = len.div_ceil(p) * ELEMENT;
    Need { device: shard, of_first: len * ELEMENT, host: len * ELEMENT }
}

/// Checks the demand against the free memory.
///
/// # Errors
/// Returns [`Failure::Usage`], which names the option, its value, the demand and the free memory.
pub fn check(
    option: &str,
    value: usize,
    need: Need,
    ranks: usize,
    own: &[(usize, Device)],
) -> Result<(), Failure> {
    let wants = |rank: usize| need.device.saturating_add(if rank == 0 { need.of_first } else { 0 });
    let wanted = |what: String, bytes: u128, there: Option<u64>| match there {
        Some(there) if bytes > u128::from(there) => Err(Failure::Usage(format!(
            "{option} {value}: on {} this needs at least {} of {what}, of which {} are free. \
             Choose a smaller size, or more ranks",
            if ranks == 1 { "1 rank".to_owned() } else { format!("{ranks} ranks") },
            text(bytes),
            text(u128::from(there)),
        ))),
        _ => Ok(()),
    };
    let mut host = need.host;
    for (place, (rank, device)) in own.iter().enumerate() {
        let Some((context, _)) = device.cudarc() else {
            // Simulated devices use the host's memory.
            host = host.saturating_add(wants(*rank));
            continue;
        };
        // For the first rank on a GPU, the demand of all ranks that share the GPU is checked.
        let is_same = |other: &(usize, Device)| {
            other.1.cudarc().is_some_and(|(of, _)| of.ordinal() == context.ordinal())
        };
        if own[..place].iter().any(is_same) {
            continue;
        }
        let sharing = own.iter().filter(|other| is_same(other));
        let bytes = sharing.fold(0_u128, |all, (rank, _)| all.saturating_add(wants(*rank)));
        let free = context.mem_get_info().ok().map(|(free, _)| free as u64);
        wanted(format!("the memory of GPU {}", context.ordinal()), bytes, free)?;
    }
    wanted("the memory of this host".to_owned(), host, free_of_host())
}

/// Checks that the matrices of a prediction fit into the address space.
///
/// # Errors
/// Returns [`Failure::Usage`], which names the option and its value.
pub fn countable(n: usize, ranks: usize, is_weak: bool) -> Result<(), Failure> {
    let cols = if is_weak { n.checked_mul(ranks) } else { Some(n) };
    match cols.and_then(|cols| cols.checked_mul(n)).and_then(|len| len.checked_mul(4)) {
        Some(_) => Ok(()),
        None => Err(Failure::Usage(format!(
            "--size {n}: the matrices of such a GEMM on {ranks} ranks exceed the address space; \
             ask for less"
        ))),
    }
}

/// Returns the bytes that this process may still allocate, or `None` if the system does not report
/// them.
fn free_of_host() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let available = read("/proc/meminfo").and_then(|text| available(&text));
    // A container may have less memory than its host.
    let of_group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, taken)| most.saturating_sub(taken));
    available.into_iter().chain(of_group).min()
}

/// Parses the available bytes of `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Formats a number of bytes.
fn text(bytes: u128) -> String {
    let mut number = bytes as f64;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        if number < 999.95 {
            break;
        }
        (number, unit) = (number / 1000.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{number:.1} {unit}") }
}

/// Checks the demand of all sizes and sums.
///
/// # Errors
/// Returns the errors of [`check`].
pub fn check_all(
    sizes: &[usize],
    sums: &[usize],
    is_weak: bool,
    ranks: usize,
    own: &[(usize, Device)],
) -> Result<(), Failure> {
    for n in sizes {
        check("--size", *n, product(*n, ranks, is_weak), ranks, own)?;
    }
    for len in sums {
        check("--sum", *len, sum(*len, ranks), ranks, own)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::table::layouts;

    /// The demand equals the size of the shards of the rank with the largest shards.
    #[test]
    fn a_product_takes_its_shards_and_its_rooms() {
        for (n, ranks, is_weak) in [(1, 1, false), (10, 3, false), (10, 3, true), (7, 9, false)] {
            let of = layouts(n, ranks, is_weak);
            let most = |layout: &gemm_world::Distribution| {
                let shards = layout.shards(ranks).expect("a layout");
                shards.iter().map(|block| block.len() as u128).max().expect("ranks")
            };
            let whole = (n * n) as u128;
            let room = if ranks > 1 { whole } else { 0 };
            let elements = most(&of.a) + most(&of.b) + 2 * most(&of.c) + whole + room;
            assert_eq!(product(n, ranks, is_weak).device, 4 * elements, "{n} on {ranks}");
        }
    }

    #[test]
    fn excessive_memory_is_reported_before_allocation() {
        let own = [(0, Device::simulator()), (1, Device::simulator())];
        for n in [1 << 24, 1 << 40, usize::MAX] {
            let error = check_all(&[n], &[], true, 2, &own).expect_err("too much").to_string();
            let begin = format!("--size {n}: on 2 ranks this needs at least ");
            assert!(
                error.starts_with(&begin)
                    && error.contains("of the memory of this host, of which "),
                "{error}"
            );
            let error = check_all(&[], &[usize::MAX - 7], false, 2, &own).expect_err("too much");
            assert!(
                error.to_string().starts_with("--sum 18446744073709551608: on 2 ranks "),
                "{error}"
            );
        }
        assert!(check_all(&[64], &[1000], true, 2, &own).is_ok());
    }

    #[test]
    fn bytes_and_what_is_available_are_read_and_written() {
        assert_eq!(
            [999, 1_000, 12_345_678, 5_000_000_000_000_000_000].map(text).join(" "),
            "999 B 1.0 kB 12.3 MB 5.0 EB"
        );
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    7 kB\n"), Some(7168));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
