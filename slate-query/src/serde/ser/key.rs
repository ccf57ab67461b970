use serde::{Serialize, ser::Impossible};

use super::{Error, Result, Serializer, unsupported::unsupported};

/// Serializes a map's key, which must be a string, as the name of a field.
pub(super) struct KeySerializer<'a, 'b>(pub(super) &'a mut Serializer<'b>);

impl KeySerializer<'_, '_> {
    #[cold]
    fn unsupported(self, found: &str) -> Error {
        Error::new(format!("the key of a map must be a string, found {found}"))
    }
}

impl serde::Serializer for KeySerializer<'_, '_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    #[inline]
    fn serialize_str(self, name: &str) -> Result<()> {
        self.0.name(name)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, key: &T) -> Result<()> {
        key.serialize(self)
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<()> {
        self.0.name(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, key: &T) -> Result<()> {
        key.serialize(self)
    }

    unsupported! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes none unit unit_struct newtype_variant seq tuple tuple_struct
        tuple_variant map struct struct_variant
    }
}
