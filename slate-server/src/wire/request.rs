use bson::RawDocumentBuf;

use super::{
    Compressor, HEADER, MAX_MESSAGE, OP_COMPRESSED, OP_MSG, OP_QUERY, WireError, message, query, reader::Reader,
};

/// A decoded request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: i32,
    pub(crate) kind: RequestKind,
    /// The command, with the documents of all sections.
    pub(crate) command: RawDocumentBuf,
    /// How the request was compressed; its reply is compressed in the same way.
    pub(crate) compressor: Option<Compressor>,
}

/// The form of a request, which determines the form of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// `OP_QUERY`.
    Query,
    /// `OP_MSG`.
    Message {
        expects_reply: bool,
        /// Whether one request may have many replies.
        allows_exhaust: bool,
    },
}

impl Request {
    /// Returns the length of the first message; `None` if `bytes` does not contain it yet.
    ///
    /// # Errors
    /// Fails if the length is not valid for a message.
    pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
        let Some(length) = bytes.first_chunk() else { return Ok(None) };
        let length = i32::from_le_bytes(*length);
        let valid = usize::try_from(length).ok().filter(|length| (HEADER..=MAX_MESSAGE).contains(length));
        valid.map(Some).ok_or(WireError::Length(length))
    }

    /// Returns the id of the first message; `None` if `bytes` does not contain it yet.
    pub(super) fn id(bytes: &[u8]) -> Option<i32> {
        let (_, rest) = bytes.split_first_chunk::<4>()?;
        rest.first_chunk().map(|id| i32::from_le_bytes(*id))
    }

    /// Returns the announced length of a complete message without compression, at most `most`; 0 if it is not compressed.
    pub(super) fn plain_length(bytes: &[u8], most: usize) -> usize {
        let int = |place: usize| bytes.get(place..)?.first_chunk().map(|int| i32::from_le_bytes(*int));
        let length = int(HEADER + 4).filter(|_| int(HEADER - 4) == Some(OP_COMPRESSED));
        length.and_then(|length| usize::try_from(length).ok()).unwrap_or_default().min(most)
    }

    /// Returns the memory in bytes that decompressing a complete message takes; 0 if it is not compressed.
    pub(super) fn plain_memory(bytes: &[u8], most: usize) -> usize {
        let length = Self::plain_length(bytes, most);
        // The decoder of Zstandard holds all blocks until the end.
        let is_zstd = bytes.get(HEADER + 8).is_some_and(|id| *id == Compressor::Zstd.id());
        if is_zstd { 2 * length } else { length }
    }

    /// Decodes a complete message, of at most `most` bytes without compression.
    ///
    /// # Errors
    /// Fails if the bytes are not a request.
    pub(crate) fn decode(frame: &[u8], most: usize) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame);
        reader.int("header")?;
        let (id, _, op_code) = (reader.int("header")?, reader.int("header")?, reader.int("header")?);
        if op_code != OP_COMPRESSED {
            let (kind, command) = decode_plain(op_code, frame, false)?;
            return Ok(Self { id, kind, command, compressor: None });
        }
        let (op_code, length) = (reader.int("original op code")?, reader.int("original length")?);
        let compressor = reader.byte("compressor")?;
        let compressor = Compressor::from_id(compressor).ok_or(WireError::Compressor(compressor))?;
        let original = usize::try_from(length).ok().filter(|length| *length <= most.saturating_sub(HEADER));
        let original = original.ok_or(WireError::Length(length))?;
        let mut plain = vec![0; HEADER];
        compressor.decompress(reader.rest(), original, &mut plain)?;
        let (kind, command) = decode_plain(op_code, &plain, true)?;
        Ok(Self { id, kind, command, compressor: Some(compressor) })
    }
}

fn decode_plain(op_code: i32, frame: &[u8], compressed: bool) -> Result<(RequestKind, RawDocumentBuf), WireError> {
    match op_code {
        OP_MSG => message::decode(frame, compressed),
        OP_QUERY => query::decode(frame),
        _ => Err(WireError::OpCode(op_code)),
    }
}

#[cfg(test)]
mod tests {
    use bson::{Document, RawDocumentBuf, doc};
    use proptest::prelude::*;

    use super::*;

    /// Encodes a message of kind 2013.
    fn message(flags: u32, sections: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for part in [7_i32.to_le_bytes(), [0; 4], OP_MSG.to_le_bytes(), flags.to_le_bytes()] {
            bytes.extend_from_slice(&part);
        }
        bytes.extend_from_slice(sections);
        let checked = flags & 1 != 0;
        let length = i32::try_from(bytes.len() + if checked { 4 } else { 0 }).unwrap();
        bytes.splice(..4, length.to_le_bytes());
        if checked {
            let checksum = crc32c::crc32c(&bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
        }
        bytes
    }

    fn body(command: &Document) -> Vec<u8> {
        [&[0][..], RawDocumentBuf::try_from(command).unwrap().as_bytes()].concat()
    }

    fn sequence(name: &str, documents: &[Document]) -> Vec<u8> {
        let mut bytes = [name.as_bytes(), &[0]].concat();
        documents.iter().for_each(|document| bytes.extend(RawDocumentBuf::try_from(document).unwrap().into_bytes()));
        let length = i32::try_from(bytes.len() + 4).unwrap();
        [&[1][..], &length.to_le_bytes(), &bytes].concat()
    }

    fn command(frame: &[u8]) -> Document {
        Document::try_from(&Request::decode(frame, MAX_MESSAGE).unwrap().command).unwrap()
    }

    #[test]
    fn sections_are_merged_in_any_order() {
        let (insert, documents) = (doc! { "insert": "c", "$db": "d" }, [doc! { "a": 1 }, doc! { "b": 2 }]);
        let expected = doc! { "insert": "c", "$db": "d", "documents": documents.to_vec() };
        let parts = [body(&insert), sequence("documents", &documents)];
        for sections in [parts.concat(), [&*parts[1], &*parts[0]].concat()] {
            assert_eq!(command(&message(0, &sections)), expected);
            assert_eq!(command(&message(1, &sections)), expected);
        }
        let two = [body(&doc! { "bulkWrite": 1 }), sequence("ops", &[doc! {}]), sequence("nsInfo", &[])].concat();
        assert_eq!(command(&message(0, &two)), doc! { "bulkWrite": 1, "ops": [{}], "nsInfo": [] });
    }

    #[test]
    fn damaged_messages_are_refused() {
        let ping = body(&doc! { "ping": 1 });
        let mut checked = message(1, &ping);
        *checked.last_mut().unwrap() ^= 1;
        assert!(matches!(Request::decode(&checked, MAX_MESSAGE), Err(WireError::Checksum)));
        assert!(matches!(Request::decode(&message(1 << 3, &ping), MAX_MESSAGE), Err(WireError::Flags(8))));
        assert!(matches!(Request::decode(&message(0, &[]), MAX_MESSAGE), Err(WireError::Body)));
        assert!(matches!(Request::decode(&message(0, &[&*ping, &*ping].concat()), MAX_MESSAGE), Err(WireError::Body)));
        assert!(matches!(Request::decode(&message(0, &[9]), MAX_MESSAGE), Err(WireError::Section(9))));
        assert!(matches!(Request::decode(&message(0, &ping[..9]), MAX_MESSAGE), Err(WireError::Truncated(_))));
        assert!(matches!(Request::length(&[0xff, 0xff, 0xff, 0x7f]), Err(WireError::Length(_))));
        assert!(matches!(Request::length(&[15, 0, 0, 0]), Err(WireError::Length(15))));
        assert!(matches!(Request::length(&[15, 0, 0]), Ok(None)));
    }

    #[test]
    fn a_query_is_a_command_of_its_database() {
        let mut frame = vec![0; 12];
        frame.extend(OP_QUERY.to_le_bytes());
        frame.extend([0; 4]);
        frame.extend(b"admin.$cmd\0");
        frame.extend([0; 4]);
        frame.extend((-1_i32).to_le_bytes());
        frame.extend(RawDocumentBuf::try_from(&doc! { "isMaster": 1 }).unwrap().into_bytes());
        let request = Request::decode(&frame, MAX_MESSAGE).unwrap();
        assert_eq!(request.kind, RequestKind::Query);
        assert_eq!(command(&frame), doc! { "isMaster": 1, "$db": "admin" });
    }

    #[test]
    fn what_is_compressed_is_decoded() {
        for compressor in Compressor::ALL {
            let text = "x".repeat(10_000);
            let plain = message(0, &body(&doc! { "ping": 1, "comment": &text }));
            let mut frame = vec![0; 12];
            frame.extend(OP_COMPRESSED.to_le_bytes());
            frame.extend(OP_MSG.to_le_bytes());
            frame.extend(i32::try_from(plain.len() - HEADER).unwrap().to_le_bytes());
            frame.push(compressor.id());
            compressor.compress([&plain[HEADER..], &[]], &mut frame).unwrap();
            let request = Request::decode(&frame, MAX_MESSAGE).unwrap();
            assert_eq!(request.compressor, Some(compressor));
            assert_eq!(command(&frame), doc! { "ping": 1, "comment": &text });
            // A length that differs from that of the message, and a truncated message.
            let mut wrong = frame.clone();
            wrong[20] ^= 1;
            assert!(Request::decode(&wrong, MAX_MESSAGE).is_err(), "{compressor:?}");
            assert!(Request::decode(&frame[..frame.len() - 3], MAX_MESSAGE).is_err(), "{compressor:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::decode(&bytes, MAX_MESSAGE);
        }

        #[test]
        fn no_sections_make_the_decoder_panic(flags in any::<u32>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::decode(&message(flags & 0x1_0003, &bytes), MAX_MESSAGE);
        }

        #[test]
        fn no_changed_byte_makes_the_decoder_panic(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let sections = [body(&doc! { "insert": "c" }), sequence("documents", &[doc! { "a": [1, 2] }])].concat();
            let mut frame = message(0, &sections);
            *place.get_mut(&mut frame) = byte;
            let _ = Request::decode(&frame, MAX_MESSAGE);
        }

        #[test]
        fn no_compressed_bytes_make_the_decoder_panic_or_grow(
            id in 0_u8..5,
            length in 0_i32..100_000,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut frame = vec![0; 12];
            frame.extend(OP_COMPRESSED.to_le_bytes());
            frame.extend(OP_MSG.to_le_bytes());
            frame.extend(length.to_le_bytes());
            frame.push(id);
            frame.extend(bytes);
            let _ = Request::decode(&frame, MAX_MESSAGE);
        }
    }
}
