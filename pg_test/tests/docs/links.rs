//! The links of the documentation.

use super::page::{Page, pages};
use std::fs;
use std::path::Path;

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages();
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|page| page.links().into_iter().map(move |link| (page, link)))
        .filter(|(page, link)| !is_external(link) && !leads_somewhere(&pages, page, link))
        .map(|(page, link)| format!("{}: {link}", page.path.display()))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A link to another site, or to a page of the site that hosts the repository, is not followed: tests run without a network.
fn is_external(link: &str) -> bool {
    link.starts_with("https://") || link.starts_with("../../")
}

fn leads_somewhere(pages: &[Page], from: &Page, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = match file {
        "" => from.path.clone(),
        file => from.path.parent().unwrap().join(file),
    };
    let Ok(path) = fs::canonicalize(path) else { return false };
    anchor.is_empty() || has_anchor(pages, &path, anchor)
}

fn has_anchor(pages: &[Page], path: &Path, anchor: &str) -> bool {
    pages
        .iter()
        .filter(|page| fs::canonicalize(&page.path).unwrap() == path)
        .any(|page| page.anchors().iter().any(|of_page| of_page == anchor))
}
