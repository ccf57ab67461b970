use super::AccumulatorState;
use crate::{Result, expression::Evaluated, raw::Value};

/// `$count`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count(u64);

impl Count {
    pub(super) fn merged(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AccumulatorState for Count {
    #[inline]
    fn add(&mut self, _: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    #[inline]
    fn add_times(&mut self, _: Option<Value<'_>>, _: &[u8], times: u64) -> Result<()> {
        self.0 += times;
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        Evaluated::count(usize::try_from(self.0).unwrap_or(usize::MAX))
    }
}
