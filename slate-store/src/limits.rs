/// The longest key, in bytes, that the backends of this crate take.
pub const MAX_KEY: usize = 64 << 10;

/// The longest value, in bytes, that the backends of this crate take: twice the longest BSON document.
pub const MAX_VALUE: usize = 32 << 20;
