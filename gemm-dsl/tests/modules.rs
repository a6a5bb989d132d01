//! Import cycles. In every crate of the workspace, sibling modules import each other in one
//! direction only. A module and its own children may import each other.
//!
//! The sources are scanned as text. Re-exports are followed to the module that defines a name, so a
//! façade cannot hide a cycle. Some crates must not import through their root at all. Tests are
//! excluded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose modules import an item from its defining module, not through a re-export of the
/// root.
const WITHOUT_FACADE: &[&str] = &["gemm-dsl/sim"];

type ModulePath = Vec<String>;

/// Source token: an identifier, `::`, or one character.
struct Token {
    text: String,
    line: usize,
}

/// Import with the path as written in `from`.
struct Import {
    from: ModulePath,
    path: Vec<String>,
    place: String,
}

/// Modules of a crate and their imports.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<ModulePath>,
    /// Names that a module imports, each with its absolute path.
    names: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
    /// Modules that a module imports with a glob.
    globs: BTreeMap<ModulePath, Vec<ModulePath>>,
    /// Names that a module defines.
    defined: BTreeMap<ModulePath, BTreeSet<String>>,
    imports: Vec<Import>,
}

/// Splits a source into tokens, without comments, strings and character literals.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut found, mut i, mut line) = (Vec::new(), 0, 1);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    while i < chars.len() {
        let start = i;
        let mut hashes = 0;
        while at(i) == 'r' && at(i + 1 + hashes) == '#' {
            hashes += 1;
        }
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                i += 2;
                while i < chars.len() && !(at(i) == '*' && at(i + 1) == '/') {
                    i += 1;
                }
                i += 2;
            }
            'r' if at(i + 1 + hashes) == '"' => {
                i += 2 + hashes;
                let closes = |i: usize| at(i) == '"' && (1..=hashes).all(|h| at(i + h) == '#');
                while i < chars.len() && !closes(i) {
                    i += 1;
                }
                i += 1 + hashes;
            }
            '"' => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            // A lifetime has no closing quote.
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            ':' if at(i + 1) == ':' => {
                found.push(Token { text: "::".into(), line });
                i += 2;
            }
            c if is_name(c) => {
                while is_name(at(i)) {
                    i += 1;
                }
                found.push(Token { text: chars[start..i].iter().collect(), line });
            }
            c => {
                if !c.is_whitespace() {
                    found.push(Token { text: c.into(), line });
                }
                i += 1;
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// Index after the item that starts at `i`: after its `;` or its closing brace.
fn behind_item(tokens: &[Token], mut i: usize) -> usize {
    let mut depth = 0i32;
    while let Some(token) = tokens.get(i) {
        i += 1;
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 && token.text == "}" {
                    return i;
                }
            }
            ";" if depth == 0 => return i,
            _ => {}
        }
    }
    i
}

/// Reads a use tree from `i` on. Returns each leaf with its imported name, and the index after the
/// tree.
fn use_tree(
    tokens: &[Token],
    mut i: usize,
    prefix: &[String],
    leaves: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens[i].text.as_str() {
            "::" => i += 1,
            "{" => {
                i += 1;
                while tokens[i].text != "}" {
                    i = use_tree(tokens, i, &path, leaves);
                    i += usize::from(tokens[i].text == ",");
                }
                return i + 1;
            }
            "as" => {
                leaves.push((path, tokens[i + 1].text.clone()));
                return i + 2;
            }
            "," | "}" | ";" => {
                let name = path.last().cloned().unwrap_or_default();
                leaves.push((path, name));
                return i;
            }
            "self" if !path.is_empty() => i += 1,
            name => {
                path.push(name.to_owned());
                i += 1;
            }
        }
    }
}

impl Crate {
    fn read(source: &Path) -> Self {
        let mut files = Vec::new();
        rust_files(source, &mut files);
        let mut this = Self::default();
        let files: Vec<(PathBuf, ModulePath)> = files
            .into_iter()
            .map(|file| {
                let path = file.strip_prefix(source).expect("below the source").with_extension("");
                let names = path.iter().map(|name| name.to_string_lossy().into_owned());
                let module = names.filter(|name| !["lib", "main", "mod"].contains(&&**name));
                (file, module.collect())
            })
            .collect();
        this.modules.insert(Vec::new());
        this.modules.extend(files.iter().map(|(_, module)| module.clone()));
        for (file, module) in files {
            let text = fs::read_to_string(&file).expect("a source");
            let file = file.strip_prefix(workspace()).expect("in the workspace").display();
            this.scan(&tokens(&text), module, &file.to_string());
        }
        this
    }

    fn scan(&mut self, tokens: &[Token], mut module: ModulePath, file: &str) {
        // Open inline modules, by the brace depth outside of them.
        let mut inline: Vec<usize> = Vec::new();
        let (mut i, mut depth) = (0, 0usize);
        let text = |i: usize| tokens.get(i).map_or("", |token: &Token| token.text.as_str());
        while i < tokens.len() {
            let place = format!("{file}:{}", tokens[i].line);
            match text(i) {
                "#" if (1..7).map(|n| text(i + n)).eq(["[", "cfg", "(", "test", ")", "]"]) => {
                    i = behind_item(tokens, i + 7);
                    continue;
                }
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                        module.pop();
                    }
                }
                "mod" if text(i + 2) == "{" => {
                    module.push(text(i + 1).to_owned());
                    inline.push(depth);
                    depth += 1;
                    i += 2;
                }
                "use" if text(i + 1) != "<" => {
                    let mut leaves = Vec::new();
                    let end = use_tree(tokens, i + 1, &[], &mut leaves);
                    for (path, name) in leaves {
                        let Some(absolute) = self.absolute(&module, &path) else { continue };
                        self.import_name(&module, absolute, name);
                        self.imports.push(Import {
                            from: module.clone(),
                            path,
                            place: place.clone(),
                        });
                    }
                    i = end;
                }
                "crate" | "self" | "super" if text(i + 1) == "::" => {
                    let mut path = vec![text(i).to_owned()];
                    while text(i + 1) == "::" && text(i + 2).starts_with(is_name_start) {
                        path.push(text(i + 2).to_owned());
                        i += 2;
                    }
                    self.imports.push(Import { from: module.clone(), path, place });
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"
                    if depth == inline.last().map_or(0, |outside| outside + 1) =>
                {
                    self.defined.entry(module.clone()).or_default().insert(text(i + 1).to_owned());
                }
                _ => {}
            }
            i += 1;
        }
    }

    fn import_name(&mut self, module: &ModulePath, mut path: ModulePath, name: String) {
        if name == "*" {
            path.pop();
            self.globs.entry(module.clone()).or_default().push(path);
        } else {
            self.names.entry(module.clone()).or_default().insert(name, path);
        }
    }

    /// Absolute path from the crate's root, or None if it leaves the crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let mut from = module.clone();
        match first.as_str() {
            "crate" => from.clear(),
            "self" => {}
            "super" => drop(from.pop()?),
            child => {
                from.push(child.to_owned());
                self.modules.contains(&from).then_some(())?;
            }
        }
        for name in rest {
            if name == "super" {
                from.pop()?;
            } else {
                from.push(name.clone());
            }
        }
        Some(from)
    }

    /// Module that defines the target of a path, through at most `hops` re-exports.
    fn defining(&self, path: &[String], hops: usize) -> ModulePath {
        let length = (0..=path.len()).rev().find(|n| self.modules.contains(&path[..*n]));
        let (module, rest) = path.split_at(length.unwrap_or(0));
        let (Some((name, rest)), 1..) = (rest.split_first(), hops) else { return module.to_vec() };
        let defined =
            |module: &[String]| self.defined.get(module).is_some_and(|names| names.contains(name));
        if defined(module) {
            return module.to_vec();
        }
        let onward = |path: &ModulePath| self.defining(&[path, rest].concat(), hops - 1);
        if let Some(path) = self.names.get(module).and_then(|names| names.get(name)) {
            return onward(path);
        }
        let mut globs = self.globs.get(module).into_iter().flatten();
        let glob = globs.find(|glob| {
            let names = self.names.get(*glob);
            defined(glob) || names.is_some_and(|names| names.contains_key(name))
        });
        glob.map_or(module.to_vec(), |glob| {
            onward(&[&glob[..], std::slice::from_ref(name)].concat())
        })
    }

    /// Imports of names that the root re-exports.
    fn through_facade(&self) -> Vec<&str> {
        let is_facade = |import: &&Import| {
            let path = self.absolute(&import.from, &import.path).unwrap_or_default();
            let reexported = self.names.get(&[][..]);
            let is_module = |name: &String| self.modules.contains(std::slice::from_ref(name));
            let is_reexported = |name: &String| {
                reexported.is_some_and(|names| names.contains_key(name)) && !is_module(name)
            };
            !import.from.is_empty() && path.first().is_some_and(is_reexported)
        };
        self.imports.iter().filter(is_facade).map(|import| &*import.place).collect()
    }

    /// Edges between the children of each module, with the place of one import.
    fn arrows(&self) -> BTreeMap<ModulePath, BTreeMap<(String, String), String>> {
        let mut arrows: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for Import { from, path, place } in &self.imports {
            let Some(path) = self.absolute(from, path) else { continue };
            let to = self.defining(&path, 8);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let of_parent = arrows.entry(from[..common].to_vec()).or_default();
                of_parent.entry((one.clone(), other.clone())).or_insert_with(|| place.clone());
            }
        }
        arrows
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace")
}

/// Sources below a folder, without tests.
fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        } else if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Names reachable from `from`, each with its predecessor. `from` itself is included only if it is
/// on a cycle.
fn reached(arrows: &BTreeMap<(String, String), String>, from: &str) -> BTreeMap<String, String> {
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    let mut next = vec![from.to_owned()];
    while !next.is_empty() {
        let mut found = Vec::new();
        for name in next {
            for (one, other) in arrows.keys().filter(|(one, _)| *one == name) {
                if !before.contains_key(other) {
                    before.insert(other.clone(), one.clone());
                    found.push(other.clone());
                }
            }
        }
        next = found;
    }
    before
}

/// Cycles among the children of one module: the members of each, and the edges of a shortest one.
fn circles(arrows: &BTreeMap<(String, String), String>) -> Vec<(Vec<String>, Vec<String>)> {
    let names: BTreeSet<&String> = arrows.keys().flat_map(|(one, other)| [one, other]).collect();
    let reach: BTreeMap<&String, BTreeMap<String, String>> =
        names.iter().map(|name| (*name, reached(arrows, name))).collect();
    let mut circles: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for name in names {
        let is_told = circles.iter().any(|(members, _)| members.contains(name));
        if is_told || !reach[name].contains_key(name) {
            continue;
        }
        let together = reach[name].keys().filter(|other| reach[other].contains_key(name));
        let members: Vec<String> = together.cloned().collect();
        let mut told = Vec::new();
        let mut end = name.clone();
        loop {
            let arrow = (reach[name][&end].clone(), end);
            told.push(format!("{} -> {} at {}", arrow.0, arrow.1, arrows[&arrow]));
            if arrow.0 == *name {
                break;
            }
            end = arrow.0;
        }
        told.reverse();
        circles.push((members, told));
    }
    circles
}

/// Folders of the workspace's crates; empty outside a workspace.
fn crates() -> Vec<String> {
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).unwrap_or_default();
    let Some((_, members)) = manifest.split_once("members = [") else { return Vec::new() };
    let (members, _) = members.split_once(']').expect("the end of the members");
    let names = members.split(',').map(|name| name.trim().trim_matches('"').to_owned());
    names.filter(|name| workspace().join(name).join("src").is_dir()).collect()
}

#[test]
fn no_two_children_of_a_module_import_each_other() {
    let members = crates();
    let mut found_circles = Vec::new();
    for member in &members {
        let found = Crate::read(&workspace().join(member).join("src"));
        if WITHOUT_FACADE.contains(&&**member) {
            let places = found.through_facade();
            assert!(places.is_empty(), "imports through the root of {member}: {places:?}");
        }
        for (parent, arrows) in found.arrows() {
            let parent = [std::slice::from_ref(member), &parent[..]].concat().join("::");
            for (circle, told) in circles(&arrows) {
                let (circle, told) = (circle.join(" "), told.join("\n        "));
                found_circles.push(format!("    {parent}: {circle}\n        {told}"));
            }
        }
    }
    // A package outside of the workspace reads no crates.
    assert!(found_circles.is_empty(), "import circles:\n{}", found_circles.join("\n"));
}
