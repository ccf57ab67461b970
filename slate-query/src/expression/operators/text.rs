//! `$trim`, `$ltrim`, `$rtrim`, `$replaceOne` and `$replaceAll`.

use std::collections::BTreeSet;

use super::{
    super::{Evaluated, Expression, Variables, arguments::wrong_type, evaluated::check_size},
    named::{Compute, Parts, operator},
};
use crate::{Result, held::Held, raw::Value, work};

/// The characters that are trimmed unless others are given, as in MongoDB.
const SPACES: &str = "\0\t\n\u{b}\u{c}\r \u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\
                      \u{2008}\u{2009}\u{200a}";

pub(super) fn trim(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["input", "chars"], variables, (50696, 50694))?;
    let input = parts.need(0, name, "input", 50695)?;
    let chars = parts.take(1).unwrap_or_else(|| Expression::constant(Evaluated::string(SPACES).or_null()));
    let compute: Compute = match name {
        "$ltrim" => {
            |values| trimmed("$ltrim", values, |text, chars| text.trim_start_matches(|char| chars.contain(char)))
        }
        "$rtrim" => |values| trimmed("$rtrim", values, |text, chars| text.trim_end_matches(|char| chars.contain(char))),
        _ => |values| trimmed("$trim", values, |text, chars| text.trim_matches(|char| chars.contain(char))),
    };
    operator(name, vec![input, chars], compute, variables)
}

fn trimmed<'v>(
    name: &str,
    values: &mut [Evaluated<'v>],
    trim: for<'t> fn(&'t str, &Chars<'_>) -> &'t str,
) -> Result<Evaluated<'v>> {
    let [input, chars] = values else { return Ok(Evaluated::Missing) };
    let Some(value) = input.present() else { return Ok(Evaluated::NULL) };
    let text = value.as_str().ok_or_else(|| wrong_type(name, 50699, "a string as 'input'", input))?;
    let Some(value) = chars.present() else { return Ok(Evaluated::NULL) };
    let chars = value.as_str().ok_or_else(|| wrong_type(name, 50700, "a string as 'chars'", chars))?;
    let _chars = Held::of(2 * size_of::<char>() * chars.len().min(0x11_0000))?;
    let trimmed = trim(text, &Chars::of(chars)?);
    work::check()?;
    let _copy = Held::of(trimmed.len())?;
    Ok(Evaluated::string(trimmed))
}

/// The characters to trim.
struct Chars<'t> {
    text: &'t str,
    /// The characters of `text`, if it is long; `None` if `text` itself is searched.
    set: Option<BTreeSet<char>>,
}

impl<'t> Chars<'t> {
    fn of(text: &'t str) -> Result<Self> {
        /// Up to this length in bytes, the text is searched for each character. A longer one becomes a set of characters.
        const SEARCHED: usize = 64;
        let mut set = None;
        if text.len() > SEARCHED {
            let chars = set.get_or_insert_with(BTreeSet::new);
            for char in text.chars() {
                work::take(2)?;
                chars.insert(char);
            }
        }
        Ok(Self { text, set })
    }

    /// Returns whether the character is trimmed; false once the call has ended early.
    fn contain(&self, char: char) -> bool {
        work::spend(2) && self.set.as_ref().map_or_else(|| self.text.contains(char), |set| set.contains(&char))
    }
}

pub(super) fn replace(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["input", "find", "replacement"], variables, (51751, 51750))?;
    let input = parts.need(0, name, "input", 51749)?;
    let find = parts.need(1, name, "find", 51748)?;
    let replacement = parts.need(2, name, "replacement", 51747)?;
    let compute: Compute = if name == "$replaceOne" {
        |values| replaced("$replaceOne", values, |input, find, by| input.replacen(find, by, 1))
    } else {
        |values| replaced("$replaceAll", values, |input, find, by| input.replace(find, by))
    };
    operator(name, vec![input, find, replacement], compute, variables)
}

/// Matches are counted only if the estimated size of the result exceeds this many bytes.
const EXPECTED: usize = 1 << 12;

fn replaced<'v>(
    name: &str,
    values: &mut [Evaluated<'v>],
    replace: fn(&str, &str, &str) -> String,
) -> Result<Evaluated<'v>> {
    let [input, find, by] = values else { return Ok(Evaluated::Missing) };
    fn text<'a>(name: &str, value: &'a Evaluated<'_>, code: i32, part: &str) -> Result<Option<&'a str>> {
        let Some(present) = value.present() else { return Ok(None) };
        present.as_str().map(Some).ok_or_else(|| wrong_type(name, code, part, value))
    }
    let input = text(name, input, 10_503_904, "a string as 'input'")?;
    let find = text(name, find, 10_503_901, "a string as 'find'")?;
    let by = text(name, by, 10_503_902, "a string as 'replacement'")?;
    let (Some(input), Some(find), Some(by)) = (input, find, by) else { return Ok(Evaluated::NULL) };
    // An empty text is found at the start, at the end and between all characters.
    let most = input.len().checked_div(find.len()).unwrap_or(input.len()) + 1;
    let mut bytes = input.len().saturating_add(most.saturating_mul(by.len()));
    if bytes > EXPECTED {
        bytes = input.len().saturating_add(input.matches(find).count().saturating_mul(by.len()));
        check_size(bytes.saturating_sub(input.len()))?;
    }
    // The text doubles its buffer as it grows, and is copied.
    let _held = Held::of(bytes.saturating_mul(3))?;
    Ok(Evaluated::string(&replace(input, find, by)))
}
