use slate_query::raw::Doc;
use slate_store::{Keyspace, Points, View};

use super::{Rows, position::Position};
use crate::{Result, interrupt::Interrupt};

/// The record of one key, where there is one: what a question for one `_id` comes to, without a plan.
pub(crate) struct OnlyRow<V: View> {
    points: V::Points,
    position: Position,
}

impl<V: View> OnlyRow<V> {
    pub(crate) fn open(view: &V, records: Keyspace, key: &[u8], interrupt: &Interrupt) -> Result<Self> {
        interrupt.check()?;
        let mut points = view.points(records)?;
        points.load(&[key])?;
        Ok(Self { points, position: Position::default() })
    }
}

impl<V: View> Rows for OnlyRow<V> {
    fn advance(&mut self) -> Result<bool> {
        Ok(self.position.advance() && self.current().is_some())
    }

    fn current(&self) -> Option<&[u8]> {
        let stored = self.points.loaded(0).filter(|_| self.position.is_on());
        stored.map(|stored| Doc::stored(stored).bytes())
    }
}
