//! Where the backend's type ends: [`Engine`], [`Reader`] and [`Writer`] are the database's operations with no store in
//! their types, [`Backend`] gives them to any store.

mod backend;
mod open;
mod statistics;

use std::{path::Path, sync::Arc, time::Duration};

use bson::RawDocument;
use slate_store::{Durability, Isolation, Keyspace, Size};

pub use open::Access;
pub(crate) use open::{OpenOptions, open};

use crate::{
    CollectionStats, Existing, Result,
    catalog::Catalog,
    exec::Rows,
    interrupt::Interrupt,
    maintenance::VerifyRun,
    plan::{Analysis, FiredRules, Plan, Query},
    write::{
        AfterCommit, BuildProgress, BuildRound, BuildStart, BulkOperation, BulkOutcome, DeleteOutcome, DeleteRequest,
        IndexSpec, InsertMode, InsertOutcome, PutKind, PutOutcome, UpdateOutcome, UpdateRequest,
    },
};

/// A store, open, whichever it is.
pub(crate) trait Engine: Send + Sync {
    fn name(&self) -> &'static str;
    fn snapshot(&self) -> Result<Arc<dyn Reader>>;
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Writer>>;
    /// Does what a commit has left to do. The commit stands: what fails now is done another time.
    fn after_commit(&self, work: &AfterCommit, wait: Duration);
    /// Gathers the statistics of a collection, from every key of it.
    fn analyze(&self, collection: &str, wait: Duration) -> Result<()>;
    fn flush(&self) -> Result<()>;
    fn backup(&self, to: &Path) -> Result<()>;
    /// `wait` is how long to wait for the turn to write, where writers take turns.
    fn compact(&self, wait: Duration) -> Result<()>;
    fn size(&self) -> Result<Size>;
}

/// How a transaction begins.
#[derive(Clone, Debug)]
pub(crate) struct BeginOptions {
    /// How long to wait for the turn to write, where writers take turns.
    pub(crate) wait: Duration,
    pub(crate) isolation: Isolation,
    /// When the transaction as a whole must end.
    pub(crate) limits: Interrupt,
}

/// One commit, to be read.
pub(crate) trait Reader: Send + Sync {
    fn catalog(&self) -> &Arc<Catalog>;
    /// The rows of a query; none where there is no such collection.
    fn find(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Box<dyn Rows + Send>>;
    /// The document of that `_id`'s key, handed to `see` where it lies.
    fn get(&self, collection: &str, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
    fn plan(&self, collection: &str, query: &Query) -> Result<Explained>;
    /// Runs a query to its end; its plan, and what the plan's nodes did.
    fn analyze(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Explained>;
    fn stats(&self, collection: &str) -> Result<CollectionStats>;
    fn verify(&self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()>;
}

/// A plan, the rules that changed it, the number of its access path's candidates, and what executing it did, if it was.
pub(crate) struct Explained {
    pub(crate) plan: Plan,
    pub(crate) rules: FiredRules,
    pub(crate) candidates: usize,
    pub(crate) analysis: Option<Analysis>,
}

/// An open write transaction.
pub(crate) trait Writer: Send {
    fn catalog(&self) -> &Arc<Catalog>;
    /// Notes that what the catalog says of a collection is relied on.
    fn reads_definition(&mut self, collection: &str) -> Result<()>;
    /// The rows of a query, read at once: a transaction may write while it goes through them.
    fn find(&mut self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Box<dyn Rows + Send>>;
    fn get(&mut self, collection: &str, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
    fn plan(&self, collection: &str, query: &Query) -> Result<Explained>;
    fn analyze(&mut self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Explained>;
    fn stats(&mut self, collection: &str) -> Result<CollectionStats>;
    fn verify(&mut self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()>;

    fn insert(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        mode: InsertMode,
        interrupt: &Interrupt,
    ) -> Result<InsertOutcome>;
    fn update(&mut self, collection: &str, request: &UpdateRequest, interrupt: &Interrupt) -> Result<UpdateOutcome>;
    fn delete(&mut self, collection: &str, request: &DeleteRequest, interrupt: &Interrupt) -> Result<DeleteOutcome>;
    fn put(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        kind: PutKind,
        interrupt: &Interrupt,
    ) -> Result<PutOutcome>;
    fn bulk(
        &mut self,
        operations: &[(&str, BulkOperation)],
        mode: InsertMode,
        interrupt: &Interrupt,
    ) -> Result<BulkOutcome>;
    /// Whether it was created.
    fn create_collection(&mut self, collection: &str) -> Result<bool>;
    fn rename_collection(&mut self, from: &str, to: &str, existing: Existing) -> Result<()>;
    /// Whether it was there.
    fn drop_collection(&mut self, collection: &str) -> Result<bool>;
    /// The index's name, and whether it was created.
    fn create_index(
        &mut self,
        collection: &str,
        spec: &IndexSpec,
        interrupt: &Interrupt,
        progress: BuildProgress<'_>,
    ) -> Result<(String, bool)>;
    fn drop_index(&mut self, collection: &str, index: &str) -> Result<bool>;
    /// Ends the transaction, saying why to whoever goes on with it.
    fn end(&mut self, why: &str);
    /// Declares an index that is to be filled in transactions of their own.
    fn begin_build(&mut self, collection: &str, spec: &IndexSpec) -> Result<BuildStart>;
    fn build_round(&mut self, keyspace: Keyspace, limit: usize) -> Result<BuildRound>;
    fn abandon_build(&mut self, keyspace: Keyspace) -> Result<()>;
    /// Commits; gives back what is to be done then.
    fn commit(self: Box<Self>, durability: Durability) -> Result<AfterCommit>;
}
