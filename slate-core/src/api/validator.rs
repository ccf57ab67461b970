use crate::{IntoDocument, Result, ValidationAction, ValidationLevel, call::Request, write::ValidatorSpec};

/// The condition that the documents of a collection must meet; see [`CollectionOptions::validator`](crate::CollectionOptions::validator) and
/// [`Collection::set_validator`](crate::Collection::set_validator).
///
/// With the default level and action, a write that violates it fails with MongoDB's code 121, and [`Error::details`](crate::Error::details) returns
/// the conditions that the document violates. Stored documents are not checked.
///
/// ```
/// use bson::doc;
/// use slate_core::{CollectionOptions, Database, Validator};
///
/// let people = Database::open("memory:")?.collection("people");
/// let schema = doc! { "required": ["name"], "properties": { "age": { "bsonType": "int", "minimum": 0 } } };
/// people.create_with(&CollectionOptions::new().validator(&Validator::new(doc! { "$jsonSchema": schema })))?;
/// let error = people.insert_one(&doc! { "name": "Ada", "age": -1 }).unwrap_err();
/// assert_eq!(error.code(), 121);
/// # Ok::<(), slate_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Validator {
    request: Request,
    spec: ValidatorSpec,
}

impl Validator {
    /// Creates a validator that requires documents to match a filter, such as `{ $jsonSchema: … }`.
    pub fn new(filter: impl IntoDocument) -> Self {
        let mut request = Request::default();
        let document = request.take(filter).unwrap_or_default();
        Self { request, spec: ValidatorSpec { document, ..ValidatorSpec::default() } }
    }

    /// Sets which documents are checked; the default is [`ValidationLevel::Strict`].
    #[must_use]
    pub fn level(mut self, level: ValidationLevel) -> Self {
        self.spec.level = level;
        self
    }

    /// Sets what happens to a write that violates it; the default is [`ValidationAction::Error`].
    #[must_use]
    pub fn action(mut self, action: ValidationAction) -> Self {
        self.spec.action = action;
        self
    }

    pub(crate) fn spec(&self) -> Result<ValidatorSpec> {
        self.request.check()?;
        Ok(self.spec.clone())
    }
}
