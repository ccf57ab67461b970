use slate_query::{
    held,
    pipeline::{Group, GroupStates, Kept},
    raw::Doc,
    work,
};

use crate::{
    Error, Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    plan::GroupResult,
    spill::{Memory, Sorter},
};

/// One document per group, in the order of the groups' keys if the next node depends on this order.
///
/// Groups are accumulated in a hash table until it exceeds its share of the memory. The remaining documents are sorted
/// by group, and each group is completed from its sorted documents when it is returned, so that only one group grows at
/// a time. In both cases a group receives its documents in the order of the input.
pub(crate) struct GroupRows<'v> {
    /// `None` once all of it was read.
    input: Option<BoxedRows<'v>>,
    group: Group,
    /// Whether there is one group, which is complete after the first value that is not null.
    ends_early: bool,
    result: GroupResult,
    /// How many groups in memory were returned unsorted.
    returned: usize,
    memory: Memory,
    states: GroupStates,
    /// The groups in memory in the order of their keys. A row contains the group's document, or the group's number if
    /// more documents may follow.
    order: Sorted,
    /// The current group, if it is in `rest` and not in `states`.
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
    key: Vec<u8>,
    copy: Vec<u8>,
}

impl<'v> GroupRows<'v> {
    pub(super) fn new(
        input: BoxedRows<'v>,
        group: Group,
        ends_early: bool,
        result: GroupResult,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        let mut rows = Self::fed(group, ends_early, result, resources, meter);
        rows.input = Some(input);
        rows
    }

    /// Creates a node without an input: the caller [adds](Self::add) documents and then [ends](Self::end) the input.
    pub(super) fn fed(
        group: Group,
        ends_early: bool,
        result: GroupResult,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        // One share is for the groups, the other for the sorted rows.
        let memory = resources.memory.shared_by(2);
        Self {
            input: None,
            group,
            ends_early,
            result,
            returned: 0,
            states: memory.take_groups(),
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

    /// Writes the result of the next group in memory. Returns `false` after the last.
    fn next_unsorted(&mut self) -> bool {
        if self.returned == self.states.len() {
            return false;
        }
        self.group.finish(&mut self.states, self.returned, &mut self.row);
        self.returned += 1;
        true
    }

    fn read(&mut self, mut input: BoxedRows<'v>) -> Result<()> {
        loop {
            let times = input.advance_run(u64::MAX)?;
            self.interrupt.tick()?;
            let Some(document) = input.current().filter(|_| times > 0) else { break };
            self.add(document, times)?;
            if self.ends_early && self.group.has_end(&mut self.states) {
                break;
            }
        }
        drop(input);
        self.end()
    }

    /// Adds a document of the input `times` times.
    #[inline]
    pub(super) fn add(&mut self, document: Doc<'_>, times: u64) -> Result<()> {
        let Self { group, states, rest, .. } = self;
        if let Some(rest) = rest {
            return rest.add(group, document, times);
        }
        group.visit(document, |member| {
            let number = group.enter(states, member);
            group.add(states, number, member, times)
        })?;
        self.limit_memory();
        Ok(())
    }

    #[inline]
    fn limit_memory(&mut self) {
        if self.states.memory() > self.memory.limit() {
            self.rest = Some(Rest::new(&self.group, &self.memory));
        }
    }

    /// Ends the input: sorts the groups by their keys, unless all are in memory and may be returned unsorted.
    pub(super) fn end(&mut self) -> Result<()> {
        if self.rest.is_none() && self.result == GroupResult::Unsorted {
            return Ok(());
        }
        let mut key = Vec::new();
        // Visits the groups in the order in which they lie in memory.
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
            self.memory.return_groups(std::mem::take(&mut self.states));
        }
        Ok(())
    }

    /// Adds the remaining documents of the group with the least key, and writes its result. Returns `false` after the
    /// last.
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
        let before = states.memory();
        while rest.sorted.key() == Some(&key) {
            self.interrupt.tick()?;
            let Some(document) = rest.sorted.sorter.payload().map(Doc::stored) else { break };
            self.group.visit(document, |member| {
                if states.is_empty() {
                    self.group.enter(states, member);
                }
                self.group.add(states, number, member, 1)
            })?;
            held::check_group(states.memory().saturating_sub(before)).map_err(Error::from)?;
            rest.sorted.advance()?;
        }
        self.group.finish(states, number, &mut self.row);
        Ok(true)
    }
}

impl Rows for GroupRows<'_> {
    fn park(&mut self) {
        self.order.sorter.park();
        if let Some(rest) = &mut self.rest {
            rest.sorted.sorter.park();
        }
    }

    fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        self.has_row = match (&self.rest, self.result) {
            (Some(_), _) => self.next_group()?,
            (None, GroupResult::Sorted) => self.order.sorter.advance()?,
            (None, GroupResult::Unsorted) => self.next_unsorted(),
        };
        Ok(self.has_row)
    }

    fn current(&self) -> Option<Doc<'_>> {
        let row = match (&self.rest, self.result) {
            (None, GroupResult::Sorted) => self.order.sorter.payload(),
            (Some(_), _) | (None, GroupResult::Unsorted) => Some(self.row.as_slice()),
        };
        row.filter(|_| self.has_row).map(Doc::new)
    }
}

impl Drop for GroupRows<'_> {
    fn drop(&mut self) {
        self.memory.return_groups(std::mem::take(&mut self.states));
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

    /// Returns the key of the current row.
    fn key(&self) -> Option<&[u8]> {
        if self.has_row { self.sorter.current().map(|row| row.sort_key()) } else { None }
    }

    /// Returns the group number in the current row.
    fn number(&self) -> Option<usize> {
        let number = self.sorter.payload().filter(|_| self.has_row)?;
        number.try_into().ok().map(usize::from_le_bytes)
    }
}

impl Rest {
    fn new(group: &Group, memory: &Memory) -> Self {
        let (key, copy) = (Vec::new(), Vec::new());
        Self { sorted: Sorted::new(memory), number: 0, kept: group.kept(), key, copy }
    }

    #[inline(never)]
    fn add(&mut self, group: &Group, document: Doc<'_>, times: u64) -> Result<()> {
        group.visit(document, |member| {
            member.key(&mut self.key);
            Ok::<_, Error>(())
        })?;
        self.kept.copy_stored(document, &mut self.copy);
        self.push(times)
    }

    fn push(&mut self, times: u64) -> Result<()> {
        for _ in 0..times {
            work::take(1)?;
            self.sorted.sorter.push(&self.key, &self.number.to_be_bytes(), &self.copy)?;
            self.number = self.number.saturating_add(1);
        }
        Ok(())
    }
}
