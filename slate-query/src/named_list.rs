use ahash::RandomState;
use hashbrown::HashTable;

/// Values in order, each found by its name. The names are distinct.
///
/// Few names are compared one by one, many are hashed.
#[derive(Clone, Debug)]
pub(crate) struct NamedList<K, T> {
    entries: Vec<(K, T)>,
    /// The places of all names, once there are more than [`FEW`].
    places: Option<Box<Places>>,
}

#[derive(Clone, Debug, Default)]
struct Places {
    state: RandomState,
    table: HashTable<usize>,
}

/// A name by which a list is searched.
pub(crate) trait ListName {
    fn as_bytes(&self) -> &[u8];
}

impl ListName for Box<str> {
    fn as_bytes(&self) -> &[u8] {
        str::as_bytes(self)
    }
}

impl ListName for Box<[u8]> {
    fn as_bytes(&self) -> &[u8] {
        self
    }
}

impl ListName for &str {
    fn as_bytes(&self) -> &[u8] {
        str::as_bytes(self)
    }
}

impl ListName for &[u8] {
    fn as_bytes(&self) -> &[u8] {
        self
    }
}

/// Up to this number of names comparing is faster than hashing.
const FEW: usize = 16;

impl<K, T> Default for NamedList<K, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: None }
    }
}

impl<K: ListName, T> NamedList<K, T> {
    /// Returns the entries in order.
    pub(crate) fn as_slice(&self) -> &[(K, T)] {
        &self.entries
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, T)> {
        self.entries.iter()
    }

    /// Returns the entries in order.
    pub(crate) fn into_entries(self) -> Vec<(K, T)> {
        self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn place(&self, name: &[u8]) -> Option<usize> {
        let has_name = |place: usize| self.entries.get(place).is_some_and(|(other, _)| other.as_bytes() == name);
        match &self.places {
            None => self.entries.iter().position(|(other, _)| other.as_bytes() == name),
            Some(places) => places.table.find(places.state.hash_one(name), |place| has_name(*place)).copied(),
        }
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        self.entries.get(self.place(name)?).map(|(_, value)| value)
    }

    pub(crate) fn at_mut(&mut self, place: usize) -> Option<&mut T> {
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Appends a value whose name is new. Returns its place.
    pub(crate) fn push(&mut self, name: K, value: T) -> usize {
        let place = self.entries.len();
        self.entries.push((name, value));
        match &mut self.places {
            None if place < FEW => {}
            None => {
                let mut places = Box::new(Places::default());
                (0..=place).for_each(|place| places.add(&self.entries, place));
                self.places = Some(places);
            }
            Some(places) => places.add(&self.entries, place),
        }
        place
    }

    /// Sets the value of a name. A new name comes last, a known one keeps its place.
    pub(crate) fn set(&mut self, name: K, value: T) {
        match self.place(name.as_bytes()).and_then(|place| self.entries.get_mut(place)) {
            Some((_, old)) => *old = value,
            None => {
                self.push(name, value);
            }
        }
    }
}

impl Places {
    /// Adds the place of an entry. The names are distinct, so it replaces none.
    fn add<K: ListName, T>(&mut self, entries: &[(K, T)], place: usize) {
        let Self { state, table } = self;
        let hash = |place: &usize| entries.get(*place).map_or(0, |(name, _)| state.hash_one(name.as_bytes()));
        table.insert_unique(hash(&place), place, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_many_there_are() {
        let mut list = NamedList::default();
        for number in 0..100_usize {
            let name: Box<str> = format!("n{number}").into();
            assert_eq!(list.place(name.as_bytes()), None);
            list.set(name, number);
            for known in 0..=number {
                assert_eq!(list.get(format!("n{known}").as_bytes()), Some(&known));
            }
        }
        list.set("n5".into(), 500);
        assert_eq!((list.len(), list.place(b"n5"), list.get(b"n5")), (100, Some(5), Some(&500)));
    }
}
