//! Collections, views, options and indexes.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{ExistingCollections, RenameTarget, ValidationAction, ValidationLevel};
use slate_query::{
    collation::Collation,
    expression::Bindings,
    pipeline,
    raw::{self, Doc},
};

use super::{Answer, Effects, Model, Namespace, Options};
use crate::{
    call::{Call, Creation, Rules, ViewOf, renamed, split, ttl_condition},
    common::{
        random::{RandomIndex, collation},
        raw,
    },
};

impl Model {
    pub(super) fn definition(&self, name: &'static str, call: &Call) -> Effects {
        let nothing = || Answer::Counts(Vec::new());
        let one = |(state, answer)| Some(vec![(state, answer)]);
        match call {
            Call::Create(creation) => one((self.create(name, creation)?, nothing())),
            Call::SetView(view) => {
                self.existing(name, Kind::View)?;
                let options = view_options(view)?;
                one((self.with_options(name, options)?.without_cycle(name)?, nothing()))
            }
            Call::SetValidator(rules) => {
                self.existing(name, Kind::Collection)?;
                one((self.with_options(name, rule_options(rules.as_ref()))?, nothing()))
            }
            Call::KeepImages(is_kept) => {
                self.existing(name, Kind::Collection)?;
                one((self.with_options(name, [image_option(*is_kept)])?, nothing()))
            }
            Call::Rename { to, target } => one((self.rename(name, renamed(split(name).0, to), *target)?, nothing())),
            Call::HideIndex(position, is_hidden) => one(self.hide(name, *position, *is_hidden)?),
            Call::CreateIndex(index) => self.create_index(name, index_options(index)),
            Call::CreateTtl { seconds, is_hidden, is_partial } => {
                let mut options = doc! { "v": 2, "key": { "t": 1 }, "name": "t_1", "expireAfterSeconds": i32::try_from(*seconds).unwrap() };
                if *is_hidden {
                    options.insert("hidden", true);
                }
                if *is_partial {
                    options.insert("partialFilterExpression", ttl_condition());
                }
                self.create_index(name, options)
            }
            Call::DropIndex(position) => {
                self.not_view(name)?;
                let dropped = self.index_at(name, *position);
                let mut next = self.clone();
                if let (Some(index), Some(namespace)) = (&dropped, next.0.get_mut(name)) {
                    namespace.indexes.remove(index);
                }
                one((next, Answer::Counts(vec![dropped.is_some().into()])))
            }
            Call::DropCollection => {
                let mut next = self.clone();
                let dropped = next.0.remove(name).is_some();
                one((next, Answer::Counts(vec![dropped.into()])))
            }
            other => panic!("no definition: {other:?}"),
        }
    }

    fn existing(&self, name: &str, kind: Kind) -> Option<&Namespace> {
        self.0.get(name).filter(|namespace| namespace.is_view() == (kind == Kind::View))
    }

    fn not_view(&self, name: &str) -> Option<()> {
        (!self.is_view(name)).then_some(())
    }

    fn with_options<const N: usize>(&self, name: &str, options: [(&'static str, Option<Bson>); N]) -> Option<Self> {
        let mut next = self.clone();
        let namespace = next.0.get_mut(name)?;
        namespace.options = namespace.options.with(options);
        Some(next)
    }

    fn create(&self, name: &'static str, creation: &Creation) -> Option<Self> {
        if self.0.contains_key(name) {
            return None;
        }
        let mut next = self.clone();
        next.0.insert(name, Namespace::default());
        let collated = |is_collated: bool| [("collation", is_collated.then(|| full_collation().into()))];
        match creation {
            Creation::Collection { is_collated, rules, keeps_images } => next
                .with_options(name, rule_options(rules.as_ref()))?
                .with_options(name, [image_option(*keeps_images)])?
                .with_options(name, collated(*is_collated)),
            Creation::View { view, is_collated } => next
                .with_options(name, view_options(view)?)?
                .with_options(name, collated(*is_collated))?
                .without_cycle(name),
        }
    }

    /// Returns the state unless this view reads itself.
    fn without_cycle(self, name: &'static str) -> Option<Self> {
        let mut at = name;
        loop {
            let Some(Bson::String(on)) = self.0.get(at).and_then(|namespace| namespace.options.get("viewOn")) else {
                return Some(self);
            };
            match self.sibling(at, &on) {
                Some(on) if on == name => return None,
                Some(on) => at = on,
                None => return Some(self),
            }
        }
    }

    fn rename(&self, name: &'static str, to: &'static str, target: RenameTarget) -> Option<Self> {
        self.existing(name, Kind::Collection)?;
        let is_free = !self.0.contains_key(to) || target == RenameTarget::DropExisting && !self.is_view(to);
        if name == to || !is_free {
            return None;
        }
        let mut next = self.clone();
        let moved = next.0.remove(name)?;
        next.0.insert(to, moved);
        Some(next)
    }

    /// Returns the name of the index at this place, in the order of names.
    fn index_at(&self, name: &str, position: usize) -> Option<String> {
        self.0.get(name)?.indexes.keys().nth(position).cloned()
    }

    fn hide(&self, name: &str, position: usize, is_hidden: bool) -> Option<(Self, Answer)> {
        let index = self.index_at(name, position)?;
        let mut next = self.clone();
        let options = next.0.get_mut(name)?.indexes.get_mut(&index)?;
        let was_hidden = options.get("hidden").is_some();
        *options = options.with([("hidden", is_hidden.then_some(Bson::Boolean(true)))]);
        Some((next, Answer::Counts(vec![was_hidden.into()])))
    }

    fn create_index(&self, name: &'static str, mut options: Document) -> Effects {
        self.not_view(name)?;
        let answer = Answer::Other(String::new());
        let mut next = self.clone();
        let namespace = next.0.entry(name).or_default();
        if options.get_document("key").is_ok_and(|keys| *keys == doc! { "_id": 1 }) {
            return Some(vec![(next, answer)]);
        }
        if !options.contains_key("collation")
            && let Some(collation) = namespace.options.get("collation")
        {
            options.insert("collation", collation);
        }
        let (index, options) = (options.get_str("name").unwrap().to_owned(), Options::of(options));
        let shown = |options: &Options| options.with([("hidden", None)]);
        if let Some(there) = namespace.indexes.get(&index) {
            return (shown(there) == shown(&options)).then(|| vec![(self.clone(), answer)]);
        }
        namespace.indexes.insert(index, options);
        Some(vec![(next, answer)])
    }

    /// Returns the state after a change of the time after which the documents of an index expire; `None` if it must fail.
    pub(crate) fn set_expiry(&self, name: &str, index: &str, seconds: u32) -> Option<Self> {
        let mut next = self.clone();
        let options = next.0.get_mut(name)?.indexes.get_mut(index)?;
        let keys = options.get("key")?;
        let keys = keys.as_document()?;
        let is_plain = keys.len() == 1 && keys.keys().all(|key| !key.ends_with("$**") && key != "_id");
        *options = options.with([("expireAfterSeconds", Some(Bson::Int32(i32::try_from(seconds).ok()?)))]);
        is_plain.then_some(next)
    }

    /// Returns the state of a copy into a database with a collection `y`, which has one document; `None` if the copy must fail.
    pub(crate) fn copied_beside(&self, existing: ExistingCollections) -> Option<Self> {
        let there = Self::default().with("y", vec![raw(&doc! { "_id": "there" })])?;
        match existing {
            ExistingCollections::Refuse => return None,
            ExistingCollections::Keep if self.0.contains_key("y") => return None,
            ExistingCollections::Keep | ExistingCollections::Replace => {}
        }
        let mut copy = self.clone();
        for (name, namespace) in there.0 {
            copy.0.entry(name).or_insert(namespace);
        }
        Some(copy)
    }

    /// Returns the name of the index at this place, and whether it is a TTL index.
    pub(crate) fn index(&self, name: &str, position: usize) -> Option<(String, bool)> {
        let index = self.index_at(name, position)?;
        let is_ttl = self.0.get(name)?.indexes.get(&index)?.get("expireAfterSeconds").is_some();
        Some((index, is_ttl))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Collection,
    View,
}

fn full_collation() -> Document {
    let parsed = Collation::parse(Doc::from(&raw(&collation()))).unwrap().unwrap();
    Document::try_from(parsed.to_document().as_ref()).unwrap()
}

/// Returns the options of a view; `None` if its pipeline is invalid.
fn view_options(view: &ViewOf) -> Option<[(&'static str, Option<Bson>); 2]> {
    let stages: Vec<RawDocumentBuf> = view.pipeline.iter().map(raw).collect();
    pipeline::parse(
        stages.iter().map(|stage| raw::Value::new(raw::Kind::Document, stage.as_bytes())),
        &Bindings::new(0),
    )
    .ok()?;
    let pipeline: Vec<Bson> = view.pipeline.iter().cloned().map(Bson::from).collect();
    Some([("viewOn", Some(view.on.into())), ("pipeline", Some(pipeline.into()))])
}

fn rule_options(rules: Option<&Rules>) -> [(&'static str, Option<Bson>); 3] {
    // An empty filter is no validator, but its options are stored for a later one.
    let has_filter = rules.is_some_and(|rules| !rules.filter.is_empty());
    let is_shown = |default: bool| has_filter || !default;
    let level = |rules: &Rules| match rules.level {
        ValidationLevel::Off => "off",
        ValidationLevel::Strict => "strict",
        ValidationLevel::Moderate => "moderate",
    };
    let action = |rules: &Rules| match rules.action {
        ValidationAction::Error => "error",
        ValidationAction::Warn => "warn",
    };
    [
        ("validator", rules.filter(|_| has_filter).map(|rules| rules.filter.clone().into())),
        ("validationLevel", rules.map(level).filter(|level| is_shown(*level == "strict")).map(Into::into)),
        ("validationAction", rules.map(action).filter(|action| is_shown(*action == "error")).map(Into::into)),
    ]
}

fn image_option(is_kept: bool) -> (&'static str, Option<Bson>) {
    ("changeStreamPreAndPostImages", is_kept.then(|| doc! { "enabled": true }.into()))
}

fn index_options(index: &RandomIndex) -> Document {
    let names: Vec<String> = index.keys.iter().map(|(path, direction)| format!("{path}_{direction}")).collect();
    let mut options = doc! { "v": 2, "key": index.keys.clone(), "name": names.join("_") };
    for (option, is_set) in [("unique", index.unique), ("sparse", index.sparse)] {
        if is_set {
            options.insert(option, true);
        }
    }
    if let Some(filter) = &index.partial {
        options.insert("partialFilterExpression", filter.clone());
    }
    if let Some(projection) = &index.projection {
        options.insert("wildcardProjection", projection.clone());
    }
    if index.is_collated {
        options.insert("collation", full_collation());
    }
    options
}
