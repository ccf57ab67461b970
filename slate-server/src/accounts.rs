use std::fmt;

use bson::rawdoc;
use slate_core::aio::Database;

use crate::{
    auth::{Mechanism, Role, User, UserFields, UserName, Users},
    failure::{Code, Failure},
};

/// The users of a database, for programs that have it open. Clients of a server use commands such as `createUser`.
///
/// A role is written `name` for a role of the user's database, or `name@database`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use slate_core::aio::Database;
/// use slate_server::Accounts;
///
/// let database = Database::open("memory:").await?;
/// let accounts = Accounts::new(database.clone());
/// accounts.add("ada", "shop", "correct horse", &["readWrite", "read@other"]).await?;
/// assert_eq!(accounts.list().await?[0].roles, ["readWrite@shop", "read@other"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Accounts(Users);

/// A user of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// The user's name.
    pub name: String,
    /// The database that the user belongs to: clients name it as `authSource`.
    pub database: String,
    /// The roles, as `name@database`.
    pub roles: Vec<String>,
}

/// The error of an operation on users.
#[derive(Debug)]
pub struct AccountError(Failure);

impl Accounts {
    /// Returns the users of a database. A blocking [`Database`](slate_core::Database) is converted.
    pub fn new(database: impl Into<Database>) -> Self {
        Self(Users::new(database.into().commands()))
    }

    /// Adds a user who may log in by SCRAM-SHA-256 and SCRAM-SHA-1.
    ///
    /// # Errors
    /// Fails if the user exists already (51003), if a role does not exist (31), or if the password cannot be used (2).
    pub async fn add(&self, name: &str, database: &str, password: &str, roles: &[&str]) -> Result<(), AccountError> {
        let user = UserName::checked(name, database)?;
        let roles: Result<Vec<Role>, Failure> = roles.iter().map(|role| Role::parse(role, database)).collect();
        let roles = Some(roles?);
        let credentials = Some(UserFields::derive(&user, password, true, Mechanism::ALL.to_vec()).await?);
        Ok(self.0.create(&user, &UserFields { credentials, roles, custom_data: None }).await?)
    }

    /// Adds a user who logs in with a certificate of this subject, as RFC 2253 writes it: `CN=ada,O=Slate`.
    ///
    /// # Errors
    /// Fails as [`Accounts::add`] does.
    pub async fn add_certificate(&self, subject: &str, roles: &[&str]) -> Result<(), AccountError> {
        let user = UserName::checked(subject, UserName::EXTERNAL)?;
        let roles: Result<Vec<Role>, Failure> = roles.iter().map(|role| Role::parse(role, "admin")).collect();
        let fields = UserFields { credentials: None, roles: Some(roles?), custom_data: None };
        Ok(self.0.create(&user, &fields).await?)
    }

    /// Sets a user's password.
    ///
    /// # Errors
    /// Fails if the user does not exist (11), or if the password cannot be used (2).
    pub async fn set_password(&self, name: &str, database: &str, password: &str) -> Result<(), AccountError> {
        let user = UserName::checked(name, database)?;
        let credentials = Some(UserFields::derive(&user, password, true, Mechanism::ALL.to_vec()).await?);
        let changes = UserFields { credentials, ..UserFields::default() }.changes();
        Ok(self.0.change(&user, rawdoc! { "$set": changes }).await?)
    }

    /// Replaces a user's roles.
    ///
    /// # Errors
    /// Fails if the user (11) or a role (31) does not exist.
    pub async fn set_roles(&self, name: &str, database: &str, roles: &[&str]) -> Result<(), AccountError> {
        let user = UserName::checked(name, database)?;
        let roles: Result<Vec<Role>, Failure> = roles.iter().map(|role| Role::parse(role, database)).collect();
        let changes = UserFields { roles: Some(roles?), ..UserFields::default() }.changes();
        Ok(self.0.change(&user, rawdoc! { "$set": changes }).await?)
    }

    /// Removes a user. Returns whether the user existed.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub async fn remove(&self, name: &str, database: &str) -> Result<bool, AccountError> {
        Ok(self.0.delete(UserName::new(name, database).filter()).await? > 0)
    }

    /// Returns all users, in the order of their databases and names.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub async fn list(&self) -> Result<Vec<Account>, AccountError> {
        let mut accounts = Vec::new();
        for document in self.0.find(rawdoc! {}, rawdoc! {}, 0).await? {
            let User { name, roles, .. } = User::read(&document)?;
            let roles = roles.into_iter().map(|role| format!("{}@{}", role.name, role.database)).collect();
            accounts.push(Account { name: name.name, database: name.database, roles });
        }
        Ok(accounts)
    }
}

impl AccountError {
    /// Returns MongoDB's code.
    pub fn code(&self) -> i32 {
        self.0.code
    }
}

impl UserName {
    /// Returns the name of a user, who need not exist.
    ///
    /// # Errors
    /// Fails if the user's name is empty, or the name of the database is invalid.
    pub(crate) fn checked(name: &str, database: &str) -> Result<Self, Failure> {
        if database.is_empty() || (database != Self::EXTERNAL && database.contains(['.', '$', '\0'])) {
            let message = format!("Invalid namespace specified '{database}'");
            return Err(Failure::new(Code(73, "InvalidNamespace"), message));
        }
        if name.is_empty() || name.contains('\0') {
            let message = "the name of a user is not empty and has no NUL character";
            return Err(Failure::new(Code::BAD_VALUE, message));
        }
        Ok(Self::new(name, database))
    }
}

impl From<Failure> for AccountError {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl fmt::Display for AccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

impl std::error::Error for AccountError {}
