//! The node of `$facet`, which contains the nodes of several pipelines.

use bson::{Bson, Document, doc};
use slate_query::{
    expression::Needs,
    pipeline::{Facet, Kept, Stage},
};

use super::{DocumentNode, Optimization, absorb::add_nodes};
use crate::plan::{
    Node,
    shown::{MongoStage, ShownNode},
};

/// The name of a pipeline, and its nodes.
type Pipeline = (Box<str>, Vec<DocumentNode>);

pub(super) fn node(facet: Facet, optimization: Optimization) -> DocumentNode {
    let argument = facet.to_string();
    let kept = match optimization {
        Optimization::On => Kept::of(&facet.needs()),
        Optimization::Off => Kept::default(),
    };
    let nodes = |stages: Vec<Stage>| {
        let mut nodes = Vec::new();
        // Stages that read no field need only the number of documents.
        if optimization == Optimization::On && Needs::of(&stages) == Needs::NOTHING {
            nodes.extend([DocumentNode::Count("n".into()), DocumentNode::Repeat]);
        }
        add_nodes(&mut nodes, stages.into_iter(), optimization);
        nodes
    };
    let facets = facet.into_pipelines().into_iter().map(|(name, stages)| (name, nodes(stages))).collect();
    DocumentNode::Facet { facets, kept, argument }
}

/// Returns how many nodes of the pipelines hold rows at the same time: those that are fed while the input is read, and those of one
/// pipeline, because the pipelines are executed one after the other.
pub(super) fn holders(facets: &[Pipeline]) -> usize {
    let fed = |nodes: &[DocumentNode]| nodes.first().is_some_and(DocumentNode::is_fed);
    let others = |nodes: &[DocumentNode]| nodes.iter().skip(usize::from(fed(nodes))).map(Node::holders).sum();
    let most: usize = facets.iter().map(|(_, nodes)| others(nodes)).max().unwrap_or_default();
    most + facets.iter().filter(|(_, nodes)| fed(nodes)).count()
}

/// Returns the pipelines as MongoDB's `explain` shows them.
pub(super) fn argument(facets: &[Pipeline]) -> Bson {
    let mut shown = Document::new();
    for (name, nodes) in facets {
        // Stages that read no field are fed by a count.
        let fed = matches!(nodes.as_slice(), [DocumentNode::Count(_), DocumentNode::Repeat, ..]);
        let nodes = nodes.iter().skip(if fed { 2 } else { 0 });
        let mut top = nodes.fold(ShownNode::default(), |input, node| node.shown_over(vec![input], ""));
        let mut stages = Vec::new();
        while let MongoStage::Pipeline(name, argument) = top.mongo {
            stages.push(doc! { name: argument });
            top = top.inputs.pop().unwrap_or_default();
        }
        stages.reverse();
        shown.insert(&**name, stages);
    }
    shown.into()
}
