use super::State;
use crate::{
    Result,
    expression::Evaluated,
    number::{Number, Sum},
    raw::Value,
};

/// `$sum`: ignores values that are not numbers.
#[derive(Debug, Default)]
pub(super) struct Total(Sum);

impl State for Total {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.0.add(number);
        }
        Ok(())
    }

    fn add_times(&mut self, value: Option<Value<'_>>, _: &[u8], times: u64) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.0.add_times(number, times);
        }
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.0.total().into()
    }
}
