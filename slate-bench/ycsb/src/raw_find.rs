//! Measures one `find` by `_id` over bare sockets, without a driver, so that only the server and the network take time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use mongodb::bson::{RawDocumentBuf, doc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    Arguments, Error,
    keys::key,
    measure::Latencies,
    workload::{COLLECTION, DATABASE},
};

/// The operation code of `OP_MSG`.
const OP_MSG: i32 = 2013;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Error> {
    let address: Arc<str> = arguments.address.as_deref().ok_or("--address is missing")?.into();
    let message: Arc<[u8]> = find_message()?.into();
    for &connections in &arguments.connections {
        let mut running = JoinSet::new();
        let begin = Instant::now();
        for _ in 0..connections {
            running.spawn(exchange(Arc::clone(&address), Arc::clone(&message), begin, arguments.duration));
        }
        let (mut all, mut reply_bytes) = (Latencies::new()?, 0);
        while let Some(finished) = running.join_next().await {
            let (latencies, bytes) = finished??;
            all.add(&latencies)?;
            reply_bytes = bytes;
        }
        let workload = format!("find by _id, bare socket: {} bytes, reply {reply_bytes}", message.len());
        all.print(&arguments.name, &workload, connections, begin.elapsed());
    }
    Ok(())
}

/// Repeatedly sends the message and reads the reply. Returns the latencies and the size of the last reply in bytes.
async fn exchange(
    address: Arc<str>,
    message: Arc<[u8]>,
    begin: Instant,
    duration: Duration,
) -> Result<(Latencies, usize), Error> {
    let stream = TcpStream::connect(&*address).await?;
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let (mut latencies, mut reply) = (Latencies::new()?, Vec::new());
    while begin.elapsed() < duration {
        let sent = Instant::now();
        write.write_all(&message).await?;
        let length = usize::try_from(read.read_i32_le().await?)?;
        reply.resize(length.checked_sub(4).ok_or("the length of a reply is wrong")?, 0);
        read.read_exact(&mut reply).await?;
        latencies.record(sent);
    }
    Ok((latencies, reply.len() + 4))
}

fn find_message() -> Result<Vec<u8>, Error> {
    let find =
        doc! { "find": COLLECTION, "filter": { "_id": key(0) }, "limit": 1, "singleBatch": true, "$db": DATABASE };
    let body = RawDocumentBuf::from_document(&find)?;
    let length = 16 + 4 + 1 + body.as_bytes().len();
    let mut message = Vec::with_capacity(length);
    for part in [i32::try_from(length)?, 1, 0, OP_MSG, 0] {
        message.extend_from_slice(&part.to_le_bytes());
    }
    message.push(0);
    message.extend_from_slice(body.as_bytes());
    Ok(message)
}
