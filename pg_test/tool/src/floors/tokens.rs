//! Single tokens, and where an item ends.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The line that a token begins on.
pub fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

/// The word at that place, if one is there.
pub fn name_at(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at)? {
        TokenTree::Ident(name) => Some(name.to_string().trim_start_matches("r#").to_owned()),
        _ => None,
    }
}

/// The token at that distance before a place.
pub fn before(tokens: &[TokenTree], at: usize, distance: usize) -> Option<&TokenTree> {
    tokens.get(at.checked_sub(distance)?)
}

pub fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(name)) if name == word)
}

pub fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

pub fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// Whether a condition of `cfg` is that of tests. Code with any other condition can be in a product.
pub fn is_for_tests(condition: TokenStream) -> bool {
    ["test", "feature=\"pg_test\""].contains(&&*condition.to_string().replace(' ', ""))
}

/// What to write instead of what begins at `at`, if that hides which file an item is in.
pub fn instead_of(tokens: &[TokenTree], at: usize) -> Option<&'static str> {
    let next = tokens.get(at + 1);
    let after_next = tokens.get(at + 2);
    match &*name_at(tokens, at)? {
        "macro_export" | "macro_use" => {
            Some("instead of macro_export or macro_use, write `pub(crate) use NAME;` below the macro, and call it by its path")
        }
        "include" if is_punct(next, '!') && matches!(after_next, Some(TokenTree::Group(_))) => {
            Some("instead of include!, write `mod NAME;`, with its #[path] if it is elsewhere")
        }
        "extern" if is_word(next, "crate") && is_word(after_next, "self") => Some("instead of a name for the crate itself, write `crate`"),
        _ => None,
    }
}

/// The place after the item, field or arm that begins at `at`, maybe with further attributes.
pub fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    const WITHOUT_BLOCK: [&str; 4] = ["use", "const", "static", "type"];
    const WITH_BLOCK: [&str; 11] = ["mod", "fn", "struct", "enum", "union", "trait", "impl", "unsafe", "async", "extern", "const"];
    while is_punct(tokens.get(at), '#') {
        at += 2;
    }
    if is_word(tokens.get(at), "pub") {
        at += 1 + usize::from(is_group(tokens.get(at + 1), Delimiter::Parenthesis));
    }
    let is_function = is_word(tokens.get(at + 1), "fn");
    let word = name_at(tokens, at).unwrap_or_default();
    if WITHOUT_BLOCK.contains(&&*word) && !is_function {
        return end_of(tokens, at, ';') + 1;
    }
    let is_item = WITH_BLOCK.contains(&&*word);
    let ends =
        |token: &TokenTree| is_punct(Some(token), ';') || is_punct(Some(token), ',') && !is_item || is_group(Some(token), Delimiter::Brace);
    tokens[at..].iter().position(ends).map_or(tokens.len(), |length| at + length + 1)
}

/// The place of the next such character, or the end.
pub fn end_of(tokens: &[TokenTree], at: usize, character: char) -> usize {
    let length = tokens[at..].iter().position(|token| is_punct(Some(token), character));
    length.map_or(tokens.len(), |length| at + length)
}
