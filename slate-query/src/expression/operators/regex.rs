//! `$regexFind`, `$regexFindAll` and `$regexMatch`.

use super::{
    super::{
        Evaluated, Expression, Variables,
        arguments::wrong_type,
        evaluated::{ArrayWriter, DocumentWriter},
    },
    named::{Compute, Parts, operator},
};
use crate::{
    Code, Error, Result,
    held::Held,
    raw::{Kind, Value},
    regular_expression::{Matched, Pattern, Use},
};

pub(super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["input", "regex", "options"], variables, (51103, 31024))?;
    let input = parts.need(0, name, "input", 31022)?;
    let regex = parts.need(1, name, "regex", 31023)?;
    let options = parts.or(2, &Evaluated::NULL);
    // As in MongoDB, a constant expression is compiled before there is a text, so that its errors come first.
    if let (Some(regex), Some(options)) = (regex.as_constant(), options.as_constant())
        && !variables.is_lenient()
    {
        pattern(name, Use::Search, &[Evaluated::string(""), regex, options])?;
    }
    let compute: Compute = match name {
        "$regexFind" => |values| find("$regexFind", values),
        "$regexFindAll" => |values| find_all("$regexFindAll", values),
        _ => |values| is_match("$regexMatch", values),
    };
    operator(name, vec![input, regex, options], compute, variables)
}

/// Returns the pattern and the text; `None` if one of them is null.
fn pattern<'a>(name: &str, wanted: Use, values: &'a [Evaluated<'_>]) -> Result<Option<(Pattern, &'a str)>> {
    let [input, regex, options] = values else { return Ok(None) };
    let text =
        input.present().map(|text| text.as_str().ok_or_else(|| wrong_type(name, 51104, "a string as 'input'", input)));
    let text = text.transpose()?;
    let given = match options.present() {
        None => None,
        Some(value) => Some(value.as_str().ok_or_else(|| wrong_type(name, 51106, "a string as 'options'", options))?),
    };
    if given.is_some_and(|given| given.contains('\0')) {
        return Err(Error::new(Code(51110), format!("the options of {name} contain a NUL character")));
    }
    let Some(value) = regex.present() else { return Ok(None) };
    let compiled = match value.kind() {
        Kind::String => {
            if value.text().is_some_and(|text| text.contains(&0)) {
                return Err(Error::new(
                    Code(51109),
                    format!("the regular expression of {name} contains a NUL character"),
                ));
            }
            Pattern::for_use(value.text().unwrap_or_default(), given.unwrap_or_default().as_bytes(), wanted)
        }
        Kind::Regex => {
            let (source, own) = value.as_regex().unwrap_or_default();
            if given.is_some() && !own.is_empty() {
                return Err(Error::new(Code(51107), format!("{name} has options in both 'regex' and 'options'")));
            }
            Pattern::for_use(source, given.map_or(own, str::as_bytes), wanted)
        }
        _ => return Err(wrong_type(name, 51105, "a string or a regular expression as 'regex'", regex)),
    };
    // Filters have a different code for a pattern that does not compile.
    let compiled = compiled.map_err(|error| match error.code() {
        Code(51108) => error,
        _ => Error::new(Code(51111), error.message()),
    })?;
    Ok(text.map(|text| (compiled, text)))
}

fn is_match<'v>(name: &str, values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let Some((pattern, text)) = pattern(name, Use::Test, values)? else { return Ok(false.into()) };
    pattern.is_match(text.as_bytes()).map(Evaluated::from)
}

fn find<'v>(name: &str, values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let Some((pattern, text)) = pattern(name, Use::Search, values)? else { return Ok(Evaluated::NULL) };
    let found = pattern.find(text, 0)?;
    found.map_or(Ok(Evaluated::NULL), |found| Positions::of(text).described(&found))
}

fn find_all<'v>(name: &str, values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let mut all = ArrayWriter::default();
    if let Some((pattern, text)) = pattern(name, Use::Search, values)? {
        let (mut from, mut positions) = (0, Positions::of(text));
        while let Some(found) = pattern.find(text, from)? {
            let (start, end) = found.first().cloned().flatten().map_or((from, from), |found| (found.start, found.end));
            // As in MongoDB, an empty match after the last character does not count, unless the text is empty.
            if start >= text.len() && !text.is_empty() {
                break;
            }
            all.push(positions.described(&found)?.or_null());
            all.check()?;
            let next = text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            from = if start == end { end + next } else { end };
            if from >= text.len() {
                break;
            }
        }
    }
    all.finish()
}

/// The positions of matches in code points. Matches are described in the order of their positions, so that each part of the text is
/// counted once.
struct Positions<'t> {
    text: &'t str,
    /// The number of bytes counted so far, and the number of code points in them.
    counted: (usize, usize),
}

impl<'t> Positions<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, counted: (0, 0) }
    }

    /// Returns the number of code points before this byte.
    fn before(&mut self, byte: usize) -> usize {
        let (bytes, points) = self.counted;
        let points = match self.text.get(bytes..byte) {
            Some(further) => points + further.chars().count(),
            // A match may begin before the end of the last one, with lookaround.
            None => self.text.get(..byte).unwrap_or_default().chars().count(),
        };
        self.counted = (byte, points);
        points
    }

    /// Returns the matched text, its position in code points, and the texts of the groups.
    fn described<'v>(&mut self, found: &Matched) -> Result<Evaluated<'v>> {
        let text = self.text;
        let part = |group: &Option<std::ops::Range<usize>>| group.clone().and_then(|range| text.get(range));
        let start = found.first().and_then(|group| group.as_ref()).map_or(0, |group| group.start);
        let mut captures = ArrayWriter::default();
        for group in found.iter().skip(1) {
            match part(group) {
                Some(group) => {
                    let _group = Held::of(group.len())?;
                    captures.push(Evaluated::string(group).or_null());
                }
                None => captures.push(Value::NULL),
            }
        }
        let matched = found.first().and_then(part).unwrap_or_default();
        let _matched = Held::of(matched.len())?;
        let mut writer = DocumentWriter::default();
        writer.append(b"match", Evaluated::string(matched).or_null());
        writer.append(b"idx", Evaluated::count(self.before(start)).or_null());
        writer.append(b"captures", captures.finish()?.or_null());
        writer.finish(Kind::Document)
    }
}
