/// What becomes of a collection that already has the name another is renamed to; see
/// [`Collection::rename`](crate::Collection::rename).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the other is not renamed.
    #[default]
    Keep,
    /// It is dropped, in the same commit.
    Drop,
}
