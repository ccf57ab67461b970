//! The tokens of Rust code, as far as paths need them.

/// A name, `::`, or another character.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The tokens of `#[cfg(test)]`.
const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Returns the tokens without comments, literals, and the items under `#[cfg(test)]`.
pub(crate) fn without_tests(text: &str) -> Vec<Token> {
    let tokens = tokens(text);
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.text == "#" && TEST.iter().eq(tokens[at..].iter().take(TEST.len()).map(|token| &token.text)) {
            at = end_of_item(&tokens, at + TEST.len());
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    kept
}

/// Returns the place after the item that begins at `at`: after its first `;` outside brackets, or after its braces.
fn end_of_item(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" if depth == 1 => return place + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return place + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest),
            '\'' => character(rest),
            'r' | 'b' | 'c' if raw_string(rest).is_some() => raw_string(rest).unwrap(),
            _ if first.is_alphanumeric() || first == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_left_out = first.is_whitespace()
            || ["//", "/*", "\"", "'", "r\"", "r#", "br\"", "br#"].iter().any(|start| token.starts_with(start));
        if !is_left_out {
            tokens.push(Token { text: token.into(), line });
        }
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

/// Returns the length of the string literal that the text begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Returns the length of the raw string literal that the text begins with.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let content = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text.len() - content.len() + content.find(&end)? + end.len())
}

/// Returns the length of the character literal that the text begins with; 1 for the mark of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => text[3..].find('\'').map_or(1, |end| end + 4),
        (_, Some((at, '\''))) => at + 1,
        _ => 1,
    }
}
