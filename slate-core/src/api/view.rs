use bson::RawDocumentBuf;

use crate::{IntoDocument, Result, call::Request, catalog::ViewInfo, namespace, stage_names, write::ViewSpec};

/// The definition of a view: a pipeline over a collection or another view. See [`CollectionOptions::view`] and
/// [`Collection::set_view`](crate::Collection::set_view).
///
/// A view is read like a collection: `find`, `count_documents`, `distinct`, `aggregate`, and by `$lookup`, `$graphLookup` and
/// `$unionWith`. Each read executes the view's pipeline and then the request, as one pipeline, so that indexes of the collection
/// serve both. Writes and indexes fail with MongoDB's code 166.
///
/// ```
/// use bson::{Document, doc};
/// use slate_core::{CollectionOptions, Database, View};
///
/// let db = Database::open("memory:")?;
/// db.collection("films").insert_many(&[doc! { "_id": 1, "year": 1972 }, doc! { "_id": 2, "year": 2004 }]).run()?;
/// let old = db.collection::<Document>("old_films");
/// let view = View::new("films", [doc! { "$match": { "year": { "$lt": 2000 } } }]);
/// old.create_with(&CollectionOptions::new().view(&view))?;
/// assert_eq!(old.count_documents(doc! {}).run()?, 1);
/// assert_eq!(old.insert_one(&doc! { "year": 1979 }).unwrap_err().code(), 166);
/// # Ok::<(), slate_core::Error>(())
/// ```
///
/// [`CollectionOptions::view`]: crate::CollectionOptions::view
#[derive(Clone, Debug)]
pub struct View {
    request: Request,
    on: String,
    pipeline: Vec<RawDocumentBuf>,
}

impl View {
    /// Creates the definition of a view that runs the pipeline on the collection or view `on`, which need not exist.
    pub fn new(on: &str, pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Self {
        let mut request = Request::default();
        let pipeline = pipeline.into_iter().filter_map(|stage| request.take(stage)).collect();
        Self { request, on: on.into(), pipeline }
    }

    /// Returns the name of the collection or view that the view reads.
    pub fn on(&self) -> &str {
        &self.on
    }

    /// Returns the stages of the view's pipeline.
    pub fn pipeline(&self) -> &[RawDocumentBuf] {
        &self.pipeline
    }

    pub(crate) fn of(view: &ViewInfo) -> Self {
        Self { request: Request::default(), on: view.on.to_string(), pipeline: view.pipeline.clone() }
    }

    /// Returns the view with names within its database instead of stored names.
    pub(crate) fn shown(view: &ViewInfo) -> Self {
        let on = namespace::split(&view.on).1.to_owned();
        Self { request: Request::default(), on, pipeline: stage_names::shown_stages(&view.pipeline) }
    }

    /// Returns the definition of the view with the stored name `name`. Its collections are those of its own database.
    pub(crate) fn spec(&self, name: &str, collation: Option<RawDocumentBuf>) -> Result<ViewSpec> {
        self.request.check()?;
        let database = namespace::split(name).0;
        let on = stage_names::stored_or_kept(database, &self.on);
        Ok(ViewSpec { on, pipeline: stage_names::stored_stages(database, &self.pipeline)?, collation })
    }
}
