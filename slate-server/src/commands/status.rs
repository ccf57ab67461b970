//! Information about the server and its state.

use std::{fs, sync::atomic::Ordering, thread};

use bson::{DateTime, RawArrayBuf, RawBson, RawDocumentBuf, cstr, rawdoc};

use super::Call;
use crate::{
    auth::Mechanism,
    failure::{Code, Failure, Result},
};

/// The version of MongoDB that the server reports, because it offers the behavior of that version.
pub(super) const VERSION: &str = "8.2.0";

/// The parameters that `getParameter` returns.
fn parameters(call: &Call<'_>) -> RawDocumentBuf {
    let settings = &call.shared().settings;
    let life = i32::try_from(settings.transaction_life.as_secs()).unwrap_or(i32::MAX);
    let iterations = |mechanism: Mechanism| i32::try_from(mechanism.iterations()).unwrap_or(i32::MAX);
    let pause = i64::try_from(settings.expire_every.as_secs()).unwrap_or(i64::MAX);
    rawdoc! {
        "authenticationMechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"],
        "enableTestCommands": settings.test_commands,
        "featureCompatibilityVersion": { "version": "8.2" },
        "localLogicalSessionTimeoutMinutes": 30,
        "maxSessions": i32::try_from(settings.max_sessions).unwrap_or(i32::MAX),
        "minSnapshotHistoryWindowInSeconds": 300,
        "requireApiVersion": false,
        "scramIterationCount": iterations(Mechanism::Sha1),
        "scramSHA256IterationCount": iterations(Mechanism::Sha256),
        "transactionLifetimeLimitSeconds": life,
        "ttlMonitorEnabled": !settings.expire_every.is_zero() && !settings.read_only,
        "ttlMonitorSleepSecs": pause,
    }
}

/// `buildInfo`: describes the program.
pub(super) fn build_info(_: &Call<'_>) -> Result<RawDocumentBuf> {
    Ok(rawdoc! {
        "version": VERSION,
        "gitVersion": "",
        "slateVersion": env!("CARGO_PKG_VERSION"),
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "versionArray": [8, 2, 0, 0],
        "bits": 64,
        "debug": cfg!(debug_assertions),
        "maxBsonObjectSize": 16 << 20,
        "storageEngines": ["memory", "redb", "rocksdb"],
        "ok": 1.0,
    })
}

/// `hostInfo`: describes the machine.
pub(super) fn host_info(_: &Call<'_>) -> Result<RawDocumentBuf> {
    let cores = thread::available_parallelism().map_or(1, |cores| i32::try_from(cores.get()).unwrap_or(i32::MAX));
    Ok(rawdoc! {
        "system": {
            "currentTime": DateTime::now(),
            "hostname": host_name(),
            "cpuAddrSize": 64,
            "memSizeMB": memory_size("MemTotal:", "/proc/meminfo") >> 10,
            "numCores": cores,
            "cpuArch": std::env::consts::ARCH,
        },
        "os": { "type": std::env::consts::OS, "name": std::env::consts::OS, "version": "" },
        "extra": {},
        "ok": 1.0,
    })
}

/// `serverStatus`: returns the state of the server, and counts since its start.
pub(super) fn server_status(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let (counts, traffic) = (&shared.counts, shared.operations.traffic());
    let total = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let count = |counter: &std::sync::atomic::AtomicU64| total(counter.load(Ordering::Relaxed));
    let current = counts.connections.load(Ordering::Relaxed);
    let available = shared.settings.max_connections.saturating_sub(current);
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let uptime = shared.started.elapsed();
    let op_time = || rawdoc! { "ts": shared.database.last_time(), "t": 1_i64 };
    let me = call.own_address();
    Ok(rawdoc! {
        "host": format!("{}:{}", host_name(), me.rsplit_once(':').map_or("", |(_, port)| port)),
        "version": VERSION,
        "process": "slate",
        "pid": i64::from(std::process::id()),
        "uptime": i64::try_from(uptime.as_secs()).unwrap_or(i64::MAX),
        "uptimeMillis": i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX),
        "localTime": DateTime::now(),
        "connections": {
            "current": number(current),
            "available": number(available),
            "totalCreated": counts.last_connection.load(Ordering::Relaxed),
        },
        "network": {
            "bytesIn": total(traffic.bytes_in),
            "bytesOut": total(traffic.bytes_out),
            "numRequests": total(traffic.requests),
        },
        "opcounters": {
            "insert": total(traffic.inserts),
            "query": total(traffic.queries),
            "update": total(traffic.updates),
            "delete": total(traffic.deletes),
            "getmore": total(traffic.get_mores),
            "command": total(traffic.others),
        },
        "logicalSessionRecordCache": { "activeSessionsCount": number(shared.sessions.len()) },
        "transactions": { "currentOpen": number(shared.transactions.taken_places()) },
        "metrics": {
            "cursor": { "open": { "total": number(shared.commands.as_blocking().open_cursors()) } },
            "ttl": { "passes": count(&counts.expiries), "deletedDocuments": count(&counts.expired) },
        },
        "mem": { "bits": 64, "resident": memory_size("VmRSS:", "/proc/self/status") >> 10 },
        "repl": {
            "setName": &*shared.settings.replica_set,
            "isWritablePrimary": true,
            "secondary": false,
            "hosts": [&*me],
            "primary": &*me,
            "me": &*me,
            "lastWrite": { "opTime": op_time(), "lastWriteDate": DateTime::now() },
        },
        "storageEngine": {
            "name": shared.database.store(),
            "supportsCommittedReads": true,
            "supportsSnapshotReadConcern": true,
            "readOnly": shared.settings.read_only,
            "persistent": shared.database.store() != "memory",
        },
        "startedAt": shared.started_at,
        "ok": 1.0,
    })
}

/// `whatsmyuri`: returns the client's address.
pub(super) fn my_uri(call: &Call<'_>) -> Result<RawDocumentBuf> {
    Ok(rawdoc! { "you": call.connection.peer.to_string(), "ok": 1.0 })
}

/// `getCmdLineOpts`: returns the command line of the server.
pub(super) fn command_line(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let arguments: RawArrayBuf = call.shared().settings.arguments.iter().map(String::as_str).collect();
    let mut parsed = RawDocumentBuf::new();
    if call.shared().settings.test_commands {
        parsed.append(cstr!("setParameter"), rawdoc! { "enableTestCommands": "1" });
    }
    if call.shared().settings.authentication {
        parsed.append(cstr!("security"), rawdoc! { "authorization": "enabled" });
    }
    Ok(rawdoc! { "argv": arguments, "parsed": parsed, "ok": 1.0 })
}

/// `getParameter`: one of the parameters, or all for `"*"`.
pub(super) fn parameter(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let all = parameters(call);
    let options = call.command.get("getParameter")?;
    let option = |name| options.and_then(|options| options.as_document()?.get_bool(name).ok()).unwrap_or_default();
    let wants_all = options.and_then(|value| value.as_str()) == Some("*")
        || option("allParameters")
        || call.truth("allParameters")?;
    let has_details = option("showDetails");
    let mut reply = RawDocumentBuf::new();
    for (name, value) in all.iter().flatten() {
        if wants_all || call.command.get(name.as_str())?.is_some() {
            let value = RawBson::from(value);
            if has_details {
                reply.append(name, rawdoc! { "value": value, "settableAtRuntime": false, "settableAtStartup": false });
            } else {
                reply.append(name, value);
            }
        }
    }
    if reply.is_empty() {
        return Err(Failure::new(Code::INVALID_OPTIONS, "no option found to get"));
    }
    reply.append(cstr!("ok"), 1.0);
    Ok(reply)
}

/// Returns the host name of this machine.
pub(super) fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "localhost".into())
}

/// Returns a field, in kilobytes, of a file in which Linux describes memory; 0 if that does not exist.
fn memory_size(field: &str, file: &str) -> i64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
