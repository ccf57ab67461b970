use std::io::{self, BufRead};

use bson::RawDocumentBuf;

use super::{InputOptions, Place, Record, Records};
use crate::json::{Dialect, JsonDocuments};

/// Reads JSON in every form that [`crate::json`] describes.
pub(super) fn open(source: Box<dyn BufRead>, options: &InputOptions) -> io::Result<Records> {
    let dialect = Dialect { big_integers: options.big_integers, ..Dialect::DATA };
    Ok(Box::new(JsonDocuments::new(source, dialect).map(|entry| {
        let (position, document) = entry?;
        let document =
            document.and_then(|document| RawDocumentBuf::try_from(&document).map_err(|error| error.to_string()));
        Ok(Record { place: Place::Text(position), document, note: None })
    })))
}
