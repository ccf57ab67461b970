/// The longest key, in bytes, that the backends of this crate accept.
pub const MAX_KEY: usize = 64 << 10;

/// The longest value, in bytes, that the backends of this crate accept: twice the size of the longest BSON document.
pub const MAX_VALUE: usize = 32 << 20;
