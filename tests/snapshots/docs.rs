//! Pages of the macros, and tables of keys in the README. They are generated from the tables of the
//! specs, the ladders, and the module documentation of plans and expressions. `cargo bless` updates
//! them.

use gemm_dsl::expr::{Bound, ExprScope, Function};
use gemm_dsl::spec::{
    Along, EpilogueArg, FAMILIES, FamilyInfo, KeyInfo, KeyKind, ReduceSpec, Spec,
};
use gemm_dsl::stages::{self, Stage};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};

pub fn trials() -> Vec<Trial> {
    let pages = FAMILIES
        .iter()
        .map(|family| Trial::test(format!("docs::{}", family.macro_name), move || page(family)));
    pages.chain([Trial::test("docs::readme", readme)]).collect()
}

fn page(family: &FamilyInfo) -> Result<(), Failed> {
    let keys = (family.table)();
    let is_reduction = family.macro_name == ReduceSpec::MACRO;
    let (plan, ladder) = match is_reduction {
        true => ("reduce", lines(&stages::reduce())),
        false => ("sgemm", lines(&stages::sgemm())),
    };
    let mut text = format!(
        "# Keys\n\n`key: value` pairs and flags in any order, separated by commas.\n\n{}",
        table(family)
    );
    for key in keys.iter().filter(|key| !key.words.is_empty()) {
        text += &format!("\n`{}`:\n\n{}", key.name, words(key));
    }
    let closures = keys.iter().filter_map(|key| match key.kind {
        KeyKind::Closure(env) => Some((key.name, env)),
        _ => None,
    });
    let closures: Vec<(&str, &ExprScope)> = closures.collect();
    for (name, env) in &closures {
        text += &format!("\n# The value of `{name}`\n\n{}", about(env)?);
    }
    if let [(_, first), rest @ ..] = closures.as_slice() {
        // With several keys the language is described once, with all its functions.
        let heading = if rest.is_empty() { "" } else { "\n# Expressions\n\n" };
        text += &format!("{heading}{}", language(first)?);
    }
    let rules = documentation(&format!("plan/{plan}.rs"))?;
    let (_, rules) = rules.split_once("\n\n").ok_or("a title and no rules")?;
    text += &format!("\n# What is refused\n\n{rules}");
    text += &format!("\n# Each technique as a line\n\n{ladder}");
    compare(&top().join(format!("runtime/docs/{}.md", family.macro_name)), &text)
}

/// Tables of keys in the README, each between two marks.
fn readme() -> Result<(), Failed> {
    let path = top().join("README.md");
    let mut text = read(&path)?;
    for family in FAMILIES {
        let open = format!("<!-- keys of {} -->\n", family.macro_name);
        let (before, rest) = text.split_once(&open).ok_or(format!("no {open}"))?;
        let (_, after) = rest.split_once("<!-- end -->").ok_or("the keys have no end")?;
        text = format!("{before}{open}\n{}\n<!-- end -->{after}", table(family));
    }
    compare(&path, &text)
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("")
}

fn table(family: &FamilyInfo) -> String {
    let rows = (family.table)().into_iter().map(|key| {
        let meaning = key.meaning.trim();
        format!("| {} | {meaning} | {} |\n", spelling(&key), default(&key))
    });
    format!("| key | meaning | default |\n| --- | --- | --- |\n{}", rows.collect::<String>())
}

fn spelling(key: &KeyInfo) -> String {
    let name = key.name;
    match key.kind {
        KeyKind::Flag => format!("`{name}`"),
        KeyKind::Size { form, .. } => format!("`{name}: {form}`"),
        KeyKind::Number => format!("`{name}: n`"),
        KeyKind::NumberOr(word) => format!("`{name}: n`, `{word}`"),
        KeyKind::Word(words) => format!("`{name}:` {}", quoted(words)),
        KeyKind::Closure(env) => {
            // A bar would end the cell.
            format!("`{name}: {}`", env.example.replace('|', "\\|"))
        }
        _ => format!("`{name}: ident`"),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn default(key: &KeyInfo) -> String {
    match (key.kind, key.default.as_str()) {
        (KeyKind::Flag, _) => "off".to_owned(),
        (_, "") => "none".to_owned(),
        (_, text) => format!("`{text}`"),
    }
}

/// Words of a key, with their meanings.
fn words(key: &KeyInfo) -> String {
    let KeyKind::Word(words) = key.kind else { unreachable!("only words have meanings") };
    let items = words.iter().zip(key.words);
    items.map(|(word, meaning)| format!("* `{word}`: {}\n", meaning.trim())).collect()
}

/// Names and values that a key provides to its expressions.
fn about(env: &ExprScope) -> Result<String, Failed> {
    let names = match env.values.1 {
        0 => "It names nothing".to_owned(),
        _ => format!("The closure names {}", env.meaning),
    };
    let integers: Vec<&str> = env.integers.iter().map(|(name, _)| *name).collect();
    let integers = match integers.as_slice() {
        [] => String::new(),
        integers => format!("; beside it stand the integers {}", quoted(integers)),
    };
    Ok(format!("For example `{}`. {names}{integers}.\n\n{}", env.example, operands(env)?))
}

/// Description of the language and its functions.
fn language(env: &ExprScope) -> Result<String, Failed> {
    let functions: String = env
        .functions()
        .map(Function::info)
        .map(|row| {
            format!("| `{}({})` | {} |\n", row.name, row.operands.join(", "), row.meaning.trim())
        })
        .collect();
    let bounds = Function::ALL.iter().map(|function| function.info()).filter_map(|row| {
        let Bound { ulp, method } = row.bound?;
        Some(format!("| `{}` | {ulp:.2} | {method} |\n", row.name))
    });
    let bounds: String = bounds.collect();
    Ok(format!(
        "{}\n## Functions\n\n\
         | function | what it gives |\n| --- | --- |\n{functions}\n{}\n\
         | function | ulp | method |\n| --- | --- | --- |\n{bounds}",
        documentation("expr.rs")?,
        documentation("expr/library.rs")?,
    ))
}

/// Operands that the closure may name after its values.
fn operands(env: &ExprScope) -> Result<String, Failed> {
    if env.operands.is_empty() {
        return Ok(String::new());
    }
    let mut rows = String::new();
    for index in env.operands {
        let along = Along::indexed_by(index).ok_or(format!("no kind of operand has {index:?}"))?;
        let (name, meaning, kind) = (along.example(), along.meaning(), along.kind());
        rows += &format!("| `{name}{along}` | {meaning} | `{kind}` |\n");
    }
    let most = EpilogueArg::MOST_LISTED;
    let mut text = format!(
        "Behind {} it may name operands, in any number and order: arrays and numbers of `f32` that the caller \
         gives at the launch. In the body each is called by its name alone, without the index, and is the \
         element that belongs to the sum. The type of a kernel lists their kinds, at most {most}; a \
         `Sgemm<ByName>` takes as many as there are.\n\n\
         | operand | what the caller gives | kind |\n| --- | --- | --- |\n{rows}\n",
        env.meaning,
    );
    if let Some((name, index)) = env.output {
        text += &format!(
            "`{name}[{}]` is no operand: it is the element as it was before, which is read where the new one is \
             written.\n\n",
            index.join(", ")
        );
    }
    Ok(text)
}

/// Specs of the ladder. The defaults are the spec without a key.
fn lines<S: Spec>(ladder: &[Stage<S>]) -> String {
    let rows = ladder.iter().map(|stage| {
        format!("| {} | {} | `{}!({})` |\n", stage.index, stage.name, S::MACRO, stage.spec)
    });
    format!("| stage | technique | line |\n| --- | --- | --- |\n{}", rows.collect::<String>())
}

/// Module documentation of a file, without its links, which do not resolve on another page.
fn documentation(file: &str) -> Result<String, Failed> {
    let text = read(&top().join("gemm-dsl/src").join(file))?;
    let docs = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = docs.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)));
    Ok(lines.collect::<String>().replace("[`", "`").replace("`]", "`"))
}

fn read(path: &Path) -> Result<String, Failed> {
    Ok(fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Compares a file with the text, or writes it if snapshots are being updated.
fn compare(path: &Path, text: &str) -> Result<(), Failed> {
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        return Ok(fs::write(path, text)?);
    }
    match read(path)? == text {
        true => Ok(()),
        false => {
            Err(format!("{} is not what the tables give: `cargo bless`", path.display()).into())
        }
    }
}
