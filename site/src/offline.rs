//! What a reader's browser keeps, so that the site works without a network.

use anyhow::{Context, Result};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The service worker, beside the pages: a browser lets it answer for its folder only.
pub const WORKER: &str = "worker.js";

/// The worker's script, for these files of a site. Its cache has another name if a file has changed.
pub fn worker(site: &Path, files: &[PathBuf], script: &str) -> Result<String> {
    let mut names = Vec::new();
    for path in files {
        let name = path.strip_prefix(site)?.to_str().context("a name in UTF-8")?;
        // GitHub Pages does not serve hidden files.
        if !name.starts_with('.') {
            names.push((name, path));
        }
    }
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    for (name, path) in &names {
        (name, fs::read(path)?).hash(&mut hasher);
    }
    let names: Vec<&str> = names.into_iter().map(|(name, _)| name).collect();
    let (hash, names) = (hasher.finish(), serde_json::to_string(&names)?);
    Ok(format!("const VERSION = '{hash:016x}';\nconst FILES = {names};\n\n{script}"))
}

#[cfg(test)]
mod tests {
    use super::worker;
    use std::fs;

    #[test]
    fn a_worker_lists_the_files_and_changes_with_them() {
        let site = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = site.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let files = [file("docs/b.html", "b"), file("a.html", "a"), file(".nojekyll", "")];
        let of = || worker(site.path(), &files, "run();\n").unwrap();
        let first = of();
        assert!(
            first.ends_with("\nconst FILES = [\"a.html\",\"docs/b.html\"];\n\nrun();\n"),
            "{first}"
        );
        assert_eq!(of(), first);
        file("docs/b.html", "c");
        assert_ne!(of(), first);
    }
}
