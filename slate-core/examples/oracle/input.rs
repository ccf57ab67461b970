//! Reads text files, plain or compressed with gzip, with or without a byte-order mark.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Returns the text of `source`, decompressed if necessary, without a byte-order mark.
pub(crate) fn text(source: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let (head, source) = head(source, GZIP.len())?;
    let compressed = head == GZIP;
    let source = Cursor::new(head).chain(source);
    if compressed { unmarked(MultiGzDecoder::new(BufReader::new(source))) } else { unmarked(source) }
}

fn unmarked(source: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let (head, source) = head(source, BYTE_ORDER_MARK.len())?;
    let source = BufReader::with_capacity(1 << 16, source);
    if head == BYTE_ORDER_MARK { Ok(Box::new(source)) } else { Ok(Box::new(Cursor::new(head).chain(source))) }
}

/// Reads the first `length` bytes, and returns them with the rest.
fn head<R: Read>(mut source: R, length: usize) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::with_capacity(length);
    source.by_ref().take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut head)?;
    Ok((head, source))
}
