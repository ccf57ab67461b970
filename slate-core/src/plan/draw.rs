//! Plans as trees for people, and as documents for programs.

use bson::{Document, doc};
use slate_query::{
    interval::{Interval, IntervalSet, Place, Side},
    key::{self, Decoded, TypeReader},
    pattern::Direction,
    raw::Doc,
    sort::Sort,
};

use super::{IdPlan, IndexScan, Plan, RawPlan};

/// What a node says of itself: its name for people, its name for programs, and its details for both.
struct Node {
    title: &'static str,
    stage: &'static str,
    details: Document,
    line: String,
}

impl Node {
    fn new(title: &'static str, stage: &'static str) -> Self {
        Self { title, stage, details: Document::new(), line: String::new() }
    }

    fn with(mut self, name: &str, value: impl Into<bson::Bson>) -> Self {
        self.details.insert(name, value);
        self
    }

    fn saying(mut self, line: impl Into<String>) -> Self {
        self.line = line.into();
        self
    }
}

/// Draws the plan as a tree, the root first.
pub(crate) fn draw(plan: &Plan, collection: &str) -> String {
    let mut drawn = String::new();
    for (depth, node) in nodes(plan, collection).into_iter().enumerate() {
        if depth > 0 {
            drawn.push('\n');
            drawn.push_str(&"   ".repeat(depth - 1));
            drawn.push_str("└─ ");
        }
        drawn.push_str(node.title);
        if !node.line.is_empty() {
            drawn.push(' ');
            drawn.push_str(&node.line);
        }
    }
    drawn
}

/// The plan as a document.
pub(crate) fn describe(plan: &Plan, collection: &str) -> Document {
    let mut described: Option<Document> = None;
    for node in nodes(plan, collection).into_iter().rev() {
        let mut document = doc! { "stage": node.stage };
        document.extend(node.details);
        if let Some(input) = described.take() {
            document.insert("input", input);
        }
        described = Some(document);
    }
    described.unwrap_or_default()
}

/// The nodes from the root down: every node has one input.
fn nodes(plan: &Plan, collection: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    match plan {
        Plan::Whole { .. } => {}
        Plan::Project { document, .. } => {
            let text = format!("{:?}", Doc::from(document));
            nodes.push(Node::new("PROJECT", "PROJECTION").with("projection", &text).saying(text));
        }
        Plan::Count { .. } => nodes.push(Node::new("COUNT", "COUNT")),
        Plan::Distinct { path, .. } => {
            nodes.push(Node::new("DISTINCT", "DISTINCT").with("path", path.as_str()).saying(path.as_str()));
        }
    }
    let mut input = Some(plan.input());
    while let Some(node) = input {
        input = match node {
            RawPlan::Slice { input, skip, limit } => {
                nodes.extend(slice(*skip, *limit));
                Some(input)
            }
            RawPlan::Sort { input, sort, presorted, limit } => {
                nodes.push(sort_node(sort, *presorted, *limit));
                Some(input)
            }
            RawPlan::Filter { input, filter } => {
                let text = filter.to_string();
                nodes.push(Node::new("FILTER", "FILTER").with("filter", &text).saying(text));
                Some(input)
            }
            RawPlan::Scan { bounds, direction } => {
                nodes.push(scan(collection, bounds.as_ref(), *direction));
                None
            }
            RawPlan::Fetch { ids } => {
                nodes.push(Node::new("FETCH", "FETCH").with("collection", collection).saying(collection));
                nodes.push(ids_node(ids));
                None
            }
        };
    }
    nodes
}

fn slice(skip: u64, limit: Option<u64>) -> Vec<Node> {
    let count = |rows: u64| i64::try_from(rows).unwrap_or(i64::MAX);
    let mut nodes = Vec::new();
    nodes.extend(limit.map(|limit| Node::new("LIMIT", "LIMIT").with("limit", count(limit)).saying(limit.to_string())));
    if skip > 0 {
        nodes.push(Node::new("SKIP", "SKIP").with("skip", count(skip)).saying(skip.to_string()));
    }
    nodes
}

fn sort_node(sort: &Sort, presorted: usize, limit: Option<u64>) -> Node {
    let fields = sort.fields().iter().map(|(path, direction)| format!("{path}: {}", sign(*direction)));
    let mut line = format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "));
    let mut node = Node::new("SORT", "SORT").with("by", line.clone());
    if presorted > 0 {
        node = node.with("presorted", i64::try_from(presorted).unwrap_or(i64::MAX));
        line.push_str(&format!(" within groups of the first {presorted}"));
    }
    if let Some(limit) = limit {
        node = node.with("limit", i64::try_from(limit).unwrap_or(i64::MAX));
        line.push_str(&format!(", top {limit}"));
    }
    node.saying(line)
}

fn scan(collection: &str, bounds: Option<&IntervalSet>, direction: Direction) -> Node {
    let mut line = format!("{collection} {}", way(direction));
    let mut node = Node::new("SCAN", "COLLSCAN").with("collection", collection).with("direction", way(direction));
    if let Some(bounds) = bounds {
        let bounds = set(bounds);
        line.push_str(&format!(": _id {bounds}"));
        node = node.with("bounds", doc! { "_id": bounds });
    }
    node.saying(line)
}

fn ids_node(ids: &IdPlan) -> Node {
    match ids {
        IdPlan::Points(points) => {
            let points = set(points);
            Node::new("POINTS", "IDHACK").with("bounds", doc! { "_id": &points }).saying(format!("_id {points}"))
        }
        IdPlan::Index(scan) => index_node(scan),
    }
}

fn index_node(scan: &IndexScan) -> Node {
    let IndexScan { index, bounds, direction, limit } = scan;
    let mut line = format!("{} {}", index.name, way(*direction));
    let mut told = Document::new();
    for ((path, _), bound) in index.pattern.fields().iter().zip(&bounds.fields) {
        told.insert(path.as_str(), set(bound));
    }
    let fields: Vec<String> =
        told.iter().map(|(path, bound)| format!("{path} {}", bound.as_str().unwrap_or_default())).collect();
    if !fields.is_empty() {
        line.push_str(": ");
        line.push_str(&fields.join(", "));
    }
    let mut node = Node::new("INDEX SCAN", "IXSCAN")
        .with("index", &*index.name)
        .with("direction", way(*direction))
        .with("bounds", told)
        .with("multikey", index.is_multikey());
    if let Some(limit) = limit {
        node = node.with("limit", i64::try_from(*limit).unwrap_or(i64::MAX));
        line.push_str(&format!(", limit {limit}"));
    }
    node.saying(line)
}

fn sign(direction: Direction) -> i32 {
    match direction {
        Direction::Ascending => 1,
        Direction::Descending => -1,
    }
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "forward",
        Direction::Descending => "backward",
    }
}

/// So many intervals are drawn; a list of values may hold thousands.
const DRAWN: usize = 8;

fn set(set: &IntervalSet) -> String {
    if set.is_empty() {
        return "nothing".into();
    }
    let mut drawn: Vec<String> = set.iter().take(DRAWN).map(interval).collect();
    if set.len() > DRAWN {
        drawn.push(format!("… {} more", set.len() - DRAWN));
    }
    drawn.join(" ∪ ")
}

fn interval(interval: &Interval) -> String {
    if let Some(point) = interval.as_point().and_then(value) {
        return format!("[{point}]");
    }
    let (low, high) = (place(&interval.low, End::Low), place(&interval.high, End::High));
    format!("{low}, {high}")
}

#[derive(Clone, Copy)]
enum End {
    Low,
    High,
}

fn place(place: &Place, end: End) -> String {
    match (value(&place.prefix), end, place.side) {
        (Some(value), End::Low, Side::Before) => format!("[{value}"),
        (Some(value), End::Low, Side::After) => format!("({value}"),
        (Some(value), End::High, Side::Before) => format!("{value})"),
        (Some(value), End::High, Side::After) => format!("{value}]"),
        // A place that is no value ends a type's own stretch of the order.
        (None, End::Low, _) => "(…".into(),
        (None, End::High, _) => "…)".into(),
    }
}

fn value(encoded: &[u8]) -> Option<String> {
    let mut rest = encoded;
    match key::decode(&mut rest, Direction::Ascending, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) if rest.is_empty() => Some(format!("{:?}", value.as_value())),
        Decoded::Missing if rest.is_empty() => Some("null".into()),
        Decoded::Value(_) | Decoded::Missing => None,
    }
}
