//! Plans of kernels from the tokens of macro calls.

use super::table;
use super::{Fault, Outcome, planned};
use crate::error::SpecError;
use crate::family::Family;
use crate::ir::Elem;
use crate::plan::{MapPlan, ReducePlan, ScanPlan, SgemmPlan};
use crate::spec::{
    EpilogueArg, GemmTypes, MapOperand, MapResult, MapSpec, ReduceSpec, ScanSpec, SgemmSpec, Table,
    Typed,
};
use crate::syntax::{Span, macro_tokens};
use crate::tables::{KernelTable, RuleSpec};
use proc_macro2::{Ident, Span as Place, TokenStream, TokenTree};

/// Result of reading a `reduce_kernel!` call.
#[derive(Debug)]
pub struct ReduceTokens {
    /// The plan, or all faults, each at its own tokens.
    pub plan: syn::Result<ReducePlan>,
    /// Element type of each input. Also known for a faulty spec, unless the fault hides the types.
    pub inputs: Option<Vec<Elem>>,
    /// Type of each number after the inputs. Also known for a faulty spec, as `inputs` is.
    pub numbers: Vec<Elem>,
    /// Element type of each result. Also known for a faulty spec, unless the fault hides the types.
    pub results: Option<Vec<Elem>>,
}

/// Reads the tokens of a `reduce_kernel!` call.
pub fn reduce(tokens: TokenStream) -> ReduceTokens {
    let (plan, types) = read(tokens, |outcome: &Outcome<'_, ReduceSpec, _>, _| {
        let types = [Typed::Inputs, Typed::Results]
            .map(|of| knows_types(outcome, of).then(|| types(&outcome.spec, of)));
        (types, numbers(&outcome.spec))
    });
    let ([inputs, results], numbers) = types.unwrap_or_default();
    ReduceTokens { plan, inputs, numbers, results }
}

/// Result of reading a `reduce_table!` call.
#[derive(Debug)]
pub struct ReduceTableTokens {
    /// The checked table, or all faults, each at its own tokens.
    pub table: syn::Result<KernelTable<ReduceSpec>>,
    /// Element type of each input, if the first rule determines it.
    pub inputs: Option<Vec<Elem>>,
    /// Type of each number after the inputs.
    pub numbers: Vec<Elem>,
    /// Element type of each result, if the first rule determines it.
    pub results: Option<Vec<Elem>>,
}

/// Reads the tokens of a `reduce_table!` call.
pub fn reduce_table(tokens: TokenStream) -> ReduceTableTokens {
    let (table, types) = read_table(tokens, |read: &table::TableOutcome<ReduceSpec>, _| {
        let rule = read.first_parsed.as_ref();
        rule.map(|(spec, _)| {
            ([Typed::Inputs, Typed::Results].map(|of| types(spec, of)), numbers(spec))
        })
    });
    let (types, numbers) = types.flatten().unzip();
    let [inputs, results] = types.map_or([None, None], |types| types.map(Some));
    ReduceTableTokens { table, inputs, numbers: numbers.unwrap_or_default(), results }
}

/// Returns the types of the numbers that a launch passes.
fn numbers(spec: &ReduceSpec) -> Vec<Elem> {
    spec.numbers().into_iter().map(|(_, elem)| elem).collect()
}

/// Returns the element types of the inputs or of the results.
fn types(spec: &ReduceSpec, of: Typed) -> Vec<Elem> {
    match of {
        Typed::Inputs => vec![spec.element.elem(); spec.inputs().len()],
        Typed::Results => spec.results().into_iter().map(|(_, elem)| elem).collect(),
    }
}

/// Returns true if all keys that determine the types of these operands could be parsed.
fn knows_types<S: Table, P>(outcome: &Outcome<'_, S, P>, of: Typed) -> bool {
    !outcome.unread.iter().any(|key| S::what(key).is_some_and(|what| what.types.contains(&of)))
}

/// Result of reading a `map_kernel!` call.
#[derive(Debug)]
pub struct MapTokens {
    /// The plan, or all faults, each at its own tokens.
    pub plan: syn::Result<MapPlan>,
    /// The operands, each with the place of its name. Also known for a faulty spec, unless the
    /// fault hides them.
    pub operands: Option<Vec<(MapOperand, Place)>>,
    /// The results. For a faulty spec known only if the spec states the types.
    pub results: Option<Vec<MapResult>>,
}

/// Message for a fold in `map_kernel!`.
const ELEMENTS_ONLY: &str = "this folds a row, and `map_kernel!` computes each element from the \
     operands' elements at the same index; use `row_kernel!` with the same spec";

/// Message for `row_kernel!` without a fold.
const NO_FOLD: &str =
    "the expression folds no row, as `sum(x)` or `max(x)` do; use `map_kernel!` with the same spec";

/// Reads the tokens of a `map_kernel!` call, or of a `row_kernel!` call if the expression must fold
/// over rows.
pub fn map(tokens: TokenStream, folds: bool) -> MapTokens {
    let (plan, told) = read(tokens, |outcome: &Outcome<'_, MapSpec, MapPlan>, places| {
        let spec = &outcome.spec;
        let closure = spec.map.as_ref().map(|map| map.closure());
        let start = outcome.given.get("map").map(|entry| entry.value_span().start);
        let known = closure.filter(|_| !outcome.unread.contains(&"type"));
        let operands = known.map(|closure| {
            let params = closure.params().iter().map(|param| {
                let place = start.and_then(|start| places.get(start + param.at.first)).copied();
                place.unwrap_or_else(Place::call_site)
            });
            spec.operands().into_iter().zip(params).collect()
        });
        let is_told = |closure: &&crate::expr::Closure| {
            let stated = closure.result_types().len();
            outcome.plan.is_ok() || (stated > 0 && stated == closure.values().len())
        };
        let results = known.filter(is_told).map(|_| spec.results());
        let fold = closure.and_then(crate::expr::Closure::first_fold);
        let at = start.map(|start| start + fold.map_or(0, |at| at.first));
        (operands, results, at.and_then(|at| places.get(at)).copied())
    });
    let (operands, results, place) = told.unwrap_or_default();
    let plan = plan.and_then(|plan| {
        match (plan.spec().has_folds(), folds) {
            (true, false) => Err(ELEMENTS_ONLY),
            (false, true) => Err(NO_FOLD),
            _ => Ok(plan),
        }
        .map_err(|message| syn::Error::new(place.unwrap_or_else(Place::call_site), message))
    });
    MapTokens { plan, operands, results }
}

/// Result of reading a `scan_kernel!` call.
#[derive(Debug)]
pub struct ScanTokens {
    /// The plan, or all faults, each at its own tokens.
    pub plan: syn::Result<ScanPlan>,
    /// Types of the elements and of the results, unless a fault hides them.
    pub types: [Option<Elem>; 2],
}

/// Reads the tokens of a `scan_kernel!` call.
pub fn scan(tokens: TokenStream) -> ScanTokens {
    let (plan, types) = read(tokens, |outcome: &Outcome<'_, ScanSpec, _>, _| {
        let (spec, knows) = (&outcome.spec, |of| knows_types(outcome, of));
        [
            knows(Typed::Inputs).then(|| spec.element.elem()),
            knows(Typed::Results).then(|| spec.result_elem()),
        ]
    });
    ScanTokens { plan, types: types.unwrap_or_default() }
}

/// Result of reading an `sgemm_kernel!` call.
#[derive(Debug)]
pub struct SgemmTokens {
    /// The plan, or all faults, each at its own tokens.
    pub plan: syn::Result<SgemmPlan>,
    /// Element types of the matrices, also for a faulty spec.
    pub types: GemmTypes,
    /// The [operands](SgemmSpec::operands), each with the place of its name. Also known for a
    /// faulty spec, unless the fault hides them.
    pub operands: Option<Vec<(EpilogueArg, Place)>>,
}

/// Reads the tokens of an `sgemm_kernel!` call, or of a `gemm_kernel!` call if the spec may have
/// element types.
pub fn sgemm(tokens: TokenStream, has_types: bool) -> SgemmTokens {
    let (plan, told) = read(tokens, |outcome: &Outcome<'_, SgemmSpec, _>, places| {
        let typed = SgemmSpec::TYPES.iter().filter_map(|key| outcome.given.get(key));
        let typed = typed.map(|entry| entry.key.span().start).min();
        let place = typed.and_then(|start| places.get(start)).copied();
        (outcome.spec.types(), operands(outcome, places), place)
    });
    let (types, operands, typed) =
        told.unwrap_or_else(|| (SgemmSpec::default().types(), None, None));
    let plan = without_types(plan, typed.filter(|_| !has_types), F32_ONLY);
    SgemmTokens { plan, types, operands }
}

/// Replaces the result of a call by an error at the place of an element type, if there is one.
fn without_types<T>(read: syn::Result<T>, typed: Option<Place>, message: &str) -> syn::Result<T> {
    typed.map_or(read, |place| Err(syn::Error::new(place, message)))
}

/// Message for an element type in `sgemm_kernel!`.
const F32_ONLY: &str = "the matrices of `sgemm_kernel!` are `f32`; use `gemm_kernel!` with the \
     same spec, which builds a `Gemm<A, B, C>`";

/// Result of reading an `sgemm_table!` call.
#[derive(Debug)]
pub struct SgemmTableTokens {
    /// The checked table, or all faults, each at its own tokens.
    pub table: syn::Result<KernelTable<SgemmSpec>>,
    /// Element types of the matrices, also for a faulty table.
    pub types: GemmTypes,
    /// Operands of all rules, each with the place of its name in the first rule. `None` if the
    /// first rule does not determine them.
    pub operands: Option<Vec<(EpilogueArg, Place)>>,
}

/// Reads the tokens of an `sgemm_table!` call, or of a `gemm_table!` call if the table may have
/// element types.
pub fn sgemm_table(tokens: TokenStream, has_types: bool) -> SgemmTableTokens {
    let (table, told) = read_table(tokens, |read: &table::TableOutcome<SgemmSpec>, places| {
        let rule = read.first_parsed.as_ref();
        let operands =
            rule.map(|(spec, starts)| placed(spec, starts.get("epilogue").copied(), places));
        let heading = read.heading.as_ref();
        let types = heading.map_or(GemmTypes::F32, |(spec, _)| spec.types());
        (operands, types, heading.and_then(|(_, at)| places.get(*at)).copied())
    });
    let (operands, types, typed) = told.unwrap_or((None, GemmTypes::F32, None));
    let table = without_types(table, typed.filter(|_| !has_types), F32_TABLE);
    SgemmTableTokens { table, types, operands }
}

/// Message for an element type in `sgemm_table!`.
const F32_TABLE: &str = "the matrices of `sgemm_table!` are `f32`; use `gemm_table!` with the \
     same rules, which builds a `GemmTable<A, B, C>`";

/// Returns the operands if the keys that determine them could be parsed.
fn operands(
    outcome: &Outcome<'_, SgemmSpec, SgemmPlan>,
    places: &[Place],
) -> Option<Vec<(EpilogueArg, Place)>> {
    let epilogue = outcome.given.get("epilogue").map(|entry| entry.value_span().start);
    knows_types(outcome, Typed::Inputs).then(|| placed(&outcome.spec, epilogue, places))
}

/// Returns each operand with the place of its name in the epilogue, or of the whole call if the
/// epilogue does not name it.
pub(super) fn placed(
    spec: &SgemmSpec,
    epilogue: Option<usize>,
    places: &[Place],
) -> Vec<(EpilogueArg, Place)> {
    let place = |operand: &EpilogueArg| {
        let mut named = spec.epilogue.iter().flat_map(|epilogue| epilogue.named());
        let (param, _) = named.find(|(param, _)| param.name == operand.name)?;
        places.get(epilogue? + param.at.first).copied()
    };
    let operands = spec.operands().into_iter();
    let placed = operands.map(|operand| {
        let place = place(&operand).unwrap_or_else(Place::call_site);
        (operand, place)
    });
    placed.collect()
}

/// Returns the plan, and the value of `tell` for the parsed spec if the tokens could be parsed.
fn read<S: Family + Table, R>(
    stream: TokenStream,
    tell: impl FnOnce(&Outcome<'_, S, S::Plan>, &[Place]) -> R,
) -> (syn::Result<S::Plan>, Option<R>) {
    let (tokens, places) = match macro_tokens(stream) {
        Ok(read) => read,
        Err(fault) => return (Err(syn::Error::new(fault.place, fault.error)), None),
    };
    let outcome = planned::<S>(&tokens);
    let told = tell(&outcome, &places);
    (outcome.plan.map_err(|faults| all_located(faults, &places)), Some(told))
}

/// Returns the table, and the value of `tell` for the result of reading it if the tokens could be
/// parsed. `tell` also gets the places of all tokens.
fn read_table<S: RuleSpec, R>(
    stream: TokenStream,
    tell: impl FnOnce(&table::TableOutcome<S>, &[Place]) -> R,
) -> (syn::Result<KernelTable<S>>, Option<R>) {
    let (tokens, places) = match macro_tokens(stream) {
        Ok(read) => read,
        Err(fault) => return (Err(syn::Error::new(fault.place, fault.error)), None),
    };
    let read = table::read::<S>(&tokens);
    let told = Some(tell(&read, &places));
    (read.table.map_err(|faults| all_located(faults, &places)), told)
}

/// Combines faults into one error that shows each fault at its place.
pub(super) fn all_located(faults: Vec<Fault>, places: &[Place]) -> syn::Error {
    let faults = faults.into_iter().map(|(fault, span)| located(fault, span, places));
    let all = faults.reduce(|mut all, next| {
        all.combine(next);
        all
    });
    all.unwrap_or_else(|| {
        unreachable!("planned_by, table::read: a spec without a plan has a fault")
    })
}

fn located(fault: SpecError, span: Option<Span>, places: &[Place]) -> syn::Error {
    match span {
        None => syn::Error::new(Place::call_site(), fault),
        // A `syn` error with two tokens marks everything from the first to the second.
        Some(Span { start, end }) => {
            let ends = [start, end - 1].map(|end| Ident::new("_", places[end]));
            syn::Error::new_spanned(TokenStream::from_iter(ends.map(TokenTree::from)), fault)
        }
    }
}
