//! Makes a site of the documentation: `pg_snowflake_site FOLDER`, which `./dev site` runs.
//!
//! `docs/README.md` is the index: its groups and their pages are the sidebar. The pages are rendered as they are. Only their
//! links change where GitHub's differ, and mdBook does the rest.

mod index;
mod offline;
mod page;
mod runbooks;
mod sources;

use anyhow::{Context, Result, ensure};
use index::Index;
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use page::Tree;
use runbooks::Runbooks;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The page that takes an ID apart.
const ID_PAGE: &str = "id.md";

/// What that page is made of, beside each other as here, so that imports find it.
const ITS_FOLDER: &str = "site/page";
const MODULE: [&str; 2] = ["javascript/snowflake.js", "javascript/find.js"];

fn main() -> Result<()> {
    let to = PathBuf::from(env::args_os().nth(1).context("usage: pg_snowflake_site FOLDER")?);
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is in the tree");
    build(top, &to)
}

/// Writes the site of the tree at `top` into a folder.
fn build(top: &Path, to: &Path) -> Result<()> {
    let index = Index::parse(&read(&top.join(index::PATH))?)?;
    let repository = repository(&read(&top.join("Cargo.toml"))?)?;
    let tree = Tree::new(top, repository.clone(), index.paths());
    let mut runbooks = Runbooks::parse(&read(&top.join(runbooks::PATH))?)?;
    for path in files(&top.join(runbooks::OUTPUTS))? {
        runbooks.add_errors(&read(&path)?);
    }
    let sources = files(&top.join(runbooks::SOURCES))?.into_iter();
    for path in sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        runbooks.add_texts(&path, &read(&path)?).with_context(|| path.display().to_string())?;
    }
    let book = tempfile::tempdir()?;
    let (book, source) = (book.path(), book.path().join("src"));
    for path in index.paths() {
        let text = read(&top.join(&path))?;
        runbooks.add_errors(&text);
        let page = tree.rendered(&path, &text)?;
        for image in page.images {
            copy(&top.join(&image), &source.join(&image))?;
        }
        write(&source.join(page::place(&path)), &page.text)?;
    }
    // As a page at the top of the tree, which is its place in the site.
    let id_page = tree.rendered(ID_PAGE, &read(&top.join(ITS_FOLDER).join(ID_PAGE))?)?;
    write(&source.join(ID_PAGE), &id_page.text)?;
    for entry in fs::read_dir(top.join(ITS_FOLDER))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension != "md") {
            copy(&path, &source.join(ITS_FOLDER).join(path.file_name().expect("a file")))?;
        }
    }
    for file in MODULE {
        copy(&top.join(file), &source.join(file))?;
    }
    write(&source.join("SUMMARY.md"), &index.summary(ID_PAGE))?;
    let here = top.join("site");
    for path in files(&here.join("theme"))? {
        copy(&path, &book.join(path.strip_prefix(&here)?))?;
    }
    write(&book.join("theme/runbooks.js"), &runbooks.script()?)?;
    let mut config = Config::from_disk(here.join("book.toml"))?;
    config.build.build_dir = std::path::absolute(to)?;
    config.set("output.html.git-repository-url", repository)?;
    MDBook::load_with_config(book, config)?.build()?;
    for path in files(to)? {
        let name = path.file_name().expect("a file").to_string_lossy();
        let change: fn(&str) -> Result<String> = match () {
            () if name.ends_with(".html") && name != "toc.html" => with_two_themes,
            () if name.starts_with("highlight-") && name.ends_with(".js") => with_our_sql,
            () => continue,
        };
        let text = change(&read(&path)?).with_context(|| path.display().to_string())?;
        write(&path, &text)?;
    }
    let worker =
        offline::worker(to, &files(to)?, &read(&here.join("theme").join(offline::WORKER))?)?;
    write(&to.join(offline::WORKER), &worker)
}

/// Has the menu of themes offer the system's, light and dark. mdBook has three more, and calls the dark one by its colour.
fn with_two_themes(html: &str) -> Result<String> {
    let item = |id: &str, name: &str| {
        format!(
            "<li role=\"none\"><button role=\"menuitem\" class=\"theme\" id=\"mdbook-theme-{id}\">{name}</button></li>"
        )
    };
    let without = [("rust", "Rust"), ("coal", "Coal"), ("ayu", "Ayu")];
    let mut html = html.to_owned();
    for (id, name) in without {
        html = replaced(&html, &item(id, name), "")?;
    }
    html =
        replaced(&html, &item("default_theme", "Auto"), &item("default_theme", "As the system"))?;
    html = replaced(&html, &item("navy", "Navy"), &item("navy", "Dark"))?;
    replaced(&html, "Search this book ...", "Search words, functions, error messages")
}

/// Has the colours of SQL be those of PostgreSQL, where `#` is XOR. In MySQL, it begins a comment.
fn with_our_sql(script: &str) -> Result<String> {
    replaced(script, "e.C_BLOCK_COMMENT_MODE,t,e.HASH_COMMENT_MODE]", "e.C_BLOCK_COMMENT_MODE,t]")
}

/// Replaces what a version of mdBook might no longer write.
fn replaced(text: &str, from: &str, by: &str) -> Result<String> {
    ensure!(text.contains(from), "mdBook does not write {from}");
    Ok(text.replace(from, by))
}

/// The files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// The URL of the repository, which Cargo.toml states once.
fn repository(manifest: &str) -> Result<String> {
    let manifest: toml::Table = manifest.parse()?;
    let url = manifest["workspace"]["package"]["repository"].as_str();
    Ok(url.context("Cargo.toml has no repository")?.to_owned())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().expect("a file in a folder"))?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().expect("a file in a folder"))?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}
