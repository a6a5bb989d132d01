//! Tables of kernels: rows between semicolons, in each a condition, an arrow and a spec.

mod messages;
use super::token::{Span, Token, TokenKind, Tokens};
use super::{Entry, Fault, MAX_FAULTS, MAX_TEXT, Outcome, checked_part, text};
use crate::error::{Excerpt, SpecError, SpecErrors};
use crate::expr::{Closure, Problems};
use crate::parse::messages::too_many;
use crate::spec::{Accuracy, UnknownWord};
use crate::tables::{ACCURACY, Header, INVARIANT, KernelTable, Row, Rows};
use std::collections::HashMap;

/// The most rows of a table.
pub(super) const MAX_ROWS: usize = 256;

/// What has been read of a table.
pub(super) struct ReadTable<S> {
    /// The rows of which it could be read what they compute.
    rows: Vec<Row<S>>,
    header: Header,
    /// Where the values of the first of these rows begin, by their keys.
    places: HashMap<&'static str, usize>,
    faults: Vec<Fault>,
}

impl<S: Rows> ReadTable<S> {
    /// A row that says what the table computes, and where the values of its keys begin.
    pub(super) fn first(&self) -> Option<(&S, &HashMap<&'static str, usize>)> {
        self.rows.first().map(|row| (&row.spec, &self.places))
    }

    /// The table, or its faults.
    pub(super) fn finish(self) -> Result<KernelTable<S>, Vec<Fault>> {
        match self.faults.is_empty() {
            true => Ok(KernelTable::of(self.rows, self.header)),
            false => Err(self.faults),
        }
    }
}

/// Reads and checks a table.
pub(super) fn read<S: Rows>(tokens: &[Token]) -> ReadTable<S> {
    let mut table = Table::<S> {
        rows: Vec::new(),
        places: HashMap::new(),
        faults: Vec::new(),
        header: Header::default(),
        left: Problems::all(),
        conditions: Vec::new(),
        first: None,
        count: 0,
        told_otherwise: false,
        is_total: false,
    };
    let mut rest = Tokens::all(tokens);
    while !rest.is_empty() {
        let row = rest.until(|token| token.is(';'));
        rest = rest.after(row.len() + 1);
        if row.is_empty() || table.is_word(row) {
            continue;
        }
        if table.count == MAX_ROWS {
            table.faults.push((messages::too_many_rows(MAX_ROWS), Some(row.span())));
            // What comes behind is not looked at; it may be what is needed.
            table.is_total = true;
            break;
        }
        table.count += 1;
        table.row(row);
    }
    if !table.told_otherwise && !table.is_total {
        let last = tokens.len().checked_sub(1).map(|last| last..last + 1);
        table.faults.push((messages::no_else(), last));
    }
    let Table { rows, places, mut faults, header, .. } = table;
    if faults.is_empty() {
        // The tables of macros are read again as texts.
        let bytes: usize = rows.iter().map(|row| row.to_string().len() + ";\n".len()).sum();
        if bytes > MAX_TEXT {
            faults.push((messages::too_long_table(bytes, MAX_TEXT), None));
        }
    }
    faults.sort_by_key(|(_, span)| span.as_ref().map(|span| span.start));
    let more = faults.len().saturating_sub(MAX_FAULTS);
    if more > 0 {
        faults.truncate(MAX_FAULTS);
        faults.push((too_many(more), None));
    }
    ReadTable { rows, header, places, faults }
}

struct Table<S> {
    rows: Vec<Row<S>>,
    places: HashMap<&'static str, usize>,
    faults: Vec<Fault>,
    header: Header,
    /// The problems that no row so far is for.
    left: Problems,
    /// The conditions without faults, with the numbers of their rows.
    conditions: Vec<(Closure, usize)>,
    /// What the first row computes, if it has no fault.
    first: Option<S>,
    /// How many rows there were.
    count: usize,
    /// Whether there was an `else`.
    told_otherwise: bool,
    /// Whether a row that is none yet is for all other problems, or may be meant so.
    is_total: bool,
}

impl<S: Rows> Table<S> {
    fn fault(&mut self, fault: SpecError, span: Span) {
        self.faults.push((fault, Some(span)));
    }

    /// Whether it is no row but a word about all of them.
    fn is_word(&mut self, row: Tokens<'_>) -> bool {
        let none = row.after(row.len());
        let (word, again, head, rest) = match row.tokens() {
            [word] if S::VARIES.is_some() && word.text == INVARIANT => {
                let again = std::mem::replace(&mut self.header.is_invariant, true);
                (INVARIANT, again, row, none)
            }
            [word, colon, ..] if S::ROUNDS.is_some() && word.text == ACCURACY && colon.is(':') => {
                let (head, rest) = self.accuracy_and_rest(row);
                let granted = self.accuracy(head);
                (ACCURACY, self.header.accuracy.replace(granted).is_some(), head, rest)
            }
            _ => return false,
        };
        if self.count > 0 || again {
            self.fault(messages::late_word(word, again), head.span());
        }
        if !rest.is_empty() {
            self.count += 1;
            self.row(rest);
        }
        true
    }

    /// The word with its class, and a row that stands behind it where the semicolon is missing.
    fn accuracy_and_rest<'t>(&mut self, row: Tokens<'t>) -> (Tokens<'t>, Tokens<'t>) {
        const HEAD: usize = 3;
        let is_class = row.get(2).is_some_and(|word| word.text.parse::<Accuracy>().is_ok());
        if !is_class || arrow(row).is_none() {
            return (row, row.after(row.len()));
        }
        let (head, rest) = (row.first(HEAD), row.after(HEAD));
        let fault = messages::no_semicolon(&head[2].text, &rest.first(1).text());
        self.fault(fault, rest.first(1).span());
        (head, if rest[0].is(',') { rest.after(1) } else { rest })
    }

    /// The class behind the word; where it is none, one that admits whatever one might have meant.
    fn accuracy(&mut self, row: Tokens<'_>) -> Accuracy {
        let class = row.after(2);
        class.text().parse().unwrap_or_else(|fault: UnknownWord| {
            let span = if class.is_empty() { row.span() } else { class.span() };
            self.fault(messages::no_accuracy(&fault), span);
            Accuracy::Norm
        })
    }

    fn row(&mut self, row: Tokens<'_>) {
        let Some(arrow) = arrow(row) else {
            self.is_total |= row[0].text == "else";
            return self.fault(
                messages::no_arrow((S::CONDITION.example, S::LINE), &row.text()),
                row.span(),
            );
        };
        let (head, line) = (row.first(arrow), row.after(arrow + 2));
        if head.is_empty() {
            self.is_total = true;
            return self.fault(messages::no_condition(S::CONDITION.example), row.first(2).span());
        }
        if self.told_otherwise {
            self.fault(messages::behind_else(), row.span());
        }
        let (when, comes) = match head.tokens() {
            [word] if word.text == "else" => {
                if !self.told_otherwise && ways::<S>(&self.left).is_empty() {
                    self.fault(messages::no_problem(), head.span());
                }
                self.told_otherwise = true;
                (None, self.left.clone())
            }
            tokens => self.condition(tokens, head.span()),
        };
        let ways = ways::<S>(&comes);
        let Outcome { spec, mut faults, given, unread } =
            checked_part(line, |spec| checked_ways::<S>(spec, &ways));
        let is_sound = faults.is_empty();
        for (key, asked) in S::FOLLOWING {
            let entry = given.get(key);
            faults.extend(entry.map(|e| (messages::of_problem(key, asked), Some(e.key.span()))));
        }
        // What is wrong with a row as a whole stands at its line.
        let whole = if line.is_empty() { row.span() } else { line.span() };
        self.faults.extend(faults.into_iter().map(|(f, span)| (f, span.or(Some(whole.clone())))));
        if is_sound && let Some((key, fault)) = self.refused(&spec, &given) {
            self.fault(fault, given[key].value_span());
        }
        if is_sound && let Some(key) = self.first.as_ref().and_then(|first| first.differs(&spec)) {
            self.fault(messages::other_work(key), whole);
        }
        if is_sound && self.count == 1 {
            self.first = Some(spec.clone());
        }
        if !unread.iter().any(|key| S::what(key).is_some()) {
            if self.rows.is_empty() {
                let places = given.into_iter().map(|(key, entry)| (key, entry.value_span().start));
                self.places = places.collect();
            }
            self.rows.push(Row { when, spec, ways });
        }
    }

    /// The key of a sound line that what the table says of all rows does not admit, and why.
    fn refused(
        &self,
        spec: &S,
        given: &HashMap<&'static str, Entry<'_>>,
    ) -> Option<(&'static str, SpecError)> {
        let value = |key: &str| given.get(key).map(|entry| entry.value_text());
        if self.header.is_invariant
            && let Some(key) = S::VARIES.and_then(|varies| varies(spec))
            && let Some(value) = value(key)
        {
            return Some((key, messages::varies(key, &value)));
        }
        let (key, needed) = S::ROUNDS?;
        let needed = needed(spec);
        let value = value(key).filter(|_| needed.is_none_or(|of| of > self.header.granted()))?;
        Some((key, messages::inexact((key, &value), needed)))
    }

    /// A condition, unless it is faulty, also one of which no problem is left; and the problems that come.
    fn condition(&mut self, tokens: &[Token], span: Span) -> (Option<Closure>, Problems) {
        let when = match Closure::read(S::CONDITION, tokens) {
            Ok(when) => when,
            Err(faults) => {
                for fault in faults {
                    let part = fault.tokens();
                    let part = part.map(|(first, last)| span.start + first..span.start + last + 1);
                    self.fault(fault, part.unwrap_or_else(|| span.clone()));
                }
                return (None, self.left.clone());
            }
        };
        let mut comes = self.left.clone();
        if let Some(always) = when.constant() {
            self.is_total |= always;
            self.fault(messages::constant(always), span);
        } else if let Some((_, row)) = self.conditions.iter().find(|(other, _)| *other == when) {
            let row = *row;
            self.fault(messages::repeated(row), span);
        } else {
            comes = self.left.take(&when);
            // By itself, whatever rows are before.
            let mut others = Problems::all();
            let own = others.take(&when);
            if ways::<S>(&own).is_empty() {
                self.fault(messages::constant(false), span);
            } else if ways::<S>(&others).is_empty() {
                self.is_total = true;
                self.fault(messages::constant(true), span);
            } else if ways::<S>(&comes).is_empty() {
                self.fault(messages::no_problem(), span);
            }
            self.conditions.push((when.clone(), self.count));
        }
        (Some(when), comes)
    }
}

/// The ways in which the arrays of problems may lie.
fn ways<S: Rows>(of: &Problems) -> Vec<usize> {
    (0..S::WAYS).filter(|way| of.any_of(&S::answers(*way))).collect()
}

/// Checks a line's kernels for arrays that lie in some ways; of those with faults the first one's are told.
fn checked_ways<S: Rows>(spec: &S, ways: &[usize]) -> Result<(), SpecErrors> {
    if ways.is_empty() {
        return spec.check();
    }
    for (nth, way) in ways.iter().enumerate() {
        let Err(faults) = spec.lying(*way).check() else { continue };
        // What is wrong however they lie is told as of a line alone.
        if nth == 0 && (spec.check().is_err() || ways.len() == 1) {
            return Err(faults);
        }
        let so: Vec<&str> =
            S::answers(*way).into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
        let so = so.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
        return Err(SpecErrors::of(
            faults.iter().map(|fault| messages::where_they_lie(fault, &so)),
        ));
    }
    Ok(())
}

/// Where `=>` stands, outside brackets.
fn arrow(row: Tokens<'_>) -> Option<usize> {
    let mut at = 0;
    while at < row.len() {
        let rest = row.after(at);
        if let [equals, more, ..] = rest.tokens()
            && equals.is('=')
            && more.is('>')
        {
            return Some(at);
        }
        // Both signs of `==`, `<=` and the like at once.
        let pair = matches!(rest.tokens(), [sign, equals, ..]
            if sign.kind == TokenKind::Punct { joint: true }
                && "=<>!".chars().any(|c| sign.is(c))
                && equals.is('='));
        at += if pair { 2 } else { rest.unit() };
    }
    None
}

/// The table that a text describes.
pub(crate) fn table_from_text<S: Rows>(line: &str) -> Result<KernelTable<S>, SpecErrors> {
    let (tokens, places) =
        text::tokens(line).map_err(|fault| super::fault_of_text(line, *fault))?;
    let located = |(fault, span): Fault| {
        let place = span.map(|span| places[span.start].start..places[span.end - 1].end);
        fault.with_excerpt(place.map(|place| Excerpt::of(line, place)))
    };
    let table = read::<S>(&tokens).finish();
    table.map_err(|faults| SpecErrors::of(faults.into_iter().map(located)))
}
