use std::fmt::Write;

use super::{
    escape::{self, Escape},
    input::Input,
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
pub(super) fn translate(input: &mut Input<'_>, letters: Letters, out: &mut String) -> Result<()> {
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

fn member(input: &mut Input<'_>, letters: Letters, quoted: Quoted) -> Result<Member> {
    let char = input.next().ok_or_else(|| invalid("missing terminating ] for character class"))?;
    match char {
        _ if quoted == Quoted::Yes => Ok(Member::Char(char)),
        '[' if input.ahead(":") => match posix(input, ":]") {
            Some(name) => {
                let known = POSIX.contains(&name.trim_start_matches('^'));
                let class = known.then(|| Member::Class(format!("[:{name}:]")));
                class.ok_or_else(|| invalid("unknown POSIX class name"))
            }
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

/// Returns the name of a POSIX class, starting after its first bracket.
fn posix<'s>(input: &mut Input<'s>, end: &str) -> Option<&'s str> {
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

fn escaped(input: &mut Input<'_>, letters: Letters) -> Result<Member> {
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
