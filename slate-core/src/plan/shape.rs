//! A plan in the shape of MongoDB's `explain`, for the tools that draw it.
//!
//! Nodes that MongoDB has no stage for are parts of others there: a filter belongs to the stage that reads the records, distinct values
//! to the scan that finds them. Stages are visited in the order in which nodes are drawn, which is that of their measures.

use bson::{Bson, Document, doc};
use slate_query::{
    filter::Filter,
    interval::IntervalSet,
    pattern::Direction,
    raw::{Doc, Kind, Value, Writer},
    sort::Sort,
};

use super::{
    Analysis, Combine, CountedKeys, DocumentNode, IdPlan, IndexScan, Measures, Plan, RawPlan, Stage, Values, Window,
    bounds_text::{Strings, bounds_text},
};
use crate::{catalog::IndexInfo, explain::PlanShape};

/// Returns the shape of a plan, with the measures of its execution if there are any.
pub(super) fn shape(plan: &Plan, analysis: Option<&Analysis>) -> PlanShape {
    let mut shaper = Shaper { measures: analysis.map(|analysis| analysis.nodes.iter()), read: Measures::default() };
    let (plan, stages) = match plan {
        Plan::Pipeline { input, nodes } => {
            let mut stages: Vec<Document> = nodes.iter().rev().flat_map(|node| shaper.document(node)).collect();
            stages.reverse();
            (&**input, stages)
        }
        plan => (plan, Vec::new()),
    };
    shaper.read = Measures::default();
    let plan = shaper.plan(plan);
    let Measures { keys, documents, .. } = shaper.read;
    PlanShape { rows: plan.rows(), keys, documents, plan: plan.finish(), stages }
}

/// Builds stages, and takes their measures in the order in which nodes are drawn.
struct Shaper<'m> {
    /// `None`: the plan was not executed.
    measures: Option<std::slice::Iter<'m, (Stage, Measures)>>,
    /// The sum of the measures that were taken.
    read: Measures,
}

/// A stage with the measures of all nodes that it stands for.
struct ShapedStage {
    name: &'static str,
    fields: Document,
    measures: Option<Measures>,
    inputs: Vec<ShapedStage>,
}

impl ShapedStage {
    fn new(name: &'static str, measures: Option<Measures>) -> Self {
        Self { name, fields: Document::new(), measures, inputs: Vec::new() }
    }

    fn with(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.fields.insert(name, value);
        self
    }

    fn over(mut self, input: Self) -> Self {
        self.inputs.push(input);
        self
    }

    /// Returns the stage with the rows and the time of a node above it, and what both have read.
    fn within(mut self, above: Option<Measures>) -> Self {
        if let (Some(own), Some(above)) = (self.measures, above) {
            let mut sum = own;
            sum += above;
            self.measures = Some(Measures { rows: above.rows, time: above.time, ..sum });
        }
        self
    }

    fn rows(&self) -> u64 {
        self.measures.map_or(0, |measures| measures.rows)
    }

    fn finish(self) -> Document {
        let mut stage = doc! { "stage": self.name };
        if let Some(measures) = self.measures {
            stage.insert("nReturned", number(measures.rows));
            stage.insert("executionTimeMillisEstimate", number(measures.time.as_millis()));
        }
        stage.extend(self.fields);
        if let Some(measures) = self.measures {
            let Measures { keys, documents, spills, spilled_bytes, .. } = measures;
            if keys > 0 || matches!(self.name, "COUNT_SCAN" | "DISTINCT_SCAN" | "EXPRESS_IXSCAN" | "IXSCAN") {
                stage.insert("keysExamined", number(keys));
            }
            if documents > 0 || matches!(self.name, "CLUSTERED_IXSCAN" | "COLLSCAN" | "EXPRESS_IXSCAN" | "FETCH") {
                stage.insert("docsExamined", number(documents));
            }
            if self.name == "SORT" {
                stage.insert("usedDisk", spills > 0);
                stage.insert("spills", number(spills));
                stage.insert("spilledBytes", number(spilled_bytes));
            }
        }
        let mut inputs: Vec<Document> = self.inputs.into_iter().map(Self::finish).collect();
        match (inputs.pop(), inputs.is_empty()) {
            (None, _) => {}
            (Some(only), true) => drop(stage.insert("inputStage", only)),
            (Some(last), false) => {
                inputs.push(last);
                stage.insert("inputStages", inputs);
            }
        }
        stage
    }
}

impl Shaper<'_> {
    /// Returns the measures of the next node that is drawn.
    fn take(&mut self, stage: Stage) -> Option<Measures> {
        let measured = self.measures.as_mut()?.next();
        let measures = measured.filter(|(measured, _)| *measured == stage).map(|(_, measures)| *measures);
        let measures = measures.unwrap_or_default();
        self.read += measures;
        Some(measures)
    }

    fn plan(&mut self, plan: &Plan) -> ShapedStage {
        match plan {
            Plan::Whole { input } => self.raw(input),
            Plan::Project { input, document, .. } => {
                let name = if is_simple(Doc::from(document)) { "PROJECTION_SIMPLE" } else { "PROJECTION_DEFAULT" };
                let measures = self.take(Stage::Projection);
                ShapedStage::new(name, measures).with("transformBy", bson(Doc::from(document))).over(self.raw(input))
            }
            Plan::Covered { scan, window, document, .. } => self.windowed(*window, |shaper| {
                let measures = shaper.take(Stage::ProjectionCovered);
                let covered = ShapedStage::new("PROJECTION_COVERED", measures);
                covered.with("transformBy", bson(Doc::from(document))).over(shaper.index(scan, "IXSCAN"))
            }),
            Plan::Count { input } => {
                let measures = self.take(Stage::Count);
                counted(measures, self.raw(input))
            }
            Plan::CountKeys { keys, window } => self.windowed(*window, |shaper| {
                let measures = shaper.take(Stage::CountScan);
                let input = match keys {
                    CountedKeys::Records { bounds } => {
                        let measures = shaper.take(Stage::CollScan);
                        let all = IntervalSet::all();
                        let bounds = bounds.as_ref().unwrap_or(&all);
                        let scan = ShapedStage::new("COUNT_SCAN", measures);
                        id_index(scan, Direction::Ascending, bounds)
                    }
                    CountedKeys::Entries(scan) => shaper.index(scan, "COUNT_SCAN"),
                    CountedKeys::Ids(ids) => shaper.ids(ids),
                };
                counted(measures, input)
            }),
            Plan::Distinct { input, values, .. } => self.windowed(values.window, |shaper| {
                shaper.take(Stage::Distinct);
                shaper.raw(input)
            }),
            Plan::DistinctKeys { scan, values } => {
                let path = scan.index.pattern.fields().last().map_or("", |(path, _)| path.as_str());
                self.distinct(scan, path, values)
            }
            Plan::DistinctEntries { scan, path, values, .. } => self.distinct(scan, path.as_str(), values),
            // Only the top of a plan is a pipeline.
            Plan::Pipeline { input, .. } => self.plan(input),
        }
    }

    fn distinct(&mut self, scan: &IndexScan, path: &str, values: &Values) -> ShapedStage {
        self.windowed(values.window, |shaper| {
            let above = shaper.take(Stage::DistinctScan);
            let scan = shaper.index(scan, "DISTINCT_SCAN").within(above);
            let transform = doc! { path: 1, "_id": 0 };
            ShapedStage::new("PROJECTION_COVERED", above).with("transformBy", transform).over(scan)
        })
    }

    fn raw(&mut self, plan: &RawPlan) -> ShapedStage {
        match plan {
            RawPlan::Eof { reason } => ShapedStage::new("EOF", self.take(Stage::Eof)).with("type", eof_type(reason)),
            RawPlan::Slice { input, window } => self.windowed(*window, |shaper| shaper.raw(input)),
            RawPlan::Sort { input, sort, limit, .. } => {
                let mut stage = sorted(ShapedStage::new("SORT", self.take(Stage::Sort)), sort);
                if let Some(limit) = limit {
                    stage = stage.with("limitAmount", number(*limit));
                }
                stage.with("type", "simple").over(self.raw(input))
            }
            RawPlan::Filter { input, filter } => {
                let above = self.take(Stage::Filter);
                let condition = condition(filter);
                match &**input {
                    RawPlan::Scan { .. } | RawPlan::Eof { .. } => {
                        let scan = self.raw(input).within(above);
                        filtered(scan, condition)
                    }
                    RawPlan::Fetch { ids } => {
                        let fetch = ShapedStage::new("FETCH", self.take(Stage::Fetch)).within(above);
                        fetch.with("filter", condition).over(self.ids(ids))
                    }
                    input => ShapedStage::new("FILTER", above).with("filter", condition).over(self.raw(input)),
                }
            }
            RawPlan::Scan { bounds, direction } => {
                let measures = self.take(Stage::CollScan);
                let direction = direction_name(*direction);
                match bounds {
                    None => ShapedStage::new("COLLSCAN", measures).with("direction", direction),
                    Some(bounds) => {
                        let texts = bounds_text(bounds, Direction::Ascending, Strings::Plain);
                        let scan = ShapedStage::new("CLUSTERED_IXSCAN", measures).with("keyPattern", doc! { "_id": 1 });
                        scan.with("direction", direction).with("indexBounds", doc! { "_id": texts })
                    }
                }
            }
            RawPlan::Fetch { ids } => match ids {
                IdPlan::Points(points) if points.as_point().is_some() => {
                    let above = self.take(Stage::Fetch);
                    let express = ShapedStage::new("EXPRESS_IXSCAN", self.take(ids.stage())).within(above);
                    express.with("keyPattern", "{ _id: 1 }").with("indexName", "_id_")
                }
                ids => ShapedStage::new("FETCH", self.take(Stage::Fetch)).over(self.ids(ids)),
            },
        }
    }

    fn ids(&mut self, ids: &IdPlan) -> ShapedStage {
        match ids {
            IdPlan::Points(points) => {
                let scan = ShapedStage::new("IXSCAN", self.take(ids.stage()));
                id_index(scan, Direction::Ascending, points)
            }
            IdPlan::Index(scan) => self.index(scan, "IXSCAN"),
            IdPlan::Merge { how, inputs } => {
                let name = match how {
                    Combine::Union => "OR",
                    Combine::Intersection => "AND_SORTED",
                };
                let merge = ShapedStage::new(name, self.take(ids.stage()));
                inputs.iter().fold(merge, |merge, input| merge.over(self.ids(input)))
            }
        }
    }

    fn index(&mut self, scan: &IndexScan, name: &'static str) -> ShapedStage {
        let IndexScan { index, bounds, checks, direction, .. } = scan;
        let mut shown = Document::new();
        let strings = if index.collation.is_some() { Strings::SortKeys } else { Strings::Plain };
        let all = IntervalSet::all();
        for (field, (path, declared)) in index.pattern.fields().iter().enumerate() {
            let checked = checks.values.iter().find(|(checked, _)| *checked == field).map(|(_, values)| values);
            let set = bounds.fields().get(field).or(checked).unwrap_or(&all);
            let way = if declared == direction { Direction::Ascending } else { Direction::Descending };
            shown.insert(path.as_str(), bounds_text(set, way, strings));
        }
        let mut stage = ShapedStage::new(name, self.take(Stage::IxScan));
        if let Some(filter) = &checks.filter {
            stage = stage.with("filter", condition(&filter.drawn));
        }
        let mut stage = stage
            .with("keyPattern", bson(Doc::from(&index.keys)))
            .with("indexName", &*index.name)
            .with("isMultiKey", index.is_multikey())
            .with("multiKeyPaths", multikey_paths(index))
            .with("isUnique", index.unique)
            .with("isSparse", index.sparse)
            .with("isPartial", index.partial.is_some())
            .with("indexVersion", 2)
            .with("direction", direction_name(*direction));
        if bounds.are_of_keys() {
            stage = stage.with("withinMinAndMax", true);
        }
        stage.with("indexBounds", shown)
    }

    /// Adds stages for limit and skip above the stage of `input`.
    fn windowed(&mut self, window: Window, input: impl FnOnce(&mut Self) -> ShapedStage) -> ShapedStage {
        let limit = window.limit.map(|limit| (limit, self.take(Stage::Limit)));
        let skip = (window.skip > 0).then(|| self.take(Stage::Skip));
        let mut stage = input(self);
        // As in MongoDB, a sort that holds no more rows than are returned is its own limit.
        let is_limited = stage.name == "SORT" && stage.fields.contains_key("limitAmount");
        if let Some(measures) = skip {
            stage = ShapedStage::new("SKIP", measures).with("skipAmount", number(window.skip)).over(stage);
        }
        if let Some((limit, measures)) = limit.filter(|_| !is_limited) {
            stage = ShapedStage::new("LIMIT", measures).with("limitAmount", number(limit)).over(stage);
        }
        stage
    }

    /// Returns the stages of a pipeline that a node stands for, last first.
    fn document(&mut self, node: &DocumentNode) -> Vec<Document> {
        let stages: Vec<Stage> = node.stages().collect();
        let mut shaped = Vec::new();
        for stage in stages {
            let measures = self.take(stage);
            let (name, argument) = argument(node, stage);
            let mut document = doc! { name: argument };
            if let Some(measures) = measures {
                document.insert("nReturned", number(measures.rows));
                document.insert("executionTimeMillisEstimate", number(measures.time.as_millis()));
                if measures.keys > 0 || measures.documents > 0 {
                    document.insert("totalKeysExamined", number(measures.keys));
                    document.insert("totalDocsExamined", number(measures.documents));
                }
                if measures.spills > 0 {
                    document.insert("usedDisk", true);
                    document.insert("spills", number(measures.spills));
                }
            }
            shaped.push(document);
        }
        shaped
    }
}

/// Returns the stage that counts the rows of its input, and returns none.
fn counted(measures: Option<Measures>, input: ShapedStage) -> ShapedStage {
    let count = ShapedStage::new("COUNT", measures.map(|measures| Measures { rows: 0, ..measures }));
    let count = if measures.is_some() { count.with("nCounted", number(input.rows())) } else { count };
    count.over(input)
}

/// Returns MongoDB's name for why a plan has no rows.
fn eof_type(reason: &str) -> &'static str {
    if reason.contains("does not exist") { "nonExistentNamespace" } else { "predicateEvalsToFalse" }
}

/// Returns the name and the argument of a pipeline's stage.
fn argument(node: &DocumentNode, stage: Stage) -> (&'static str, Bson) {
    match node {
        DocumentNode::Match(filter) => ("$match", condition(filter).into()),
        DocumentNode::Project { document, .. } => {
            let name = if stage == Stage::Projection { "$project" } else { "$addFields" };
            (name, bson(Doc::from(document)).into())
        }
        DocumentNode::Sort { sort, limit } => {
            let mut argument = doc! { "sortKey": sort_document(sort) };
            if let Some(limit) = limit {
                argument.insert("limit", number(*limit));
            }
            ("$sort", argument.into())
        }
        DocumentNode::Slice(window) if stage == Stage::Skip => ("$skip", number(window.skip)),
        DocumentNode::Slice(window) => ("$limit", number(window.limit.unwrap_or_default())),
        DocumentNode::Sample(size) => ("$sample", doc! { "size": number(*size) }.into()),
        DocumentNode::Count(name) | DocumentNode::NameCount(name) => ("$count", (&**name).into()),
        DocumentNode::Facet { facets, .. } => {
            let mut shown = Document::new();
            for (name, nodes) in facets {
                // Stages that read no field are fed by a count.
                let fed = matches!(nodes.as_slice(), [DocumentNode::Count(_), DocumentNode::Repeat, ..]);
                let stages = nodes.iter().skip(if fed { 2 } else { 0 }).flat_map(|node| {
                    let mut stages: Vec<Document> = node
                        .stages()
                        .map(|stage| {
                            let (name, argument) = argument(node, stage);
                            doc! { name: argument }
                        })
                        .collect();
                    stages.reverse();
                    stages
                });
                shown.insert(&**name, stages.collect::<Vec<_>>());
            }
            ("$facet", shown.into())
        }
        DocumentNode::BucketAuto(stage) => ("$bucketAuto", value(stage.argument())),
        DocumentNode::CollStats(stage) => ("$collStats", value(stage.argument())),
        DocumentNode::Densify(stage) => ("$densify", value(stage.argument())),
        DocumentNode::Documents(stage) => ("$documents", value(stage.argument())),
        DocumentNode::GraphLookup { graph, .. } => ("$graphLookup", value(graph.argument())),
        DocumentNode::Group { group, .. } => ("$group", value(group.argument())),
        DocumentNode::IndexStats => ("$indexStats", Document::new().into()),
        DocumentNode::Lookup { lookup, .. } => ("$lookup", value(lookup.argument())),
        DocumentNode::Redact(stage) => ("$redact", value(stage.argument())),
        DocumentNode::ReplaceRoot(stage) => ("$replaceRoot", doc! { "newRoot": value(stage.argument()) }.into()),
        DocumentNode::SetWindowFields(stage) => ("$setWindowFields", value(stage.argument())),
        DocumentNode::UnionWith { union, .. } => ("$unionWith", value(union.argument())),
        DocumentNode::Unwind(stage) => ("$unwind", value(stage.argument().as_value())),
        // It has no stage.
        DocumentNode::Repeat => ("$match", Document::new().into()),
    }
}

/// Adds what explain says of a scan of the index on `_id`.
fn id_index(stage: ShapedStage, direction: Direction, bounds: &IntervalSet) -> ShapedStage {
    stage
        .with("keyPattern", doc! { "_id": 1 })
        .with("indexName", "_id_")
        .with("isMultiKey", false)
        .with("multiKeyPaths", doc! { "_id": [] })
        .with("isUnique", true)
        .with("isSparse", false)
        .with("isPartial", false)
        .with("indexVersion", 2)
        .with("direction", direction_name(direction))
        .with("indexBounds", doc! { "_id": bounds_text(bounds, direction, Strings::Plain) })
}

/// Returns, for each field of an index, the paths on which some document has an array.
fn multikey_paths(index: &IndexInfo) -> Document {
    let mut paths = Document::new();
    for (field, (path, _)) in index.pattern.fields().iter().enumerate() {
        let bits = index.multikey.get(field).copied().unwrap_or_default();
        let names: Vec<&str> = path.as_str().split('.').collect();
        let arrays = (1..=names.len()).filter(|length| bits >> (length - 1) & 1 == 1);
        let arrays: Vec<String> = arrays.filter_map(|length| Some(names.get(..length)?.join("."))).collect();
        paths.insert(path.as_str(), arrays);
    }
    paths
}

fn sorted(stage: ShapedStage, sort: &Sort) -> ShapedStage {
    stage.with("sortPattern", sort_document(sort))
}

fn sort_document(sort: &Sort) -> Document {
    let sign = |direction: Direction| if direction == Direction::Ascending { 1 } else { -1 };
    sort.fields().iter().map(|(path, direction)| (path.as_str().to_owned(), Bson::Int32(sign(*direction)))).collect()
}

fn filtered(mut stage: ShapedStage, filter: Document) -> ShapedStage {
    // MongoDB shows the filter before the direction.
    let fields = std::mem::take(&mut stage.fields);
    let mut stage = stage.with("filter", filter);
    stage.fields.extend(fields);
    stage
}

/// Returns a filter with an operator for each condition, as MongoDB shows it.
fn condition(filter: &Filter) -> Document {
    with_operators(bson(Doc::new(&filter.to_document())))
}

/// Writes `{ a: 1 }` as `{ a: { $eq: 1 } }`.
pub(crate) fn with_operators(filter: Document) -> Document {
    let with_operator = |(name, value): (String, Bson)| {
        let value = match value {
            Bson::Array(branches) if name.starts_with('$') => Bson::Array(
                branches
                    .into_iter()
                    .map(|branch| match branch {
                        Bson::Document(branch) => with_operators(branch).into(),
                        other => other,
                    })
                    .collect(),
            ),
            value if name.starts_with('$') => value,
            Bson::Document(operators) if operators.keys().next().is_some_and(|first| first.starts_with('$')) => {
                operators.into()
            }
            Bson::RegularExpression(regex) => {
                let mut operators = doc! { "$regex": regex.pattern.as_str() };
                if !regex.options.as_str().is_empty() {
                    operators.insert("$options", regex.options.as_str());
                }
                operators.into()
            }
            value => doc! { "$eq": value }.into(),
        };
        (name, value)
    };
    filter.into_iter().map(with_operator).collect()
}

/// Whether a projection only names fields of the document, without paths and expressions.
fn is_simple(projection: Doc<'_>) -> bool {
    let is_flag = |value: Value<'_>| {
        matches!(value.kind(), Kind::Boolean | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal128)
    };
    projection.elements().all(|field| is_flag(field.value) && !field.name.contains(&b'.'))
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "forward",
        Direction::Descending => "backward",
    }
}

/// Returns a document of the plan as BSON; an empty one if it is damaged.
fn bson(document: Doc<'_>) -> Document {
    let raw = bson::RawDocument::from_bytes(document.bytes()).ok();
    raw.and_then(|raw| Document::try_from(raw).ok()).unwrap_or_default()
}

fn value(value: Value<'_>) -> Bson {
    let mut writer = Writer::new();
    writer.append(b"v", value);
    bson(Doc::new(&writer.finish())).remove("v").unwrap_or(Bson::Null)
}

fn number(number: impl TryInto<i64>) -> Bson {
    let number = number.try_into().unwrap_or(i64::MAX);
    i32::try_from(number).map_or(Bson::Int64(number), Bson::Int32)
}
