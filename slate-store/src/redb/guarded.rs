//! Calls into redb, whose panics become errors; the only place that catches them.
//!
//! redb checks the pages of a file only when it repairs, and on request. On a damaged page it may panic: the page's first bytes say where its
//! entries are. Everything that reads or writes pages is called through [`guarded`], at the methods of the store's contract.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::OnceLock,
};

use crate::{Context, Error, Result};

/// Whether redb has panicked. Later reads are tried, because other pages may be sound. Later writes are refused: redb may have left a
/// transaction half-way.
#[derive(Debug, Default)]
pub(super) struct Poison(OnceLock<String>);

impl Poison {
    /// Fails if redb has panicked.
    pub(super) fn check(&self, path: Option<&Path>) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(panic) => {
                let detail = format!(
                    "redb failed on them earlier ({panic}), and nothing is written until the database is reopened"
                );
                Err(corrupt(detail, path))
            }
        }
    }
}

/// Calls redb. A panic becomes [`Error::Corrupt`] and poisons the database.
#[inline]
pub(super) fn guarded<R>(poison: &Poison, path: Option<&Path>, call: impl FnOnce() -> Result<R>) -> Result<R> {
    // redb's own locks are poisoned by a panic under them, and every later use of them panics, and is caught here, too.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) => Err(panicked(poison, path, &*payload)),
    }
}

#[cold]
fn panicked(poison: &Poison, path: Option<&Path>, payload: &(dyn Any + Send)) -> Error {
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref().copied());
    let text = text.unwrap_or("a panic without a text").lines().next().unwrap_or_default();
    let panic = poison.0.get_or_init(|| text.to_owned());
    corrupt(format!("redb failed on them: {panic}"), path)
}

fn corrupt(detail: String, path: Option<&Path>) -> Error {
    let context = Context::new(detail);
    Error::Corrupt(Box::new(match path {
        Some(path) => context.at(path),
        None => context,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_later_writes_repeat() {
        let (poison, path) = (Poison::default(), Some(Path::new("/db")));
        assert!(poison.check(path).is_ok());
        assert_eq!(guarded(&poison, path, || Ok(5)).unwrap(), 5);
        let error = guarded::<()>(&poison, path, || panic!("range end {} out of range\nmore", 7)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the stored bytes are damaged: redb failed on them: range end 7 out of range (/db)"
        );
        let refused = poison.check(path).unwrap_err().to_string();
        assert!(refused.contains("range end 7") && refused.contains("nothing is written"), "{refused}");
        assert_eq!(guarded(&poison, path, || Ok(6)).unwrap(), 6, "reads are tried");
    }
}
