//! The replica set of one member that drivers need for transactions.

use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::Call;
use crate::failure::{Code, Failure, Result};

/// `replSetInitiate`: the set exists from the start, so this only accepts the server's own configuration.
pub(super) fn initiate(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let set = &*call.shared().settings.replica_set;
    let Some(config) = call.command.get("replSetInitiate")?.and_then(|config| config.as_document()) else {
        return Ok(rawdoc! { "ok": 1.0 });
    };
    if let Some(name) = config.get("_id")?.and_then(|name| name.as_str()).filter(|name| *name != set) {
        let message = format!("the server has the replica set '{set}', and the configuration is that of '{name}'");
        return Err(Failure::new(Code(93, "InvalidReplicaSetConfig"), message));
    }
    let members = config.get("members")?.and_then(|members| members.as_array());
    if members.is_some_and(|members| members.into_iter().nth(1).is_some()) {
        return Err(Failure::not_implemented("replica sets of several members"));
    }
    Ok(rawdoc! { "ok": 1.0 })
}

/// `replSetGetConfig`: returns a configuration with this server as the only member.
pub(super) fn config(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let me = call.own_address();
    Ok(rawdoc! {
        "config": {
            "_id": &*call.shared().settings.replica_set,
            "version": 1,
            "term": 1_i64,
            "members": [{
                "_id": 0, "host": me, "arbiterOnly": false, "buildIndexes": true, "hidden": false, "priority": 1.0, "tags": {},
                "secondaryDelaySecs": 0_i64, "votes": 1,
            }],
            "protocolVersion": 1_i64,
            "writeConcernMajorityJournalDefault": true,
            "settings": {},
        },
        "ok": 1.0,
    })
}

/// `replSetGetStatus`: returns the state of the set, with this server as its primary.
pub(super) fn status(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let (me, now) = (call.own_address(), shared.database.last_time());
    let uptime = i64::try_from(shared.started.elapsed().as_secs()).unwrap_or(i64::MAX);
    let op_time = || rawdoc! { "ts": now, "t": 1_i64 };
    Ok(rawdoc! {
        "set": &*shared.settings.replica_set,
        "date": DateTime::now(),
        "myState": 1,
        "term": 1_i64,
        "heartbeatIntervalMillis": 2000_i64,
        "majorityVoteCount": 1,
        "writeMajorityCount": 1,
        "votingMembersCount": 1,
        "writableVotingMembersCount": 1,
        "optimes": { "lastCommittedOpTime": op_time(), "appliedOpTime": op_time(), "durableOpTime": op_time() },
        "members": [{
            "_id": 0, "name": me, "health": 1.0, "state": 1, "stateStr": "PRIMARY", "uptime": uptime, "optime": op_time(),
            "electionDate": shared.started_at, "configVersion": 1, "configTerm": 1, "self": true,
        }],
        "ok": 1.0,
    })
}
