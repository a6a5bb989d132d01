//! Expressions that are computed once for each pair of neighbouring columns, as in
//! `acc * sigmoid(acc) * next(acc)`.
//!
//! `next(e)` is the value of `e` in the odd column of the pair. The lowering gives the names of
//! this column names of their own: the expression becomes a closure of twice as many values, which
//! no longer contains `next` and `pair`.

use super::tree::{Binary, Block, ClosureParam, Let, Node, NodeKind};
use super::{Closure, messages};
use crate::error::SpecError;
use std::collections::HashSet;

/// Function of the value in the odd column.
pub(super) const NEXT: &str = "next";

/// Function of a value for each of the two columns.
pub(super) const PAIR: &str = "pair";

/// Integer that is the position of the column.
const COL: &str = "col";

/// Expression whose names are those of one column each.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Values in order: that of the even column, then that of the odd one for a `pair`.
    pub(super) closure: Closure,
    /// Number of values of the closure for each value of the expression: 2 for a `pair`, else 1.
    pub(super) counts: Vec<usize>,
    /// Parameters of the odd column: the name in the closure, and the name of the operand, which is
    /// `None` for a value of the scope.
    pub(super) odd: Vec<(String, Option<String>)>,
}

impl Closure {
    /// Visits every node of the closure, parents first.
    pub(super) fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        self.body.visit(f);
        self.others.iter().for_each(|value| value.visit(f));
    }

    /// Returns all definitions, also those in the blocks of an `if`.
    fn definitions(&self) -> Vec<&Let> {
        let mut all: Vec<&Let> = self.body.lets.iter().collect();
        self.visit(&mut |e| {
            if let NodeKind::If(_, yes, no) = &e.kind {
                all.extend(yes.lets.iter().chain(&no.lets));
            }
        });
        all
    }

    /// Returns true if the expression is computed once for each pair of columns.
    pub(crate) fn has_pairs(&self) -> bool {
        let mut has_pairs = false;
        self.visit(&mut |e| {
            has_pairs |= matches!(e.kind, NodeKind::Next(_) | NodeKind::Pair(..));
        });
        has_pairs
    }

    /// Returns true if the n-th value has a value for each column, as in an expression without
    /// pairs, or is a `pair`.
    pub(crate) fn is_of_each_column(&self, nth: usize) -> bool {
        let is_pair = |value: &Node| matches!(value.kind, NodeKind::Pair(..));
        !self.has_pairs() || self.values().nth(nth).is_some_and(is_pair)
    }

    /// Gives the names of the odd column names of their own. The expression has no [`faults`].
    pub(super) fn columns(&self) -> Columns {
        if !self.has_pairs() {
            let counts = vec![1; self.values().len()];
            return Columns { closure: self.clone(), counts, odd: Vec::new() };
        }
        let mut naming = Naming::new(self);
        let lets = naming.lets(&self.body.lets);
        let (mut values, mut counts) = (Vec::new(), Vec::new());
        for value in self.values() {
            let before = values.len();
            match &value.kind {
                NodeKind::Pair(even, odd) => {
                    values.extend([even, odd].map(|value| naming.even(value)));
                }
                _ => values.push(naming.even(value)),
            }
            counts.push(values.len() - before);
        }
        values.iter_mut().for_each(prune);
        let mut read = HashSet::new();
        values.iter().for_each(|value| value.visit_read(&mut read));
        let mut lets = lets;
        lets.iter_mut().for_each(|own| prune(&mut own.value));
        let lets = Let::needed(&lets, &mut read);
        let mut params = self.params.clone();
        let (acc, operands) = params.split_at_mut(self.scope.values.1);
        // A value of the scope remains a parameter even if only its odd column is read.
        acc.iter_mut().filter(|own| !read.contains(&*own.name)).for_each(|own| {
            own.name = naming.unread();
        });
        let own = acc.iter().chain(operands.iter().filter(|own| read.contains(&*own.name)));
        let all = self.params.iter().enumerate();
        let odd = all.map(|(nth, own)| (naming.odd_name(&own.name), nth));
        let odd: Vec<_> = odd.filter(|(name, _)| read.contains(name.as_str())).collect();
        let next = odd.iter().map(|(name, nth)| {
            let name = name.clone();
            ClosureParam { name, ..self.params[*nth].clone() }
        });
        let params = own.cloned().chain(next).collect();
        let values_of_scope = self.scope.values.1;
        let odd = odd.into_iter().map(|(name, nth)| {
            (name, (nth >= values_of_scope).then(|| self.params[nth].name.clone()))
        });
        let odd = odd.collect();
        let mut values = values.into_iter();
        let first = values.next().unwrap_or_else(|| unreachable!("Closure: it has a value"));
        let (scope, results) = (self.scope, self.results.clone());
        let body = Block { lets, value: first };
        let closure = Closure { scope, params, results, body, others: values.collect() };
        Columns { closure, counts, odd }
    }
}

/// Definitions and parameters in scope, and their names in the odd column.
struct Naming {
    /// Each name, and whether it may differ between columns.
    known: Vec<(String, bool)>,
    prefix: String,
}

impl Naming {
    fn new(closure: &Closure) -> Self {
        let params = closure.params.iter().map(|param| &param.name);
        let taken = params.chain(closure.definitions().into_iter().map(|own| &own.name));
        let taken: Vec<&String> = taken.collect();
        let mut prefix = format!("{NEXT}_");
        while taken.iter().any(|name| name.starts_with(&prefix)) {
            prefix.insert(0, 'x');
        }
        let known = closure.params.iter().enumerate();
        let known = known.map(|(nth, param)| (param.name.clone(), differs(closure, nth, param)));
        Self { known: known.collect(), prefix }
    }

    fn odd_name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Name of a parameter that the closure does not read.
    fn unread(&self) -> String {
        format!("_{}", self.prefix)
    }

    /// Returns true if an expression may have different values in the two columns.
    fn varies(&self, e: &Node) -> bool {
        let mut varies = false;
        e.visit(&mut |e| {
            if let NodeKind::Name(name) = &e.kind {
                varies |= self.differs(name);
            }
        });
        varies
    }

    fn differs(&self, name: &str) -> bool {
        let known = self.known.iter().rev().find(|(known, _)| known == name);
        known.map_or(name == COL, |(_, varies)| *varies)
    }

    /// Definitions for the even column, and for the odd column where it may differ.
    fn lets(&mut self, lets: &[Let]) -> Vec<Let> {
        let mut all = Vec::new();
        for Let { name, value, at } in lets {
            all.push(Let { name: name.clone(), value: self.even(value), at: *at });
            let varies = self.varies(value);
            if varies && !reads_columns(value) {
                let (name, value) = (self.odd_name(name), self.odd(value));
                all.push(Let { name, value, at: *at });
            }
            self.known.push((name.clone(), varies));
        }
        all
    }

    /// Expression in the even column.
    fn even(&mut self, e: &Node) -> Node {
        match &e.kind {
            NodeKind::Next(of) => self.odd(of),
            NodeKind::If(cond, yes, no) => {
                let cond = self.even(cond);
                let [yes, no] = [yes, no].map(|block| {
                    let outer = self.known.len();
                    let lets = self.lets(&block.lets);
                    let value = self.even(&block.value);
                    self.known.truncate(outer);
                    Box::new(Block { lets, value })
                });
                Node { kind: NodeKind::If(Box::new(cond), yes, no), at: e.at }
            }
            _ => {
                let mut e = e.clone();
                e.children_mut(&mut |child| *child = self.even(child));
                e
            }
        }
    }

    /// Expression in the odd column. It reads no other column.
    fn odd(&mut self, e: &Node) -> Node {
        let kind = match &e.kind {
            NodeKind::Name(name) if self.differs(name) => {
                let is_known = self.known.iter().any(|(known, _)| known == name);
                match is_known {
                    true => NodeKind::Name(self.odd_name(name)),
                    false => {
                        let one = Node { kind: NodeKind::Int(1), at: e.at };
                        NodeKind::Binary(Binary::Add, Box::new(e.clone()), Box::new(one), e.at)
                    }
                }
            }
            NodeKind::If(cond, yes, no) => {
                let cond = self.odd(cond);
                let [yes, no] = [yes, no].map(|block| {
                    let outer = self.known.len();
                    let mut lets = Vec::new();
                    for Let { name, value, at } in &block.lets {
                        lets.push(Let {
                            name: self.odd_name(name),
                            value: self.odd(value),
                            at: *at,
                        });
                        self.known.push((name.clone(), true));
                    }
                    let value = self.odd(&block.value);
                    self.known.truncate(outer);
                    Box::new(Block { lets, value })
                });
                NodeKind::If(Box::new(cond), yes, no)
            }
            _ => {
                let mut e = e.clone();
                e.children_mut(&mut |child| *child = self.odd(child));
                return e;
            }
        };
        Node { kind, at: e.at }
    }
}

/// Returns true if a parameter may have different values in the two columns.
fn differs(closure: &Closure, nth: usize, param: &ClosureParam) -> bool {
    nth < closure.scope.values.1 || param.index.iter().any(|axis| axis == "n")
}

/// Returns true if an expression has one value for a pair of columns, or for a row.
fn reads_columns(e: &Node) -> bool {
    let mut reads = false;
    e.visit(&mut |e| reads |= matches!(e.kind, NodeKind::Next(_) | NodeKind::Fold(..)));
    reads
}

/// Drops definitions inside of an expression that are not read.
fn prune(e: &mut Node) {
    e.children_mut(&mut prune);
    if let NodeKind::If(_, yes, no) = &mut e.kind {
        for block in [yes, no] {
            let value =
                std::mem::replace(&mut block.value, Node { kind: NodeKind::Int(0), at: e.at });
            **block = Block::reading(&block.lets, value);
        }
    }
}

/// Returns the faults of an expression with pairs of columns. `folds` returns true if an expression
/// depends on a fold.
pub(super) fn faults(closure: &Closure, folds: impl Fn(&Node) -> bool) -> Vec<SpecError> {
    if !closure.has_pairs() {
        return Vec::new();
    }
    let key = closure.scope.key;
    let read = Read::new(closure);
    let mut faults = Vec::new();
    closure.visit(&mut |e| match &e.kind {
        NodeKind::Next(of) if folds(of) => {
            faults.push(messages::next_of_fold(key, e.at));
        }
        NodeKind::Next(of) => match read.of_pairs(of) {
            Some(at) => faults.push(messages::next_of_next(key, at)),
            None if !read.varies(of) => {
                faults.push(messages::next_of_constant(key, e.at, &of.to_string()));
            }
            None => {}
        },
        NodeKind::Pair(..) if folds(e) => {
            faults.push(messages::pair_of_fold(key, e.at));
        }
        _ => {}
    });
    if let Some((output, _)) = closure.scope.output.filter(|_| !closure.is_of_each_column(0)) {
        let param = closure.params.iter().find(|param| param.name == output);
        faults.extend(param.map(|param| messages::output_of_pairs(key, param)));
    }
    faults
}

/// Names by what their values depend on.
struct Read<'c> {
    /// Names that may differ between columns.
    columns: HashSet<&'c str>,
    /// Definitions that read the odd column.
    pairs: HashSet<&'c str>,
}

impl<'c> Read<'c> {
    fn new(closure: &'c Closure) -> Self {
        let params = closure.params.iter().enumerate();
        let params = params.filter(|(nth, param)| differs(closure, *nth, param));
        let columns = params.map(|(_, param)| param.name.as_str()).chain([COL]).collect();
        let mut read = Self { columns, pairs: HashSet::new() };
        let lets = closure.definitions();
        // A definition may read only those before it, but blocks are visited in another order.
        loop {
            let before = read.columns.len() + read.pairs.len();
            for Let { name, value, .. } in &lets {
                if read.varies(value) {
                    read.columns.insert(name);
                }
                if read.of_pairs(value).is_some() {
                    read.pairs.insert(name);
                }
            }
            if read.columns.len() + read.pairs.len() == before {
                return read;
            }
        }
    }

    fn varies(&self, e: &Node) -> bool {
        let mut varies = false;
        e.visit(&mut |e| {
            varies |= matches!(&e.kind, NodeKind::Name(name) if self.columns.contains(&**name));
        });
        varies
    }

    /// Position of the first part that reads the odd column.
    fn of_pairs(&self, e: &Node) -> Option<super::NodeSpan> {
        let mut found = None;
        e.visit(&mut |e| {
            let reads = match &e.kind {
                NodeKind::Next(_) => true,
                NodeKind::Name(name) => self.pairs.contains(name.as_str()),
                _ => false,
            };
            if reads {
                found.get_or_insert(e.at);
            }
        });
        found
    }
}
