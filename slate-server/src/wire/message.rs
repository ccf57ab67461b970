//! `OP_MSG`: a command as a document, with arrays of it as separate sequences of documents.

use bson::RawDocumentBuf;

use super::{HEADER, WireError, reader::Reader, request::RequestKind};

const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
const EXHAUST_ALLOWED: u32 = 1 << 16;

/// The mask of required flags: a message with an unknown one is refused.
const REQUIRED: u32 = 0xffff;

/// Decodes a message. `frame` is the whole message; `compressed` is whether it was compressed: then its checksum is not that of `frame`.
pub(super) fn decode(frame: &[u8], compressed: bool) -> Result<(RequestKind, RawDocumentBuf), WireError> {
    let mut reader = Reader::new(frame);
    reader.take(HEADER, "header")?;
    let flags = u32::from_le_bytes(reader.int("flags")?.to_le_bytes());
    if flags & REQUIRED & !(CHECKSUM_PRESENT | MORE_TO_COME) != 0 {
        return Err(WireError::Flags(flags));
    }
    let mut sections = reader;
    if flags & CHECKSUM_PRESENT != 0 {
        let length = frame.len().checked_sub(4).filter(|length| *length >= HEADER + 4);
        let (checked, checksum) =
            length.and_then(|length| frame.split_at_checked(length)).ok_or(WireError::Truncated("checksum"))?;
        if !compressed && checksum != crc32c::crc32c(checked).to_le_bytes() {
            return Err(WireError::Checksum);
        }
        let body = reader.rest();
        sections = Reader::new(body.get(..body.len().saturating_sub(4)).unwrap_or_default());
    }
    let kind =
        RequestKind::Message { expects_reply: flags & MORE_TO_COME == 0, allows_exhaust: flags & EXHAUST_ALLOWED != 0 };
    Ok((kind, command(sections)?))
}

/// Maximum number of sequences in a message: as many as a command may have fields. Reading one takes several times its bytes.
const MAX_SEQUENCES: usize = 1_000;

/// Merges the sections into one command document.
fn command(mut reader: Reader<'_>) -> Result<RawDocumentBuf, WireError> {
    let (mut body, mut sequences) = (None, Vec::new());
    while !reader.is_empty() {
        match reader.byte("section")? {
            0 => {
                if body.replace(reader.document("command")?).is_some() {
                    return Err(WireError::Body);
                }
            }
            1 if sequences.len() == MAX_SEQUENCES => return Err(WireError::Body),
            1 => {
                let length = Reader::new(reader.rest()).int("sequence")?;
                let length = usize::try_from(length).map_err(|_| WireError::Truncated("sequence"))?;
                let mut sequence = Reader::new(reader.take(length, "sequence")?);
                sequence.int("sequence")?;
                sequences.push((sequence.text("name of a sequence")?, sequence));
            }
            kind => return Err(WireError::Section(kind)),
        }
    }
    let body = body.ok_or(WireError::Body)?;
    let mut merged = body.to_vec();
    for (name, documents) in sequences {
        merged.pop();
        append_array(&mut merged, name, documents)?;
        merged.push(0);
        let length = length_of(&merged)?;
        merged.splice(..4, length);
    }
    RawDocumentBuf::from_bytes(merged).map_err(|_| WireError::Bson("command"))
}

/// Appends an array element with these documents to an open document.
fn append_array(out: &mut Vec<u8>, name: &[u8], mut documents: Reader<'_>) -> Result<(), WireError> {
    out.push(4);
    out.extend_from_slice(name);
    out.push(0);
    let mut array = vec![0; 4];
    array.reserve(documents.rest().len().saturating_add(documents.rest().len() / 8));
    let mut place = 0_usize;
    while !documents.is_empty() {
        let document = documents.document("document of a sequence")?;
        array.push(3);
        array.extend_from_slice(place.to_string().as_bytes());
        array.push(0);
        array.extend_from_slice(document);
        place += 1;
    }
    array.push(0);
    let length = length_of(&array)?;
    out.extend_from_slice(&length);
    out.extend_from_slice(array.get(4..).unwrap_or_default());
    Ok(())
}

fn length_of(document: &[u8]) -> Result<[u8; 4], WireError> {
    let length = i32::try_from(document.len()).map_err(|_| WireError::Bson("command"))?;
    Ok(length.to_le_bytes())
}
