//! The modules of the simulator, as their sources have them.

use std::collections::BTreeSet;
use std::path::Path;

/// The modules that the files of a folder import from the simulator, each beside the module that does: of what is behind so many
/// `super`s.
fn imports(
    folder: &Path,
    module: Option<&str>,
    depth: usize,
    into: &mut BTreeSet<(String, String)>,
) {
    for file in std::fs::read_dir(folder).expect("the sources").map(|file| file.expect("a file")) {
        let path = file.path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let module = module.unwrap_or(&name);
        if module == "tests" {
            continue;
        }
        if path.is_dir() {
            imports(&path, Some(module), depth + 1, into);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source");
        let from = format!("use {}", "super::".repeat(depth));
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(&*from));
        let imported = lines.filter_map(|line| line.split("::").next());
        let imported = imported.filter(|of| *of != "super" && *of != module);
        into.extend(imported.map(|of| (module.to_owned(), of.to_owned())));
    }
}

#[test]
fn no_two_modules_import_each_other() {
    let mut all = BTreeSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sim");
    imports(&folder, None, 1, &mut all);
    assert!(all.contains(&("traffic".to_owned(), "quantity".to_owned())));
    let both = all.iter().filter(|(one, other)| all.contains(&(other.clone(), one.clone())));
    assert_eq!(both.collect::<Vec<_>>(), Vec::<&(String, String)>::new());
}
