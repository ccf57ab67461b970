use crate::{CollectionDescription, IntoDocument, Validator, operation::request::Request, write::CollectionSpec};

/// The options of a collection to create; see [`Collection::create_with`](crate::Collection::create_with).
///
/// ```
/// use bson::doc;
/// use slate_core::CollectionOptions;
///
/// let ignoring_case = CollectionOptions::new().collation(doc! { "locale": "en", "strength": 2 });
/// ```
#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    request: Request,
    spec: CollectionSpec,
}

impl CollectionOptions {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares strings by a collation, in MongoDB's form, wherever a call or an index has no collation of its own. Give
    /// `{ locale: "simple" }` to these to compare by bytes. Documents of one collection have different `_id`s by their bytes.
    #[must_use]
    pub fn collation(mut self, collation: impl IntoDocument) -> Self {
        self.spec.collation = self.request.take(collation);
        self
    }

    /// Checks documents when they are written.
    #[must_use]
    pub fn validator(mut self, validator: &Validator) -> Self {
        self.spec.validator = self.request.accept(validator.spec());
        self
    }

    /// Returns the options, or the error of an invalid one.
    pub(crate) fn spec(&self) -> crate::Result<&CollectionSpec> {
        self.request.check()?;
        Ok(&self.spec)
    }
}

/// The options with which a collection like a described one is created, under another name or in another database.
impl From<&CollectionDescription> for CollectionOptions {
    fn from(description: &CollectionDescription) -> Self {
        // Names every field, so that a new option is not forgotten here.
        let CollectionDescription { name: _, indexes: _, collation, validator } = description;
        let options =
            Self { spec: CollectionSpec { collation: collation.clone(), validator: None }, ..Self::default() };
        match validator {
            Some(validator) => options.validator(validator),
            None => options,
        }
    }
}
