//! The state of a transaction per collection.

/// The collections that a transaction has read or written, sorted by name. Most transactions have one or two.
#[derive(Debug, Default)]
pub(super) struct Involved(Vec<Involvement>);

/// The state of a transaction for one collection.
#[derive(Debug, Default)]
pub(super) struct Involvement {
    name: Box<str>,
    /// It relies on the collection's definition, which it guards.
    pub(super) guarded: bool,
    /// It wrote documents.
    pub(super) written: bool,
    /// It read more than single documents, so any write by another transaction conflicts.
    pub(super) watched: bool,
    /// The collection's definition in the catalog must be written.
    pub(super) changed: bool,
    /// Number of records by which it makes the collection grow.
    pub(super) added: i64,
}

impl Involved {
    /// Returns the state of the collection with this name, creating it if necessary.
    pub(super) fn of(&mut self, name: &str) -> &mut Involvement {
        let place = self.0.binary_search_by(|involvement| (*involvement.name).cmp(name)).unwrap_or_else(|place| {
            self.0.insert(place, Involvement { name: name.into(), ..Involvement::default() });
            place
        });
        #[expect(clippy::indexing_slicing, reason = "it was found there, or put there")]
        &mut self.0[place]
    }

    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.names(|involvement| involvement.written)
    }

    pub(super) fn watched(&self) -> impl Iterator<Item = &str> {
        self.names(|involvement| involvement.watched)
    }

    pub(super) fn changed(&self) -> impl Iterator<Item = &str> {
        self.names(|involvement| involvement.changed)
    }

    /// Returns the collections that grow or shrink, and by how many records.
    pub(super) fn grown(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().filter(|involvement| involvement.added != 0).map(|grown| (&*grown.name, grown.added))
    }

    fn names(&self, wanted: impl Fn(&Involvement) -> bool) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |involvement| wanted(involvement)).map(|involvement| &*involvement.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collection_is_listed_once_and_in_order_with_all_that_is_known_of_it() {
        let mut involved = Involved::default();
        for name in ["m", "a", "z", "b"] {
            involved.of(name).written = true;
        }
        involved.of("a").changed = true;
        involved.of("m").watched = true;
        involved.of("b").added = -2;
        involved.of("c").guarded = true;
        assert_eq!(involved.written().collect::<Vec<_>>(), ["a", "b", "m", "z"]);
        assert_eq!(involved.changed().collect::<Vec<_>>(), ["a"]);
        assert_eq!(involved.watched().collect::<Vec<_>>(), ["m"]);
        assert_eq!(involved.grown().collect::<Vec<_>>(), [("b", -2)]);
        assert!(involved.of("c").guarded && !involved.of("a").guarded);
    }
}
