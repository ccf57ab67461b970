use slate_query::raw::{Doc, Kind, Value, write_one};
use slate_store::View;

use super::DocumentRows;
use crate::{Result, exec::Resources, interrupt::Interrupt};

/// One document `{name: number}`, or none if the number is 0. The number is an int32 if it fits.
pub(crate) struct CountRows<V: View> {
    /// `None` once all of it was read.
    input: Option<DocumentRows<V>>,
    how: How,
    name: Box<str>,
    row: Option<Vec<u8>>,
    interrupt: Interrupt,
}

/// Where the number comes from.
#[derive(Clone, Copy)]
enum How {
    /// The input's documents are counted.
    Rows,
    /// The input is one document `{n}`.
    Number,
}

impl<V: View> CountRows<V> {
    /// Counts the documents of `input`.
    pub(super) fn of_rows(input: DocumentRows<V>, name: &str, resources: &Resources) -> Self {
        Self::new(input, How::Rows, name, resources)
    }

    /// Names the number that `input` has counted.
    pub(super) fn of_number(input: DocumentRows<V>, name: &str, resources: &Resources) -> Self {
        Self::new(input, How::Number, name, resources)
    }

    fn new(input: DocumentRows<V>, how: How, name: &str, resources: &Resources) -> Self {
        Self { input: Some(input), how, name: name.into(), row: None, interrupt: resources.interrupt.clone() }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.row = None;
        let Some(mut input) = self.input.take() else { return Ok(false) };
        let mut counted = 0_i64;
        while input.advance()? {
            self.interrupt.tick()?;
            let number = || input.current().and_then(|row| row.get("n")).and_then(Value::as_i64).unwrap_or_default();
            counted = counted.saturating_add(match self.how {
                How::Rows => 1,
                How::Number => number(),
            });
        }
        if counted == 0 {
            return Ok(false);
        }
        let row = self.row.insert(Vec::new());
        match i32::try_from(counted) {
            Ok(int) => write_one(self.name.as_bytes(), Value::new(Kind::Int32, &int.to_le_bytes()), row),
            Err(_) => write_one(self.name.as_bytes(), Value::new(Kind::Int64, &counted.to_le_bytes()), row),
        }
        Ok(true)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.row.as_deref().map(Doc::new)
    }
}
