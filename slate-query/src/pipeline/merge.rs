//! Stages that later stages make superfluous.

use bson::RawDocumentBuf;

use super::Stage;
use crate::expression::Needs;
use crate::{path::Path, raw::Writer};

impl Stage {
    /// Returns a stage with the effect of this stage followed by `next`. `None` if no single stage has that effect.
    pub fn merged(&self, next: &Self) -> Option<Self> {
        match (self, next) {
            (Self::Match(filter), Self::Match(next)) => Some(Self::Match(filter.and(next))),
            (Self::Sort(_), Self::Sort(next)) => Some(Self::Sort(next.clone())),
            (
                Self::Project { projection, name, document },
                Self::Project { projection: after, document: added, .. },
            ) => {
                if projection.shows_all_of(after) {
                    return Some(next.clone());
                }
                let projection = projection.with_additions(after)?;
                Some(Self::Project { projection, name, document: joined(document, added)? })
            }
            _ => None,
        }
    }

    /// Returns `true` only if a pipeline that needs `after` of this stage's documents has the same result without the stage.
    pub fn is_unused(&self, after: &Needs) -> bool {
        match self {
            Self::Match(filter) => filter.is_empty(),
            Self::Skip(skip) => *skip == 0,
            Self::Lookup(lookup) => lookup.is_unused(after),
            Self::Project { projection, .. } => match after.fields() {
                None => projection.is_identity(),
                Some(names) => {
                    let is_preserved = |name: &str| Path::parse(name).is_ok_and(|path| projection.preserves(&path));
                    projection.is_infallible() && names.iter().all(|name| is_preserved(name))
                }
            },
            _ => false,
        }
    }
}

/// Returns the fields of two documents.
fn joined(first: &RawDocumentBuf, second: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    let mut out = Writer::new();
    for document in [first, second] {
        crate::raw::Doc::from(document).elements().for_each(|element| out.append(element.name, element.value));
    }
    RawDocumentBuf::from_bytes(out.finish()).ok()
}
