//! Which file defines what a path names.

use super::source::{Crate, Definition, EVERYTHING, Kind, Mention, Segments};
use std::collections::BTreeMap;

/// How many imports lead from a name to its item, at most.
const MAX_IMPORTS: usize = 16;

/// A use of one file by another, by their numbers in the crate.
pub type Arrow = (usize, usize);

/// Where an arrow is in the code: the line, and the path there.
pub struct Place {
    pub line: usize,
    pub path: String,
}

/// What a path names.
#[derive(PartialEq)]
enum Target {
    Module(usize),
    /// An item, by its file.
    Item(usize),
}

/// Which files use which others, each with its first place.
pub fn arrows(tree: &Crate) -> BTreeMap<Arrow, Place> {
    let mut arrows: BTreeMap<Arrow, Place> = BTreeMap::new();
    for (module, content) in tree.modules.iter().enumerate() {
        for mention in &content.mentions {
            for file in files(tree, module, mention) {
                let line = mention.line;
                if arrows.get(&(content.file, file)).is_none_or(|first| line < first.line) {
                    let path = mention.path.join("::");
                    arrows.insert((content.file, file), Place { line, path });
                }
            }
        }
    }
    arrows
}

/// The other files that a mention uses.
fn files(tree: &Crate, module: usize, mention: &Mention) -> Vec<usize> {
    let own = tree.modules[module].file;
    let mut files: Vec<usize> = resolve(tree, module, &mention.path, 0)
        .into_iter()
        .filter_map(|target| match target {
            Target::Item(file) => Some(file),
            Target::Module(_) => None,
        })
        .collect();
    // A macro is known in the modules of its module, without an import.
    if let (Kind::Macro, [name], true) = (mention.kind, &mention.path[..], files.is_empty()) {
        let defines = |&above: &usize| tree.modules[above].macros.contains(name);
        files.extend(ancestors(tree, module).find(defines).map(|above| tree.modules[above].file));
    }
    files.retain(|&file| {
        let is_below = ancestors(tree, tree.files[file].module).any(|above| above == module);
        file != own && !(mention.kind == Kind::Export && is_below)
    });
    files
}

/// A module, its parent, and so on to the root.
pub fn ancestors(tree: &Crate, module: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(module), |&module| tree.modules[module].parent)
}

/// What a path in a module names. An item of another crate is not found.
fn resolve(tree: &Crate, module: usize, path: &[String], imports: usize) -> Vec<Target> {
    let mut base = module;
    let mut names = path;
    while let [first, rest @ ..] = names {
        base = match (first.as_str(), tree.modules[base].parent) {
            ("crate", _) => 0,
            ("self", _) => base,
            ("super", Some(parent)) => parent,
            _ => break,
        };
        names = rest;
    }
    let found = look_up(tree, base, names, imports);
    if names.len() < path.len() { item_in(tree, base, found) } else { found }
}

/// What was found in a module, or an item of its file: a macro may have defined it, or another crate.
fn item_in(tree: &Crate, module: usize, found: Vec<Target>) -> Vec<Target> {
    if found.is_empty() { vec![Target::Item(tree.modules[module].file)] } else { found }
}

/// What a path names whose first name is looked up in `module`.
fn look_up(tree: &Crate, module: usize, path: &[String], imports: usize) -> Vec<Target> {
    let [name, rest @ ..] = path else { return vec![Target::Module(module)] };
    if imports > MAX_IMPORTS {
        return Vec::new();
    }
    let content = &tree.modules[module];
    if name == EVERYTHING {
        return vec![Target::Item(content.file)];
    }
    let definitions = content.names.get(name).map_or(&[][..], |definitions| definitions);
    let is_module = |definition: &&Definition| matches!(definition, Definition::Module(_));
    if let (Some(Definition::Module(inner)), false) = (definitions.iter().find(is_module), rest.is_empty()) {
        return item_in(tree, *inner, look_up(tree, *inner, rest, imports));
    }
    let mut found = Vec::new();
    for definition in definitions {
        match definition {
            Definition::Item => found.push(Target::Item(content.file)),
            Definition::Module(inner) => found.push(Target::Module(*inner)),
            Definition::Import(path) => {
                let path = [path, rest].concat();
                found.extend(resolve(tree, module, &path, imports + 1));
            }
        }
    }
    if definitions.is_empty() {
        // Other crates are left out. Two of them would be looked up in each other's globs, 2^MAX_IMPORTS times.
        let is_ours = |glob: &&Segments| {
            let is_keyword = |name: &String| ["crate", "self", "super"].contains(&&**name);
            glob.first().is_some_and(|name| is_keyword(name) || content.names.contains_key(name))
        };
        let globs = content.globs.iter().filter(is_ours);
        for target in globs.flat_map(|glob| resolve(tree, module, glob, imports + 1)) {
            if let Target::Module(other) = target {
                found.extend(look_up(tree, other, path, imports + 1));
            }
        }
    }
    found
}
