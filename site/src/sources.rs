//! The texts of errors in the sources of the extension.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeSet, HashMap};
use std::mem::take;
use syn::LitStr;

/// Texts of one function, and the message that they belong to, if there is one.
pub struct Texts {
    pub message: Option<String>,
    pub texts: Vec<String>,
}

/// Those of a source, with … for variable parts. A text belongs to the message in the smallest brackets around it that have one. If
/// these have several, it is left out.
///
/// # Errors
/// If the source has no Rust tokens.
pub fn texts_in(source: &str, is_message: impl Fn(&str) -> bool) -> Result<Vec<Texts>> {
    let tokens = source.parse::<TokenStream>().map_err(|error| anyhow!("{error}"))?;
    let mut search = Search { is_message, constants: HashMap::new(), found: Vec::new() };
    search.between_brackets(tokens);
    Ok(search.found)
}

struct Search<F> {
    is_message: F,
    /// The text of each constant that the source defines before it.
    constants: HashMap<String, String>,
    found: Vec<Texts>,
}

impl<F: Fn(&str) -> bool> Search<F> {
    /// The messages between two brackets, and the texts whose message is not known yet.
    fn between_brackets(&mut self, tokens: TokenStream) -> (BTreeSet<String>, Vec<String>) {
        let (mut messages, mut texts) = (BTreeSet::new(), Vec::new());
        let mut words: Vec<String> = Vec::new();
        let mut is_in_signature = false;
        for token in tokens {
            let text = match token {
                TokenTree::Ident(word) => {
                    is_in_signature |= words.last().is_some_and(|before| before == "fn");
                    words.push(word.to_string());
                    self.constants.get(words.last().expect("it was pushed")).cloned()
                }
                TokenTree::Group(group) => {
                    let (inner_messages, inner_texts) = self.between_brackets(group.stream());
                    if is_in_signature && group.delimiter() == Delimiter::Brace {
                        is_in_signature = false;
                        if inner_messages.is_empty() {
                            self.found.push(Texts { message: None, texts: inner_texts });
                        }
                    } else {
                        messages.extend(inner_messages);
                        texts.extend(inner_texts);
                    }
                    None
                }
                TokenTree::Literal(literal) => {
                    let text = syn::parse2::<LitStr>(TokenTree::from(literal).into());
                    let text = text.ok().map(|text| generalized(&text.value()));
                    match (words.as_slice(), text) {
                        ([.., constant, name, of], Some(text))
                            if constant == "const" && of == "str" =>
                        {
                            self.constants.insert(name.clone(), text);
                            None
                        }
                        (_, text) => text,
                    }
                }
                TokenTree::Punct(_) => None,
            };
            match text {
                Some(text) if (self.is_message)(&text) => _ = messages.insert(text),
                Some(text) => texts.push(text),
                None => {}
            }
        }
        if messages.len() == 1 {
            let message = messages.first().cloned();
            self.found.push(Texts { message, texts: take(&mut texts) });
        }
        (messages, texts)
    }
}

/// A text with … in place of a name or a figure, and a runbook's heading of a message: that has the extension's name, and a function's
/// without brackets.
fn generalized(text: &str) -> String {
    let text = text.replace("{NAME}", "pg_snowflake");
    let mut parts = text.split('{');
    let mut general = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        general.push('…');
        general.push_str(part.split_once('}').map_or("", |(_, after)| after));
    }
    general.replace("…()", "…")
}

#[cfg(test)]
mod tests {
    use super::texts_in;

    #[test]
    fn a_text_belongs_to_the_message_beside_it() {
        let source = r#"
            const WAIT: &str = "Wait.";
            fn report(e: E) -> R {
                let (message, hint) = match e {
                    E::Lost(shard) => (format!("shard {shard} is lost"), "Find it."),
                    E::NoAnswer => ("no answer".into(), WAIT),
                };
                R { message, hint, detail: if e.is_old() { "It is old." } else { "" } }
            }
            fn reason() -> String { format!("{NAME} has {0} shards", 5) }
        "#;
        let is_message = |text: &str| ["shard … is lost", "no answer"].contains(&text);

        let found = texts_in(source, is_message).unwrap();

        let found: Vec<String> = found
            .iter()
            .filter(|found| !found.texts.is_empty())
            .map(|found| format!("{:?} {:?}", found.message, found.texts))
            .collect();
        assert_eq!(
            found,
            [
                r#"Some("shard … is lost") ["Find it."]"#,
                r#"Some("no answer") ["Wait."]"#,
                r#"None ["pg_snowflake has … shards"]"#,
            ]
        );
        assert!(texts_in("fn (", is_message).is_err());
    }
}
