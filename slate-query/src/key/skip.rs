use super::{Direction, input::KeyInput, number, tag};

/// The deepest nesting of an encoded value. Above the limit of validation, so deeper values are damaged.
pub(super) const MAX_NESTING: usize = 256;

/// Returns the length of the encoded value at the start of `bytes`, which are in `direction`; `None` if there is none.
pub fn skip(bytes: &[u8], direction: Direction) -> Option<usize> {
    let mut input = KeyInput::new(bytes, direction);
    value(&mut input, MAX_NESTING)?;
    Some(bytes.len() - input.rest().len())
}

pub(super) fn value(input: &mut KeyInput<'_>, nesting: usize) -> Option<()> {
    let nesting = nesting.checked_sub(1)?;
    match input.byte()? {
        tag::MIN_KEY | tag::UNDEFINED | tag::NULL | tag::FALSE | tag::TRUE | tag::MAX_KEY => Some(()),
        tag::STRING | tag::CODE => input.skip_text(),
        tag::DOCUMENT => document(input, nesting),
        tag::ARRAY => {
            while input.peek()? != tag::END {
                value(input, nesting)?;
            }
            input.skip(1)
        }
        tag::BINARY => {
            let length = input.length()?;
            input.skip(length.checked_add(1)?)
        }
        tag::OBJECT_ID => input.skip(12),
        tag::DATE | tag::TIMESTAMP => input.skip(8),
        tag::REGEX => input.skip_text().and_then(|()| input.skip_text()),
        tag::DB_POINTER => {
            let length = input.length()?;
            input.skip(length.checked_add(12)?)
        }
        tag::CODE_WITH_SCOPE => input.skip_text().and_then(|()| document(input, nesting)),
        tag => number::decode(tag, input).map(drop),
    }
}

fn document(input: &mut KeyInput<'_>, nesting: usize) -> Option<()> {
    while input.byte()? != tag::END {
        input.skip_text()?;
        value(input, nesting)?;
    }
    Some(())
}
