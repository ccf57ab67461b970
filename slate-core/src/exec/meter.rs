//! What running a plan has cost, node by node.
//!
//! Nodes count in plain numbers of their own. Where somebody asked ([`Recorder`]), a node's [`Meter`] adds them up under
//! the node's number when it is dropped; where nobody did, it is a number that nobody reads. Clocks are looked at only
//! where somebody asked.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::{
    plan::{Measures, Stage},
    spill::Spilled,
};

/// Gathers what the nodes of one run count. Nodes are numbered as the plan is drawn, from the root on, each before its
/// inputs and an input before the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<(Stage, Measures)>>>);

impl Recorder {
    fn number(&self, stage: Stage) -> usize {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.push((stage, Measures::default()));
        nodes.len() - 1
    }

    fn add(&self, node: usize, measures: Measures) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sum)) = nodes.get_mut(node) {
            *sum += measures;
        }
    }

    /// What was counted, by the nodes' numbers and with their stages, once the run's nodes are dropped.
    pub(crate) fn into_measures(self) -> Vec<(Stage, Measures)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A node's own count.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) counted: Measures,
    recorder: Option<(Recorder, usize)>,
}

/// When a stretch of work began, where that matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start(Option<Instant>);

impl Meter {
    /// The count of the node that is numbered next.
    pub(super) fn new(recorder: Option<&Recorder>, stage: Stage) -> Self {
        let numbered = |recorder: &Recorder| (recorder.clone(), recorder.number(stage));
        Self { counted: Measures::default(), recorder: recorder.map(numbered) }
    }

    /// Another count of the same node.
    pub(super) fn same(&self) -> Self {
        Self { counted: Measures::default(), recorder: self.recorder.clone() }
    }

    /// Whether anybody asked.
    #[inline]
    pub(super) fn is_read(&self) -> bool {
        self.recorder.is_some()
    }

    /// Looks at the clock, where anybody asked.
    #[inline]
    pub(super) fn start(&self) -> Start {
        Start(self.recorder.as_ref().map(|_| Instant::now()))
    }

    /// Counts the time since `start`.
    #[inline]
    pub(super) fn stop(&mut self, start: Start) {
        if let Start(Some(start)) = start {
            self.counted.time += start.elapsed();
        }
    }

    /// Counts a row handed on, and the time since `start`.
    #[inline]
    pub(super) fn moved(&mut self, start: Start, more: bool) {
        self.counted.rows += u64::from(more);
        self.stop(start);
    }

    /// Counts an entry or a document looked at, where the bytes are known without another look or somebody asked.
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

    /// What the node wrote to temporary files, all told.
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
    }
}
