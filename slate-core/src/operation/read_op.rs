use std::sync::Arc;

use slate_query::{Code, raw::Doc};

use crate::{
    CollectionStats, Error, Result,
    api::options::ExplainVerbosity,
    catalog::Namespace,
    exec::Rows,
    interrupt::Interrupt,
    maintenance::VerifyRun,
    plan::{Analysis, Plan, Query},
};

/// A read of one collection, executed by a snapshot or a transaction.
pub(crate) enum ReadOp<'o, 'p> {
    /// Reads the definition of the collection or view.
    Definition,
    /// Runs a query. A snapshot's rows are read as they are consumed; a transaction reads all of them at once, so that it
    /// can write while its caller iterates.
    Find { query: &'o Query, interrupt: &'o Interrupt },
    /// Calls `visitor` with the document stored under `key`, if it exists.
    Get { key: &'o [u8], visitor: &'o mut dyn FnMut(Doc<'_>) -> Result<()> },
    /// Plans a query, and executes the plan if `verbosity` requires it.
    Explain { query: &'o Query, verbosity: ExplainVerbosity, interrupt: &'o Interrupt },
    /// Counts documents, index entries and their bytes.
    Stats { interrupt: &'o Interrupt },
    /// Verifies documents and index entries.
    Verify(&'o mut VerifyRun<'p>),
}

/// A plan, the rules that changed it, the number of candidates for its access path, and the measures of its execution,
/// if it was executed.
pub(crate) struct Explained {
    /// The collection that is read. For a view it is the collection that the view reads.
    pub(crate) collection: Arc<str>,
    pub(crate) plan: Plan,
    pub(crate) rules: Vec<&'static str>,
    pub(crate) candidates: usize,
    pub(crate) analysis: Option<Analysis>,
}

/// Declares an output enum and the conversions between it and its variants' types.
macro_rules! outputs {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($type:ty),)* }) => {
        $(#[$doc])*
        pub(crate) enum $name {
            $($variant($type),)*
        }

        $(
            impl From<$type> for $name {
                fn from(output: $type) -> Self {
                    Self::$variant(output)
                }
            }

            impl TryFrom<$name> for $type {
                type Error = Error;

                fn try_from(output: $name) -> Result<Self> {
                    match output {
                        $name::$variant(output) => Ok(output),
                        _ => Err($crate::operation::read_op::mismatch()),
                    }
                }
            }
        )*
    };
}
pub(crate) use outputs;

outputs! {
    /// The result of a [`ReadOp`].
    ReadOutput {
        Definition(Option<Namespace>),
        Rows(Box<dyn Rows + Send>),
        Explained(Box<Explained>),
        Stats(CollectionStats),
        Done(()),
    }
}

/// Returns the error for an operation that returned the result type of another operation: a bug in Slate.
pub(crate) fn mismatch() -> Error {
    Error::new(crate::ErrorKind::Io, Code::INTERNAL_ERROR, "an operation returned a result of the wrong type")
}
