/// The allowed access to a database on disk, and whether a missing one is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Read and write; creates the database if it does not exist, or if its directory is empty.
    #[default]
    CreateOrOpen,
    /// Read and write an existing database.
    OpenExisting,
    /// Read an existing database. Several processes may read it at the same time, but not while one writes. Exception: redb with
    /// `Sharing::WithReaders`.
    ReadOnly,
}
