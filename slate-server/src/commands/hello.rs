use std::time::Duration;

use bson::{DateTime, RawArrayBuf, RawDocument, RawDocumentBuf, cstr, rawdoc};
use tokio::time::sleep;

use super::{Call, authentication};
use crate::{
    failure::{Code, Failure, Result},
    shared::MAX_STATEMENTS,
    wire::{Compressor, MAX_MESSAGE},
};

/// The maximum wire version, that of MongoDB 8.2.
const MAX_WIRE_VERSION: i32 = 27;

/// MongoDB's maximum size of a document in bytes.
const MAX_DOCUMENT: i32 = 16 << 20;

/// The longest time that a client may wait for a change of the topology.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// `hello`: describes the server as the primary of a replica set of one member, at its configured address or the one that the client uses.
pub(super) async fn hello(call: &Call<'_>) -> Result<RawDocumentBuf> {
    wait(call).await?;
    let mut reply = rawdoc! { "isWritablePrimary": true };
    fill(call, &mut reply).await?;
    Ok(reply)
}

/// `isMaster`: `hello` for older clients.
pub(super) async fn is_master(call: &Call<'_>) -> Result<RawDocumentBuf> {
    wait(call).await?;
    let mut reply = rawdoc! {};
    if call.truth("helloOk")? {
        reply.append(cstr!("helloOk"), true);
    }
    reply.append(cstr!("ismaster"), true);
    fill(call, &mut reply).await?;
    Ok(reply)
}

async fn fill(call: &Call<'_>, reply: &mut RawDocumentBuf) -> Result<()> {
    let shared = call.shared();
    let (me, now) = (call.own_address(), shared.database.last_time());
    let op_time = || rawdoc! { "ts": now, "t": 1_i64 };
    let date = DateTime::now();
    let own = rawdoc! {
        "topologyVersion": { "processId": shared.process, "counter": 0_i64 },
        "hosts": [&*me],
        "setName": &*shared.settings.replica_set,
        "setVersion": 1,
        "secondary": false,
        "primary": &*me,
        "me": &*me,
        "electionId": bson::oid::ObjectId::from_bytes([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]),
        "lastWrite": {
            "opTime": op_time(),
            "lastWriteDate": date,
            "majorityOpTime": op_time(),
            "majorityWriteDate": date,
        },
        "maxBsonObjectSize": MAX_DOCUMENT,
        "maxMessageSizeBytes": i32::try_from(MAX_MESSAGE).unwrap_or(i32::MAX),
        "maxWriteBatchSize": MAX_STATEMENTS,
        "localTime": date,
        "logicalSessionTimeoutMinutes": 30,
        "connectionId": call.connection.id,
        "minWireVersion": 0,
        "maxWireVersion": MAX_WIRE_VERSION,
        "readOnly": shared.settings.read_only,
    };
    for (name, value) in own.iter().flatten() {
        reply.append(name, value);
    }
    if let Some(offered) = call.command.get("compression")?.and_then(|offered| offered.as_array()) {
        let names = offered.into_iter().flatten().filter_map(|name| name.as_str());
        let known: RawArrayBuf = names.filter(|name| Compressor::is_known(name)).collect();
        if !known.is_empty() {
            reply.append(cstr!("compression"), known);
        }
    }
    authentication::append_to_hello(call, reply).await?;
    reply.append(cstr!("ok"), 1.0);
    Ok(())
}

/// Whether the command waits for a change of the topology, and for longer than zero.
pub(super) fn waits(call: &Call<'_>) -> bool {
    let known = call.command.get("topologyVersion").ok().flatten().and_then(|known| known.as_document());
    known.is_some_and(|known| knows_topology(call, known))
        && call.integer("maxAwaitTimeMS").is_ok_and(|most| most.is_some_and(|most| most > 0))
}

/// Whether `known` is the topology of this run of the server.
fn knows_topology(call: &Call<'_>, known: &RawDocument) -> bool {
    known.get_object_id("processId").ok() == Some(call.shared().process)
}

/// Waits for a change of the topology if the command requests it. The only change is the server's shutdown.
async fn wait(call: &Call<'_>) -> Result<()> {
    let shared = call.shared();
    let Some(known) = call.command.get("topologyVersion")?.and_then(|known| known.as_document()) else { return Ok(()) };
    let Some(most) = call.integer("maxAwaitTimeMS")? else {
        let message = "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'";
        return Err(Failure::new(Code(31368, "Location31368"), message));
    };
    if !knows_topology(call, known) {
        return Ok(());
    }
    let most = Duration::from_millis(u64::try_from(most).unwrap_or_default()).min(LONGEST_WAIT);
    let mut stopping = shared.stopping.subscribe();
    tokio::select! {
        () = sleep(most) => Ok(()),
        () = call.gone.notified() => Ok(()),
        _ = stopping.wait_for(|stopping| *stopping) => {
            Err(Failure::new(Code(11600, "InterruptedAtShutdown"), "the server shuts down"))
        }
    }
}
