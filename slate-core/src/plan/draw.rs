//! Formats plans as trees for people and as documents for programs.

use bson::{Bson, Document, doc};
use slate_query::{
    collation,
    interval::{Interval, IntervalSet, Place, Side, bracket_interval},
    key::{self, Decoded, TypeReader},
    order::Bracket,
    pattern::Direction,
    raw::Doc,
    sort::Sort,
    wildcard::PATH_FIELD,
};

use super::{
    Analysis, Combine, CountedKeys, DocumentNode, IdPlan, IndexScan, Measures, Plan, RawPlan, Stage, Values, Window,
    table,
};

/// A node in both forms: the fields of its document, and its line.
struct DrawnNode {
    stage: Stage,
    details: Document,
    line: String,
    inputs: Vec<DrawnNode>,
    measures: Option<Measures>,
}

impl DrawnNode {
    fn new(stage: Stage) -> Self {
        Self { stage, details: Document::new(), line: String::new(), inputs: Vec::new(), measures: None }
    }

    fn with(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.details.insert(name, value);
        self
    }

    fn line(mut self, line: impl Into<String>) -> Self {
        self.line = line.into();
        self
    }

    fn over(mut self, input: Self) -> Self {
        self.inputs.push(input);
        self
    }

    /// Sets the measures of the nodes, each node before its inputs.
    fn measure<'m>(&mut self, measures: &mut impl Iterator<Item = &'m (Stage, Measures)>) {
        self.measures = measures.next().filter(|(stage, _)| *stage == self.stage).map(|(_, measures)| *measures);
        self.inputs.iter_mut().for_each(|input| input.measure(measures));
    }

    /// Appends the lines of the tree, each with the measures of its node.
    fn lines(&self, first: &str, others: &str, lines: &mut Vec<(String, Measures)>) {
        let space = if self.line.is_empty() { "" } else { " " };
        lines.push((format!("{first}{}{space}{}", self.stage.title(), self.line), self.measures.unwrap_or_default()));
        let last = self.inputs.len().saturating_sub(1);
        for (at, input) in self.inputs.iter().enumerate() {
            let (branch, trunk) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            input.lines(&format!("{others}{branch}"), &format!("{others}{trunk}"), lines);
        }
    }

    fn describe(&self) -> Document {
        let mut document = doc! { "stage": self.stage.name() };
        document.extend(self.details.clone());
        if let Some(measures) = self.measures {
            document.extend(measures.describe());
        }
        let mut inputs: Vec<Document> = self.inputs.iter().map(Self::describe).collect();
        match (inputs.pop(), inputs.is_empty()) {
            (None, _) => {}
            (Some(only), true) => drop(document.insert("input", only)),
            (Some(last), false) => {
                inputs.push(last);
                document.insert("inputs", inputs);
            }
        }
        document
    }
}

/// Converts a plan to a tree of nodes.
pub(crate) struct Drawing {
    root: DrawnNode,
    rules: Vec<&'static str>,
    is_measured: bool,
    storage_bytes: Option<u64>,
    round_trips: Option<u64>,
}

impl Drawing {
    pub(crate) fn new(plan: &Plan, rules: Vec<&'static str>, collection: &str) -> Self {
        Self { root: node(plan, collection), rules, is_measured: false, storage_bytes: None, round_trips: None }
    }

    /// Adds the measures of the nodes.
    pub(crate) fn measured(mut self, analysis: &Analysis) -> Self {
        self.root.measure(&mut analysis.nodes.iter());
        let Analysis { storage_bytes, round_trips, .. } = *analysis;
        Self { is_measured: true, storage_bytes, round_trips, ..self }
    }

    /// Formats the plan as a tree, root first, next to a table of measures; then the bytes
    /// that the store read from its files, and the rules that changed the plan.
    pub(crate) fn draw(&self) -> String {
        let mut lines = Vec::new();
        self.root.lines("", "", &mut lines);
        let mut drawn = if self.is_measured {
            table::draw(&lines)
        } else {
            lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n")
        };
        if let Some(bytes) = self.storage_bytes.filter(|bytes| *bytes > 0) {
            drawn.push_str(&format!("\nread from files: {}", table::size(bytes)));
        }
        if let Some(round_trips) = self.round_trips {
            drawn.push_str(&format!("\nround trips: {round_trips}"));
        }
        if !self.rules.is_empty() {
            drawn.push_str(&format!("\nrules: {}", self.rules.join(", ")));
        }
        drawn
    }

    /// Formats the plan as a document.
    pub(crate) fn describe(&self) -> Document {
        let mut document = self.root.describe();
        document.insert("rules", self.rules.clone());
        document
    }
}

fn node(plan: &Plan, collection: &str) -> DrawnNode {
    match plan {
        Plan::Whole { input } => raw(input, collection),
        Plan::Project { input, document, .. } => {
            let text = format!("{:?}", Doc::from(document));
            DrawnNode::new(Stage::Projection).with("projection", &text).line(text).over(raw(input, collection))
        }
        Plan::Covered { scan, window, document, .. } => {
            let text = format!("{:?}", Doc::from(document));
            let covered = DrawnNode::new(Stage::ProjectionCovered).with("projection", &text).line(text);
            windowed(*window, covered.over(index_node(scan)))
        }
        Plan::Count { input } => DrawnNode::new(Stage::Count).over(raw(input, collection)),
        Plan::CountKeys { keys, window } => {
            let input = match keys {
                CountedKeys::Records { bounds } => scan(collection, bounds.as_ref(), Direction::Ascending),
                CountedKeys::Entries(scan) => index_node(scan),
                CountedKeys::Ids(ids) => ids_node(ids),
            };
            windowed(*window, DrawnNode::new(Stage::CountScan).over(input))
        }
        Plan::Distinct { input, path, values } => {
            distinct(Stage::Distinct, path.as_str(), values, raw(input, collection))
        }
        Plan::DistinctKeys { scan, values } => {
            let path = scan.index.pattern.fields().last().map_or("", |(path, _)| path.as_str());
            distinct(Stage::DistinctScan, path, values, index_node(scan))
        }
        Plan::DistinctEntries { scan, path, values, .. } => {
            let mut node = index_node(scan);
            node.line.push_str(", every entry");
            distinct(Stage::DistinctScan, path.as_str(), values, node.with("everyEntry", true))
        }
        Plan::Pipeline { input, nodes } => {
            nodes.iter().fold(node(input, collection), |input, node| document(node, input))
        }
    }
}

fn document(node: &DocumentNode, input: DrawnNode) -> DrawnNode {
    if let DocumentNode::Slice(window) = node {
        return windowed(*window, input);
    }
    let text = node.to_string();
    node.stages().fold(input, |input, stage| DrawnNode::new(stage).with("argument", &text).line(&text).over(input))
}

fn raw(plan: &RawPlan, collection: &str) -> DrawnNode {
    match plan {
        RawPlan::Eof { reason } => {
            DrawnNode::new(Stage::Eof).with("collection", collection).with("reason", *reason).line(*reason)
        }
        RawPlan::Slice { input, window } => windowed(*window, raw(input, collection)),
        RawPlan::Sort { input, sort, presorted, limit, .. } => {
            sort_node(sort, *presorted, *limit).over(raw(input, collection))
        }
        RawPlan::Filter { input, filter } => {
            let text = filter.to_string();
            DrawnNode::new(Stage::Filter).with("filter", &text).line(text).over(raw(input, collection))
        }
        RawPlan::Scan { bounds, direction } => scan(collection, bounds.as_ref(), *direction),
        RawPlan::Fetch { ids } => {
            DrawnNode::new(Stage::Fetch).with("collection", collection).line(collection).over(ids_node(ids))
        }
    }
}

/// Adds nodes for skip and limit above their input.
fn windowed(window: Window, mut input: DrawnNode) -> DrawnNode {
    if window.skip > 0 {
        input = DrawnNode::new(Stage::Skip).with("skip", number(window.skip)).line(window.skip.to_string()).over(input);
    }
    if let Some(limit) = window.limit {
        input = DrawnNode::new(Stage::Limit).with("limit", number(limit)).line(limit.to_string()).over(input);
    }
    input
}

fn distinct(stage: Stage, path: &str, values: &Values, input: DrawnNode) -> DrawnNode {
    let mut node = DrawnNode::new(stage).with("path", path).line(path);
    if values.direction == Direction::Descending {
        node = node.with("direction", "descending");
        node.line.push_str(" descending");
    }
    windowed(values.window, node.over(input))
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn sort_node(sort: &Sort, presorted: usize, limit: Option<u64>) -> DrawnNode {
    let fields = sort.fields().iter().map(|(path, direction)| format!("{path}: {}", sign(*direction)));
    let mut line = format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "));
    let mut node = DrawnNode::new(Stage::Sort).with("by", line.clone());
    if presorted > 0 {
        node = node.with("presorted", i64::try_from(presorted).unwrap_or(i64::MAX));
        line.push_str(&format!(" within groups of the first {presorted}"));
    }
    if let Some(limit) = limit {
        node = node.with("limit", number(limit));
        line.push_str(&format!(", top {limit}"));
    }
    node.line(line)
}

fn scan(collection: &str, bounds: Option<&IntervalSet>, direction: Direction) -> DrawnNode {
    let mut line = format!("{collection} {}", direction_name(direction));
    let mut node =
        DrawnNode::new(Stage::CollScan).with("collection", collection).with("direction", direction_name(direction));
    if let Some(bounds) = bounds {
        let bounds = set(bounds, Strings::Plain);
        line.push_str(&format!(": _id {bounds}"));
        node = node.with("bounds", doc! { "_id": bounds });
    }
    node.line(line)
}

fn ids_node(ids: &IdPlan) -> DrawnNode {
    match ids {
        IdPlan::Points(points) => {
            let points = set(points, Strings::Plain);
            DrawnNode::new(ids.stage()).with("bounds", doc! { "_id": &points }).line(format!("_id {points}"))
        }
        IdPlan::Index(scan) => index_node(scan),
        IdPlan::Merge { how, inputs } => {
            let how = match how {
                Combine::Union => "or",
                Combine::Intersection => "and",
            };
            inputs.iter().fold(DrawnNode::new(ids.stage()).line(how), |merge, input| merge.over(ids_node(input)))
        }
    }
}

fn index_node(scan: &IndexScan) -> DrawnNode {
    let IndexScan { index, bounds, checks, direction, limit, firsts } = scan;
    let strings = if index.collation.is_some() { Strings::SortKeys } else { Strings::Plain };
    let mut line = format!("{} {}", index.name, direction_name(*direction));
    let mut bound_fields = Document::new();
    for ((path, _), bound) in index.pattern.fields().iter().zip(bounds.fields()) {
        let drawn = if path.as_str() == PATH_FIELD { paths(bound) } else { set(bound, strings) };
        bound_fields.insert(path.as_str(), drawn);
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
            let bound = set(held, strings);
            line.push_str(&format!(", where {path} {bound}"));
            checked.insert(path.as_str(), bound);
        }
    }
    let filter = checks.filter.as_ref().map(|filter| filter.drawn.to_string());
    if let Some(filter) = &filter {
        line.push_str(&format!(", where {filter}"));
    }
    let mut node = DrawnNode::new(Stage::IxScan)
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
        node = node.with("limit", number(*limit));
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

fn sign(direction: Direction) -> i32 {
    match direction {
        Direction::Ascending => 1,
        Direction::Descending => -1,
    }
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "forward",
        Direction::Descending => "backward",
    }
}

/// Maximum number of intervals of a set that are drawn: a list of values can have thousands.
const MAX_DRAWN: usize = 8;

/// What the strings in index bounds are.
#[derive(Clone, Copy)]
enum Strings {
    Plain,
    /// Sort keys of a collation.
    SortKeys,
}

/// Formats bounds on the path of a wildcard index's entries: one path, or a path and the paths below it.
fn paths(set: &IntervalSet) -> String {
    let below = if set.len() > 1 { " and below" } else { "" };
    set.iter().next().map_or_else(String::new, |first| interval(first, Strings::Plain) + below)
}

fn set(set: &IntervalSet, strings: Strings) -> String {
    if set.is_empty() {
        return "nothing".into();
    }
    let mut drawn: Vec<String> = set.iter().take(MAX_DRAWN).map(|interval| self::interval(interval, strings)).collect();
    if set.len() > MAX_DRAWN {
        drawn.push(format!("… {} more", set.len() - MAX_DRAWN));
    }
    drawn.join(" ∪ ")
}

fn interval(interval: &Interval, strings: Strings) -> String {
    if let Some(point) = interval.as_point().and_then(|point| value(point, strings)) {
        return format!("[{point}]");
    }
    let is_whole = |(class, _): &&(Bracket, &str)| bracket_interval(*class) == *interval;
    if let Some((_, name)) = CLASSES.iter().find(is_whole) {
        return format!("all {name}");
    }
    let (low, high) =
        (place(interval.low(), IntervalEnd::Low, strings), place(interval.high(), IntervalEnd::High, strings));
    format!("{low}, {high}")
}

/// The classes of types with more than one value, as they are drawn.
const CLASSES: [(Bracket, &str); 13] = [
    (Bracket::Number, "numbers"),
    (Bracket::String, "strings"),
    (Bracket::Document, "documents"),
    (Bracket::Array, "arrays"),
    (Bracket::Binary, "binaries"),
    (Bracket::ObjectId, "ObjectIds"),
    (Bracket::Boolean, "booleans"),
    (Bracket::Date, "dates"),
    (Bracket::Timestamp, "timestamps"),
    (Bracket::Regex, "regular expressions"),
    (Bracket::DbPointer, "DBPointers"),
    (Bracket::Code, "codes"),
    (Bracket::CodeWithScope, "codes with scope"),
];

#[derive(Clone, Copy)]
enum IntervalEnd {
    Low,
    High,
}

fn place(place: &Place, end: IntervalEnd, strings: Strings) -> String {
    match (value(&place.prefix, strings), end, place.side) {
        (Some(value), IntervalEnd::Low, Side::Before) => format!("[{value}"),
        (Some(value), IntervalEnd::Low, Side::After) => format!("({value}"),
        (Some(value), IntervalEnd::High, Side::Before) => format!("{value})"),
        (Some(value), IntervalEnd::High, Side::After) => format!("{value}]"),
        (None, end, _) => boundary(place, end),
    }
}

/// Formats a position that is not a value: next to all strings with a prefix, or between two classes of types.
fn boundary(place: &Place, end: IntervalEnd) -> String {
    let first_text = string_beginning_with(&place.prefix).and_then(|text| match place.side {
        Side::Before => Some(text),
        Side::After => after_all_with_prefix(text),
    });
    let of_class = |is_at: fn(&Interval) -> &Place| {
        CLASSES.iter().find(|(class, _)| is_at(&bracket_interval(*class)) == place).map(|(_, name)| *name)
    };
    match (end, first_text) {
        (IntervalEnd::Low, Some(text)) => format!("[{text:?}"),
        (IntervalEnd::High, Some(text)) => format!("{text:?})"),
        (IntervalEnd::Low, None) => format!("({}", of_class(Interval::high).unwrap_or("…")),
        (IntervalEnd::High, None) => format!("{})", of_class(Interval::low).unwrap_or("…")),
    }
}

/// Returns the text of which these are the key bytes, without the byte that ends a text.
pub(super) fn string_beginning_with(encoded: &[u8]) -> Option<String> {
    const END: u8 = 0x01;
    let whole = [encoded, &[END]].concat();
    match key::decode(&mut whole.as_slice(), Direction::Ascending, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) => value.as_value().text().map(|text| String::from_utf8_lossy(text).into_owned()),
        Decoded::Missing => None,
    }
}

/// Returns the least text after all that begin with `text`: {$gte: "pr", $lt: "ps"} are those that begin with "pr".
pub(super) fn after_all_with_prefix(mut text: String) -> Option<String> {
    while let Some(last) = text.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

fn value(encoded: &[u8], strings: Strings) -> Option<String> {
    let mut rest = encoded;
    match key::decode(&mut rest, Direction::Ascending, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) if rest.is_empty() => match (strings, value.as_value().string()) {
            (Strings::SortKeys, Some(key)) => Some(collation::show_sort_key(key)),
            _ => Some(format!("{:?}", value.as_value())),
        },
        Decoded::Missing if rest.is_empty() => Some("null".into()),
        Decoded::Value(_) | Decoded::Missing => None,
    }
}
