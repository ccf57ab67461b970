use super::value::length;

/// Declares the types: the format's type byte, MongoDB's alias, and the encoded size of a value, which is a fixed size,
/// [`PREFIXED`] plus a constant, or [`REGEX`].
macro_rules! kinds {
    ($($kind:ident = $byte:literal $alias:literal $extent:expr,)*) => {
        /// The type of a BSON value. The discriminant is the format's type byte.
        ///
        /// It is stored as a word: with a byte, a [`Value`](super::Value) would contain padding, and copies of it would be
        /// slower.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        #[allow(missing_docs, reason = "each variant is BSON's own name for the type")]
        pub enum Kind {
            $($kind = $byte,)*
        }

        impl Kind {
            /// All types.
            pub(crate) const ALL: [Self; LAYOUTS.len()] = [$(Self::$kind),*];

            /// Returns MongoDB's alias for the type, which `$type` accepts.
            pub fn alias(self) -> &'static str {
                match self {
                    $(Self::$kind => $alias,)*
                }
            }
        }

        const LAYOUTS: [(Kind, u8); [$($alias),*].len()] = [$((Kind::$kind, $extent)),*];
    };
}

kinds! {
    Double = 0x01 "double" 8,
    String = 0x02 "string" PREFIXED + 4,
    Document = 0x03 "object" PREFIXED,
    Array = 0x04 "array" PREFIXED,
    Binary = 0x05 "binData" PREFIXED + 5,
    Undefined = 0x06 "undefined" 0,
    ObjectId = 0x07 "objectId" 12,
    Boolean = 0x08 "bool" 1,
    DateTime = 0x09 "date" 8,
    Null = 0x0A "null" 0,
    Regex = 0x0B "regex" REGEX,
    DbPointer = 0x0C "dbPointer" PREFIXED + 16,
    Code = 0x0D "javascript" PREFIXED + 4,
    Symbol = 0x0E "symbol" PREFIXED + 4,
    CodeWithScope = 0x0F "javascriptWithScope" PREFIXED,
    Int32 = 0x10 "int" 4,
    Timestamp = 0x11 "timestamp" 8,
    Int64 = 0x12 "long" 8,
    Decimal128 = 0x13 "decimal" 16,
    MaxKey = 0x7F "maxKey" 0,
    MinKey = 0xFF "minKey" 0,
}

impl Kind {
    /// Returns the type with this type byte; `None` if there is none.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        KINDS.get(usize::from(byte)).copied().flatten()
    }

    /// Returns the format's type byte.
    #[inline]
    pub fn byte(self) -> u8 {
        self as u8
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
