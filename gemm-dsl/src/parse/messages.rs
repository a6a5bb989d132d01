use crate::error::{SpecError, quoted};
use crate::spec::KeyKind;

pub(crate) fn too_many(more: usize) -> SpecError {
    let faults = if more == 1 { "fault is" } else { "faults are" };
    SpecError::at_key(&[], format!("{more} more {faults} not listed; fix the listed ones first"))
}

pub(crate) fn open_angle() -> SpecError {
    SpecError::at_key(&[], "`<` is not closed; end the spec with `>`, or leave `<` out".into())
}

pub(crate) fn close_angle() -> SpecError {
    SpecError::at_key(
        &[],
        "`>` has no matching `<`; start the spec with `<`, or leave `>` out".into(),
    )
}

pub(crate) fn empty_entry() -> SpecError {
    SpecError::at_key(&[], "expected a key before `,`; leave the comma out".into())
}

pub(crate) fn not_a_key(found: &str) -> SpecError {
    SpecError::at_key(
        &[],
        format!("expected a key, found `{found}`; write `key: value`, or a flag"),
    )
}

pub(crate) fn missing_comma(next: &str) -> SpecError {
    SpecError::at_key(&[], format!("expected `,` before `{next}`"))
}

pub(crate) fn twice(value: &str) -> SpecError {
    SpecError::at_key(&[], format!("`{value}` is given twice; remove one"))
}

pub(crate) fn not_a_comma(found: &str) -> SpecError {
    SpecError::at_key(&[], format!("expected `,`, found `{found}`"))
}

pub(crate) fn missing_colon(key: &str, found: &str) -> SpecError {
    SpecError::at_key(&[], format!("expected `:` after `{key}`, found `{found}`"))
}

pub(crate) fn second_colon(key: &str) -> SpecError {
    SpecError::at_key(&[], format!("one `:` is enough after `{key}`; leave this one out"))
}

/// Key that the user probably meant by an unknown key.
pub(crate) enum Meant {
    /// Another key with a similar name.
    Key(&'static str),
    /// The key's current name; the given one is an older name.
    Renamed(&'static str),
    /// A word that is the value of a key.
    Word(&'static str, &'static str),
    /// A key of another macro.
    Macro(&'static str),
    /// A name from another library or from Rust, with the remedy.
    Foreign(&'static str),
    /// No such key was found; the message lists all keys.
    Unclear,
    /// No such key was found, and an earlier message lists all keys.
    UnclearAgain,
}

pub(crate) fn unknown_key(key: &str, meant: &Meant, this_macro: &str, keys: &[&str]) -> SpecError {
    let hint = match meant {
        Meant::Key(other) => format!("; did you mean `{other}`?"),
        Meant::Renamed(other) => format!("; it was renamed to `{other}`"),
        Meant::Word(other, word) => format!("; did you mean `{other}: {word}`?"),
        Meant::Macro(other) => {
            format!(": it belongs to `{other}!`, not to `{this_macro}!`; leave it out")
        }
        Meant::Foreign(remedy) => format!("; {remedy}"),
        Meant::Unclear => format!("; the keys of `{this_macro}!` are {}", quoted(keys)),
        Meant::UnclearAgain => String::new(),
    };
    SpecError::at_key(&[], format!("unknown key `{key}`{hint}"))
}

pub(crate) fn duplicate(key: &'static str, first: &str) -> SpecError {
    SpecError::at_key(
        &[key],
        match first {
            "" => format!("`{key}` is given twice; leave one out"),
            first => format!("`{key}` is given twice, first as `{key}: {first}`; leave one out"),
        },
    )
}

pub(crate) fn missing_value(key: &'static str, kind: KeyKind) -> SpecError {
    SpecError::at_key(&[key], format!("`{key}` needs a value: {}", expected(kind)))
}

pub(crate) fn flag_with_value(key: &'static str) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}` is a flag and takes no value; write `{key}` alone, or leave it out"),
    )
}

pub(crate) fn wrong_kind(key: &'static str, kind: KeyKind, found: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}` takes {}, not `{found}`", expected(kind)))
}

fn expected(kind: KeyKind) -> String {
    match kind {
        KeyKind::Flag => "nothing".into(),
        KeyKind::Number => "a whole number".into(),
        KeyKind::NumberOr(word) => format!("a whole number or `{word}`"),
        KeyKind::Size { form, example, .. } => format!("a size {form} such as `{example}`"),
        KeyKind::Word(words) => format!("one of {}", quoted(words)),
        KeyKind::Name => "an identifier".into(),
        KeyKind::Closure(scope) => format!("an expression such as `{}`", scope.example),
    }
}

pub(crate) fn unknown_word(
    key: &'static str,
    word: &str,
    words: &[&str],
    close: Option<&str>,
) -> SpecError {
    let hint = close.map_or(String::new(), |close| format!("; did you mean `{close}`?"));
    SpecError::at_value(
        &[key],
        format!("`{key}` takes one of {}, not `{word}`{hint}", quoted(words)),
    )
}

pub(crate) fn spaces(key: &'static str, found: &str, joined: &str) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}: {found}` has spaces within a size; write `{joined}`"),
    )
}

/// Returns the advice `one`, or for a size the advice `several` with an example.
fn numbers(kind: KeyKind, one: &str, several: &str) -> String {
    match kind {
        KeyKind::Size { example, .. } => format!("{several}, as in `{example}`"),
        _ => one.to_owned(),
    }
}

pub(crate) fn negative(key: &'static str, kind: KeyKind, found: &str) -> SpecError {
    let advice = numbers(kind, "use a positive number", "use positive numbers");
    SpecError::at_value(&[key], format!("`{key}: {found}` is negative; {advice}"))
}

/// `plain` is the value without underscores.
pub(crate) fn underscores(key: &'static str, found: &str, plain: &str) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}: {found}` has `_` within a number; write `{plain}`"),
    )
}

/// Quotes a value, and `part`, a number of it; a value of one number is quoted once.
fn quoted_part(key: &str, found: &str, part: &str) -> String {
    if found == part { format!("`{key}: {found}`") } else { format!("`{key}: {found}`: `{part}`") }
}

pub(crate) fn fraction(key: &'static str, kind: KeyKind, found: &str, part: &str) -> SpecError {
    let (quote, advice) =
        (quoted_part(key, found, part), numbers(kind, "use a whole number", "use whole numbers"));
    SpecError::at_value(&[key], format!("{quote} is a fraction; {advice}"))
}

pub(crate) fn not_decimal(key: &'static str, kind: KeyKind, found: &str, part: &str) -> SpecError {
    let (quote, digits) = (quoted_part(key, found, part), "use only the digits 0 to 9");
    let advice = numbers(kind, digits, digits);
    SpecError::at_value(&[key], format!("{quote} is not a plain decimal number; {advice}"))
}

pub(crate) fn too_large(key: &'static str, found: &str, part: &str) -> SpecError {
    let quote = quoted_part(key, found, part);
    SpecError::at_value(&[key], format!("{quote} is too large; use at most {}", u32::MAX))
}

pub(crate) fn hexadecimal(key: &'static str, found: &str, value: u32) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}: {found}` is hexadecimal; write one number in decimal, as in `{value}`"),
    )
}

pub(crate) fn hexadecimal_size(key: &'static str, kind: KeyKind, found: &str) -> SpecError {
    SpecError::at_value(
        &[key],
        format!(
            "`{key}: {found}` starts with `0x` like a hexadecimal number; write {} in decimal",
            expected(kind)
        ),
    )
}

pub(crate) fn size_for_number(key: &'static str, found: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}` takes one whole number, not the size `{found}`"))
}

/// `lower` is the size with lowercase `x`.
pub(crate) fn capital_x(key: &'static str, found: &str, lower: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}: {found}` has an uppercase `X`; write `{lower}`"))
}

pub(crate) fn missing_dimension(key: &'static str, kind: KeyKind, found: &str) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}: {found}`: a number is missing next to an `x`; write {}", expected(kind)),
    )
}

pub(crate) fn dimensions(key: &'static str, kind: KeyKind, found: &str, has: usize) -> SpecError {
    let KeyKind::Size { form, example, dims } = kind else {
        unreachable!("size: only sizes have dimensions")
    };
    let s = if has == 1 { "" } else { "s" };
    SpecError::at_value(
        &[key],
        format!(
            "`{key}: {found}` has {has} dimension{s}, and {form} has {dims}; write a size such as \
             `{example}`"
        ),
    )
}
