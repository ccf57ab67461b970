/// Declares the values of an option; with the feature `serde` they can be read from settings.
macro_rules! options {
    ($($(#[$attribute:meta])* $name:ident { $($values:tt)* })*) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
            pub enum $name {
                $($values)*
            }
        )*
    };
}

options! {
    /// The allowed access to a database, and whether a missing one is created.
    Access {
        /// Read and write; the database is created if it does not exist, or if its directory is empty.
        #[default]
        CreateOrOpen,
        /// Read and write an existing database.
        Open,
        /// Read an existing database. Several processes may read it at the same time. While one writes, others can read only on redb, if that
        /// process shares the file ([`Sharing::WithReaders`]). A redb database that was not closed properly is repaired first, as [`Recovery`]
        /// describes, which is the only write. Refused for a `tikv:` database, which any number of processes read and write.
        ReadOnly,
    }

    /// How a redb database recovers after a crash. Other stores ignore it.
    Recovery {
        /// Each `Sync` commit also stores what a fast open needs, which takes a second sync. Opening is fast, but for rare cases such as a crash
        /// during a compaction.
        #[default]
        WithEachCommit,
        /// A `Sync` commit takes one sync. The first open after a crash reads the whole file.
        WhenOpened,
    }

    /// Which processes may have a redb database open at the same time. `memory:` and `rocksdb:` support only `Exclusive`; any number of processes
    /// read and write a `tikv:` database, whatever is set here.
    Sharing {
        /// Either one process that writes, or any number that read.
        #[default]
        Exclusive,
        /// One process that writes, and any number that read what it commits. Needs a platform with locks on parts of files
        /// (Linux, macOS, Windows) and a file system on this machine. Every commit is then synced, with two syncs, whatever its
        /// durability: another process must not see a commit that a crash can undo.
        WithReaders,
    }

    /// When all pages of a redb database are compared with their checksums. Other stores ignore it: a backup opened with `memory:` is always
    /// compared as a whole, and RocksDB compares each block when it is read.
    Verification {
        /// When the database is verified ([`Store::check`](crate::Store::check)), before a backup and before a compaction.
        #[default]
        OnRequest,
        /// Also when the database is opened, which fails if a page is damaged. Costs reading the whole file.
        WhenOpened,
    }
}
