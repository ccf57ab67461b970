use std::{fmt, ops::Deref};

use bson::{RawArray, RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf, error::Result};
use slate_query::raw::{Kind, Value};

/// A document that a cursor lends. It dereferences to bson's [`RawDocument`]. `Display` and `Debug` show it as extended JSON.
///
/// The methods defined here return references that are valid as long as the document is lent. The methods of `RawDocument` that are
/// reached by `Deref` return references that are valid as long as this value; use [`as_raw`](Row::as_raw) to have the longer lifetime.
///
/// ```
/// use slate_core::{Row, bson::rawdoc};
///
/// let user = rawdoc! { "_id": 1, "name": "Ada" };
/// assert_eq!(format!("{:?}", Row::from(&user)), r#"{ "_id": 1, "name": "Ada" }"#);
/// ```
#[derive(Clone, Copy, PartialEq)]
pub struct Row<'r>(&'r RawDocument);

/// Declares methods of `RawDocument` whose results live as long as the document is lent.
macro_rules! lent {
    ($($name:ident -> $output:ty;)*) => {
        $(
            #[doc = concat!("See [`RawDocument::", stringify!($name), "`].")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "As that method."]
            pub fn $name(self, field: &str) -> $output {
                self.0.$name(field)
            }
        )*
    };
}

impl<'r> Row<'r> {
    /// Returns the document as bson's type.
    pub fn as_raw(self) -> &'r RawDocument {
        self.0
    }

    /// Copies the document.
    pub fn to_owned(self) -> RawDocumentBuf {
        self.0.to_owned()
    }

    lent! {
        get -> Result<Option<RawBsonRef<'r>>>;
        get_array -> Result<&'r RawArray>;
        get_binary -> Result<RawBinaryRef<'r>>;
        get_document -> Result<&'r RawDocument>;
        get_str -> Result<&'r str>;
    }
}

impl Deref for Row<'_> {
    type Target = RawDocument;

    fn deref(&self) -> &RawDocument {
        self.0
    }
}

impl AsRef<RawDocument> for Row<'_> {
    fn as_ref(&self) -> &RawDocument {
        self.0
    }
}

impl<'r> From<&'r RawDocument> for Row<'r> {
    fn from(document: &'r RawDocument) -> Self {
        Self(document)
    }
}

impl<'r> From<&'r RawDocumentBuf> for Row<'r> {
    fn from(document: &'r RawDocumentBuf) -> Self {
        Self(document)
    }
}

impl<'r> From<Row<'r>> for &'r RawDocument {
    fn from(row: Row<'r>) -> Self {
        row.0
    }
}

impl PartialEq<RawDocumentBuf> for Row<'_> {
    fn eq(&self, other: &RawDocumentBuf) -> bool {
        *self.0 == **other
    }
}

/// Formats the document as relaxed extended JSON, on one line.
impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::new(Kind::Document, self.0.as_bytes()).fmt(f)
    }
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
