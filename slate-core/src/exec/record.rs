use slate_query::raw::Doc;

/// A record as a node lends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r> {
    /// The record's key: its encoded `_id`.
    pub(crate) key: &'r [u8],
    /// The document, as it is stored.
    pub(crate) stored: &'r [u8],
}

impl<'r> Record<'r> {
    #[inline]
    pub(crate) fn document(&self) -> Doc<'r> {
        Doc::stored(self.stored)
    }
}
