use std::fmt::Write;

use super::{
    escape::{self, Escape},
    input::PatternInput,
    invalid,
    translate::Letters,
};
use crate::Result;

/// The POSIX class names, which PCRE and the engine share.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Whether the position is between `\Q` and `\E`, where every character is a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Yes,
    No,
}

/// A member of a class.
enum Member {
    Char(char),
    /// A nested class in the engine's notation.
    Class(String),
}

/// Translates a character class, starting after its opening bracket.
///
/// Every character is written as its code point, because some that PCRE takes literally are special to the engine.
pub(super) fn translate(input: &mut PatternInput<'_>, letters: Letters, out: &mut String) -> Result<()> {
    if posix(&mut input.copy(), ":]").is_some() {
        return Err(invalid("POSIX named classes are supported only within a class"));
    }
    out.push('[');
    if input.eat("^") {
        out.push('^');
    }
    let mut first = true;
    let mut quoted = Quoted::No;
    loop {
        if quoted == Quoted::No && !first && input.eat("]") {
            break;
        }
        if input.eat("\\E") {
            quoted = Quoted::No;
            continue;
        }
        if quoted == Quoted::No && input.eat("\\Q") {
            quoted = Quoted::Yes;
            continue;
        }
        match member(input, letters, quoted)? {
            Member::Class(class) => out.push_str(&class),
            Member::Char(low) => {
                push(low, out);
                let range = quoted == Quoted::No && input.ahead("-") && !input.ahead("-]");
                if range && input.eat("-") {
                    match member(input, letters, quoted)? {
                        Member::Char(high) if low <= high => {
                            out.push('-');
                            push(high, out);
                        }
                        Member::Char(_) => return Err(invalid("range out of order in character class")),
                        // A class cannot end a range, so the hyphen is a literal.
                        Member::Class(class) => {
                            push('-', out);
                            out.push_str(&class);
                        }
                    }
                }
            }
        }
        first = false;
    }
    out.push(']');
    Ok(())
}

fn push(char: char, out: &mut String) {
    let _ = write!(out, "\\x{{{:x}}}", u32::from(char));
}

fn member(input: &mut PatternInput<'_>, letters: Letters, quoted: Quoted) -> Result<Member> {
    let char = input.next().ok_or_else(|| invalid("missing terminating ] for character class"))?;
    match char {
        _ if quoted == Quoted::Yes => Ok(Member::Char(char)),
        '[' if input.ahead(":") => match posix(input, ":]") {
            Some(name) => posix_class(name, letters).map(Member::Class),
            None => Ok(Member::Char('[')),
        },
        '[' if input.ahead(".") || input.ahead("=") => {
            let end = if input.ahead(".") { ".]" } else { "=]" };
            match posix(&mut input.copy(), end) {
                Some(_) => Err(invalid("POSIX collating elements are not supported")),
                None => Ok(Member::Char('[')),
            }
        }
        '\\' => escaped(input, letters),
        _ => Ok(Member::Char(char)),
    }
}

/// Returns the class of a POSIX name, which `^` negates, in the engine's notation.
fn posix_class(name: &str, letters: Letters) -> Result<String> {
    let (plain, negation) = name.strip_prefix('^').map_or((name, ""), |plain| (plain, "^"));
    if !POSIX.contains(&plain) {
        return Err(invalid("unknown POSIX class name"));
    }
    let members = match (plain, letters) {
        (_, Letters::Ascii) | ("ascii" | "xdigit", _) => return Ok(format!("[:{name}:]")),
        ("alnum", _) => r"\p{L}\p{N}",
        ("alpha", _) => r"\p{L}",
        ("blank", _) => r"\x09\x20\x{a0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}",
        ("cntrl", _) => r"\p{Cc}",
        ("digit", _) => r"\p{Nd}",
        ("graph", _) => r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}",
        ("lower", _) => r"\p{Ll}",
        ("print", _) => r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Zs}",
        ("punct", _) => r"\p{P}\x24\x2b\x3c-\x3e\x5e\x60\x7c\x7e",
        ("space", _) => r"\p{Z}\x09-\x0d\x{85}",
        ("upper", _) => r"\p{Lu}",
        _ => r"\p{L}\p{N}_",
    };
    Ok(format!("[{negation}{members}]"))
}

/// Reads the name of a POSIX class, starting after its first bracket. `None` if there is none; the input is then
/// unchanged.
fn posix<'s>(input: &mut PatternInput<'s>, end: &str) -> Option<&'s str> {
    let sign = end.chars().next()?;
    let mut ahead = input.copy();
    let name = (ahead.next() == Some(sign)).then(|| ahead.until(end)).flatten()?;
    let letters = name.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_alphabetic());
    if !letters {
        return None;
    }
    *input = ahead;
    Some(name)
}

fn escaped(input: &mut PatternInput<'_>, letters: Letters) -> Result<Member> {
    Ok(match escape::read(input, letters)? {
        Escape::Literal(char) => Member::Char(char),
        Escape::Class(class) => Member::Class(format!("[{class}]")),
        Escape::Property(property) => Member::Class(property),
        Escape::Other('b') => Member::Char('\u{8}'),
        // Within a class digits are octal, because there are no groups to refer to.
        Escape::Other(digit @ '1'..='7') => {
            let rest = input.digits(8, 2);
            match escape::code_point(&format!("{digit}{rest}"), 8)? {
                Escape::Literal(char) => Member::Char(char),
                _ => return Err(invalid("malformed octal escape")),
            }
        }
        Escape::Other(other) => {
            return Err(invalid(&format!("escape sequence \\{other} is invalid in character class")));
        }
    })
}
