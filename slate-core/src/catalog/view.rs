use std::{collections::BTreeSet, sync::Arc};

use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use slate_query::{
    Code,
    collation::Collation,
    expression::Bindings,
    pattern::Direction,
    pipeline::{self, Stage},
    raw::{Doc, Kind, Value, Writer},
    sink::Sink,
};

use super::{
    Catalog, damaged,
    index::{read_collation, write_collation},
};
use crate::{Error, Result};

/// Maximum number of views that read each other, including the collection that the last of them reads: MongoDB's limit.
const MAX_DEPTH: usize = 20;

/// Maximum size of the pipelines of views that read each other, in bytes: MongoDB's limit.
const MAX_BYTES: usize = 16 << 20;

/// A view: the result of a pipeline over a collection or another view.
#[derive(Clone, Debug)]
pub(crate) struct ViewInfo {
    pub(crate) name: Arc<str>,
    /// The collection or view whose documents the pipeline reads.
    pub(crate) on: Box<str>,
    pub(crate) pipeline: Vec<RawDocumentBuf>,
    /// How all reads of the view compare strings. `None`: by their bytes.
    pub(crate) collation: Option<Collation>,
    /// The other collections and views that the stages read.
    pub(crate) stages_read: BTreeSet<Box<str>>,
}

/// A view, resolved to the collection that it reads in the end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedView {
    /// This view, and the views through which it reads the collection.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) collection: Box<str>,
    /// The stages of all these views, in the order of execution.
    pub(crate) pipeline: Vec<RawDocumentBuf>,
    pub(crate) collation: Option<Collation>,
    /// The other collections and views that the stages read.
    reads: BTreeSet<Box<str>>,
}

impl ViewInfo {
    /// Parses the definition of a view.
    ///
    /// # Errors
    /// The errors of the stages; `OptionNotSupportedOnView` (167) for `$out` and `$merge`; `InvalidNamespace` (73) if
    /// `$documents` is first.
    pub(crate) fn parse(
        name: &str,
        on: &str,
        pipeline: Vec<RawDocumentBuf>,
        collation: Option<Collation>,
    ) -> Result<Self> {
        let bindings = Bindings::new(0).with_collation(collation.clone()).lenient();
        for stage in pipeline.iter().map(Doc::from) {
            if Sink::parse(stage, &bindings)?.is_some() {
                let message = "$out and $merge cannot be used in a view, because they write";
                return Err(Error::invalid(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message).at("pipeline"));
            }
        }
        let stages = pipeline.iter().map(|stage| Value::new(Kind::Document, stage.as_bytes()));
        let stages = pipeline::parse(stages, &bindings)?;
        if matches!(stages.first(), Some(Stage::Documents(_))) {
            let message = "$documents is only valid in an aggregation of no collection";
            return Err(Error::invalid(Code::INVALID_NAMESPACE, message).at("$documents"));
        }
        let stages_read = stages.iter().flat_map(Stage::collections).map(Box::from).collect();
        Ok(Self { name: name.into(), on: on.into(), pipeline, collation, stages_read })
    }

    /// Returns the names of the collections and views that the view reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.on).chain(self.stages_read.iter().map(|name| &**name))
    }

    /// Returns the size of its stages in bytes.
    fn size(&self) -> usize {
        self.pipeline.iter().map(|stage| stage.as_bytes().len()).sum()
    }

    /// Returns whether this view and `other` have the same definition, apart from their names.
    pub(crate) fn has_definition_of(&self, other: &Self) -> bool {
        (&self.on, &self.pipeline, &self.collation) == (&other.on, &other.pipeline, &other.collation)
    }

    /// Reads a definition. `None` for the definition of a collection.
    pub(super) fn read(name: &str, definition: Doc<'_>) -> Result<Option<Self>> {
        let Some(on) = definition.get("viewOn").and_then(Value::as_str) else { return Ok(None) };
        let what = format!("view {name}");
        let stages = definition.get("pipeline").and_then(Value::as_array).ok_or_else(|| damaged(&what))?;
        let stage = |stage: Value<'_>| {
            let stage = stage.as_document().ok_or_else(|| damaged(&what))?;
            RawDocumentBuf::from_bytes(stage.bytes().to_vec()).map_err(Error::conversion)
        };
        let pipeline = stages.values().map(stage).collect::<Result<_>>()?;
        Self::parse(name, on, pipeline, read_collation(definition, &what)?).map(Some)
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.append_string(b"viewOn", self.on.as_bytes());
        writer.open_array(b"pipeline");
        for (place, stage) in self.pipeline.iter().enumerate() {
            writer.append(place.to_string().as_bytes(), Value::new(Kind::Document, stage.as_bytes()));
        }
        writer.close();
        write_collation(&mut writer, self.collation.as_ref());
        writer.finish()
    }
}

impl ResolvedView {
    /// Returns a view of documents that are not stored, in their order or from the last to the first.
    pub(crate) fn of_documents(name: &str, documents: &[RawDocumentBuf], order: Direction) -> Self {
        let documents: RawArrayBuf = match order {
            Direction::Ascending => documents.iter().cloned().collect(),
            Direction::Descending => documents.iter().rev().cloned().collect(),
        };
        // `$literal`, because their fields are not expressions.
        let stage = rawdoc! { "$documents": { "$literal": documents } };
        Self {
            names: vec![name.into()],
            collection: name.into(),
            pipeline: vec![stage],
            collation: None,
            reads: BTreeSet::new(),
        }
    }
}

impl Catalog {
    /// Resolves the view to a collection and one pipeline.
    ///
    /// # Errors
    /// `ViewDepthLimitExceeded` (165) if too many views read each other.
    pub(crate) fn resolved<'c>(&'c self, mut view: &'c ViewInfo) -> Result<ResolvedView> {
        let mut resolved = ResolvedView {
            names: Vec::new(),
            collection: view.on.clone(),
            pipeline: Vec::new(),
            collation: view.collation.clone(),
            reads: BTreeSet::new(),
        };
        loop {
            if resolved.names.len() + 1 == MAX_DEPTH {
                return Err(too_deep());
            }
            resolved.names.push(Arc::clone(&view.name));
            resolved.collection.clone_from(&view.on);
            resolved.pipeline.splice(0..0, view.pipeline.iter().cloned());
            resolved.reads.extend(view.stages_read.iter().cloned());
            match self.view(&view.on) {
                Some(next) => view = next,
                None => return Ok(resolved),
            }
        }
    }

    /// Returns the views among the names, and those that they read in their stages, each once.
    ///
    /// # Errors
    /// Fails as [`resolved`](Self::resolved) does.
    pub(crate) fn resolved_views(&self, names: impl Iterator<Item = Box<str>>) -> Result<Vec<Arc<ResolvedView>>> {
        let mut found: Vec<Arc<ResolvedView>> = Vec::new();
        let mut names: Vec<Box<str>> = names.collect();
        while let Some(name) = names.pop() {
            if found.iter().any(|view| view.name() == &*name) {
                continue;
            }
            if let Some(view) = self.view(&name) {
                let view = self.resolved(view)?;
                names.extend(view.reads.iter().cloned());
                found.push(Arc::new(view));
            }
        }
        found.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(found)
    }

    /// Checks the views after `changed` was added or changed.
    ///
    /// # Errors
    /// `GraphContainsCycle` (5) if a view reads itself; `ViewDepthLimitExceeded` (165); `ViewPipelineMaxSizeExceeded` (195);
    /// `OptionNotSupportedOnView` (167) if a view reads one with another collation.
    pub(crate) fn check_views(&self, changed: &ViewInfo) -> Result<()> {
        self.check_view(changed)?;
        let mut readers = BTreeSet::new();
        let mut names = vec![&changed.name];
        while let Some(name) = names.pop() {
            names.extend(self.readers.get(&**name).into_iter().flatten().filter(|reader| readers.insert(*reader)));
        }
        readers.into_iter().filter_map(|name| self.view(name)).try_for_each(|view| self.check_view(view))
    }

    fn check_view(&self, view: &ViewInfo) -> Result<()> {
        let mut bytes = 0;
        let mut level = vec![view];
        // Level by level: what the view reads, what that reads, and so on.
        for _ in 0..MAX_DEPTH {
            bytes += level.iter().map(|view| view.size()).max().unwrap_or_default();
            let mut next: Vec<&ViewInfo> = Vec::new();
            for reader in level {
                for name in reader.reads() {
                    if *name == *view.name {
                        let message = format!("the view {name} would read itself, through {}", reader.name);
                        return Err(Error::invalid(Code::GRAPH_CONTAINS_CYCLE, message));
                    }
                    let Some(read) = self.view(name) else { continue };
                    if read.collation != reader.collation {
                        let message =
                            format!("the view {} has another collation than {name}, which it reads", reader.name);
                        return Err(Error::invalid(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message).at("collation"));
                    }
                    if !next.iter().any(|other| other.name == read.name) {
                        next.push(read);
                    }
                }
            }
            if bytes > MAX_BYTES {
                let message = format!("the pipelines of views that read each other exceed {MAX_BYTES} bytes");
                return Err(Error::invalid(Code::VIEW_PIPELINE_MAX_SIZE_EXCEEDED, message));
            }
            if next.is_empty() {
                return Ok(());
            }
            level = next;
        }
        Err(too_deep())
    }
}

impl ResolvedView {
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", |name| name)
    }

    /// Returns the other collections and views that the stages read.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &str> {
        self.reads.iter().map(|name| &**name)
    }
}

/// Returns the error of a call that only collections support.
pub(crate) fn not_on_view(name: &str) -> Error {
    let message = format!("{name} is a view, not a collection");
    Error::invalid(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message)
}

fn too_deep() -> Error {
    let message = format!("views read each other; the maximum depth is {MAX_DEPTH}");
    Error::invalid(Code::VIEW_DEPTH_LIMIT_EXCEEDED, message)
}
