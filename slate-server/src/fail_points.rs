//! Simulated failures for the tests of drivers: `configureFailPoint`, offered only by [`Server::test_commands`](crate::Server::test_commands).
//!
//! | fail point | effect |
//! |---|---|
//! | `failCommand` | commands wait, fail, or lose their connection |
//! | `failGetMoreAfterCursorCheckout` | the same for `getMore` alone |
//! | `maxTimeAlwaysTimeOut` | commands with a time limit exceed it, and batches after the first |
//! | `onPrimaryTransactionalWrite` | retryable writes fail before their commit, or lose their connection after it |

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};
use tokio::time::sleep;

use crate::{
    commands::Call,
    failure::{Code, Failure, Result},
    labels,
};

const COMMAND: &str = "failCommand";
const GET_MORE: &str = "failGetMoreAfterCursorCheckout";
const TIME_LIMIT: &str = "maxTimeAlwaysTimeOut";
const RETRYABLE_WRITE: &str = "onPrimaryTransactionalWrite";

/// The fail points of a server.
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    is_offered: bool,
    /// Whether a fail point may be on. Without one, commands take no lock.
    may_fail: AtomicBool,
    points: Mutex<BTreeMap<&'static str, FailPoint>>,
}

#[derive(Debug, Default)]
struct FailPoint {
    mode: Mode,
    data: FailPointData,
    entered: i64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Mode {
    #[default]
    Off,
    AlwaysOn,
    Times(u64),
    Skip(u64),
}

/// The field `data` of `configureFailPoint`.
#[derive(Clone, Debug, Default)]
struct FailPointData {
    commands: Vec<String>,
    app_name: Option<String>,
    namespace: Option<String>,
    code: Option<i32>,
    closes: Option<bool>,
    block: Option<Duration>,
    labels: Option<Vec<String>>,
    write_concern_error: Option<RawDocumentBuf>,
}

impl FailPoints {
    pub(crate) fn new(is_offered: bool) -> Self {
        Self { is_offered, ..Self::default() }
    }

    /// Delays a command, closes its connection, or lets it fail before its execution.
    ///
    /// # Errors
    /// Fails with the error of the fail point.
    pub(crate) async fn before(&self, call: &Call<'_>) -> Result<()> {
        if !self.may_fail.load(Ordering::Acquire) || call.command.name == "configureFailPoint" {
            return Ok(());
        }
        let is_limited = call.time_limit().is_some() || call.command.name == "getMore";
        if is_limited && self.enter(TIME_LIMIT, |_| true).is_some() {
            return Err(Failure::new(Code::TIME_LIMIT, "operation exceeded time limit"));
        }
        let is_get_more = call.command.name == "getMore";
        let data = self.enter(COMMAND, |data| data.acts_before() && data.concerns(call)).map(|mut data| {
            if is_get_more && !call.command.in_transaction {
                // The real error would precede the look-up of the cursor, so it has no label of change streams.
                data.labels.get_or_insert_default();
            }
            data
        });
        let after_checkout = || is_get_more.then(|| self.enter(GET_MORE, FailPointData::acts_before)).flatten();
        let Some(data) = data.or_else(after_checkout) else { return Ok(()) };
        if let Some(block) = data.block {
            let limit = call.time_limit().filter(|limit| *limit < block);
            tokio::select! {
                () = sleep(limit.unwrap_or(block)) => {}
                () = call.gone.notified() => {}
            }
            if limit.is_some() {
                return Err(Failure::new(Code::TIME_LIMIT, "operation exceeded time limit"));
            }
        }
        if data.closes == Some(true) {
            call.closes.store(true, Ordering::Release);
            return Err(Failure::of_reply(50985, "Failing command due to 'failCommand' failpoint"));
        }
        let Some(code) = data.code else { return Ok(()) };
        let failure = Failure::of_reply(code, "Failing command via 'failCommand' failpoint");
        Err(match data.labels {
            Some(labels) => failure.only_labelled(labels),
            None => failure,
        })
    }

    /// Appends the write concern error of a fail point to the reply of an executed command.
    pub(crate) fn after(&self, call: &Call<'_>, reply: &mut RawDocumentBuf) {
        if !self.may_fail.load(Ordering::Acquire) || matches!(reply.get("writeConcernError"), Ok(Some(_))) {
            return;
        }
        let acts = |data: &FailPointData| data.write_concern_error.is_some() && data.concerns(call);
        let Some(data) = self.enter(COMMAND, acts) else { return };
        let Some(error) = data.write_concern_error else { return };
        let code = error.get_i32("code").unwrap_or_default();
        reply.append(cstr!("writeConcernError"), error);
        match data.labels {
            Some(labels) => {
                let labels: RawArrayBuf = labels.iter().map(String::as_str).collect();
                reply.append(cstr!("errorLabels"), labels);
            }
            None => labels::add_to_reply(call.command, code, reply),
        }
    }

    /// Lets a retryable write fail before its commit, or closes its connection after it. Counts the statements of a write, as MongoDB does, not the
    /// commands.
    ///
    /// # Errors
    /// Fails with the error of the fail point.
    pub(crate) fn on_write(&self, call: &Call<'_>) -> Result<()> {
        if !self.may_fail.load(Ordering::Acquire) {
            return Ok(());
        }
        let statements = ["documents", "updates", "deletes", "ops"]
            .into_iter()
            .find_map(|name| Some(call.command.get(name).ok()??.as_array()?.into_iter().count()));
        let hits = (0..statements.unwrap_or(1)).filter_map(|_| self.enter(RETRYABLE_WRITE, |_| true));
        let Some(data) = hits.last() else { return Ok(()) };
        if data.closes.unwrap_or(true) {
            call.closes.store(true, Ordering::Release);
        }
        let message = "Failing a write due to failpoint. The write must not be reflected.";
        data.code.map_or(Ok(()), |code| Err(Failure::of_reply(code, message)))
    }

    /// Counts a command that a fail point applies to. Returns the fail point's data; `None` if it is off or does not apply.
    fn enter(&self, name: &str, is_about: impl FnOnce(&FailPointData) -> bool) -> Option<FailPointData> {
        let mut points = self.lock();
        let point = points.get_mut(name).filter(|point| is_about(&point.data))?;
        let is_on = point.mode.enter();
        point.entered += i64::from(is_on);
        is_on.then(|| point.data.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, FailPoint>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `{configureFailPoint: name, mode, data}`; returns how often the fail point has been active before.
pub(crate) fn configure(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (command, fail_points) = (call.command, &call.shared().fail_points);
    if !fail_points.is_offered {
        return Err(Failure::new(Code::COMMAND_NOT_FOUND, "no such command: 'configureFailPoint'"));
    }
    if command.database() != "admin" {
        let message = "configureFailPoint may only be run against the admin database.";
        return Err(Failure::new(Code::UNAUTHORIZED, message));
    }
    let name = command.get("configureFailPoint")?.and_then(|name| name.as_str());
    let name = name.ok_or_else(|| Failure::mistyped("configureFailPoint", "string"))?;
    let known = [COMMAND, GET_MORE, TIME_LIMIT, RETRYABLE_WRITE].into_iter().find(|known| *known == name);
    let known = known.ok_or_else(|| Failure::new(Code(266, "FailPointSetFailed"), format!("{name} not found")))?;
    let mode = Mode::read(command.get("mode")?)?;
    let data = match command.get("data")? {
        None => FailPointData::default(),
        Some(data) => FailPointData::read(data.as_document().ok_or_else(|| Failure::mistyped("data", "object"))?)?,
    };
    let mut points = fail_points.lock();
    let before = points.insert(known, FailPoint { mode, data, entered: 0 });
    let is_any_on = points.values().any(|point| !matches!(point.mode, Mode::Off));
    fail_points.may_fail.store(is_any_on, Ordering::Release);
    Ok(rawdoc! { "count": before.map_or(0, |before| before.entered), "ok": 1.0 })
}

impl Mode {
    fn read(mode: Option<RawBsonRef<'_>>) -> Result<Self> {
        let refused = |message: &str| Err(Failure::new(Code::BAD_VALUE, message));
        let mode = match mode {
            Some(RawBsonRef::String("off")) => return Ok(Self::Off),
            Some(RawBsonRef::String("alwaysOn")) => return Ok(Self::AlwaysOn),
            Some(RawBsonRef::Document(mode)) => mode,
            Some(_) => return refused("'mode' must be 'off', 'alwaysOn', {times: N} or {skip: N}"),
            None => return refused("missing 'mode' parameter"),
        };
        let number = |name: &str| mode.get(name).ok().flatten().and_then(whole);
        match (number("times"), number("skip")) {
            (Some(0), None) => Ok(Self::Off),
            (Some(times), None) => Ok(Self::Times(times)),
            (None, Some(skip)) => Ok(Self::Skip(skip)),
            _ => refused("'mode' must be 'off', 'alwaysOn', {times: N} or {skip: N}"),
        }
    }

    /// Returns whether the fail point is on, and counts this use.
    fn enter(&mut self) -> bool {
        match *self {
            Self::Off => false,
            Self::AlwaysOn | Self::Skip(0) => true,
            Self::Times(left) => {
                *self = if left > 1 { Self::Times(left - 1) } else { Self::Off };
                true
            }
            Self::Skip(left) => {
                *self = Self::Skip(left - 1);
                false
            }
        }
    }
}

impl FailPointData {
    /// Reads the fields that have an effect.
    fn read(data: &RawDocument) -> Result<Self> {
        let mut read = Self::default();
        let mut block = (false, None);
        for element in data.iter() {
            let (name, value) = element?;
            let name = name.as_str();
            let mistyped = |expected| Failure::mistyped(&format!("data.{name}"), expected);
            let text = || value.as_str().map(str::to_owned).ok_or_else(|| mistyped("string"));
            let truth = || value.as_bool().ok_or_else(|| mistyped("bool"));
            match name {
                "failCommands" => read.commands = texts(value).ok_or_else(|| mistyped("array of strings"))?,
                "errorLabels" => read.labels = Some(texts(value).ok_or_else(|| mistyped("array of strings"))?),
                "appName" => read.app_name = Some(text()?),
                "namespace" => read.namespace = Some(text()?),
                "closeConnection" => read.closes = Some(truth()?),
                "blockConnection" => block.0 = truth()?,
                "blockTimeMS" => {
                    block.1 = Some(Duration::from_millis(whole(value).ok_or_else(|| mistyped("number"))?));
                }
                "errorCode" | "failBeforeCommitExceptionCode" => {
                    let code = whole(value).and_then(|code| i32::try_from(code).ok());
                    read.code = Some(code.ok_or_else(|| mistyped("int"))?);
                }
                "writeConcernError" => {
                    let error = value.as_document().ok_or_else(|| mistyped("object"))?;
                    read.write_concern_error = Some(error.to_owned());
                }
                _ => {}
            }
        }
        if block.0 {
            let missing = || Failure::new(Code::BAD_VALUE, "must specify 'blockTimeMS' when 'blockConnection' is true");
            read.block = Some(block.1.ok_or_else(missing)?);
        }
        Ok(read)
    }

    /// Whether the fail point acts before a command, and not only on its reply.
    fn acts_before(&self) -> bool {
        self.code.is_some() || self.closes == Some(true) || self.block.is_some()
    }

    /// Whether the fail point applies to a command.
    fn concerns(&self, call: &Call<'_>) -> bool {
        let command = call.command;
        let name = canonical(&command.name);
        self.commands.iter().any(|wanted| canonical(wanted) == name)
            && self.app_name.as_deref().is_none_or(|wanted| call.connection.place.application() == Some(wanted))
            && self.namespace.as_ref().is_none_or(|wanted| command.namespace() == *wanted)
    }
}

/// Returns the name that fail points use for a command with two names.
fn canonical(name: &str) -> &str {
    match name {
        "ismaster" => "isMaster",
        "findandmodify" => "findAndModify",
        "deleteIndexes" => "dropIndexes",
        "buildinfo" => "buildInfo",
        name => name,
    }
}

fn texts(value: RawBsonRef<'_>) -> Option<Vec<String>> {
    value.as_array()?.into_iter().map(|text| text.ok()?.as_str().map(str::to_owned)).collect()
}

fn whole(value: RawBsonRef<'_>) -> Option<u64> {
    let number = match value {
        RawBsonRef::Int32(number) => i64::from(number),
        RawBsonRef::Int64(number) => number,
        #[expect(clippy::cast_possible_truncation, reason = "the cast of a double saturates")]
        RawBsonRef::Double(number) => number as i64,
        _ => return None,
    };
    u64::try_from(number).ok()
}
