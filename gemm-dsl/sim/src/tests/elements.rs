//! Elements of every type, moved through every memory. Random programs of moves run on the
//! simulator and in plain Rust.
//!
//! A program is a list of steps with barriers between them. In each step, some threads of a block
//! move an element or 16 bytes from one array to another. The index is a literal, the same in all
//! threads, or different in each lane. All arrays start with random bits, so words that a step must
//! not write serve as guards. At the end, all arrays and the memory costs of each step must agree
//! with the model.

mod kernel;
mod limits;
mod plain;

use super::model::Random;
use super::*;
use gemm_dsl::ir::Space;
use plain::Plain;

/// Threads of the block: one warp and a partial one.
const THREADS: usize = 40;
/// Programs for each element type.
const PROGRAMS: u64 = 25;
const STEPS: usize = 24;

/// Arrays by space, with their length in vectors. No two shared arrays start at the same bank.
const ARRAYS: [(Space, usize); 7] = [
    (Space::Global, 47),
    (Space::Global, 45),
    (Space::Shared, 43),
    (Space::Shared, 48),
    (Space::Register, 3),
    (Space::Register, 2),
    (Space::Global, 43 + 48 + 5 * THREADS),
];
/// Array to which all others are written at the end.
const LAST: usize = 6;

/// Index of an element in an array.
#[derive(Clone, Debug)]
enum Index {
    Literal(usize),
    /// Uniform, known at launch.
    Launch(usize),
    /// Uniform, known only when the kernel runs.
    Uniform(usize),
    Lanes(Vec<usize>),
}

impl Index {
    fn of(&self, thread: usize) -> usize {
        match self {
            Index::Literal(at) | Index::Launch(at) | Index::Uniform(at) => *at,
            Index::Lanes(at) => at[thread],
        }
    }
}

/// Path of a value from load to store.
#[derive(Clone, Copy, Debug)]
enum Through {
    /// The load is stored directly.
    Nothing,
    Variable,
    /// A vector is unpacked and packed again, rotated by this many elements.
    Packed(usize),
    /// An asynchronous copy. For idle threads it writes zeros or nothing.
    Copy {
        zeros: bool,
    },
}

#[derive(Clone, Debug)]
struct Step {
    from: usize,
    to: usize,
    read: Index,
    written: Index,
    vector: bool,
    /// True if indices have 64 bits.
    wide: bool,
    through: Through,
    active: Active,
}

/// Threads for which `tid * factor % 41 < below`.
#[derive(Clone, Copy, Debug)]
struct Active {
    factor: usize,
    below: usize,
}

impl Active {
    const ALL: Self = Self { factor: 1, below: 41 };

    fn has(self, thread: usize) -> bool {
        thread * self.factor % 41 < self.below
    }
}

/// Random program that first fills its arrays and finally writes them out.
fn program(elem: Elem, random: &mut Random) -> Vec<Step> {
    let lanes = usize::from(elem.vector_lanes());
    let vectors = |from, to, read: Vec<usize>, written: Index, below| Step {
        from,
        to,
        read: Index::Lanes(read.iter().map(|at| at * lanes).collect()),
        written,
        vector: true,
        wide: false,
        through: Through::Variable,
        active: Active { factor: 1, below },
    };
    let places = |from: usize| Index::Lanes((0..THREADS).map(|t| (from + t) * lanes).collect());
    let mut steps = Vec::new();
    for (to, (space, len)) in
        ARRAYS.into_iter().enumerate().filter(|(_, (s, _))| *s != Space::Global)
    {
        let mut read = || (0..THREADS).map(|_| random.below(45)).collect();
        match space {
            Space::Register => (0..len).for_each(|at| {
                steps.push(vectors(0, to, read(), Index::Literal(at * lanes), 41));
            }),
            _ => (0..len).step_by(THREADS).for_each(|at| {
                steps.push(vectors(0, to, read(), places(at), len - at));
            }),
        }
    }
    steps.extend((0..STEPS).map(|_| step(elem, random)));
    let mut end = 0;
    for (from, (space, len)) in
        ARRAYS.into_iter().enumerate().filter(|(_, (s, _))| *s != Space::Global)
    {
        let rounds = if space == Space::Register { len } else { len.div_ceil(THREADS) };
        for round in 0..rounds {
            let at = |t: usize| if space == Space::Register { round } else { round * THREADS + t };
            let below = if space == Space::Register { 41 } else { len - round * THREADS };
            let read = (0..THREADS).map(|t| at(t).min(len - 1)).collect();
            steps.push(vectors(from, LAST, read, places(end), below));
            end += below.min(THREADS);
        }
    }
    steps
}

fn step(elem: Elem, random: &mut Random) -> Step {
    let lanes = usize::from(elem.vector_lanes());
    let (from, to) = loop {
        let (from, to) = (random.below(LAST), random.below(LAST));
        // The threads of a step are unordered, so that a step may not read and write one array.
        if from != to || ARRAYS[from].0 == Space::Register {
            break (from, to);
        }
    };
    let vector = random.percent(50);
    let unit = if vector { lanes } else { 1 };
    let units = |array: usize| ARRAYS[array].1 * lanes / unit;
    let written = match ARRAYS[to].0 {
        Space::Register => index(units(to), unit, random),
        _ => {
            let mut places: Vec<usize> = (0..units(to)).collect();
            let mut take = || unit * places.swap_remove(random.below(places.len()));
            Index::Lanes((0..THREADS).map(|_| take()).collect())
        }
    };
    let copies = ARRAYS[from].0 == Space::Global
        && ARRAYS[to].0 == Space::Shared
        && (vector || elem.size() >= 4);
    let through = match random.below(4) {
        0 => Through::Nothing,
        1 if vector => Through::Packed(random.below(lanes)),
        2 if copies => Through::Copy { zeros: random.percent(50) },
        _ => Through::Variable,
    };
    Step {
        from,
        to,
        read: index(units(from), unit, random),
        written,
        vector,
        wide: random.percent(30),
        through,
        active: match random.percent(40) {
            true => Active::ALL,
            false => Active { factor: 1 + random.below(9), below: 1 + random.below(40) },
        },
    }
}

/// Random index to read from, or to write to in registers.
fn index(units: usize, unit: usize, random: &mut Random) -> Index {
    let at = unit * random.below(units);
    match random.below(8) {
        0 => Index::Literal(at),
        1 => Index::Launch(at),
        2 => Index::Uniform(at),
        pattern => {
            let mut own = || unit * random.below(units);
            let own: Vec<usize> = (0..THREADS).map(|_| own()).collect();
            let kept = |t: usize| match pattern {
                // Neighbours, or lanes two apart, read the same index, so that phases merge.
                3 => own[t & !1],
                4 => own[t & !2],
                _ => own[t],
            };
            Index::Lanes((0..THREADS).map(kept).collect())
        }
    }
}

#[test]
fn elements_arrive_and_cost_what_the_model_says() {
    for elem in Elem::ALL {
        for seed in 0..PROGRAMS {
            let random = &mut Random::new(seed);
            let steps = program(elem, random);
            let mut plain = Plain::new(elem, random);
            let (found, counters) = kernel::run(&plain, &steps)
                .unwrap_or_else(|e| panic!("{elem}, seed {seed}: {e}\n{steps:#?}"));
            steps.iter().enumerate().for_each(|(number, step)| plain.step(number, step));
            for (array, (found, expected)) in found.iter().zip(plain.allocations()).enumerate() {
                let wrong = (0..expected.len()).find(|&i| found[i] != expected[i]);
                if let Some(i) = wrong {
                    let (found, expected) = (found[i], expected[i]);
                    panic!(
                        "{elem}, seed {seed}, element {i} of array {array}: {found:#x}, not \
                         {expected:#x}\n{steps:#?}"
                    );
                }
            }
            assert_eq!(plain.cost, plain::cost(&counters), "{elem}, seed {seed}");
        }
    }
}
