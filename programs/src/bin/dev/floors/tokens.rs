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

/// Whether a condition of `cfg` names `test` or `doctest`, other than in `not`.
pub fn is_for_tests(condition: TokenStream) -> bool {
    let condition: Vec<TokenTree> = condition.into_iter().collect();
    condition.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(name) => name == "test" || name == "doctest",
        TokenTree::Group(group) => {
            !is_word(before(&condition, at, 1), "not") && is_for_tests(group.stream())
        }
        _ => false,
    })
}

/// The place after the item, field or arm that begins at `at`, maybe with further attributes.
pub fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    const WITHOUT_BLOCK: [&str; 4] = ["use", "const", "static", "type"];
    const WITH_BLOCK: [&str; 11] = [
        "mod", "fn", "struct", "enum", "union", "trait", "impl", "unsafe", "async", "extern",
        "const",
    ];
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
    let ends = |token: &TokenTree| {
        is_punct(Some(token), ';')
            || is_punct(Some(token), ',') && !is_item
            || is_group(Some(token), Delimiter::Brace)
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |length| at + length + 1)
}

/// The place of the next such character, or the end.
pub fn end_of(tokens: &[TokenTree], at: usize, character: char) -> usize {
    let length = tokens[at..].iter().position(|token| is_punct(Some(token), character));
    length.map_or(tokens.len(), |length| at + length)
}
