//! The rule of the house: a module of the library uses only modules of its own floor, without a circle, and of the floors below.
//!
//! `src/lib.rs` declares the modules in groups that blank lines separate. Each group is a floor, the top floor first. A module uses
//! another if a path in its code, outside its tests, begins with `crate::` and the name of the other. The call of a method names no path,
//! so it is not seen.
//!
//! With the lowest floor as a crate, an ID took as many instructions (1,271 and 1,269), but without link-time optimization, the library
//! got 137 relocations (5 %) and 44 kB of code more, as cold code is inlined differently. The allocator had to be declared by a macro.

use crate::tools::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// If somebody deletes a blank line between the groups, two floors become one, which hides the uses between them.
const FLOORS: usize = 4;
/// An extension of its own: it uses only this module.
const REGISTRY: (&str, &str) = ("registry", "postgres");

/// Checks the texts of the files of the library, each with its name.
pub fn check(files: &[(String, String)]) -> Result {
    let root = files.iter().find(|(_, file)| file == "src/lib.rs");
    let floors = floors(root.map_or("", |(root, _)| root));
    let floor = |module: &String| floors.iter().position(|floor| floor.contains(&module.as_str()));
    let mut broken = String::new();
    if floors.len() != FLOORS {
        let _ = writeln!(broken, "src/lib.rs has {} floors instead of {FLOORS}", floors.len());
    }
    // The modules that a module uses, each with a file that uses it.
    let mut uses: BTreeMap<String, BTreeMap<String, &str>> = BTreeMap::new();
    for (text, file) in files {
        let path = file.trim_start_matches("src/").trim_end_matches(".rs");
        let module = path.split('/').next().unwrap_or_default().to_owned();
        let used = used(text, path.split('/').count()).into_iter().filter(|used| *used != module && floor(used).is_some());
        uses.entry(module.clone()).or_default().extend(used.map(|used| (used, file.as_str())));
    }
    for (module, used) in &uses {
        for (used, file) in used {
            if floor(used) < floor(module) {
                let _ = writeln!(broken, "{file} uses {used}, which is on a floor above");
            }
            if module == REGISTRY.0 && used != REGISTRY.1 {
                let _ = writeln!(broken, "{file} uses {used}: {} uses only {}", REGISTRY.0, REGISTRY.1);
            }
        }
    }
    if !broken.is_empty() {
        return Err(broken);
    }
    // A module of a circle uses one that is left, and is used by one. In the end, only circles and what is between two of them are left.
    let mut left: BTreeSet<&String> = uses.keys().collect();
    let is_above = |left: &BTreeSet<&String>, module: &String| !left.iter().any(|other| uses[*other].contains_key(module));
    let is_below = |left: &BTreeSet<&String>, module: &String| uses[module].keys().all(|used| !left.contains(used));
    while let Some(apart) = left.iter().copied().find(|module| is_above(&left, module) || is_below(&left, module)) {
        left.remove(apart);
    }
    for module in &left {
        for (used, file) in uses[*module].iter().filter(|(used, _)| left.contains(used)) {
            let _ = writeln!(broken, "in a circle: {file} uses {used}");
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

/// The modules on each floor.
fn floors(root: &str) -> Vec<Vec<&str>> {
    let name = |line| str::strip_prefix(line, "mod ").and_then(|rest| rest.strip_suffix(';'));
    let groups = root.split("\n\n").map(|group| group.lines().filter_map(name).collect::<Vec<_>>());
    groups.filter(|floor| !floor.is_empty()).collect()
}

/// The names that follow `crate::` in a file that is so deep below the root, which has as many `super::` for it.
fn used(text: &str, depth: usize) -> BTreeSet<String> {
    let tests = ["#[cfg(test)]\nmod ", "#[cfg(feature = \"pg_test\")]\n"].map(|tests| text.find(tests));
    let code = text[..tests.into_iter().flatten().min().unwrap_or(text.len())].replace(&"super::".repeat(depth), "crate::");
    let mut used = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        let paths = match path.strip_prefix('{') {
            Some(group) => group.split(';').next().unwrap_or_default(),
            None => path.split(',').next().unwrap_or_default(),
        };
        let names = paths.split(['{', ',', '}']).map(|path| path.trim().split(|c: char| c != '_' && !c.is_alphanumeric()).next());
        used.extend(names.flatten().map(str::to_owned));
    }
    used
}

#[cfg(test)]
mod tests {
    use super::check;

    /// Checks a library whose top floor has `a` and `b`, and which has another file of that text.
    fn checked(file: &str, text: &str) -> Result<(), String> {
        let root = "mod a;\nmod b;\nmod registry;\n\n// Middle.\nmod c;\n\nmod d;\n\nmod postgres;\n\nuse postgres::memory;\n";
        let a = "use crate::b;\nuse crate::{c::{C, D}, d};\nfn a() {}\n\n#[cfg(test)]\nmod tests {}\n";
        let files =
            [("src/lib.rs", root), ("src/a.rs", a), ("src/b.rs", "use crate::postgres::query;"), ("src/c.rs", "// Nothing."), (file, text)];
        check(&files.map(|(file, text)| (text.to_owned(), file.to_owned())))
    }

    #[test]
    fn a_use_of_a_floor_above_is_found_however_it_is_written() {
        for text in
            ["use crate::a;", "use crate::{d, a::A};", "fn c() -> crate::a::A {}", "use super::super::a;", "const C: A = [crate::a::A, 1];"]
        {
            assert_eq!(checked("src/c/e.rs", text), Err("src/c/e.rs uses a, which is on a floor above\n".to_owned()), "{text}");
        }
        for text in ["use crate::d::a;", "use super::a;", "use crate::c;", "f();\n\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}"] {
            assert_eq!(checked("src/c/e.rs", text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_circle_is_found_and_what_the_registry_uses() {
        let circle = "in a circle: src/a.rs uses b\nin a circle: src/b/e.rs uses a\n";
        assert_eq!(checked("src/b/e.rs", "use crate::a;"), Err(circle.to_owned()));
        assert_eq!(checked("src/registry.rs", "use crate::postgres;"), Ok(()));
        assert!(checked("src/registry.rs", "use crate::c;").is_err_and(|said| said.contains("registry uses only postgres")));
    }
}
