use std::fmt::Write;

use super::{input::PatternInput, invalid, translate::Letters};
use crate::Result;

/// The meaning of an escape sequence.
pub(super) enum Escape {
    /// A character.
    Literal(char),
    /// A class of characters: its members as they are written between brackets.
    Class(&'static str),
    /// A Unicode property in the engine's notation.
    Property(String),
    /// A letter or digit whose meaning depends on its context.
    Other(char),
}

/// Appends a literal character.
pub(super) fn push_literal(char: char, out: &mut String) {
    if char.is_alphanumeric() {
        out.push(char);
    } else {
        let _ = write!(out, "\\x{{{:x}}}", u32::from(char));
    }
}

/// Reads an escape sequence after its backslash.
pub(super) fn read(input: &mut PatternInput<'_>, letters: Letters) -> Result<Escape> {
    let char = input.next().ok_or_else(|| invalid("\\ at end of pattern"))?;
    Ok(match char {
        'd' if letters == Letters::Unicode => Escape::Class(r"\p{Nd}"),
        'D' if letters == Letters::Unicode => Escape::Class(r"\P{Nd}"),
        'w' if letters == Letters::Unicode => Escape::Class(r"\p{L}\p{N}_"),
        'W' if letters == Letters::Unicode => Escape::Class(r"^\p{L}\p{N}_"),
        's' if letters == Letters::Unicode => Escape::Class(r"\p{Z}\x09-\x0d\x{85}"),
        'S' if letters == Letters::Unicode => Escape::Class(r"^\p{Z}\x09-\x0d\x{85}"),
        'd' => Escape::Class("0-9"),
        'D' => Escape::Class("^0-9"),
        'w' => Escape::Class("0-9A-Za-z_"),
        'W' => Escape::Class("^0-9A-Za-z_"),
        's' => Escape::Class(r"\x20\x09-\x0d"),
        'S' => Escape::Class(r"^\x20\x09-\x0d"),
        'h' => Escape::Class(r"\x09\x20\x{a0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}"),
        'H' => Escape::Class(r"^\x09\x20\x{a0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}"),
        'v' => Escape::Class(r"\x0a-\x0d\x{85}\x{2028}\x{2029}"),
        'V' => Escape::Class(r"^\x0a-\x0d\x{85}\x{2028}\x{2029}"),
        'a' => Escape::Literal('\u{7}'),
        'e' => Escape::Literal('\u{1b}'),
        'f' => Escape::Literal('\u{c}'),
        'n' => Escape::Literal('\n'),
        'r' => Escape::Literal('\r'),
        't' => Escape::Literal('\t'),
        'c' => {
            let control = input.next().filter(|char| matches!(char, ' '..='~'));
            let control = control.ok_or_else(|| invalid("\\c must be followed by a printable ASCII character"))?;
            Escape::Literal(char::from_u32(u32::from(control.to_ascii_uppercase()) ^ 0x40).unwrap_or_default())
        }
        'x' if input.eat("{") => braced(input, 16)?,
        'x' => code_point(input.digits(16, 2), 16)?,
        'o' if input.eat("{") => braced(input, 8)?,
        '0' => code_point(input.digits(8, 2), 8)?,
        'p' | 'P' => property(char, input)?,
        letter if letter.is_ascii_alphanumeric() => Escape::Other(letter),
        literal => Escape::Literal(literal),
    })
}

fn braced(input: &mut PatternInput<'_>, base: u32) -> Result<Escape> {
    let digits = input.until("}").filter(|digits| !digits.is_empty());
    code_point(digits.ok_or_else(|| invalid("digits missing in \\x{} or \\o{}"))?, base)
}

/// Returns the character with this code point; NUL for no digits.
pub(super) fn code_point(digits: &str, base: u32) -> Result<Escape> {
    let number = if digits.is_empty() { Some(0) } else { u32::from_str_radix(digits, base).ok() };
    let char = number.and_then(char::from_u32).ok_or_else(|| invalid("character code point value is too large"))?;
    Ok(Escape::Literal(char))
}

fn property(letter: char, input: &mut PatternInput<'_>) -> Result<Escape> {
    let malformed = || invalid("malformed \\P or \\p sequence");
    let name = if input.eat("{") {
        input.until("}").ok_or_else(malformed)?.to_owned()
    } else {
        input.next().filter(char::is_ascii_alphabetic).ok_or_else(malformed)?.to_string()
    };
    let (name, inverted) = name.strip_prefix('^').map_or((name.as_str(), false), |name| (name, true));
    let negated = (letter == 'P') != inverted;
    // The properties that only PCRE has.
    let members = match name {
        "L&" => Some(r"\p{Lu}\p{Ll}\p{Lt}"),
        "Xan" => Some(r"\p{L}\p{N}"),
        "Xwd" => Some(r"\p{L}\p{N}_"),
        "Xsp" | "Xps" => Some(r"\p{Z}\x09-\x0d\x{85}"),
        "Xuc" => Some(r"\x24\x40\x60\x{a0}-\x{d7ff}\x{e000}-\x{10ffff}"),
        _ => None,
    };
    Ok(Escape::Property(match (members, negated) {
        (Some(members), false) => format!("[{members}]"),
        (Some(members), true) => format!("[^{members}]"),
        (None, false) => format!("\\p{{{name}}}"),
        (None, true) => format!("\\P{{{name}}}"),
    }))
}
