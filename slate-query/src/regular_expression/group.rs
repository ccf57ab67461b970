//! Groups: parsed after an opening `(`.

use std::fmt::Write;

use super::{
    input::PatternInput,
    invalid, needs_pcre, reference,
    scope::{Kind, Modes},
    translate::{Last, Translator},
};
use crate::Result;

/// The beginnings of groups that only the backtracking engine has, each with its kind and the engine's notation.
const ASSERTIONS: [(&str, Kind, &str); 5] = [
    ("?=", Kind::Lookahead, "(?="),
    ("?!", Kind::Lookahead, "(?!"),
    ("?<=", Kind::Lookbehind, "(?<="),
    ("?<!", Kind::Lookbehind, "(?<!"),
    ("?>", Kind::Group, "(?>"),
];

/// The alphabetic beginnings of groups, each with the one in [`ASSERTIONS`] that it stands for.
const SPELLED: [(&str, &str); 9] = [
    ("*pla:", "?="),
    ("*positive_lookahead:", "?="),
    ("*nla:", "?!"),
    ("*negative_lookahead:", "?!"),
    ("*plb:", "?<="),
    ("*positive_lookbehind:", "?<="),
    ("*nlb:", "?<!"),
    ("*negative_lookbehind:", "?<!"),
    ("*atomic:", "?>"),
];

/// Constructs that no engine has.
const REFUSED: [(&str, &str); 8] = [
    ("*", "a verb such as (*COMMIT)"),
    ("?|", "a branch reset group"),
    ("?P>", "recursion"),
    ("?&", "recursion"),
    ("?R", "recursion"),
    ("?+", "recursion"),
    ("?C", "a callout"),
    ("?*", "a non-atomic lookaround"),
];

pub(super) fn open(translator: &mut Translator<'_>) -> Result<()> {
    if let Some((kind, opening)) = assertion(&mut translator.input) {
        translator.enter(kind, opening, ")");
        return Ok(());
    }
    if translator.input.eat("*FAIL)") || translator.input.eat("*F)") {
        translator.assertion([r"[^\s\S]"; 2]);
        return Ok(());
    }
    if let Some((_, construct)) = REFUSED.iter().find(|(start, _)| translator.input.ahead(start)) {
        return Err(needs_pcre(construct));
    }
    if !translator.input.eat("?") {
        return numbered(translator, None);
    }
    let input = &mut translator.input;
    if input.eat("P=") {
        let name = reference::name(input, ")")?;
        let number = translator.named(name)?;
        return translator.reference(number);
    }
    let end =
        [("P<", ">"), ("<", ">"), ("'", "'")].into_iter().find_map(|(start, end)| input.eat(start).then_some(end));
    if let Some(end) = end {
        let name = reference::name(input, end)?;
        return numbered(translator, Some(name));
    }
    if input.eat("(") {
        return conditional(translator);
    }
    if input.eat("#") {
        while input.next().ok_or_else(|| invalid("missing ) after (?# comment"))? != ')' {}
        return Ok(());
    }
    let mut ahead = input.copy();
    let _ = ahead.eat("-");
    if ahead.peek().is_some_and(|char| char.is_ascii_digit()) {
        return Err(needs_pcre("recursion"));
    }
    flags(translator)
}

/// Reads the beginning of lookaround or of an atomic group; `None` if there is none.
fn assertion(input: &mut PatternInput<'_>) -> Option<(Kind, &'static str)> {
    let spelled = SPELLED.iter().find(|(name, _)| input.eat(name)).map(|(_, sign)| *sign);
    let is_it =
        |start: &str, input: &mut PatternInput<'_>| spelled.map_or_else(|| input.eat(start), |sign| sign == start);
    ASSERTIONS.iter().find(|(start, ..)| is_it(start, input)).map(|(_, kind, opening)| (*kind, *opening))
}

/// Opens a capturing group. The translation refers to captures by number, so it leaves out the name.
fn numbered(translator: &mut Translator<'_>, name: Option<&str>) -> Result<()> {
    translator.enter(Kind::Group, "(", ")");
    match name {
        Some(name) => translator.groups.add_named(name),
        None => translator.groups.add(),
    }
    Ok(())
}

/// Opens a conditional group, starting after the parenthesis of its condition.
fn conditional(translator: &mut Translator<'_>) -> Result<()> {
    let condition = match assertion(&mut translator.input) {
        Some((Kind::Lookahead, opening)) => Some((Kind::Condition, opening)),
        Some((Kind::Lookbehind, opening)) => Some((Kind::ConditionBehind, opening)),
        Some(_) => return Err(invalid("assertion expected after (?( or (?(?C)")),
        None => None,
    };
    if let Some((kind, opening)) = condition {
        translator.enter(Kind::Conditional, "(?", ")");
        translator.enter(kind, &format!("({opening}"), "))");
        return Ok(());
    }
    let condition = translator.input.until(")").ok_or_else(|| invalid("missing closing parenthesis for condition"))?;
    if condition == "DEFINE" {
        return Err(needs_pcre("a DEFINE group"));
    }
    if condition
        .strip_prefix('R')
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(|next: char| next == '&' || next.is_ascii_digit()))
    {
        return Err(needs_pcre("recursion"));
    }
    let name = [('<', '>'), ('\'', '\'')]
        .iter()
        .find_map(|(start, end)| condition.strip_prefix(*start)?.strip_suffix(*end))
        .unwrap_or(condition);
    let number = translator.number(condition).map_or_else(|| translator.named(name), Ok)?;
    translator.check(number)?;
    translator.enter(Kind::Conditional, &format!("(?({number})"), ")");
    Ok(())
}

/// Translates modes within a pattern: `(?i)` for the rest of the group, `(?i:…)` for its own group.
fn flags(translator: &mut Translator<'_>) -> Result<()> {
    let mut modes = translator.scope.modes;
    let (mut on, mut off, mut value) = (String::new(), String::new(), true);
    loop {
        match translator.input.next().ok_or_else(|| invalid("missing closing parenthesis"))? {
            '-' => value = false,
            '^' => {
                modes = Modes { multiline: false, extended: false };
                off.push_str("is");
            }
            'm' => modes.multiline = value,
            'x' => modes.extended = value,
            flag @ ('i' | 's' | 'U') => {
                off.retain(|other| other != flag);
                if value { on.push(flag) } else { off.push(flag) }
            }
            'J' | 'n' => {}
            end @ (')' | ':') => {
                let flags = if off.is_empty() { on } else { format!("{on}-{off}") };
                if end == ')' {
                    translator.scope.modes = modes;
                    // The engine does not accept an empty list of flags.
                    if !flags.is_empty() {
                        let _ = write!(translator.out, "(?{flags})");
                    }
                    translator.last = Last::Nothing;
                } else {
                    translator.enter(Kind::Group, &format!("(?{flags}:"), ")");
                    translator.scope.modes = modes;
                }
                return Ok(());
            }
            _ => return Err(invalid("unrecognized character after (? or (?-")),
        }
    }
}
