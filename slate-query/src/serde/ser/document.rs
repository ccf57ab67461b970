use serde::{
    Serialize,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
        SerializeTupleVariant,
    },
};

use super::{Error, Result, Serializer, extended::Extended, key::KeySerializer};
use crate::raw::Kind;

/// An open document or array.
#[derive(Debug)]
pub(super) struct Document<'a, 'b> {
    serializer: &'a mut Serializer<'b>,
    /// Where it begins in the buffer.
    start: usize,
    /// The number of elements of an array so far.
    items: usize,
}

impl<'a, 'b> Document<'a, 'b> {
    #[inline]
    pub(super) fn begin(serializer: &'a mut Serializer<'b>, kind: Kind) -> Result<Self> {
        serializer.begin(kind)?;
        Self::open(serializer)
    }

    /// Opens a document whose type is written already.
    #[inline]
    pub(super) fn open(serializer: &'a mut Serializer<'b>) -> Result<Self> {
        let start = serializer.open_nested()?;
        Ok(Self { serializer, start, items: 0 })
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        self.serializer.name(name)?;
        value.serialize(&mut *self.serializer).map_err(|error| error.within(name))
    }

    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let position = self.items;
        self.items += 1;
        self.serializer.position(position);
        value.serialize(&mut *self.serializer).map_err(|error| error.within(position))
    }

    /// Closes the document or array and returns the serializer.
    #[inline]
    pub(super) fn close(self) -> Result<&'a mut Serializer<'b>> {
        self.serializer.close(self.start)?;
        Ok(self.serializer)
    }

    /// Adds the name of the field that is being written to the error.
    #[cold]
    fn within_current(&self, name: usize, error: Error) -> Error {
        let name = self.serializer.buffer.get(name + 1..).and_then(|rest| rest.split(|&byte| byte == 0).next());
        error.within(String::from_utf8_lossy(name.unwrap_or_default()))
    }
}

/// Implements traits of sequences, which differ in a method's name.
macro_rules! items {
    ($($of:ident::$method:ident),*) => {$(
        impl $of for Document<'_, '_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.item(value)
            }

            #[inline]
            fn end(self) -> Result<()> {
                self.close().map(drop)
            }
        }
    )*};
}

items! { SerializeSeq::serialize_element, SerializeTuple::serialize_element, SerializeTupleStruct::serialize_field }

impl SerializeMap for Document<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        key.serialize(KeySerializer(&mut *self.serializer))
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let name = self.serializer.place.unwrap_or(self.start);
        value.serialize(&mut *self.serializer).map_err(|error| self.within_current(name, error))
    }

    #[inline]
    fn end(self) -> Result<()> {
        self.close().map(drop)
    }
}

/// A struct: a document, or a value of one of the `bson` crate's types.
#[derive(Debug)]
pub(super) enum Struct<'a, 'b> {
    Document(Document<'a, 'b>),
    Extended(Extended<'a, 'b>),
}

impl SerializeStruct for Struct<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        match self {
            Self::Document(document) => document.field(name, value),
            Self::Extended(extended) => extended.field(name, value),
        }
    }

    #[inline]
    fn end(self) -> Result<()> {
        match self {
            Self::Document(document) => document.close().map(drop),
            Self::Extended(extended) => extended.end(),
        }
    }
}

/// A variant of an enum with several fields: a document whose only field contains them.
#[derive(Debug)]
pub(super) struct Variant<'a, 'b> {
    fields: Document<'a, 'b>,
    /// Where the outer document begins in the buffer.
    start: usize,
    name: &'static str,
}

impl<'a, 'b> Variant<'a, 'b> {
    pub(super) fn begin(serializer: &'a mut Serializer<'b>, name: &'static str, kind: Kind) -> Result<Self> {
        serializer.begin(Kind::Document)?;
        let start = serializer.open_nested()?;
        serializer.name(name)?;
        Ok(Self { fields: Document::begin(serializer, kind)?, start, name })
    }

    fn close(self) -> Result<()> {
        self.fields.close()?.close(self.start)
    }
}

impl SerializeTupleVariant for Variant<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.fields.item(value).map_err(|error| error.within(self.name))
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

impl SerializeStructVariant for Variant<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        self.fields.field(name, value).map_err(|error| error.within(self.name))
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}
