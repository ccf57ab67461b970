use std::fmt;

use bson::Document;

use crate::{engine::Explained, plan};

/// The plan of a question: [`Display`](fmt::Display) draws it as a tree, [`Explain::to_document`] gives it as BSON.
///
/// ```text
/// PROJECT { name: 1 }
/// └─ LIMIT 50
///    └─ FILTER { city: "Oslo" }
///       └─ FETCH users
///          └─ INDEX SCAN age_1 forward: age [21, ∞)
/// ```
#[derive(Clone, Debug)]
pub struct Explain {
    drawn: String,
    document: Document,
    candidates: usize,
}

impl Explain {
    pub(crate) fn new(collection: &str, explained: Option<Explained>) -> Self {
        match explained {
            Some(Explained { plan, candidates }) => {
                Self { drawn: plan::draw(&plan, collection), document: plan::describe(&plan, collection), candidates }
            }
            None => Self {
                drawn: format!("NOTHING: there is no collection {collection}"),
                document: bson::doc! { "stage": "EOF", "collection": collection },
                candidates: 0,
            },
        }
    }

    /// The plan as a document: each node with its `stage`, what it does, and its `input`.
    pub fn to_document(&self) -> Document {
        self.document.clone()
    }

    /// Whether the plan reads an index other than the one on `_id`.
    pub fn uses_index(&self) -> bool {
        reads_index(&self.document)
    }

    /// How many plans could serve the question: what `force` may take, counted from 0.
    #[doc(hidden)]
    pub fn candidates(&self) -> usize {
        self.candidates
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.drawn)
    }
}

fn reads_index(node: &Document) -> bool {
    let inputs = node.get_array("inputs").into_iter().flatten().filter_map(bson::Bson::as_document);
    node.get_str("stage").is_ok_and(|stage| stage == "IXSCAN")
        || node.get_document("input").into_iter().chain(inputs).any(reads_index)
}
