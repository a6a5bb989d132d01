mod calls;
mod folds;
mod hostile;
mod map;
mod plan;
mod published;
mod reduce;
mod resources;
mod rows;
mod scan;
mod sgemm;
mod sgemm_table;
mod table;
mod tensor;

use super::{SpecReader, Tokens, from_text};
use crate::error::{SpecErrors, quoted};
use crate::plan::{ReducePlan, SgemmPlan};
use crate::spec::{Datum, KeyKind, MapSpec, ReduceSpec, ScanSpec, SgemmSpec, Spec, Table};
use crate::syntax::lex;
use crate::tables::{KernelTable, TableFamily};
use crate::{Family, Plan};
use proc_macro2::TokenStream;
use proptest::prelude::*;
use proptest::sample::select;

/// Faulty specs of `sgemm_kernel!`.
const SGEMM: [&[Faulty]; 4] = [sgemm::SPECS, plan::SPECS, published::SPECS, resources::SPECS];

/// Text of a spec, with the marked tokens and the message of each of its faults. In a message,
/// `{keys}` stands for all keys of the family.
type Faulty = (&'static str, &'static [(&'static str, &'static str)]);

fn faults<S: Family + Table>(text: &str) -> Vec<(String, String)> {
    told(from_text::<S>(text))
}

/// Returns the marked tokens and the message of each fault.
fn told<T>(read: Result<T, SpecErrors>) -> Vec<(String, String)> {
    let Err(errors) = read else { return Vec::new() };
    let told = errors.iter().map(|fault| {
        let underlined = fault.excerpt().map_or(String::new(), |excerpt| {
            excerpt.text.chars().skip(excerpt.indent).take(excerpt.width).collect()
        });
        (underlined, fault.message().to_owned())
    });
    told.collect()
}

/// Parses a table without faults.
fn table<S: TableFamily>(text: &str) -> KernelTable<S> {
    text.parse().unwrap_or_else(|faults| panic!("`{text}`: {faults}"))
}

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

/// Returns the messages of a table's faults.
fn messages<T>(table: syn::Result<T>) -> Result<T, Vec<String>> {
    table.map_err(|error| error.into_iter().map(|fault| fault.to_string()).collect())
}

/// Inserts the list of keys into a message.
fn message<S: Family + Table>(of: &str) -> String {
    of.replace("{keys}", &quoted(&S::keys()))
}

fn check<S: Family + Table>(specs: &[Faulty]) {
    for (text, expected) in specs {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(at, of)| (at.to_string(), message::<S>(of))).collect();
        assert_eq!(faults::<S>(text), expected, "{text}");
    }
}

#[test]
fn every_fault_of_a_reduction_has_its_message_and_token() {
    check::<ReduceSpec>(reduce::SPECS);
}

#[test]
fn every_fault_of_an_elementwise_kernel_has_its_message_and_token() {
    check::<MapSpec>(map::SPECS);
}

#[test]
fn every_fault_of_a_scan_has_its_message_and_token() {
    check::<ScanSpec>(scan::SPECS);
}

#[test]
fn elementwise_kernels_are_printed_canonically() {
    let same = map::CANONICAL.iter().map(|text| (*text, *text));
    for (text, canonical) in same.chain(map::WRITTEN.iter().copied()) {
        let spec: MapSpec = text.parse().unwrap_or_else(|faults| panic!("`{text}`: {faults}"));
        assert_eq!(spec.to_string(), canonical);
        spec.plan().and_then(|plan| plan.program()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn folds_without_a_valid_type_suggest_one() {
    check::<ReduceSpec>(folds::SPECS);
    for line in folds::SOUND {
        let program = line.parse::<ReducePlan>().and_then(|plan| plan.program());
        assert!(program.is_ok(), "{line}: {}", program.map(drop).expect_err("refused"));
    }
}

#[test]
fn every_fault_of_a_product_has_its_message_and_token() {
    SGEMM.into_iter().for_each(check::<SgemmSpec>);
}

#[test]
fn a_fault_in_a_text_is_shown_beneath_its_line() {
    let Err(errors) = "op: sum,\n  block: 96, items: 0".parse::<ReduceSpec>() else {
        panic!("two faults were accepted");
    };
    let expected = "`block: 96` is not a power of two: the tree halves the block at every step; \
                    use 64 or 128
  |
2 |   block: 96, items: 0
  |          ^^

`items: 0`: a \
                    thread folds at least one item; use 1 or more
  |
2 |   block: 96, items: 0
  \
                    |                     ^";
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn tokens_and_text_give_the_same_messages() {
    for (text, expected) in SGEMM.into_iter().flatten() {
        let Ok(tokens) = text.parse::<TokenStream>() else { continue };
        let Err(error) = super::sgemm(tokens, false).plan else {
            panic!("{text} was accepted");
        };
        let messages: Vec<String> = error.into_iter().map(|e| e.to_string()).collect();
        let expected = expected.iter().map(|(_, of)| message::<SgemmSpec>(of));
        assert!(messages.into_iter().eq(expected), "{text}");
    }
}

#[test]
fn any_identifier_names_a_kernel() {
    for name in ["tid", "int", "max", "__x", "fn", "_1", "reduce_", "sgemm_mine"] {
        assert_eq!(faults::<ReduceSpec>(&format!("name: {name}")), []);
        assert_eq!(faults::<SgemmSpec>(&format!("tile: 32x32x8, name: {name}")), []);
    }
    let named = |name: &str| ReduceSpec::default().name(name).kernel_name();
    assert_eq!(named("max"), "reduce_max");
    assert_eq!(named("reduce_max"), "reduce_max");
    // C++ reserves names with two underscores in a row.
    for name in ["x", "_x", "__x", "x_", "reduce__x", "_reduce_x__"] {
        assert_eq!(named(name), "reduce_x", "{name}");
    }
    assert_eq!(named("a__b___c"), "reduce_a_b_c");
    assert_eq!(named("reduce"), "reduce_reduce");
    assert_eq!(SgemmSpec::default().name("reduce_max").kernel_name(), "sgemm_reduce_max");
}

#[test]
fn an_expression_that_is_given_twice_is_quoted_with_its_spaces() {
    let twice = |first: &str| {
        let text = format!("tile: 32x32x8, epilogue: {first}, epilogue: |acc| acc");
        faults::<SgemmSpec>(&text).pop().map(|(_, message)| message).unwrap_or_default()
    };
    assert_eq!(
        twice("|acc| max(acc,0.0)"),
        "`epilogue` is given twice, first as `epilogue: |acc| max(acc, 0.0)`; leave one out"
    );
    let long = twice(&format!("|acc| acc{}", " + acc".repeat(20)));
    assert!(long.contains("`epilogue: |acc| acc + acc +") && long.len() < 140, "{long}");
    // A value that could not be parsed is not quoted.
    assert_eq!(twice("|acc| acc +"), "`epilogue` is given twice; leave one out");
}

#[test]
fn renamed_keys_suggest_the_new_name() {
    let renamed = "unknown key `map`; it was renamed to `fragment`".to_owned();
    for text in ["tile: 32x32x8, map: split", "tile: 32x32x8, map: foo", "tile: 32x32x8, map"] {
        assert_eq!(faults::<SgemmSpec>(text), [("map".to_owned(), renamed.clone())], "{text}");
    }
    assert!(!faults::<ReduceSpec>("map: split")[0].1.contains("fragment"));
    for (once, now) in super::RENAMED {
        let has = |name| SgemmSpec::keys().contains(&name);
        assert!(!has(once) && has(now), "{once}, {now}");
    }
}

#[test]
fn none_delimited_groups_are_transparent() {
    use proc_macro2::{Delimiter, Group, TokenTree};
    let tokens = |text: &str| -> TokenStream { text.parse().expect("tokens") };
    let group = |inner| TokenStream::from(TokenTree::from(Group::new(Delimiter::None, inner)));
    for (key, value, line) in [
        ("tile:", "64x64x8", "tile: 64x64x8, thread: 4x4"),
        ("float4, tile:", "64x64x8", "tile: 64x64x8, thread: 4x4, float4"),
        (
            "tile: 64x64x8, epilogue:",
            "|acc| max(acc, 0.0)",
            "tile: 64x64x8, thread: 4x4, epilogue: |acc| max(acc, 0.0)",
        ),
    ] {
        // A user's macro passes the fragment on, directly or through a second macro.
        for value in [group(tokens(value)), group(group(tokens(value)))] {
            let mut all = tokens(key);
            all.extend(value);
            all.extend(tokens(", thread: 4x4"));
            let spec = super::sgemm(all, false).plan.map(|plan| plan.spec().to_string());
            assert_eq!(spec.map_err(|error| error.to_string()).as_deref(), Ok(line));
        }
    }
    // A fragment in an expression is one operand, as if in parentheses.
    let mut all = tokens("epilogue: |acc| acc *");
    all.extend(group(tokens("acc + 1.0")));
    let spec = super::sgemm(all, false).plan.map(|plan| plan.spec().to_string());
    assert_eq!(spec.ok().as_deref(), Some("epilogue: |acc| acc * (acc + 1.0)"));
}

#[test]
fn order_commas_and_angle_brackets_do_not_matter() {
    let plain = "tile: 128x128x8, thread: 8x8, double_buffer".parse::<SgemmPlan>();
    assert!(plain.is_ok());
    for other in [
        "double_buffer, thread: 8x8, tile: 128x128x8",
        "tile: 128x128x8, thread: 8x8, double_buffer,",
        "<tile: 128x128x8, thread: 8x8, double_buffer>",
        " < tile : 128x128x8 ,\n thread:8x8,double_buffer, > // the same",
    ] {
        assert_eq!(other.parse(), plain, "{other}");
    }
}

/// Any value of a kind that the DSL can write.
fn datum(kind: KeyKind) -> BoxedStrategy<Datum> {
    match kind {
        KeyKind::Flag => Just(Datum::Flag).boxed(),
        KeyKind::Number => any::<u32>().prop_map(Datum::Number).boxed(),
        KeyKind::NumberOr(word) => {
            let number = any::<u32>().prop_map(Datum::Number);
            prop_oneof![number, Just(Datum::Word(word.to_owned()))].boxed()
        }
        KeyKind::Size { dims, .. } => {
            proptest::collection::vec(1..=u32::MAX, dims).prop_map(Datum::Size).boxed()
        }
        KeyKind::Word(words) => select(words).prop_map(|w| Datum::Word(w.to_owned())).boxed(),
        KeyKind::Name => "[a-zA-Z_][a-zA-Z0-9_]{0,8}".prop_map(Datum::Word).boxed(),
        KeyKind::Closure(scope) => {
            let closure = move |(seed, depth)| crate::expr::random::closure(scope, seed, depth);
            (any::<u64>(), 0..5u32).prop_map(closure).prop_map(Datum::Closure).boxed()
        }
    }
}

/// Any spec that the DSL can write, sound or not.
fn spec<S: Family + Table>() -> impl Strategy<Value = S> {
    let data: Vec<_> = S::KEYS.iter().map(|key| proptest::option::of(datum(key.kind))).collect();
    data.prop_map(|data| {
        let mut spec = S::default();
        for (key, datum) in S::KEYS.iter().zip(data) {
            if let Some(datum) = datum {
                assert!((key.set)(&mut spec, &datum), "{}", key.name);
            }
        }
        spec
    })
}

fn prints_and_parses_back<S: Family + Table>(spec: &S) {
    let line = spec.to_string();
    let Ok((tokens, _)) = lex(&line) else { panic!("{line}") };
    let reader = SpecReader::<S>::read(Tokens::all(&tokens), S::default());
    assert!(reader.faults.is_empty(), "{line}");
    assert_eq!(&reader.spec, spec, "{line}");
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    #[test]
    fn a_reduction_prints_and_parses_back(spec in spec::<ReduceSpec>()) {
        prints_and_parses_back(&spec);
    }

    #[test]
    fn a_product_prints_and_parses_back(spec in spec::<SgemmSpec>()) {
        prints_and_parses_back(&spec);
    }

    #[test]
    fn printing_and_parsing_preserves_the_plan_of_reductions(spec in spec::<ReduceSpec>()) {
        prop_assert_eq!(spec.to_string().parse().ok(), spec.plan().ok());
    }

    #[test]
    fn printing_and_parsing_preserves_the_plan_of_gemms(spec in spec::<SgemmSpec>()) {
        prop_assert_eq!(spec.to_string().parse().ok(), spec.plan().ok());
    }
}
