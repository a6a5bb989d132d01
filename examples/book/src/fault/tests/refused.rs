//! Refused accesses that are planted into generated kernels. Each is drawn with its line, lane and
//! element.

use super::{Observation, kernel, looked, of};
use crate::fault::{FaultReport, ReplayedLaunch, drawn};
use crate::page;
use gemm_dsl::cuda;
use gemm_dsl::ir::{Access, BufferLayout, Expr, Kernel, Space, Special, Stmt, VerifiedKernel};

/// Thread with the planted fault, in the first block.
const ASTRAY: (i32, i32) = (37, 0);
/// Distance to an element out of bounds.
const FAR: i32 = 5_000;

/// Accesses of a statement.
fn accesses(stmt: &mut Stmt) -> Vec<&mut Access> {
    let mut all = Vec::new();
    match stmt {
        Stmt::Let { value, .. } | Stmt::Mut { value, .. } | Stmt::Assign { value, .. } => {
            loads(value, &mut all);
        }
        Stmt::Store { target, value } => {
            loads(value, &mut all);
            all.push(target);
        }
        Stmt::CopyAsync { target, source, .. } => all.extend([source, target]),
        Stmt::Atomic(atomic) => all.push(&mut atomic.target),
        Stmt::LoadMatrix(load) => all.push(&mut load.from),
        _ => {}
    }
    all
}

fn loads<'e>(expr: &'e mut Expr, into: &mut Vec<&'e mut Access>) {
    match expr {
        Expr::Load(access) => into.push(access),
        Expr::Unary(_, e) | Expr::Cast(_, e) | Expr::Bitcast(_, e) | Expr::Lane(e, _) => {
            loads(e, into);
        }
        Expr::Binary(_, a, b) => [a, b].into_iter().for_each(|e| loads(e, into)),
        Expr::Select(_, a, b) => [a, b].into_iter().for_each(|e| loads(e, into)),
        Expr::Call(_, all) | Expr::Apply(_, all) | Expr::Pack(all) => {
            all.iter_mut().for_each(|e| loads(e, into));
        }
        _ => {}
    }
}

/// Kernel with one planted fault, and its position.
struct Planted {
    kernel: VerifiedKernel,
    stmt: usize,
    buffer: usize,
    /// True if the access goes through a pointer.
    is_pointed: bool,
}

/// Returns one kernel for each picked access. In one thread, the access is shifted by `by` elements
/// along the last dimension.
fn planted(kernel: &VerifiedKernel, by: i32, picked: impl Fn(&Access) -> bool) -> Vec<Planted> {
    let is = |special: Special, value: i32| Expr::from(special).equals(value);
    let astray = || {
        let first = is(Special::BlockX, 0).and(is(Special::BlockY, 0));
        let thread = is(Special::ThreadX, ASTRAY.0).and(is(Special::ThreadY, ASTRAY.1));
        first.and(thread)
    };
    let mut all = Vec::new();
    for stmt in 0..kernel.statements().len() {
        for nth in 0.. {
            let mut changed: Kernel = kernel.clone().into_inner();
            let (mut number, mut buffer) = (0, None);
            changed.visit_mut(&mut |of, _| {
                if number == stmt
                    && let Some(access) = accesses(of).into_iter().filter(|of| picked(of)).nth(nth)
                    && let Some(last) = access.index.last_mut()
                {
                    let further = last.clone() + by;
                    *last = astray().select(further, last.clone());
                    buffer = Some(access.buffer.id);
                }
                number += 1;
            });
            let Some(buffer) = buffer else { break };
            let is_pointed = matches!(changed.buffers[buffer].layout, BufferLayout::Pointer { .. });
            // An expression that must be uniform across threads cannot be changed in one thread.
            if let Ok(kernel) = VerifiedKernel::new(changed) {
                all.push(Planted { kernel, stmt, buffer, is_pointed });
            }
        }
    }
    all
}

fn drawn_of(looked: &Observation, planted: &Planted) -> Option<FaultReport> {
    let launch =
        ReplayedLaunch { kernel: &planted.kernel, grid: looked.grid, arguments: &looked.arguments };
    drawn("sgemm_kernel", String::new(), launch, None, 1 << 26).expect("a launch")
}

/// Highlighted lanes of the pictures on a page.
fn lit(page: &str) -> Vec<String> {
    let cells = page
        .split("<td")
        .filter(|cell| cell.split('>').next().is_some_and(|tag| tag.contains(" on\"")));
    cells.filter_map(|cell| Some(cell.split_once('>')?.1.split('<').next()?.to_owned())).collect()
}

/// Every kind of refused access is reported with its line, lane and element.
#[test]
fn each_access_that_goes_astray_is_drawn() {
    let lines = [
        "tile: 32x32x32",
        "tile: 64x64x16, thread: 4x4, transpose, float4, double_buffer",
        "tile: 32x32x8, thread: 4x4, transpose, pad_a: 4, stages: 3, float4",
        "tile: 64x64x32, arith: bf16, warp: 32x32, ldmatrix",
        "tile: 16x16x16, split_k: 2",
    ];
    let (mut pointed, mut vectors, mut registers, mut in_turns) = (0, 0, 0, 0);
    let mut kinds = std::collections::BTreeSet::new();
    for line in lines {
        let looked = looked(line);
        for planted in planted(&looked.kernel, FAR, |_| true) {
            // Some statements are not executed by this thread.
            let Some(broken) = drawn_of(&looked, &planted) else { continue };
            let listing = cuda::listing(&planted.kernel);
            let name = format!("{line}: statement {}: {}", planted.stmt, broken.fault.what);
            assert_eq!(broken.at, listing.lines[planted.stmt].start + 1, "{name}");
            let (x, y) = (ASTRAY.0 as u32, ASTRAY.1 as u32);
            assert_eq!((broken.fault.block, broken.fault.thread), ([0; 3], [x, y]), "{name}");
            let thread = x + planted.kernel.geometry.block.0 * y;
            let reached = broken.reached.as_ref().expect(&name);
            let declared = &planted.kernel.buffers[planted.buffer];
            assert_eq!(broken.unknown, None);
            let astray: Vec<_> = reached.lanes.iter().filter(|lane| lane.is_refused).collect();
            let [own] = astray[..] else { panic!("{name}: {reached:?}") };
            assert_eq!((reached.warp, own.lane, own.thread), (thread / 32, thread % 32, [x, y]));
            // The message names the same element as the table, and it is out of bounds.
            assert!(broken.fault.what.starts_with(&own.element), "{name}: {own:?}");
            match planted.is_pointed {
                true => pointed += 1,
                false => assert_eq!(reached.buffer, declared.name, "{name}"),
            }
            let extents: Vec<String> = reached.extents.iter().map(u64::to_string).collect();
            assert!(broken.fault.what.contains(&extents.join(", ")), "{name}: {extents:?}");
            // A fault in an order that was not recorded has no history.
            let past: Vec<_> = broken.past.iter().map(|of| (of.line, of.warp, of.lane)).collect();
            match &broken.turns {
                None => assert_eq!(past, [(broken.at, thread / 32, thread % 32)], "{name}"),
                Some(_) => assert_eq!(past, [], "{name}"),
            }
            assert!(broken.past.iter().all(|past| past.is_fault), "{name}");
            in_turns += u32::from(broken.turns.is_some());
            if declared.space == Space::Register {
                assert!(broken.accesses.is_empty(), "{name}: registers are in no bank");
                registers += 1;
                continue;
            }
            let [picture] = &broken.accesses[..] else { panic!("{name}: {:?}", broken.accesses) };
            assert_eq!(
                (picture.is_fault, &picture.lanes[..]),
                (true, &[thread % 32][..]),
                "{name}"
            );
            assert_eq!(picture.access.lanes as usize, reached.lanes.len(), "{name}");
            kinds.insert((picture.access.kind, picture.access.space));
            vectors += u32::from(reached.width > 1);

            let page = page::broken(&broken, "a test").expect("a page");
            assert!(page.contains(&format!("<code>{}</code>", own.element)), "{name}");
            assert!(
                page.contains(&format!("Lane {} of warp {}", own.lane, reached.warp)),
                "{name}"
            );
            assert!(page.contains(&format!("<tr id=\"L{}\" class=\"h4\">", broken.at)), "{name}");
            let lit = lit(&page);
            assert!(
                !lit.is_empty() && lit.iter().all(|of| *of == own.lane.to_string()),
                "{name}: {lit:?}"
            );
        }
    }
    let expected = [
        ("load", "global"),
        ("load", "shared"),
        ("read by a copy", "global"),
        ("store", "global"),
        ("store", "shared"),
        ("written by a copy", "shared"),
    ];
    assert!(kinds.iter().eq(&expected), "{kinds:?}");
    let seen = [pointed, vectors, registers, in_turns];
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// A vector access that is shifted by one element is not aligned to 16 bytes.
#[test]
fn a_vector_that_does_not_begin_on_16_bytes_is_drawn() {
    let looked = looked("tile: 64x64x16, thread: 4x4, transpose, float4, double_buffer");
    let mut spaces = std::collections::BTreeSet::new();
    for planted in planted(&looked.kernel, 1, |access| access.lanes > 1) {
        let Some(broken) = drawn_of(&looked, &planted) else { continue };
        if !broken.fault.what.ends_with("is not aligned") {
            continue;
        }
        let reached = broken.reached.as_ref().expect("an access");
        assert_eq!((reached.width, reached.of_refused().count()), (4, 1), "{reached:?}");
        assert!(broken.past.iter().any(|past| past.is_fault), "{:?}", broken.past);
        let [picture] = &broken.accesses[..] else { panic!("{:?}", broken.accesses) };
        assert_eq!(picture.lanes, reached.of_refused().collect::<Vec<_>>());
        spaces.insert(picture.access.space);
    }
    assert!(spaces.iter().eq(&["global", "shared"]), "{spaces:?}");
}

/// Among statements with the same text, the faulty one is reported.
#[test]
fn statements_that_read_alike_are_told_apart() {
    let looked = looked("tile: 32x32x32");
    for guilty in 0..3 {
        let (kernel, grid) = kernel(&looked, |mut target| {
            target.index[0] = Expr::I32(FAR);
            let store = Stmt::Store { target, value: Expr::F32(0.0) };
            let block = || Expr::from(Special::BlockX);
            let comes = |nth| if nth == guilty { block().equals(0) } else { block().lt(0) };
            (0..3).map(|nth| of(comes(nth), store.clone())).collect()
        });
        // Each planted statement is inside its own condition.
        let (statements, lines) = (kernel.statements(), cuda::listing(&kernel).lines);
        let texts = statements.iter().map(|stmt| cuda::statement(&kernel, stmt));
        assert_eq!(texts.filter(|text| text.starts_with("As[5000][0] =")).count(), 3);
        let broken = super::drawn_of(&looked, &kernel, grid);
        assert_eq!(broken.at, lines[2 * guilty + 1].start + 1);
        assert_eq!(broken.past.iter().map(|past| past.line).collect::<Vec<_>>(), [broken.at]);
    }
}
