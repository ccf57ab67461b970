//! `$regexFind`, `$regexFindAll` and `$regexMatch`.

use super::{
    super::{Evaluated, Expression, Variables, arguments::wrong_type, evaluated::ArrayWriter},
    named::{Compute, Parts, operator},
};
use crate::{
    Code, Error, Result,
    filter::pattern::Pattern,
    raw::{Kind, Value, Writer},
};

pub(super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["input", "regex", "options"], variables, (51103, 31024))?;
    let input = parts.need(0, name, "input", 31022)?;
    let regex = parts.need(1, name, "regex", 31023)?;
    let options = parts.or(2, &Evaluated::NULL);
    let compute: Compute = match name {
        "$regexFind" => |values| find("$regexFind", values),
        "$regexFindAll" => |values| find_all("$regexFindAll", values),
        _ => |values| is_match("$regexMatch", values),
    };
    operator(name, vec![input, regex, options], compute, variables)
}

/// Returns the pattern and the text; `None` if one of them is null.
fn pattern<'a>(name: &str, values: &'a [Evaluated<'_>]) -> Result<Option<(Pattern, &'a str)>> {
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
            Pattern::new(value.text().unwrap_or_default(), given.unwrap_or_default().as_bytes())
        }
        Kind::Regex => {
            let (source, own) = value.as_regex().unwrap_or_default();
            if given.is_some() && !own.is_empty() {
                return Err(Error::new(Code(51107), format!("{name} has options in both 'regex' and 'options'")));
            }
            Pattern::new(source, given.map_or(own, str::as_bytes))
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
    let found = pattern(name, values)?;
    Ok(found.is_some_and(|(pattern, text)| pattern.compiled().is_match(text.as_bytes())).into())
}

fn find<'v>(name: &str, values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let Some((pattern, text)) = pattern(name, values)? else { return Ok(Evaluated::NULL) };
    let found = pattern.compiled().captures(text.as_bytes());
    Ok(found.map_or(Evaluated::NULL, |found| Evaluated::document(described(text, &found))))
}

fn find_all<'v>(name: &str, values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let mut all = ArrayWriter::default();
    if let Some((pattern, text)) = pattern(name, values)? {
        // As in MongoDB, an empty match after the last character does not count, unless the text is empty.
        let is_within = |found: &regex::bytes::Captures<'_>| {
            text.is_empty() || found.get(0).is_some_and(|found| found.start() < text.len())
        };
        for found in pattern.compiled().captures_iter(text.as_bytes()).filter(is_within) {
            all.push(Value::new(Kind::Document, &described(text, &found).finish()));
        }
    }
    Ok(all.finish())
}

/// Returns the matched text, its position in code points, and the texts of the groups.
fn described(text: &str, found: &regex::bytes::Captures<'_>) -> Writer {
    let string = |bytes: &[u8]| Evaluated::string(&String::from_utf8_lossy(bytes));
    let (start, matched) = found.get(0).map_or((0, &[][..]), |found| (found.start(), found.as_bytes()));
    let before = text.as_bytes().get(..start).unwrap_or_default();
    let mut captures = ArrayWriter::default();
    for group in found.iter().skip(1) {
        match group {
            Some(group) => captures.push(string(group.as_bytes()).or_null()),
            None => captures.push(Value::NULL),
        }
    }
    let mut writer = Writer::new();
    writer.append(b"match", string(matched).or_null());
    writer.append(b"idx", Evaluated::count(String::from_utf8_lossy(before).chars().count()).or_null());
    writer.append(b"captures", captures.finish().or_null());
    writer
}
