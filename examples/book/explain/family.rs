//! Choice of the macro for a spec.

use gemm_bench::cli::Failure;
use gemm_bench::family::Family;
use gemm_dsl::parse;
use gemm_dsl::spec::Spec;
use gemm_runtime::{ReduceSpec, SgemmSpec};
use std::cmp::Ordering;

/// Spec without the macro around it.
#[derive(Debug, PartialEq, Eq)]
pub struct SpecLine<'t> {
    pub text: &'t str,
    pub family: Family,
    /// Note to the user if the keys of the spec fit both macros.
    pub note: Option<String>,
}

/// Determines the macro of a spec. The macro around the spec decides, otherwise `asked`, otherwise
/// the number of keys that each macro knows. If both know the same number of keys, the form of
/// `block` or the absence of faults decides.
///
/// # Errors
/// Returns [`Failure::Usage`] for an unknown macro, or if the macro contradicts `asked`.
pub fn line(given: &str, asked: Option<Family>) -> Result<SpecLine<'_>, Failure> {
    if let Some((name, text)) = parse::call(given) {
        let family = Family::ALL.into_iter().find(|family| family.macro_name() == name);
        return match (family, asked) {
            (None, _) => Err(Failure::Usage(format!(
                "`{name}!` is not one of the macros {}! and {}!",
                ReduceSpec::MACRO,
                SgemmSpec::MACRO
            ))),
            (Some(family), Some(asked)) if family != asked => Err(Failure::Usage(format!(
                "the spec is a call of {name}!, and --family {} means {}!. Leave out --family",
                asked.word(),
                asked.macro_name()
            ))),
            (Some(family), _) => Ok(SpecLine { text, family, note: None }),
        };
    }
    if let Some(family) = asked {
        return Ok(SpecLine { text: given, family, note: None });
    }
    // A spec that cannot be tokenized is faulty in both families.
    let entries = parse::entries(given).unwrap_or_default();
    let entries: Vec<&str> = entries.iter().filter_map(|entry| entry.first().copied()).collect();
    let known = |keys: &[&str]| entries.iter().filter(|e| keys.contains(&key(e))).count();
    let (reduce, sgemm) = (known(&ReduceSpec::keys()), known(&SgemmSpec::keys()));
    let (family, sure) = match reduce.cmp(&sgemm) {
        Ordering::Greater => (Family::Reduce, true),
        Ordering::Less => (Family::Sgemm, true),
        Ordering::Equal => (by_values(given, &entries), reduce == 0),
    };
    let other = family.other();
    let note = (!sure).then(|| {
        let read = format!("read as {}!({given})", family.macro_name());
        if !is_sound(other, given) {
            return read;
        }
        let (name, word) = (other.macro_name(), other.word());
        format!("{read}; for the other macro write {name}!({given}) or --family {word}")
    });
    Ok(SpecLine { text: given, family, note })
}

/// Returns the spec to compare with, without the macro around it.
///
/// # Errors
/// Returns [`Failure::Usage`] for the macro of another family.
pub fn against(given: &str, family: Family) -> Result<&str, Failure> {
    match parse::call(given) {
        None => Ok(given),
        Some((name, text)) if name == family.macro_name() => Ok(text),
        Some((name, _)) => Err(Failure::Usage(format!(
            "--against: the spec is a call of {name}!, and the other spec a call of {}!. Only \
             specs of one macro can be compared",
            family.macro_name()
        ))),
    }
}

/// Returns true if the text is a valid spec of the family.
fn is_sound(family: Family, line: &str) -> bool {
    match family {
        Family::Reduce => line.parse::<ReduceSpec>().is_ok(),
        Family::Sgemm => line.parse::<SgemmSpec>().is_ok(),
    }
}

/// Key of an entry: the word before the colon, or the flag.
fn key(entry: &str) -> &str {
    entry.split_once(':').map_or(entry, |(key, _)| key.trim())
}

/// Chooses the family of a spec whose keys fit both families. `block` is a number in a reduction,
/// and a size such as `16x16` in a GEMM.
fn by_values(line: &str, entries: &[&str]) -> Family {
    let block = entries.iter().find(|entry| key(entry) == "block");
    match block.and_then(|entry| entry.split_once(':')) {
        Some((_, size)) if size.contains(['x', 'X']) => Family::Sgemm,
        Some(_) => Family::Reduce,
        None if line.parse::<SgemmSpec>().is_err() && line.parse::<ReduceSpec>().is_ok() => {
            Family::Reduce
        }
        None => Family::Sgemm,
    }
}
