//! Splits a line into the words of a command. Documents need no quotes: a word that contains a brace or a bracket ends where
//! that is closed.

use super::scanner::{Scanner, Step};

/// The error for a line that ends within quotes or brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open;

/// A word and where it begins in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) text: String,
}

/// Splits a line. The quotes around a word are removed; `#` begins a comment.
pub(super) fn split(line: &str) -> Result<Vec<Word>, Open> {
    let (words, open) = split_open(line);
    if open { Err(Open) } else { Ok(words) }
}

/// Splits a line whose last word may have an unclosed quote or bracket. Returns the words, and whether the last one is open.
pub(super) fn split_open(line: &str) -> (Vec<Word>, bool) {
    let (mut scanner, mut words) = (Scanner::default(), Vec::<Word>::new());
    for (start, character) in line.char_indices() {
        match (scanner.feed(character), words.last_mut()) {
            (Step::Begins, _) => words.push(Word { start, text: character.into() }),
            (Step::Continues, Some(word)) => word.text.push(character),
            (Step::Continues | Step::Between, _) => {}
        }
    }
    let open = scanner.is_open();
    let closed = words.len() - usize::from(open && !words.is_empty());
    words.iter_mut().take(closed).for_each(|word| word.text = unquoted(&word.text));
    (words, open)
}

/// Removes the quotes around a whole word, or around what follows `--option=`.
fn unquoted(word: &str) -> String {
    let (option, value) = match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (word.get(..=option.len()).unwrap_or_default(), value),
        _ => ("", word),
    };
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote)) {
            let plain = inner.replace(&format!("\\{quote}"), &quote.to_string());
            return format!("{option}{plain}");
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn documents_need_no_quotes() {
        assert_eq!(
            texts("find users { age: 1, b: [1, 2] } --limit 5"),
            ["find", "users", "{ age: 1, b: [1, 2] }", "--limit", "5"]
        );
        assert_eq!(
            texts("find users {a: 'it\\'s }'} --sort={b: 1}"),
            ["find", "users", "{a: 'it\\'s }'}", "--sort={b: 1}"]
        );
        assert_eq!(texts("find 'my users' '{ a: \"x\" }' # all"), ["find", "my users", "{ a: \"x\" }"]);
        assert_eq!(texts("count it's --only=\"{ a: 1 }\""), ["count", "it's", "--only={ a: 1 }"]);
        assert_eq!(texts("insert t\n{ a: 1 }\n{ a: 2 }"), ["insert", "t", "{ a: 1 }", "{ a: 2 }"]);
        assert_eq!(texts("insert t { d: ISODate('2024-01-01') }"), ["insert", "t", "{ d: ISODate('2024-01-01') }"]);
        assert_eq!(texts("  # nothing"), Vec::<String>::new());
    }

    #[test]
    fn regular_expressions_and_comments_can_contain_brackets_and_quotes() {
        for word in [
            "{ name: /O'Brien/ }",
            "{ name: /^\\{\"/i, b: 1 }",
            "{ name: { $in: [/(/, /[/]'/, 'x'] } }",
            "{ a: 1, // it's {\n b: 2 }",
            "{ a: 1 /* it's { */ }",
            "{ half: '1/2', n: 5 /2 }",
        ] {
            assert_eq!(texts(&format!("find t {word} --limit 5")), ["find", "t", word, "--limit", "5"], "{word}");
        }
        assert_eq!(texts("import /data/it's.json ../x.json"), ["import", "/data/it's.json", "../x.json"]);
    }

    #[test]
    fn an_open_line_is_recognized() {
        for line in [
            "find users {",
            "find users { a: '",
            "find 'users",
            "find users { a: [1, 2 }",
            "find t { a: 1 // }",
            "find t { a: /x }",
            "find t { a: 1 /* }",
        ] {
            assert_eq!(split(line), Err(Open), "{line}");
        }
        let (words, open) = split_open("find users { ag");
        assert!(open);
        assert_eq!(words.last(), Some(&Word { start: 11, text: "{ ag".into() }));
    }
}
