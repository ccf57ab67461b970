use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use slate_core::{Activity, CancelToken};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    auth::Login,
    command::Command,
    commands::{self, Call},
    failure::{Code, Failure},
    listener::{Accepted, Address, Opened},
    operations::{Admission, Place},
    shared::Shared,
    trace,
    wire::{
        Encoded, Inbox, MAX_BEFORE_LOGIN, MAX_MESSAGE, Reply, ReplyHead, ReplyKind, Request, RequestKind, WireError,
    },
};

/// How long a client may take to receive a reply.
const WRITE_PATIENCE: Duration = Duration::from_secs(300);

/// How long a client may take for the handshake of TLS.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(20);

/// How long a client may take for its first message.
const FIRST_PATIENCE: Duration = Duration::from_secs(30);

/// A connection of a client.
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: i64,
    pub(crate) local: Address,
    pub(crate) peer: Address,
    pub(crate) login: Login,
    /// The subject of the client's verified certificate; `None` without one.
    pub(crate) certificate: Option<String>,
    /// The entry of this connection in the list of operations.
    pub(crate) place: Arc<Place>,
}

/// What happens to a connection after a request.
enum After {
    Continue,
    Close,
}

impl Connection {
    /// Performs the TLS handshake, if TLS is on. Then executes the requests of the client, one after the other, until the client or the server ends
    /// the connection. With `refusal`, replies with it to the first request.
    pub(crate) async fn serve(shared: &Arc<Shared>, accepted: Accepted, refusal: Option<Failure>) {
        let id = shared.counts.last_connection.fetch_add(1, Ordering::Relaxed) + 1;
        let admission = if refusal.is_some() { Admission::Refused } else { Admission::Admitted };
        let place = shared.operations.enter(id, accepted.peer().clone(), admission);
        let _entered = EnteredPlace { shared, place: &place };
        // A stop after this check notifies the place.
        if *shared.stopping.borrow() {
            return;
        }
        let served = async {
            let opened = tokio::select! {
                biased;
                () = place.ended() => return,
                opened = timeout(HANDSHAKE_PATIENCE, accepted.open(&shared.settings)) => opened,
            };
            let Ok(Ok(Opened { reads, mut writes, local, peer, certificate })) = opened else { return };
            let (shared, place, login) = (Arc::clone(shared), Arc::clone(&place), Login::default());
            let mut inbox = Inbox::new(reads, Arc::clone(&shared.message_memory));
            let connection = Self { shared, id, local, peer, place, login, certificate };
            connection.exchange(&mut inbox, &mut writes, refusal).await;
        };
        // A dismissed connection is closed at once, even during the handshake or a command.
        tokio::select! {
            biased;
            () = place.dismissed() => {}
            () = served => {}
        }
    }

    /// Executes requests until the client or the server ends the connection.
    async fn exchange(
        self,
        inbox: &mut Inbox<impl AsyncRead + Unpin>,
        writes: &mut (impl AsyncWrite + Unpin),
        refusal: Option<Failure>,
    ) {
        let (shared, connection) = (Arc::clone(&self.shared), &self);
        let has_stopped = shared.stopping.subscribe();
        if *has_stopped.borrow() {
            return;
        }
        let place = Arc::clone(&connection.place);
        // One future for the whole connection.
        let mut ended = pin!(place.ended());
        let mut patience = pin!(sleep(FIRST_PATIENCE));
        let mut is_first = true;
        loop {
            let is_stranger = connection.is_of_stranger();
            place.set_known(!is_stranger);
            if is_stranger && !is_first {
                patience.as_mut().reset(tokio::time::Instant::now() + shared.settings.login_patience);
            }
            let most = if is_stranger { MAX_BEFORE_LOGIN } else { MAX_MESSAGE };
            let arrived = tokio::select! {
                biased;
                arrived = inbox.arrived(most) => arrived,
                () = &mut ended => return,
                () = &mut patience, if is_first || is_stranger => return,
            };
            // Checks this even if a request is waiting: otherwise a busy client could prevent the server from stopping.
            if !matches!(has_stopped.has_changed(), Ok(false)) {
                return;
            }
            is_first = false;
            let arrived = match arrived {
                Ok(Some(arrived)) => arrived,
                Ok(None) => return,
                Err(error) => {
                    if let Some((id, failure)) = too_much(&error) {
                        connection.say_farewell(id, &failure, inbox, writes).await;
                    }
                    return;
                }
            };
            connection.place.traffic.received(arrived.length);
            let request = inbox.take(arrived, move |message| Request::decode(message, most)).await;
            let Ok(Ok(request)) = request else { return };
            if let Some(refusal) = &refusal {
                connection.say_farewell(request.id, refusal, inbox, writes).await;
                return;
            }
            match connection.answer(request, inbox, writes).await {
                Ok(After::Continue) => {}
                Ok(After::Close) | Err(_) => return,
            }
        }
    }

    /// Whether the client has not logged in although the server requires it. Such a client may only send small messages, at short intervals.
    pub(crate) fn is_of_stranger(&self) -> bool {
        self.shared.settings.authentication && self.login.user().is_none()
    }

    /// Sends a last reply before the connection is closed.
    async fn say_farewell(
        &self,
        request: i32,
        failure: &Failure,
        inbox: &mut Inbox<impl AsyncRead + Unpin>,
        writes: &mut (impl AsyncWrite + Unpin),
    ) {
        let head = ReplyHead { id: 0, response_to: request, kind: ReplyKind::Message, compressor: None };
        if self.send(writes, Reply { head, document: failure.reply() }).await.is_ok() && writes.shutdown().await.is_ok()
        {
            inbox.discard().await;
        }
    }

    /// Executes a request and sends its replies: one, none, or several for an exhaust cursor.
    async fn answer(
        &self,
        request: Request,
        inbox: &mut Inbox<impl AsyncRead + Unpin>,
        writes: &mut (impl AsyncWrite + Unpin),
    ) -> Result<After, WireError> {
        let Request { id, kind, command, compressor } = request;
        let mut command = match Command::read(command) {
            Ok(command) => Arc::new(command),
            // A client that expects no reply would read one as the reply to its next request.
            Err(_) if matches!(kind, RequestKind::Message { expects_reply: false, .. }) => return Ok(After::Continue),
            Err(failure) => {
                let head = ReplyHead { id: 0, response_to: id, kind: kind.reply(), compressor };
                self.send(writes, Reply { head, document: failure.reply() }).await?;
                return Ok(After::Continue);
            }
        };
        if let Some(metadata) = command.client_metadata() {
            self.place.introduce(metadata);
        }
        let mut response_to = id;
        loop {
            let (reply, closes, has_more) = {
                let (token, gone) = (CancelToken::new(), Notify::new());
                let activity = if self.shared.profiler.is_on() { Activity::with_plan() } else { Activity::default() };
                let call = Call {
                    connection: self,
                    command: &command,
                    began: Instant::now(),
                    token: &token,
                    activity: &activity,
                    gone: &gone,
                    closes: AtomicBool::new(false),
                };
                // Pinned here, because passing a future on copies it, and this one is large.
                let execute = pin!(commands::execute(&call));
                let mut work = pin!(trace::command(&call, execute));
                let reply = tokio::select! {
                    biased;
                    reply = &mut work => Some(reply),
                    () = inbox.closed() => None,
                };
                let Some(reply) = reply else {
                    // The client has disconnected: the command is cancelled, and its reply is not sent.
                    token.cancel();
                    gone.notify_one();
                    work.await;
                    return Ok(After::Close);
                };
                let allows_more = matches!(kind, RequestKind::Message { expects_reply: true, allows_exhaust: true });
                let has_more = allows_more && commands::continues(&call, &reply);
                (reply, call.closes.load(Ordering::Acquire), has_more)
            };
            if closes {
                return Ok(After::Close);
            }
            if !has_more && inbox.holds_memory() {
                // Releases the memory of the command, so that a client that does not read its reply does not hold it.
                command = Arc::default();
                inbox.release();
            }
            let RequestKind::Message { expects_reply, .. } = kind else {
                let head = ReplyHead { id: 0, response_to, kind: ReplyKind::Query, compressor };
                self.send(writes, Reply { head, document: reply }).await?;
                return Ok(After::Continue);
            };
            if !expects_reply {
                return Ok(After::Continue);
            }
            let kind = if has_more { ReplyKind::MessageWithMore } else { ReplyKind::Message };
            let next = if has_more { response_to.wrapping_add(1) } else { 0 };
            let head = ReplyHead { id: next, response_to, kind, compressor };
            self.send(writes, Reply { head, document: reply }).await?;
            if !has_more || *self.shared.stopping.borrow() {
                return Ok(After::Continue);
            }
            response_to = next;
        }
    }

    async fn send(&self, writes: &mut (impl AsyncWrite + Unpin), reply: Reply) -> Result<(), WireError> {
        let (head, length) = (reply.head, reply.document.as_bytes().len());
        let encoded = unless_too_long(reply.encoded().await, head, length)?;
        self.place.traffic.sent(encoded.len());
        let mut write = pin!(encoded.write_to(writes));
        // Most replies fit into the buffer of the socket, and need no timer.
        match poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
            Poll::Ready(written) => written?,
            Poll::Pending => timeout(WRITE_PATIENCE, write).await.map_err(|_| WireError::Truncated("reply"))??,
        }
        Ok(())
    }
}

/// Adds a connection to the operations. Dropping this removes it.
struct EnteredPlace<'c> {
    shared: &'c Shared,
    place: &'c Place,
}

impl Drop for EnteredPlace<'_> {
    fn drop(&mut self) {
        self.shared.operations.leave(self.place);
    }
}

/// Returns the id of a message that was refused for its size, and the reply to it; `None` for another error.
fn too_much(error: &WireError) -> Option<(i32, Failure)> {
    match error {
        WireError::BeforeLogin { id, .. } => Some((*id, Failure::new(Code::UNAUTHORIZED, error.to_string()))),
        WireError::Memory { id, .. } => Some((*id, Failure::new(Code(146, "ExceededMemoryLimit"), error.to_string()))),
        _ => None,
    }
}

/// Replaces a reply that exceeds a message by an error. A batch has at most 16 MiB; only the document of an explain can be too long.
///
/// # Errors
/// Fails as the encoding did if the cause is not the length. Such an error is not replaced: the client must not take a write that was made for a
/// refused one.
fn unless_too_long(encoded: Result<Encoded, WireError>, head: ReplyHead, length: usize) -> Result<Encoded, WireError> {
    match encoded {
        Ok(encoded) if encoded.len() <= MAX_MESSAGE => Ok(encoded),
        Ok(_) | Err(WireError::Length(_) | WireError::Compressed) => {
            let message = format!("the reply of {length} bytes exceeds a message");
            Reply { head, document: Failure::new(Code::BAD_VALUE, message).reply() }.encode()
        }
        Err(error) => Err(error),
    }
}

impl RequestKind {
    fn reply(self) -> ReplyKind {
        match self {
            Self::Query => ReplyKind::Query,
            Self::Message { .. } => ReplyKind::Message,
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn only_a_reply_that_is_too_long_is_replaced() {
        let head = ReplyHead { id: 1, response_to: 2, kind: ReplyKind::Message, compressor: None };
        let of = |text: &str| Reply { head, document: rawdoc! { "text": text } }.encode();
        let unchanged = unless_too_long(of("short"), head, 5).unwrap();
        assert_eq!(unchanged.concat(), of("short").unwrap().concat());
        for too_long in [of(&"x".repeat(MAX_MESSAGE)), Err(WireError::Length(i32::MAX)), Err(WireError::Compressed)] {
            let replaced = unless_too_long(too_long, head, 77).unwrap().concat();
            assert!(String::from_utf8_lossy(&replaced).contains("the reply of 77 bytes exceeds a message"));
        }
        let stopped = Err(WireError::Io(std::io::Error::other("the runtime shuts down")));
        assert!(matches!(unless_too_long(stopped, head, 5), Err(WireError::Io(_))));
    }
}
