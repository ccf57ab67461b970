//! Execution statistics, node by node.
//!
//! Each node counts in its own [`Meter`], which adds its counts to the [`Recorder`] when it is dropped. Without a
//! recorder the clock is not read, and only the keys and documents are counted, for the database's metrics.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{
    metrics::{Examined, Spilled, Tally},
    plan::{Measures, Stage},
};

/// Collects what each node of one execution has counted: keys and documents read, rows, time. Exists only for explain with
/// execution statistics. Nodes are numbered as they are drawn, each before its inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    nodes: Arc<Mutex<Vec<(Stage, Measures)>>>,
    /// For a plan that is not drawn, such as that of a `$lookup`, the node that executes it. What the plan's nodes read is
    /// counted as read by this node.
    within: Option<usize>,
}

impl Recorder {
    /// Returns whether the nodes of the plan are drawn, so that rows and time are measured for each.
    pub(super) fn draws_nodes(&self) -> bool {
        self.within.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Stage, Measures)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, stage: Stage) -> usize {
        self.within.unwrap_or_else(|| {
            let mut nodes = self.lock();
            nodes.push((stage, Measures::default()));
            nodes.len() - 1
        })
    }

    fn add(&self, node: usize, measures: Measures) {
        if let Some((_, sum)) = self.lock().get_mut(node) {
            *sum += if self.draws_nodes() { measures } else { measures.of_reads() };
        }
    }

    /// Returns what was counted, by node number. All nodes must have been dropped, because a node adds its counts then.
    pub(crate) fn into_measures(self) -> Vec<(Stage, Measures)> {
        std::mem::take(&mut self.lock())
    }
}

/// Counts what one node reads, spills and returns.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) counted: Measures,
    recorder: Option<(Recorder, usize)>,
    tally: Option<Arc<Tally>>,
}

/// Start of the measured work, if time is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start(Option<Instant>);

impl Meter {
    /// Creates a node's meter, which reports to `recorder`.
    pub(super) fn new(recorder: &Recorder, stage: Stage) -> Self {
        let recorder = Some((recorder.clone(), recorder.number(stage)));
        Self { counted: Measures::default(), recorder, tally: None }
    }

    /// Creates the meter of a node that is not measured; its keys and documents are added to `tally`.
    pub(super) fn tallied(tally: &Arc<Tally>) -> Self {
        Self { counted: Measures::default(), recorder: None, tally: Some(Arc::clone(tally)) }
    }

    /// Returns a recorder for a plan that this node executes.
    pub(super) fn within(&self) -> Option<Recorder> {
        self.recorder.as_ref().map(|(recorder, node)| Recorder { within: Some(*node), ..recorder.clone() })
    }

    /// Creates another meter for the same node.
    pub(super) fn same(&self) -> Self {
        Self { counted: Measures::default(), recorder: self.recorder.clone(), tally: self.tally.clone() }
    }

    /// Returns whether an explain reads the counts.
    #[inline]
    pub(super) fn is_read(&self) -> bool {
        self.recorder.is_some()
    }

    #[inline]
    pub(super) fn start(&self) -> Start {
        Start(self.recorder.as_ref().filter(|(recorder, _)| recorder.draws_nodes()).map(|_| Instant::now()))
    }

    /// Adds the time since `start`.
    #[inline]
    pub(super) fn stop(&mut self, start: Start) {
        if let Start(Some(start)) = start {
            self.counted.time += start.elapsed();
        }
    }

    /// Counts rows, and adds the time since `start`.
    #[inline]
    pub(super) fn moved_by(&mut self, start: Start, rows: u64) {
        self.counted.rows += rows;
        self.stop(start);
    }

    /// Counts an entry, and its bytes if the caller has them.
    #[inline]
    pub(super) fn key_read(&mut self, entry: Option<(&[u8], &[u8])>) {
        self.counted.keys += 1;
        if let Some((key, value)) = entry {
            self.counted.bytes += length(key) + length(value);
        }
    }

    #[inline]
    pub(super) fn document_read(&mut self, document: &[u8]) {
        self.counted.documents += 1;
        self.counted.bytes += length(document);
    }

    /// Counts a document that is passed on. With a recorder, documents are counted when they are loaded instead.
    #[inline]
    pub(super) fn document_used(&mut self) {
        if self.recorder.is_none() {
            self.counted.documents += 1;
        }
    }

    /// Sets the number of runs and of bytes that the node has written to temporary files.
    pub(super) fn spilled(&mut self, spilled: Spilled) {
        self.counted.spills = spilled.runs;
        self.counted.spilled_bytes = spilled.bytes;
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some((recorder, node)) = &self.recorder {
            recorder.add(*node, self.counted);
        }
        if let Some(tally) = &self.tally {
            tally.add(Examined { keys: self.counted.keys, documents: self.counted.documents });
        }
    }
}
