use bson::{RawArrayBuf, RawBsonRef, RawDocumentBuf, rawdoc};

use super::privilege::{
    Action::{self, *},
    Actions, Privilege, Resource,
};
use crate::{
    failure::{Code, Failure, Result},
    profiler::PROFILE,
};

/// A role of a database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) database: String,
}

/// MongoDB's actions of the role `read` on a database.
const READ: Actions = Actions::of(&[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
]);

/// The actions that `readWrite` adds to those of `read`.
const WRITE: Actions = Actions::of(&[
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    DropIndex,
    Insert,
    Remove,
    RenameCollectionSameDB,
    Update,
]);

const READ_WRITE: Actions = READ.and(WRITE);

const USER_ADMIN: Actions = Actions::of(&[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    ViewRole,
    ViewUser,
]);

const DB_ADMIN: Actions = Actions::of(&[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    Validate,
]);

const MONITOR_CLUSTER: Actions = Actions::of(&[
    GetCmdLineOpts,
    GetLog,
    GetParameter,
    HostInfo,
    Inprog,
    ListDatabases,
    ListSessions,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    Top,
]);

const MONITOR_DATABASE: Actions = Actions::of(&[CollStats, DbStats, IndexStats]);

/// Actions that show the collections, indexes and sizes of a database, but not its documents.
const OVERVIEW: Actions = Actions::of(&[CollStats, DbStats, ListCollections, ListIndexes]);

/// The actions of `hostManager` and `clusterManager` on the server.
const MANAGE_CLUSTER: Actions = Actions::of(&[
    Fsync,
    KillAnyCursor,
    KillAnySession,
    Killop,
    ListSessions,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    SetParameter,
    Shutdown,
]);

const RESTORE: Actions = Actions::of(&[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Insert,
    ListCollections,
]);

/// Actions of administrators of a database on its profiler's entries.
const ADMIN_PROFILE: Actions = Actions::of(&[
    CollStats,
    ConvertToCapped,
    CreateCollection,
    DbStats,
    DropCollection,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
]);

/// The built-in roles of every database.
const OF_DATABASES: [&str; 5] = ["dbAdmin", "dbOwner", "read", "readWrite", "userAdmin"];

/// The built-in roles of `admin` alone.
const OF_ADMIN: [&str; 11] = [
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "userAdminAnyDatabase",
];

/// The name of the collection of users.
const USERS: &str = "system.users";

impl Role {
    pub(crate) fn new(name: impl Into<String>, database: impl Into<String>) -> Self {
        Self { name: name.into(), database: database.into() }
    }

    /// Reads a role of a command in a database: `"name"` or `{role, db}`.
    ///
    /// # Errors
    /// Fails with `RoleNotFound` (31) if there is no such role.
    pub(crate) fn read(value: RawBsonRef<'_>, database: &str) -> Result<Self> {
        let mistyped = || Failure::new(Code::BAD_VALUE, "Role names must be either strings or objects");
        let role = match value {
            RawBsonRef::String(name) => Self::new(name, database),
            RawBsonRef::Document(document) => {
                let field = |name| document.get_str(name).map_err(|_| mistyped());
                Self::new(field("role")?, field("db")?)
            }
            _ => return Err(mistyped()),
        };
        if role.exists() {
            return Ok(role);
        }
        Err(Failure::new(Code(31, "RoleNotFound"), format!("Could not find role: {}@{}", role.name, role.database)))
    }

    /// Reads a role in the form of the command line: `name` for one of `database`, or `name@other`.
    ///
    /// # Errors
    /// Fails with `RoleNotFound` (31) if there is no such role.
    pub(crate) fn parse(text: &str, database: &str) -> Result<Self> {
        let (name, database) = text.split_once('@').unwrap_or((text, database));
        Self::read(RawBsonRef::Document(&Self::new(name, database).document()), database)
    }

    /// Returns the built-in roles of a database.
    pub(crate) fn all(database: &str) -> Vec<Self> {
        let of_admin = OF_ADMIN.iter().filter(|_| database == "admin");
        let mut names: Vec<&str> = OF_DATABASES.iter().chain(of_admin).copied().collect();
        names.sort_unstable();
        names.into_iter().map(|name| Self::new(name, database)).collect()
    }

    pub(crate) fn exists(&self) -> bool {
        OF_DATABASES.contains(&&*self.name) || (self.database == "admin" && OF_ADMIN.contains(&&*self.name))
    }

    pub(crate) fn document(&self) -> RawDocumentBuf {
        rawdoc! { "role": &*self.name, "db": &*self.database }
    }

    pub(crate) fn privilege_documents(&self) -> RawArrayBuf {
        let mut privileges = Vec::new();
        self.add_to(&mut privileges);
        privileges.iter().map(Privilege::describe).collect()
    }

    /// Adds the privileges of the role. An unknown role adds none.
    pub(crate) fn add_to(&self, privileges: &mut Vec<Privilege>) {
        if !self.exists() {
            return;
        }
        let mut add = |resource: Resource, actions: Actions| Privilege { resource, actions }.add_to(privileges);
        let own = || Resource::Database(self.database.clone());
        let config = || Resource::Database("config".into());
        let users = || Resource::Collection("admin".into(), USERS);
        let profile = || Resource::Collection(self.database.clone(), PROFILE);
        let just = |actions: &[Action]| Actions::of(actions);
        let other = |name| Self::new(name, "admin");
        match &*self.name {
            "read" => add(own(), READ),
            "readWrite" => add(own(), READ_WRITE),
            "dbAdmin" => {
                add(own(), DB_ADMIN);
                add(profile(), ADMIN_PROFILE);
            }
            "userAdmin" => add(own(), USER_ADMIN),
            "dbOwner" => {
                add(own(), READ_WRITE.and(DB_ADMIN).and(USER_ADMIN));
                add(profile(), ADMIN_PROFILE);
            }
            "readAnyDatabase" => {
                add(Resource::AnyNormal, READ);
                add(Resource::Cluster, just(&[ListDatabases]));
            }
            "readWriteAnyDatabase" => {
                add(Resource::AnyNormal, READ_WRITE);
                add(Resource::Cluster, just(&[ListDatabases]));
            }
            "dbAdminAnyDatabase" => {
                add(Resource::AnyNormal, DB_ADMIN);
                add(Resource::AnyCollection(PROFILE), ADMIN_PROFILE);
                add(Resource::Cluster, just(&[ListDatabases]));
            }
            "userAdminAnyDatabase" => {
                add(Resource::AnyNormal, USER_ADMIN);
                add(Resource::Cluster, just(&[ListDatabases]));
                add(users(), READ.and(just(&[CreateIndex, DropIndex])));
            }
            "clusterMonitor" => {
                add(Resource::Cluster, MONITOR_CLUSTER);
                add(Resource::AnyNormal, MONITOR_DATABASE);
                add(Resource::AnyCollection(PROFILE), just(&[Find]));
                // Excludes the documents of `config`: its collection `transactions` has the replies to other users' writes.
                add(config(), OVERVIEW.and(MONITOR_DATABASE));
                add(Resource::Database("local".into()), READ.and(MONITOR_DATABASE));
            }
            "hostManager" | "clusterManager" => add(Resource::Cluster, MANAGE_CLUSTER),
            "clusterAdmin" => {
                other("clusterMonitor").add_to(privileges);
                other("clusterManager").add_to(privileges);
                Privilege { resource: Resource::AnyNormal, actions: just(&[DropDatabase]) }.add_to(privileges);
            }
            "backup" => {
                add(Resource::Cluster, just(&[Backup, GetParameter, ListDatabases, ServerStatus]));
                for resource in [Resource::AnyNormal, config()] {
                    add(resource, just(&[CollStats, Find, ListCollections, ListIndexes]));
                }
                add(users(), just(&[Find]));
            }
            "restore" => {
                add(Resource::AnyNormal, RESTORE);
                add(Resource::Cluster, just(&[GetParameter]));
                add(users(), just(&[Find, Insert, Remove, Update]));
            }
            "root" => {
                for name in [
                    "readWriteAnyDatabase",
                    "dbAdminAnyDatabase",
                    "userAdminAnyDatabase",
                    "clusterAdmin",
                    "backup",
                    "restore",
                ] {
                    other(name).add_to(privileges);
                }
                Privilege { resource: users(), actions: just(&[Validate]) }.add_to(privileges);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_privileges_and_only_admin_has_those_of_the_server() {
        for role in Role::all("admin") {
            let mut privileges = Vec::new();
            role.add_to(&mut privileges);
            assert!(!privileges.is_empty(), "{role:?}");
        }
        assert_eq!(Role::all("shop").len(), OF_DATABASES.len());
        let mut privileges = Vec::new();
        Role::new("root", "shop").add_to(&mut privileges);
        assert!(privileges.is_empty());
    }
}
