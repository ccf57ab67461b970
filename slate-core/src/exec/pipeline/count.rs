use slate_query::raw::{Doc, Kind, Value, write_one};

use crate::{
    Result,
    exec::{
        Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
};

/// One document `{name: number}`, or none if the number is 0. The number is an int32 if it fits.
pub(crate) struct CountRows<'v> {
    /// `None` once all of it was read.
    input: Option<BoxedRows<'v>>,
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

impl<'v> CountRows<'v> {
    /// Counts the documents of `input`.
    pub(super) fn of_rows(input: BoxedRows<'v>, name: &str, resources: &Resources) -> Self {
        Self::new(input, How::Rows, name, resources)
    }

    /// Returns the number that `input` has counted, in the field `name`.
    pub(super) fn of_number(input: BoxedRows<'v>, name: &str, resources: &Resources) -> Self {
        Self::new(input, How::Number, name, resources)
    }

    fn new(input: BoxedRows<'v>, how: How, name: &str, resources: &Resources) -> Self {
        Self { input: Some(input), how, name: name.into(), row: None, interrupt: resources.interrupt.clone() }
    }
}

impl Rows for CountRows<'_> {
    fn advance(&mut self) -> Result<bool> {
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

    fn current(&self) -> Option<Doc<'_>> {
        self.row.as_deref().map(Doc::new)
    }
}
