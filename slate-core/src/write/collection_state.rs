use crate::catalog::Change;

/// The state of a transaction per collection that it has read or written, sorted by name. Most transactions have one or
/// two.
#[derive(Debug, Default)]
pub(super) struct CollectionStates(Vec<CollectionState>);

/// The state of a transaction for one collection.
#[derive(Debug, Default)]
pub(super) struct CollectionState {
    name: Box<str>,
    /// Whether the transaction relies on the collection's definition, and therefore guards it.
    pub(super) guarded: bool,
    /// Whether the transaction wrote documents.
    pub(super) written: bool,
    /// Whether the transaction read more than single documents, so that any write by another transaction conflicts.
    pub(super) read_whole: bool,
    /// The change of the collection that must be written to the catalog.
    pub(super) change: Option<Change>,
    /// Number of records by which the transaction makes the collection grow.
    pub(super) growth: i64,
}

impl CollectionStates {
    /// Returns the state of the collection with this name, creating it if necessary.
    pub(super) fn of(&mut self, name: &str) -> &mut CollectionState {
        let place = self.0.binary_search_by(|state| (*state.name).cmp(name)).unwrap_or_else(|place| {
            self.0.insert(place, CollectionState { name: name.into(), ..CollectionState::default() });
            place
        });
        #[expect(clippy::indexing_slicing, reason = "it was found there, or put there")]
        &mut self.0[place]
    }

    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.names(|state| state.written)
    }

    pub(super) fn read_whole(&self) -> impl Iterator<Item = &str> {
        self.names(|state| state.read_whole)
    }

    /// Returns the collections whose catalog entries change, and how.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&str, Change)> {
        self.0.iter().filter_map(|state| Some((&*state.name, state.change?)))
    }

    /// Returns the collections whose definitions change or that were read as a whole: they conflict with every writer.
    pub(super) fn redefined(&self) -> impl Iterator<Item = &str> {
        self.names(|state| state.change == Some(Change::Definition) || state.read_whole)
    }

    /// Returns whether the transaction conflicts with a change of the collection's definition.
    pub(super) fn relies_on(&self, name: &str) -> bool {
        let mut found = self.0.iter().filter(|state| *state.name == *name);
        found.any(|state| state.guarded || state.change.is_some() || state.read_whole)
    }

    /// Returns the collections that grow or shrink, and by how many records.
    pub(super) fn grown(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().filter(|state| state.growth != 0).map(|state| (&*state.name, state.growth))
    }

    fn names(&self, wanted: impl Fn(&CollectionState) -> bool) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |state| wanted(state)).map(|state| &*state.name)
    }
}

impl CollectionState {
    /// Notes that the catalog entry changes. A change of the definition includes its properties.
    pub(super) fn change(&mut self, change: Change) {
        self.change = self.change.max(Some(change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collection_is_listed_once_and_in_order_with_all_that_is_known_of_it() {
        let mut states = CollectionStates::default();
        for name in ["m", "a", "z", "b"] {
            states.of(name).written = true;
        }
        states.of("a").change(Change::Definition);
        states.of("a").change(Change::Properties);
        states.of("m").read_whole = true;
        states.of("b").growth = -2;
        states.of("c").guarded = true;
        assert_eq!(states.written().collect::<Vec<_>>(), ["a", "b", "m", "z"]);
        assert_eq!(states.changed().collect::<Vec<_>>(), [("a", Change::Definition)]);
        assert_eq!(states.read_whole().collect::<Vec<_>>(), ["m"]);
        assert_eq!(states.grown().collect::<Vec<_>>(), [("b", -2)]);
        assert_eq!(states.redefined().collect::<Vec<_>>(), ["a", "m"]);
        assert_eq!(["a", "b", "c", "d"].map(|name| states.relies_on(name)), [true, false, true, false]);
        assert!(states.of("c").guarded && !states.of("a").guarded);
    }
}
