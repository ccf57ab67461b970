use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Regex, cstr, rawdoc};

use super::{
    Action, Privilege, Target, login,
    needs::{Request, Rule},
    privilege::Actions,
};
use crate::{
    command::beginning,
    commands::{self, Call, KnownCommand},
    failure::{Code, Failure, Result},
};

/// Maximum length of a command's text in a message about it, in bytes.
const SHOWN: usize = 500;

/// Refuses a command that the user of the connection may not execute, if the server requires logins.
///
/// # Errors
/// Fails with `Unauthorized` (13).
pub(crate) async fn authorize(call: &Call<'_>) -> Result<()> {
    let user = login::current(call).await?;
    if !call.shared().settings.authentication {
        return Ok(());
    }
    let command = call.command;
    // An unknown command fails later with an error of its own.
    let Some(KnownCommand { rule, .. }) = command.known else { return Ok(()) };
    if matches!(rule, Rule::Open) {
        return Ok(());
    }
    let Some(user) = user else {
        if is_first_user(call).await? {
            return Ok(());
        }
        return Err(Failure::new(Code::UNAUTHORIZED, format!("Command {} requires authentication", command.name)));
    };
    let request =
        Request { name: &command.name, database: command.database(), document: command.document(), user: &user.name };
    if permits(&user.privileges, &request, *rule)? { Ok(()) } else { Err(refused(call)) }
}

/// Whether `privileges` contain all that a command needs.
fn permits(privileges: &[Privilege], request: &Request<'_>, rule: Rule) -> Result<bool> {
    let Some(needs) = request.needs(rule)? else { return Ok(true) };
    let allows = |parts: &[(Target, Actions)]| {
        parts.iter().all(|(target, actions)| Privilege::allow(privileges, target, *actions))
    };
    Ok(allows(&needs.all) || needs.or.as_deref().is_some_and(allows))
}

/// Whether a client without a login may execute the command: `createUser` in the database `admin` or `replSetInitiate`, from this machine, as long as
/// there is no user. This is MongoDB's localhost exception.
async fn is_first_user(call: &Call<'_>) -> Result<bool> {
    let command = call.command;
    let is_setup = match &*command.name {
        "createUser" => command.database() == "admin",
        "replSetInitiate" => true,
        _ => false,
    };
    Ok(is_setup && call.connection.peer.is_local() && !call.shared().users.exist().await?)
}

fn refused(call: &Call<'_>) -> Failure {
    let command = call.command;
    let shown = shown(command.document());
    let message = format!("not authorized on {} to execute command {shown}", command.database());
    Failure::new(Code::UNAUTHORIZED, message)
}

/// Returns a command as text, without passwords. Replaces long values by `...`, and truncates the text.
pub(crate) fn shown(command: &RawDocument) -> String {
    let mut text = String::from("{");
    for (name, value) in command.into_iter().flatten() {
        let separator = if text.len() == 1 { " " } else { ", " };
        let value = match value {
            _ if is_secret(name.as_str()) => "\"xxx\"".into(),
            // The length is checked first, because a long value can be deeply nested.
            value if value_length(value) > SHOWN => "...".into(),
            RawBsonRef::Document(within) if name == "explain" => shown(within),
            value => bson::Bson::try_from(value).map(|value| value.to_string()).unwrap_or_default(),
        };
        text.push_str(separator);
        text.push_str(name.as_str());
        text.push_str(": ");
        text.push_str(&value);
        if text.len() > SHOWN {
            text.truncate(beginning(&text, SHOWN).len());
            text.push_str("...");
            break;
        }
    }
    text.push_str(" }");
    text
}

/// Returns a copy of a command, and of a command that it explains, without passwords and login messages.
pub(crate) fn redacted(command: &RawDocument) -> RawDocumentBuf {
    // The explain of an explain is invalid: it is shown empty.
    redact(command, |within| redact(within, |_| RawDocumentBuf::new()))
}

fn redact(command: &RawDocument, explained: impl Fn(&RawDocument) -> RawDocumentBuf) -> RawDocumentBuf {
    let mut copy = RawDocumentBuf::new();
    for (name, value) in command.into_iter().flatten() {
        match value {
            _ if is_secret(name.as_str()) => copy.append(name, "xxx"),
            RawBsonRef::Document(within) if name == "explain" => copy.append(name, explained(within)),
            value => copy.append(name, value),
        }
    }
    copy
}

/// Whether a field is a password or a login message. Checked in every command, because its name may be mistyped.
fn is_secret(field: &str) -> bool {
    ["password", "payload", "pwd", "speculativeAuthenticate"].iter().any(|secret| field.eq_ignore_ascii_case(secret))
}

fn value_length(value: RawBsonRef<'_>) -> usize {
    match value {
        RawBsonRef::Document(document) => document.as_bytes().len(),
        RawBsonRef::Array(array) => array.as_bytes().len(),
        RawBsonRef::JavaScriptCodeWithScope(code) => code.code.len() + code.scope.as_bytes().len(),
        _ => 0,
    }
}

/// Whether the command requires a login, if the server requires logins.
pub(crate) fn needs_login(command: &str) -> bool {
    !commands::find(command).is_some_and(|known| matches!(known.rule, Rule::Open))
}

/// Whether the user of the connection has a privilege for an action on a target; false without a login.
pub(crate) fn holds(call: &Call<'_>, target: &Target, action: Action) -> bool {
    call.user().is_some_and(|user| Privilege::allow(&user.privileges, target, Actions::of(&[action])))
}

/// Returns a command that lists databases or collections, restricted to those that the user may see; `None` for other commands, and for a user who
/// may see all.
///
/// # Errors
/// Fails on damaged bytes.
pub(crate) fn narrowed(call: &Call<'_>) -> Result<Option<RawDocumentBuf>> {
    let command = call.command;
    let Some(user) = call.user().filter(|_| call.shared().settings.authentication) else { return Ok(None) };
    let filter = match &*command.name {
        "listDatabases" => {
            let sees_all = holds(call, &Target::Cluster, Action::ListDatabases);
            let wants_all = !matches!(command.get("authorizedDatabases")?, Some(RawBsonRef::Boolean(true)));
            if sees_all && wants_all {
                return Ok(None);
            }
            let Some(names) = Privilege::databases(&user.privileges) else { return Ok(None) };
            let names: RawArrayBuf = names.into_iter().collect();
            rawdoc! { "name": { "$in": names } }
        }
        "listCollections" => {
            let database = Target::Database(command.database().to_owned());
            if holds(call, &database, Action::ListCollections) {
                return Ok(None);
            }
            if Privilege::concern(&user.privileges, command.database()) {
                let system = Regex { pattern: cstr!("^system\\.").into(), options: cstr!("").into() };
                rawdoc! { "name": { "$not": system } }
            } else {
                rawdoc! { "name": { "$in": [] } }
            }
        }
        _ => return Ok(None),
    };
    let mut copy = RawDocumentBuf::new();
    let mut filter = Some(filter);
    for element in command.document() {
        match element? {
            (name, RawBsonRef::Document(wanted)) if name == "filter" => {
                let both = rawdoc! { "$and": [wanted.to_owned(), filter.take().unwrap_or_default()] };
                copy.append(name, both);
            }
            (name, RawBsonRef::Null) if name == "filter" => {}
            (name, value) => copy.append(name, value),
        }
    }
    if let Some(filter) = filter {
        copy.append(cstr!("filter"), filter);
    }
    Ok(Some(copy))
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};

    use super::{
        super::{Role, UserName},
        *,
    };

    /// The columns of the matrix: a letter for each role.
    const ROLES: [(char, &str, &str); 17] = [
        ('r', "read", "shop"),
        ('w', "readWrite", "shop"),
        ('d', "dbAdmin", "shop"),
        ('u', "userAdmin", "shop"),
        ('o', "dbOwner", "shop"),
        ('x', "dbOwner", "other"),
        ('R', "readAnyDatabase", "admin"),
        ('W', "readWriteAnyDatabase", "admin"),
        ('D', "dbAdminAnyDatabase", "admin"),
        ('U', "userAdminAnyDatabase", "admin"),
        ('m', "clusterMonitor", "admin"),
        ('h', "hostManager", "admin"),
        ('c', "clusterManager", "admin"),
        ('C', "clusterAdmin", "admin"),
        ('b', "backup", "admin"),
        ('s', "restore", "admin"),
        ('*', "root", "admin"),
    ];

    fn allowed(database: &str, command: &Document) -> String {
        let document = RawDocumentBuf::try_from(command).unwrap();
        let user = UserName::new("ada", "shop");
        let name = command.keys().next().unwrap();
        let request = Request { name, database, document: &document, user: &user };
        let rule = commands::find(name).unwrap().rule;
        let column = |(letter, role, database): (char, &str, &str)| {
            let mut privileges = Vec::new();
            Role::new(role, database).add_to(&mut privileges);
            if permits(&privileges, &request, rule).unwrap() { letter } else { '-' }
        };
        ROLES.map(column).into_iter().collect()
    }

    #[test]
    fn each_role_may_do_what_mongodb_says() {
        let lookup = |from: &str| doc! { "$lookup": { "from": from, "as": "a" } };
        let pipeline = |stages: Vec<Document>| doc! { "aggregate": "c", "pipeline": stages };
        let matrix = [
            // Reading.
            ("rw--o-RW------b-*", "shop", doc! { "find": "c" }),
            ("-----xRW------b-*", "other", doc! { "find": "c" }),
            ("----------m--C--*", "local", doc! { "find": "c" }),
            ("-----------------", "local", doc! { "insert": "c", "documents": [] }),
            ("--------------b-*", "config", doc! { "find": "transactions" }),
            ("----------m--Cb-*", "config", doc! { "collStats": "transactions" }),
            ("---------U----bs*", "admin", doc! { "find": "system.users" }),
            ("rw--o-RW------b-*", "shop", doc! { "count": "c" }),
            ("rw--o-RW------b-*", "shop", doc! { "distinct": "c", "key": "a" }),
            ("rw--o-RW------b-*", "shop", pipeline(vec![])),
            ("rwduoxRWDUmhcCbs*", "shop", doc! { "getMore": 1_i64, "collection": "c" }),
            ("rwduoxRWDUmhcCbs*", "shop", doc! { "killCursors": "c", "cursors": [] }),
            ("rw--o-RW------b-*", "shop", doc! { "explain": { "find": "c" } }),
            ("-----xRW------b-*", "shop", doc! { "explain": { "find": "c", "$db": "other" } }),
            // Collections that the stages of a pipeline name.
            ("rw--o-RW------b-*", "shop", pipeline(vec![lookup("d")])),
            ("-----------------", "shop", pipeline(vec![lookup("system.js")])),
            ("--------------b-*", "admin", doc! { "aggregate": "c", "pipeline": [lookup("system.users")] }),
            (
                "------RW------b-*",
                "shop",
                pipeline(vec![doc! { "$unionWith": { "coll": "d", "pipeline": [
                    { "$lookup": { "from": { "db": "other", "coll": "e" } } }
                ] } }]),
            ),
            (
                "-----------------",
                "shop",
                pipeline(vec![doc! { "$facet": { "f": [{ "$graphLookup": { "from": "system.x" } }] } }]),
            ),
            ("-w--o--W--------*", "shop", pipeline(vec![doc! { "$out": "d" }])),
            ("-------W--------*", "shop", pipeline(vec![doc! { "$out": { "db": "other", "coll": "d" } }])),
            ("----------------*", "shop", pipeline(vec![doc! { "$out": { "db": "admin", "coll": "system.users" } }])),
            ("-w--o--W--------*", "shop", pipeline(vec![doc! { "$merge": "d" }])),
            (
                "-------W--------*",
                "shop",
                pipeline(vec![doc! { "$merge": { "into": { "db": "other", "coll": "d" } } }]),
            ),
            ("rwd-o-RWD-m--Cb-*", "shop", pipeline(vec![doc! { "$collStats": {} }])),
            ("----------m--C--*", "shop", pipeline(vec![doc! { "$indexStats": {} }])),
            ("rw--o-RW--------*", "shop", pipeline(vec![doc! { "$changeStream": {} }])),
            (
                "------RW--------*",
                "admin",
                doc! { "aggregate": 1, "pipeline": [{ "$changeStream": { "allChangesForCluster": 1 } }] },
            ),
            ("rwduoxRWDUmhcCbs*", "admin", doc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }] }),
            (
                "----------m--C--*",
                "admin",
                doc! { "aggregate": 1, "pipeline": [{ "$currentOp": { "allUsers": true } }] },
            ),
            ("rwduoxRWDUmhcCbs*", "shop", doc! { "aggregate": 1, "pipeline": [{ "$documents": [] }] }),
            ("rw--o-RW------b-*", "shop", doc! { "aggregate": 1, "pipeline": [{ "$documents": [] }, lookup("c")] }),
            // Writing.
            ("-w--o--W-------s*", "shop", doc! { "insert": "c", "documents": [] }),
            ("----o----------s*", "shop", doc! { "insert": "c", "documents": [], "bypassDocumentValidation": true }),
            ("---------------s*", "admin", doc! { "insert": "system.users", "documents": [] }),
            ("-w--o--W--------*", "shop", doc! { "update": "c", "updates": [{ "q": {}, "u": {} }] }),
            ("-w--o--W--------*", "shop", doc! { "update": "c", "updates": [{ "q": {}, "u": {}, "upsert": true }] }),
            ("-w--o--W--------*", "shop", doc! { "delete": "c", "deletes": [] }),
            ("-w--o--W--------*", "shop", doc! { "findAndModify": "c", "remove": true }),
            ("-w--o--W--------*", "shop", doc! { "findAndModify": "c", "update": {}, "upsert": true }),
            (
                "-w--o--W-------s*",
                "admin",
                doc! { "bulkWrite": 1, "nsInfo": [{ "ns": "shop.c" }], "ops": [{ "insert": 0 }] },
            ),
            (
                "-------W--------*",
                "admin",
                doc! { "bulkWrite": 1, "nsInfo": [{ "ns": "shop.c" }, { "ns": "other.c" }], "ops": [{ "insert": 0 }, { "delete": 1 }] },
            ),
            (
                "---------------s*",
                "admin",
                doc! { "bulkWrite": 1, "nsInfo": [{ "ns": "admin.system.users" }], "ops": [{ "insert": 0 }] },
            ),
            // Collections and indexes.
            ("-wd-o--WD------s*", "shop", doc! { "create": "c" }),
            ("-w--o--W--------*", "shop", doc! { "create": "v", "viewOn": "c", "pipeline": [lookup("d")] }),
            ("-----------------", "shop", doc! { "create": "v", "viewOn": "system.x", "pipeline": [] }),
            ("--d-o---D------s*", "shop", doc! { "collMod": "c" }),
            ("----o-----------*", "shop", doc! { "collMod": "v", "viewOn": "c", "pipeline": [] }),
            ("-wd-o--WD------s*", "shop", doc! { "createIndexes": "c", "indexes": [] }),
            ("-wd-o--WD-------*", "shop", doc! { "dropIndexes": "c", "index": "*" }),
            ("rwd-o-RWD-----b-*", "shop", doc! { "listIndexes": "c" }),
            ("-wd-o--WD------s*", "shop", doc! { "drop": "c" }),
            ("-wd-o--WD-------*", "admin", doc! { "renameCollection": "shop.c", "to": "shop.d" }),
            ("-wd-o--WD-------*", "admin", doc! { "renameCollection": "shop.c", "to": "shop.d", "dropTarget": true }),
            ("-------W--------*", "admin", doc! { "renameCollection": "shop.c", "to": "other.d" }),
            ("-----------------", "admin", doc! { "renameCollection": "admin.system.users", "to": "admin.x" }),
            ("rwd-o-RWD-----bs*", "shop", doc! { "listCollections": 1 }),
            (
                "rwduoxRWDUmhcCbs*",
                "shop",
                doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true },
            ),
            ("rwd-o-RWD-m--Cb-*", "shop", doc! { "collStats": "c" }),
            ("--d-o---D-------*", "shop", doc! { "validate": "c" }),
            ("--d-o---D-------*", "shop", doc! { "compact": "c" }),
            // Databases.
            ("rwd-o-RWD-m--C--*", "shop", doc! { "dbStats": 1 }),
            ("--d-o---D----C--*", "shop", doc! { "dropDatabase": 1 }),
            ("--d-o---D-m--C--*", "shop", doc! { "profile": -1 }),
            ("--d-o---D-------*", "shop", doc! { "profile": -1, "slowms": 20 }),
            ("--d-o---D-------*", "shop", doc! { "profile": 1 }),
            ("--d-o---D-m--C--*", "shop", doc! { "find": "system.profile" }),
            ("--d-o---D-------*", "shop", doc! { "drop": "system.profile" }),
            ("----------m--C--*", "admin", doc! { "top": 1 }),
            ("rwduoxRWDUmhcCbs*", "admin", doc! { "listDatabases": 1 }),
            // Users.
            ("---uo----U------*", "shop", doc! { "createUser": "b", "roles": ["read"] }),
            ("---------U------*", "shop", doc! { "createUser": "b", "roles": [{ "role": "root", "db": "admin" }] }),
            ("---uo----U------*", "shop", doc! { "updateUser": "b", "pwd": "x" }),
            ("---------U------*", "shop", doc! { "updateUser": "b", "roles": [] }),
            ("---uo----U------*", "shop", doc! { "dropUser": "b" }),
            ("---uo----U------*", "shop", doc! { "dropAllUsersFromDatabase": 1 }),
            ("---------U------*", "shop", doc! { "grantRolesToUser": "b", "roles": [{ "role": "read", "db": "x" }] }),
            ("---uo----U------*", "shop", doc! { "revokeRolesFromUser": "b", "roles": ["read"] }),
            ("---uo----U------*", "shop", doc! { "usersInfo": 1 }),
            ("rwduoxRWDUmhcCbs*", "shop", doc! { "usersInfo": "ada" }),
            ("---uo----U------*", "shop", doc! { "usersInfo": ["ada", "b"] }),
            ("---------U------*", "shop", doc! { "usersInfo": { "forAllDBs": true } }),
            ("---uo----U------*", "shop", doc! { "rolesInfo": 1 }),
            ("---------U------*", "shop", doc! { "rolesInfo": { "role": "root", "db": "admin" } }),
            // The server.
            ("----------m--Cb-*", "admin", doc! { "serverStatus": 1 }),
            ("----------m--C--*", "admin", doc! { "hostInfo": 1 }),
            ("----------m--C--*", "admin", doc! { "getCmdLineOpts": 1 }),
            ("----------m--C--*", "admin", doc! { "getLog": "global" }),
            ("----------m--Cbs*", "admin", doc! { "getParameter": "*" }),
            ("----------m--C--*", "admin", doc! { "currentOp": 1 }),
            ("rwduoxRWDUmhcCbs*", "admin", doc! { "currentOp": 1, "$ownOps": true }),
            ("----------mhcC--*", "admin", doc! { "replSetGetStatus": 1 }),
            ("-----------hcC--*", "admin", doc! { "replSetInitiate": {} }),
            ("-----------hcC--*", "admin", doc! { "shutdown": 1 }),
            ("-----------hcC--*", "admin", doc! { "fsync": 1 }),
            ("--------------b-*", "admin", doc! { "backup": "monday.slate" }),
            ("-----------hcC--*", "admin", doc! { "killAllSessions": [] }),
            ("rwduoxRWDUmhcCbs*", "admin", doc! { "killSessions": [] }),
            ("rwduoxRWDUmhcCbs*", "admin", doc! { "killOp": 1, "op": 1 }),
            ("rwduoxRWDUmhcCbs*", "shop", doc! { "commitTransaction": 1 }),
        ];
        let wrong: Vec<String> = matrix
            .iter()
            .filter(|(expected, database, command)| allowed(database, command) != *expected)
            .map(|(expected, database, command)| {
                format!("{}\n{expected} expected: {database} {command}\n", allowed(database, command))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.concat());
    }

    #[test]
    fn only_harmless_commands_are_open() {
        let open: Vec<&str> = commands::all_names().filter(|name| !needs_login(name)).collect();
        let harmless = [
            "authenticate",
            "buildInfo",
            "buildinfo",
            "connectionStatus",
            "endSessions",
            "hello",
            "isMaster",
            "ismaster",
            "listCommands",
            "logout",
            "ping",
            "saslContinue",
            "saslStart",
            "whatsmyuri",
        ];
        assert_eq!(open, harmless);
    }

    #[test]
    fn what_could_be_read_twice_is_refused() {
        let user = UserName::new("ada", "shop");
        let mut twice = rawdoc! { "createUser": "b", "roles": [] };
        twice.append(cstr!("roles"), RawArrayBuf::from_iter(["root"]));
        let nothing = [rawdoc! { "bulkWrite": 1, "nsInfo": [{ "ns": "shop.c" }], "ops": [{ "insert": 7 }] }, twice];
        for document in &nothing {
            let name = document.into_iter().next().unwrap().unwrap().0.as_str();
            let request = Request { name, database: "admin", document, user: &user };
            assert!(request.needs(commands::find(name).unwrap().rule).is_err(), "{name}");
        }
    }

    #[test]
    fn passwords_and_long_values_are_not_in_messages() {
        let long = rawdoc! { "createUser": "b", "pwd": "secret", "roles": [], "customData": { "x": "y".repeat(1000) } };
        let text = shown(&long);
        assert!(text.starts_with("{ createUser: \"b\", pwd: \"xxx\", roles: []"), "{text}");
        assert!(!text.contains("secret") && text.len() < 2 * SHOWN, "{text}");
        assert!(shown(&rawdoc! { "find": "ä".repeat(1000) }).ends_with("... }"));
        let explained = rawdoc! { "explain": { "createuser": "b", "Pwd": "secret" } };
        assert_eq!(shown(&explained), "{ explain: { createuser: \"b\", Pwd: \"xxx\" } }");
        assert_eq!(redacted(&explained), rawdoc! { "explain": { "createuser": "b", "Pwd": "xxx" } });
        assert_eq!(
            redacted(&rawdoc! { "explain": { "explain": { "pwd": "s" } } }),
            rawdoc! { "explain": { "explain": {} } }
        );
    }
}
