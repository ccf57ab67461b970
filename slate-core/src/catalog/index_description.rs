use std::time::Duration;

use bson::{RawDocumentBuf, cstr, rawdoc};
use slate_query::collation::Collation;

use super::{CollectionInfo, IndexInfo};

/// The description of an existing index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// Its fields and their directions.
    pub keys: RawDocumentBuf,
    /// Whether no two documents may have the same values.
    pub unique: bool,
    /// Whether documents without any of the fields are left out.
    pub sparse: bool,
    /// Whether no query uses it; see [`Collection::hide_index`](crate::Collection::hide_index).
    pub hidden: bool,
    /// For a TTL index: how long after its date a document expires; see
    /// [`Index::expire_after`](crate::Index::expire_after).
    pub expire_after: Option<Duration>,
    /// The filter of a partial index.
    pub only: Option<RawDocumentBuf>,
    /// How it compares strings, with all options; `None`: by their bytes.
    pub collation: Option<RawDocumentBuf>,
    /// The fields that a wildcard index is limited to; see [`Index::wildcard_projection`](crate::Index::wildcard_projection).
    pub wildcard_projection: Option<RawDocumentBuf>,
    /// Whether any of its fields has contained an array.
    pub multikey: bool,
    /// Whether queries can use it.
    pub state: IndexState,
}

/// Whether an index can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It is complete, and queries use it.
    Ready,
    /// It is being built, or a crash interrupted the build: writers maintain it, queries do not use it. Creating the same
    /// index again finishes it, as does [`Database::resume_index_builds`](crate::Database::resume_index_builds).
    Building,
}

impl IndexDescription {
    /// Returns the index as MongoDB describes it in the result of `listIndexes`; [`Index::from_definition`](crate::Index::from_definition) is the inverse.
    pub fn to_definition(&self) -> RawDocumentBuf {
        // Names every field, so that a new option is not forgotten here.
        let Self {
            name,
            keys,
            unique,
            sparse,
            hidden,
            expire_after,
            only,
            collation,
            wildcard_projection,
            multikey: _,
            state: _,
        } = self;
        let mut definition = rawdoc! { "v": 2, "key": keys.clone(), "name": name.as_str() };
        for (option, is_set) in [(cstr!("unique"), unique), (cstr!("sparse"), sparse), (cstr!("hidden"), hidden)] {
            if *is_set {
                definition.append(option, true);
            }
        }
        if let Some(seconds) = expire_after.and_then(|after| i32::try_from(after.as_secs()).ok()) {
            definition.append(cstr!("expireAfterSeconds"), seconds);
        }
        for (option, document) in [
            (cstr!("partialFilterExpression"), only),
            (cstr!("wildcardProjection"), wildcard_projection),
            (cstr!("collation"), collation),
        ] {
            if let Some(document) = document {
                definition.append(option, document.clone());
            }
        }
        definition
    }

    pub(crate) fn definition_of(index: &IndexInfo) -> RawDocumentBuf {
        Self::of(index, IndexState::Ready).to_definition()
    }

    /// Returns every index of a collection.
    pub(crate) fn all(collection: &CollectionInfo) -> Vec<Self> {
        let ready = collection.indexes.iter().map(|index| Self::of(index, IndexState::Ready));
        let building = collection.building.iter().map(|index| Self::of(index, IndexState::Building));
        ready.chain(building).collect()
    }

    fn of(index: &IndexInfo, state: IndexState) -> Self {
        Self {
            name: index.name.to_string(),
            keys: index.keys.clone(),
            unique: index.unique,
            sparse: index.sparse,
            hidden: index.hidden,
            expire_after: index.expire_after.map(|seconds| Duration::from_secs(seconds.into())),
            only: index.partial.as_ref().map(|partial| partial.document.clone()),
            collation: index.collation.as_ref().map(Collation::to_document),
            wildcard_projection: index.wildcard.as_ref().and_then(|wildcard| wildcard.projection.clone()),
            multikey: index.is_multikey(),
            state,
        }
    }
}
