use slate_query::{
    pipeline::{Group, GroupStates},
    raw::Doc,
};

use crate::{
    Result,
    exec::{
        Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
};

/// One document per group over documents that come group by group. Holds one group.
pub(crate) struct SortedGroupRows<'v> {
    input: BoxedRows<'v>,
    group: Group,
    /// The current group only.
    states: GroupStates,
    /// How many equal, consecutive documents the input's current document stands for, if it belongs to the next group.
    ahead: u64,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
}

impl<'v> SortedGroupRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, group: Group, resources: &Resources) -> Self {
        Self {
            input,
            group,
            states: GroupStates::default(),
            ahead: 0,
            row: Vec::new(),
            has_row: false,
            interrupt: resources.interrupt.clone(),
        }
    }
}

impl Rows for SortedGroupRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.states.clear();
        self.has_row = false;
        loop {
            self.interrupt.tick()?;
            let times = match std::mem::take(&mut self.ahead) {
                0 => self.input.advance_run(u64::MAX)?,
                ahead => ahead,
            };
            let Some(document) = self.input.current().filter(|_| times > 0) else { break };
            let (group, states) = (&self.group, &mut self.states);
            let is_new = group.visit(document, |member| -> Result<bool> {
                if !self.has_row {
                    group.enter(states, member);
                } else if !states.has(0, member) {
                    return Ok(true);
                }
                group.add(states, 0, member, times)?;
                Ok(false)
            })?;
            if is_new {
                self.ahead = times;
                break;
            }
            self.has_row = true;
        }
        if self.has_row {
            self.group.finish(&mut self.states, 0, &mut self.row);
        }
        Ok(self.has_row)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
