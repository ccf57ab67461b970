//! Plans as trees for people, and as documents for programs.

use bson::{Document, doc};
use slate_query::{
    interval::{Interval, IntervalSet, Place, Side},
    key::{self, Decoded, TypeReader},
    pattern::Direction,
    raw::Doc,
    sort::Sort,
};

use super::{Analysis, Combine, CountedKeys, IdPlan, IndexScan, Measures, Plan, RawPlan, Values, Window, table};

/// What a node says of itself: its name for people, its name for programs, and its details for both.
struct Node {
    title: &'static str,
    stage: &'static str,
    details: Document,
    line: String,
    inputs: Vec<Node>,
    measures: Option<Measures>,
}

impl Node {
    fn new(title: &'static str, stage: &'static str) -> Self {
        Self { title, stage, details: Document::new(), line: String::new(), inputs: Vec::new(), measures: None }
    }

    fn with(mut self, name: &str, value: impl Into<bson::Bson>) -> Self {
        self.details.insert(name, value);
        self
    }

    fn saying(mut self, line: impl Into<String>) -> Self {
        self.line = line.into();
        self
    }

    fn over(mut self, input: Self) -> Self {
        self.inputs.push(input);
        self
    }

    /// Takes what the nodes did, each before its inputs.
    fn measured<'m>(&mut self, measures: &mut impl Iterator<Item = &'m (&'static str, Measures)>) {
        self.measures = measures.next().filter(|(stage, _)| *stage == self.stage).map(|(_, measures)| *measures);
        self.inputs.iter_mut().for_each(|input| input.measured(measures));
    }

    /// The lines of the tree, each with what its node did.
    fn lines(&self, first: &str, others: &str, lines: &mut Vec<(String, Measures)>) {
        let mut line = format!("{first}{}", self.title);
        if !self.line.is_empty() {
            line.push(' ');
            line.push_str(&self.line);
        }
        lines.push((line, self.measures.unwrap_or_default()));
        let last = self.inputs.len().saturating_sub(1);
        for (at, input) in self.inputs.iter().enumerate() {
            let (branch, trunk) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            input.lines(&format!("{others}{branch}"), &format!("{others}{trunk}"), lines);
        }
    }

    fn describe(&self) -> Document {
        let mut document = doc! { "stage": self.stage };
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

/// A plan's nodes, each with what it says of itself, and with what it did where the plan was run.
pub(crate) struct Drawing {
    root: Node,
    measured: Measured,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    No,
    Yes,
}

impl Drawing {
    pub(crate) fn new(plan: &Plan, collection: &str) -> Self {
        Self { root: node(plan, collection), measured: Measured::No }
    }

    /// With what the nodes did.
    pub(crate) fn measured(mut self, analysis: &Analysis) -> Self {
        self.root.measured(&mut analysis.nodes.iter());
        Self { measured: Measured::Yes, ..self }
    }

    /// The plan as a tree, the root first; behind a table of what its nodes did.
    pub(crate) fn draw(&self) -> String {
        let mut lines = Vec::new();
        self.root.lines("", "", &mut lines);
        match self.measured {
            Measured::Yes => table::draw(&lines),
            Measured::No => lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n"),
        }
    }

    /// The plan as a document.
    pub(crate) fn describe(&self) -> Document {
        self.root.describe()
    }
}

fn node(plan: &Plan, collection: &str) -> Node {
    match plan {
        Plan::Whole { input } => raw(input, collection),
        Plan::Project { input, document, .. } => {
            let text = format!("{:?}", Doc::from(document));
            Node::new("PROJECT", "PROJECTION").with("projection", &text).saying(text).over(raw(input, collection))
        }
        Plan::Covered { scan, window, document, .. } => {
            let text = format!("{:?}", Doc::from(document));
            let covered = Node::new("COVERED", "PROJECTION_COVERED").with("projection", &text).saying(text);
            windowed(*window, covered.over(index_node(scan)))
        }
        Plan::Count { input } => Node::new("COUNT", "COUNT").over(raw(input, collection)),
        Plan::CountKeys { keys, window } => {
            let input = match keys {
                CountedKeys::Records { bounds } => scan(collection, bounds.as_ref(), Direction::Ascending),
                CountedKeys::Entries(scan) => index_node(scan),
            };
            windowed(*window, Node::new("COUNT KEYS", "COUNT_SCAN").over(input))
        }
        Plan::Distinct { input, path, values } => {
            let distinct = Node::new("DISTINCT", "DISTINCT").with("path", path.as_str());
            chosen(*values, distinct.saying(path.as_str()).over(raw(input, collection)))
        }
        Plan::DistinctKeys { scan, values } => {
            let paths = scan.index.pattern.fields();
            let path = paths.last().map_or("", |(path, _)| path.as_str());
            let distinct = Node::new("DISTINCT KEYS", "DISTINCT_SCAN").with("path", path).saying(path);
            chosen(*values, distinct.over(index_node(scan)))
        }
    }
}

fn raw(plan: &RawPlan, collection: &str) -> Node {
    match plan {
        RawPlan::Slice { input, window } => windowed(*window, raw(input, collection)),
        RawPlan::Sort { input, sort, presorted, limit } => {
            sort_node(sort, *presorted, *limit).over(raw(input, collection))
        }
        RawPlan::Filter { input, filter } => {
            let text = filter.to_string();
            Node::new("FILTER", "FILTER").with("filter", &text).saying(text).over(raw(input, collection))
        }
        RawPlan::Scan { bounds, direction } => scan(collection, bounds.as_ref(), *direction),
        RawPlan::Fetch { ids } => {
            Node::new("FETCH", "FETCH").with("collection", collection).saying(collection).over(ids_node(ids))
        }
    }
}

/// The slice, where it leaves anything out, above what it is a slice of.
fn windowed(window: Window, mut input: Node) -> Node {
    let count = |rows: u64| i64::try_from(rows).unwrap_or(i64::MAX);
    if window.skip > 0 {
        input = Node::new("SKIP", "SKIP").with("skip", count(window.skip)).saying(window.skip.to_string()).over(input);
    }
    if let Some(limit) = window.limit {
        input = Node::new("LIMIT", "LIMIT").with("limit", count(limit)).saying(limit.to_string()).over(input);
    }
    input
}

/// Different values, in another order than the ascending one or some of them only.
fn chosen(values: Values, mut input: Node) -> Node {
    if values.direction == Direction::Descending {
        input = input.with("direction", "descending");
        input.line.push_str(" descending");
    }
    windowed(values.window, input)
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
        IdPlan::Merge { how, inputs } => {
            let merge = match how {
                Combine::Union => Node::new("INDEX MERGE", "OR").saying("or"),
                Combine::Intersection => Node::new("INDEX MERGE", "AND_SORTED").saying("and"),
            };
            inputs.iter().fold(merge, |merge, input| merge.over(ids_node(input)))
        }
    }
}

fn index_node(scan: &IndexScan) -> Node {
    let IndexScan { index, bounds, checks, direction, limit } = scan;
    let mut line = format!("{} {}", index.name, way(*direction));
    let mut told = Document::new();
    for ((path, _), bound) in index.pattern.fields().iter().zip(bounds.fields()) {
        told.insert(path.as_str(), set(bound));
    }
    let fields: Vec<String> =
        told.iter().map(|(path, bound)| format!("{path} {}", bound.as_str().unwrap_or_default())).collect();
    if !fields.is_empty() {
        line.push_str(": ");
        line.push_str(&fields.join(", "));
    }
    let mut checked = Document::new();
    for (field, held) in checks {
        if let Some((path, _)) = index.pattern.fields().get(*field) {
            let bound = set(held);
            line.push_str(&format!(", where {path} {bound}"));
            checked.insert(path.as_str(), bound);
        }
    }
    let mut node = Node::new("INDEX SCAN", "IXSCAN")
        .with("index", &*index.name)
        .with("direction", way(*direction))
        .with("bounds", told)
        .with("multikey", index.is_multikey());
    if !checked.is_empty() {
        node = node.with("checks", checked);
    }
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
    let (low, high) = (place(interval.low(), End::Low), place(interval.high(), End::High));
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
