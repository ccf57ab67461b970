use serde::de::{
    DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor, value::BorrowedStrDeserializer,
};

use super::{Context, Deserializer, Error, Result, utf8};
use crate::raw::{Doc, Element, Elements, Kind};

/// The fields of a document as a map.
#[derive(Debug)]
pub(super) struct Fields<'de> {
    elements: Elements<'de>,
    /// The field whose value is next.
    current: Option<Element<'de>>,
    context: Context,
}

impl<'de> Fields<'de> {
    #[inline]
    pub(super) fn new(document: Doc<'de>, context: Context) -> Self {
        Self { elements: document.elements(), current: None, context }
    }

    /// Moves to the next field and returns its name; `None` after the last.
    #[inline]
    fn next_name(&mut self) -> Result<Option<&'de str>> {
        self.current = self.elements.next();
        match &self.current {
            Some(element) => utf8(element.name).map(Some).ok_or_else(Error::damaged),
            None => Ok(None),
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.next_name()? {
            Some(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let element = self.current.ok_or_else(no_value)?;
        let value = Deserializer::new(element.value, self.context);
        seed.deserialize(value).map_err(|error: Error| error.within(element.display_name()))
    }
}

#[cold]
pub(super) fn no_value() -> Error {
    Error::new("a value was requested before its key")
}

/// The elements of an array.
#[derive(Debug)]
pub(super) struct Items<'de> {
    elements: Elements<'de>,
    position: usize,
    context: Context,
}

impl<'de> Items<'de> {
    #[inline]
    pub(super) fn new(array: Doc<'de>, context: Context) -> Self {
        Self { elements: array.elements(), position: 0, context }
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        let Some(element) = self.elements.next() else { return Ok(None) };
        let position = self.position;
        self.position += 1;
        let value = Deserializer::new(element.value, self.context);
        seed.deserialize(value).map(Some).map_err(|error: Error| error.within(position))
    }
}

/// A document whose first field is a variant of an enum: its name and its content.
#[derive(Debug)]
pub(super) struct Variant<'de>(Fields<'de>);

impl<'de> Variant<'de> {
    pub(super) fn new(document: Doc<'de>, context: Context) -> Self {
        Self(Fields::new(document, context))
    }

    fn content(&self) -> Result<(Element<'de>, Deserializer<'de>)> {
        let element = self.0.current.ok_or_else(no_value)?;
        Ok((element, Deserializer::new(element.value, self.0.context)))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self)> {
        match self.0.next_key_seed(seed)? {
            Some(variant) => Ok((variant, self)),
            None => Err(Error::new("expected a variant, found an empty document")),
        }
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        Err(Error::new("expected a variant without content as a string, found a document"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<S::Value> {
        self.0.next_value_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        let (variant, content) = self.content()?;
        let visited = serde::Deserializer::deserialize_seq(content, visitor);
        visited.map_err(|error| error.within(variant.display_name()))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value> {
        let (variant, content) = self.content()?;
        let visited = if content.kind == Kind::Document {
            serde::Deserializer::deserialize_struct(content, "", fields, visitor)
        } else {
            serde::Deserializer::deserialize_map(content, visitor)
        };
        visited.map_err(|error| error.within(variant.display_name()))
    }
}
