use super::super::{
    Node,
    bounds::{Bounds, of_bracket},
    clause::Clause,
    operator::{Cost, Operator, Rank},
};
use crate::{
    Code, Result, interval,
    order::Bracket,
    raw::{Kind, Value, Writer},
    regular_expression::{Decides, Pattern, Prefix},
};

/// `$regex`: the value is a string that the pattern matches, or the same regular expression.
#[derive(Clone, Debug)]
struct Regex(Pattern);

impl Operator for Regex {
    fn reads_text(&self) -> bool {
        true
    }

    fn holds(&self, value: Value<'_>) -> bool {
        self.0.matches(value)
    }

    fn bounds(&self) -> Bounds {
        pattern_bounds(&self.0)
    }

    fn cost(&self) -> Cost {
        Cost::Expensive
    }

    fn can_fail(&self) -> bool {
        self.0.can_fail()
    }

    fn rank(&self) -> Rank {
        Rank::Regex
    }

    fn write(&self, out: &mut Writer) {
        out.append(b"$regex", self.0.to_value().as_value());
    }
}

/// Returns the bounds of the values that can match: the strings that begin with the prefix of every match, and the regular expression
/// itself. They are exact if every string with the prefix matches.
pub(super) fn pattern_bounds(pattern: &Pattern) -> Bounds {
    let itself = Bounds::equal(pattern.to_value().as_value());
    let strings = match pattern.prefix() {
        None => Bounds::loose(of_bracket(Bracket::String)),
        Some(Prefix { text, decides: Decides::Some }) => Bounds::loose(interval::prefix_interval(text)),
        Some(Prefix { text, .. }) if text.is_empty() => Bounds::exact(of_bracket(Bracket::String)),
        Some(Prefix { text, .. }) => Bounds::exact(interval::prefix_interval(text)),
    };
    strings.or(itself)
}

/// Returns the condition of a BSON regular expression in a filter.
pub(super) fn of_value(clause: Clause<'_>) -> Result<Node> {
    let pattern = Pattern::of_value(clause.operand).map_err(|error| clause.locate(error))?;
    Ok(Node::field(clause.path, Regex(pattern)))
}

/// Parses `$regex` with its `$options`.
pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let mut source: &[u8] = &[];
    let mut options: &[u8] = &[];
    let twice = |code| clause.refuse_with(Code(code), "options set in both $regex and $options");
    for element in clause.siblings.elements() {
        match (element.name, element.value.kind()) {
            (b"$regex", Kind::String) => source = element.value.text().unwrap_or_default(),
            (b"$regex", Kind::Regex) => {
                let (pattern, flags) = element.value.as_regex().unwrap_or_default();
                source = pattern;
                if !flags.is_empty() {
                    if !options.is_empty() {
                        return Err(twice(51074));
                    }
                    options = flags;
                }
            }
            (b"$regex", _) => return Err(clause.refuse("$regex has to be a string")),
            (b"$options", Kind::String) => {
                if !options.is_empty() {
                    return Err(twice(51075));
                }
                options = element.value.text().unwrap_or_default();
            }
            (b"$options", _) => return Err(clause.refuse("$options has to be a string")),
            _ => {}
        }
    }
    let pattern = Pattern::new(source, options).map_err(|error| clause.locate(error))?;
    Ok(Some(Node::field(clause.path, Regex(pattern))))
}

/// Parses `$options`, which is allowed only in a document with `$regex`.
pub(super) fn options(clause: Clause<'_>) -> Result<Option<Node>> {
    match clause.siblings.get("$regex") {
        Some(_) => Ok(None),
        None => Err(clause.refuse("$options needs a $regex")),
    }
}
