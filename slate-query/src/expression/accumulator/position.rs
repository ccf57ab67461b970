use super::AccumulatorState;
use crate::{
    Result,
    expression::Evaluated,
    raw::{OwnedValue, Value},
};

fn value(value: Option<&OwnedValue>) -> Evaluated<'static> {
    value.map_or(Evaluated::NULL, |value| Evaluated::Owned(value.clone()))
}

/// `$first`: the value of the first document; null if it is missing.
#[derive(Debug, Default)]
pub(super) struct First(Option<OwnedValue>);

impl AccumulatorState for First {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        self.0.get_or_insert_with(|| value.unwrap_or(Value::NULL).to_owned());
        Ok(())
    }

    fn most_equal(&self) -> u64 {
        1
    }

    fn finish(&mut self) -> Evaluated<'static> {
        value(self.0.as_ref())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedValue::heap_bytes)
    }
}

/// `$last`: the value of the last document; null if it is missing.
#[derive(Debug, Default)]
pub(super) struct Last(Option<OwnedValue>);

impl AccumulatorState for Last {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        self.0 = Some(value.unwrap_or(Value::NULL).to_owned());
        Ok(())
    }

    fn most_equal(&self) -> u64 {
        1
    }

    fn finish(&mut self) -> Evaluated<'static> {
        value(self.0.as_ref())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedValue::heap_bytes)
    }
}
