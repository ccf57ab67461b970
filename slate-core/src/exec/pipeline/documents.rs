use slate_query::raw::{Doc, OwnedValue, Value};

use crate::{Result, exec::Rows, interrupt::Interrupt};

/// Documents that are part of the pipeline, or that describe its collection.
pub(crate) struct DocumentsRows {
    documents: std::vec::IntoIter<OwnedValue>,
    current: Option<OwnedValue>,
    interrupt: Interrupt,
}

impl DocumentsRows {
    pub(super) fn new(documents: Vec<OwnedValue>, interrupt: Interrupt) -> Self {
        Self { documents: documents.into_iter(), current: None, interrupt }
    }
}

impl Rows for DocumentsRows {
    fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        self.current = self.documents.next();
        Ok(self.current.is_some())
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.current.as_ref().map(OwnedValue::as_value).and_then(Value::as_document)
    }
}
