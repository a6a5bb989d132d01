//! Expressions that fold over rows, split into parts that a kernel computes one after the other.
//!
//! A part is a fold, or a value of the row, which does not depend on the column. The definitions of
//! the expression and its subexpressions become parts, so that a value of the row is computed only
//! once. Parts and results are closures of their own. Their parameters are operands of the
//! expression, earlier parts, and arguments of earlier folds that a kernel may keep.

mod splitter;

use super::check;
use super::tree::{Block, ClosureParam, FoldOp, Node, NodeKind, NodeSpan};
use super::{Closure, Typing, ValueType};
use splitter::{Draft, Splitter};

/// Expression with folds, as parts and results.
#[derive(Clone, Debug)]
pub(crate) struct RowExpression {
    /// In the order of their computation.
    pub(crate) parts: Vec<RowPart>,
    pub(crate) results: Vec<RowResult>,
}

/// Fold over a row, or value of a row.
#[derive(Clone, Debug)]
pub(crate) struct RowPart {
    pub(crate) name: String,
    pub(crate) kind: RowPartKind,
    /// Number of passes over the row that must precede this part. A fold is computed in the next
    /// pass.
    pub(crate) pass: usize,
    /// Argument of the fold at one column, or the value of the row.
    pub(crate) closure: Closure,
    pub(crate) typing: Typing,
    /// Type of the part's value.
    pub(crate) value: ValueType,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowPartKind {
    Fold {
        op: FoldOp,
        /// Parameter of later closures that stands for the fold's argument at the same column.
        kept: Option<String>,
    },
    Value,
}

/// Result of an expression with folds.
#[derive(Clone, Debug)]
pub(crate) struct RowResult {
    pub(crate) closure: Closure,
    pub(crate) typing: Typing,
    /// True if the result may depend on the column.
    pub(crate) varies: bool,
}

impl Closure {
    /// Returns the position of the first fold over a row, if there is one.
    pub(crate) fn first_fold(&self) -> Option<NodeSpan> {
        let mut first = None;
        let mut see = |e: &Node| {
            if let NodeKind::Fold(..) = e.kind {
                first.get_or_insert(e.at);
            }
        };
        self.visit(&mut see);
        first
    }

    /// Returns true if the value is the only parameter itself.
    pub(crate) fn is_parameter(&self) -> bool {
        match (&self.body.value.kind, self.params.as_slice()) {
            (NodeKind::Name(name), [param]) => self.body.lets.is_empty() && *name == param.name,
            _ => false,
        }
    }

    /// Splits an expression with folds that [`Closure::check`] accepts with these types.
    pub(crate) fn rows(&self, typing: &Typing) -> RowExpression {
        let mut splitter = Splitter::new(self, typing);
        splitter.definitions(&self.body.lets);
        let values = self.values();
        let results: Vec<(Block, bool)> = values.map(|value| splitter.result(value)).collect();
        let (mut drafts, mut blocks): (Vec<Draft>, Vec<Block>) =
            (splitter.parts, results.iter().map(|(block, _)| block.clone()).collect());
        let kept = splitter.names.keep_arguments(&mut drafts, &mut blocks);
        let known = Known { of: self, typing, drafts: &drafts, kept: &kept };
        let parts = drafts.iter().zip(&kept).map(|(draft, kept)| {
            let (closure, mut typing) = known.closure(draft.block.clone());
            typing.result = draft.argument.ty();
            let kind = match draft.fold {
                Some(op) => RowPartKind::Fold { op, kept: kept.clone() },
                None => RowPartKind::Value,
            };
            let (name, pass, value) = (draft.name.clone(), draft.pass, draft.value);
            RowPart { name, kind, pass, closure, typing, value }
        });
        let parts = parts.collect();
        let results = blocks.into_iter().zip(results).enumerate().map(|(nth, (block, of))| {
            let (closure, mut own) = known.closure(block);
            own.result = match nth.checked_sub(1) {
                None => typing.result,
                Some(nth) => typing.more.get(nth).copied().unwrap_or(typing.result),
            };
            RowResult { closure, typing: own, varies: of.1 }
        });
        RowExpression { parts, results: results.collect() }
    }
}

/// Names that the closures of parts and results may read.
struct Known<'c> {
    of: &'c Closure,
    typing: &'c Typing,
    drafts: &'c [Draft],
    /// Name of the argument of each draft that later closures read, if they do.
    kept: &'c [Option<String>],
}

impl Known<'_> {
    /// Returns the closure of a block, with the names that it reads as parameters, and its types,
    /// except for the result.
    fn closure(&self, body: Block) -> (Closure, Typing) {
        let read = body.read();
        let (mut params, mut values) = (Vec::new(), Vec::new());
        for (nth, param) in self.of.params.iter().enumerate() {
            if read.contains(param.name.as_str()) {
                params.push(param.clone());
                values.push(self.typing.param(nth));
            }
        }
        let parts = self.drafts.iter().map(|draft| (&draft.name, draft.value));
        let kept = self.drafts.iter().zip(self.kept);
        let kept = kept.filter_map(|(draft, kept)| Some((kept.as_ref()?, draft.argument)));
        // The argument of a fold may be a definition, whose name is also that of the kept argument.
        let is_defined = |name: &str| body.lets.iter().any(|definition| definition.name == name);
        let reads = |name: &str| read.contains(name) && !is_defined(name);
        for (name, value) in parts.chain(kept).filter(|(name, _)| reads(name)) {
            let (name, index, at) = (name.clone(), Vec::new(), NodeSpan::default());
            params.push(ClosureParam { name, index, elem: None, at });
            values.push(value);
        }
        let (scope, results, others) = (self.of.scope, Vec::new(), Vec::new());
        let closure = Closure { scope, params, results, body, others };
        (closure, Typing { values, more: Vec::new(), ..self.typing.clone() })
    }

    /// Returns the type of a block's value, which must be valid.
    fn value(&self, block: &Block) -> Option<ValueType> {
        let (closure, typing) = self.closure(block.clone());
        check::value_type(&closure, &typing)
    }
}
