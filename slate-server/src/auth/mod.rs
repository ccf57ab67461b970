//! Authentication and authorization of clients.
//!
//! ```text
//!  saslStart ─▶ Login ── Exchange (SCRAM) ──▶ Identity = user + roles      one per connection
//!                 │ Throttle                     │
//!                 ▼                              ▼ privileges: (resource, actions)
//!               Users ◀── admin.system.users   authorize: the command's needs ⊆ privileges
//! ```
//!
//! | module | task |
//! |---|---|
//! | `scram` | SCRAM-SHA-1 and SCRAM-SHA-256: keys and the exchange of messages |
//! | `login` | the state of a connection: an exchange, then a user |
//! | `throttle` | limits failed logins |
//! | `user`, `users` | users, and their collection |
//! | `role` | the built-in roles and their privileges |
//! | `privilege` | actions, resources, and which resource covers which |
//! | `needs` | the privileges that a command needs, by the rule that `commands/table.rs` gives it |
//! | `pipeline` | the collections that the stages of a pipeline read and write |
//! | `authorize` | checks the needs of a command, and narrows what a command lists |
//!
//! Without authentication nothing is checked. Users can be created and can log in all the same, as in MongoDB.

mod authorize;
pub(crate) mod login;
pub(crate) mod needs;
mod pipeline;
mod privilege;
mod role;
mod scram;
mod throttle;
mod user;
mod users;

pub(crate) use authorize::{authorize, holds, narrowed, needs_login, redacted, shown};
pub(crate) use login::Login;
pub(crate) use privilege::{Action, Privilege, Target};
pub(crate) use role::Role;
pub(crate) use scram::{Credential, Mechanism, random};
pub(crate) use throttle::Throttle;
pub(crate) use user::{User, UserFields, UserName};
pub(crate) use users::Users;
