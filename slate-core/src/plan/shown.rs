//! A plan as a tree of nodes, each with what is shown of it: its line in the drawn plan, its fields in explain documents, and its
//! stage in MongoDB's `explain`.
//!
//! This is the only walk over the three tiers of plans that says how nodes look. Drawing (`draw.rs`) and the shape of MongoDB's
//! `explain` (`shape.rs`) are walks over its tree. Inputs stand in the order in which they are opened, so that the nodes have the order
//! of their measures.

use bson::{Bson, Document, doc};
use slate_query::{interval::IntervalSet, pattern::Direction, raw::Doc, sort::Sort, wildcard::PATH_FIELD};

use super::{
    Combine, CountedKeys, DocumentNode, IdPlan, IndexScan, Measures, Plan, RawPlan, Stage, Values, Window,
    bounds_text::{Strings, bounds_text, drawn, drawn_paths},
    mongo_fields::{self, bson, condition, direction_name, is_simple, sort_pattern},
    pipeline::argument,
    shown_text::shown_text,
};
use crate::document::{long, number};

pub(super) struct ShownNode {
    pub(super) stage: Stage,
    /// Follows the stage's title in the drawn plan.
    pub(super) line: String,
    /// The fields of the node's document.
    pub(super) details: Document,
    pub(super) mongo: MongoStage,
    /// `None`: the plan was not executed.
    pub(super) measures: Option<Measures>,
    pub(super) inputs: Vec<ShownNode>,
}

/// What MongoDB's `explain` shows for a node.
pub(super) enum MongoStage {
    /// A stage of the plan, with these fields.
    Own(&'static str, Document),
    /// The lookup of one `_id`: the scan of an index with these fields, or one stage with the fetch above it.
    Lookup(Document),
    /// A condition of the stage below, if that reads records.
    Condition(Document),
    /// A stage of the pipeline: its name and its argument.
    Pipeline(&'static str, Bson),
    /// Nothing.
    Hidden,
}

impl ShownNode {
    fn new(stage: Stage) -> Self {
        let (line, details) = (String::new(), Document::new());
        Self { stage, line, details, mongo: MongoStage::Hidden, measures: None, inputs: Vec::new() }
    }

    fn with(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.details.insert(name, value);
        self
    }

    fn line(self, line: impl Into<String>) -> Self {
        Self { line: line.into(), ..self }
    }

    fn mongo(self, name: &'static str, fields: Document) -> Self {
        self.shown_as(MongoStage::Own(name, fields))
    }

    fn shown_as(self, mongo: MongoStage) -> Self {
        Self { mongo, ..self }
    }

    fn over(mut self, input: Self) -> Self {
        self.inputs.push(input);
        self
    }

    /// Sets the measures of the nodes, each node before its inputs.
    pub(super) fn measure<'m>(&mut self, measures: &mut impl Iterator<Item = &'m (Stage, Measures)>) {
        let own = measures.next().filter(|(stage, _)| *stage == self.stage);
        self.measures = Some(own.map(|(_, measures)| *measures).unwrap_or_default());
        self.inputs.iter_mut().for_each(|input| input.measure(measures));
    }

    /// Returns the sum of the measures of the node and of those below.
    pub(super) fn total(&self) -> Measures {
        let mut total = self.measures.unwrap_or_default();
        self.inputs.iter().for_each(|input| total += input.total());
        total
    }

    /// Returns whether the node or one below reads an index other than the one on `_id`.
    pub(super) fn reads_index(&self) -> bool {
        self.stage == Stage::IxScan || self.inputs.iter().any(Self::reads_index)
    }
}

/// Returns the nodes of a plan over the collection with this name.
pub(super) fn shown(plan: &Plan, collection: &str) -> ShownNode {
    match plan {
        Plan::Whole { input } => raw(input, collection),
        Plan::Project { input, document, .. } => {
            let (document, input) = (Doc::from(document), raw(input, collection));
            let name = if is_simple(document) { "PROJECTION_SIMPLE" } else { "PROJECTION_DEFAULT" };
            projection(Stage::Projection, name, document).over(input)
        }
        Plan::Covered { scan, window, document, .. } => {
            let covered = projection(Stage::ProjectionCovered, "PROJECTION_COVERED", Doc::from(document));
            windowed(*window, covered.over(index_scan(scan, "IXSCAN")), window_stage)
        }
        Plan::Count { input } => {
            ShownNode::new(Stage::Count).mongo("COUNT", Document::new()).over(raw(input, collection))
        }
        Plan::CountKeys { keys, window } => {
            let input = match keys {
                CountedKeys::Records { bounds } => {
                    let all = IntervalSet::all();
                    let fields = mongo_fields::id_index_scan(bounds.as_ref().unwrap_or(&all));
                    scan(collection, bounds.as_ref(), Direction::Ascending).mongo("COUNT_SCAN", fields)
                }
                CountedKeys::Entries(scan) => index_scan(scan, "COUNT_SCAN"),
                CountedKeys::Ids(plan) => ids(plan),
            };
            let count = ShownNode::new(Stage::CountScan).mongo("COUNT", Document::new());
            windowed(*window, count.over(input), window_stage)
        }
        Plan::Distinct { input, path, values } => {
            distinct(ShownNode::new(Stage::Distinct), path.as_str(), values, raw(input, collection))
        }
        Plan::DistinctKeys { scan, values } => {
            let path = scan.index.pattern.fields().last().map_or("", |(path, _)| path.as_str());
            distinct_scan(path, values, index_scan(scan, "DISTINCT_SCAN"))
        }
        Plan::DistinctEntries { scan, path, values, .. } => {
            let mut scan = index_scan(scan, "DISTINCT_SCAN").with("everyEntry", true);
            scan.line.push_str(", every entry");
            distinct_scan(path.as_str(), values, scan)
        }
        Plan::Pipeline { input, nodes } => {
            nodes.iter().fold(shown(input, collection), |input, node| document(node, input))
        }
    }
}

fn document(node: &DocumentNode, input: ShownNode) -> ShownNode {
    let mongo = |stage| {
        let (name, argument) = argument(node, stage);
        MongoStage::Pipeline(name, argument)
    };
    if let DocumentNode::Slice(window) = node {
        return windowed(*window, input, |stage, _| mongo(stage));
    }
    let text = shown_text(node);
    let shown = |stage| ShownNode::new(stage).with("argument", &text).line(&text).shown_as(mongo(stage));
    node.stages().fold(input, |input, stage| shown(stage).over(input))
}

fn raw(plan: &RawPlan, collection: &str) -> ShownNode {
    match plan {
        RawPlan::Eof { reason } => {
            let node = ShownNode::new(Stage::Eof).with("collection", collection).with("reason", *reason).line(*reason);
            node.mongo("EOF", doc! { "type": eof_type(reason) })
        }
        RawPlan::Slice { input, window } => windowed(*window, raw(input, collection), window_stage),
        RawPlan::Sort { input, sort, presorted, limit, .. } => {
            sorted(sort, *presorted, *limit).over(raw(input, collection))
        }
        RawPlan::Filter { input, filter } => {
            let text = shown_text(filter);
            let node = ShownNode::new(Stage::Filter).with("filter", &text).line(text);
            node.shown_as(MongoStage::Condition(condition(filter))).over(raw(input, collection))
        }
        RawPlan::Scan { bounds, direction } => {
            let node = scan(collection, bounds.as_ref(), *direction);
            let direction = direction_name(*direction);
            let Some(bounds) = bounds else { return node.mongo("COLLSCAN", doc! { "direction": direction }) };
            let bounds = doc! { "_id": bounds_text(bounds, Direction::Ascending, Strings::Plain) };
            let fields = doc! { "keyPattern": { "_id": 1 }, "direction": direction, "indexBounds": bounds };
            node.mongo("CLUSTERED_IXSCAN", fields)
        }
        RawPlan::Fetch { ids: plan } => {
            let node = ShownNode::new(Stage::Fetch).with("collection", collection).line(collection);
            node.mongo("FETCH", Document::new()).over(ids(plan))
        }
    }
}

fn ids(plan: &IdPlan) -> ShownNode {
    let node = ShownNode::new(plan.stage());
    match plan {
        IdPlan::Points(points) => {
            let (text, fields) = (drawn(points, Strings::Plain), mongo_fields::id_index_scan(points));
            let node = node.with("bounds", doc! { "_id": &text }).line(format!("_id {text}"));
            match points.as_point() {
                Some(_) => node.shown_as(MongoStage::Lookup(fields)),
                None => node.mongo("IXSCAN", fields),
            }
        }
        IdPlan::Index(scan) => index_scan(scan, "IXSCAN"),
        IdPlan::Merge { how, inputs } => {
            let (how, name) = match how {
                Combine::Union => ("or", "OR"),
                Combine::Intersection => ("and", "AND_SORTED"),
            };
            let merge = node.line(how).mongo(name, Document::new());
            inputs.iter().fold(merge, |merge, input| merge.over(ids(input)))
        }
    }
}

/// Adds nodes for skip and limit above their input.
fn windowed(window: Window, mut input: ShownNode, mongo: impl Fn(Stage, u64) -> MongoStage) -> ShownNode {
    let node = |stage, name, number: u64| {
        let node = ShownNode::new(stage).with(name, long(number)).line(number.to_string());
        node.shown_as(mongo(stage, number))
    };
    if window.skip > 0 {
        input = node(Stage::Skip, "skip", window.skip).over(input);
    }
    if let Some(limit) = window.limit {
        input = node(Stage::Limit, "limit", limit).over(input);
    }
    input
}

/// Returns MongoDB's stage for a skip or a limit outside of a pipeline.
fn window_stage(stage: Stage, rows: u64) -> MongoStage {
    match stage {
        Stage::Skip => MongoStage::Own("SKIP", doc! { "skipAmount": number(rows) }),
        _ => MongoStage::Own("LIMIT", doc! { "limitAmount": number(rows) }),
    }
}

fn projection(stage: Stage, name: &'static str, document: Doc<'_>) -> ShownNode {
    let text = shown_text(format_args!("{document:?}"));
    let node = ShownNode::new(stage).with("projection", &text).line(text);
    node.mongo(name, doc! { "transformBy": bson(document) })
}

fn distinct_scan(path: &str, values: &Values, scan: ShownNode) -> ShownNode {
    let node = ShownNode::new(Stage::DistinctScan);
    let node = node.mongo("PROJECTION_COVERED", doc! { "transformBy": { path: 1, "_id": 0 } });
    distinct(node, path, values, scan)
}

fn distinct(node: ShownNode, path: &str, values: &Values, input: ShownNode) -> ShownNode {
    let mut node = node.with("path", path).line(path);
    if values.direction == Direction::Descending {
        node = node.with("direction", "descending");
        node.line.push_str(" descending");
    }
    windowed(values.window, node.over(input), window_stage)
}

fn sorted(sort: &Sort, presorted: usize, limit: Option<u64>) -> ShownNode {
    let mut fields = doc! { "sortPattern": sort_pattern(sort) };
    let mut node = ShownNode::new(Stage::Sort).with("by", sort.to_string()).line(sort.to_string());
    if presorted > 0 {
        node = node.with("presorted", long(presorted));
        node.line.push_str(&format!(" within groups of the first {presorted}"));
    }
    if let Some(limit) = limit {
        node = node.with("limit", long(limit));
        node.line.push_str(&format!(", top {limit}"));
        fields.insert("limitAmount", number(limit));
    }
    fields.insert("type", "simple");
    node.mongo("SORT", fields)
}

/// Returns MongoDB's name for why a plan has no rows.
fn eof_type(reason: &str) -> &'static str {
    if reason.contains("does not exist") { "nonExistentNamespace" } else { "predicateEvalsToFalse" }
}

/// Returns a scan of the records, whose stage in MongoDB depends on what the scan is for.
fn scan(collection: &str, bounds: Option<&IntervalSet>, direction: Direction) -> ShownNode {
    let direction = direction_name(direction);
    let node = ShownNode::new(Stage::CollScan).with("collection", collection).with("direction", direction);
    let Some(bounds) = bounds else { return node.line(format!("{collection} {direction}")) };
    let bounds = drawn(bounds, Strings::Plain);
    let node = node.line(format!("{collection} {direction}: _id {bounds}"));
    node.with("bounds", doc! { "_id": bounds })
}

/// Returns a scan of an index, as the stage `name` of MongoDB.
fn index_scan(scan: &IndexScan, name: &'static str) -> ShownNode {
    let IndexScan { index, bounds, checks, direction, limit, firsts } = scan;
    let strings = Strings::of(index);
    let mut line = format!("{} {}", index.name, direction_name(*direction));
    let mut bound_fields = Document::new();
    for ((path, _), bound) in index.pattern.fields().iter().zip(bounds.fields()) {
        let text = if path.as_str() == PATH_FIELD { drawn_paths(bound) } else { drawn(bound, strings) };
        bound_fields.insert(path.as_str(), text);
    }
    let fields: Vec<String> =
        bound_fields.iter().map(|(path, bound)| format!("{path} {}", bound.as_str().unwrap_or_default())).collect();
    if !fields.is_empty() {
        line.push_str(": ");
        line.push_str(&fields.join(", "));
    }
    if bounds.are_of_keys() {
        line.push_str(" within min and max");
    }
    let mut checked = Document::new();
    for (field, held) in &checks.values {
        if let Some((path, _)) = index.pattern.fields().get(*field) {
            let bound = drawn(held, strings);
            line.push_str(&format!(", where {path} {bound}"));
            checked.insert(path.as_str(), bound);
        }
    }
    let filter = checks.filter.as_ref().map(|filter| shown_text(&filter.drawn));
    if let Some(filter) = &filter {
        line.push_str(&format!(", where {filter}"));
    }
    let mut node = ShownNode::new(scan.stage())
        .mongo(name, mongo_fields::index_scan(scan))
        .with("index", &*index.name)
        .with("direction", direction_name(*direction))
        .with("bounds", bound_fields)
        .with("multikey", index.is_multikey());
    if !checked.is_empty() {
        node = node.with("checks", checked);
    }
    if let Some(filter) = filter {
        node = node.with("filter", filter);
    }
    if let Some(limit) = limit {
        node = node.with("limit", long(*limit));
        line.push_str(&format!(", limit {limit}"));
    }
    if *firsts > 0 {
        let fields = index.pattern.fields().iter().take(*firsts).map(|(path, _)| path.as_str());
        let fields = fields.collect::<Vec<_>>().join(", ");
        line.push_str(&format!(", first of each {fields}"));
        node = node.with("firstOfEach", fields);
    }
    node.line(line)
}
