/// The position of a commit in the total order of all commits of one database.
///
/// A view with version `v` shows exactly the commits whose version is at most `v`. Versions grow with every commit,
/// also across closing and reopening a persistent database. They need not be consecutive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The greatest version. No commit has a greater one.
    pub const MAX: Self = Self(u64::MAX);
}
