//! Random kernels that fold over rows. The folds are computed here in the order that the contract
//! on bits states.

use super::{Arithmetic, Array, Case, ELEMS, Layout, element, integer, integer_value};
use gemm_dsl::ir::Elem;
use gemm_dsl::plan::MapPlan;
use gemm_dsl::spec::{Along, MapSpec};
use gemm_oracle::fold::Number;
use gemm_oracle::random::Random;

/// Fold over a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Sum,
    Prod,
    Max,
    Min,
}

impl Op {
    const ALL: [Op; 4] = [Op::Sum, Op::Prod, Op::Max, Op::Min];

    fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Prod => "prod",
            Op::Max => "max",
            Op::Min => "min",
        }
    }

    fn identity(self) -> f64 {
        match self {
            Op::Sum => -0.0,
            Op::Prod => 1.0,
            Op::Max => f64::NEG_INFINITY,
            Op::Min => f64::INFINITY,
        }
    }

    fn combined(self, arithmetic: Arithmetic, a: f64, b: f64) -> f64 {
        match self {
            Op::Sum => arithmetic.rounded(a + b),
            Op::Prod => arithmetic.rounded(a * b),
            _ if a.is_nan() || b.is_nan() => f64::NAN,
            Op::Max => {
                if a.total_cmp(&b).is_lt() {
                    b
                } else {
                    a
                }
            }
            Op::Min => {
                if a.total_cmp(&b).is_gt() {
                    b
                } else {
                    a
                }
            }
        }
    }
}

/// Threads that fold a row together, and the elements of an item of a thread.
#[derive(Clone, Copy, Debug)]
struct Team {
    /// Blocks of a cluster, or 1.
    blocks: usize,
    /// Threads of a block that compute the row.
    threads: usize,
    vector: usize,
}

impl Team {
    /// The team of rows of a length.
    fn new(plan: &MapPlan, columns: usize) -> Self {
        let [block, items, vector] =
            [plan.block(), plan.items(), plan.vector()].map(|n| n as usize);
        let (needed, wide) = (columns.div_ceil(items * vector), (4 * block).min(1024));
        let (blocks, threads) = match needed {
            _ if needed <= wide => (1, needed.next_power_of_two().max(32)),
            _ if needed <= 2 * wide => (4, wide / 2),
            _ if needed <= 8 * wide => (8, wide / 2),
            _ => (1, wide),
        };
        Self { blocks, threads, vector }
    }

    /// Folds the values of a row.
    fn fold<T: Copy>(self, values: &[T], identity: T, op: impl Fn(T, T) -> T) -> T {
        let mut threads = vec![identity; self.blocks * self.threads];
        for (column, value) in values.iter().enumerate() {
            let thread = column / self.vector % threads.len();
            threads[thread] = op(threads[thread], *value);
        }
        let blocks = threads.chunks(self.threads).map(|block| {
            let warps = block.chunks(32).map(|warp| {
                let mut lanes = warp.to_vec();
                for step in [16, 8, 4, 2, 1] {
                    lanes = (0..32).map(|lane| op(lanes[lane], lanes[lane ^ step])).collect();
                }
                lanes[0]
            });
            warps.reduce(&op).expect("a team has a warp")
        });
        blocks.reduce(&op).expect("a team has a block")
    }
}

impl Case {
    /// Draws a kernel with two folds of floats, of which the second depends on the first, and one
    /// of integers.
    pub fn random_rows(random: &mut Random) -> Self {
        let drawn = Drawn::new(random);
        let spec = drawn.spec();
        drawn.case(spec)
    }
}

/// Operands, results and folds of a case.
struct Drawn {
    rows: usize,
    cols: usize,
    as_vectors: bool,
    operands: Vec<Array>,
    results: Vec<Array>,
    in_place: Option<usize>,
    ops: [Op; 2],
    arithmetic: Arithmetic,
    /// True if values depend on the row and the column.
    place: bool,
    keys: &'static str,
}

/// Number of the weights of folded values, different from those of results.
const FOLDED: usize = 5;

impl Drawn {
    fn new(random: &mut Random) -> Self {
        let mut below = |n: usize| (random.bits() % n as u64) as usize;
        let sizes = [0, 1, 2, 3, 4, 5, 16, 31, 32, 64, 127, 128, 129, 255, 256, 257, 384, 511, 512];
        let long = [513, 516, 1023, 1024, 1028, 2048, 2049, 2064, 4100];
        let rows = [0, 1, 1, 2, 3, 5, 9][below(7)];
        let mut cols = if below(4) == 0 { long[below(9)] } else { sizes[below(sizes.len())] };
        let as_vectors = below(8) == 0;
        let rows = if as_vectors { 1 } else { rows };
        let (is_plain, whole, by_column) = (below(2) == 0, below(3) > 0, below(6) == 0);
        let layout = |below: &mut dyn FnMut(usize) -> usize| Layout {
            start: if whole { 16 * below(3) } else { below(5) },
            padding: if is_plain { 0 } else { [0, 0, 16, 32, 3][below(5)] },
            by_column: if is_plain { by_column } else { below(4) == 0 },
        };
        // Most cases have few types, so that vectors are used.
        let own = ELEMS[below(ELEMS.len())];
        let is_mixed = below(3) == 0;
        let elem = |below: &mut dyn FnMut(usize) -> usize| match is_mixed {
            true => ELEMS[below(ELEMS.len())],
            false => own,
        };
        let mut operands = Vec::new();
        for n in 0..1 + below(3) {
            let along = match (n, below(5)) {
                (0, _) | (_, 0) => Along::Mn,
                (_, 1) => Along::Nothing,
                (_, 2 | 3) => Along::N,
                (_, _) => Along::M,
            };
            let elem = match (along, elem(&mut below)) {
                (Along::Nothing, Elem::F16 | Elem::Bf16) => Elem::F32,
                (Along::Nothing, Elem::I8 | Elem::U8) => Elem::I32,
                (_, elem) => elem,
            };
            let (name, layout) = (format!("x{n}"), layout(&mut below));
            operands.push(Array { name, along, elem, bits: Vec::new(), layout });
        }
        let count = [1, 1, 2, 3][below(4)];
        let mut results: Vec<Array> = (0..count)
            .map(|n| {
                let name = if count == 1 { "output".into() } else { format!("output_{n}") };
                let (elem, layout) = (elem(&mut below), layout(&mut below));
                let along = if below(3) == 0 { Along::M } else { Along::Mn };
                Array { name, along, elem, bits: Vec::new(), layout }
            })
            .collect();
        if results.iter().any(|result| result.along == Along::M && !result.elem.is_float()) {
            // The maximum of no integers depends on the ranges of the operands.
            cols = cols.max(1);
        }
        let is_in_place = below(3) == 0 && results[0].along == Along::Mn;
        let in_place = is_in_place.then_some(0);
        if is_in_place {
            (results[0].elem, results[0].layout) = (operands[0].elem, operands[0].layout);
        }
        let keys = ["", "", ", block: 32", ", block: 32, items: 1", ", block: 64, items: 1"];
        let keys = keys[below(keys.len())];
        let ops = [Op::ALL[below(4)], Op::ALL[below(4)]];
        let place = below(2) == 0;
        for operand in &mut operands {
            let len = match operand.along {
                Along::Nothing => 1,
                Along::N => cols,
                Along::M => rows,
                _ => rows * cols,
            };
            operand.bits = (0..len).map(|_| element(random, operand.elem)).collect();
        }
        let mut elems = operands.iter().chain(&results).map(|array| array.elem);
        let arithmetic = Arithmetic { is_f64: elems.any(|elem| elem == Elem::F64) };
        Self { rows, cols, as_vectors, operands, results, in_place, ops, arithmetic, place, keys }
    }

    /// Floating-point type of the expression.
    fn float(&self) -> Elem {
        self.arithmetic.elem()
    }

    fn spec(&self) -> MapSpec {
        let Self { operands, arithmetic, place, .. } = self;
        let params = operands.iter().map(|x| format!("{}{}: {}", x.name, x.along, x.elem));
        let types = self.results.iter().map(|result| match result.along {
            Along::M => format!("{}[m]", result.elem),
            _ => result.elem.to_string(),
        });
        let values = self.results.iter().enumerate().map(|(nth, result)| {
            match (result.elem.is_float(), result.along) {
                (true, Along::M) => self.stored("a + b", result.elem),
                (true, _) => {
                    let own = arithmetic.float(operands, nth, *place, self.float());
                    self.stored(&format!("{own} + a + b"), result.elem)
                }
                (false, Along::M) => "c + d".to_owned(),
                (false, _) => format!("{} + c + d", integer(operands, nth, *place)),
            }
        });
        let float = arithmetic.float(operands, FOLDED, *place, self.float());
        let folded = integer(operands, FOLDED, *place);
        let [first, second] = self.ops.map(Op::name);
        let reads = |is: bool| self.results.iter().any(|result| result.elem.is_float() == is);
        let mut lets = String::new();
        if reads(true) {
            lets += &format!("let t = {float}; let a = {first}(t); let b = {second}(t - a); ");
        }
        if reads(false) {
            lets += &format!("let k = {folded}; let c = max(k); let d = sum(clamp(k, -9, 9)); ");
        }
        let [params, types, values] =
            [params.collect::<Vec<_>>(), types.collect(), values.collect()]
                .map(|parts: Vec<String>| parts.join(", "));
        let line = format!("|{params}| -> ({types}) {{ {lets}({values}) }}");
        let line = match self.results.len() {
            1 => format!("|{params}| -> {types} {{ {lets}{values} }}"),
            _ => line,
        };
        let spec = format!("{line}{}", self.keys).parse();
        spec.unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Text of a float in the type in which a result is computed.
    fn stored(&self, text: &str, elem: Elem) -> String {
        match self.arithmetic.is_f64 && elem != Elem::F64 {
            true => format!("f32({text})"),
            false => text.to_owned(),
        }
    }

    fn case(mut self, spec: MapSpec) -> Case {
        let plan = spec.plan().expect("it has a plan");
        let team = Team::new(&plan, self.cols);
        let mut bits = vec![Vec::new(); self.results.len()];
        for row in 0..self.rows {
            self.compute_row(row, team, &mut bits);
        }
        for (result, bits) in self.results.iter_mut().zip(bits) {
            result.bits = bits;
        }
        let Self { rows, cols, as_vectors, operands, results, in_place, .. } = self;
        Case { spec, rows, cols, as_vectors, operands, results, in_place }
    }

    /// Computes the results of a row.
    fn compute_row(&self, row: usize, team: Team, bits: &mut [Vec<u64>]) {
        let arithmetic = self.arithmetic;
        let values: Vec<Vec<Number>> = (0..self.cols).map(|col| self.values(row, col)).collect();
        let float = |nth: usize, col: usize| {
            let first = if self.place { (3 * row + 1000 * col) as f64 } else { 0.25 };
            arithmetic.float_value(&values[col], nth, first)
        };
        let int = |nth: usize, col: usize| {
            let first = if self.place { (3 * row + 1000 * col) as i128 } else { 5 };
            integer_value(&values[col], nth, first)
        };
        let [first, second] = self.ops;
        let fold =
            |op: Op, of: &[f64]| team.fold(of, op.identity(), |a, b| op.combined(arithmetic, a, b));
        let t: Vec<f64> = (0..self.cols).map(|col| float(FOLDED, col)).collect();
        let a = fold(first, &t);
        let less: Vec<f64> = t.iter().map(|t| arithmetic.rounded(t - a)).collect();
        let b = fold(second, &less);
        let k: Vec<i128> = (0..self.cols).map(|col| int(FOLDED, col)).collect();
        let d: i128 = k.iter().map(|k| *k.clamp(&-9, &9)).sum();
        let c = k.iter().copied().max();
        for ((nth, result), bits) in self.results.iter().enumerate().zip(bits) {
            let sum = |own: f64| arithmetic.rounded(arithmetic.rounded(own + a) + b);
            match (result.along, result.elem.is_float()) {
                (Along::M, true) => {
                    bits.push(Number::Float(arithmetic.rounded(a + b)).bits(result.elem));
                }
                (Along::M, false) => {
                    let c = c.expect("there is a column");
                    bits.push(Number::Int(c + d).bits(result.elem));
                }
                (_, true) => bits.extend(
                    (0..self.cols).map(|col| Number::Float(sum(float(nth, col))).bits(result.elem)),
                ),
                (_, false) => bits.extend((0..self.cols).map(|col| {
                    let c = c.expect("there is a column");
                    Number::Int(int(nth, col) + c + d).bits(result.elem)
                })),
            }
        }
    }

    /// Elements of the operands at a row and a column.
    fn values(&self, row: usize, col: usize) -> Vec<Number> {
        let of = |array: &Array| {
            let index = match array.along {
                Along::Nothing => 0,
                Along::N => col,
                Along::M => row,
                _ => row * self.cols + col,
            };
            Number::of_bits(array.elem, array.bits[index])
        };
        self.operands.iter().map(of).collect()
    }
}
