use std::sync::Arc;

use slate_query::{
    Code,
    pipeline::Kept,
    raw::{Doc, Kind, Value, Writer},
    work,
};
use slate_store::View;

use super::{above, group::GroupRows};
use crate::{
    Error, Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    plan::DocumentNode,
    spill::{Spool, SpoolRows, Spooled},
};

/// Returns one document with an array per pipeline: the results of several pipelines over the same documents.
///
/// A pipeline that begins with a `$group` receives each document while the input is read. For the other pipelines the
/// documents are held with only the fields that these pipelines need, in a temporary file beyond the memory limit.
/// These pipelines read the held documents one after the other.
pub(crate) struct FacetRows<'v, V> {
    /// `None` once all of it was read.
    input: Option<BoxedRows<'v>>,
    facets: Vec<(Box<str>, Vec<DocumentNode>)>,
    kept: Kept,
    view: V,
    row: Option<Vec<u8>>,
    resources: Resources,
    meter: Meter,
}

/// How a pipeline of the facet gets the documents: as a `$group` that receives them while the input is read, or by
/// replaying them after that.
enum First<'v> {
    Group(Box<GroupRows<'v>>),
    /// Reads the documents that were held in memory or a temporary file.
    Replay,
}

/// Maximum size of the resulting document, in bytes: MongoDB's limit. It bounds the memory of the arrays.
const MAX_BYTES: usize = 100 << 20;

impl<'v, V: View + 'v> FacetRows<'v, V> {
    pub(super) fn new(
        input: BoxedRows<'v>,
        facets: Vec<(Box<str>, Vec<DocumentNode>)>,
        kept: Kept,
        view: &V,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        // Explain does not show the nodes of the pipelines, so they are not measured.
        let resources = Resources { recorder: None, ..resources.clone() };
        Self { input: Some(input), facets, kept, view: view.clone(), row: None, resources, meter }
    }

    fn read(&mut self, input: BoxedRows<'v>) -> Result<Vec<u8>> {
        let mut interrupt = self.resources.interrupt.clone();
        let mut facets = std::mem::take(&mut self.facets);
        let mut firsts: Vec<_> = facets.iter_mut().map(|(_, nodes)| self.first(nodes)).collect();
        let held = self.feed(input, &mut firsts)?;
        let (mut writer, mut size) = (Writer::new(), 0_usize);
        for ((name, nodes), first) in facets.into_iter().zip(firsts) {
            let source: BoxedRows<'v> = match first {
                First::Group(mut group) => {
                    group.end()?;
                    group
                }
                First::Replay => Box::new(ReplayRows::new(&held, &interrupt)),
            };
            let resources = self.resources.below(nodes.len())?;
            let mut rows = above(source, nodes, &self.view, &resources);
            writer.open_array(name.as_bytes());
            let mut place = 0_u64;
            while rows.advance()? {
                interrupt.tick()?;
                let Some(document) = rows.current() else { break };
                size = size.saturating_add(document.bytes().len());
                if size > MAX_BYTES {
                    let message = format!("the document of a $facet exceeds {MAX_BYTES} bytes");
                    return Err(Error::invalid(Code(4_031_700), message).at("$facet"));
                }
                writer.append(place.to_string().as_bytes(), Value::new(Kind::Document, document.bytes()));
                place = place.saturating_add(1);
            }
            writer.close();
        }
        Ok(writer.finish())
    }

    /// Removes the `$group` that a pipeline begins with. Without one, the pipeline replays the held documents after the input was read.
    fn first(&self, nodes: &mut Vec<DocumentNode>) -> First<'v> {
        let fed = nodes.first().is_some_and(DocumentNode::is_fed).then(|| nodes.remove(0));
        let Some(DocumentNode::Group { group, result, .. }) = fed else { return First::Replay };
        First::Group(Box::new(GroupRows::fed(group, false, result, &self.resources, Meter::default())))
    }

    /// Reads the input: adds its documents to each group, and returns them for the pipelines that replay them.
    fn feed(&mut self, mut input: BoxedRows<'v>, firsts: &mut [First<'v>]) -> Result<Arc<Spooled>> {
        let mut interrupt = self.resources.interrupt.clone();
        let (mut held, mut copy) = (Spool::new(self.resources.memory.clone()), Vec::new());
        let is_replayed = firsts.iter().any(|first| matches!(first, First::Replay));
        loop {
            let times = input.advance_run(u64::MAX)?;
            interrupt.tick()?;
            let Some(document) = input.current().filter(|_| times > 0) else { break };
            for first in &mut *firsts {
                if let First::Group(group) = first {
                    group.add(document, times)?;
                }
            }
            if is_replayed {
                self.kept.copy_stored(document, &mut copy);
                (0..times).try_for_each(|_| {
                    work::take(1)?;
                    held.push(&copy)
                })?;
            }
        }
        self.meter.spilled(held.spilled());
        Ok(Arc::new(held.finish()?))
    }
}

impl<'v, V: View + 'v> Rows for FacetRows<'v, V> {
    fn advance(&mut self) -> Result<bool> {
        self.row = match self.input.take() {
            Some(input) => Some(self.read(input)?),
            None => None,
        };
        Ok(self.row.is_some())
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.row.as_deref().map(Doc::new)
    }
}

/// Reads held documents from the first.
pub(crate) struct ReplayRows {
    rows: SpoolRows,
    has_row: bool,
    interrupt: Interrupt,
}

impl ReplayRows {
    fn new(held: &Arc<Spooled>, interrupt: &Interrupt) -> Self {
        Self { rows: SpoolRows::of(held), has_row: false, interrupt: interrupt.clone() }
    }
}

impl Rows for ReplayRows {
    fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        self.has_row = self.rows.advance()?;
        Ok(self.has_row)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.rows.current().filter(|_| self.has_row).map(Doc::stored)
    }
}
