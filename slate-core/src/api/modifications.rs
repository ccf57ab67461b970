use bson::RawDocumentBuf;

use crate::{IntoDocument, Result};

/// The change that an update makes to each of its documents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum UpdateModifications {
    /// Update operators: `{ $inc: { n: 1 } }`.
    Operators(RawDocumentBuf),
    /// The stages of a pipeline, each of which returns a new document: `$set` (`$addFields`), `$unset`, `$project`, and
    /// `$replaceRoot` (`$replaceWith`).
    Pipeline(Vec<RawDocumentBuf>),
}

/// An argument that is an update: a document of operators, or a `Vec` or array of a pipeline's stages.
///
/// ```
/// # use slate_core::{Database, bson::doc};
/// # fn main() -> slate_core::Result<()> {
/// # let db = Database::open("memory:")?;
/// let orders = db.collection::<slate_core::bson::Document>("orders");
/// orders.insert_one(&doc! { "_id": 1, "price": 3, "amount": 2 })?;
/// orders.update_one(doc! { "_id": 1 }, doc! { "$inc": { "amount": 1 } }).run()?;
/// orders.update_one(doc! { "_id": 1 }, [doc! { "$set": { "total": { "$multiply": ["$price", "$amount"] } } }]).run()?;
/// assert_eq!(orders.find_by_id(1)?.unwrap().get_i32("total").unwrap(), 9);
/// # Ok(())
/// # }
/// ```
pub trait IntoUpdate {
    /// Converts the argument.
    ///
    /// # Errors
    /// Fails as [`IntoDocument::into_document`] does.
    fn into_update(self) -> Result<UpdateModifications>;
}

impl<D: IntoDocument> IntoUpdate for D {
    fn into_update(self) -> Result<UpdateModifications> {
        self.into_document().map(UpdateModifications::Operators)
    }
}

impl<D: IntoDocument> IntoUpdate for Vec<D> {
    fn into_update(self) -> Result<UpdateModifications> {
        let stages = self.into_iter().map(D::into_document).collect::<Result<_>>();
        stages.map(UpdateModifications::Pipeline)
    }
}

impl<D: IntoDocument, const N: usize> IntoUpdate for [D; N] {
    fn into_update(self) -> Result<UpdateModifications> {
        Vec::from(self).into_update()
    }
}

impl IntoUpdate for UpdateModifications {
    fn into_update(self) -> Result<Self> {
        Ok(self)
    }
}
