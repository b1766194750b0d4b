//! The texts of errors in the sources of the extension.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeSet, HashMap};
use std::mem::take;
use syn::LitStr;

/// Texts, and the messages that they belong to.
#[derive(Debug, Default, PartialEq)]
pub struct Texts {
    pub messages: BTreeSet<String>,
    pub texts: Vec<String>,
}

/// Those of a source, with … for variable parts. A text belongs to the message in the smallest brackets around it that have one; if
/// these have several, to all messages of its function.
///
/// # Errors
/// If the source has no Rust tokens.
pub fn texts_in(source: &str, is_message: impl Fn(&str) -> bool) -> Result<Vec<Texts>> {
    let tokens = source.parse::<TokenStream>().map_err(|error| anyhow!("{error}"))?;
    let mut search = Search { is_message, constants: HashMap::new(), found: Vec::new() };
    search.texts_between(tokens);
    Ok(search.found)
}

struct Search<F> {
    is_message: F,
    /// The text of each constant that the source defines before it.
    constants: HashMap<String, String>,
    found: Vec<Texts>,
}

impl<F: Fn(&str) -> bool> Search<F> {
    /// The messages between two brackets, and the texts that belong to none of them yet.
    fn texts_between(&mut self, tokens: TokenStream) -> Texts {
        let mut here = Texts::default();
        let mut is_in_signature = false;
        let mut words = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(word) if word == "fn" => is_in_signature = true,
                TokenTree::Ident(word) => {
                    words.push(word.to_string());
                    here.texts.extend(self.constants.get(&word.to_string()).cloned());
                }
                TokenTree::Group(group) => {
                    let inner = self.texts_between(group.stream());
                    if is_in_signature && group.delimiter() == Delimiter::Brace {
                        is_in_signature = false;
                        self.found.push(inner);
                    } else {
                        here.messages.extend(inner.messages);
                        here.texts.extend(inner.texts);
                    }
                }
                TokenTree::Literal(literal) => {
                    let text = syn::parse2::<LitStr>(TokenTree::from(literal).into());
                    let Ok(text) = text.map(|text| generalized(&text.value())) else { continue };
                    if let [.., constant, name, of] = words.as_slice()
                        && constant == "const"
                        && of == "str"
                    {
                        self.constants.insert(name.clone(), text);
                    } else if (self.is_message)(&text) {
                        here.messages.insert(text);
                    } else {
                        here.texts.push(text);
                    }
                }
                _ => {}
            }
        }
        if here.messages.len() == 1 {
            let texts = take(&mut here.texts);
            self.found.push(Texts { messages: here.messages.clone(), texts });
        }
        here
    }
}

/// A text with … in place of a name or a figure.
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
            fn reason() -> String { format!("{NAME}() has {0} shards", 5) }
        "#;
        let is_message = |text: &str| ["shard … is lost", "no answer"].contains(&text);

        let found = texts_in(source, is_message).unwrap();

        let found: Vec<String> = found
            .iter()
            .filter(|found| !found.texts.is_empty())
            .map(|found| format!("{:?} {:?}", found.messages, found.texts))
            .collect();
        assert_eq!(
            found,
            [
                r#"{"shard … is lost"} ["Find it."]"#,
                r#"{"no answer"} ["Wait."]"#,
                r#"{"no answer", "shard … is lost"} ["It is old.", ""]"#,
                r#"{} ["pg_snowflake() has … shards"]"#,
            ]
        );
        assert!(texts_in("fn (", is_message).is_err());
    }
}
