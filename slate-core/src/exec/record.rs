use slate_query::raw::Doc;

/// A record as lent by a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r> {
    /// The record key: the encoded `_id`.
    pub(crate) key: &'r [u8],
    /// The stored document.
    pub(crate) stored: &'r [u8],
}

impl<'r> Record<'r> {
    #[inline]
    pub(crate) fn document(&self) -> Doc<'r> {
        Doc::stored(self.stored)
    }
}
