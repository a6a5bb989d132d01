//! Family that exists only for this test. Its keys are declared only in its table, from which the
//! grammar, the checks, the documentation and the random specs follow.

use super::table::{ActsOn, Key, Suggestion, Table, Typed, derived_name, spec, words};
use super::{Datum, KeyKind, Pairs, Rect, ReduceSpec, SgemmSpec, Spec};
use crate::artifact::Interface;
use crate::error::SpecErrors;
use crate::family::{Family, Plan};
use crate::ir::{List, VerifiedProgram};
use crate::parse::from_text;
use crate::plan::Faults;
use std::str::FromStr;

words! {
    Pace {
        /// Not fast.
        Slow = "slow",
        /// Fast.
        Fast = "fast",
    }
}

/// Kernels with `pace: fast`.
const FAST: ActsOn<ProbeSpec> = ActsOn {
    includes: |spec| spec.pace == Pace::Fast,
    rests_on: &["pace"],
    because: "nothing is in a hurry",
    suggestion: Suggestion::Or("add `pace: fast`"),
};

impl super::table::Follow for ProbeSpec {}

spec! {
    /// Spec of a family for tests.
    ProbeSpec for "probe_kernel", functions "probe_" {
        /// Pace of the kernel.
        pace(Pace): Pace = Pace::Slow, "{}", what;
        /// Depth of the kernel,
        /// at least two.
        depth(u32): Option<u32> = None, "depth{}", least 2 "one is none",
            what(Inputs) as ProbeSpec::levels;
        /// Area of the kernel.
        area(Rect): Rect = Rect::new(1, 1), "{}";
        /// Runs without a stop.
        rush(bool): bool = false, "rush", on FAST;
    }
}

impl ProbeSpec {
    fn levels(&self) -> u32 {
        self.depth.unwrap_or(2)
    }
}

impl Family for ProbeSpec {
    type Plan = ProbePlan;

    fn plan(&self) -> Result<ProbePlan, SpecErrors> {
        let mut faults = Faults::default();
        faults.check_minimums(self);
        faults.check_acting(self);
        faults.finish().map(|_| ProbePlan(self.clone()))
    }

    fn interface(&self) -> Interface {
        Interface::Gemm { operands: List::EMPTY, batch: None, pairs: Pairs::None }
    }
}

impl FromStr for ProbeSpec {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        text.parse().map(|ProbePlan(spec)| spec)
    }
}

/// Plan without kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePlan(ProbeSpec);

impl Plan for ProbePlan {
    type Spec = ProbeSpec;

    fn spec(&self) -> &ProbeSpec {
        &self.0
    }

    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        Err(SpecErrors::new([]))
    }
}

impl FromStr for ProbePlan {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<ProbeSpec>(text)
    }
}

fn messages(text: &str) -> Vec<String> {
    let errors = text.parse::<ProbeSpec>().err();
    errors.iter().flat_map(SpecErrors::iter).map(|fault| fault.message().to_owned()).collect()
}

#[test]
fn a_row_is_all_that_grammar_and_printing_need() {
    let line = "name: mine, pace: fast, depth: 3, area: 4x2, rush";
    let spec = line.parse::<ProbeSpec>();
    assert_eq!(spec.as_ref().map(ToString::to_string).as_deref(), Ok(line));
    let built = ProbeSpec::default().name("mine").pace(Pace::Fast).depth(3).area(Rect::new(4, 2));
    assert_eq!(spec, Ok(built.clone().rush(true)));
    assert_eq!(derived_name("probe".into(), &built), "probe_fast_depth3_4x2");
    assert_eq!(messages("dept: 3"), ["unknown key `dept`; did you mean `depth`?"]);
    assert_eq!(messages("fast"), ["unknown key `fast`; did you mean `pace: fast`?"]);
}

#[test]
fn a_row_is_all_that_the_checks_need() {
    assert_eq!(messages("depth: 1"), ["`depth: 1`: one is none; use 2 or more"]);
    assert_eq!(
        messages("rush"),
        ["`rush` has no effect: nothing is in a hurry; add `pace: fast`, or leave `rush` out"]
    );
    assert_eq!(messages("rush, pace: fast, depth: 2"), [""; 0]);
    let empty = ProbeSpec::default().area(Rect::new(0, 3)).plan().map_err(|e| e.to_string());
    let expected = "`area: 0x3` has a dimension of 0; every dimension must be at least 1";
    assert_eq!(empty.err().as_deref(), Some(expected));
}

/// Only marked keys affect the result: by the value of their field, or by the given property of the
/// spec.
#[test]
fn a_row_is_all_that_tables_need() {
    let spec = ProbeSpec::default();
    let fast = spec.clone().pace(Pace::Fast);
    assert_eq!((spec.differs(&fast), fast.differs(&spec)), (Some("pace"), Some("pace")));
    assert_eq!(spec.differs(&spec.clone().depth(2)), None);
    assert_eq!(spec.differs(&spec.clone().depth(3)), Some("depth"));
    assert_eq!(spec.differs(&spec.clone().name("mine").area(Rect::new(2, 2)).rush(true)), None);
    let types = |key| ProbeSpec::what(key).map(|what| what.types);
    let expected = [Some(&[][..]), Some(&[Typed::Inputs][..]), None];
    assert_eq!(["pace", "depth", "area"].map(types), expected);
    let other = fast.clone().depth(3).area(Rect::new(2, 2));
    assert_eq!(spec.rush(true).computing(&other), fast.depth(3).rush(true));
}

/// Keys in which the rules of a table must not differ.
#[test]
fn keys_of_what_is_computed_are_marked() {
    fn marked<S: Table>() -> Vec<&'static str> {
        S::KEYS.iter().filter(|key| key.what.is_some()).map(|key| key.name).collect()
    }
    let of_reductions = [
        "op",
        "fold",
        "identity",
        "map",
        "finish",
        "type",
        "acc",
        "with_value",
        "topk",
        "result",
        "index",
        "compensated",
        "over",
        "pitched",
    ];
    assert_eq!(marked::<ReduceSpec>(), of_reductions);
    let of_products = ["a", "b", "c", "batch", "scaled", "epilogue"];
    assert_eq!(marked::<SgemmSpec>(), of_products);
    // Keys from which a macro derives the type of a kernel.
    fn typed<S: Table>(of: Typed) -> Vec<&'static str> {
        let is_typed =
            |key: &&Key<S>| key.what.as_ref().is_some_and(|what| what.types.contains(&of));
        S::KEYS.iter().filter(is_typed).map(|key| key.name).collect()
    }
    assert_eq!(typed::<ReduceSpec>(Typed::Inputs), ["map", "finish", "type"]);
    let of_results = ["op", "fold", "finish", "type", "acc", "with_value", "result", "index"];
    assert_eq!(typed::<ReduceSpec>(Typed::Results), of_results);
    assert_eq!(typed::<SgemmSpec>(Typed::Inputs), ["scaled", "epilogue"]);
}

#[test]
fn a_row_is_all_that_documentation_and_random_specs_need() {
    let table: Vec<_> = ProbeSpec::table()
        .into_iter()
        .skip(1)
        .map(|key| (key.name, key.meaning.trim(), key.kind, key.default))
        .collect();
    let size = KeyKind::Size { form: "MxN", example: "8x8", dims: 2 };
    let expected = [
        ("pace", "Pace of the kernel.", KeyKind::Word(&["slow", "fast"]), "slow".to_owned()),
        ("depth", "Depth of the kernel, at least two.", KeyKind::Number, String::new()),
        ("area", "Area of the kernel.", size, "1x1".to_owned()),
        ("rush", "Runs without a stop.", KeyKind::Flag, String::new()),
    ];
    assert_eq!(table, expected);
    let words: Vec<_> = ProbeSpec::table().into_iter().map(|key| key.words).collect();
    assert_eq!(words, [&[][..], &[" Not fast.", " Fast."], &[], &[], &[]]);

    let mut spec = ProbeSpec::default();
    assert!(spec.set("depth", &Datum::Number(5)) && spec.set("rush", &Datum::Flag));
    assert!(!spec.set("depth", &Datum::Flag) && !spec.set("width", &Datum::Flag));
    assert_eq!(spec.to_string(), "depth: 5, rush");
    spec.reset("depth");
    assert_eq!(spec.to_string(), "rush");
    spec.reset("rush");
    assert_eq!(spec, ProbeSpec::default());
    assert_eq!(ProbeSpec::KEYS.len(), 1 + expected.len());
    assert_eq!(ProbeSpec::keys(), ["name", "pace", "depth", "area", "rush"]);
}
