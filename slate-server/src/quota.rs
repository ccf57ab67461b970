use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::failure::{Code, Failure, Result};

/// A limited number of places for something that the server holds for its clients. Where there are users, one of them takes at most
/// three quarters of the places, so that others can enter.
#[derive(Debug)]
pub(crate) struct Quota {
    /// What takes a place, in the plural.
    what: &'static str,
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_user: HashMap<[u8; 32], usize>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct QuotaPlace {
    quota: Arc<Quota>,
    user: Option<[u8; 32]>,
}

impl Quota {
    pub(crate) fn new(what: &'static str, most: usize) -> Arc<Self> {
        Arc::new(Self { what, most, taken: Mutex::default() })
    }

    /// Takes a place for a user, or for one of the clients without users.
    ///
    /// # Errors
    /// Fails with `ExceededMemoryLimit` (146) if there is none.
    pub(crate) fn take(self: &Arc<Self>, user: Option<[u8; 32]>) -> Result<QuotaPlace> {
        let (what, most, share) = (self.what, self.most, self.most - self.most / 4);
        let mut taken = self.taken();
        let refused = |message: String| Err(Failure::new(Code(146, "ExceededMemoryLimit"), message));
        if taken.all >= most {
            return refused(format!("the server holds {most} {what}, which is its limit"));
        }
        if let Some(user) = user {
            let own = taken.by_user.entry(user).or_default();
            if *own >= share {
                return refused(format!("the user has {own} {what}, and one user may have {share} of {most}"));
            }
            *own += 1;
        }
        taken.all += 1;
        Ok(QuotaPlace { quota: Arc::clone(self), user })
    }

    /// Returns how many places are taken.
    pub(crate) fn taken_places(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QuotaPlace {
    fn drop(&mut self) {
        let mut taken = self.quota.taken();
        taken.all -= 1;
        if let Some(user) = self.user
            && let Some(own) = taken.by_user.get_mut(&user)
        {
            *own -= 1;
            if *own == 0 {
                taken.by_user.remove(&user);
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
        let user = |number: u8| Some([number; 32]);
        let mut held: Vec<QuotaPlace> = (0..3).map(|_| quota.take(user(1)).unwrap()).collect();
        let refused = quota.take(user(1)).unwrap_err();
        assert_eq!((refused.code, refused.message()), (146, "the user has 3 eggs, and one user may have 3 of 4"));
        held.push(quota.take(user(2)).unwrap());
        let refused = quota.take(user(2)).unwrap_err();
        assert_eq!(refused.message(), "the server holds 4 eggs, which is its limit");
        held.clear();
        assert_eq!(quota.taken_places(), 0);
        assert!(quota.taken().by_user.is_empty());
        let all: Vec<QuotaPlace> = (0..4).map(|_| quota.take(None).unwrap()).collect();
        assert_eq!((all.len(), quota.take(None).unwrap_err().code), (4, 146));
    }
}
