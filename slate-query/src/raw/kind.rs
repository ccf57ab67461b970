use super::value::length;

/// The type of a BSON value. The discriminant is the format's type byte.
///
/// It is stored as a word: with a byte, a [`Value`](super::Value) would contain padding, and copies of it would be
/// slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
#[allow(missing_docs, reason = "each variant is BSON's own name for the type")]
pub enum Kind {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Boolean = 0x08,
    DateTime = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    Code = 0x0D,
    Symbol = 0x0E,
    CodeWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl Kind {
    /// All types.
    pub(crate) const ALL: [Self; 21] = [
        Self::Double,
        Self::String,
        Self::Document,
        Self::Array,
        Self::Binary,
        Self::Undefined,
        Self::ObjectId,
        Self::Boolean,
        Self::DateTime,
        Self::Null,
        Self::Regex,
        Self::DbPointer,
        Self::Code,
        Self::Symbol,
        Self::CodeWithScope,
        Self::Int32,
        Self::Timestamp,
        Self::Int64,
        Self::Decimal128,
        Self::MaxKey,
        Self::MinKey,
    ];

    /// Returns the type with this type byte.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        KINDS.get(usize::from(byte)).copied().flatten()
    }

    /// Returns the format's type byte.
    #[inline]
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// Returns MongoDB's alias for the type, as `$type` takes it.
    pub fn alias(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::String => "string",
            Self::Document => "object",
            Self::Array => "array",
            Self::Binary => "binData",
            Self::Undefined => "undefined",
            Self::ObjectId => "objectId",
            Self::Boolean => "bool",
            Self::DateTime => "date",
            Self::Null => "null",
            Self::Regex => "regex",
            Self::DbPointer => "dbPointer",
            Self::Code => "javascript",
            Self::Symbol => "symbol",
            Self::CodeWithScope => "javascriptWithScope",
            Self::Int32 => "int",
            Self::Timestamp => "timestamp",
            Self::Int64 => "long",
            Self::Decimal128 => "decimal",
            Self::MaxKey => "maxKey",
            Self::MinKey => "minKey",
        }
    }

    /// Returns whether the value is one of the four numeric types.
    #[inline]
    pub fn is_number(self) -> bool {
        matches!(self, Self::Double | Self::Int32 | Self::Int64 | Self::Decimal128)
    }
}

/// The types by type byte. A table instead of a match, because the types of a document's fields are hard to predict for
/// the processor.
#[expect(clippy::indexing_slicing, reason = "made by the compiler, where an index out of bounds is an error")]
static KINDS: [Option<Kind>; 256] = {
    let mut kinds = [None; 256];
    let mut at = 0;
    while at < LAYOUTS.len() {
        let kind = LAYOUTS[at].0;
        kinds[kind as usize] = Some(kind);
        at += 1;
    }
    kinds
};

/// The encoded size of a value by type byte: a fixed size, [`PREFIXED`] plus a constant, [`REGEX`] or [`UNKNOWN`].
#[expect(clippy::indexing_slicing, reason = "made by the compiler, where an index out of bounds is an error")]
static EXTENTS: [u8; 256] = {
    let mut extents = [UNKNOWN; 256];
    let mut at = 0;
    while at < LAYOUTS.len() {
        let (kind, extent) = LAYOUTS[at];
        extents[kind as usize] = extent;
        at += 1;
    }
    extents
};

/// The size is the value's length prefix plus what exceeds this constant.
const PREFIXED: u8 = 0x80;
/// The value ends after its second NUL.
const REGEX: u8 = 0xFE;
const UNKNOWN: u8 = 0xFF;

const LAYOUTS: [(Kind, u8); 21] = [
    (Kind::Double, 8),
    (Kind::String, PREFIXED + 4),
    (Kind::Document, PREFIXED),
    (Kind::Array, PREFIXED),
    (Kind::Binary, PREFIXED + 5),
    (Kind::Undefined, 0),
    (Kind::ObjectId, 12),
    (Kind::Boolean, 1),
    (Kind::DateTime, 8),
    (Kind::Null, 0),
    (Kind::Regex, REGEX),
    (Kind::DbPointer, PREFIXED + 16),
    (Kind::Code, PREFIXED + 4),
    (Kind::Symbol, PREFIXED + 4),
    (Kind::CodeWithScope, PREFIXED),
    (Kind::Int32, 4),
    (Kind::Timestamp, 8),
    (Kind::Int64, 8),
    (Kind::Decimal128, 16),
    (Kind::MaxKey, 0),
    (Kind::MinKey, 0),
];

/// Returns the size of the value of that type at the start of `rest`; `None` if `rest` does not contain one.
#[inline]
pub(super) fn measure(byte: u8, rest: &[u8]) -> Option<usize> {
    let extent = EXTENTS.get(usize::from(byte)).copied().unwrap_or(UNKNOWN);
    let size = if extent < PREFIXED {
        usize::from(extent)
    } else if extent < REGEX {
        length(rest)?.checked_add(usize::from(extent - PREFIXED))?
    } else {
        irregular(extent, rest)?
    };
    (size <= rest.len()).then_some(size)
}

#[cold]
fn irregular(extent: u8, rest: &[u8]) -> Option<usize> {
    if extent == UNKNOWN {
        return None;
    }
    let pattern = rest.iter().position(|&byte| byte == 0)? + 1;
    Some(pattern + rest.get(pattern..)?.iter().position(|&byte| byte == 0)? + 1)
}
