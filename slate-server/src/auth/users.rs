use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use slate_core::aio::Commands;

use super::{Role, User, UserName, user::UserFields};
use crate::{
    data::first_write_error,
    failure::{Code, Failure, Result},
};

/// The users, which are documents of `admin.system.users` in MongoDB's form.
///
/// ```text
/// { _id: "shop.ada", userId: UUID, user: "ada", db: "shop", roles: [{role, db}], customData: {}, credentials: {
///     "SCRAM-SHA-1": {iterationCount, salt, storedKey, serverKey}, "SCRAM-SHA-256": {…} } }
/// ```
#[derive(Debug)]
pub(crate) struct Users {
    commands: Commands,
    /// The number of changes that clients have made.
    version: AtomicU64,
    /// Whether [`exist`](Self::exist) has found a user since the start.
    have_existed: AtomicBool,
}

impl Users {
    pub(crate) fn new(commands: Commands) -> Self {
        Self { commands, version: AtomicU64::new(0), have_existed: AtomicBool::new(false) }
    }

    /// Returns a number that grows with each change of a user through this server.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether a user exists, or has existed since the start.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) async fn exist(&self) -> Result<bool> {
        if self.have_existed.load(Ordering::Acquire) {
            return Ok(true);
        }
        let exist = !self.find(rawdoc! {}, rawdoc! { "_id": 1 }, 1).await?.is_empty();
        if exist {
            self.have_existed.store(true, Ordering::Release);
        }
        Ok(exist)
    }

    /// Reads a user; `None` if the user does not exist.
    ///
    /// # Errors
    /// Fails if the storage fails, or if the document does not have the form of a user.
    pub(crate) async fn get(&self, name: &UserName) -> Result<Option<Arc<User>>> {
        let found = self.find(name.filter(), rawdoc! {}, 1).await?;
        let user = found.first().map(|document| User::read(document)).transpose()?;
        Ok(user.map(Arc::new))
    }

    /// Reads documents of users, in the order of their keys.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) async fn find(
        &self,
        filter: RawDocumentBuf,
        projection: RawDocumentBuf,
        limit: i64,
    ) -> Result<Vec<RawDocumentBuf>> {
        let mut command = rawdoc! {
            "find": "system.users",
            "$db": "admin",
            "filter": filter,
            "projection": projection,
            "sort": { "_id": 1 },
            "limit": limit,
        };
        let mut found = Vec::new();
        loop {
            let reply = self.commands.run(command).await?;
            let cursor = reply.get_document("cursor")?;
            let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch"))?;
            for document in batch.into_iter() {
                found.extend(document?.as_document().map(ToOwned::to_owned));
            }
            let id = cursor.get_i64("id")?;
            if id == 0 {
                return Ok(found);
            }
            command = rawdoc! { "getMore": id, "collection": "system.users", "$db": "admin" };
        }
    }

    /// Creates a user.
    ///
    /// # Errors
    /// Fails with 51003 if the user exists.
    pub(crate) async fn create(&self, name: &UserName, fields: &UserFields) -> Result<()> {
        let insert = rawdoc! { "insert": "system.users", "$db": "admin", "documents": [fields.document(name)] };
        let result = self.write(insert).await;
        if matches!(&result, Err(failure) if failure.code == 11000) {
            return Err(Failure::new(Code(51003, "Location51003"), format!("User \"{name}\" already exists")));
        }
        result.map(drop)
    }

    /// Changes a user. `update` is an update document.
    ///
    /// # Errors
    /// Fails with `UserNotFound` (11).
    pub(crate) async fn change(&self, name: &UserName, update: RawDocumentBuf) -> Result<()> {
        let update = rawdoc! {
            "update": "system.users",
            "$db": "admin",
            "updates": [{ "q": name.filter(), "u": update }],
        };
        let reply = self.write(update).await?;
        if reply.get_i32("n").unwrap_or_default() == 0 {
            return Err(Failure::new(Code::USER_NOT_FOUND, format!("User {name} not found")));
        }
        Ok(())
    }

    /// Grants roles. Roles that the user has already are unchanged.
    ///
    /// # Errors
    /// Fails with `UserNotFound` (11).
    pub(crate) async fn grant(&self, name: &UserName, roles: &[Role]) -> Result<()> {
        let roles: RawArrayBuf = roles.iter().map(Role::document).collect();
        self.change(name, rawdoc! { "$addToSet": { "roles": { "$each": roles } } }).await
    }

    /// Revokes roles. Roles that the user does not have are ignored.
    ///
    /// # Errors
    /// Fails with `UserNotFound` (11).
    pub(crate) async fn revoke(&self, name: &UserName, roles: &[Role]) -> Result<()> {
        let roles: RawArrayBuf = roles.iter().map(Role::document).collect();
        self.change(name, rawdoc! { "$pull": { "roles": { "$in": roles } } }).await
    }

    /// Deletes the matching users. Returns their number.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) async fn delete(&self, filter: RawDocumentBuf) -> Result<i32> {
        let delete = rawdoc! { "delete": "system.users", "$db": "admin", "deletes": [{ "q": filter, "limit": 0 }] };
        Ok(self.write(delete).await?.get_i32("n")?)
    }

    async fn write(&self, command: RawDocumentBuf) -> Result<RawDocumentBuf> {
        let reply = self.commands.run(command).await;
        self.version.fetch_add(1, Ordering::AcqRel);
        let reply = reply?;
        first_write_error(&reply).map_or(Ok(reply), Err)
    }
}
