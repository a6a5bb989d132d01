//! Splits an expression into parts.

use super::Known;
use crate::expr::function::{Function, Signature};
use crate::expr::scope::KEYWORDS;
use crate::expr::tree::{Binary, Block, FoldOp, Let, Node, NodeKind};
use crate::expr::{Closure, IntRange, Type, Typing, ValueType};
use std::collections::{HashMap, HashSet};

/// Part of an expression before its closure is built.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    /// Operator of a fold; `None` for a value of the row.
    pub(super) fold: Option<FoldOp>,
    pub(super) block: Block,
    pub(super) pass: usize,
    /// Type of the block's value.
    pub(super) argument: ValueType,
    /// Type of the part's value.
    pub(super) value: ValueType,
}

/// Names of an expression and of its parts.
pub(super) struct Names {
    /// Number of parameters and definitions with each name.
    defined: HashMap<String, usize>,
    taken: HashSet<String>,
}

/// Definition that is visible, and whether its value may depend on the column.
struct Visible {
    definition: Let,
    varies: bool,
}

pub(super) struct Splitter<'c> {
    of: &'c Closure,
    typing: &'c Typing,
    pub(super) names: Names,
    pub(super) parts: Vec<Draft>,
    visible: Vec<Visible>,
}

impl Names {
    fn new(of: &Closure) -> Self {
        let mut defined = HashMap::new();
        let mut define = |name: &str| *defined.entry(name.to_owned()).or_insert(0) += 1;
        of.params.iter().for_each(|param| define(&param.name));
        of.body.lets.iter().for_each(|definition| define(&definition.name));
        let mut see = |e: &Node| {
            if let NodeKind::If(_, yes, no) = &e.kind {
                let lets = yes.lets.iter().chain(&no.lets);
                lets.for_each(|definition| define(&definition.name));
            }
        };
        of.visit(&mut see);
        let others = of.scope.reserved.iter().chain(KEYWORDS).map(|name| (*name).to_owned());
        let functions = Function::ALL.iter().map(|function| function.name().to_owned());
        let taken = defined.keys().cloned().chain(others).chain(functions).collect();
        Self { defined, taken }
    }

    /// Returns true if the expression defines this name only once.
    fn is_unique(&self, name: &str) -> bool {
        self.defined.get(name) == Some(&1)
    }

    fn fresh(&mut self, name: &str) -> String {
        let numbered = |n: usize| if n == 1 { name.to_owned() } else { format!("{name}_{n}") };
        let fresh = (1..).map(numbered).find(|name| !self.taken.contains(name));
        let Some(fresh) = fresh else { unreachable!("there is always another number") };
        self.taken.insert(fresh.clone());
        fresh
    }

    /// Replaces arguments of folds that are costly and that later closures compute again by a name.
    /// Returns the names.
    pub(super) fn keep_arguments(
        &mut self,
        drafts: &mut [Draft],
        results: &mut [Block],
    ) -> Vec<Option<String>> {
        let mut all = Vec::new();
        for nth in 0..drafts.len() {
            let draft = &drafts[nth];
            let is_float = matches!(draft.argument, ValueType::Float(_));
            let argument = draft.block.value.clone();
            if draft.fold.is_none() || !is_float || !self.is_costly(&draft.block) {
                all.push(None);
                continue;
            }
            let name = match &argument.kind {
                NodeKind::Name(name) => name.clone(),
                _ => self.fresh("kept"),
            };
            let pass = draft.pass;
            let later = drafts.iter_mut().filter(|draft| draft.fold.is_some() && draft.pass > pass);
            let blocks = later.map(|draft| &mut draft.block).chain(results.iter_mut());
            let mut is_read = false;
            for block in blocks {
                if replace(block, &argument, &name) {
                    is_read = true;
                    block.lets.retain(|definition| definition.name != name);
                    *block = Block::reading(&block.lets, block.value.clone());
                }
            }
            all.push(is_read.then_some(name));
        }
        all
    }

    /// Returns true if a block is worth keeping its value, and its names are the same wherever its
    /// value occurs.
    fn is_costly(&self, block: &Block) -> bool {
        let (mut costly, mut same) = (false, true);
        block.visit(&mut |e| match &e.kind {
            NodeKind::Call(function, _) => {
                let is_long = function.info().signature == Signature::Single;
                costly |= is_long || matches!(function, Function::Sqrt | Function::Rsqrt);
            }
            NodeKind::Binary(Binary::Div, ..) => costly = true,
            NodeKind::If(_, yes, no) => same &= yes.lets.is_empty() && no.lets.is_empty(),
            NodeKind::Name(name) => same &= self.defined.get(name).is_none_or(|count| *count == 1),
            _ => {}
        });
        costly && same
    }
}

/// Replaces an expression by a name wherever it occurs in a block. Returns true if it occurs.
fn replace(block: &mut Block, argument: &Node, name: &str) -> bool {
    let lets = block.lets.iter_mut().map(|definition| &mut definition.value);
    replace_all(lets.chain([&mut block.value]), argument, name)
}

fn replace_all<'n>(nodes: impl Iterator<Item = &'n mut Node>, argument: &Node, name: &str) -> bool {
    let mut is_found = false;
    for node in nodes {
        is_found |= replace_in(node, argument, name);
    }
    is_found
}

fn replace_in(e: &mut Node, argument: &Node, name: &str) -> bool {
    if e == argument {
        e.kind = NodeKind::Name(name.to_owned());
        return true;
    }
    match &mut e.kind {
        NodeKind::Float(_) | NodeKind::Int(_) | NodeKind::Name(_) | NodeKind::Waves(..) => false,
        NodeKind::Unary(_, of) | NodeKind::Fold(_, of) | NodeKind::Next(of) => {
            replace_in(of, argument, name)
        }
        NodeKind::Binary(_, a, b, _) | NodeKind::Pair(a, b) => {
            replace_in(a, argument, name) | replace_in(b, argument, name)
        }
        NodeKind::If(cond, yes, no) => {
            let arms = replace(yes, argument, name) | replace(no, argument, name);
            replace_in(cond, argument, name) || arms
        }
        NodeKind::Call(_, args) => replace_all(args.iter_mut(), argument, name),
    }
}

/// Returns true if an expression is worth computing once for a row.
fn is_worth(e: &Node) -> bool {
    let mut worth = false;
    e.visit(&mut |e| {
        let divides = matches!(e.kind, NodeKind::Binary(Binary::Div | Binary::Rem, ..));
        worth |= divides || matches!(e.kind, NodeKind::Call(..));
    });
    worth
}

impl<'c> Splitter<'c> {
    pub(super) fn new(of: &'c Closure, typing: &'c Typing) -> Self {
        let (parts, visible) = (Vec::new(), Vec::new());
        Self { of, typing, names: Names::new(of), parts, visible }
    }

    /// Splits the definitions of the closure. A definition that does not depend on the column
    /// becomes a part of the same name.
    pub(super) fn definitions(&mut self, lets: &[Let]) {
        for Let { name, value, at } in lets {
            let own = Some(name.as_str()).filter(|name| self.names.is_unique(name));
            let (value, varies) = self.node(value, own);
            let is_simple =
                matches!(value.kind, NodeKind::Name(_) | NodeKind::Float(_) | NodeKind::Int(_));
            let value = match own {
                Some(own) if !varies && !is_simple => self.part(None, value, Some(own)),
                _ => value,
            };
            if !matches!(&value.kind, NodeKind::Name(part) if part == name) {
                let definition = Let { name: name.clone(), value, at: *at };
                self.visible.push(Visible { definition, varies });
            }
        }
    }

    /// Splits a result. Returns the rest of it, and whether it may depend on the column.
    pub(super) fn result(&mut self, value: &Node) -> (Block, bool) {
        let (value, varies) = self.node(value, None);
        let value = if varies { value } else { self.once(value) };
        (self.with_lets(value), varies)
    }

    /// Returns the block of a value, with the visible definitions that it reads.
    fn with_lets(&self, value: Node) -> Block {
        let lets = self.visible.iter().map(|visible| visible.definition.clone());
        Block::reading(&lets.collect::<Vec<_>>(), value)
    }

    fn varies(&self, name: &str) -> bool {
        if let Some(visible) = self.visible.iter().rev().find(|v| v.definition.name == name) {
            return visible.varies;
        }
        let mut params = self.of.params.iter();
        let param = params.find(|param| param.name == name);
        param.map_or(name == "col", |param| param.index.iter().any(|axis| axis == "n"))
    }

    /// Splits an expression. Returns the rest of it, and whether it may depend on the column. If it
    /// is a fold, the fold is called `own`, if given.
    fn node(&mut self, e: &Node, own: Option<&str>) -> (Node, bool) {
        let (kind, varies) = match &e.kind {
            NodeKind::Float(_) | NodeKind::Int(_) | NodeKind::Waves(..) => (e.kind.clone(), false),
            NodeKind::Name(name) => (e.kind.clone(), self.varies(name)),
            NodeKind::Unary(op, of) => {
                let (of, varies) = self.node(of, None);
                (NodeKind::Unary(*op, Box::new(of)), varies)
            }
            NodeKind::Binary(op, a, b, at) => {
                let (a, b) = (self.node(a, None), self.node(b, None));
                let varies = a.1 || b.1;
                let [a, b] = [a, b].map(|operand| Box::new(self.operand(operand, varies)));
                (NodeKind::Binary(*op, a, b, *at), varies)
            }
            NodeKind::If(cond, yes, no) => {
                let (cond, varies) = self.node(cond, None);
                let ((yes, first), (no, second)) = (self.block(yes), self.block(no));
                let kind = NodeKind::If(Box::new(cond), Box::new(yes), Box::new(no));
                (kind, varies || first || second)
            }
            NodeKind::Call(function, args) => {
                let args: Vec<_> = args.iter().map(|arg| self.node(arg, None)).collect();
                let varies = args.iter().any(|(_, varies)| *varies);
                let args = args.into_iter().map(|arg| self.operand(arg, varies)).collect();
                (NodeKind::Call(*function, args), varies)
            }
            NodeKind::Fold(op, of) => {
                let (of, varies) = self.node(of, None);
                let of = if varies { of } else { self.once(of) };
                return (self.part(Some(*op), of, own), false);
            }
            NodeKind::Next(_) | NodeKind::Pair(..) => {
                unreachable!("ExprScope: a kernel over whole rows has no pairs of columns")
            }
        };
        (Node { kind, at: e.at }, varies)
    }

    /// Returns an operand. It becomes a part if it does not depend on the column, but another
    /// operand does.
    fn operand(&mut self, (operand, own): (Node, bool), varies: bool) -> Node {
        if varies && !own { self.once(operand) } else { operand }
    }

    /// Splits a block, and drops the definitions that only folds read.
    fn block(&mut self, block: &Block) -> (Block, bool) {
        let outer = self.visible.len();
        for Let { name, value, at } in &block.lets {
            let (value, varies) = self.node(value, None);
            let definition = Let { name: name.clone(), value, at: *at };
            self.visible.push(Visible { definition, varies });
        }
        let (value, varies) = self.node(&block.value, None);
        let lets = self.visible.drain(outer..).map(|visible| visible.definition);
        (Block::reading(&lets.collect::<Vec<_>>(), value), varies)
    }

    /// Turns an expression that does not depend on the column into a part, if it is worth it.
    fn once(&mut self, e: Node) -> Node {
        if is_worth(&e) { self.part(None, e, None) } else { e }
    }

    /// Returns the name of the part with this value, which is a new part or an earlier one. Returns
    /// the value if it is a boolean.
    fn part(&mut self, fold: Option<FoldOp>, value: Node, own: Option<&str>) -> Node {
        let at = value.at;
        let block = self.with_lets(value);
        let same = |draft: &&Draft| draft.fold == fold && draft.block == block;
        if let Some(same) = self.parts.iter().find(same) {
            return Node { kind: NodeKind::Name(same.name.clone()), at };
        }
        let known = Known { of: self.of, typing: self.typing, drafts: &self.parts, kept: &[] };
        let Some(argument) = known.value(&block) else {
            unreachable!("Closure::rows: the expression is valid")
        };
        if argument.ty() == Type::Bool {
            return block.value;
        }
        let value = match (fold, argument) {
            (Some(op), ValueType::Int { least, most }) => {
                let IntRange { least, most } = IntRange { least, most }.fold(op);
                ValueType::Int { least, most }
            }
            _ => argument,
        };
        let mut pass = 0;
        block.visit(&mut |e| {
            let NodeKind::Name(name) = &e.kind else { return };
            if let Some(read) = self.parts.iter().find(|draft| draft.name == *name) {
                pass = pass.max(read.pass + usize::from(read.fold.is_some()));
            }
        });
        let name = match (own, fold) {
            (Some(own), _) => own.to_owned(),
            (None, Some(op)) => self.names.fresh(&format!("row_{}", op.name())),
            (None, None) => self.names.fresh("row_value"),
        };
        self.parts.push(Draft { name: name.clone(), fold, block, pass, argument, value });
        Node { kind: NodeKind::Name(name), at }
    }
}
