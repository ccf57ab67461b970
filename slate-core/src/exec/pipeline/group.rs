use std::collections::HashMap;

use ahash::RandomState;
use slate_query::{
    pipeline::{Group, GroupStates},
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
    /// Whether the only group is complete after the first value that is not null.
    ends_early: bool,
    memory: Memory,
    states: GroupStates,
    /// The keys and numbers of the groups in memory, the last to be returned first.
    groups: Vec<(SmallBytes, usize)>,
    /// A group of which no document is in memory.
    overflow: GroupStates,
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

/// A group in the hash table.
struct Entry {
    number: usize,
    /// The memory that it uses.
    bytes: usize,
}

/// Bytes that a group takes in the hash table, and in the list that is made of it, in addition to its key.
const OVERHEAD: usize = size_of::<(SmallBytes, Entry)>() + size_of::<(SmallBytes, usize)>();

impl<V: View> GroupRows<V> {
    pub(super) fn new(
        input: DocumentRows<V>,
        group: Group,
        ends_early: bool,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        Self {
            input: Some(input),
            group,
            ends_early,
            memory: resources.memory.clone(),
            states: GroupStates::default(),
            groups: Vec::new(),
            overflow: GroupStates::default(),
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
        let (group, states) = (&self.group, &mut self.states);
        let (mut key, mut used) = (Vec::new(), 0_usize);
        let mut groups: HashMap<SmallBytes, Entry, RandomState> = HashMap::default();
        loop {
            let times = input.advance_run()?;
            self.interrupt.tick()?;
            let Some(document) = input.current().filter(|_| times > 0) else { break };
            group.visit(document, &mut key, |member| {
                if let Some(rest) = &mut self.rest {
                    return (0..times).try_for_each(|_| rest.push(member.key(), document));
                }
                if let Some(entry) = groups.get_mut(member.key()) {
                    let bytes = group.add(states, entry.number, member, times)?;
                    used = (used + bytes).saturating_sub(std::mem::replace(&mut entry.bytes, bytes));
                    return Ok(());
                }
                let number = group.start(states, member);
                let bytes = group.add(states, number, member, times)?;
                used += bytes + member.key().len() + OVERHEAD;
                groups.insert(member.key().into(), Entry { number, bytes });
                Ok(())
            })?;
            if self.ends_early && group.has_end(states) {
                break;
            }
            if used > self.memory.limit() && self.rest.is_none() {
                let sorter = Sorter::new(self.memory.clone(), u64::MAX);
                self.rest = Some(Rest { sorter, has_row: false, number: 0 });
            }
        }
        self.groups = groups.into_iter().map(|(key, entry)| (key, entry.number)).collect();
        self.groups.sort_unstable_by(|(a, _), (b, _)| b.as_slice().cmp(a.as_slice()));
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
        let in_memory = self.groups.last().map(|(key, _)| key.as_slice());
        let is_in_memory = match (in_memory, sorted) {
            (None, None) => return Ok(false),
            (Some(in_memory), Some(sorted)) => in_memory <= sorted,
            (in_memory, _) => in_memory.is_some(),
        };
        let (mut current, states) = if is_in_memory {
            (self.groups.pop(), &mut self.states)
        } else {
            self.overflow.clear();
            (None, &mut self.overflow)
        };
        let mut buffer = Vec::new();
        while let Some(rest) = &mut self.rest
            && let Some(key) = rest.key()
            && current.as_ref().is_none_or(|(current, _)| current.as_slice() == key)
        {
            self.interrupt.tick()?;
            let Some(document) = rest.sorter.payload().map(Doc::new) else { break };
            self.group.visit(document, &mut buffer, |member| {
                let (_, number) =
                    current.get_or_insert_with(|| (member.key().into(), self.group.start(states, member)));
                self.group.add(states, *number, member, 1)
            })?;
            rest.has_row = rest.sorter.advance()?;
        }
        let Some((_, number)) = current else { return Ok(false) };
        self.group.finish(states, number, &mut self.row);
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
