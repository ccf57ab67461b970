//! The arguments that queries share.

use bson::{Document, RawDocumentBuf};
use clap::{Args, builder::PossibleValuesParser};
use slate_core::{Find, Hint, ReadCollection};

use super::documents;
use crate::{output, session::Session};

/// The documents of a collection that match a filter.
#[derive(Clone, Debug, Args)]
pub(super) struct Selection {
    /// The collection
    pub(super) collection: String,
    /// The filter, in MongoDB's query language: '{ age: { $gte: 21 } }'
    #[arg(default_value = "{}", hide_default_value = true, value_parser = documents::query)]
    pub(super) filter: Document,
    /// The index to use: its name, or its keys
    #[arg(long, value_parser = hint, value_name = "INDEX")]
    hint: Option<Hint>,
}

/// Which of them, and in which order.
#[derive(Clone, Debug, Args)]
pub(super) struct Slice {
    /// The order: '{ age: -1 }'
    #[arg(long, value_parser = documents::query, value_name = "SORT")]
    sort: Option<Document>,
    /// Skip this many
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    skip: u64,
    /// Stop after this many; 0 is no limit
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,
}

/// What is printed of them.
#[derive(Clone, Debug, Args)]
pub(super) struct Fields {
    /// The fields: '{ name: 1, _id: 0 }'
    #[arg(long, visible_alias = "projection", value_parser = documents::query, value_name = "SPEC")]
    project: Option<Document>,
}

/// How results are printed.
#[derive(Clone, Debug, Args)]
pub(super) struct Format {
    /// The format; a table on a terminal, otherwise jsonl
    #[arg(long, value_parser = PossibleValuesParser::new(output::names()))]
    pub(super) format: Option<String>,
}

impl Selection {
    /// The query, which Ctrl-C in a shell cancels.
    pub(super) fn find(&self, collection: &ReadCollection<RawDocumentBuf>, session: &Session) -> Find<RawDocumentBuf> {
        let find = collection.find(&self.filter).cancel(session.cancel());
        match &self.hint {
            Some(hint) => find.hint(hint.clone()),
            None => find,
        }
    }
}

impl Slice {
    pub(super) fn apply(&self, mut find: Find<RawDocumentBuf>) -> Find<RawDocumentBuf> {
        if let Some(sort) = &self.sort {
            find = find.sort(sort);
        }
        match self.limit {
            Some(limit) if limit > 0 => find.limit(limit),
            _ => find,
        }
        .skip(self.skip)
    }
}

impl Fields {
    pub(super) fn apply(&self, find: Find<RawDocumentBuf>) -> Find<RawDocumentBuf> {
        match &self.project {
            Some(projection) => find.projection(projection),
            None => find,
        }
    }
}

/// Reads the keys of an index in braces, or its name.
pub(super) fn hint(text: &str) -> Result<Hint, String> {
    if !text.trim_start().starts_with('{') {
        return Ok(Hint::Name(text.to_owned()));
    }
    let keys = documents::query(text)?;
    RawDocumentBuf::try_from(&keys).map(Hint::Keys).map_err(|error| error.to_string())
}
