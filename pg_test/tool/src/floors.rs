//! The rule of the house: the files of a crate do not use each other in a circle, and use only what is on their floor or below.
//!
//! The root of a crate (`lib.rs`, `main.rs`) declares its modules in groups that blank lines separate. Each group is a floor, the
//! top floor first. One group makes no floors.
//!
//! An arrow is a path in the code. The call of a method names no path, so it is not seen, even if another file defines the type.

mod names;
mod source;
mod tokens;

use crate::tools::Result;
use names::{Arrow, Place, ancestors, arrows};
use source::Crate;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Write;

/// The root of the library, and how many floors it has. If somebody deletes a blank line there, two floors become one, which hides the
/// arrows between them.
const LIBRARY: &str = "src/lib.rs";
const FLOORS_OF_LIBRARY: usize = 4;

/// Modules of the library that use only themselves and those listed, beside other crates, and the reason.
const BESIDE: [(&str, &[&str], &str); 1] = [("registry", &["postgres"], "it is an extension of its own")];

/// Checks the crates of these files, and returns their floors with the lines of code on each.
pub fn check(files: &[String], text_of: impl Fn(&str) -> Option<String> + Sync) -> Result<String> {
    let (mut floors, mut broken) = (String::new(), String::new());
    for tree in crates(files, &text_of)? {
        let arrows = arrows(&tree);
        broken += &tree.refused;
        if tree.files[0].path == LIBRARY {
            broken += &pinned(&tree, &arrows);
        }
        broken += &circles(&tree, &arrows);
        broken += &arrows_up(&tree, &arrows);
        floors += &table(&tree);
    }
    match broken.is_empty() {
        true => Ok(floors),
        false => Err(broken),
    }
}

/// The crates of these files, by the places where cargo looks for their roots.
fn crates(files: &[String], text_of: &(impl Fn(&str) -> Option<String> + Sync)) -> Result<Vec<Crate>> {
    const FOLDERS_OF_ROOTS: [&str; 3] = ["bin", "tests", "fuzz_targets"];
    let is_named_root = |file: &&String| file.ends_with("/lib.rs") || file.ends_with("/main.rs");
    let roots: Vec<&String> = files.iter().filter(is_named_root).collect();
    let mut crates: Vec<Crate> = std::thread::scope(|scope| {
        let read = |root: &String| Crate::read(root, text_of);
        let readers: Vec<_> = roots.into_iter().map(|root| scope.spawn(move || read(root))).collect();
        readers.into_iter().map(|reader| reader.join().expect("it does not panic")).collect::<Result<_>>()
    })?;
    let read: HashSet<String> = crates.iter().flat_map(|tree| &tree.files).map(|file| file.path.clone()).collect();
    for file in files.iter().filter(|file| file.ends_with(".rs") && !read.contains(*file)) {
        let folder = file.rsplit('/').nth(1).unwrap_or_default();
        if FOLDERS_OF_ROOTS.contains(&folder) {
            crates.push(Crate::read(file, text_of)?);
        }
    }
    crates.sort_by(|one, other| one.files[0].path.cmp(&other.files[0].path));
    Ok(crates)
}

/// For each file that uses itself by others, the shortest circle, and each circle once.
fn circles(tree: &Crate, arrows: &BTreeMap<Arrow, Place>) -> String {
    let mut circles: BTreeSet<(usize, Vec<usize>)> = BTreeSet::new();
    for file in 0..tree.files.len() {
        if let Some(mut circle) = shortest_circle(file, arrows) {
            let lowest = circle.iter().enumerate().min_by_key(|(_, file)| **file);
            let turn = lowest.map_or(0, |(at, _)| at);
            circle.rotate_left(turn);
            circles.insert((circle.len(), circle));
        }
    }
    let mut text = String::new();
    for (_, circle) in circles {
        let _ = writeln!(text, "a circle of files of {}:", tree.files[0].path);
        for (at, &file) in circle.iter().enumerate() {
            let arrow = (file, circle[(at + 1) % circle.len()]);
            let _ = writeln!(text, "    {}", shown(tree, arrow, &arrows[&arrow]));
        }
    }
    text
}

/// The files of a shortest circle, from this one on.
fn shortest_circle(file: usize, arrows: &BTreeMap<Arrow, Place>) -> Option<Vec<usize>> {
    let mut before: HashMap<usize, usize> = HashMap::new();
    let mut next = VecDeque::from([file]);
    while let Some(from) = next.pop_front() {
        for &(_, to) in arrows.range((from, 0)..=(from, usize::MAX)).map(|(arrow, _)| arrow) {
            if to == file {
                let mut circle = vec![from];
                while let Some(&from) = before.get(circle.last()?) {
                    circle.push(from);
                }
                circle.reverse();
                return Some(circle);
            }
            if let Entry::Vacant(unseen) = before.entry(to) {
                unseen.insert(from);
                next.push_back(to);
            }
        }
    }
    None
}

/// The arrows from a floor to one above.
fn arrows_up(tree: &Crate, arrows: &BTreeMap<Arrow, Place>) -> String {
    let mut text = String::new();
    for (&arrow, place) in arrows {
        let (from, to) = arrow;
        if let (Some(from), Some(to)) = (floor(tree, from), floor(tree, to))
            && to < from
        {
            let root = &tree.files[0].path;
            let _ = writeln!(text, "up, from floor {} to floor {} of {root}:", from + 1, to + 1);
            let _ = writeln!(text, "    {}", shown(tree, arrow, place));
        }
    }
    text
}

/// What breaks the rules that only the library has.
fn pinned(tree: &Crate, arrows: &BTreeMap<Arrow, Place>) -> String {
    let mut text = String::new();
    if tree.groups.len() != FLOORS_OF_LIBRARY {
        let floors = tree.groups.len();
        let _ = writeln!(text, "{LIBRARY} has {floors} floors instead of {FLOORS_OF_LIBRARY}");
    }
    for (room, others, reason) in BESIDE {
        if !tree.groups.concat().iter().any(|name| name == room) {
            let _ = writeln!(text, "{LIBRARY} has no {room}");
        }
        for (&arrow, place) in arrows {
            let (from, to) = (room_of(tree, arrow.0), room_of(tree, arrow.1));
            let is_allowed = to.is_some_and(|to| to == room || others.contains(&to));
            if from == Some(room) && !is_allowed {
                let others = others.join(", ");
                let _ = writeln!(text, "{room} uses only {others}, since {reason}:");
                let _ = writeln!(text, "    {}", shown(tree, arrow, place));
            }
        }
    }
    text
}

/// An arrow as one line.
fn shown(tree: &Crate, (from, to): Arrow, place: &Place) -> String {
    let (from, to) = (&tree.files[from].path, &tree.files[to].path);
    format!("{from}:{} uses {to}: {}", place.line, place.path)
}

/// The floor of a file, from 0 at the top. The root has none.
fn floor(tree: &Crate, file: usize) -> Option<usize> {
    let room = room_of(tree, file)?;
    tree.groups.iter().position(|group| group.iter().any(|name| name == room))
}

/// The module of the root that a file belongs to.
fn room_of(tree: &Crate, file: usize) -> Option<&str> {
    let is_below_root = |&module: &usize| tree.modules[module].parent == Some(0);
    let module = ancestors(tree, tree.files[file].module).find(is_below_root)?;
    Some(&tree.modules[module].name)
}

/// The floors, from the top, with the lines of code on each.
fn table(tree: &Crate) -> String {
    if tree.groups.len() < 2 {
        return String::new();
    }
    let mut text = format!("    {}\n", tree.files[0].path);
    for (at, group) in tree.groups.iter().enumerate() {
        let on_it = (0..tree.files.len()).filter(|&file| floor(tree, file) == Some(at));
        let lines: usize = on_it.map(|file| tree.files[file].lines).sum();
        let _ = writeln!(text, "    {:>3} {lines:>6} lines  {}", at + 1, group.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;
