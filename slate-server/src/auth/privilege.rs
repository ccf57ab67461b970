use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

/// Declares the actions, with MongoDB's names.
macro_rules! actions {
    ($($action:ident $name:literal,)*) => {
        /// What a command does to a resource, as MongoDB's privileges name it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Action {
            $($action,)*
        }

        impl Action {
            /// All actions, sorted by name.
            pub(super) const ALL: &[Self] = &[$(Self::$action),*];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    Backup "backup",
    BypassDocumentValidation "bypassDocumentValidation",
    ChangeCustomData "changeCustomData",
    ChangePassword "changePassword",
    ChangeStream "changeStream",
    CollMod "collMod",
    CollStats "collStats",
    Compact "compact",
    ConvertToCapped "convertToCapped",
    CreateCollection "createCollection",
    CreateIndex "createIndex",
    CreateRole "createRole",
    CreateUser "createUser",
    DbHash "dbHash",
    DbStats "dbStats",
    DropCollection "dropCollection",
    DropDatabase "dropDatabase",
    DropIndex "dropIndex",
    DropRole "dropRole",
    DropUser "dropUser",
    EnableProfiler "enableProfiler",
    Find "find",
    Fsync "fsync",
    GetCmdLineOpts "getCmdLineOpts",
    GetLog "getLog",
    GetParameter "getParameter",
    GrantRole "grantRole",
    HostInfo "hostInfo",
    IndexStats "indexStats",
    Inprog "inprog",
    Insert "insert",
    KillAnyCursor "killAnyCursor",
    KillAnySession "killAnySession",
    KillCursors "killCursors",
    Killop "killop",
    ListCollections "listCollections",
    ListDatabases "listDatabases",
    ListIndexes "listIndexes",
    ListSessions "listSessions",
    PlanCacheRead "planCacheRead",
    PlanCacheWrite "planCacheWrite",
    ReIndex "reIndex",
    Remove "remove",
    RenameCollectionSameDB "renameCollectionSameDB",
    ReplSetConfigure "replSetConfigure",
    ReplSetGetConfig "replSetGetConfig",
    ReplSetGetStatus "replSetGetStatus",
    RevokeRole "revokeRole",
    ServerStatus "serverStatus",
    SetParameter "setParameter",
    Shutdown "shutdown",
    Top "top",
    Update "update",
    Validate "validate",
    ViewRole "viewRole",
    ViewUser "viewUser",
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions(u64);

const _: () = assert!(Action::ALL.len() <= 64, "a set has one bit for each action");

impl Actions {
    pub(crate) const fn of(actions: &[Action]) -> Self {
        let (mut set, mut rest) = (0, actions);
        while let [first, others @ ..] = rest {
            (set, rest) = (set | 1 << *first as u64, others);
        }
        Self(set)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn contains(self, action: Action) -> bool {
        self.0 & Self::of(&[action]).0 != 0
    }

    /// Returns the actions that are not in `other`.
    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The resource that a privilege is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The server as a whole.
    Cluster,
    /// Every database except `local` and `config`, with their collections except those named `system.…`.
    AnyNormal,
    /// A database, with its collections except those named `system.…`.
    Database(String),
    /// One collection.
    Collection(String, &'static str),
    /// The collection of this name in every database.
    AnyCollection(&'static str),
}

/// What a command acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Cluster,
    /// All databases at once.
    AnyNormal,
    Database(String),
    Collection(String, String),
}

impl Resource {
    /// Whether a privilege on this resource includes the target.
    fn covers(&self, target: &Target) -> bool {
        let is_normal = |database: &str| !matches!(database, "local" | "config");
        match (self, target) {
            (Self::Cluster, Target::Cluster) | (Self::AnyNormal, Target::AnyNormal) => true,
            (Self::AnyNormal, Target::Database(database)) => is_normal(database),
            (Self::AnyNormal, Target::Collection(database, name)) => is_normal(database) && !is_system(name),
            (Self::Database(of), Target::Database(database)) => of == database,
            (Self::Database(of), Target::Collection(database, name)) => of == database && !is_system(name),
            (Self::Collection(of, own), Target::Collection(database, name)) => of == database && own == name,
            (Self::AnyCollection(own), Target::Collection(_, name)) => own == name,
            _ => false,
        }
    }

    /// Whether the resource includes the database or a collection that can be in it.
    fn is_within(&self, database: &str) -> bool {
        match self {
            Self::Cluster => false,
            Self::AnyNormal | Self::AnyCollection(_) => true,
            Self::Database(of) | Self::Collection(of, _) => of == database,
        }
    }

    fn describe(&self) -> RawDocumentBuf {
        match self {
            Self::Cluster => rawdoc! { "cluster": true },
            Self::AnyNormal => rawdoc! { "db": "", "collection": "" },
            Self::Database(database) => rawdoc! { "db": &**database, "collection": "" },
            Self::Collection(database, name) => rawdoc! { "db": &**database, "collection": *name },
            Self::AnyCollection(name) => rawdoc! { "db": "", "collection": *name },
        }
    }
}

/// Whether a collection is a system collection, which privileges on databases do not include.
pub(crate) fn is_system(collection: &str) -> bool {
    collection.starts_with("system.")
}

/// A right: actions on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Privilege {
    pub(super) resource: Resource,
    pub(super) actions: Actions,
}

impl Privilege {
    /// Whether the privileges together contain all actions on the target.
    pub(crate) fn allow(privileges: &[Self], target: &Target, actions: Actions) -> bool {
        let mut missing = actions;
        for privilege in privileges {
            if missing.is_empty() {
                break;
            }
            if privilege.resource.covers(target) {
                missing = missing.without(privilege.actions);
            }
        }
        missing.is_empty()
    }

    /// Whether there is a privilege on the database or on a collection in it.
    pub(crate) fn concern(privileges: &[Self], database: &str) -> bool {
        privileges.iter().any(|privilege| privilege.resource.is_within(database))
    }

    /// Returns the names of the databases in the privileges; `None` if one is on all databases.
    pub(crate) fn databases(privileges: &[Self]) -> Option<Vec<&str>> {
        let mut names = Vec::new();
        for privilege in privileges {
            match &privilege.resource {
                Resource::Cluster => {}
                Resource::AnyNormal | Resource::AnyCollection(_) => return None,
                Resource::Database(name) | Resource::Collection(name, _) => names.push(&**name),
            }
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    }

    /// Adds the privilege, merged with one on the same resource.
    pub(super) fn add_to(self, privileges: &mut Vec<Self>) {
        match privileges.iter_mut().find(|known| known.resource == self.resource) {
            Some(known) => known.actions = known.actions.and(self.actions),
            None => privileges.push(self),
        }
    }

    /// Returns the privilege as MongoDB's document `{resource, actions}`.
    pub(crate) fn describe(&self) -> RawDocumentBuf {
        let actions = Action::ALL.iter().filter(|action| self.actions.contains(**action));
        let actions: RawArrayBuf = actions.map(|action| action.name()).collect();
        rawdoc! { "resource": self.resource.describe(), "actions": actions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_sorted_by_name() {
        assert!(Action::ALL.is_sorted_by(|a, b| a.name() < b.name()));
    }

    #[test]
    fn resources_cover_what_mongodb_says() {
        let database = |name: &str| Target::Database(name.into());
        let collection = |database: &str, name: &str| Target::Collection(database.into(), name.into());
        let shop = Resource::Database("shop".into());
        for (resource, target, expected) in [
            (&Resource::Cluster, Target::Cluster, true),
            (&Resource::Cluster, database("shop"), false),
            (&Resource::AnyNormal, Target::Cluster, false),
            (&Resource::AnyNormal, Target::AnyNormal, true),
            (&Resource::AnyNormal, database("shop"), true),
            (&Resource::AnyNormal, database("config"), false),
            (&Resource::AnyNormal, collection("shop", "users"), true),
            (&Resource::AnyNormal, collection("config", "transactions"), false),
            (&Resource::AnyNormal, collection("admin", "system.users"), false),
            (&shop, database("shop"), true),
            (&shop, Target::AnyNormal, false),
            (&shop, database("other"), false),
            (&shop, collection("shop", "users"), true),
            (&shop, collection("shop", "system.profile"), false),
            (&shop, collection("other", "users"), false),
            (&Resource::Collection("admin".into(), "system.users"), collection("admin", "system.users"), true),
            (&Resource::Collection("admin".into(), "system.users"), collection("shop", "system.users"), false),
        ] {
            assert_eq!(resource.covers(&target), expected, "{resource:?}, {target:?}");
        }
    }

    #[test]
    fn privileges_add_up() {
        let on = |resource: Resource, actions: &[Action]| Privilege { resource, actions: Actions::of(actions) };
        let shop = || Resource::Database("shop".into());
        let mut privileges = vec![on(Resource::AnyNormal, &[Action::Find])];
        for one in [on(shop(), &[Action::Insert]), on(shop(), &[Action::Update])] {
            one.add_to(&mut privileges);
        }
        assert_eq!(privileges.len(), 2);
        let wanted = Actions::of(&[Action::Find, Action::Insert, Action::Update]);
        assert!(Privilege::allow(&privileges, &Target::Collection("shop".into(), "c".into()), wanted));
        assert!(!Privilege::allow(&privileges, &Target::Collection("other".into(), "c".into()), wanted));
        assert_eq!(Privilege::databases(&privileges), None);
        assert_eq!(Privilege::databases(&privileges[1..]), Some(vec!["shop"]));
    }
}
