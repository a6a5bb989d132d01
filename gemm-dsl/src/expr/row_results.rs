//! Results of rows: expressions of folds over the columns, as in `sum(acc * acc) / f32(n)`.
//!
//! A kernel that computes one element at a time cannot use the fold of a row. It computes the
//! arguments of the folds, and a later kernel computes the results of rows from the folds.

use super::pairs::Columns;
use super::scope::ExprScope;
use super::tree::{Block, ClosureParam, FoldOp, Let, Node, NodeKind, NodeSpan};
use super::{Closure, Lowered, Typing, messages};
use crate::error::SpecError;
use crate::ir::KernelBuilder;
use std::collections::HashSet;

/// Maximum number of different folds of an expression. Each takes a register.
pub(crate) const MAX_FOLDS: usize = 8;

/// Expression whose folds are parts of their own.
#[derive(Clone, Debug)]
pub(crate) struct RowResults {
    /// Values of an element, or of a pair of columns, followed by the arguments of the folds.
    elements: Closure,
    /// For each stored value of the expression, the number of values of `elements`: 2 for a
    /// `pair`, else 1.
    pub(crate) stored: Vec<usize>,
    /// Parameters of the odd column: the name in `elements`, and the name of the operand, which is
    /// `None` for the accumulator.
    odd: Vec<(String, Option<String>)>,
    /// True if the values are computed once for each pair of columns.
    pub(crate) has_pairs: bool,
    pub(crate) folds: Vec<Fold>,
    /// Results of rows, each with its position among the values of the expression.
    pub(crate) results: Vec<(usize, Closure)>,
}

/// Fold over a row.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) name: String,
    pub(crate) op: FoldOp,
}

impl RowResults {
    /// Returns the inputs of the values of an element and of the arguments of the folds: the name
    /// of the operand, or `None` for the accumulator, and the column, which is 1 for the odd column
    /// of a pair.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (Option<&str>, usize)> {
        let values = self.elements.scope.values.1;
        self.elements.params().iter().enumerate().map(move |(nth, param)| {
            let odd = self.odd.iter().find(|(name, _)| *name == param.name);
            match odd {
                Some((_, name)) => (name.as_deref(), 1),
                None if nth < values => (None, 0),
                None => (Some(param.name.as_str()), 0),
            }
        })
    }

    /// Declares a device function for each value of an element, then one for the argument of each
    /// fold.
    pub(crate) fn lower(&self, b: &mut KernelBuilder) -> Vec<Lowered> {
        let all = self.elements.values().len() - self.folds.len();
        let columns = self.stored.iter().enumerate();
        let columns = columns.flat_map(|(nth, columns)| (0..*columns).map(move |col| (nth, col)));
        let columns: Vec<_> = columns.collect();
        self.elements.lower_values(b, |nth| {
            if let Some(fold) = nth.checked_sub(all).and_then(|nth| self.folds.get(nth)) {
                let meaning = format!("Value that `{}` folds.", fold.name);
                return Some((format!("{}_at", fold.name), meaning));
            }
            let key = self.elements.scope.key;
            let (value, column) = columns.get(nth).filter(|_| self.has_pairs)?;
            let of = if *column == 1 { ", in the odd column" } else { "" };
            let meaning = format!("Value {} of `{key}` of the spec{of}.", value + 1);
            Some((format!("{key}_{}", nth + 1), meaning))
        })
    }
}

impl Closure {
    /// Returns true if the n-th value is a result of a row.
    pub(crate) fn is_of_row(&self, nth: usize) -> bool {
        let definitions = Definitions::new(self);
        self.values().nth(nth).is_some_and(|value| definitions.folds(value))
    }

    /// Splits an expression whose [`faults`] are none.
    pub(crate) fn row_results(&self) -> RowResults {
        let has_pairs = self.has_pairs();
        let Columns { closure, counts, odd } = self.columns();
        if closure.first_fold().is_none() {
            let (folds, results) = (Vec::new(), Vec::new());
            return RowResults {
                elements: closure,
                stored: counts,
                odd,
                has_pairs,
                folds,
                results,
            };
        }
        let of = &closure;
        let definitions = Definitions::new(of);
        let (mut folds, mut arguments): (Vec<Fold>, Vec<Node>) = (Vec::new(), Vec::new());
        let mut nodes = Vec::new();
        let mut values = of.values();
        let values = counts.iter().map(|count| values.by_ref().take(*count).collect::<Vec<_>>());
        let (of_rows, elements): (Vec<_>, Vec<_>) =
            values.enumerate().partition(|(_, value)| value.iter().any(|e| definitions.folds(e)));
        let block = |value: &Node| Block::reading(&of.body.lets, value.clone());
        let of_rows =
            of_rows.iter().flat_map(|(nth, value)| value.iter().map(|e| (*nth, block(e))));
        let of_rows: Vec<(usize, Block)> = of_rows.collect();
        for (_, block) in &of_rows {
            block.visit(&mut |e| {
                if let NodeKind::Fold(op, argument) = &e.kind
                    && !nodes.contains(&e)
                {
                    nodes.push(e);
                    arguments.push((**argument).clone());
                    folds.push(Fold { name: of.fold_name(*op, folds.len()), op: *op });
                }
            });
        }
        let results = of_rows.iter().map(|(nth, block)| {
            let mut block = block.clone();
            let lets = block.lets.iter_mut().map(|definition| &mut definition.value);
            lets.chain([&mut block.value]).for_each(|e| name_folds(e, &nodes, &folds));
            let Block { lets, value } = block;
            (*nth, of.reading(&lets, value, Vec::new(), &folds))
        });
        let results = results.collect();
        let stored = elements.iter().map(|(_, value)| value.len()).collect();
        let values = elements.iter().flat_map(|(_, value)| value.iter().map(|e| (*e).clone()));
        let mut values = values.chain(arguments);
        let first = values.next().unwrap_or_else(|| unreachable!("faults: C has the first value"));
        let elements = of.reading(&of.body.lets, first, values.collect(), &[]);
        RowResults { elements, stored, odd, has_pairs, folds, results }
    }

    /// Returns a closure of values, with the definitions and parameters that they read. `folds` are
    /// parameters, too. If there are none, the values of the scope, such as `acc`, remain.
    fn reading(&self, lets: &[Let], value: Node, others: Vec<Node>, folds: &[Fold]) -> Self {
        let mut read = HashSet::new();
        [&value].into_iter().chain(&others).for_each(|value| value.visit_read(&mut read));
        let needed = Let::needed(lets, &mut read);
        let values = if folds.is_empty() { self.scope.values.1 } else { 0 };
        let own = self.params.iter().enumerate();
        let own = own.filter(|(nth, param)| *nth < values || read.contains(&*param.name));
        let own = own.map(|(_, param)| param.clone());
        let folds = folds.iter().filter(|fold| read.contains(&*fold.name)).map(|fold| {
            let at = NodeSpan::default();
            ClosureParam { name: fold.name.clone(), index: Vec::new(), elem: None, at }
        });
        let params = folds.chain(own).collect();
        let body = Block { lets: needed, value: value.clone() };
        Self { scope: self.scope, params, results: Vec::new(), body, others: others.clone() }
    }

    /// Returns the name of the n-th fold, which the expression does not have.
    fn fold_name(&self, op: FoldOp, nth: usize) -> String {
        let mut name = format!("row_{}_{}", op.name(), nth + 1);
        let is_taken = |name: &str| {
            let params = self.params.iter().map(|param| &param.name);
            params.chain(self.body.lets.iter().map(|own| &own.name)).any(|own| own == name)
        };
        while is_taken(&name) {
            name.push('x');
        }
        name
    }

    /// Declares the result of a row as a device function of its folds.
    pub(crate) fn lower_result(&self, b: &mut KernelBuilder, name: &str) -> Lowered {
        self.lower_described(b, name, &Typing::F32, "Result of a row.")
    }
}

/// Replaces folds by their names.
fn name_folds(e: &mut Node, nodes: &[&Node], folds: &[Fold]) {
    if let Some(nth) = nodes.iter().position(|fold| **fold == *e) {
        e.kind = NodeKind::Name(folds[nth].name.clone());
        return;
    }
    e.children_mut(&mut |child| name_folds(child, nodes, folds));
}

/// Definitions of an expression, by what their values depend on.
pub(super) struct Definitions<'c> {
    scope: &'static ExprScope,
    params: &'c [ClosureParam],
    /// Definitions that depend on a fold.
    of_rows: HashSet<&'c str>,
    /// Definitions that depend on the element, other than through a fold.
    of_elements: HashSet<&'c str>,
}

impl<'c> Definitions<'c> {
    pub(super) fn new(closure: &'c Closure) -> Self {
        let (of_rows, of_elements) = (HashSet::new(), HashSet::new());
        let mut all = Self { scope: closure.scope, params: &closure.params, of_rows, of_elements };
        for Let { name, value, .. } in &closure.body.lets {
            if all.folds(value) {
                all.of_rows.insert(name);
            }
            if all.element(value).is_some() {
                all.of_elements.insert(name);
            }
        }
        all
    }

    /// Returns true if an expression depends on a fold.
    pub(super) fn folds(&self, e: &Node) -> bool {
        let mut folds = false;
        e.visit(&mut |e| {
            folds |= match &e.kind {
                NodeKind::Fold(..) => true,
                NodeKind::Name(name) => self.of_rows.contains(name.as_str()),
                _ => false,
            };
        });
        folds
    }

    /// Returns the first name outside of folds that depends on the element.
    fn element<'e>(&self, e: &'e Node) -> Option<(&'e str, NodeSpan)> {
        match &e.kind {
            NodeKind::Fold(..) => None,
            NodeKind::Name(name) => self.is_of_element(name).then_some((name.as_str(), e.at)),
            _ => {
                let mut found = None;
                e.children(&mut |child| found = found.or_else(|| self.element(child)));
                found
            }
        }
    }

    fn is_of_element(&self, name: &str) -> bool {
        let values = self.scope.values.1;
        let mut params = self.params.iter().enumerate();
        let param = params.find(|(_, param)| param.name == name);
        let of_param = param.map(|(nth, param)| nth < values || !param.index.is_empty());
        of_param.unwrap_or_else(|| matches!(name, "row" | "col") || self.of_elements.contains(name))
    }
}

/// Returns the faults of an expression with folds, if its values other than results of rows belong
/// to elements that are computed before the folds.
pub(super) fn faults(closure: &Closure) -> Vec<SpecError> {
    let scope = closure.scope;
    if !scope.folds || scope.is_elementwise() || closure.first_fold().is_none() {
        return Vec::new();
    }
    let definitions = Definitions::new(closure);
    let mut faults = Vec::new();
    let lets = closure.body.lets.iter().map(|own| &own.value);
    let mut distinct: Vec<&Node> = Vec::new();
    for e in lets.chain(closure.values()) {
        see(e, false, &definitions, &mut distinct, &mut faults);
    }
    if let Some(fold) = distinct.get(MAX_FOLDS) {
        faults.push(messages::many_folds(scope.key, fold.at, MAX_FOLDS));
    }
    for (nth, value) in closure.values().enumerate() {
        if !definitions.folds(value) {
            continue;
        }
        match definitions.element(value) {
            Some((name, at)) => faults.push(messages::fold_in_element(scope.key, at, name)),
            None if nth == 0 => faults.push(messages::fold_first(scope.key, value.at)),
            None => {}
        }
    }
    faults
}

/// Adds the folds of an expression, and the faults of their places. `is_inside` is true inside an
/// `if`.
fn see<'e>(
    e: &'e Node,
    is_inside: bool,
    definitions: &Definitions<'_>,
    distinct: &mut Vec<&'e Node>,
    faults: &mut Vec<SpecError>,
) {
    let key = definitions.scope.key;
    if let NodeKind::Fold(op, argument) = &e.kind {
        if definitions.folds(argument) {
            faults.push(messages::fold_of_fold(key, argument.at, *op));
        } else if is_inside {
            faults.push(messages::fold_in_if(key, e.at, *op));
        } else if !distinct.contains(&e) {
            distinct.push(e);
        }
        return;
    }
    let is_inside = is_inside || matches!(e.kind, NodeKind::If(..));
    e.children(&mut |child| see(child, is_inside, definitions, distinct, faults));
}
