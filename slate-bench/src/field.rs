//! The fields of a record and their values, with BSON's order.

use bson::Bson;

/// A field of a record other than `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// A string, nearly unique.
    Name,
    /// `"active"` or `"rejected"`; indexed.
    Status,
    /// A 32-bit integer from 0 to 99; indexed.
    ContactsCount,
    /// One of three strings.
    Recommendation1,
    /// One of three strings.
    Recommendation2,
    /// One of three strings.
    Recommendation3,
    /// Two to four strings.
    Tags,
    /// A date, or null.
    LastContactedAt,
    /// A string, or null.
    Notes,
}

impl Field {
    /// All fields in the order of a document.
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::Status,
        Self::ContactsCount,
        Self::Recommendation1,
        Self::Recommendation2,
        Self::Recommendation3,
        Self::Tags,
        Self::LastContactedAt,
        Self::Notes,
    ];

    /// The indexed fields, one index each.
    pub const INDEXED: [Self; 2] = [Self::Status, Self::ContactsCount];

    /// Returns the field's name in a document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Status => "status",
            Self::ContactsCount => "contacts_count",
            Self::Recommendation1 => "product_recommendation1",
            Self::Recommendation2 => "product_recommendation2",
            Self::Recommendation3 => "product_recommendation3",
            Self::Tags => "tags",
            Self::LastContactedAt => "last_contacted_at",
            Self::Notes => "notes",
        }
    }
}

/// A value of a field. The order of the variants is BSON's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value<'v> {
    /// Null.
    Null,
    /// An integer of either width.
    Int(i64),
    /// A string.
    Str(&'v str),
    /// An array of strings.
    Strs(&'v [&'static str]),
    /// A date, in milliseconds since 1970.
    Date(i64),
}

impl<'v> Value<'v> {
    /// Converts a scalar. `None` for types that no scalar field of a record has.
    pub fn of(bson: &'v Bson) -> Option<Self> {
        match bson {
            Bson::Null => Some(Self::Null),
            Bson::Int32(number) => Some(Self::Int(i64::from(*number))),
            Bson::Int64(number) => Some(Self::Int(*number)),
            Bson::String(string) => Some(Self::Str(string)),
            Bson::DateTime(date) => Some(Self::Date(date.timestamp_millis())),
            _ => None,
        }
    }

    /// Returns whether a document's value equals this one. Int32 and int64 are equal.
    pub fn is(&self, bson: &Bson) -> bool {
        match (self, bson) {
            (Self::Strs(strings), Bson::Array(elements)) => {
                strings.len() == elements.len()
                    && strings.iter().zip(elements).all(|(string, element)| element.as_str() == Some(string))
            }
            _ => Value::of(bson) == Some(*self),
        }
    }
}

/// Ascending or descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending.
    Ascending,
    /// Descending.
    Descending,
}

impl Order {
    /// Returns 1 or -1, as in a sort document.
    pub fn sign(self) -> i32 {
        match self {
            Self::Ascending => 1,
            Self::Descending => -1,
        }
    }

    /// Compares two values in this order.
    pub fn compare<T: Ord>(self, left: &T, right: &T) -> std::cmp::Ordering {
        match self {
            Self::Ascending => left.cmp(right),
            Self::Descending => right.cmp(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, bson};

    use super::*;

    #[test]
    fn values_are_ordered_as_bson_orders_types() {
        let ordered = [Value::Null, Value::Int(9), Value::Str("a"), Value::Strs(&["a"]), Value::Date(0)];
        assert!(ordered.is_sorted());
    }

    #[test]
    fn integers_match_in_documents_whatever_their_width() {
        assert!(Value::Int(7).is(&Bson::Int32(7)) && Value::Int(7).is(&Bson::Int64(7)));
        assert!(Value::Date(5).is(&Bson::DateTime(DateTime::from_millis(5))));
        assert!(Value::Strs(&["a", "b"]).is(&bson!(["a", "b"])));
        assert!(!Value::Strs(&["a", "b"]).is(&bson!(["a"])) && !Value::Null.is(&bson!("a")));
    }
}
