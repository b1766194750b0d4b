//! What the files of a crate define, import and mention.
//!
//! They are read as tokens, not as a syntax tree: the arguments of macros are then read like other code, and all files of the tree
//! take a second or two in a program that is not optimized. Tests, by their `cfg`, are left out.

use super::tokens::{before, end_of, end_of_item, instead_of, is_for_tests, is_group, is_punct, is_word, line_of, name_at};
use crate::tools::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;

/// The segments of a path, as `["crate", "sequence", "nextval"]`. The last is [`EVERYTHING`] in a glob.
pub type Segments = Vec<String>;

pub const EVERYTHING: &str = "*";

/// The files of a crate and their modules. The first of each is the root.
#[derive(Default)]
pub struct Crate {
    pub files: Vec<File>,
    pub modules: Vec<Module>,
    /// The names of the files that the root declares, in groups that blank lines separate.
    pub groups: Vec<Vec<String>>,
    /// What hides an arrow, each with its place and what to write instead.
    pub refused: String,
}

pub struct File {
    /// From the top of the tree.
    pub path: String,
    /// The module that the file is.
    pub module: usize,
    /// Its lines of code, without tests and comments.
    pub lines: usize,
}

/// A module that is a file, or a part of one.
#[derive(Default)]
pub struct Module {
    pub name: String,
    pub parent: Option<usize>,
    pub file: usize,
    pub names: HashMap<String, Vec<Definition>>,
    pub macros: HashSet<String>,
    /// The modules of which it imports everything.
    pub globs: Vec<Segments>,
    pub mentions: Vec<Mention>,
}

/// What a name means in its module.
pub enum Definition {
    Item,
    Module(usize),
    Import(Segments),
}

/// A path in the code.
pub struct Mention {
    pub path: Segments,
    pub line: usize,
    pub kind: Kind,
}

#[derive(PartialEq, Clone, Copy)]
pub enum Kind {
    Path,
    Macro,
    Import,
    /// An import that other modules can use.
    Export,
}

/// A file that a module declares.
struct Declared {
    name: String,
    parent: Option<usize>,
    path: String,
    /// Where the files of its modules are.
    folder: String,
    line: usize,
}

impl Crate {
    /// Reads the root and the files of all its modules. `text_of` returns the text of a file.
    pub fn read(root: &str, text_of: impl Fn(&str) -> Option<String>) -> Result<Crate> {
        let mut tree = Crate::default();
        let mut unread = VecDeque::from([Declared {
            name: "crate".to_owned(),
            parent: None,
            path: root.to_owned(),
            folder: folder_of(root).to_owned(),
            line: 0,
        }]);
        while let Some(Declared { name, parent, path, folder, .. }) = unread.pop_front() {
            let text = text_of(&path).ok_or_else(|| format!("{path} is missing"))?;
            let tokens = text.parse::<TokenStream>().map_err(|error| format!("{path}: {error}"))?;
            let module = tree.module(name, parent, tree.files.len());
            let mut reader = Reader { tree: &mut tree, path: &path, lines: Vec::new(), declared: Vec::new() };
            reader.tokens(tokens, module, Some(&folder));
            let Reader { mut lines, declared, .. } = reader;
            lines.sort_unstable();
            lines.dedup();
            if parent.is_none() {
                tree.groups = in_groups(&declared, &text);
            }
            tree.files.push(File { path, module, lines: lines.len() });
            unread.extend(declared);
        }
        Ok(tree)
    }

    fn module(&mut self, name: String, parent: Option<usize>, file: usize) -> usize {
        let module = self.modules.len();
        if let Some(parent) = parent {
            self.define(parent, name.clone(), Definition::Module(module));
        }
        self.modules.push(Module { name, parent, file, ..Module::default() });
        module
    }

    fn define(&mut self, module: usize, name: String, definition: Definition) {
        self.modules[module].names.entry(name).or_default().push(definition);
    }
}

/// The folder of a file.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The names of these files in groups: a blank line between two declarations ends a group.
fn in_groups(declared: &[Declared], text: &str) -> Vec<Vec<String>> {
    let text: Vec<&str> = text.lines().collect();
    let are_together = |before: &Declared, after: &Declared| !text[before.line..after.line].iter().any(|line| line.trim().is_empty());
    let groups = declared.chunk_by(are_together);
    groups.map(|group| group.iter().map(|file| file.name.clone()).collect()).collect()
}

/// Reads the tokens of a file. A method that is called for a token returns the place of the token at which reading goes on.
struct Reader<'a> {
    tree: &'a mut Crate,
    path: &'a str,
    /// The line of each token.
    lines: Vec<usize>,
    declared: Vec<Declared>,
}

impl Reader<'_> {
    /// Reads code of a module: its items, if their `folder` is given, or what is in an item.
    fn tokens(&mut self, tokens: TokenStream, module: usize, folder: Option<&str>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            if let Some(instead) = instead_of(&tokens, at) {
                let _ = writeln!(self.tree.refused, "{}:{}: {instead}", self.path, line_of(token));
            }
        }
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => self.attribute(&tokens, at, module, folder),
                TokenTree::Group(group) => {
                    let is_of_module = is_word(before(&tokens, at, 1), "extern") || is_word(before(&tokens, at, 2), "extern");
                    self.lines.push(line_of(&tokens[at]));
                    self.tokens(group.stream(), module, folder.filter(|_| is_of_module));
                    self.lines.push(group.span_close().start().line);
                    at + 1
                }
                TokenTree::Ident(_) => {
                    self.lines.push(line_of(&tokens[at]));
                    self.word(&tokens, at, module, folder)
                }
                other => {
                    self.lines.push(line_of(other));
                    at + 1
                }
            }
        }
    }

    /// Leaves out what is for tests.
    fn attribute(&mut self, tokens: &[TokenTree], at: usize, module: usize, folder: Option<&str>) -> usize {
        let is_inner = is_punct(tokens.get(at + 1), '!');
        let content_at = if is_inner { at + 2 } else { at + 1 };
        // Some macros have a "#" of their own.
        let Some(TokenTree::Group(group)) = tokens.get(content_at) else { return at + 1 };
        let after = content_at + 1;
        let content: Vec<TokenTree> = group.stream().into_iter().collect();
        match (name_at(&content, 0).as_deref(), content.get(1)) {
            (Some("cfg"), Some(TokenTree::Group(condition))) if is_for_tests(condition.stream()) => {
                if is_inner {
                    tokens.len()
                } else {
                    end_of_item(tokens, after)
                }
            }
            (Some("doc"), _) => after,
            (Some("path"), _) if folder.is_some() => {
                let name = name_at(tokens, after + 1).unwrap_or_default();
                let path = content[2].to_string();
                let path = format!("{}/{}", folder_of(self.path), path.trim_matches('"'));
                self.declare(name, module, path.clone(), folder_of(&path), line_of(&tokens[after]));
                after + 3
            }
            _ => {
                self.lines.push(line_of(&tokens[at]));
                self.tokens(group.stream(), module, None);
                after
            }
        }
    }

    /// Reads what a word begins: an import, the name of an item, a path.
    fn word(&mut self, tokens: &[TokenTree], at: usize, module: usize, folder: Option<&str>) -> usize {
        let next = name_at(tokens, at + 1);
        let is_after = |punct| is_punct(before(tokens, at, 1), punct);
        match (name_at(tokens, at).as_deref(), next, folder) {
            // A lifetime, a field or method, the rest of a path, a variable of a macro.
            _ if is_after('\'') || is_after(':') && is_punct(before(tokens, at, 2), ':') => at + 1,
            _ if is_after('.') && !is_punct(before(tokens, at, 2), '.') => at + 1,
            (Some(name), ..) if is_after('$') && name != "crate" => at + 1,
            // pub(in crate::sequence)
            (Some("pub"), None, _) if is_group(tokens.get(at + 1), Delimiter::Parenthesis) => at + 2,
            (Some("use"), ..) if !is_punct(tokens.get(at + 1), '<') => self.import(tokens, at, module),
            (Some("mod"), Some(name), Some(folder)) => {
                match tokens.get(at + 2) {
                    Some(TokenTree::Group(content)) => {
                        let file = self.tree.modules[module].file;
                        let folder = format!("{folder}/{name}");
                        let inner = self.tree.module(name, Some(module), file);
                        self.tokens(content.stream(), inner, Some(&folder));
                        self.lines.push(content.span_close().start().line);
                    }
                    _ => {
                        let base = format!("{folder}/{name}");
                        let line = line_of(&tokens[at]);
                        self.declare(name, module, format!("{base}.rs"), &base, line);
                    }
                }
                at + 3
            }
            (Some("macro_rules"), None, _) => {
                if let Some(name) = name_at(tokens, at + 2) {
                    self.tree.modules[module].macros.insert(name.clone());
                    self.tree.define(module, name, Definition::Item);
                }
                at + 3
            }
            (Some("const"), Some(word), _) if ["fn", "unsafe", "async", "extern"].contains(&&*word) => at + 1,
            (Some("fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"), Some(name), _)
                if !is_after('*') && !is_word(before(tokens, at, 1), "raw") =>
            {
                let (name, end) = match name_at(tokens, at + 2) {
                    Some(variable) if name == "mut" => (variable, at + 3),
                    _ => (name, at + 2),
                };
                if folder.is_some() {
                    self.tree.define(module, name, Definition::Item);
                }
                end
            }
            _ => self.mention(tokens, at, module),
        }
    }

    /// A file that a `mod` declares.
    fn declare(&mut self, name: String, module: usize, path: String, folder: &str, line: usize) {
        let (parent, folder) = (Some(module), folder.to_owned());
        self.declared.push(Declared { name, parent, path, folder, line });
    }

    /// Reads a `use`.
    fn import(&mut self, tokens: &[TokenTree], at: usize, module: usize) -> usize {
        let is_public = is_word(before(tokens, at, 1), "pub") || is_word(before(tokens, at, 2), "pub");
        let kind = if is_public { Kind::Export } else { Kind::Import };
        let end = end_of(tokens, at, ';');
        for token in &tokens[at..end] {
            self.lines.push(line_of(token));
        }
        self.tree(&tokens[at + 1..end], &[], kind, module);
        end + 1
    }

    /// Reads what an import has after `prefix`.
    fn tree(&mut self, tokens: &[TokenTree], prefix: &[String], kind: Kind, module: usize) {
        for branch in tokens.split(|token| is_punct(Some(token), ',')) {
            let mut path = prefix.to_vec();
            let mut name = None;
            for (at, token) in branch.iter().enumerate() {
                match token {
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.lines.push(group.span_close().start().line);
                        self.tree(&inner, &path, kind, module);
                    }
                    TokenTree::Punct(punct) if punct.as_char() == '*' => {
                        self.tree.modules[module].globs.push(path.clone());
                        let path = [&path[..], &[EVERYTHING.to_owned()]].concat();
                        let line = line_of(token);
                        self.tree.modules[module].mentions.push(Mention { path, line, kind });
                    }
                    TokenTree::Punct(_) => {}
                    _ => match name_at(branch, at).unwrap_or_default() {
                        word if word == "as" => {
                            name = name_at(branch, at + 1);
                            break;
                        }
                        word if word == "self" && !path.is_empty() => name = path.last().cloned(),
                        word => {
                            path.push(word.clone());
                            name = Some(word);
                        }
                    },
                }
            }
            let is_name = matches!(branch.last(), Some(TokenTree::Ident(_)));
            if let Some(name) = name.filter(|_| is_name) {
                let line = line_of(&branch[0]);
                self.lines.push(line);
                self.tree.define(module, name, Definition::Import(path.clone()));
                self.tree.modules[module].mentions.push(Mention { path, line, kind });
            }
        }
    }

    /// Reads a path.
    fn mention(&mut self, tokens: &[TokenTree], at: usize, module: usize) -> usize {
        let mut end = at;
        let mut path = Vec::from_iter(name_at(tokens, at));
        while let Some(name) = name_at(tokens, end + 3)
            && is_punct(tokens.get(end + 1), ':')
            && is_punct(tokens.get(end + 2), ':')
        {
            path.push(name);
            end += 3;
        }
        // Of a field, an argument or a variable: `name: Type`.
        let is_label = path.len() == 1 && is_punct(tokens.get(end + 1), ':') && !is_punct(tokens.get(end + 2), ':');
        if !is_label {
            let kind = if is_punct(tokens.get(end + 1), '!') { Kind::Macro } else { Kind::Path };
            let line = line_of(&tokens[at]);
            self.tree.modules[module].mentions.push(Mention { path, line, kind });
        }
        end + 1
    }
}
