//! Parser for synchronisation statements that is independent of the printer.

use gemm_dsl::ir::{MemoryOrder, Scope, Space};

#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'t> {
    Barrier(Scope),
    Named { id: &'t str, threads: &'t str, wait: bool },
    Fence(MemoryOrder, Scope),
    Atomic(Atomic<'t>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Atomic<'t> {
    /// Type and name of the variable that the statement declares.
    pub old: Option<(&'t str, &'t str)>,
    pub op: &'static str,
    pub order: MemoryOrder,
    pub scope: Scope,
    /// Memory space of the word, if the function names it.
    pub space: Option<Space>,
    /// Type to which the address is cast.
    pub cast: Option<&'t str>,
    pub array: &'t str,
    pub index: &'t str,
    /// Expected value of a compare-and-swap, and the operand.
    pub operands: Vec<&'t str>,
}

/// Parses a line.
///
/// # Errors
/// Returns the line if it is not a synchronisation statement.
pub fn read(line: &str) -> Result<Statement<'_>, String> {
    let wrong = || format!("`{line}`");
    let line = line.strip_suffix(';').ok_or_else(wrong)?;
    let (old, call) = match line.split_once(" = ") {
        Some((declared, call)) => {
            let declared = declared.strip_prefix("const ").ok_or_else(wrong)?;
            (Some(declared.rsplit_once(' ').ok_or_else(wrong)?), call)
        }
        None => (None, line),
    };
    let (function, rest) = call.split_once('(').ok_or_else(wrong)?;
    let args = arguments(rest.strip_suffix(')').ok_or_else(wrong)?);
    let statement = match (function, &args[..]) {
        ("__syncwarp", []) => Statement::Barrier(Scope::Warp),
        ("__syncthreads", []) => Statement::Barrier(Scope::Block),
        ("__threadfence", []) => Statement::Fence(MemoryOrder::SeqCst, Scope::Device),
        ("__threadfence_block", []) => Statement::Fence(MemoryOrder::SeqCst, Scope::Block),
        ("fence_acq_rel", []) => Statement::Fence(MemoryOrder::AcqRel, Scope::Device),
        ("fence_acq_rel_block", []) => Statement::Fence(MemoryOrder::AcqRel, Scope::Block),
        ("named_barrier", [id, threads]) => Statement::Named { id, threads, wait: true },
        ("named_arrive", [id, threads]) => Statement::Named { id, threads, wait: false },
        (_, [place, operands @ ..]) => {
            let (op, order, scope, space) = operation(function).ok_or_else(wrong)?;
            let (cast, place) = match place.strip_prefix('(') {
                Some(cast) => cast.split_once("*)").map(|(ty, place)| (Some(ty), place)),
                None => Some((None, *place)),
            }
            .ok_or_else(wrong)?;
            let place = place.strip_prefix('&').and_then(|p| p.strip_suffix(']'));
            let (array, index) = place.and_then(|p| p.split_once('[')).ok_or_else(wrong)?;
            let operands = operands.to_vec();
            let count = if op == "compare_exchange" { 2 } else { 1 };
            if operands.len() != count {
                return Err(wrong());
            }
            let atomic = Atomic { old, op, order, scope, space, cast, array, index, operands };
            return Ok(Statement::Atomic(atomic));
        }
        _ => return Err(wrong()),
    };
    if old.is_none() { Ok(statement) } else { Err(wrong()) }
}

/// Splits at commas outside of parentheses and brackets.
fn arguments(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut depth = 0;
    let outside = move |c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(outside).map(str::trim_start).collect()
}

/// Operation, order, scope and space from the name of a function.
fn operation(function: &str) -> Option<(&'static str, MemoryOrder, Scope, Option<Space>)> {
    let cuda = [
        ("atomicAdd", "add"),
        ("atomicMin", "min"),
        ("atomicMax", "max"),
        ("atomicExch", "exchange"),
        ("atomicCAS", "compare_exchange"),
    ];
    for (name, op) in cuda {
        match function.strip_prefix(name) {
            Some("") => return Some((op, MemoryOrder::Relaxed, Scope::Device, None)),
            Some("_block") => return Some((op, MemoryOrder::Relaxed, Scope::Block, None)),
            _ => {}
        }
    }
    let name = function.strip_prefix("atomic_")?;
    let (name, space) = match name.strip_suffix("_shared") {
        Some(name) => (name, Space::Shared),
        None => (name, Space::Global),
    };
    let (name, scope) = match name.strip_suffix("_block") {
        Some(name) => (name, Scope::Block),
        None => (name, Scope::Device),
    };
    let orders = [
        ("_acquire", MemoryOrder::Acquire),
        ("_release", MemoryOrder::Release),
        ("_acq_rel", MemoryOrder::AcqRel),
    ];
    let (name, order) =
        orders.into_iter().find_map(|(end, order)| Some((name.strip_suffix(end)?, order)))?;
    let op = cuda.into_iter().find_map(|(_, op)| (op == name).then_some(op))?;
    Some((op, order, scope, Some(space)))
}
