use crate::{Error, Result, TooLarge};

/// The longest key, in bytes, that the backends of this crate take.
pub const MAX_KEY: usize = 64 << 10;

/// The longest value, in bytes, that the backends of this crate take: twice the longest BSON document.
pub const MAX_VALUE: usize = 32 << 20;

/// Refuses what is over the limits, in the same words on every backend.
#[inline]
pub(crate) fn check(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY {
        return Err(refuse("key", key.len(), MAX_KEY));
    }
    if value.len() > MAX_VALUE {
        return Err(refuse("value", value.len(), MAX_VALUE));
    }
    Ok(())
}

#[cold]
fn refuse(what: &'static str, size: usize, limit: usize) -> Error {
    Error::TooLarge(Box::new(TooLarge { what, size, limit }))
}
