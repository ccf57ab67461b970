//! A client that speaks the protocol by hand.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use bson::{Binary, Bson, Document, RawDocumentBuf, doc, spec::BinarySubtype};
use slate_server::TestServer;

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    last: i32,
}

impl Client {
    pub(crate) fn connect(server: &TestServer) -> Self {
        let address = server.uri().trim_start_matches("mongodb://").trim_end_matches('/');
        Self::at(address)
    }

    pub(crate) fn at(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, last: 0 }
    }

    /// Sends a command of the database `shop` unless it names another.
    pub(crate) fn run(&mut self, command: Document) -> Document {
        self.send(0, command);
        self.receive().1
    }

    /// Runs a command that must succeed.
    pub(crate) fn ok(&mut self, command: Document) -> Document {
        let shown = command.to_string();
        let reply = self.run(command);
        assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{shown}: {reply}");
        reply
    }

    /// Runs a command that must fail with a code.
    pub(crate) fn refused(&mut self, command: Document, code: i32) -> Document {
        let shown = command.to_string();
        let reply = self.run(command);
        assert_eq!(reply.get_i32("code").ok(), Some(code), "{shown}: {reply}");
        reply
    }

    pub(crate) fn send(&mut self, flags: u32, mut command: Document) -> i32 {
        if !command.contains_key("$db") {
            command.insert("$db", "shop");
        }
        self.send_raw(flags, &RawDocumentBuf::try_from(&command).unwrap())
    }

    /// Sends a command as it is and returns the reply.
    pub(crate) fn run_raw(&mut self, command: &RawDocumentBuf) -> Document {
        self.send_raw(0, command);
        self.receive().1
    }

    pub(crate) fn send_raw(&mut self, flags: u32, body: &RawDocumentBuf) -> i32 {
        self.last += 1;
        let length = i32::try_from(body.as_bytes().len() + 21).unwrap();
        let header = [length, self.last, 0, 2013].map(i32::to_le_bytes).concat();
        let message = [&*header, &flags.to_le_bytes(), &[0], body.as_bytes()].concat();
        self.stream.write_all(&message).unwrap();
        self.last
    }

    /// Sends a command of which a field is a section of its own: a sequence of documents. Returns the reply.
    pub(crate) fn run_with_sequence(
        &mut self,
        command: &RawDocumentBuf,
        field: &str,
        documents: &[RawDocumentBuf],
    ) -> Document {
        self.last += 1;
        let documents: Vec<u8> = documents.iter().flat_map(|document| document.as_bytes().iter().copied()).collect();
        let length = |length: usize| i32::try_from(length).unwrap().to_le_bytes();
        let sequence =
            [&length(4 + field.len() + 1 + documents.len())[..], field.as_bytes(), &[0], &documents].concat();
        let sections = [&[0; 5], command.as_bytes(), &[1], &sequence].concat();
        let header = [length(16 + sections.len()), self.last.to_le_bytes(), [0; 4], length(2013)].concat();
        self.stream.write_all(&[header, sections].concat()).unwrap();
        self.receive().1
    }

    /// Returns the flags and the document of the next reply.
    pub(crate) fn receive(&mut self) -> (u32, Document) {
        self.try_receive().unwrap()
    }

    pub(crate) fn try_receive(&mut self) -> io::Result<(u32, Document)> {
        let mut header = [0; 21];
        self.stream.read_exact(&mut header)?;
        let length = i32::from_le_bytes(header[..4].try_into().unwrap());
        let mut body = vec![0; usize::try_from(length).unwrap() - 21];
        self.stream.read_exact(&mut body)?;
        let flags = u32::from_le_bytes(header[16..20].try_into().unwrap());
        Ok((flags, Document::try_from(&RawDocumentBuf::from_bytes(body).unwrap()).unwrap()))
    }
}

/// An `lsid`.
pub(crate) fn session(number: u8) -> Document {
    doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![number; 16] } }
}

/// Adds the fields of a command in a transaction; the first one begins it.
pub(crate) fn within(mut command: Document, lsid: &Document, number: i64, is_first: bool) -> Document {
    command.extend(doc! { "lsid": lsid.clone(), "txnNumber": number, "autocommit": false });
    if is_first {
        command.insert("startTransaction", true);
    }
    command
}

/// Returns the labels of a failure.
pub(crate) fn labels(reply: &Document) -> Vec<&str> {
    reply.get_array("errorLabels").map(|labels| labels.iter().filter_map(Bson::as_str).collect()).unwrap_or_default()
}

/// Returns a document in which another one is nested, and so on, `levels` times. The kinds and the names of the fields are repeated.
pub(crate) fn nested(fields: &[(u8, &str)], levels: usize) -> RawDocumentBuf {
    let containers = fields.iter().cycle().take(levels);
    let around = |name: &str| 4 + 1 + name.len() + 1 + 1;
    let mut length = 5 + containers.clone().map(|(_, name)| around(name)).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    for (kind, name) in containers {
        bytes.extend_from_slice(&i32::try_from(length).unwrap().to_le_bytes());
        bytes.push(*kind);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        length -= around(name);
    }
    bytes.extend_from_slice(&i32::try_from(length).unwrap().to_le_bytes());
    bytes.extend_from_slice(&vec![0; levels + 1]);
    RawDocumentBuf::from_bytes(bytes).unwrap()
}

/// Returns the documents of a cursor's batch, and its id.
pub(crate) fn batch(reply: &Document) -> (Vec<Document>, i64) {
    let cursor = reply.get_document("cursor").unwrap();
    let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch")).unwrap();
    (batch.iter().map(|document| document.as_document().unwrap().clone()).collect(), cursor.get_i64("id").unwrap())
}
