//! The arguments that queries share.

use bson::{Bson, Document, RawDocumentBuf, doc};
use clap::{Args, builder::PossibleValuesParser};
use slate_core::{Aggregate, Delete, Find, Hint, ReadCollection, Update};

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
    #[command(flatten)]
    pub(super) terms: Terms,
}

/// How documents are found and compared.
#[derive(Clone, Debug, Args)]
pub(super) struct Terms {
    /// The index to use: its name, or its keys
    #[arg(long, value_parser = hint, value_name = "INDEX")]
    hint: Option<Hint>,
    /// Compare strings by a collation: a locale, or '{ locale: "en", strength: 2 }', which ignores case
    #[arg(long, value_parser = documents::collation, value_name = "SPEC")]
    collation: Option<Document>,
    /// Variables, which expressions use as $$name: '{ least: 5 }'
    #[arg(long = "let", value_parser = documents::query, value_name = "VARIABLES")]
    variables: Option<Document>,
}

/// A query or write to which [`Terms`] apply.
pub(super) trait Query: Sized {
    fn hint(self, hint: Hint) -> Self;
    fn collation(self, collation: &Document) -> Self;
    fn let_variables(self, variables: &Document) -> Self;
}

macro_rules! queries {
    ($($query:ty),*) => {
        $(impl Query for $query {
            fn hint(self, hint: Hint) -> Self {
                Self::hint(self, hint)
            }

            fn collation(self, collation: &Document) -> Self {
                Self::collation(self, collation)
            }

            fn let_variables(self, variables: &Document) -> Self {
                Self::let_variables(self, variables)
            }
        })*
    };
}
queries! { Aggregate<Document>, Delete, Find<RawDocumentBuf>, Update }

impl Terms {
    /// Adds the hint, the collation and the variables to one of MongoDB's commands.
    pub(super) fn add_to(&self, command: &mut Document) {
        self.add_to_statement(command);
        if let Some(variables) = &self.variables {
            command.insert("let", variables.clone());
        }
    }

    /// Adds the hint and the collation to a statement of MongoDB's `update` or `delete`. Variables belong to the
    /// command.
    pub(super) fn add_to_statement(&self, statement: &mut Document) {
        if let Some(hint) = &self.hint {
            add_hint(statement, hint);
        }
        if let Some(collation) = &self.collation {
            statement.insert("collation", collation.clone());
        }
    }

    pub(super) fn variables(&self) -> Option<&Document> {
        self.variables.as_ref()
    }

    pub(super) fn apply<Q: Query>(&self, mut query: Q) -> Q {
        if let Some(hint) = &self.hint {
            query = query.hint(hint.clone());
        }
        if let Some(collation) = &self.collation {
            query = query.collation(collation);
        }
        match &self.variables {
            Some(variables) => query.let_variables(variables),
            None => query,
        }
    }
}

/// The order of the documents, and which of them are used.
#[derive(Clone, Debug, Args)]
pub(super) struct Slice {
    /// The order: '{ age: -1 }'
    #[arg(long, value_parser = documents::query, value_name = "SORT")]
    sort: Option<Document>,
    /// Skip this many
    #[arg(
        long,
        default_value = "0",
        hide_default_value = true,
        value_name = "N",
        value_parser = number,
        allow_negative_numbers = true
    )]
    pub(super) skip: u64,
    /// Stop after this many; 0 is no limit
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    pub(super) limit: Option<u64>,
}

/// The fields of the documents that are printed.
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
    /// Returns the query, which Ctrl-C cancels.
    pub(super) fn find(&self, collection: &ReadCollection<RawDocumentBuf>, session: &Session) -> Find<RawDocumentBuf> {
        self.terms.apply(collection.find(&self.filter).cancel(session.cancel()))
    }
}

impl Selection {
    /// Returns MongoDB's command `find` for these documents.
    pub(super) fn command(&self, slice: &Slice, fields: &Fields) -> Document {
        let mut find = doc! { "find": &self.collection, "filter": self.filter.clone() };
        slice.add_to(&mut find, "skip", "limit");
        slice.add_sort_to(&mut find);
        fields.add_to(&mut find);
        self.terms.add_to(&mut find);
        find
    }
}

impl Slice {
    /// Adds the skip and the limit, in fields of these names.
    pub(super) fn add_to(&self, command: &mut Document, skip: &str, limit: &str) {
        if self.skip > 0 {
            command.insert(skip, bounded(self.skip));
        }
        if let Some(most) = self.limit.filter(|most| *most > 0) {
            command.insert(limit, bounded(most));
        }
    }

    /// Adds the sort, if any.
    pub(super) fn add_sort_to(&self, find: &mut Document) {
        if let Some(sort) = &self.sort {
            find.insert("sort", sort.clone());
        }
    }

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
    /// Adds the projection.
    pub(super) fn add_to(&self, find: &mut Document) {
        if let Some(projection) = &self.project {
            find.insert("projection", projection.clone());
        }
    }

    pub(super) fn apply(&self, find: Find<RawDocumentBuf>) -> Find<RawDocumentBuf> {
        match &self.project {
            Some(projection) => find.projection(projection),
            None => find,
        }
    }
}

/// Adds a hint to one of MongoDB's commands: a name, the keys, or `$natural`.
pub(super) fn add_hint(command: &mut Document, hint: &Hint) {
    let hint: Bson = match hint {
        Hint::Name(name) => name.into(),
        Hint::Keys(keys) => Document::try_from(keys.as_ref()).unwrap_or_default().into(),
        Hint::Backward => doc! { "$natural": -1 }.into(),
        _ => doc! { "$natural": 1 }.into(),
    };
    command.insert("hint", hint);
}

/// Returns a number of documents as an int64 for MongoDB's commands; a larger one as the largest int64.
pub(super) fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a number of documents.
fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number, 0 or more".into())
}

/// Reads the keys of an index in braces, or its name.
pub(super) fn hint(text: &str) -> Result<Hint, String> {
    if !text.trim_start().starts_with('{') {
        return Ok(Hint::Name(text.to_owned()));
    }
    let keys = documents::query(text)?;
    RawDocumentBuf::try_from(&keys).map(Hint::Keys).map_err(|error| error.to_string())
}
