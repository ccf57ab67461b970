use slate_query::{pipeline::Windows, raw::Doc};

use crate::{
    Result,
    exec::{
        Meter,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    spill::{Memory, Sorter},
};

/// Documents that come partition by partition.
pub(super) enum WindowSource<'v> {
    Ordered(BoxedRows<'v>),
    /// `None` once the documents were sorted.
    Sorted(Option<BoxedRows<'v>>, Box<Sorter>),
}

impl<'v> WindowSource<'v> {
    /// Sorts the input if an expression computes the partition.
    pub(super) fn new(input: BoxedRows<'v>, windows: &Windows, memory: &Memory) -> Self {
        if windows.needs_key() {
            Self::Sorted(Some(input), Box::new(Sorter::new(memory.clone(), u64::MAX)))
        } else {
            Self::Ordered(input)
        }
    }

    pub(super) fn advance(&mut self, windows: &Windows, interrupt: &mut Interrupt, meter: &mut Meter) -> Result<bool> {
        let (input, sorter) = match self {
            Self::Ordered(input) => return input.advance(),
            Self::Sorted(input, sorter) => (input.take(), sorter),
        };
        if let Some(mut input) = input {
            let (mut key, mut copy, mut number) = (Vec::new(), Vec::new(), 0_u64);
            while input.advance()? {
                interrupt.tick()?;
                let Some(document) = input.current() else { break };
                windows.key(document, &mut key)?;
                windows.read().copy_stored(document, &mut copy);
                sorter.push(&key, &number.to_be_bytes(), &copy)?;
                number = number.saturating_add(1);
            }
            sorter.finish(interrupt)?;
            meter.spilled(sorter.spilled());
        }
        sorter.advance()
    }

    /// Ends a batch; see [`Rows::park`].
    pub(super) fn park(&mut self) {
        match self {
            Self::Ordered(input) => input.park(),
            Self::Sorted(_, sorter) => sorter.park(),
        }
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        match self {
            Self::Ordered(input) => input.current(),
            Self::Sorted(_, sorter) => sorter.payload().map(Doc::stored),
        }
    }
}
