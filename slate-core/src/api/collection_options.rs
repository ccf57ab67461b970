use slate_query::Code;

use crate::{
    CollectionDescription, Error, IntoDocument, Result, Validator, View,
    call::{Request, Writer},
    write::{CollectionSpec, Created, ViewSpec},
};

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
    view: Option<View>,
}

pub(crate) enum Spec<'o> {
    Collection(&'o CollectionSpec),
    View(ViewSpec),
}

impl Spec<'_> {
    /// Creates the collection or view under this stored name.
    pub(crate) fn create(&self, writer: &mut dyn Writer, name: &str) -> Result<Created> {
        match self {
            Self::Collection(spec) => writer.create_collection(name, spec),
            Self::View(spec) => writer.create_view(name, spec),
        }
    }
}

impl CollectionOptions {
    /// Creates options that all have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares strings by a collation, in MongoDB's form, wherever a call or an index has no collation of its own. A call
    /// or an index with `{ locale: "simple" }` compares by bytes. The `_id`s of a collection are unique by their bytes.
    #[must_use]
    pub fn collation(mut self, collation: impl IntoDocument) -> Self {
        self.spec.collation = self.request.take(collation);
        self
    }

    /// Sets the validator, which checks documents when they are written.
    #[must_use]
    pub fn validator(mut self, validator: &Validator) -> Self {
        self.spec.validator = self.request.accept(validator.spec());
        self
    }

    /// Stores the documents before and after each change in the log of changes, for streams that show them; see
    /// [`Collection::keep_images`](crate::Collection::keep_images).
    #[must_use]
    pub fn keep_images(mut self) -> Self {
        self.spec.keeps_images = true;
        self
    }

    /// Creates a view in place of a collection. A view has no validator. All reads of the view compare by its collation; a
    /// read with another collation fails with MongoDB's code 167.
    #[must_use]
    pub fn view(mut self, view: &View) -> Self {
        self.view = Some(view.clone());
        self
    }

    /// Returns the definition to create under the stored name `name`, or the error of an invalid option.
    pub(crate) fn spec(&self, name: &str) -> Result<Spec<'_>> {
        self.request.check()?;
        match &self.view {
            None => Ok(Spec::Collection(&self.spec)),
            Some(_) if self.spec.validator.is_some() => {
                Err(Error::invalid(Code::INVALID_OPTIONS, "a view has no validator").at("validator"))
            }
            Some(view) => view.spec(name, self.spec.collation.clone()).map(Spec::View),
        }
    }
}

/// Converts a description to the options that create a collection like it, under another name or in another database.
impl From<&CollectionDescription> for CollectionOptions {
    fn from(description: &CollectionDescription) -> Self {
        // Names every field, so that a new option is not forgotten here.
        let CollectionDescription { name: _, indexes: _, collation, validator, keeps_images, view } = description;
        let spec = CollectionSpec { collation: collation.clone(), validator: None, keeps_images: *keeps_images };
        let options = Self { spec, view: view.clone(), ..Self::default() };
        match validator {
            Some(validator) => options.validator(validator),
            None => options,
        }
    }
}
