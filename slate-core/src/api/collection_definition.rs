use slate_query::Code;

use crate::{
    Collection, CollectionOptions, CreateIndex, Error, ErrorKind, Index, RenameTarget, Result, Validator, View,
    call::Writer,
    changes::Images,
    namespace, stage_names,
    write::{Created, Visibility},
};

/// The definition of a collection: its indexes, options, name and existence.
impl<T> Collection<T> {
    /// Executes `work` as one write of the handle's scope, with the handle's deadline and cancel token. It is repeated after a conflict.
    fn write<R>(&self, work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        self.scope.write(&self.begin(), work)
    }

    /// Creates an index and fills it from the collection's documents; see [`CreateIndex`]. If the same index exists, nothing changes.
    pub fn create_index(&self, index: Index) -> CreateIndex<'static> {
        CreateIndex::new(self.scope.clone(), &self.name, index, self.begin())
    }

    /// Creates several indexes, one after the other, and returns their names.
    ///
    /// # Errors
    /// Fails as [`CreateIndex::run`] does. Indexes created before the one that fails remain.
    pub fn create_indexes(&self, indexes: impl IntoIterator<Item = Index>) -> Result<Vec<String>> {
        let call = self.begin();
        indexes.into_iter().map(|index| self.create_index(index).within(&call).run()).collect()
    }

    /// Hides an index from queries, to try the effect of dropping it: writes still maintain it, and its uniqueness is
    /// still enforced. Returns whether it was hidden already.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with code 27 if it does not exist; code 2 for the index on `_id`.
    pub fn hide_index(&self, index: &str) -> Result<bool> {
        self.set_visibility(index, Visibility::Hidden)
    }

    /// Lets queries use an index again. Returns whether it was hidden.
    ///
    /// # Errors
    /// Fails as [`hide_index`](Self::hide_index) does.
    pub fn show_index(&self, index: &str) -> Result<bool> {
        self.set_visibility(index, Visibility::Visible)
    }

    fn set_visibility(&self, index: &str, visibility: Visibility) -> Result<bool> {
        let before = self.write(|writer| writer.set_visibility(&self.name, index, visibility))?;
        Ok(before == Visibility::Hidden)
    }

    /// Drops an index by name; returns whether it existed.
    ///
    /// # Errors
    /// Fails for the index on `_id`; if the storage fails.
    pub fn drop_index(&self, index: &str) -> Result<bool> {
        self.write(|writer| writer.drop_index(&self.name, index))
    }

    /// Gathers the statistics from which the planner estimates selectivity, from every key of the collection and its indexes.
    /// They are refreshed as the collection grows or shrinks; call this after the distribution of values has changed, or if
    /// `explain` shows a poor plan.
    ///
    /// Cost: reads every key, outside any transaction; a short transaction then writes the result.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ReadOnly`] within a transaction; otherwise fails as a write does.
    pub fn analyze(&self) -> Result<()> {
        self.scope.analyze(&self.name, &self.begin())
    }

    /// Creates an empty collection. This is rarely needed: the first insertion creates it, too.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if it exists; code 73 if the name is not valid.
    pub fn create(&self) -> Result<()> {
        self.create_with(&CollectionOptions::new())
    }

    /// Creates an empty collection with options, or a [`View`].
    ///
    /// # Errors
    /// Fails as [`create`](Self::create) does; with MongoDB's code for an invalid option.
    pub fn create_with(&self, options: &CollectionOptions) -> Result<()> {
        let spec = options.spec(&self.name)?;
        self.write(|writer| {
            if spec.create(writer, &self.name)? == Created::New {
                return Ok(());
            }
            Err(Error::new(
                ErrorKind::Exists,
                Code::NAMESPACE_EXISTS,
                format!("the collection {} already exists", self.name),
            ))
        })
    }

    /// Replaces the definition of the view. Its collation stays.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with code 26 if the view does not exist; code 72 for a collection; MongoDB's
    /// code for a pipeline that is not valid.
    pub fn set_view(&self, view: &View) -> Result<()> {
        let spec = view.spec(&self.name, None)?;
        self.write(|writer| writer.set_view(&self.name, &spec))
    }

    /// Replaces the validator of the collection, or removes it. Stored documents are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with code 26 if the collection does not exist; MongoDB's code for a filter
    /// that is not valid.
    pub fn set_validator(&self, validator: Option<Validator>) -> Result<()> {
        let spec = validator.as_ref().map(Validator::spec).transpose()?;
        self.write(|writer| writer.set_validator(&self.name, spec.as_ref()))
    }

    /// Sets whether the log of changes stores the documents before and after each change for streams that show them
    /// ([`FullDocument`](crate::FullDocument), [`FullDocumentBeforeChange`](crate::FullDocumentBeforeChange)):
    /// MongoDB's `changeStreamPreAndPostImages`. Each update then takes about the size of another document in the log.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with code 26 if the collection does not exist.
    pub fn keep_images(&self, is_kept: bool) -> Result<()> {
        let images = if is_kept { Images::Kept } else { Images::None };
        self.write(|writer| writer.set_images(&self.name, images))
    }

    /// Renames the collection with its documents and indexes, in one commit. Returns a handle to the new name; other
    /// handles still refer to the old one. Cost: a few keys, independent of the collection's size.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with code 26 if the collection does not exist; [`ErrorKind::Exists`] with code 48 if `to`
    /// exists and `target` is [`RenameTarget::MustNotExist`]; code 73 if `to` is not a valid name; code 20 if `to` is the
    /// collection's own name; code 166 for a view.
    pub fn rename(&self, to: &str, target: RenameTarget) -> Result<Self> {
        let to = stage_names::stored_or_kept(namespace::split(&self.name).0, to);
        self.write(|writer| writer.rename_collection(&self.name, &to, target))?;
        Ok(Self::new(self.scope.clone(), to, self.limits.clone()))
    }

    /// Drops the collection with its documents and indexes, or the view; returns whether it existed. Views of the collection stay,
    /// and read it as empty.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn drop(&self) -> Result<bool> {
        self.write(|writer| writer.drop_collection(&self.name))
    }
}
