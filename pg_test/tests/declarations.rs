//! The library's own declarations of the server's functions and types match the headers of the major under test.
//!
//! Each foreign function in `src`, each `#[repr(C)]` struct, and each constant whose comment begins with a C name and its
//! header, is written as C here, and the C compiler compares it with the headers.

use crate::wrappers::parsed;
use pg_snowflake_harness::installation::{bindir, major, pg_config};
use pg_snowflake_harness::prelude::*;
use quote::ToTokens;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, ForeignItem, Item, Lit, Meta, ReturnType, Type};

/// The headers that declare functions. Structs and constants name their headers themselves.
const HEADERS: &str = "postgres.h
    access/htup_details.h access/relation.h access/xact.h access/xlog.h access/xloginsert.h catalog/pg_constraint.h catalog/pg_inherits.h
    miscadmin.h nodes/nodeFuncs.h pgstat.h storage/bufmgr.h storage/lmgr.h tcop/utility.h utils/acl.h utils/partcache.h utils/relcache.h
    utils/syscache.h utils/timestamp.h";

/// From 19 on.
const SEQUENCE_HEADER: &str = "commands/sequence_xlog.h";

/// The structs that do not mirror one in a header: of the settings, of the page's free space, one that no header declares
/// before 19, and one of libpq, whose header a server need not have.
const OWN_STRUCTS: [&str; 6] = ["PQconninfoOption", "CoverageRecord", "ForeignHost", "OwnedRanges", "Range", "sequence_magic"];

#[test]
fn declarations_match_the_servers_headers() {
    let mut c = C { major: major(bindir()), ..C::default() };
    for file in rust_files(&top().join("src")) {
        c.visit_file(&parsed(&file));
    }
    assert!(c.functions > 30 && c.structs > 3 && c.constants > 3, "{c:?}");
    compile(&c.text());
}

#[test]
fn a_declaration_that_differs_from_the_header_is_refused() {
    for case in [
        "unsafe extern \"C\" { fn has_subclass(relation: i64) -> bool; }",
        "/// `xl_seq_rec` (commands/sequence.h)\n#[repr(C)] struct xl_seq_rec { other: i32, locator: RelFileLocator }",
        "/// `XLOG_SEQ_LOG` (commands/sequence.h)\nconst XLOG_SEQ_LOG: u8 = 0x10;",
    ] {
        let mut c = C { major: major(bindir()), ..C::default() };
        c.visit_file(&syn::parse_str(case).unwrap());
        assert!(std::panic::catch_unwind(|| compile(&c.text())).is_err(), "{case}");
    }
}

/// The source files in a folder and the folders in it.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Lets the C compiler check the text, without generating code.
fn compile(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("declarations.c");
    fs::write(&file, text).unwrap();
    let output = Command::new("cc")
        .args(["-std=gnu11", "-fsyntax-only", "-w", "-I"])
        .arg(pg_config("--includedir-server"))
        .arg(&file)
        .output()
        .expect("a C compiler links Rust programs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Rust's declarations as C, and how many there are.
#[derive(Debug, Default)]
struct C {
    major: u32,
    headers: String,
    aliases: String,
    mirrors: String,
    checks: String,
    functions: usize,
    structs: usize,
    constants: usize,
}

impl C {
    fn text(&self) -> String {
        let C { headers, aliases, mirrors, checks, .. } = self;
        let own = HEADERS.split_whitespace().chain((self.major >= 19).then_some(SEQUENCE_HEADER));
        let own: String = own.map(|header| format!("#include \"{header}\"\n")).collect();
        format!("{own}{headers}{aliases}{mirrors}{checks}")
    }

    fn check(&mut self, condition: &str, what: &str) {
        writeln!(self.checks, "_Static_assert({condition}, \"{what}\");").unwrap();
    }

    fn function(&mut self, function: &syn::ForeignItemFn) {
        let name = self.symbol(&function.attrs).unwrap_or(function.sig.ident.to_string());
        let arguments: Vec<String> = function
            .sig
            .inputs
            .iter()
            .map(|argument| match argument {
                FnArg::Typed(argument) => known_c_type(&argument.ty),
                FnArg::Receiver(_) => panic!("{name} is a C function"),
            })
            .chain(function.sig.variadic.as_ref().map(|_| "...".to_owned()))
            .collect();
        let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        let result = match &function.sig.output {
            ReturnType::Default => "void".into(),
            ReturnType::Type(_, result) => known_c_type(result),
        };
        self.check(&format!("__builtin_types_compatible_p(__typeof__({name}), {result} ({arguments}))"), &format!("function {name}"));
        self.functions += 1;
    }

    /// The linked symbol, if it is not the function's name.
    fn symbol(&self, attributes: &[Attribute]) -> Option<String> {
        attributes.iter().find_map(|attribute| {
            let meta = match &attribute.meta {
                Meta::List(list) if list.path.is_ident("cfg_attr") => {
                    let mut metas = metas(list);
                    self.holds(&metas[0]).then(|| metas.remove(1))?
                }
                meta => meta.clone(),
            };
            text_of(&meta, "link_name")
        })
    }

    /// A struct of the same fields, and each of them at the same place and of the same type.
    fn mirrored_struct(&mut self, mirrored: &syn::ItemStruct, c_name: &str) {
        let name = format!("mirrored_{}", mirrored.ident);
        let mut fields = String::new();
        for field in &mirrored.fields {
            let field_name = field.ident.as_ref().expect("a C struct has named fields").to_string();
            let c_field = renamed(&field_name, self.major);
            write!(fields, " {} {c_field};", known_c_type(&field.ty)).unwrap();
            self.check(
                &format!("offsetof(struct {name}, {c_field}) == offsetof({c_name}, {c_field})"),
                &format!("place of {c_name}.{c_field}"),
            );
            self.check(
                &format!("__builtin_types_compatible_p(__typeof__((({c_name} *) 0)->{c_field}), {})", known_c_type(&field.ty)),
                &format!("type of {c_name}.{c_field}"),
            );
        }
        if !is_head(&mirrored.attrs) {
            self.check(&format!("sizeof(struct {name}) == sizeof({c_name})"), &format!("size of {c_name}"));
        }
        writeln!(self.mirrors, "struct {name} {{{fields} }};").unwrap();
        self.structs += 1;
    }

    /// Whether a condition of `#[cfg]` holds for this major.
    fn holds(&self, meta: &Meta) -> bool {
        match meta {
            Meta::NameValue(pair) if pair.path.is_ident("feature") => {
                let feature = pair.value.to_token_stream().to_string();
                feature == format!("\"pg{}\"", self.major)
            }
            Meta::List(list) if list.path.is_ident("not") => !self.holds(&metas(list)[0]),
            Meta::List(list) if list.path.is_ident("any") => metas(list).iter().any(|meta| self.holds(meta)),
            Meta::List(list) if list.path.is_ident("all") => metas(list).iter().all(|meta| self.holds(meta)),
            _ => false,
        }
    }

    fn is_in(&self, attributes: &[Attribute]) -> bool {
        attributes.iter().all(|attribute| match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg") => self.holds(&metas(list)[0]),
            _ => true,
        })
    }

    /// The C name and its header, if the comment begins with them and this major has the header. The header gets included.
    fn c_name(&mut self, attributes: &[Attribute]) -> Option<String> {
        let comment = comment(attributes)?;
        let after = comment.trim_start_matches(HEAD).trim_start().strip_prefix('`')?;
        let (name, rest) = after.split_once('`')?;
        let (header, _) = rest.strip_prefix(" (")?.split_once(')')?;
        let (header, first_major) = match header.split_once(" from ") {
            Some((header, majors)) => (header, majors.strip_suffix(" on")?.parse().ok()?),
            None => (header, 0),
        };
        (header.ends_with(".h") && self.major >= first_major).then(|| {
            writeln!(self.headers, "#include \"{header}\"").unwrap();
            name.to_owned()
        })
    }
}

impl<'ast> Visit<'ast> for C {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::ForeignMod(module) => {
                for item in &module.items {
                    if let ForeignItem::Fn(function) = item
                        && self.is_in(&function.attrs)
                    {
                        self.function(function);
                    }
                }
            }
            Item::Struct(mirrored) if self.is_in(&mirrored.attrs) && is_repr_c(&mirrored.attrs) => match self.c_name(&mirrored.attrs) {
                Some(name) => self.mirrored_struct(mirrored, &name),
                None => {
                    assert!(OWN_STRUCTS.iter().any(|own| mirrored.ident == own), "the comment of struct {} names no header", mirrored.ident)
                }
            },
            Item::Const(constant) if self.is_in(&constant.attrs) => {
                if let Expr::Lit(literal) = &*constant.expr
                    && let Lit::Int(value) = &literal.lit
                    && let Some(name) = self.c_name(&constant.attrs)
                {
                    self.check(&format!("{name} == {}", value.base10_digits()), &name);
                    self.constants += 1;
                }
            }
            Item::Type(alias) if self.is_in(&alias.attrs) => {
                if let Some(c_type) = c_type(&alias.ty) {
                    writeln!(self.aliases, "#define {} {c_type}", alias.ident).unwrap();
                }
            }
            _ => visit::visit_item(self, item),
        }
    }
}

/// The beginning of the comment of a struct that has only the first fields.
const HEAD: &str = " The head of ";

fn is_head(attributes: &[Attribute]) -> bool {
    comment(attributes).is_some_and(|comment| comment.starts_with(HEAD))
}

/// The first line of the comment.
fn comment(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| text_of(&attribute.meta, "doc"))
}

/// The string of `name = "string"`.
fn text_of(meta: &Meta, name: &str) -> Option<String> {
    if let Meta::NameValue(pair) = meta
        && pair.path.is_ident(name)
        && let Expr::Lit(literal) = &pair.value
        && let Lit::Str(text) = &literal.lit
    {
        return Some(text.value());
    }
    None
}

fn is_repr_c(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("repr") && attribute.meta.to_token_stream().to_string().contains("(C)"))
}

fn metas(list: &syn::MetaList) -> Vec<Meta> {
    let parse = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
    list.parse_args_with(parse).expect("a list of conditions").into_iter().collect()
}

/// A field that has another name in C in that major.
fn renamed(field: &str, major: u32) -> &str {
    if field == "locator" && major == 15 { "node" } else { field }
}

/// # Panics
/// If C has no such type.
fn known_c_type(rust: &Type) -> String {
    c_type(rust).unwrap_or_else(|| panic!("{} is not a type of C", rust.to_token_stream()))
}

/// The type as C spells it without a name, if C has it.
fn c_type(rust: &Type) -> Option<String> {
    match rust {
        Type::Ptr(pointer) => {
            let constant = if pointer.const_token.is_some() { "const " } else { "" };
            Some(format!("{constant}{} *", c_type(&pointer.elem)?))
        }
        Type::BareFn(function) => {
            let arguments: Option<Vec<String>> = function.inputs.iter().map(|argument| c_type(&argument.ty)).collect();
            let result = match &function.output {
                ReturnType::Default => "void".into(),
                ReturnType::Type(_, result) => c_type(result)?,
            };
            Some(format!("{result} (*) ({})", arguments?.join(", ")))
        }
        Type::Path(path) => {
            let segments = &path.path.segments;
            if segments.iter().any(|segment| !segment.arguments.is_none()) {
                return None;
            }
            // pgrx has an enum as a module of constants, with their type in it.
            let mut names = segments.iter().rev().map(|segment| segment.ident.to_string());
            let name = names.find(|name| name != "Type")?;
            Some(match name.as_str() {
                "c_int" => "int".into(),
                "c_char" => "char".into(),
                "c_void" => "void".into(),
                "i16" => "int16".into(),
                "i64" => "int64".into(),
                "u8" => "uint8".into(),
                "u32" => "uint32".into(),
                _ => name,
            })
        }
        _ => None,
    }
}
