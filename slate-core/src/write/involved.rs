//! What a transaction has to do with each collection.

/// The collections that a transaction has to do with, in the order of their names: of most transactions one or two.
#[derive(Debug, Default)]
pub(super) struct Involved(Vec<Involvement>);

/// What a transaction has to do with one collection.
#[derive(Debug, Default)]
pub(super) struct Involvement {
    name: Box<str>,
    /// It relies on the collection's definition.
    pub(super) guarded: bool,
    /// It wrote documents.
    pub(super) written: bool,
    /// It read more than single documents: nobody may have written to them meanwhile.
    pub(super) watched: bool,
    /// The collection's entry in the catalog must be written.
    pub(super) changed: bool,
    /// By how many records it makes the collection grow.
    pub(super) added: i64,
}

impl Involved {
    /// The collection of that name, listed from now on.
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

    /// The collections that grow or shrink, and by how many records.
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
