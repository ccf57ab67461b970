use crate::{Error, Result, raw::Value};

/// A condition on one value instead of a document: what `$pull`, `arrayFilters` and `$elemMatch` ask of an element.
#[derive(Clone, Debug)]
pub struct ElementFilter(());

impl ElementFilter {
    /// Parses a condition: a document of operators (`{$gt: 5}`) asks them of the value itself; any other document asks
    /// its fields of the value, which must be a document (`{qty: {$gt: 5}}`); any other value asks for equality.
    ///
    /// # Errors
    /// As [`super::Filter::parse`].
    pub fn parse(_condition: Value<'_>) -> Result<Self> {
        Err(Error::unsupported("filter"))
    }

    /// Whether the value satisfies the condition.
    pub fn matches(&self, _value: Value<'_>) -> bool {
        false
    }
}
