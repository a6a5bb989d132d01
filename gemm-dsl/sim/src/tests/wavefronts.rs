//! Wavefronts and bank conflicts of shared accesses, compared with profiler counts on an H200 for
//! the patterns of `examples/bench/peers/shared_wavefronts.cu`.

use super::*;

/// A line of the measurement. `l16 4 0 : 0 1 2 …` is a 16-byte load with 4 wavefronts (metric
/// `…_op_ld`; for a store `…_op_st`) and no conflict. The address of each lane follows, in units of
/// its width, with `-` for an idle lane.
struct Measured {
    store: bool,
    bytes: i32,
    wavefronts: u64,
    conflicts: u64,
    addresses: Vec<Option<i32>>,
}

fn measured() -> Vec<Measured> {
    let line = |line: &str| {
        let (head, addresses) = line.split_once(" : ").expect("addresses");
        let [kind, wavefronts, conflicts] = head.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{head}")
        };
        let number = |text: &str| text.parse().expect("a number");
        Measured {
            store: kind.starts_with('s'),
            bytes: kind[1..].parse().expect("a width"),
            wavefronts: number(wavefronts),
            conflicts: number(conflicts),
            addresses: addresses.split(' ').map(|text| text.parse().ok()).collect(),
        }
    };
    include_str!("wavefronts.txt").lines().map(line).collect()
}

impl Measured {
    /// True if two lanes store to one place. The simulator then reports a race instead of counts.
    fn races(&self) -> bool {
        let mut addresses: Vec<_> = self.addresses.iter().flatten().collect();
        let all = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        self.store && addresses.len() < all
    }

    /// Counters of a kernel with the access, or only with the code that leads up to it.
    fn counters(&self, makes: bool) -> Counters {
        let words = self.bytes / 4;
        let len = (self.addresses.iter().flatten().max().expect("an active lane") + 1) * words;
        let len = (len + 31) / 32 * 32;
        let mut b = bench(32, 1, [1, 32]);
        let (x, output) = (b.shared(len), b.output);
        b.k.unrolled("i", len / 32, |k, i| k.store(at(x, i * 32 + tid()), 1.0));
        b.k.barrier();
        let index = self.addresses.iter().enumerate().fold(Expr::I32(-1), |rest, (lane, at)| {
            tid().equals(lane as i32).select(at.map_or(-1, |at| at * words), rest)
        });
        let index = b.k.let_("index", index);
        b.k.if_(Expr::from(index).ge(0), |k| {
            let place = if words == 4 { at(x, index).vector() } else { at(x, index) };
            match (makes, self.store) {
                (false, _) => {}
                (true, false) => drop(k.let_("value", place.load())),
                (true, true) if words == 4 => {
                    let zero = [0, 1, 2, 3].map(|_| Expr::F32(0.0));
                    k.store(place, Expr::Pack(zero.to_vec()));
                }
                (true, true) => k.store(place, 0.0),
            }
        });
        b.k.store(at(output, tid()), 0.0);
        b.counters()
    }
}

#[test]
fn shared_memory_charges_what_the_profiler_counted() {
    let measured = measured();
    let countable: Vec<_> = measured.iter().filter(|access| !access.races()).collect();
    assert_eq!((countable.len(), measured.len()), (212, 312));
    for access in countable {
        let (with, without) = (access.counters(true), access.counters(false));
        assert_eq!(
            (
                with.shared_wavefronts - without.shared_wavefronts,
                with.shared_bank_conflicts - without.shared_bank_conflicts,
            ),
            (access.wavefronts, access.conflicts),
            "{} of {} bytes at {:?}",
            if access.store { "store" } else { "load" },
            access.bytes,
            access.addresses,
        );
    }
}
