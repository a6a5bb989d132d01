//! The folders and modules of the simulator import one another in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Module = Vec<String>;
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The modules below a folder, but the tests, with their sources.
fn modules(folder: &Path, parent: &[String], into: &mut BTreeMap<Module, String>) {
    for file in std::fs::read_dir(folder).expect("the sources").map(|file| file.expect("a file")) {
        let path = file.path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let module = [parent, std::slice::from_ref(&name)].concat();
        if path.is_dir() && name != "tests" {
            modules(&path, &module, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") && name != "tests" {
            let text = std::fs::read_to_string(&path).expect("a source");
            into.insert(
                module,
                text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("").into(),
            );
        }
    }
}

/// The module of the simulator that an import of a module leads to; none of what is elsewhere.
fn resolved(module: &[String], import: &str, all: &BTreeMap<Module, String>) -> Option<Module> {
    let path = import.split(['{', ';']).next().unwrap_or("").trim().trim_end_matches("::");
    let mut segments: Vec<String> = path.split("::").map(str::to_owned).collect();
    let supers = segments.iter().take_while(|segment| *segment == "super").count();
    let is_child = all.contains_key(&[module, &segments[..1]].concat());
    let from = match segments[0].as_str() {
        "crate" => &[][..],
        "super" => &module[..module.len() - supers],
        _ if is_child => module,
        _ => return None,
    };
    segments.drain(..supers + usize::from(segments[0] == "crate"));
    let mut found = [from, &segments].concat();
    while !found.is_empty() && !all.contains_key(&found) {
        found.pop();
    }
    assert!(!found.is_empty(), "{module:?} imports {import} through the façade");
    Some(found)
}

/// Removes modules that import no other one until none is left but circles.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let left: BTreeSet<Module> =
            imports.iter().filter(|(_, of)| !of.is_empty()).map(|(m, _)| m.clone()).collect();
        if left.len() == imports.len() {
            return imports;
        }
        imports.retain(|module, _| left.contains(module));
        imports.values_mut().for_each(|of| of.retain(|module| left.contains(module)));
    }
}

#[test]
fn imports_have_no_circles() {
    let mut all = BTreeMap::new();
    modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[], &mut all);
    all.remove(&vec!["lib".to_owned()]);
    let nodes = || all.keys().map(|module| (module.clone(), BTreeSet::new()));
    let (mut folders, mut inside): (Imports, Imports) =
        (nodes().filter(|(module, _)| module.len() == 1).collect(), nodes().collect());
    for (module, text) in &all {
        let imports = text.lines().filter_map(|line| line.trim_start().split_once("use "));
        let imports = imports.filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        for import in imports.filter_map(|(_, import)| resolved(module, import, &all)) {
            if import[0] != module[0] {
                folders.get_mut(&module[..1]).expect("a folder").insert(import[..1].to_vec());
            } else if !import.starts_with(module) && !module.starts_with(&import) {
                inside.get_mut(module).expect("a module").insert(import);
            }
        }
    }
    assert!(folders[&vec!["exec".to_owned()]].contains(&vec!["race".to_owned()]));
    assert_eq!(circles(folders), Imports::new());
    assert_eq!(circles(inside), Imports::new());
}
