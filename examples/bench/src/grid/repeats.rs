//! Number of launches in a graph, and of replays of the graph. Long launches are repeated less
//! often, to limit the total time. Short launches are repeated often enough to hide the cost of a
//! replay.

/// Number of launches in a graph, and number of replays of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Back-to-back launches in a graph.
    pub launches: usize,
    /// Timed replays of the graph.
    pub replays: usize,
}

/// Launch time in microseconds at and above which a graph has fewer than [`LEAST`] launches.
pub const LONG: f64 = 2000.0;

/// Minimum number of launches in a graph, if a launch takes less than [`LONG`].
pub const LEAST: usize = 20;

const MOST: usize = 200;

/// Target time of a graph in microseconds, for short and for long launches.
const GRAPH: f64 = 1000.0;
const LONG_GRAPH: f64 = 8000.0;
const REPLAYS: f64 = 40_000.0;

/// Returns the pace of a benchmark for launches of `us` microseconds.
pub fn benchmark(us: f64) -> Pace {
    // The cast turns NaN into 0.
    let launches = match us < LONG {
        true => ((GRAPH / us).ceil() as usize).clamp(LEAST, MOST),
        false => ((LONG_GRAPH / us).ceil() as usize).clamp(2, LEAST),
    };
    let replays = (REPLAYS / (us * launches as f64)) as usize;
    Pace { launches, replays: replays.clamp(3, 11) | 1 }
}

/// Returns the pace for a search among many kernels, in which each kernel gets about a millisecond.
/// `us` is the time of the best kernel in microseconds.
pub fn search(us: f64) -> Pace {
    const GRAPH: f64 = 160.0;
    let launches = ((GRAPH / us).ceil() as usize).clamp(1, MOST);
    let replays = if us * launches as f64 > 2.0 * GRAPH { 2 } else { 5 };
    Pace { launches, replays }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_launches_are_many_and_long_ones_few() {
        let of = |us| {
            let Pace { launches, replays } = benchmark(us);
            (launches, replays)
        };
        assert_eq!([2.0, 50.0, 100.0].map(of), [(200, 11), (20, 11), (20, 11)]);
        assert_eq!([1999.0, 2000.0, 21_000.0].map(of), [(20, 3), (4, 5), (2, 3)]);
        for us in [0.0, f64::NAN, f64::INFINITY, 1e-9] {
            let (launches, replays) = of(us);
            assert!((2..=200).contains(&launches) && (3..=11).contains(&replays), "{us}");
        }
    }

    #[test]
    fn a_search_spends_about_a_millisecond_on_each() {
        for us in [2.0, 10.0, 100.0, 399.0, 700.0] {
            let Pace { launches, replays } = search(us);
            let all = us * (launches * replays) as f64;
            assert!((700.0..1500.0).contains(&all), "{us}: {all}");
        }
        assert_eq!(search(20_000.0), Pace { launches: 1, replays: 2 });
    }
}
