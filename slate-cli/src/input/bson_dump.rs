use std::io::{self, BufRead, Read};

use bson::RawDocumentBuf;
use slate_core::raw::{Kind, Value};

use super::{InputOptions, Place, Record, Records};

/// Longest document that MongoDB's tools write: 16 MiB and what a server adds.
const LONGEST: usize = (16 << 20) + (16 << 10);

/// Length of the smallest document.
const SHORTEST: usize = 5;

/// Maximum nesting, the JSON parser's limit.
const MAX_DEPTH: usize = 200;

/// Reads BSON documents one after the other, as `mongodump` writes them.
pub(super) fn open(source: Box<dyn BufRead>, _: &InputOptions) -> io::Result<Records> {
    Ok(Box::new(Dump { source, offset: 0, number: 0, ended: false }))
}

struct Dump {
    source: Box<dyn BufRead>,
    /// Number of bytes and of documents that were read.
    offset: u64,
    number: u64,
    ended: bool,
}

impl Dump {
    fn record(&mut self) -> io::Result<Option<Record>> {
        self.number += 1;
        let place = Place::Byte { offset: self.offset, number: self.number };
        let lost = |why: &str| {
            Ok(Some(Record { place, document: Err(format!("{why}; the rest of the file is not read")), note: None }))
        };
        let mut bytes = Vec::new();
        self.source.by_ref().take(4).read_to_end(&mut bytes)?;
        let Ok(header) = <[u8; 4]>::try_from(bytes.as_slice()) else {
            self.ended = true;
            return if bytes.is_empty() { Ok(None) } else { lost("the file ends within a document") };
        };
        let length = usize::try_from(i32::from_le_bytes(header)).unwrap_or_default();
        if !(SHORTEST..=LONGEST).contains(&length) {
            self.ended = true;
            return lost("this is not the length of a document");
        }
        // Allocates memory only for the bytes that can be read: the length in the header may be wrong.
        self.source.by_ref().take((length - 4) as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            self.ended = true;
            return lost("the file ends within a document");
        }
        self.offset += length as u64;
        let document = RawDocumentBuf::from_bytes(bytes).map_err(|error| error.to_string());
        let document = document.and_then(|document| {
            // Deep nesting would overflow the stack.
            if Value::new(Kind::Document, document.as_bytes()).is_deeper_than(MAX_DEPTH) {
                return Err(format!("more than {MAX_DEPTH} levels of nesting"));
            }
            bson::Document::try_from(document.as_ref()).map(|_| document).map_err(|error| error.to_string())
        });
        Ok(Some(Record { place, document, note: None }))
    }
}

impl Iterator for Dump {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.record();
        self.ended |= record.is_err();
        record.transpose()
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    fn read(bytes: Vec<u8>) -> Vec<(Place, bool)> {
        let records = open(Box::new(io::Cursor::new(bytes)), &InputOptions::default()).unwrap();
        records.map(|record| record.map(|record| (record.place, record.document.is_ok())).unwrap()).collect()
    }

    #[test]
    fn documents_follow_each_other() {
        let (one, two) = (rawdoc! { "a": 1 }.into_bytes(), rawdoc! { "a": "x" }.into_bytes());
        let first = Place::Byte { offset: 0, number: 1 };
        let place = Place::Byte { offset: one.len() as u64, number: 2 };
        assert_eq!(read([one.clone(), two.clone()].concat()), [(first, true), (place, true)]);
        // If a document with a correct length is damaged, the documents after it are still read.
        let mut bad = one.clone();
        bad[4] = 0x55;
        assert_eq!(read([bad, two.clone()].concat()), [(first, false), (place, true)]);
        // If a length is damaged, the rest of the file cannot be read.
        let cut = [one.clone(), two.get(..7).unwrap().to_vec()].concat();
        assert_eq!(read(cut), [(first, true), (place, false)]);
        assert_eq!(read([one, vec![1, 0, 0, 0], two].concat()), [(first, true), (place, false)]);
    }
}
