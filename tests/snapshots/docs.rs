//! Documentation pages of the macros, and links and commands on all Markdown pages. The pages of
//! the macros are generated from their heads in `runtime/docs/heads`, the tables of the specs, the
//! ladders, and the module documentation of plans and expressions. `cargo bless` updates them.

mod ladder;

use gemm_dsl::expr::{Bound, ExprScope, Function};
use gemm_dsl::spec::{
    Along, EpilogueArg, FAMILIES, FamilyInfo, KeyInfo, KeyKind, MapSpec, ReduceSpec, ScanSpec, Spec,
};
use gemm_dsl::stages;
use ladder::lines;
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};

pub fn trials() -> Vec<Trial> {
    let pages = FAMILIES
        .iter()
        .map(|family| Trial::test(format!("docs::{}", family.macro_name), move || page(family)));
    pages
        .chain([Trial::test("docs::links", links), Trial::test("docs::commands", commands)])
        .collect()
}

fn page(family: &FamilyInfo) -> Result<(), Failed> {
    let keys = (family.table)();
    let (plan, ladder) = match family.macro_name {
        ReduceSpec::MACRO => ("reduce", Some(lines(&stages::reduce()))),
        MapSpec::MACRO => ("map", None),
        ScanSpec::MACRO => ("scan", None),
        _ => ("sgemm", Some(lines(&stages::sgemm()))),
    };
    let order = match family.macro_name {
        MapSpec::MACRO => {
            "The expression, and then `key: value` pairs in any order, separated by \
            commas."
        }
        _ => "`key: value` pairs and flags in any order, separated by commas.",
    };
    let head = read(&top().join(format!("runtime/docs/heads/{}.md", family.macro_name)))?;
    let mut text = format!("{head}\n# Keys\n\n{order}\n{}", self::keys(family)?);
    let closures = keys.iter().filter_map(|key| match key.kind {
        KeyKind::Closure(env) => Some((key.name, env)),
        _ => None,
    });
    let closures: Vec<(&str, &ExprScope)> = closures.collect();
    for (name, env) in &closures {
        let heading = match env.is_elementwise() {
            true => "The expression".to_owned(),
            false => format!("The value of `{name}`"),
        };
        text += &format!("\n# {heading}\n\n{}", about(env)?);
    }
    if let [(_, first), rest @ ..] = closures.as_slice() {
        // If several keys have expressions, the language is described once, with all its functions.
        let heading = if rest.is_empty() { "" } else { "\n# Expressions\n\n" };
        text += &format!("{heading}{}", language(first)?);
    }
    let rules = documentation(&format!("plan/{plan}.rs"))?;
    let (_, rules) = rules.split_once("\n\n").ok_or("a title and no rules")?;
    text += &format!("\n# Valid specs\n\n{rules}");
    if let Some(ladder) = ladder {
        text += &format!("\n# Stages of the ladder\n\n{ladder}");
    }
    compare(&top().join(format!("runtime/docs/{}.md", family.macro_name)), &text)
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("")
}

/// Keys by group, in the order of the page.
const GROUPS: [(&str, &[&str]); 8] = [
    (
        "Computation",
        &["op", "fold", "identity", "map", "finish", "compensated", "epilogue", "scaled"],
    ),
    ("Results", &["exclusive", "with_value", "topk"]),
    (
        "Arrays",
        &[
            "type", "acc", "result", "index", "over", "a", "b", "c", "layout", "pitched", "batch",
            "bounds",
        ],
    ),
    (
        "Shape of blocks and threads",
        &[
            "block",
            "group",
            "tree",
            "items",
            "coarsen",
            "unroll",
            "unroll_last_warp",
            "shuffle",
            "lanes",
            "tile",
            "thread",
            "warp",
            "fragment",
            "order",
            "partials",
            "fold_tiles",
        ],
    ),
    (
        "Memory and pipeline",
        &[
            "float4",
            "adjacent",
            "transpose",
            "pad_a",
            "pad_b",
            "swizzle",
            "prefetch",
            "b_in_parts",
            "double_buffer",
            "stages",
            "spread",
            "stage_c",
            "copy",
            "producer",
        ],
    ),
    ("Tensor cores", &["arith", "mma", "convert", "ldmatrix", "promote", "swap_ab"]),
    (
        "Sharing of work",
        &[
            "blocks",
            "run",
            "launch",
            "raster",
            "slices",
            "split_k",
            "stream_k",
            "persistent",
            "cluster",
            "products",
            "blocks_per_sm",
        ],
    ),
    ("Name", &["name"]),
];

/// Entries of all keys, grouped.
fn keys(family: &FamilyInfo) -> Result<String, Failed> {
    let keys = (family.table)();
    let grouped = |key: &KeyInfo| GROUPS.iter().any(|(_, names)| names.contains(&key.name));
    if let Some(key) = keys.iter().find(|key| !grouped(key)) {
        return Err(format!("`{}` is in no group of tests/snapshots/docs.rs", key.name).into());
    }
    let mut text = String::new();
    for (title, names) in GROUPS {
        let members: Vec<&KeyInfo> =
            names.iter().filter_map(|name| keys.iter().find(|key| key.name == *name)).collect();
        if !members.is_empty() {
            text += &format!("\n## {title}\n\n");
        }
        for key in members {
            let (name, meaning) = (spelling(key), key.meaning.trim());
            let meaning = with_links(meaning);
            text += &wrapped(&format!("* **{name}**, {}. {meaning}", default(key)));
            if !key.words.is_empty() {
                text += &words(key);
            }
        }
    }
    Ok(text)
}

/// Columns of a page.
const WIDTH: usize = 140;

/// Wraps a list item outside of code spans, and keeps its indentation.
fn wrapped(item: &str) -> String {
    let indent = &item[..item.len() - item.trim_start().len()];
    let wrapped = wrapped_at_margin(item.trim_start(), WIDTH - indent.len(), " ");
    wrapped.lines().map(|line| format!("{indent}{line}\n")).collect()
}

/// Wraps a paragraph outside of code spans.
fn paragraph(text: &str) -> String {
    wrapped_at_margin(text, WIDTH, "")
}

/// Wraps a text without indentation at `width` columns. `next` begins every line after the first; a
/// blank follows it unless it is empty.
fn wrapped_at_margin(item: &str, width: usize, next: &str) -> String {
    let (mut lines, mut line, mut word, mut is_code) =
        (Vec::new(), String::new(), String::new(), false);
    for c in item.chars().chain([' ']) {
        is_code ^= c == '`';
        if c.is_whitespace() && !is_code {
            if line.chars().count() + 1 + word.chars().count() > width && !line.is_empty() {
                lines.push(std::mem::replace(&mut line, next.to_owned()));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += &std::mem::take(&mut word);
        } else {
            word.push(c);
        }
    }
    lines.push(line);
    lines.join("\n") + "\n"
}

fn spelling(key: &KeyInfo) -> String {
    let name = key.name;
    match key.kind {
        KeyKind::Flag => format!("`{name}`"),
        KeyKind::Size { form, .. } => format!("`{name}: {form}`"),
        KeyKind::Number => format!("`{name}: n`"),
        KeyKind::NumberOr(word) => format!("`{name}: n`, `{word}`"),
        KeyKind::Word(words) => format!("`{name}:` {}", quoted(words)),
        KeyKind::Closure(env) if env.is_elementwise() => format!("`{}`", env.example),
        KeyKind::Closure(env) => format!("`{name}: {}`", env.example),
        _ => format!("`{name}: ident`"),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Turns the path of a page of the guide into a link, which rustdoc resolves in gemm-runtime.
fn with_links(text: &str) -> String {
    const PAGE: &str = "`gemm_runtime::guide::";
    let Some((before, rest)) = text.split_once(PAGE) else { return text.to_owned() };
    let Some((page, after)) = rest.split_once('`') else { return text.to_owned() };
    format!("{before}[{page}](crate::guide::{page}){}", with_links(after))
}

/// Default of a key, or the word for a key without one.
fn default(key: &KeyInfo) -> String {
    match (key.kind, key.default.as_str()) {
        (KeyKind::Closure(env), _) if env.is_elementwise() => "required, without a key".to_owned(),
        (KeyKind::Flag, _) => "default off".to_owned(),
        (_, "") => "optional".to_owned(),
        (_, text) => format!("default `{text}`"),
    }
}

/// Words of a key, with their meanings.
fn words(key: &KeyInfo) -> String {
    let KeyKind::Word(words) = key.kind else { unreachable!("only words have meanings") };
    let items = words.iter().zip(key.words);
    let item =
        |(word, meaning): (&&str, &&str)| wrapped(&format!("  * `{word}`: {}", meaning.trim()));
    items.map(item).collect()
}

/// Names and values that a key provides to its expressions.
fn about(env: &ExprScope) -> Result<String, Failed> {
    let integers: Vec<&str> = env.integers.iter().map(|(name, _)| *name).collect();
    let integers = match integers.as_slice() {
        [] => String::new(),
        integers => format!(". Integers in scope: {}", quoted(integers)),
    };
    let text = match env.values.1 {
        0 if env.is_elementwise() => {
            format!("For example `{}`. Parameters of the closure: operands{integers}.", env.example)
        }
        0 => format!("An expression without parameters, for example `{}`{integers}.", env.example),
        _ => {
            let (example, meaning) = (env.example, env.meaning);
            format!("For example `{example}`. Parameters of the closure: {meaning}{integers}.")
        }
    };
    let text = paragraph(&text);
    Ok(format!("{text}\n{}", operands(env)?))
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
         | function | value |\n| --- | --- |\n{functions}\n{}\n\
         | function | ulp | method |\n| --- | --- | --- |\n{bounds}",
        documentation("expr.rs")?,
        documentation("expr/library.rs")?,
    ))
}

/// Operands that may follow the values in the closure's parameters.
fn operands(env: &ExprScope) -> Result<String, Failed> {
    if env.operands.is_empty() {
        return Ok(String::new());
    }
    let mut rows = String::new();
    for index in env.operands {
        let along = Along::indexed_by(index).ok_or(format!("no kind of operand has {index:?}"))?;
        let (name, kind) = (along.example(), along.kind());
        let meaning = match env.is_elementwise() {
            true => along.meaning().replace("of C", "of the results"),
            false => along.meaning().to_owned(),
        };
        rows += &format!("| `{name}{along}` | {meaning} | `{kind}` |\n");
    }
    let most = EpilogueArg::MOST_LISTED;
    if env.is_elementwise() {
        let text = paragraph(&format!(
            "An operand is an array or a number that a call passes. In the body, write it by its \
             name alone, without the index. `: bf16` after an operand states its element type, and \
             `-> bf16` after the bars the type of the result, `-> (f32, bf16)` of two results. \
             Without them, the type is that of the key `type`. The type of a kernel lists the \
             kinds of at most {most} operands; a `Kernel<MapSpec, ByName>` takes any number. \
             Several results, at most {}, are a tuple: the value of the whole expression.",
            env.results
        ));
        return Ok(format!(
            "{text}\n| operand | argument of the call | kind |\n| --- | --- | --- |\n{rows}\n"
        ));
    }
    let text = format!(
        "After {} the closure may have parameters for operands: arrays and scalars of `f32` that a \
         call passes. In the body, write an operand by its name alone, without the index. The \
         name is the operand's value at the current element of C. The type of a kernel lists the \
         kinds of at most {most} operands; a `Sgemm<ByName>` takes any number.",
        env.meaning,
    );
    let mut text = format!(
        "{}\n| operand | argument of the call | kind |\n| --- | --- | --- |\n{rows}\n",
        paragraph(&text)
    );
    if env.results > 1 {
        let about = format!(
            "The closure may end in a tuple of at most {} values, as in `|acc| (relu(acc), acc)`. \
             The first value is stored in C. A call passes a matrix of the shape of C for each \
             further value, as `&mut` after all other operands; its kind is `Out`, and its name \
             `c2`, `c3` or `c4`.",
            env.results
        );
        text += &format!("{}\n", paragraph(&about));
    }
    if env.folds {
        text += &format!("{}\n", paragraph(RESULTS_OF_ROWS));
    }
    if let Some((name, index)) = env.output {
        let about = format!(
            "`{name}[{0}]` is not an operand but the element of C before the launch. It must be a \
             parameter, too, as in `|_acc, {name}[{0}], scale[m]| {name} * scale`. A call passes \
             nothing for it.",
            index.join(", ")
        );
        text += &format!("{}\n", paragraph(&about));
    }
    Ok(text)
}

/// Paragraph on values that fold rows.
const RESULTS_OF_ROWS: &str = "A value after the first may be a result of rows: an expression of \
     `sum`, `prod`, `max` and `min` of one value each, which fold that value over the columns of \
     C, as in `|acc| (acc, sqrt(sum(acc * acc)))`. Outside of folds, it reads numbers, `m`, `n` \
     and `k`. A call passes a vector of m elements for it, as `&mut`; its kind is `OutM`.";

/// Columns of a code block.
const COLUMNS: usize = 100;

/// Splits a spec after the commas between its keys. Commas inside of closures stay.
fn parts(spec: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_in_parameters, mut depth) = (false, 0);
    for (at, c) in spec.char_indices() {
        match c {
            '|' => is_in_parameters = !is_in_parameters,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if !is_in_parameters && depth == 0 => {
                parts.push(spec[start..=at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(spec[start..].trim());
    parts
}

/// Module documentation of a file, without its links, which do not resolve on another page.
fn documentation(file: &str) -> Result<String, Failed> {
    let text = read(&top().join("gemm-dsl/src").join(file))?;
    let docs = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = docs.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)));
    Ok(lines.collect::<String>().replace("[`", "`").replace("`]", "`"))
}

/// Markdown files of the repository.
fn pages() -> Result<Vec<PathBuf>, Failed> {
    let mut folders = vec![top()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if name.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    Ok(pages)
}

/// Relative links of all Markdown files lead to files.
fn links() -> Result<(), Failed> {
    let mut broken = Vec::new();
    for page in pages()? {
        let text = read(&page)?;
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#', ' ']).next().unwrap_or_default();
            let is_item = target.contains("::") || target.is_empty();
            let is_far = target.contains("://") || target.starts_with("mailto:");
            let folder = page.parent().unwrap_or(Path::new("."));
            if !is_item && !is_far && !folder.join(target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n").into()) }
}

/// Names of all example programs, from manifests and from the files in `examples/`.
fn programs() -> Result<Vec<String>, Failed> {
    let mut programs = Vec::new();
    for package in ["examples", "examples/bench", "examples/book", "gemm-dsl/sim"] {
        let manifest = read(&top().join(package).join("Cargo.toml"))?;
        let declared = manifest.split("[[example]]").skip(1);
        programs.extend(declared.filter_map(|part| part.split('"').nth(1)).map(str::to_owned));
        for file in fs::read_dir(top().join(package).join("examples")).into_iter().flatten() {
            let path = file?.path();
            programs.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    Ok(programs)
}

/// Commands on Markdown pages name programs and scripts that exist.
fn commands() -> Result<(), Failed> {
    let programs = programs()?;
    let is_program = |name: &str| name == "NAME" || programs.iter().any(|known| known == name);
    let is_script = |word: &str| {
        ["examples/bench/peers/", ".ci/"].iter().any(|folder| word.starts_with(folder))
    };
    let mut unknown = Vec::new();
    for page in pages()?.into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = read(&page)?;
        for line in text.lines() {
            let mut words =
                line.split([' ', '`', '|', '(', ')', '[', ']']).filter(|word| !word.is_empty());
            while let Some(word) = words.next() {
                let script = word.trim_end_matches([',', '.', ';', ':']);
                if is_script(word) && !top().join(script).exists() {
                    unknown.push(format!("{}: {script}", page.display()));
                }
                if word == "--example"
                    && let Some(name) = words.next()
                    && !is_program(name)
                {
                    unknown.push(format!("{}: --example {name}", page.display()));
                }
            }
        }
    }
    if unknown.is_empty() { Ok(()) } else { Err(unknown.join("\n").into()) }
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
            Err(format!("{} differs from the generated page: `cargo bless`", path.display()).into())
        }
    }
}
