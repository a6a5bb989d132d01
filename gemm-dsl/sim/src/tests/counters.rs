//! Counters on kernels whose counts were computed by hand.

use super::*;
use gemm_dsl::ir::{For, Intrinsic, Stmt, Ty, Var};

/// Counters of a single shared-memory read `x[index]`, without the writes that initialise `x`.
fn shared_read(len: i32, index: Expr, vector: bool, active: i32) -> Counters {
    let kernel = |reads: bool| {
        let mut b = bench(32, 1, [1, 128]);
        let x = b.shared(len);
        b.k.unrolled("i", len / 32, |b, i| b.store(at(x, i * 32 + tid()), 1.0));
        b.k.barrier();
        let (output, index) = (b.output, index.clone());
        b.k.if_(tid().lt(active), |b| {
            let place = if vector { at(x, index).vector() } else { at(x, index) };
            if reads {
                let value = b.let_("value", place.load());
                if !vector {
                    b.store(at(output, tid()), value);
                }
            }
        });
        b.counters()
    };
    let (with, without) = (kernel(true), kernel(false));
    Counters {
        shared_requests: with.shared_requests - without.shared_requests,
        shared_wavefronts: with.shared_wavefronts - without.shared_wavefronts,
        shared_bank_conflicts: with.shared_bank_conflicts - without.shared_bank_conflicts,
        shared_load_bytes: with.shared_load_bytes - without.shared_load_bytes,
        ..Counters::default()
    }
}

fn wavefronts(c: &Counters) -> (u64, u64) {
    (c.shared_wavefronts, c.shared_bank_conflicts)
}

#[test]
fn strided_reads_conflict_as_the_stride_has_twos() {
    for stride in 1..=32i32 {
        let c = shared_read(1024, tid() * stride, false, 32);
        let degree = 1 << stride.trailing_zeros();
        assert_eq!(wavefronts(&c), (degree, degree - 1), "stride {stride}");
        assert_eq!((c.shared_requests, c.shared_load_bytes), (1, 128));
    }
}

#[test]
fn lanes_that_read_one_word_share_it() {
    assert_eq!(wavefronts(&shared_read(64, 5.into(), false, 32)), (1, 0));
    assert_eq!(wavefronts(&shared_read(64, tid() / 2, false, 32)), (1, 0));
    // Two words of one bank, each read by half of the lanes.
    assert_eq!(wavefronts(&shared_read(64, tid() % 2 * 32, false, 32)), (2, 1));
    // Only active lanes count.
    let c = shared_read(1024, tid() * 32, false, 3);
    assert_eq!((wavefronts(&c), c.shared_load_bytes), ((3, 2), 12));
}

#[test]
fn sixteen_byte_reads_take_four_phases() {
    let read = |index, active| wavefronts(&shared_read(1024, index, true, active));
    assert_eq!(read(tid() * 4, 32), (4, 0));
    // Two phases merge if neighbouring lanes read the same words.
    assert_eq!(read(0.into(), 32), (2, 0));
    assert_eq!(read(tid() / 2 * 4, 32), (2, 0));
    assert_eq!(read(tid() % 4 * 4, 32), (4, 0));
    // The eight lanes of a phase use two bank groups, four words each.
    assert_eq!(read(tid() * 16, 32), (16, 12));
    assert_eq!(read(tid() * 8, 32), (8, 4));
    assert_eq!(read(tid() * 32, 32), (32, 28));
    // Phases without an active lane do not exist.
    assert_eq!(read(tid() * 4, 8), (1, 0));
    assert_eq!(read(tid() * 8, 10), (3, 1));
}

#[test]
fn shared_stores_and_bytes() {
    let mut b = bench(48, 1, [1, 1]);
    let x = b.shared(96);
    b.k.store(at(x, tid() * 2), 1.0);
    let c = b.counters();
    // A full warp has two-way conflicts; sixteen lanes at stride two have none.
    assert_eq!((c.shared_requests, c.shared_wavefronts, c.shared_bank_conflicts), (2, 3, 1));
    assert_eq!((c.shared_stores, c.shared_store_bytes, c.shared_load_bytes), (2, 192, 0));
    assert_eq!(c.shared_bytes(), 192);
}

/// Sectors and loaded bytes of one warp that loads `in[index]`.
fn sectors(index: Expr, vector: bool, offset: usize) -> (u64, u64) {
    let mut b = bench(32, 1, [1024, 1]);
    let place = at(b.input, index);
    let place = if vector { place.vector() } else { place };
    b.k.let_("value", place.load());
    let input = Buffer::zeros(2048).view(offset, 1024).expect("inside");
    let buffers = [input, Buffer::zeros(1)];
    let c = launch(&b.finish(), &buffers, &[]).expect("the kernel is right");
    assert_eq!(c.global_requests, 1);
    assert_eq!(c.global_bytes(), c.global_load_bytes);
    (c.global_sectors, c.global_load_bytes)
}

#[test]
fn sectors_of_global_requests() {
    assert_eq!(sectors(tid(), false, 0), (4, 128));
    assert_eq!(sectors(tid(), false, 1), (5, 128));
    assert_eq!(sectors(tid(), false, 4), (5, 128));
    assert_eq!(sectors(tid(), false, 8), (4, 128));
    assert_eq!(sectors(Expr::from(31) - tid(), false, 0), (4, 128));
    assert_eq!(sectors(3.into(), false, 0), (1, 128));
    assert_eq!(sectors(tid() * 2, false, 0), (8, 128));
    assert_eq!(sectors(tid() * 8, false, 0), (32, 128));
    assert_eq!(sectors(tid() * 32, false, 0), (32, 128));
    assert_eq!(sectors(tid() % 2 * 512, false, 0), (2, 128));
    assert_eq!(sectors(tid() * 4, true, 0), (16, 512));
    assert_eq!(sectors(tid() * 4, true, 4), (17, 512));
}

#[test]
fn global_stores_and_partial_warps() {
    let mut b = bench(40, 3, [1, 120]);
    b.write(Expr::from(Special::BlockX) * 40 + tid(), 1.0);
    let c = b.counters();
    assert_eq!((c.blocks, c.global_requests, c.global_stores), (3, 6, 6));
    assert_eq!((c.global_store_bytes, c.global_load_bytes), (480, 0));
    // 40 words are five sectors: four for the first warp and one for the second.
    assert_eq!(c.global_sectors, 15);
}

#[test]
fn divergent_branches() {
    let count = |threads: u32, body: &dyn Fn(&mut KernelBuilder)| {
        let mut b = bench(threads, 1, [1, 1]);
        body(&mut b.k);
        b.counters().divergent_branches
    };
    let nothing = |_: &mut KernelBuilder| ();
    assert_eq!(count(64, &|b| b.if_(tid().lt(16), nothing)), 1);
    assert_eq!(count(64, &|b| b.if_(tid().lt(32), nothing)), 0);
    assert_eq!(count(64, &|b| b.if_((tid() % 2).equals(0), nothing)), 2);
    // All existing lanes of a partial warp agree.
    assert_eq!(count(40, &|b| b.if_(tid().lt(40), nothing)), 0);
    assert_eq!(count(40, &|b| b.if_(tid().lt(39), nothing)), 1);
    // Inside an `if`, only its active lanes count.
    assert_eq!(count(32, &|b| b.if_(tid().lt(8), |b| b.if_(tid().lt(9), nothing))), 1);
    // Trip counts 0, 1, 2, 3 by lane: the first three tests diverge, the last has one outcome.
    let trips = |b: &mut KernelBuilder| {
        b.loop_("i", For::below(0, tid() % 4), |_, _| ());
    };
    assert_eq!(count(32, &trips), 3);
    // Selects and short-circuit operators do not branch.
    let select = |b: &mut KernelBuilder| {
        b.let_("s", tid().lt(5).and(tid().gt(2)).select(1.0, 2.0));
    };
    assert_eq!(count(32, &select), 0);
}

#[test]
fn barriers_are_counted_for_a_block() {
    let mut b = bench(96, 5, [1, 1]);
    b.k.barrier();
    b.k.unrolled("i", 3, |b, _| b.barrier());
    b.k.if_(tid().lt(64), |b| b.warp_barrier());
    // Barriers are counted in the block that executes the most.
    b.k.if_(Expr::from(Special::BlockX).equals(3), |b| b.barrier());
    let c = b.counters();
    assert_eq!((c.block_barriers, c.warp_barriers), (5, 2));
    // 3 warps in 5 blocks: 4 barriers each, 2 of 3 warps one more, and 3 in one block.
    assert_eq!(c.sync, 3 * 5 * 4 + 2 * 5 + 3);
}

#[test]
fn instructions_by_class() {
    let mut b = bench(64, 1, [64, 64]);
    let n = b.k.constant("n", 4, "");
    let (input, output) = (b.input, b.output);
    // One multiply-add and one load; the product of constants is folded.
    let v = b.k.let_("v", load(input, (tid() * 3 + (Expr::from(n) * 2)) / 4));
    let acc = b.k.mut_("acc", 0.0);
    // Completely unrolled: no control flow, 4 multiply-adds, and the comparison is folded.
    b.k.unrolled("i", n, |b, i| {
        let last = b.let_("last", i + 1);
        b.if_(Expr::from(last).lt(4), |b| {
            let operands = vec![v.into(), v.into(), acc.into()];
            b.assign(acc, Expr::Call(Intrinsic::Fma, operands));
        });
    });
    // Not unrolled: 3 tests and 2 steps. A test is a comparison and a branch.
    b.k.loop_("j", For::below(0, 2), |b, _| b.assign(acc, Expr::from(acc) + v));
    // A comparison and a branch, and a store in the lanes of one warp.
    b.k.if_(tid().lt(32), |b| b.store(at(output, tid()), acc));
    let c = b.counters();
    assert_eq!((c.global_loads, c.global_stores, c.fma), (2, 1, 6));
    assert_eq!((c.float, c.branch), (2 * 2, 2 * (3 + 1)));
    assert_eq!(c.integer, 2 * (3 + 3 + 2 + 1));
    assert_eq!(c.instructions, 2 + 1 + 6 + 4 + 8 + 18);
    assert_eq!(c.thread_instructions, 32 * c.instructions);
    assert_eq!(c.fmas, 3 * 64);
}

#[test]
fn instructions_count_whatever_lanes_are_active() {
    let mut b = bench(32, 1, [32, 32]);
    let (input, output) = (b.input, b.output);
    b.k.if_(tid().lt(4), |b| b.store(at(output, tid()), load(input, tid())));
    let c = b.counters();
    assert_eq!((c.instructions, c.thread_instructions), (4, 2 * 32 + 2 * 4));
    // A branch of a select counts if some lane evaluates it.
    let mut b = bench(64, 1, [64, 64]);
    let value = tid().lt(32).select(b.read(tid()) + 1.0, 0.0);
    b.write(tid(), value);
    let c = b.counters();
    assert_eq!((c.select, c.global_loads, c.float, c.integer), (2, 1, 1, 2));
}

#[test]
fn shuffles_and_copies() {
    let mut b = bench(32, 1, [128, 32]);
    let x = b.shared(128);
    let source = at(b.input, tid() * 4).vector();
    b.k.push(Stmt::CopyAsync { target: at(x, tid() * 4).vector(), source, guard: None });
    b.k.push(Stmt::CopyCommit);
    b.k.push(Stmt::CopyWait { pending: 0.into() });
    let shuffled = vec![load(x, tid() * 4), 1.into()];
    b.write(tid(), Expr::Call(Intrinsic::ShuffleDown, shuffled));
    let c = b.counters();
    assert_eq!((c.copies, c.shuffle, c.sync, c.shared_stores), (1, 1, 2, 0));
    assert_eq!((c.global_requests, c.global_sectors), (2, 16 + 4));
    assert_eq!((c.global_load_bytes, c.shared_store_bytes, c.shared_load_bytes), (512, 512, 128));
    // The write of the copy takes four phases; the read has stride four.
    assert_eq!((c.shared_wavefronts, c.shared_bank_conflicts), (4 + 4, 3));
    // A shuffle does not count as a barrier.
    assert_eq!((c.block_barriers, c.warp_barriers), (0, 0));
}

/// A profile charges each statement with its own counts, in text order. Their sum is the total of
/// the launch.
#[test]
fn each_statement_has_what_it_is_charged_with() {
    let mut b = bench(64, 2, [1, 64]);
    let (x, output) = (b.shared(128), b.output);
    // The simulator first checks if the value is static. Statements built for this check are not
    // part of the kernel.
    let block = || Expr::from(Special::BlockX);
    let some = block().ge(0).and(block().lt(1)).select(block() + 1, 3);
    b.k.let_("uniform", some);
    b.k.comment("Two to a bank.");
    b.k.store(at(x, tid() * 2), 1.0);
    b.k.barrier();
    b.k.if_(tid().lt(16), |b| {
        let value = b.let_("value", at(x, tid() * 2).load());
        let head = For::below(0, tid() % 2 + 1).unroll(gemm_dsl::ir::Unroll::By(1));
        b.loop_("i", head, |b, _| {
            let owns = Expr::from(Special::BlockX).equals(0);
            b.if_(owns, |b| b.store(at(output, tid()), value));
        });
    });
    let kernel = b.k.finish().expect("sound");
    let kinds: Vec<char> = kernel
        .statements()
        .into_iter()
        .map(|stmt| match stmt {
            Stmt::Comment(_) => '/',
            Stmt::Store { .. } => 's',
            Stmt::Barrier(_) => 'b',
            Stmt::If { .. } => '?',
            Stmt::Let { .. } => 'l',
            Stmt::For(_) => 'f',
            _ => '-',
        })
        .collect();
    assert_eq!(kinds, ['l', '/', 's', 'b', '?', 'l', 'f', '?', 's']);
    let buffers = [Buffer::zeros(1), Buffer::zeros(64)];
    let profile = crate::profile(&kernel, &buffers, &[], &Options::default());
    let profile = profile.expect("the kernel is right");
    // Two comparisons, a logical operator and a select; one warp in two also adds.
    let uniform = profile.statements[0];
    assert_eq!((uniform.integer + uniform.select, uniform.instructions), (4 * 4 + 2, 4 * 4 + 2));
    let of = |number: usize| profile.statements[number + 1];
    assert_eq!(of(0), Counters::default());
    let store = of(1);
    assert_eq!((store.shared_stores, store.integer, store.instructions), (4, 4, 8));
    assert_eq!((store.shared_wavefronts, store.shared_bank_conflicts), (8, 4));
    assert_eq!((of(2).sync, of(2).instructions), (4, 4));
    // The first warp of each block diverges; the second does not.
    assert_eq!((of(3).branch, of(3).divergent_branches), (4, 2));
    let load = of(4);
    assert_eq!((load.shared_loads, load.thread_instructions), (2, 2 * 2 * 16));
    assert_eq!((load.shared_wavefronts, load.shared_bank_conflicts), (2, 0));
    // Odd lanes loop twice: each warp has three tests, and the second diverges.
    assert_eq!((of(5).branch, of(5).divergent_branches), (6, 2));
    assert_eq!((of(6).branch, of(6).divergent_branches), (4, 0));
    let store = of(7);
    assert_eq!((store.global_stores, store.global_requests, store.global_sectors), (2, 2, 4));
    let mut sum = Counters { blocks: 2, block_barriers: 1, ..Counters::default() };
    profile.statements.iter().for_each(|of| sum += *of);
    assert_eq!(sum, profile.total);
    assert_eq!(launch(&kernel, &buffers, &[]).expect("right"), profile.total);
}

/// Nested functions. Two statements call the outer function, and one of them calls it twice in half
/// of the warps.
#[test]
fn function_costs_are_charged_to_their_callers() {
    let mut b = bench(64, 1, [1, 64]);
    let param = [("x", Ty::Scalar(Elem::F32))];
    let twice = b.k.function("twice", &[], &param, |_, x| Expr::from(x[0]) + x[0]);
    let outer = |_: &mut _, x: &[Var]| twice.apply([x[0].into()]) * 3.0;
    let six_times = b.k.function("six_times", &[], &param, outer);
    let output = b.output;
    b.k.store(at(output, tid()), six_times.apply([1.0.into()]));
    b.k.if_(tid().lt(32), |b| {
        let value = six_times.apply([six_times.apply([2.0.into()])]);
        b.store(at(output, tid()), value);
    });
    let kernel = b.k.finish().expect("sound");
    let buffers = [Buffer::zeros(1), Buffer::zeros(64)];
    let profile = crate::profile(&kernel, &buffers, &[], &Options::default());
    let profile = profile.expect("the kernel is right");
    let floats: Vec<u64> = profile.statements.iter().map(|of| of.float).collect();
    assert_eq!(floats, [2 * 2, 0, 2 * 2]);
    assert_eq!(profile.total.float, 8);
    let lanes: Vec<u64> = profile.statements.iter().map(|of| of.thread_instructions).collect();
    assert_eq!([lanes[0], lanes[2]], [2 * 32 * 3, 32 * 5]);
}
