//! The commands of users and roles.

use std::collections::HashSet;

use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use super::Call;
use crate::{
    auth::{Mechanism, Role, User, UserFields, UserName},
    failure::{Code, Failure, Result},
};

/// `{createUser: name, pwd, roles, customData, mechanisms}`: fails if the user exists.
pub(super) async fn create(call: &Call<'_>) -> Result<RawDocumentBuf> {
    check_restrictions(call)?;
    let name = target(call)?;
    if name.database == "local" {
        return Err(refused("Cannot create users in the local database"));
    }
    let roles = roles(call, "roles")?.ok_or_else(|| missing("createUser.roles"))?;
    let is_external = name.database == UserName::EXTERNAL;
    let password = call.command.get("pwd")?;
    let mechanisms = mechanisms(call)?;
    if is_external && (password.is_some() || mechanisms.is_some()) {
        return Err(refused("Cannot set the password for users defined on the '$external' database"));
    }
    if !is_external && password.is_none() {
        let message = "Must provide a 'pwd' field for all user documents, except those with '$external' as the \
                       user's source db";
        return Err(refused(message));
    }
    let mechanisms = mechanisms.unwrap_or_else(|| Mechanism::ALL.to_vec());
    let credentials = match password {
        Some(password) => Some(UserFields::derive(&name, text("pwd", password)?, digests(call)?, mechanisms).await?),
        None => None,
    };
    let fields = UserFields { credentials, roles: Some(roles), custom_data: custom_data(call)? };
    call.shared().users.create(&name, &fields).await?;
    done()
}

/// `{updateUser: name, pwd, roles, customData, mechanisms}`: replaces the fields that are given. A lost role closes the cursors of the user.
pub(super) async fn update(call: &Call<'_>) -> Result<RawDocumentBuf> {
    check_restrictions(call)?;
    let (name, users) = (target(call)?, &call.shared().users);
    let (password, mechanisms) = (call.command.get("pwd")?, mechanisms(call)?);
    if name.database == UserName::EXTERNAL && (password.is_some() || mechanisms.is_some()) {
        return Err(refused("Cannot set the password for users defined on the '$external' database"));
    }
    let known = users.get(&name).await?.ok_or_else(|| not_found(&format!("User {name} not found")))?;
    let credentials = match (password, mechanisms) {
        (Some(password), mechanisms) => {
            let mechanisms = mechanisms.unwrap_or_else(|| Mechanism::ALL.to_vec());
            Some(UserFields::derive(&name, text("pwd", password)?, digests(call)?, mechanisms).await?)
        }
        // Without the password, mechanisms can be removed but not added.
        (None, Some(kept)) => {
            let kept = kept.into_iter().map(|mechanism| Some((mechanism, known.credential(mechanism)?.clone())));
            let message = "mechanisms field must be a subset of previously set mechanisms";
            Some(kept.collect::<Option<Vec<_>>>().ok_or_else(|| refused(message))?)
        }
        (None, None) => None,
    };
    let fields = UserFields { credentials, roles: roles(call, "roles")?, custom_data: custom_data(call)? };
    let changes = fields.changes();
    if changes.is_empty() {
        return Err(refused("Must specify at least one field to update in updateUser"));
    }
    users.change(&name, rawdoc! { "$set": changes }).await?;
    if fields.roles.is_some_and(|roles| known.roles.iter().any(|role| !roles.contains(role))) {
        call.shared().close_cursors_of(&known);
    }
    done()
}

/// `{dropUser: name}`: also ends the sessions of the user.
pub(super) async fn remove(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = target(call)?;
    if delete(call, name.filter()).await? == 0 {
        return Err(not_found(&format!("User '{name}' not found")));
    }
    done()
}

/// `dropAllUsersFromDatabase`: deletes the users of the database, and ends their sessions.
pub(super) async fn remove_all(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let removed = delete(call, rawdoc! { "db": call.command.database() }).await?;
    Ok(rawdoc! { "n": removed, "ok": 1.0 })
}

/// Deletes users, with their cursors and sessions. Returns their number.
async fn delete(call: &Call<'_>, filter: RawDocumentBuf) -> Result<i32> {
    let shared = call.shared();
    let deleted = shared.users.find(filter.clone(), rawdoc! {}, 0).await?;
    let number = shared.users.delete(filter).await?;
    for user in deleted.iter().filter_map(|user| User::read(user).ok()) {
        shared.forget(&user).await;
    }
    Ok(number)
}

/// `{grantRolesToUser: name, roles}`: adds the roles that the user does not have.
pub(super) async fn grant(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (name, roles) = (target(call)?, some_roles(call)?);
    call.shared().users.grant(&name, &roles).await?;
    done()
}

/// `{revokeRolesFromUser: name, roles}`: ignores roles that the user does not have. A lost role closes the cursors of the user.
pub(super) async fn revoke(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (name, roles) = (target(call)?, some_roles(call)?);
    let users = &call.shared().users;
    let known = users.get(&name).await?;
    users.revoke(&name, &roles).await?;
    if let Some(known) = known.filter(|known| known.roles.iter().any(|role| roles.contains(role))) {
        call.shared().close_cursors_of(&known);
    }
    done()
}

/// `{usersInfo: 1 | name | {user, db} | [name, …] | {forAllDBs: true}, showCredentials, showPrivileges, filter}`: describes users.
pub(super) async fn info(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (command, database) = (call.command, call.command.database());
    let flag = |name: &str| -> Result<Option<bool>> {
        let Some(value) = command.get(name)?.filter(|value| *value != RawBsonRef::Null) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| Failure::mistyped(&format!("usersInfo.{name}"), "bool"))
    };
    let given = |name: &str| Ok::<_, Failure>(flag(name)?.unwrap_or_default());
    let (credentials, privileges) = (given("showCredentials")?, given("showPrivileges")?);
    let has_data = flag("showCustomData")?.unwrap_or(true);
    let is_exact = match command.get("usersInfo")? {
        Some(RawBsonRef::Document(user)) => user.get("forAllDBs")?.is_none(),
        Some(RawBsonRef::Array(_) | RawBsonRef::String(_)) => true,
        _ => false,
    };
    if !is_exact && (privileges || given("showAuthenticationRestrictions")?) {
        let message = "Privilege or restriction details require exact-match usersInfo queries";
        return Err(Failure::new(Code::ILLEGAL_OPERATION, message));
    }
    let filter = match command.get("usersInfo")? {
        Some(RawBsonRef::Document(all)) if all.get("forAllDBs")?.is_some() => rawdoc! {},
        Some(RawBsonRef::Array(names)) => {
            let mut wanted = RawArrayBuf::new();
            for name in names {
                wanted.push(UserName::read(name?, database)?.filter());
            }
            if wanted.is_empty() {
                return Err(refused("$and/$or/$nor must be a nonempty array"));
            }
            rawdoc! { "$or": wanted }
        }
        Some(name @ (RawBsonRef::String(_) | RawBsonRef::Document(_))) => UserName::read(name, database)?.filter(),
        _ => rawdoc! { "db": database },
    };
    let wanted = command.get("filter")?.and_then(|filter| filter.as_document()).map(ToOwned::to_owned);
    if wanted.is_some() && privileges {
        return Err(Failure::new(
            Code::INVALID_OPTIONS,
            "the argument 'filter' cannot be combined with showPrivileges",
        ));
    }
    let filter = match wanted {
        // A filter on hidden fields could reveal them.
        Some(wanted) if names_credentials(&wanted) => {
            return Err(Failure::new(Code::UNAUTHORIZED, "the argument 'filter' cannot name credentials"));
        }
        Some(wanted) => rawdoc! { "$and": [filter, wanted] },
        None => filter,
    };
    let mut shown = RawArrayBuf::new();
    for document in call.shared().users.find(filter, rawdoc! {}, 0).await? {
        let mut user = describe(&document, credentials, privileges)?;
        if !has_data {
            user = user.iter().flatten().filter(|(name, _)| *name != "customData").fold(
                RawDocumentBuf::new(),
                |mut shown, (name, value)| {
                    shown.append(name, value);
                    shown
                },
            );
        }
        shown.push(user);
    }
    Ok(rawdoc! { "users": shown, "ok": 1.0 })
}

/// Whether a filter refers to credentials, by a field name or in an expression.
fn names_credentials(filter: &RawDocument) -> bool {
    let text = String::from_utf8_lossy(filter.as_bytes());
    ["credentials", "$expr", "$jsonSchema", "$where", "$$ROOT"].iter().any(|word| text.contains(word))
}

/// Returns a user's document as `usersInfo` shows it.
fn describe(document: &RawDocument, credentials: bool, privileges: bool) -> Result<RawDocumentBuf> {
    let mut shown = RawDocumentBuf::new();
    let mut mechanisms = RawArrayBuf::new();
    for element in document {
        let (name, value) = element?;
        if name == "credentials" {
            let stored = value.as_document().into_iter().flatten().flatten();
            stored.for_each(|(name, _)| mechanisms.push(name.as_str()));
            if !credentials {
                continue;
            }
        }
        shown.append(name, value);
    }
    shown.append(cstr!("mechanisms"), mechanisms);
    if privileges {
        let user = User::read(document)?;
        shown.append(cstr!("inheritedRoles"), user.role_documents());
        shown.append(cstr!("inheritedPrivileges"), user.privilege_documents());
        shown.append(cstr!("inheritedAuthenticationRestrictions"), RawArrayBuf::new());
    }
    Ok(shown)
}

/// `{rolesInfo: 1 | name | {role, db} | [name, …], showPrivileges, showBuiltinRoles}`: describes built-in roles; there are no others.
pub(super) fn roles_info(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let database = call.command.database();
    let read = |role| match Role::read(role, database) {
        // An unknown role is omitted.
        Err(failure) if failure.code == 31 => Ok(None),
        result => result.map(Some),
    };
    let roles: Vec<Role> = match call.command.get("rolesInfo")? {
        Some(RawBsonRef::Array(names)) => {
            let mut roles = Vec::new();
            for name in names {
                roles.extend(read(name?)?);
            }
            roles
        }
        Some(name @ (RawBsonRef::String(_) | RawBsonRef::Document(_))) => read(name)?.into_iter().collect(),
        _ if call.truth("showBuiltinRoles")? => Role::all(database),
        // There are only built-in roles.
        _ => Vec::new(),
    };
    let privileges = call.truth("showPrivileges")?;
    let mut shown = RawArrayBuf::new();
    for role in roles {
        let mut document = rawdoc! {
            "_id": format!("{}.{}", role.database, role.name),
            "role": &*role.name,
            "db": &*role.database,
            "isBuiltin": true,
            "roles": [],
            "inheritedRoles": [],
        };
        if privileges {
            let privileges = role.privilege_documents();
            document.append(cstr!("privileges"), privileges.clone());
            document.append(cstr!("inheritedPrivileges"), privileges);
        }
        shown.push(document);
    }
    Ok(rawdoc! { "roles": shown, "ok": 1.0 })
}

/// Returns the user that the command names.
fn target(call: &Call<'_>) -> Result<UserName> {
    let (name, database) = (&*call.command.name, call.command.database());
    let value = call.command.get(name)?.ok_or_else(|| missing(name))?;
    UserName::checked(text(&format!("{name}.{name}"), value)?, database)
}

/// Refuses `authenticationRestrictions` that are not empty: the server would not check them.
fn check_restrictions(call: &Call<'_>) -> Result<()> {
    let restrictions = call.command.get("authenticationRestrictions")?.and_then(|list| list.as_array());
    if restrictions.is_some_and(|list| list.into_iter().next().is_some()) {
        return Err(Failure::not_implemented("authenticationRestrictions"));
    }
    Ok(())
}

/// Reads a list of roles without duplicates; `None` if the field is missing.
fn roles(call: &Call<'_>, field: &str) -> Result<Option<Vec<Role>>> {
    let Some(roles) = call.command.get(field)? else { return Ok(None) };
    let roles =
        roles.as_array().ok_or_else(|| Failure::mistyped(&format!("{}.{field}", call.command.name), "array"))?;
    let (mut read, mut known) = (Vec::new(), HashSet::new());
    for role in roles {
        let role = Role::read(role?, call.command.database())?;
        if known.insert(role.clone()) {
            read.push(role);
        }
    }
    Ok(Some(read))
}

/// Reads the roles to grant or to revoke.
fn some_roles(call: &Call<'_>) -> Result<Vec<Role>> {
    let read = roles(call, "roles")?.ok_or_else(|| missing(&format!("{}.roles", call.command.name)))?;
    if read.is_empty() {
        return Err(refused(&format!("{} command requires a non-empty \"roles\" array", call.command.name)));
    }
    Ok(read)
}

/// Reads the mechanisms for which keys are stored; `None` if none is named.
fn mechanisms(call: &Call<'_>) -> Result<Option<Vec<Mechanism>>> {
    let Some(names) = call.command.get("mechanisms")? else { return Ok(None) };
    let names = names.as_array().ok_or_else(|| Failure::mistyped("mechanisms", "array"))?;
    let mut mechanisms = Vec::new();
    for name in names {
        let name = text("mechanisms", name?)?;
        let mechanism = Mechanism::of_name(name).ok_or_else(|| refused(&format!("Unknown auth mechanism '{name}'")))?;
        if !mechanisms.contains(&mechanism) {
            mechanisms.push(mechanism);
        }
    }
    if mechanisms.is_empty() { Err(refused("mechanisms field must not be empty")) } else { Ok(Some(mechanisms)) }
}

/// Whether the server must compute the digest for SCRAM-SHA-1, because the password is sent in plain text.
fn digests(call: &Call<'_>) -> Result<bool> {
    Ok(call.command.get("digestPassword")?.is_none() || call.truth("digestPassword")?)
}

fn custom_data(call: &Call<'_>) -> Result<Option<RawDocumentBuf>> {
    let Some(data) = call.command.get("customData")? else { return Ok(None) };
    data.as_document().map(|data| Some(data.to_owned())).ok_or_else(|| Failure::mistyped("customData", "object"))
}

fn text<'v>(field: &str, value: RawBsonRef<'v>) -> Result<&'v str> {
    value.as_str().ok_or_else(|| Failure::mistyped(field, "string"))
}

fn done() -> Result<RawDocumentBuf> {
    Ok(rawdoc! { "ok": 1.0 })
}

fn refused(message: &str) -> Failure {
    Failure::new(Code::BAD_VALUE, message)
}

fn missing(field: &str) -> Failure {
    let message = format!("BSON field '{field}' is missing but a required field");
    Failure::new(Code(40414, "IDLFailedToParse"), message)
}

fn not_found(message: &str) -> Failure {
    Failure::new(Code::USER_NOT_FOUND, message)
}
