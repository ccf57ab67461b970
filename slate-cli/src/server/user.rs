use std::io::{self, BufRead, IsTerminal, Write};

use clap::{Args, Subcommand};
use console::Term;
use slate_core::Database;
use slate_server::{AccountError, Accounts};
use tokio::runtime;

use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Add, list and remove the users of a database that is served with --auth
///
/// The database must not be open elsewhere: users of a running server are changed by its clients (createUser, dropUser).
#[derive(Clone, Debug, Args)]
pub(crate) struct User {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Add a user. The password is read from the terminal, or from standard input
    Add {
        #[command(flatten)]
        name: Name,
        /// A role: NAME for one of the user's database, or NAME@DATABASE. It may be given several times
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<String>,
        /// Add a user who logs in with a client certificate: the name is its subject, as in CN=ada,O=Slate
        #[arg(long)]
        certificate: bool,
    },
    /// List the users and their roles
    List,
    /// Set a user's password, which is read from the terminal, or from standard input
    Password {
        #[command(flatten)]
        name: Name,
    },
    /// Remove a user
    Remove {
        #[command(flatten)]
        name: Name,
    },
    /// Replace a user's roles
    Roles {
        #[command(flatten)]
        name: Name,
        /// A role: NAME for one of the user's database, or NAME@DATABASE. Without one, the user has none
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
    },
}

#[derive(Clone, Debug, Args)]
struct Name {
    /// The user's name
    name: String,
    /// The database that the user belongs to, which clients name as authSource
    #[arg(long, value_name = "DATABASE", default_value = "admin")]
    database: String,
}

impl User {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails if the database is one of a server or cannot be opened, or if the users cannot be read or changed.
    pub(crate) fn run(self, session: &mut Session) -> Result<Exit> {
        if session.is_server() {
            return Err(Failure::usage("`user` works on the files of a database, and not on a server").hint(
                "clients change the users of a server: `command '{ createUser: \"ada\", pwd: …, roles: […] }'`",
            ));
        }
        let database = match &self.action {
            Action::Add { .. } => session.create()?,
            Action::List => session.read()?,
            _ => session.write()?,
        };
        match self.action {
            Action::Add { name, roles, certificate } => {
                let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
                if certificate {
                    change(database, async |accounts| accounts.add_certificate(&name.name, &roles).await)?;
                } else {
                    let password = password()?;
                    let add =
                        async |accounts: Accounts| accounts.add(&name.name, &name.database, &password, &roles).await;
                    change(database, add)?;
                }
                writeln!(session.out(), "{} added", name.name)?;
            }
            Action::List => {
                for account in change(database, async |accounts| accounts.list().await)? {
                    writeln!(session.out(), "{}@{}: {}", account.name, account.database, account.roles.join(", "))?;
                }
            }
            Action::Password { name } => {
                let password = password()?;
                let set = async |accounts: Accounts| accounts.set_password(&name.name, &name.database, &password).await;
                change(database, set)?;
                writeln!(session.out(), "the password of {} is set", name.name)?;
            }
            Action::Remove { name } => {
                let remove = async |accounts: Accounts| accounts.remove(&name.name, &name.database).await;
                if !change(database, remove)? {
                    let message = format!("there is no user {} of the database {}", name.name, name.database);
                    return Err(Failure::missing(message, 11, "UserNotFound"));
                }
                writeln!(session.out(), "{} removed", name.name)?;
            }
            Action::Roles { name, roles } => {
                let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
                let set = async |accounts: Accounts| accounts.set_roles(&name.name, &name.database, &roles).await;
                change(database, set)?;
                writeln!(session.out(), "the roles of {} are set", name.name)?;
            }
        }
        Ok(Exit::Success)
    }
}

/// Executes `work` on the users of a database.
fn change<T>(database: Database, work: impl AsyncFnOnce(Accounts) -> Result<T, AccountError>) -> Result<T> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work(Accounts::new(database))).map_err(|error| Failure::new(error.to_string()))
}

/// Reads a password twice from a terminal, without showing it, otherwise from a line of standard input. Fails if it is
/// empty or the two differ.
fn password() -> Result<String> {
    let password = if io::stdin().is_terminal() {
        let terminal = Term::stderr();
        let ask = |prompt: &str| -> Result<String> {
            terminal.write_str(prompt)?;
            Ok(terminal.read_secure_line()?)
        };
        let password = ask("Password: ")?;
        if ask("Again: ")? != password {
            return Err(Failure::new("the two passwords differ"));
        }
        password
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    if password.is_empty() { Err(Failure::new("the password is empty")) } else { Ok(password) }
}
