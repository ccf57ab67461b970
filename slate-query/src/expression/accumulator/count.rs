use super::State;
use crate::{Result, expression::Evaluated, raw::Value};

/// `$count`.
#[derive(Debug, Default)]
pub(super) struct Count(usize);

impl State for Count {
    fn add(&mut self, _: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        Evaluated::count(self.0)
    }
}
