//! Small crates, which keep the rule or break it.

use super::check;

/// Checks a crate of these files in the folder `small/src`.
fn checked(files: &[(&str, &str)]) -> Result<String, String> {
    checked_in("small/src", files)
}

fn checked_in(folder: &str, files: &[(&str, &str)]) -> Result<String, String> {
    let paths: Vec<String> = files.iter().map(|(name, _)| format!("{folder}/{name}")).collect();
    check(&paths, |path| {
        let found = files.iter().find(|(name, _)| path == format!("{folder}/{name}"));
        found.map(|(_, text)| (*text).to_owned())
    })
}

/// A crate whose file `a.rs` uses item `b`, which is in `b.rs`, as `a` does.
fn a_uses_b(a: &str) -> [(&str, &str); 3] {
    [("lib.rs", "mod b;\n\nmod a;"), ("b.rs", "pub fn b() {}\npub enum Enum { One }"), ("a.rs", a)]
}

#[test]
fn an_arrow_up_is_found_however_it_is_written() {
    for a in [
        "use crate::b::b;",
        "use super::b::{self as other, b};",
        "use crate::b; fn f() { b::b() }",
        "use crate::{b as other}; fn f() { println!(\"{}\", other::b()) }",
        "fn f() { if true { return [crate::b::b()] } }",
        "fn f(b: &crate::b::Enum) {}",
        "fn f() { use crate::b; let _ = ..b::b(); }",
        "const A: [(); { crate::b::b(); 1 }] = [()];",
        "fn f() { assert!(matches!(f, crate::b::Enum::One)) }",
        "use crate::b::Enum::One;",
        "use crate::b::*; fn f() { b() }",
        "#[derive(Parser)] struct A { #[arg(value_parser = crate::b::b)] a: u8 }",
        "mod inner { fn f() { super::super::b::b() } }",
        "mod inner { pub fn g() {} } unsafe extern \"C\" { fn h(); }\n#[cfg(not(test))] use crate::b::b;",
        "macro_rules! call { ($e:expr) => { $crate::b::b($e) } }",
        "fn f() { &raw const crate::b::S; }",
        "use crate::b::*;",
        "use crate::{b::{*}};",
        "use crate::b::Enum::*;",
        "pub(crate) use crate::b::*;",
        "#[cfg(any(test, unix))] use crate::b::b;",
        "#[cfg(any(test, feature = \"other\"))] use crate::b::b;",
    ] {
        let line = a.lines().count();
        let place = format!("up, from floor 2 to floor 1 of small/src/lib.rs:\n    small/src/a.rs:{line} uses small/src/b.rs: ");
        assert!(checked(&a_uses_b(a)).is_err_and(|broken| broken.starts_with(&place)), "{a}");
    }
}

#[test]
fn tests_and_other_crates_are_not_arrows() {
    for a in [
        "#[cfg(test)] mod tests { use crate::b::b; }",
        "#[cfg(feature = \"pg_test\")]\n#[pg_schema]\nmod tests { use crate::b::b; }",
        "#[cfg(test)] use crate::b::{b, Enum};",
        "#[cfg(test)] pub(crate) fn f<A, B>() -> crate::b::Enum { crate::b::b() }",
        "enum A { #[cfg(test)] B(crate::b::Enum), C }",
        "#![cfg(test)] use crate::b::b;",
        "mod test_only { #![cfg(test)] use crate::b::b; }",
        "/// [`crate::b::b`]\nfn f() { let x = \"crate::b::b\"; /* crate::b::b() */ }",
        "use ::b::b; use std::b; fn f() { x.b(); Self::b(); <X as Y>::b(); }",
        "pub(in crate::b) fn f() {}",
        "use one::*; use two::*; use three::*; use four::*; fn f() { b() }",
        "macro_rules! call { ($($b:tt)*) => { use $($b)*; } }",
        "use crate::b; fn f<'b>(b: u8) {}",
    ] {
        assert_eq!(checked(&a_uses_b(a)).err(), None, "{a}");
    }
}

#[test]
fn a_circle_is_found_with_its_lines() {
    let broken = checked(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "use crate::b::B;\npub struct A;"),
        ("b.rs", "\n\npub struct B(crate::c::C);"),
        ("c.rs", "use super::a::A;\nuse crate::d::D;\npub struct C;"),
        ("d.rs", "pub struct D;"),
    ]);
    let circle = "a circle of files of small/src/lib.rs:
    small/src/a.rs:1 uses small/src/b.rs: crate::b::B
    small/src/b.rs:3 uses small/src/c.rs: crate::c::C
    small/src/c.rs:1 uses small/src/a.rs: super::a::A
";
    assert_eq!(broken, Err(circle.to_owned()));
}

#[test]
fn a_parent_and_its_child_can_make_a_circle() {
    for (parent, child) in [
        ("fn f() { child::f() } fn g() {}", "use super::g;"),
        ("pub use child::f; fn h() { f() } fn g() {}", "use super::g;"),
        ("use child::f; fn g() {}", "use super::*; pub fn f() { g() }"),
        ("use child::f; macro_rules! call { () => {} }", "call!();"),
    ] {
        let child = format!("{child} pub fn f() {{}}");
        let files = [("main.rs", "mod parent;"), ("parent.rs", &format!("mod child; {parent}")), ("parent/child.rs", &child)];
        assert!(checked(&files).is_err_and(|broken| broken.starts_with("a circle")), "{parent}");
    }
}

#[test]
fn an_arrow_leads_to_the_file_that_defines_the_item() {
    // The parent exports its children's items, and is not used itself.
    let facade = ("lib.rs", "mod parent;\nmod user;\npub use parent::A;");
    let parent = ("parent.rs", "mod a;\nmod b;\npub use a::A;\npub use b::*;");
    let mut files = [
        facade,
        parent,
        ("parent/a.rs", "pub struct A(super::B);"),
        ("parent/b.rs", "pub struct B;"),
        ("user.rs", "use crate::A;\nuse crate::parent::B;"),
    ];
    assert_eq!(checked(&files).err(), None);
    files[3].1 = "pub struct B;\nuse crate::parent::A;";
    let circle = "a circle of files of small/src/lib.rs:
    small/src/parent/a.rs:1 uses small/src/parent/b.rs: super::B
    small/src/parent/b.rs:2 uses small/src/parent/a.rs: crate::parent::A
";
    assert_eq!(checked(&files), Err(circle.to_owned()));
}

#[test]
fn floors_are_the_groups_of_the_root() {
    let files = [
        ("lib.rs", "//! A crate.\n\nmod a;\n#[doc(hidden)]\n/// B.\npub mod b;\n// C.\nmod c;\n\n#[cfg(test)]\nmod tests;\n\nmod d;\n"),
        ("a.rs", "mod inner;\n\n// No code.\nfn f() {\n}\n#[cfg(test)]\nmod tests {}\n"),
        ("a/inner.rs", "fn f() {}"),
        ("b.rs", "use crate::a::inner::f;"),
        ("c.rs", ""),
        ("d.rs", "const D: u8 =\n    1;"),
    ];
    let table = "    small/src/lib.rs\n      1      5 lines  a, b, c\n      2      2 lines  d\n";
    assert_eq!(checked(&files), Ok(table.to_owned()));
    // One group makes no floors.
    assert_eq!(checked(&[("lib.rs", "mod a;"), ("a.rs", "")]), Ok(String::new()));
}

#[test]
fn a_file_is_missing() {
    assert_eq!(checked(&[("lib.rs", "mod a;")]), Err("small/src/a.rs is missing".to_owned()));
}

#[test]
fn what_hides_an_arrow_is_refused() {
    for (a, instead) in [
        ("#[macro_export] macro_rules! call { () => {} }", "`pub(crate) use NAME;`"),
        ("#[macro_use] mod inner {}", "`pub(crate) use NAME;`"),
        ("std::include!(\"b.in\");", "`mod NAME;`"),
        ("extern crate self as other;", "`crate`"),
    ] {
        let refused = checked(&a_uses_b(a)).expect_err(a);
        assert!(refused.starts_with("small/src/a.rs:1: ") && refused.contains(instead), "{refused}");
    }
}

#[test]
fn the_library_has_four_floors_and_a_registry_beside() {
    const ROOT: &str = "mod error;\nmod registry;\n\nmod shard;\n\nmod sequence;\n\nmod postgres;";
    let checked = |root: &str, in_registry: &str| {
        checked_in(
            "src",
            &[
                ("lib.rs", root),
                ("error.rs", ""),
                ("registry.rs", "mod tables;"),
                ("registry/tables.rs", in_registry),
                ("shard.rs", ""),
                ("sequence.rs", ""),
                ("postgres.rs", "pub struct Text;"),
            ],
        )
    };
    assert_eq!(checked(ROOT, "use crate::postgres::Text;").err(), None);
    for other in ["error", "shard", "sequence"] {
        let broken = checked(ROOT, &format!("use crate::{other}::E;")).expect_err(other);
        let place = format!("    src/registry/tables.rs:1 uses src/{other}.rs: crate::{other}::E\n");
        assert!(broken.starts_with("registry uses only postgres") && broken.ends_with(&place));
    }
    let merged = ROOT.replace("shard;\n\n", "shard;\n");
    assert_eq!(checked(&merged, ""), Err("src/lib.rs has 3 floors instead of 4\n".to_owned()));
    let without = ROOT.replace("mod registry;\n", "");
    assert_eq!(checked(&without, ""), Err("src/lib.rs has no registry\n".to_owned()));
}
