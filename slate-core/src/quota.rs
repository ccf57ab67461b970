use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::AHashMap;
use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// A limit on the number of things held for callers, such as open cursors: each needs a place. One user gets at most three quarters of the places, so
/// that some are left for others.
///
/// ```
/// use slate_core::Quota;
///
/// let quota = Quota::new("uploads", 4);
/// let ann = || quota.take(Some(b"ann".as_slice().into()));
/// let places = (ann()?, ann()?, ann()?);
/// assert_eq!(ann().unwrap_err().message(), "the user has 3 open uploads, and one user may have 3 of 4");
/// drop(places);
/// assert!(ann().is_ok());
/// # Ok::<(), slate_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Quota {
    /// The name of the things that need a place, in the plural.
    what: &'static str,
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug)]
struct TakenPlaces {
    most: usize,
    all: usize,
    by_user: AHashMap<Arc<[u8]>, usize>,
}

/// A place in a [`Quota`], which is free again when this is dropped.
#[derive(Debug)]
pub struct QuotaPlace {
    quota: Arc<Quota>,
    user: Option<Arc<[u8]>>,
}

impl Quota {
    /// Creates a quota of `most` places. `what` names the things in errors, in the plural.
    pub fn new(what: &'static str, most: usize) -> Arc<Self> {
        Arc::new(Self { what, taken: Mutex::new(TakenPlaces { most, all: 0, by_user: AHashMap::new() }) })
    }

    /// Sets the number of places. Places in use are not affected.
    pub fn limit(&self, most: usize) {
        self.taken().most = most;
    }

    /// Returns a place for a user, named by any bytes, or for a caller without a user.
    ///
    /// # Errors
    /// Fails with `ExceededMemoryLimit` (146) if all places, or the user's three quarters, are in use.
    pub fn take(self: &Arc<Self>, user: Option<Arc<[u8]>>) -> Result<QuotaPlace> {
        let (what, mut taken) = (self.what, self.taken());
        let TakenPlaces { most, all, by_user } = &mut *taken;
        let (most, share) = (*most, *most - *most / 4);
        let full = |message: String| Err(Error::new(ErrorKind::Full, Code::EXCEEDED_MEMORY_LIMIT, message));
        if *all >= most {
            return full(format!("{most} {what} are open, which is the limit"));
        }
        if let Some(user) = &user {
            let own = by_user.entry(Arc::clone(user)).or_default();
            if *own >= share {
                return full(format!("the user has {own} open {what}, and one user may have {share} of {most}"));
            }
            *own += 1;
        }
        *all += 1;
        drop(taken);
        Ok(QuotaPlace { quota: Arc::clone(self), user })
    }

    /// Returns how many places are in use.
    pub fn taken_places(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, TakenPlaces> {
        // No code panics while it is locked.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QuotaPlace {
    fn drop(&mut self) {
        let mut taken = self.quota.taken();
        taken.all -= 1;
        if let Some(user) = &self.user
            && let Some(own) = taken.by_user.get_mut(user)
        {
            *own -= 1;
            if *own == 0 {
                taken.by_user.remove(user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_takes_three_quarters_and_places_are_given_back() {
        let quota = Quota::new("eggs", 4);
        let user = |number: u8| Some(Arc::from([number; 32]));
        let mut held: Vec<QuotaPlace> = (0..3).map(|_| quota.take(user(1)).unwrap()).collect();
        let refused = quota.take(user(1)).unwrap_err();
        assert_eq!(
            (refused.code(), refused.message()),
            (146, "the user has 3 open eggs, and one user may have 3 of 4")
        );
        held.push(quota.take(user(2)).unwrap());
        let refused = quota.take(user(2)).unwrap_err();
        assert_eq!(refused.message(), "4 eggs are open, which is the limit");
        held.clear();
        assert_eq!(quota.taken_places(), 0);
        assert!(quota.taken().by_user.is_empty());
        let all: Vec<QuotaPlace> = (0..4).map(|_| quota.take(None).unwrap()).collect();
        assert_eq!((all.len(), quota.take(None).unwrap_err().code()), (4, 146));
        quota.limit(5);
        assert!(quota.take(user(1)).is_ok());
    }
}
