use slate_query::{
    pipeline::{Group, GroupStates, Kept},
    raw::Doc,
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
/// Groups are accumulated in a hash table until it exceeds its share of the memory. The remaining documents are sorted
/// by group, and each group is completed from its sorted documents when it is returned, so that only one group grows at
/// a time. In both cases a group receives its documents in the order of the input.
pub(crate) struct GroupRows<V: View> {
    /// `None` once it was read.
    input: Option<DocumentRows<V>>,
    group: Group,
    /// Whether there is one group, which is complete after the first value that is not null.
    ends_early: bool,
    memory: Memory,
    states: GroupStates,
    /// The groups in memory in the order of their keys: their documents, or their numbers if more documents may follow.
    order: Sorted,
    /// The current group, if all its documents exceeded the memory.
    overflow: GroupStates,
    /// The documents that exceeded the memory.
    rest: Option<Rest>,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
    meter: Meter,
}

/// Rows in the order of the groups' keys.
struct Sorted {
    sorter: Sorter,
    /// Whether the sorter has a current row.
    has_row: bool,
}

/// Documents sorted by group.
struct Rest {
    sorted: Sorted,
    number: u64,
    /// The fields that the group reads.
    kept: Kept,
    copy: Vec<u8>,
}

impl<V: View> GroupRows<V> {
    pub(super) fn new(
        input: DocumentRows<V>,
        group: Group,
        ends_early: bool,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        // One share for the groups, one for what is sorted.
        let memory = resources.memory.shared_by(2);
        Self {
            input: Some(input),
            group,
            ends_early,
            states: GroupStates::default(),
            order: Sorted::new(&memory),
            overflow: GroupStates::default(),
            rest: None,
            memory,
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
        self.has_row = if self.rest.is_none() { self.order.sorter.advance()? } else { self.next_group()? };
        Ok(self.has_row)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        let row = if self.rest.is_none() { self.order.sorter.payload() } else { Some(self.row.as_slice()) };
        row.filter(|_| self.has_row).map(Doc::new)
    }

    fn read(&mut self, mut input: DocumentRows<V>) -> Result<()> {
        let (group, states, limit) = (&self.group, &mut self.states, self.memory.limit());
        let mut key = Vec::new();
        loop {
            let times = input.advance_run()?;
            self.interrupt.tick()?;
            let Some(document) = input.current().filter(|_| times > 0) else { break };
            group.visit(document, |member| match &mut self.rest {
                None => {
                    let number = group.enter(states, member);
                    Ok(group.add(states, number, member, times)?)
                }
                Some(rest) => {
                    member.key(&mut key);
                    rest.push(&key, document, times)
                }
            })?;
            if self.ends_early && group.has_end(states) {
                break;
            }
            if states.memory() > limit && self.rest.is_none() {
                self.rest = Some(Rest::new(group, &self.memory));
            }
        }
        drop(input);
        // Reads the groups in their order in memory.
        for number in 0..self.states.len() {
            self.interrupt.tick()?;
            self.group.key(&self.states, number, &mut key);
            if self.rest.is_none() {
                self.group.finish(&mut self.states, number, &mut self.row);
                self.order.sorter.push(&key, &[], &self.row)?;
            } else {
                self.order.sorter.push(&key, &[], &number.to_le_bytes())?;
            }
        }
        self.order.sorter.finish(&mut self.interrupt)?;
        self.meter.spilled(self.order.sorter.spilled());
        if let Some(rest) = &mut self.rest {
            self.order.advance()?;
            rest.sorted.sorter.finish(&mut self.interrupt)?;
            self.meter.spilled(rest.sorted.sorter.spilled());
            rest.sorted.advance()?;
        } else {
            self.states = GroupStates::default();
        }
        Ok(())
    }

    /// Completes and writes the group with the least key.
    fn next_group(&mut self) -> Result<bool> {
        let Some(rest) = &mut self.rest else { return Ok(false) };
        let (in_memory, in_rest) = (self.order.key(), rest.sorted.key());
        let is_in_memory = match (in_memory, in_rest) {
            (None, None) => return Ok(false),
            (Some(in_memory), Some(in_rest)) => in_memory <= in_rest,
            (in_memory, None) => in_memory.is_some(),
            (None, Some(_)) => false,
        };
        let key = if is_in_memory { in_memory } else { in_rest }.unwrap_or_default().to_vec();
        let (states, number) = match self.order.number().filter(|_| is_in_memory) {
            Some(number) => {
                self.order.advance()?;
                (&mut self.states, number)
            }
            None => {
                self.overflow.clear();
                (&mut self.overflow, 0)
            }
        };
        while rest.sorted.key() == Some(&key) {
            self.interrupt.tick()?;
            let Some(document) = rest.sorted.sorter.payload().map(Doc::stored) else { break };
            self.group.visit(document, |member| {
                if states.is_empty() {
                    self.group.enter(states, member);
                }
                self.group.add(states, number, member, 1)
            })?;
            rest.sorted.advance()?;
        }
        self.group.finish(states, number, &mut self.row);
        Ok(true)
    }
}

impl Sorted {
    fn new(memory: &Memory) -> Self {
        Self { sorter: Sorter::new(memory.clone(), u64::MAX), has_row: false }
    }

    fn advance(&mut self) -> Result<()> {
        self.has_row = self.sorter.advance()?;
        Ok(())
    }

    /// The key of the current row.
    fn key(&self) -> Option<&[u8]> {
        if self.has_row { self.sorter.current().map(|row| row.sort_key()) } else { None }
    }

    /// The group number in the current row.
    fn number(&self) -> Option<usize> {
        let number = self.sorter.payload().filter(|_| self.has_row)?;
        number.try_into().ok().map(usize::from_le_bytes)
    }
}

impl Rest {
    fn new(group: &Group, memory: &Memory) -> Self {
        Self { sorted: Sorted::new(memory), number: 0, kept: group.kept(), copy: Vec::new() }
    }

    fn push(&mut self, key: &[u8], document: Doc<'_>, times: u64) -> Result<()> {
        self.kept.copy_stored(document, &mut self.copy);
        for _ in 0..times {
            self.sorted.sorter.push(key, &self.number.to_be_bytes(), &self.copy)?;
            self.number = self.number.saturating_add(1);
        }
        Ok(())
    }
}
