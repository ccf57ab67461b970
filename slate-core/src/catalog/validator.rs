use bson::{Document, RawDocumentBuf, cstr};
use slate_query::{
    Code,
    collation::Collation,
    expression::Bindings,
    filter::{Filter, explain},
    raw::{Doc, Value, Writer},
};

use super::index::append_document;
use crate::{Error, Result, ValidationAction, ValidationLevel};

/// The condition that the documents of a collection must fulfil.
#[derive(Clone, Debug)]
pub(crate) struct Validator {
    pub(crate) document: RawDocumentBuf,
    pub(crate) level: ValidationLevel,
    pub(crate) action: ValidationAction,
    filter: Filter,
    bindings: Bindings,
}

impl Validator {
    /// Parses the options of a validator.
    ///
    /// # Errors
    /// The errors of a filter that is not valid; `NotImplemented` (238) for `$$NOW`, whose value a validator does not know.
    pub(crate) fn parse(
        document: RawDocumentBuf,
        level: ValidationLevel,
        action: ValidationAction,
        collation: Option<&Collation>,
    ) -> Result<Self> {
        if mentions_time(Value::new(slate_query::raw::Kind::Document, document.as_bytes())) {
            return Err(Error::unsupported_by_name("$$NOW in a validator").at("validator"));
        }
        let bindings = Bindings::new(0).with_collation(collation.cloned()).lenient();
        let filter = Filter::parse_with(Doc::from(&document), &bindings)?;
        Ok(Self { document, level, action, filter, bindings })
    }

    /// Checks the new version of a document. Every version passes with [`ValidationLevel::Off`] or
    /// [`ValidationAction::Warn`]; with [`ValidationLevel::Moderate`] also if `old` violates the validator.
    ///
    /// # Errors
    /// `DocumentValidationFailure` (121), with the violated conditions as [details](Error::details); 51156 for a regular
    /// expression whose match takes too many steps.
    pub(crate) fn check(&self, collection: &str, old: Option<Doc<'_>>, new: Doc<'_>) -> Result<()> {
        // An expression that fails counts as not true. A match of too many steps is an error, because its result is not
        // known.
        let holds = |document: Doc<'_>| match self.filter.evaluate(document) {
            Err(error) if error.code() == Code(51156) => Err(error),
            holds => Ok(holds.unwrap_or(false)),
        };
        let is_exempt = match (self.level, self.action) {
            (ValidationLevel::Off, _) | (_, ValidationAction::Warn) => true,
            (ValidationLevel::Moderate, ValidationAction::Error) => {
                old.map_or(Ok(false), |old| holds(old).map(|holds| !holds))?
            }
            (ValidationLevel::Strict, ValidationAction::Error) => false,
        };
        if is_exempt || holds(new)? {
            return Ok(());
        }
        let mut details = Writer::new();
        new.get("_id").into_iter().for_each(|id| details.append(b"failingDocumentId", id));
        details.open_document(b"details");
        explain(Doc::from(&self.document), &self.bindings, new, &mut details);
        details.close();
        let id = new.get("_id").map_or_else(String::new, |id| format!(" with _id {id:?}"));
        let message = format!("Document failed validation: the document{id} violates the validator of {collection}");
        let details = Document::try_from(RawDocumentBuf::from_bytes(details.finish()).map_err(Error::conversion)?);
        Err(Error::invalid(Code::DOCUMENT_VALIDATION_FAILURE, message).with_details(details.unwrap_or_default()))
    }

    /// Whether every document is valid: there are only options for a later validator.
    pub(crate) fn is_empty(&self) -> bool {
        Doc::from(&self.document).is_empty()
    }

    /// Appends the options of the collection, as in MongoDB. Without a validator, those that are not the default.
    pub(crate) fn append_options(&self, options: &mut RawDocumentBuf) {
        let is_there = !self.is_empty();
        if is_there {
            options.append(cstr!("validator"), self.document.clone());
        }
        if is_there || self.level != ValidationLevel::default() {
            options.append(cstr!("validationLevel"), self.level.name());
        }
        if is_there || self.action != ValidationAction::default() {
            options.append(cstr!("validationAction"), self.action.name());
        }
    }

    /// Parses the fields of a collection's definition. `None` if it has no validator.
    pub(super) fn read(definition: Doc<'_>, collation: Option<&Collation>) -> Result<Option<Self>> {
        let Some(document) = definition.get("validator").and_then(Value::as_document) else { return Ok(None) };
        let document = RawDocumentBuf::from_bytes(document.bytes().to_vec()).map_err(Error::conversion)?;
        let name = |field| definition.get(field).and_then(Value::as_str);
        let level = name("validationLevel").and_then(ValidationLevel::parse).unwrap_or_default();
        let action = name("validationAction").and_then(ValidationAction::parse).unwrap_or_default();
        Self::parse(document, level, action, collation).map(Some)
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        append_document(writer, "validator", &self.document);
        for (name, value) in [("validationLevel", self.level.name()), ("validationAction", self.action.name())] {
            writer.append_string(name.as_bytes(), value.as_bytes());
        }
    }
}

fn mentions_time(value: Value<'_>) -> bool {
    let is_time = |text: &str| text.starts_with("$$NOW") || text.starts_with("$$CLUSTER_TIME");
    value.as_str().is_some_and(is_time) || value.as_container().is_some_and(|inner| inner.values().any(mentions_time))
}
