use super::{Node, bounds::only_key, field::Sense, node::Tree, parse::is_operators};
use crate::raw::{Doc, Element, Kind, SmallBytes, Value};

/// That one value is asked for at one path, and nothing else: most filters are of this kind.
#[derive(Clone, Copy, Debug)]
pub struct OneValue<'f> {
    path: &'f [u8],
    value: Value<'f>,
}

impl<'f> OneValue<'f> {
    /// What a filter's document asks, where that shows without parsing it: it is one name without dots and a value to equal,
    /// not operators, and neither a regular expression nor undefined. Parsed, it says the same, and is not refused.
    pub fn of_document(filter: Doc<'f>) -> Option<Self> {
        let mut fields = filter.elements();
        let (Some(only), None) = (fields.next(), fields.next()) else { return None };
        let is_name =
            !only.name.starts_with(b"$") && !only.name.contains(&b'.') && std::str::from_utf8(only.name).is_ok();
        let is_equality = !is_operators(only.value) && !matches!(only.value.kind(), Kind::Regex | Kind::Undefined);
        (is_name && is_equality).then(|| Self::of_field(only))
    }

    /// The same of a document's field that was told to be of this kind.
    pub(super) fn of_field(field: Element<'f>) -> Self {
        Self { path: field.name, value: field.value }
    }

    pub(super) fn of_node(node: &'f Node) -> Option<Self> {
        let Tree::Field(field) = &node.tree else { return None };
        let value = field.operator.equality().filter(|_| field.sense == Sense::Holds)?;
        Some(Self { path: field.path.as_str().as_bytes(), value })
    }

    /// The path as written.
    pub fn path(&self) -> &'f [u8] {
        self.path
    }

    /// The key of the value, where an index on the path that is not multikey has entries of that key for the documents that
    /// match and for no others.
    pub fn key(&self) -> Option<SmallBytes> {
        only_key(self.value)
    }
}
