//! The SQL of the extensions and the library agree. People write both, and no generator makes one from the other.

use crate::declarations::rust_files;
use object::{Object, ObjectSymbol};
use pg_snowflake_harness::installation::pg_config;
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::release::{self, EXTENSIONS, SNOWFLAKE, read};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::Visit;
use syn::{FnArg, GenericArgument, ItemFn, Pat, PathArguments, ReturnType, Signature, Type};

/// Rust's types of arguments and results, without lifetimes, and the SQL types that have this form.
const TYPES: [(&str, &str); 20] = [
    ("Array<i32>", "integer[]"),
    ("Array<i64>", "bigint[]"),
    ("Array<TimestampTz>", "timestamp with time zone[]"),
    ("CStr", "cstring"),
    ("CStr", "name"),
    ("CString", "cstring"),
    ("Internal", "internal"),
    ("Interval", "interval"),
    ("Multirange", "int8multirange"),
    ("Oid", "regclass"),
    ("SqlLayout", "snowflake_layout"),
    ("StoredExpression", "pg_node_tree"),
    ("String", "text"),
    ("TimestampTz", "timestamp with time zone"),
    ("Uuid", "uuid"),
    ("[u8]", "text"),
    ("bool", "boolean"),
    ("i32", "integer"),
    ("i64", "bigint"),
    ("str", "text"),
];

#[test]
fn each_sql_function_has_a_wrapper_with_its_arguments() {
    let (_database, mut client) = database();
    let wrappers = wrappers();
    let functions = functions(&mut client);
    let called: BTreeSet<&str> = functions.iter().map(|function| function.symbol.as_str()).collect();
    let unused = wrappers.keys().filter(|symbol| !called.contains(symbol.as_str()));
    let unused = unused.filter(|symbol| !is_released(symbol));
    let mut problems: Vec<String> = unused.map(|symbol| format!("{symbol}: no SQL function calls it")).collect();
    for function in &functions {
        let found = match wrappers.get(&function.symbol) {
            Some(wrapper) => wrapper.problems(function),
            None => vec![format!("{} is not in src", function.symbol)],
        };
        problems.extend(found.iter().map(|problem| format!("{}: {problem}", function.name)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_library_exports_each_wrapper_and_its_calling_convention() {
    let library = fs::read(pg_config("--pkglibdir").join("pg_snowflake.so")).unwrap();
    let library = object::File::parse(&*library).unwrap();
    let exported: BTreeSet<String> = library
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name().unwrap().to_owned())
        .filter(|symbol| symbol.ends_with("_wrapper"))
        .collect();
    let expected: BTreeSet<String> = wrappers().into_keys().flat_map(|symbol| [format!("pg_finfo_{symbol}"), symbol]).collect();
    let differing: Vec<&String> = exported.symmetric_difference(&expected).collect();
    assert!(differing.is_empty(), "only in the library or only in src: {differing:?}");
}

/// `make` takes the order of the lines, cargo-pgrx sorts the files by what they require.
#[test]
fn the_install_script_is_the_files_of_sql_in_the_order_of_the_library() {
    let library = read(&top().join("src/lib.rs"));
    let mut files = Vec::new();
    let mut requires = String::new();
    for line in library.lines().filter(|line| line.starts_with("extension_sql_file!")) {
        let name = line.split('"').nth(3).unwrap_or_else(|| panic!("{line}: more than one line"));
        let file = format!("{name}.sql");
        assert_eq!(line, format!("extension_sql_file!(\"../sql/{file}\", name = \"{name}\"{requires});"));
        requires = format!(", requires = [\"{name}\"]");
        files.push(file);
    }
    let sql = top().join("sql");
    let script: String = files.iter().map(|file| read(&sql.join(file))).collect();
    let installed = release::extensions().join(SNOWFLAKE.install_script(&release::head()));
    assert!(read(&installed) == script, "{} differs", installed.display());

    let entries = fs::read_dir(sql).unwrap();
    let mut present: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // Those with two hyphens update a release.
        .filter(|name| name.ends_with(".sql") && !name.contains("--"))
        .collect();
    files.sort();
    present.sort();
    assert_eq!(files, present, "in src/lib.rs and in sql");
}

#[test]
fn psql_refuses_to_run_an_install_script() {
    let (database, mut client) = database_with("DROP EXTENSION pg_snowflake");
    for extension in EXTENSIONS {
        let script = release::extensions().join(extension.install_script(&release::head()));
        let printed = database.psql(&read(&script));
        let name = extension.name;
        assert_eq!(printed, format!("Use \"CREATE EXTENSION {name}\" to load this file.\n"));
        run(&mut client, &format!("CREATE EXTENSION {name}"));
    }
}

/// A function in C, as the catalog has it.
struct Function {
    name: String,
    symbol: String,
    is_strict: bool,
    /// The names of the arguments, if they have names.
    names: Option<Vec<String>>,
    types: Vec<String>,
    returns_set: bool,
    result: String,
    /// The columns of a row.
    columns: usize,
}

/// The functions of both extensions in the library.
fn functions(client: &mut Client) -> Vec<Function> {
    run(client, "CREATE EXTENSION pg_snowflake_registry");
    let sql = "
        SELECT oid::regprocedure::text, prosrc, proisstrict, proargnames[1:pronargs],
            proargtypes::oid[]::regtype[]::text[], proretset, prorettype::regtype::text,
            cardinality(array_positions(proargmodes, 'o'))
        FROM pg_proc WHERE probin = '$libdir/pg_snowflake'";
    let rows = client.query(sql, &[]).unwrap();
    let functions = rows.iter().map(|row| Function {
        name: row.get(0),
        symbol: row.get(1),
        is_strict: row.get(2),
        names: row.get(3),
        types: row.get(4),
        returns_set: row.get(5),
        result: row.get(6),
        columns: row.get::<_, Option<i32>>(7).unwrap_or(0) as usize,
    });
    functions.collect()
}

/// Whether SQL that has been released names that symbol. Databases that have not been updated call it.
fn is_released(symbol: &str) -> bool {
    release::versions(top()).iter().any(|version| {
        EXTENSIONS.iter().any(|extension| {
            let script = read(&top().join(extension.released(version)));
            script.contains(&format!("'{symbol}'"))
        })
    })
}

/// A function in Rust that the server calls with the arguments of an SQL function.
struct Wrapper {
    names: Vec<String>,
    /// The types of the arguments and of the result, without paths and lifetimes; `None` if the function reads the call itself.
    types: Option<(Vec<String>, String)>,
}

impl Wrapper {
    /// Where the SQL function differs.
    fn problems(&self, function: &Function) -> Vec<String> {
        let names = &self.names;
        let mut problems = Vec::new();
        if function.names.as_ref().is_some_and(|in_sql| in_sql != names) {
            problems.push(format!("its arguments are {names:?} in Rust"));
        }
        let Some((types, result)) = &self.types else {
            if !function.is_strict {
                problems.push("it is not STRICT, but reads its arguments as if none were null".to_owned());
            }
            return problems;
        };
        let fit = types.iter().zip(&function.types).all(|(rust, sql)| fits(rust, sql));
        if !fit || types.len() != function.types.len() {
            problems.push(format!("its arguments have the types {types:?} in Rust"));
        }
        // A strict function is not called with a null. In any other, pgrx panics at a null for which there is no Option.
        if types.iter().any(|rust| inside("Option", rust).is_some() == function.is_strict) {
            let strictness = if function.is_strict { "STRICT" } else { "not STRICT" };
            problems.push(format!("it is {strictness}, but its arguments have the types {types:?}"));
        }
        if !returns(result, function) {
            problems.push(format!("its result is {result} in Rust"));
        }
        problems
    }
}

/// Whether a value of the type in Rust, or a null, can be one of the SQL type.
fn fits(rust: &str, sql: &str) -> bool {
    TYPES.contains(&(inside("Option", rust).unwrap_or(rust), sql))
}

/// Whether that is the type of the function's result. Of a row, Rust has the number of columns and not their types.
fn returns(rust: &str, function: &Function) -> bool {
    let row = inside("SetOfIterator", rust);
    let fits = match row.unwrap_or(rust).split_once("ResultRow") {
        Some((_, columns)) => function.result == "record" && columns == format!("<{}>", function.columns),
        None => fits(row.unwrap_or(rust), &function.result),
    };
    fits && row.is_some() == function.returns_set
}

/// `T`, if the type is `outer<T>`.
fn inside<'a>(outer: &str, rust: &'a str) -> Option<&'a str> {
    rust.strip_prefix(outer)?.strip_prefix('<')?.strip_suffix('>')
}

/// The wrappers in `src`, by their symbol.
fn wrappers() -> BTreeMap<String, Wrapper> {
    let mut found = Wrappers::default();
    for file in rust_files(&top().join("src")) {
        found.aliases.clear();
        found.visit_file(&parsed(&file));
    }
    found.wrappers
}

#[derive(Default)]
struct Wrappers {
    wrappers: BTreeMap<String, Wrapper>,
    /// The names that the file gives to types.
    aliases: BTreeMap<String, String>,
    /// The rules of the macros that make functions, by the name of the macro.
    rules: BTreeMap<String, String>,
}

impl Wrappers {
    fn add(&mut self, function: &Signature) {
        let arguments = function.inputs.iter().map(|argument| match argument {
            FnArg::Typed(argument) => (name(&argument.pat), self.spelled(&argument.ty)),
            FnArg::Receiver(_) => panic!("{} is a method", function.ident),
        });
        let (names, types) = arguments.unzip();
        let result = match &function.output {
            ReturnType::Default => "void".into(),
            ReturnType::Type(_, result) => self.spelled(result),
        };
        self.wrappers.insert(format!("{}_wrapper", function.ident), Wrapper { names, types: Some((types, result)) });
    }

    /// The type without paths and lifetimes.
    fn spelled(&self, rust: &Type) -> String {
        match rust {
            Type::Reference(reference) => self.spelled(&reference.elem),
            Type::Slice(slice) => format!("[{}]", self.spelled(&slice.elem)),
            Type::Path(path) => {
                let last = path.path.segments.last().expect("a path has an end");
                let name = last.ident.to_string();
                let arguments: Vec<String> = match &last.arguments {
                    PathArguments::AngleBracketed(list) => {
                        list.args.iter().filter_map(|argument| self.spelled_argument(argument)).collect()
                    }
                    _ => Vec::new(),
                };
                match self.aliases.get(&name) {
                    Some(alias) => alias.clone(),
                    None if arguments.is_empty() => name,
                    None => format!("{name}<{}>", arguments.join(", ")),
                }
            }
            _ => rust.to_token_stream().to_string(),
        }
    }

    fn spelled_argument(&self, argument: &GenericArgument) -> Option<String> {
        match argument {
            GenericArgument::Lifetime(_) => None,
            GenericArgument::Type(rust) => Some(self.spelled(rust)),
            other => Some(other.to_token_stream().to_string()),
        }
    }
}

impl<'ast> Visit<'ast> for Wrappers {
    fn visit_item_type(&mut self, alias: &'ast syn::ItemType) {
        let spelled = self.spelled(&alias.ty);
        self.aliases.insert(alias.ident.to_string(), spelled);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let symbol = function.sig.ident.to_string();
        if function.attrs.iter().any(|attribute| attribute.path().is_ident("pg_extern")) {
            self.add(&function.sig);
        } else if symbol.ends_with("_wrapper") {
            let mut arguments = Arguments::default();
            arguments.visit_item_fn(function);
            self.wrappers.insert(symbol, Wrapper { names: arguments.0, types: None });
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let tokens = item.mac.tokens.to_string();
        match &item.ident {
            Some(name) if tokens.contains("pg_extern") => {
                self.rules.insert(name.to_string(), tokens);
            }
            Some(_) => {}
            None => {
                let name = item.mac.path.to_token_stream().to_string();
                let functions = self.rules.get(&name).map(|rule| expanded(rule, &tokens));
                for file in functions.unwrap_or_default() {
                    Visit::visit_file(self, &file);
                }
            }
        }
    }
}

/// The names in `let [name, …] = unsafe { arguments(fcinfo) }`.
#[derive(Default)]
struct Arguments(Vec<String>);

impl<'ast> Visit<'ast> for Arguments {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Pat::Slice(slice) = &local.pat
            && local.to_token_stream().to_string().contains("arguments (fcinfo)")
        {
            self.0 = slice.elems.iter().map(name).collect();
        }
    }
}

fn name(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(pattern) => pattern.ident.to_string(),
        _ => panic!("{} is not a name", pattern.to_token_stream()),
    }
}

/// The functions that a macro with one rule, `($($a:ident, $b:ident;)*) => {… $(functions)*}`, makes of each `a, b;` in its call.
fn expanded(rule: &str, call: &str) -> Vec<syn::File> {
    let rule = rule.replace("$ ", "$");
    let (matched, body) = rule.split_once("=>").expect("a rule has two sides");
    let variables: Vec<&str> = matched.split('$').filter_map(|part| Some(part.split_once(':')?.0.trim())).collect();
    let (_, functions) = body.rsplit_once("$(").expect("each side ends with a repetition");
    let (functions, _) = functions.rsplit_once(")*").or(functions.rsplit_once(") *")).expect("the end of the repetition");
    let lines = call.split(';').filter(|line| !line.trim().is_empty());
    let files = lines.map(|line| {
        let mut values: Vec<(&str, &str)> = variables.iter().copied().zip(line.split(',')).collect();
        // The longest name first: it may begin with another.
        values.sort_by_key(|(variable, _)| usize::MAX - variable.len());
        let functions = values.iter().fold(functions.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value));
        syn::parse_file(&functions).expect("functions")
    });
    files.collect()
}

pub fn parsed(file: &Path) -> syn::File {
    syn::parse_file(&read(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
