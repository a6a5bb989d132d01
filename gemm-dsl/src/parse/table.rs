//! Parsing of tables. Semicolons separate the rules; a rule is a condition, `=>` and a spec.

mod messages;
use super::{Entry, Fault, MAX_FAULTS, Outcome, planned_by};
use crate::error::{Excerpt, SpecError, SpecErrors};
use crate::expr::{Closure, ProblemSet};
use crate::family::Family;
use crate::parse::messages::too_many;
use crate::spec::{Accuracy, ReduceSpec, SgemmSpec, UnknownWord};
use crate::syntax::{MAX_TEXT, Span, Token, TokenKind, Tokens, lex};
use crate::tables::{ACCURACY, Header, INVARIANT, KernelTable, ReadTable, Rule, RuleSpec};
use std::collections::HashMap;

/// Maximum number of rules of a table.
pub(super) const MAX_RULES: usize = 256;
/// Tokens of an entry such as `a: bf16`.
const ENTRY: usize = 3;

/// Result of reading a table.
pub(super) struct TableOutcome<S: Family> {
    /// The table, or all faults.
    pub table: Result<KernelTable<S>, Vec<Fault>>,
    /// Earliest rule whose keys that affect the result could be parsed. It may have other faults.
    pub first_parsed: Option<ParsedRule<S>>,
    /// Spec with the entries before the rules, and the first token of these entries.
    pub heading: Option<(S, usize)>,
}

/// Spec of a rule, and the start of each key's value.
pub(super) type ParsedRule<S> = (S, HashMap<&'static str, usize>);

/// Parses and checks a table.
pub(super) fn read<S: RuleSpec>(tokens: &[Token]) -> TableOutcome<S> {
    let mut table = TableReader::<S> {
        rules: Vec::new(),
        first_parsed: None,
        faults: Vec::new(),
        header: Header::default(),
        left: ProblemSet::all(),
        conditions: Vec::new(),
        reference: None,
        count: 0,
        has_else: false,
        is_total: false,
        heading: Heading::default(),
    };
    let mut rest = Tokens::all(tokens);
    while !rest.is_empty() {
        let rule = rest.until(|token| token.is(';'));
        rest = rest.after(rule.len() + 1);
        if rule.is_empty() || table.is_heading(rule) || table.is_word(rule) {
            continue;
        }
        if table.count == MAX_RULES {
            table.faults.push((messages::too_many_rules(MAX_RULES), Some(rule.span())));
            // The remaining tokens are not read, and they may contain the missing `else`.
            table.is_total = true;
            break;
        }
        table.count += 1;
        table.rule(rule);
    }
    if !table.has_else && !table.is_total {
        let last = tokens.len().checked_sub(1).map(|last| last..last + 1);
        table.faults.push((messages::no_else(), last));
    }
    let TableReader { rules, first_parsed, mut faults, header, heading, .. } = table;
    if faults.is_empty() {
        // A macro passes its table on as text that is parsed again, and text has a maximum length.
        let bytes: usize = rules.iter().map(|rule| rule.to_string().len() + ";\n".len()).sum();
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
    let table = if faults.is_empty() { Ok(KernelTable::new(rules, header)) } else { Err(faults) };
    TableOutcome { table, first_parsed, heading: heading.at.map(|at| (heading.start, at)) }
}

struct TableReader<S: Family> {
    rules: Vec<Rule<S>>,
    /// See [`TableOutcome::first_parsed`].
    first_parsed: Option<ParsedRule<S>>,
    faults: Vec<Fault>,
    header: Header,
    /// Problems that no earlier rule matches.
    left: ProblemSet,
    /// Valid conditions, each with the number of its rule.
    conditions: Vec<(Closure, usize)>,
    /// Spec of the first rule, if it has a plan. The other rules must compute the same function.
    reference: Option<S>,
    /// Number of rules so far.
    count: usize,
    /// True once there was an `else`.
    has_else: bool,
    /// True if a faulty rule matches all remaining problems, or may be meant to match them.
    is_total: bool,
    heading: Heading<S>,
}

/// Entries that precede the rules and apply to all of them.
#[derive(Default)]
struct Heading<S> {
    /// Spec with these entries alone.
    start: S,
    /// First token of the entries, if there are any.
    at: Option<usize>,
    is_faulty: bool,
}

impl<S: RuleSpec> TableReader<S> {
    fn fault(&mut self, fault: SpecError, span: Span) {
        self.faults.push((fault, Some(span)));
    }

    /// Reads a header such as `invariant`. Returns false if it is a rule.
    fn is_word(&mut self, rule: Tokens<'_>) -> bool {
        let none = rule.after(rule.len());
        let (word, again, head, rest) = match rule.tokens() {
            [word] if S::VARIES.is_some() && word.text == INVARIANT => {
                let again = std::mem::replace(&mut self.header.is_invariant, true);
                (INVARIANT, again, rule, none)
            }
            [word, colon, ..] if S::ROUNDS.is_some() && word.text == ACCURACY && colon.is(':') => {
                let (head, rest) = self.accuracy_and_rest(rule);
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
            self.rule(rest);
        }
        true
    }

    /// Reads entries that apply to all rules, such as `a: bf16, b: bf16`. Returns false if these
    /// are no such entries.
    fn is_heading(&mut self, rule: Tokens<'_>) -> bool {
        let is_entry = |rest: Tokens<'_>| {
            matches!(rest.tokens(), [key, colon, ..]
                if colon.is(':') && S::HEADING.iter().any(|name| key.text == *name))
        };
        if !is_entry(rule) {
            return false;
        }
        let mut end = rule.len();
        if arrow(rule).is_some() {
            // A rule follows without a semicolon.
            end = 0;
            while is_entry(rule.after(end)) && end + ENTRY <= rule.len() {
                end += ENTRY;
                end += usize::from(rule.get(end).is_some_and(|comma| comma.is(',')));
            }
        }
        let (head, rest) = (rule.first(end), rule.after(end));
        let again = self.heading.at.is_some();
        if self.count > 0 || again {
            self.fault(messages::late_word(&head[0].text, again), head.first(1).span());
        } else {
            self.heading(head);
        }
        if !rest.is_empty() {
            let (text, next) = (head.text(), rest.first(1));
            self.fault(messages::no_semicolon_after_types(&text, &next.text()), next.span());
            self.count += 1;
            self.rule(rest);
        }
        true
    }

    /// Reads the entries that apply to all rules.
    fn heading(&mut self, head: Tokens<'_>) {
        let Outcome { spec, plan, given, .. } = planned_by(head, S::default(), S::plan);
        let mut faults = plan.err().unwrap_or_default();
        for (key, entry) in &given {
            if !S::HEADING.contains(key) {
                faults.push((messages::not_of_table(key, S::HEADING), Some(entry.key.span())));
            }
        }
        let at = Some(head.span().start);
        self.heading = Heading { start: spec, at, is_faulty: !faults.is_empty() };
        let located = |(fault, span): Fault| (fault, span.or(Some(head.span())));
        self.faults.extend(faults.into_iter().map(located));
    }

    /// Splits the tokens if a rule follows an `accuracy` header without a semicolon.
    fn accuracy_and_rest<'t>(&mut self, rule: Tokens<'t>) -> (Tokens<'t>, Tokens<'t>) {
        const HEAD: usize = 3;
        let is_class = rule.get(2).is_some_and(|word| word.text.parse::<Accuracy>().is_ok());
        if !is_class || arrow(rule).is_none() {
            return (rule, rule.after(rule.len()));
        }
        let (head, rest) = (rule.first(HEAD), rule.after(HEAD));
        let fault = messages::no_semicolon(&head[2].text, &rest.first(1).text());
        self.fault(fault, rest.first(1).span());
        (head, if rest[0].is(',') { rest.after(1) } else { rest })
    }

    /// Returns the accuracy class. Reports an unknown word, and then returns the least strict
    /// class.
    fn accuracy(&mut self, rule: Tokens<'_>) -> Accuracy {
        let class = rule.after(2);
        class.text().parse().unwrap_or_else(|fault: UnknownWord| {
            let span = if class.is_empty() { rule.span() } else { class.span() };
            self.fault(messages::no_accuracy(&fault), span);
            Accuracy::Norm
        })
    }

    fn rule(&mut self, rule: Tokens<'_>) {
        let Some(arrow) = arrow(rule) else {
            self.is_total |= rule[0].text == "else";
            return self.fault(
                messages::no_arrow(S::CONDITION.example, S::LINE, &rule.text()),
                rule.span(),
            );
        };
        let (head, line) = (rule.first(arrow), rule.after(arrow + 2));
        if head.is_empty() {
            self.is_total = true;
            return self.fault(messages::no_condition(S::CONDITION.example), rule.first(2).span());
        }
        if self.has_else {
            self.fault(messages::behind_else(), rule.span());
        }
        let (when, comes) = match head.tokens() {
            [word] if word.text == "else" => {
                if !self.has_else && layouts::<S>(&self.left).is_empty() {
                    self.fault(messages::no_problem(), head.span());
                }
                self.has_else = true;
                (None, self.left.clone())
            }
            tokens => self.condition(tokens, head.span()),
        };
        let layouts = layouts::<S>(&comes);
        let Outcome { spec, plan, given, unread } =
            planned_by(line, self.heading.start.clone(), |spec| kernels::<S>(spec, &layouts));
        let (kernels, mut faults) = match plan {
            Ok(kernels) => (Some(kernels), Vec::new()),
            Err(faults) => (None, faults),
        };
        for (key, asked) in S::FOLLOWING {
            let entry = given.get(key);
            faults.extend(entry.map(|e| (messages::of_problem(key, asked), Some(e.key.span()))));
        }
        let is_of_heading = |fault: &SpecError| fault.keys().iter().any(|k| S::HEADING.contains(k));
        if self.heading.is_faulty {
            faults.retain(|(fault, _)| !is_of_heading(fault));
        }
        for key in S::HEADING {
            let entry = given.get(key);
            let fault = |entry: &Entry<'_>| messages::of_table(key, &entry.value_text());
            faults.extend(entry.map(|entry| (fault(entry), Some(entry.key.span()))));
        }
        // Faults that concern a whole rule are reported at its spec.
        let whole = if line.is_empty() { rule.span() } else { line.span() };
        self.faults.extend(faults.into_iter().map(|(f, span)| (f, span.or(Some(whole.clone())))));
        if kernels.is_some()
            && let Some((key, fault)) = self.refused(&spec, &given)
        {
            self.fault(fault, given[key].value_span());
        }
        if let Some(kernels) = kernels {
            if let Some(key) = self.reference.as_ref().and_then(|first| first.differs(&spec)) {
                self.fault(messages::other_work(key), whole);
            }
            if self.count == 1 {
                self.reference = Some(spec.clone());
            }
            self.rules.push(Rule { when, spec: spec.clone(), kernels });
        }
        if self.first_parsed.is_none() && !unread.iter().any(|key| S::what(key).is_some()) {
            let starts = given.into_iter().map(|(key, entry)| (key, entry.value_span().start));
            self.first_parsed = Some((spec, starts.collect()));
        }
    }

    /// Returns the key of a valid spec that the table's header forbids, with the fault.
    fn refused(
        &self,
        spec: &S,
        given: &HashMap<&'static str, Entry<'_>>,
    ) -> Option<(&'static str, SpecError)> {
        let value = |key: &str| given.get(key).map(|entry| entry.value_text());
        // The instruction decides the arithmetic of a spec that does not give it.
        let decisive = |key| if key == "arith" && value(key).is_none() { "mma" } else { key };
        if self.header.is_invariant
            && let Some(key) = S::VARIES.and_then(|varies| varies(spec)).map(decisive)
            && let Some(value) = value(key)
        {
            return Some((key, messages::varies(key, &value)));
        }
        let (key, needed) = S::ROUNDS?;
        let needed = needed(spec);
        let value = value(key).filter(|_| needed.is_none_or(|of| of > self.header.granted()))?;
        Some((key, messages::inexact(key, &value, needed)))
    }

    /// Reads a condition. Returns the closure, unless it could not be parsed, and the problems that
    /// reach the rule and match the condition. The closure is also returned if no problem matches
    /// it.
    fn condition(&mut self, tokens: &[Token], span: Span) -> (Option<Closure>, ProblemSet) {
        let when = match Closure::read(S::CONDITION, tokens) {
            Ok(when) => when,
            Err(faults) => {
                for fault in faults {
                    let part = fault.tokens();
                    let part = part.map(|at| span.start + at.first..span.start + at.last + 1);
                    self.fault(fault, part.unwrap_or_else(|| span.clone()));
                }
                return (None, self.left.clone());
            }
        };
        let mut comes = self.left.clone();
        if let Some(always) = when.constant() {
            self.is_total |= always;
            self.fault(messages::constant(always), span);
        } else if let Some((_, rule)) = self.conditions.iter().find(|(other, _)| *other == when) {
            let rule = *rule;
            self.fault(messages::repeated(rule), span);
        } else {
            comes = self.left.take(&when);
            // Problems that match the condition alone, without regard to earlier rules.
            let mut others = ProblemSet::all();
            let own = others.take(&when);
            if layouts::<S>(&own).is_empty() {
                self.fault(messages::constant(false), span);
            } else if layouts::<S>(&others).is_empty() {
                self.is_total = true;
                self.fault(messages::constant(true), span);
            } else if layouts::<S>(&comes).is_empty() {
                self.fault(messages::no_problem(), span);
            }
            self.conditions.push((when.clone(), self.count));
        }
        (Some(when), comes)
    }
}

/// Returns the layouts that the arrays of these problems can have.
fn layouts<S: RuleSpec>(of: &ProblemSet) -> Vec<usize> {
    (0..S::LAYOUTS).filter(|layout_index| of.any_of(&S::answers(*layout_index))).collect()
}

/// Plans a rule for each layout. If it has faults in several layouts, those of the first are
/// reported.
fn kernels<S: RuleSpec>(spec: &S, layouts: &[usize]) -> Result<Vec<(usize, S::Plan)>, SpecErrors> {
    if layouts.is_empty() {
        return spec.plan().map(|_| Vec::new());
    }
    let mut kernels = Vec::with_capacity(layouts.len());
    for layout_index in layouts {
        match spec.plan_for_layout(*layout_index) {
            Ok(plan) => kernels.push((*layout_index, plan)),
            // Faults that occur in every layout are reported without the name of a layout.
            Err(faults) if kernels.is_empty() && (layouts.len() == 1 || spec.plan().is_err()) => {
                return Err(faults);
            }
            Err(faults) => return Err(for_layout::<S>(&faults, *layout_index)),
        }
    }
    Ok(kernels)
}

/// Adds the name of a layout to the faults that a rule has in this layout.
fn for_layout<S: RuleSpec>(faults: &SpecErrors, layout_index: usize) -> SpecErrors {
    let so = S::answers(layout_index).into_iter().filter(|(_, is)| *is);
    let so = so.map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    SpecErrors::new(faults.iter().map(|fault| messages::for_layout(fault, &so)))
}

/// Returns the index of `=>` outside all brackets.
fn arrow(rule: Tokens<'_>) -> Option<usize> {
    let mut at = 0;
    while at < rule.len() {
        let rest = rule.after(at);
        if let [equals, more, ..] = rest.tokens()
            && equals.is('=')
            && more.is('>')
        {
            return Some(at);
        }
        // An operator such as `==` or `<=` is skipped as a whole.
        let pair = matches!(rest.tokens(), [sign, equals, ..]
            if sign.kind == TokenKind::Punct { joint: true }
                && "=<>!".chars().any(|c| sign.is(c))
                && equals.is('='));
        at += if pair { 2 } else { rest.unit() };
    }
    None
}

/// Parses a table given as text.
fn from_text<S: RuleSpec>(line: &str) -> Result<KernelTable<S>, SpecErrors> {
    let (tokens, places) = lex(line).map_err(|fault| fault.in_text(line))?;
    let located = |(fault, span): Fault| {
        let place = span.map(|span| places[span.start].start..places[span.end - 1].end);
        fault.with_excerpt(place.map(|place| Excerpt::new(line, place)))
    };
    let table = read::<S>(&tokens).table;
    table.map_err(|faults| SpecErrors::new(faults.into_iter().map(located)))
}

impl ReadTable for ReduceSpec {
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors> {
        from_text(text)
    }
}

impl ReadTable for SgemmSpec {
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors> {
        from_text(text)
    }

    fn heading(&self) -> String {
        Self::default().a(self.a).b(self.b).c(self.c).to_string()
    }

    fn without_heading(&self) -> Self {
        let Self { a, b, c, .. } = Self::default();
        self.clone().a(a).b(b).c(c)
    }
}
