use slate_query::{pipeline::Join, raw::Doc, work};

use super::join_table::encode;
use crate::{
    Result,
    exec::{
        Packed,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    spill::sort_counted,
};

/// The documents of another collection that are joined with one document of very many values. Reads the whole collection.
pub(super) struct WantedRows<'v> {
    input: BoxedRows<'v>,
    join: Join,
    /// The keys of the document's values.
    wanted: Packed,
    /// The numbers of the wanted keys, each key once, in the order of the keys.
    order: Vec<usize>,
    key: Vec<u8>,
    interrupt: Interrupt,
}

impl<'v> WantedRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, join: &Join, document: Doc<'_>, interrupt: Interrupt) -> Result<Self> {
        work::take_copied(document.bytes().len())?;
        let (mut wanted, mut key) = (Packed::default(), Vec::new());
        join.visit_local(document, &mut |value| {
            encode(value, &mut key);
            wanted.push(&key);
        });
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        sort_counted(&mut order, &mut Vec::new(), |a, b| wanted.get(*a).cmp(&wanted.get(*b)))?;
        order.dedup_by(|a, b| wanted.get(*a) == wanted.get(*b));
        Ok(Self { input, join: join.clone(), wanted, order, key, interrupt })
    }
}

impl Rows for WantedRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        while self.input.advance()? {
            self.interrupt.tick()?;
            let Some(document) = self.input.current() else { break };
            work::take_copied(document.bytes().len())?;
            let (mut is_wanted, wanted) = (false, &self.wanted);
            self.join.visit_foreign_keys(document, &mut self.key, &mut |key| {
                is_wanted |= self.order.binary_search_by(|number| wanted.get(*number).cmp(&Some(key))).is_ok();
            });
            if is_wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.input.current()
    }
}
