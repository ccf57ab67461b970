use std::{ops::AddAssign, time::Duration};

use bson::{Document, doc};

use super::Stage;
use crate::document::long;

/// The counts and times of a plan node's execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measures {
    /// Rows returned to the node above.
    pub(crate) rows: u64,
    /// Keys examined: index entries, `_id`s of the filter, keys that were counted.
    pub(crate) keys: u64,
    /// Documents read.
    pub(crate) documents: u64,
    /// The bytes of the documents and of the entries' keys and values.
    pub(crate) bytes: u64,
    /// Sorted runs written to temporary files because the memory limit was reached.
    pub(crate) spills: u64,
    /// Bytes written to temporary files.
    pub(crate) spilled_bytes: u64,
    /// Time spent in the node and its inputs.
    pub(crate) time: Duration,
}

impl Measures {
    /// Returns what was read, without rows, spills and time.
    pub(crate) fn of_reads(self) -> Self {
        Self { keys: self.keys, documents: self.documents, bytes: self.bytes, ..Self::default() }
    }

    /// Returns the measures as fields of a document, with MongoDB's names where they exist.
    pub(crate) fn describe(&self) -> Document {
        doc! {
            "nReturned": long(self.rows),
            "executionTimeMicros": long(self.time.as_micros()),
            "keysExamined": long(self.keys),
            "docsExamined": long(self.documents),
            "bytesRead": long(self.bytes),
            "spills": long(self.spills),
            "spilledBytes": long(self.spilled_bytes),
        }
    }
}

/// The measures of a plan's execution, in total and by node.
#[derive(Clone, Debug)]
pub(crate) struct Analysis {
    /// Rows returned to the caller.
    pub(crate) rows: u64,
    pub(crate) time: Duration,
    /// The bytes that the store read from its files or received over a network. `None`: unknown.
    pub(crate) storage_bytes: Option<u64>,
    /// The round trips to a store on a network; `None` for a local store.
    pub(crate) round_trips: Option<u64>,
    /// The requests in these round trips.
    pub(crate) requests: Option<u64>,
    /// The nodes in the order in which they are drawn, each before its inputs.
    pub(crate) nodes: Vec<(Stage, Measures)>,
}

impl Analysis {
    /// Returns the sum over all nodes, with the rows and time of the root.
    pub(crate) fn total(&self) -> Measures {
        let mut total = Measures::default();
        self.nodes.iter().for_each(|(_, node)| total += *node);
        Measures { rows: self.rows, time: self.time, ..total }
    }
}

impl AddAssign for Measures {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.keys += other.keys;
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.spills += other.spills;
        self.spilled_bytes += other.spilled_bytes;
        self.time += other.time;
    }
}
