use bson::{RawArray, RawBsonRef, RawDocument};
use slate_core::raw::{OwnedValue, truth};

use super::{
    Role, UserName, pipeline,
    privilege::{
        Action::{self, *},
        Actions, Target,
    },
};
use crate::{
    commands,
    failure::{Code, Failure, Result},
    profiler::PROFILE,
    shared::MAX_STATEMENTS,
};

/// A command for which the needed privileges are computed.
#[derive(Clone, Copy)]
pub(crate) struct Request<'c> {
    pub(super) name: &'c str,
    pub(super) database: &'c str,
    pub(super) document: &'c RawDocument,
    /// The user who sends the command. All users may see their own data.
    pub(super) user: &'c UserName,
}

/// Which users may run a command.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Every client, also without a login.
    Open,
    /// Every user who has logged in. Cursors, sessions and operations of other users are refused when they are looked up.
    LoggedIn,
    /// Users with a privilege for the action on the server.
    OnServer(Action),
    /// Users with a privilege for the action on the database of the command.
    OnDatabase(Action),
    /// Users with a privilege for the action on the collection of the command.
    OnCollection(Action),
    /// Users with the privileges that the function adds to the needs.
    Of(fn(&Request<'_>, &mut Needs) -> Result<()>),
}

use Rule::{LoggedIn, Of, OnCollection, OnDatabase, OnServer, Open};

/// The privileges that a command needs: those in `all`, or instead those in `or`.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(super) all: Vec<(Target, Actions)>,
    pub(super) or: Option<Vec<(Target, Actions)>>,
}

impl Needs {
    pub(super) fn add(&mut self, target: Target, actions: &[Action]) {
        self.all.push((target, Actions::of(actions)));
    }

    pub(super) fn collection(&mut self, database: &str, name: &str, actions: &[Action]) {
        self.add(Target::Collection(database.into(), name.into()), actions);
    }
}

impl Request<'_> {
    /// Returns the needs of the command by its rule; `None` if every client may execute it, also without a login.
    pub(super) fn needs(&self, rule: Rule) -> Result<Option<Needs>> {
        let mut needs = Needs::default();
        match rule {
            Open => return Ok(None),
            LoggedIn => {}
            OnServer(action) => needs.add(Target::Cluster, &[action]),
            OnDatabase(action) => needs.add(Target::Database(self.database.into()), &[action]),
            OnCollection(action) => {
                let target = self.target()?;
                needs.add(target, &[action]);
            }
            Of(fill) => fill(self, &mut needs)?,
        }
        Ok(Some(needs))
    }

    /// Returns the collection that the command names; the database if the name is not a string, because then the command fails anyway.
    fn target(&self) -> Result<Target> {
        let value = self.document.into_iter().next().transpose()?;
        Ok(match value.and_then(|(_, value)| value.as_str()) {
            Some(name) => Target::Collection(self.database.into(), name.into()),
            None => Target::Database(self.database.into()),
        })
    }

    /// Returns the field `name`; `None` if it is missing.
    ///
    /// # Errors
    /// Fails if it occurs twice: the checked value must be the executed one.
    fn get(&self, name: &str) -> Result<Option<RawBsonRef<'_>>> {
        only(self.document, name)
    }

    fn truth(&self, name: &str) -> Result<bool> {
        Ok(self.get(name)?.is_some_and(is_true))
    }

    /// Returns the documents in the array `name`; none if the field is not an array.
    fn documents(&self, name: &str) -> Result<Vec<&RawDocument>> {
        let Some(RawBsonRef::Array(array)) = self.get(name)? else { return Ok(Vec::new()) };
        documents(array)
    }

    /// Adds the needs of a view's definition: writing it requires reading its collections.
    fn view(&self, needs: &mut Needs) -> Result<()> {
        if let Some(RawBsonRef::String(on)) = self.get("viewOn")? {
            needs.collection(self.database, on, &[Find]);
        }
        if let Some(RawBsonRef::Array(stages)) = self.get("pipeline")? {
            pipeline::add_stages(stages, self.database, needs)?;
        }
        Ok(())
    }

    fn bypass(&self, needs: &mut Needs, target: &Target) -> Result<()> {
        if self.truth("bypassDocumentValidation")? {
            needs.add(target.clone(), &[BypassDocumentValidation]);
        }
        Ok(())
    }

    /// Reads the list of roles in the field `name`; empty if the field is not an array.
    fn roles(&self, name: &str) -> Result<Vec<Role>> {
        let Some(RawBsonRef::Array(roles)) = self.get(name)? else { return Ok(Vec::new()) };
        roles.into_iter().map(|role| Role::read(role?, self.database)).collect()
    }
}

/// Returns a field; `None` if it is missing. Fails if it occurs twice.
pub(super) fn only<'d>(document: &'d RawDocument, name: &str) -> Result<Option<RawBsonRef<'d>>> {
    let mut found = None;
    for element in document {
        let (key, value) = element?;
        if key == name && found.replace(value).is_some() {
            let message = format!("BSON field '{name}' is a duplicate field");
            return Err(Failure::new(Code(40413, "Location40413"), message));
        }
    }
    Ok(found)
}

fn documents(array: &RawArray) -> Result<Vec<&RawDocument>> {
    let mut found = Vec::new();
    for value in array {
        found.extend(value?.as_document());
        // The library refuses more, too, but only after this list was held in memory.
        if !i32::try_from(found.len()).is_ok_and(|held| held <= MAX_STATEMENTS) {
            let message =
                format!("Write batch sizes must be between 1 and {MAX_STATEMENTS}. Got {}", array.into_iter().count());
            return Err(Failure::new(Code(16, "InvalidLength"), message));
        }
    }
    Ok(found)
}

/// Whether a value counts as true, as the library reads it.
pub(crate) fn is_true(value: RawBsonRef<'_>) -> bool {
    truth(OwnedValue::from(value).as_value()) == Some(true)
}

pub(crate) fn aggregate(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let target = request.target()?;
    let stages = match request.get("pipeline")? {
        Some(RawBsonRef::Array(stages)) => Some(stages),
        _ => None,
    };
    if matches!(target, Target::Collection(..)) && !pipeline::lists_sessions(stages)? {
        let actions = pipeline::first_actions(stages)?;
        needs.add(target, actions);
    } else {
        pipeline::without_collection(stages, request.database, needs)?;
    }
    if let Some(stages) = stages {
        let before = needs.all.len();
        pipeline::add_stages(stages, request.database, needs)?;
        if request.truth("bypassDocumentValidation")? {
            let bypass = Actions::of(&[BypassDocumentValidation]);
            let written = Actions::of(&[Insert]);
            for (_, actions) in needs.all.iter_mut().skip(before) {
                if *actions == actions.and(written) || *actions == Actions::of(&[Update]) {
                    *actions = actions.and(bypass);
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn bulk_write(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let mut targets = Vec::new();
    for namespace in request.documents("nsInfo")? {
        let full = only(namespace, "ns")?.and_then(|full| full.as_str()).unwrap_or_default();
        let (database, name) = full.split_once('.').unwrap_or((full, ""));
        targets.push((Target::Collection(database.into(), name.into()), Actions::default()));
    }
    let bypass = if request.truth("bypassDocumentValidation")? { &[BypassDocumentValidation][..] } else { &[] };
    for operation in request.documents("ops")? {
        let Some((name, place)) = operation.into_iter().next().transpose()? else { continue };
        let upserts = || -> Result<bool> { Ok(only(operation, "upsert")?.is_some_and(is_true)) };
        let actions = match name.as_str() {
            "insert" => Actions::of(&[Insert]),
            "update" if upserts()? => Actions::of(&[Insert, Update]),
            "update" => Actions::of(&[Update]),
            "delete" => Actions::of(&[Remove]),
            _ => continue,
        };
        let place = match place {
            RawBsonRef::Int32(place) => usize::try_from(place).ok(),
            RawBsonRef::Int64(place) => usize::try_from(place).ok(),
            _ => None,
        };
        match place.and_then(|place| targets.get_mut(place)) {
            Some((_, needed)) => *needed = needed.and(actions),
            // An operation with an invalid index would not be checked, so it must not be executed.
            None => return Err(Failure::new(Code::BAD_VALUE, "BulkWrite ops entry has an invalid nsInfo index.")),
        }
    }
    for (target, actions) in targets {
        needs.all.push((target, actions.and(Actions::of(bypass))));
    }
    Ok(())
}

pub(crate) fn coll_mod(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    needs.add(request.target()?, &[CollMod]);
    request.view(needs)
}

pub(crate) fn create(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let target = request.target()?;
    request.view(needs)?;
    if needs.all.is_empty() {
        needs.or = Some(vec![(target.clone(), Actions::of(&[Insert]))]);
    }
    needs.add(target, &[CreateCollection]);
    Ok(())
}

pub(crate) fn current_op(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    if !request.truth("$ownOps")? {
        needs.add(Target::Cluster, &[Inprog]);
    }
    Ok(())
}

/// Adds the needs of `profile`. A user who may read the profiler's entries may also read its settings.
pub(crate) fn profile(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    needs.add(Target::Database(request.database.into()), &[EnableProfiler]);
    let is_negative = match request.get("profile")? {
        Some(RawBsonRef::Int32(level)) => level < 0,
        Some(RawBsonRef::Int64(level)) => level < 0,
        Some(RawBsonRef::Double(level)) => level <= -1.0,
        _ => false,
    };
    if is_negative && request.get("slowms")?.is_none() && request.get("sampleRate")?.is_none() {
        let entries = Target::Collection(request.database.into(), PROFILE.into());
        needs.or = Some(vec![(entries, Actions::of(&[Find]))]);
    }
    Ok(())
}

pub(crate) fn explain(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let Some(RawBsonRef::Document(inner)) = request.get("explain")? else { return Ok(()) };
    let Some((name, _)) = inner.into_iter().next().transpose()? else { return Ok(()) };
    let database = only(inner, "$db")?.and_then(|database| database.as_str()).unwrap_or(request.database);
    let inner = Request { name: name.as_str(), database, document: inner, user: request.user };
    match commands::find(inner.name).map(|known| known.rule) {
        Some(rule @ (OnCollection(_) | Of(_))) if inner.name != "explain" => {
            needs.all.extend(inner.needs(rule)?.unwrap_or_default().all);
            Ok(())
        }
        _ => {
            Err(Failure::new(Code::COMMAND_NOT_FOUND, format!("Explain failed due to unknown command: {}", inner.name)))
        }
    }
}

pub(crate) fn find_and_modify(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let target = request.target()?;
    let mut actions = vec![Find];
    actions.push(if request.truth("remove")? { Remove } else { Update });
    if request.truth("upsert")? {
        actions.push(Insert);
    }
    needs.add(target.clone(), &actions);
    request.bypass(needs, &target)
}

pub(crate) fn insert(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let target = request.target()?;
    needs.add(target.clone(), &[Insert]);
    request.bypass(needs, &target)
}

pub(crate) fn update(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let target = request.target()?;
    let mut upserts = false;
    for statement in request.documents("updates")? {
        upserts |= only(statement, "upsert")?.is_some_and(is_true);
    }
    needs.add(target.clone(), if upserts { &[Insert, Update] } else { &[Update] });
    request.bypass(needs, &target)
}

/// With `nameOnly` and `authorizedCollections` no privilege is needed, because only names that the user may see are listed.
pub(crate) fn list_collections(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    if !(request.truth("nameOnly")? && request.truth("authorizedCollections")?) {
        needs.add(Target::Database(request.database.into()), &[ListCollections]);
    }
    Ok(())
}

pub(crate) fn rename(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let namespace = |name| -> Result<(String, String)> {
        let full = request.get(name)?.and_then(|full| full.as_str()).unwrap_or_default();
        let (database, own) = full.split_once('.').unwrap_or((full, ""));
        Ok((database.into(), own.into()))
    };
    let (from, to) = (namespace("renameCollection")?, namespace("to")?);
    let drops = request.get("dropTarget")?.is_some_and(is_true);
    let drop: &[Action] = if drops { &[DropCollection] } else { &[] };
    let target = |(database, name): &(String, String)| Target::Collection(database.clone(), name.clone());
    if from.0 == to.0 {
        let renames = Actions::of(&[RenameCollectionSameDB]);
        needs.or = Some(vec![(target(&from), renames), (target(&to), renames.and(Actions::of(drop)))]);
    }
    needs.add(target(&from), &[Find, DropCollection]);
    needs.add(target(&to), &[Insert, CreateIndex]);
    needs.add(target(&to), drop);
    Ok(())
}

pub(crate) fn create_user(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    needs.add(Target::Database(request.database.into()), &[CreateUser]);
    grant(request, needs)
}

/// Granting a role needs the privilege to grant roles in its database.
pub(crate) fn grant(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    for role in request.roles("roles")? {
        needs.add(Target::Database(role.database), &[GrantRole]);
    }
    Ok(())
}

pub(crate) fn revoke(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    for role in request.roles("roles")? {
        needs.add(Target::Database(role.database), &[RevokeRole]);
    }
    Ok(())
}

pub(crate) fn update_user(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let database = || Target::Database(request.database.into());
    for (field, action) in [("pwd", ChangePassword), ("mechanisms", ChangePassword), ("customData", ChangeCustomData)] {
        if request.get(field)?.is_some() {
            needs.add(database(), &[action]);
        }
    }
    if request.get("roles")?.is_some() {
        // The user may lose roles of other databases.
        needs.add(Target::AnyNormal, &[RevokeRole]);
        grant(request, needs)?;
    }
    Ok(())
}

pub(crate) fn users_info(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let view = |needs: &mut Needs, name: UserName| {
        if name != *request.user {
            needs.add(Target::Database(name.database), &[ViewUser]);
        }
    };
    match request.get("usersInfo")? {
        Some(RawBsonRef::Document(all)) if only(all, "forAllDBs")?.is_some() => {
            needs.add(Target::AnyNormal, &[ViewUser]);
        }
        Some(RawBsonRef::Array(names)) => {
            for name in names {
                view(needs, UserName::read(name?, request.database)?);
            }
        }
        Some(name @ (RawBsonRef::String(_) | RawBsonRef::Document(_))) => {
            view(needs, UserName::read(name, request.database)?);
        }
        _ => needs.add(Target::Database(request.database.into()), &[ViewUser]),
    }
    Ok(())
}

pub(crate) fn roles_info(request: &Request<'_>, needs: &mut Needs) -> Result<()> {
    let mut view = |value: RawBsonRef<'_>| -> Result<()> {
        let database = value.as_document().and_then(|role| role.get_str("db").ok()).unwrap_or(request.database);
        needs.add(Target::Database(database.into()), &[ViewRole]);
        Ok(())
    };
    match request.get("rolesInfo")? {
        Some(RawBsonRef::Array(names)) => names.into_iter().try_for_each(|name| view(name?)),
        Some(name) => view(name),
        None => Ok(()),
    }
}
