/// Implements methods of `serde::Serializer` that fail. `self.unsupported(&str)` returns the error.
macro_rules! unsupported {
    ($($method:ident)*) => { $(unsupported! { @one $method })* };
    (@one bool) => { unsupported! { @scalar serialize_bool(bool) "a boolean" } };
    (@one i8) => { unsupported! { @scalar serialize_i8(i8) "an integer" } };
    (@one i16) => { unsupported! { @scalar serialize_i16(i16) "an integer" } };
    (@one i32) => { unsupported! { @scalar serialize_i32(i32) "an integer" } };
    (@one i64) => { unsupported! { @scalar serialize_i64(i64) "an integer" } };
    (@one u8) => { unsupported! { @scalar serialize_u8(u8) "an integer" } };
    (@one u16) => { unsupported! { @scalar serialize_u16(u16) "an integer" } };
    (@one u32) => { unsupported! { @scalar serialize_u32(u32) "an integer" } };
    (@one u64) => { unsupported! { @scalar serialize_u64(u64) "an integer" } };
    (@one f32) => { unsupported! { @scalar serialize_f32(f32) "a number" } };
    (@one f64) => { unsupported! { @scalar serialize_f64(f64) "a number" } };
    (@one char) => { unsupported! { @scalar serialize_char(char) "a character" } };
    (@one bytes) => { unsupported! { @scalar serialize_bytes(&[u8]) "bytes" } };
    (@one unit_struct) => { unsupported! { @scalar serialize_unit_struct(&'static str) "a unit" } };
    (@scalar $method:ident($type:ty) $what:literal) => {
        fn $method(self, _: $type) -> Result<()> {
            Err(self.unsupported($what))
        }
    };
    (@one none) => {
        fn serialize_none(self) -> Result<()> {
            Err(self.unsupported("none"))
        }
    };
    (@one unit) => {
        fn serialize_unit(self) -> Result<()> {
            Err(self.unsupported("a unit"))
        }
    };
    (@one some) => {
        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<()> {
            Err(self.unsupported("an option"))
        }
    };
    (@one unit_variant) => {
        fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<()> {
            Err(self.unsupported("a variant"))
        }
    };
    (@one newtype_variant) => {
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<()> {
            Err(self.unsupported("a variant"))
        }
    };
    (@one seq) => {
        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq> {
            Err(self.unsupported("a sequence"))
        }
    };
    (@one tuple) => {
        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
            Err(self.unsupported("a tuple"))
        }
    };
    (@one tuple_struct) => {
        fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct> {
            Err(self.unsupported("a tuple"))
        }
    };
    (@one tuple_variant) => {
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant> {
            Err(self.unsupported("a variant"))
        }
    };
    (@one map) => {
        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
            Err(self.unsupported("a map"))
        }
    };
    (@one struct) => {
        fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct> {
            Err(self.unsupported("a struct"))
        }
    };
    (@one struct_variant) => {
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant> {
            Err(self.unsupported("a variant"))
        }
    };
}
pub(super) use unsupported;
