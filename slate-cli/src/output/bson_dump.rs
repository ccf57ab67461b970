use std::io::{self, Write};

use bson::RawDocument;

use super::{Layout, Rows};

/// The documents' bytes one after the other, as `mongorestore` reads them.
struct Dump<'w>(&'w mut dyn Write);

pub(super) fn begin<'w>(out: &'w mut dyn Write, _: &'w Layout) -> Box<dyn Rows + 'w> {
    Box::new(Dump(out))
}

impl Rows for Dump<'_> {
    fn row(&mut self, document: &RawDocument) -> io::Result<()> {
        self.0.write_all(document.as_bytes())
    }
}
