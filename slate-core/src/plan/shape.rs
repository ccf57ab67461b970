//! A plan in the shape of MongoDB's `explain`, for the tools that draw it.
//!
//! Nodes that MongoDB has no stage for are parts of others there: a filter belongs to the stage that reads the records, distinct values
//! to the scan that finds them. Such a stage has the measures of all nodes that it stands for.

use bson::{Bson, Document, doc};
use slate_query::work;

use super::{
    Measures,
    shown::{MongoStage, ShownNode},
    shown_text::MAX_SHOWN,
};
use crate::{document::number, explain::PlanShape};

/// The steps of copying what is shown of a node, in which an element has 16 bytes or more; see [`work`].
const STEPS_PER_NODE: usize = MAX_SHOWN / 16;

/// Returns the shape of a plan, with the measures of its nodes if it was executed.
pub(super) fn shape(root: &ShownNode) -> PlanShape {
    let mut stages = Vec::new();
    let mut top = root;
    while let (MongoStage::Pipeline(name, argument), [input]) = (&top.mongo, top.inputs.as_slice())
        && work::take(STEPS_PER_NODE).is_ok()
    {
        stages.push(pipeline_stage(name, argument, top.measures));
        top = input;
    }
    stages.reverse();
    let plan = stage(top);
    let Measures { keys, documents, .. } = top.total();
    PlanShape { rows: plan.rows(), keys, documents, plan: plan.finish(), stages }
}

fn pipeline_stage(name: &str, argument: &Bson, measures: Option<Measures>) -> Document {
    let mut stage = doc! { name: argument };
    if let Some(measures) = measures {
        stage.extend(rows_and_time(measures));
        if measures.keys > 0 || measures.documents > 0 {
            stage.insert("totalKeysExamined", number(measures.keys));
            stage.insert("totalDocsExamined", number(measures.documents));
        }
        if measures.spills > 0 {
            stage.insert("usedDisk", true);
            stage.insert("spills", number(measures.spills));
        }
    }
    stage
}

fn rows_and_time(measures: Measures) -> Document {
    doc! { "nReturned": number(measures.rows), "executionTimeMillisEstimate": number(measures.time.as_millis()) }
}

/// Returns the stage that stands for a node, over the stages of its inputs.
fn stage(node: &ShownNode) -> ShapedStage {
    let [input] = node.inputs.as_slice() else { return ShapedStage::of(node) };
    match (&node.mongo, &input.mongo) {
        (MongoStage::Condition(condition), MongoStage::Records(..)) => {
            ShapedStage::of(input).within(node.measures).filtered(condition)
        }
        (MongoStage::Records(..), MongoStage::Lookup(_)) => {
            let fields = doc! { "keyPattern": "{ _id: 1 }", "indexName": "_id_" };
            ShapedStage { name: "EXPRESS_IXSCAN", fields, ..ShapedStage::of(input).within(node.measures) }
        }
        (MongoStage::Own("LIMIT", _), _) if is_limited(input) => stage(input),
        (MongoStage::Count, _) => ShapedStage::of(node).counting(),
        (MongoStage::Values(_), _) => {
            ShapedStage { inputs: vec![stage(input).within(node.measures)], ..ShapedStage::of(node) }
        }
        (MongoStage::Hidden | MongoStage::Pipeline(..), _) => stage(input),
        _ => ShapedStage::of(node),
    }
}

/// Returns whether the node is a sort with a limit, perhaps below a skip. As in MongoDB, the limit is then shown only there.
fn is_limited(node: &ShownNode) -> bool {
    match (&node.mongo, node.inputs.as_slice()) {
        (MongoStage::Own("SORT", fields), _) => fields.contains_key("limitAmount"),
        (MongoStage::Own("SKIP", _), [input]) => is_limited(input),
        _ => false,
    }
}

/// A stage with the measures of all nodes that it stands for.
struct ShapedStage {
    name: &'static str,
    fields: Document,
    measures: Option<Measures>,
    inputs: Vec<ShapedStage>,
}

impl ShapedStage {
    /// Returns the stage of a node on its own.
    fn of(node: &ShownNode) -> Self {
        let (name, fields) = match &node.mongo {
            // The call is over, and its explanation is dropped.
            _ if work::take(STEPS_PER_NODE).is_err() => (node.stage.name, Document::new()),
            MongoStage::Own(name, fields) | MongoStage::Records(name, fields) => (*name, fields.clone()),
            MongoStage::Lookup(fields) => ("IXSCAN", fields.clone()),
            MongoStage::Condition(condition) => ("FILTER", doc! { "filter": condition }),
            MongoStage::Count => ("COUNT", Document::new()),
            MongoStage::Values(fields) => ("PROJECTION_COVERED", fields.clone()),
            MongoStage::Hidden | MongoStage::Pipeline(..) => (node.stage.name, Document::new()),
        };
        let inputs = node.inputs.iter().map(stage).collect();
        Self { name, fields, measures: node.measures, inputs }
    }

    /// Returns the stage with a condition on its rows, which MongoDB shows before the other fields.
    fn filtered(self, condition: &Document) -> Self {
        let mut fields = doc! { "filter": condition };
        fields.extend(self.fields);
        Self { fields, ..self }
    }

    /// Returns the stage as one that counts the rows of its input and returns none.
    fn counting(mut self) -> Self {
        if let Some(measures) = &mut self.measures {
            measures.rows = 0;
            self.fields.insert("nCounted", number(self.inputs.iter().map(Self::rows).sum::<u64>()));
        }
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
            stage.extend(rows_and_time(measures));
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
