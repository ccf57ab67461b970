use std::collections::HashMap;

use ahash::RandomState;
use slate_query::{
    pipeline::{Group, GroupState},
    raw::{Doc, SmallBytes},
};
use slate_store::View;

use super::DocumentRows;
use crate::{
    Result,
    exec::{Resources, meter::Meter},
    interrupt::Interrupt,
    spill::{Memory, Sorter},
};

/// One document per group, in the order of the groups' keys.
///
/// Groups are accumulated in a hash table. Once it exceeds the memory limit no document is accumulated any more: the rest is
/// sorted by group, and each group is completed from its sorted documents when it is returned. Then one group grows at a
/// time. Documents reach their group in the order of the input either way.
pub(crate) struct GroupRows<V: View> {
    /// `None` once it was read.
    input: Option<DocumentRows<V>>,
    group: Group,
    memory: Memory,
    groups: HashMap<SmallBytes, GroupState, RandomState>,
    /// The keys of the groups in memory, the last to be returned first.
    keys: Vec<SmallBytes>,
    /// The documents that exceeded the memory.
    rest: Option<Rest>,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
    meter: Meter,
}

/// Documents sorted by group.
struct Rest {
    sorter: Sorter,
    /// Whether the sorter has a current row.
    has_row: bool,
    number: u64,
}

/// Bytes that a group takes in the hash table in addition to its state and key.
const OVERHEAD: usize = size_of::<(SmallBytes, GroupState)>() + size_of::<SmallBytes>();

impl<V: View> GroupRows<V> {
    pub(super) fn new(input: DocumentRows<V>, group: Group, resources: &Resources, meter: Meter) -> Self {
        Self {
            input: Some(input),
            group,
            memory: resources.memory.clone(),
            groups: HashMap::default(),
            keys: Vec::new(),
            rest: None,
            row: Vec::new(),
            has_row: false,
            interrupt: resources.interrupt.clone(),
            meter,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        self.has_row = self.next_group()?;
        Ok(self.has_row)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }

    fn read(&mut self, mut input: DocumentRows<V>) -> Result<()> {
        let (mut key, mut used) = (Vec::new(), 0_usize);
        while input.advance()? {
            self.interrupt.tick()?;
            let Some(document) = input.current() else { break };
            let id = self.group.id(document, &mut key)?;
            if let Some(rest) = &mut self.rest {
                rest.push(&key, document)?;
                continue;
            }
            match self.groups.get_mut(key.as_slice()) {
                Some(state) => {
                    let before = state.bytes();
                    self.group.add(state, document)?;
                    used = used.saturating_add(state.bytes()).saturating_sub(before);
                }
                None => {
                    let mut state = self.group.start(id);
                    self.group.add(&mut state, document)?;
                    used = used.saturating_add(state.bytes() + key.len() + OVERHEAD);
                    self.groups.insert(key.as_slice().into(), state);
                }
            }
            if used > self.memory.limit() {
                let sorter = Sorter::new(self.memory.clone(), u64::MAX);
                self.rest = Some(Rest { sorter, has_row: false, number: 0 });
            }
        }
        self.keys = self.groups.keys().cloned().collect();
        self.keys.sort_unstable_by(|a, b| b.as_slice().cmp(a.as_slice()));
        if let Some(rest) = &mut self.rest {
            rest.sorter.finish(&mut self.interrupt)?;
            self.meter.spilled(rest.sorter.spilled());
            rest.has_row = rest.sorter.advance()?;
        }
        Ok(())
    }

    /// Completes and writes the group with the least key.
    fn next_group(&mut self) -> Result<bool> {
        let sorted = self.rest.as_ref().and_then(Rest::key);
        let in_memory = self.keys.last().map(SmallBytes::as_slice);
        let key: SmallBytes = match (in_memory, sorted) {
            (None, None) => return Ok(false),
            (Some(key), None) | (None, Some(key)) => key.into(),
            (Some(a), Some(b)) => a.min(b).into(),
        };
        let mut state = None;
        if in_memory == Some(key.as_slice()) {
            self.keys.pop();
            state = self.groups.remove(key.as_slice());
        }
        if let Some(rest) = &mut self.rest {
            while rest.key() == Some(key.as_slice()) {
                self.interrupt.tick()?;
                let Some(document) = rest.sorter.payload().map(Doc::new) else { break };
                if state.is_none() {
                    state = Some(self.group.start(self.group.id(document, &mut Vec::new())?));
                }
                if let Some(state) = &mut state {
                    self.group.add(state, document)?;
                }
                rest.has_row = rest.sorter.advance()?;
            }
        }
        let Some(mut state) = state else { return Ok(false) };
        self.group.finish(&mut state, &mut self.row);
        Ok(true)
    }
}

impl Rest {
    fn push(&mut self, key: &[u8], document: Doc<'_>) -> Result<()> {
        self.sorter.push(key, &self.number.to_be_bytes(), document.bytes())?;
        self.number = self.number.saturating_add(1);
        Ok(())
    }

    /// The group of the current row.
    fn key(&self) -> Option<&[u8]> {
        if self.has_row { self.sorter.current().map(|row| row.sort_key()) } else { None }
    }
}
