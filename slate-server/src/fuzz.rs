//! Entry points for fuzzers; not part of the API.

use crate::{
    command::Command,
    wire::{MAX_MESSAGE, Reply, ReplyHead, ReplyKind, Request},
};

/// The op codes of requests.
const OP_CODES: [i32; 3] = [2004, 2012, 2013];

/// Decodes bytes as a message, and as the body of a message whose kind the first byte selects. A decoded message must be the same after it is
/// encoded and decoded again. Returns whether at least one of the two was a valid message.
///
/// # Panics
/// Panics if the command of a message differs after that.
pub fn message(data: &[u8]) -> bool {
    let is_message = decode(data);
    let Some((kind, body)) = data.split_first() else { return is_message };
    let Some(op_code) = OP_CODES.get(usize::from(kind % 3)) else { return is_message };
    let length = i32::try_from(body.len().saturating_add(16)).unwrap_or(i32::MAX);
    let header = [length, 1, 0, *op_code].map(i32::to_le_bytes).concat();
    decode(&[&header, body].concat()) || is_message
}

fn decode(frame: &[u8]) -> bool {
    let Ok(request) = Request::decode(frame, MAX_MESSAGE) else { return false };
    let document = request.command.clone();
    let head = ReplyHead { id: 1, response_to: 0, kind: ReplyKind::Message, compressor: request.compressor };
    let again =
        Reply { head, document }.encode().ok().and_then(|encoded| Request::decode(&encoded.concat(), usize::MAX).ok());
    assert!(
        again.is_some_and(|again| again.command.as_bytes() == request.command.as_bytes()),
        "a message is the same after it was encoded: {:?}",
        request.command
    );
    let _ = Command::read(request.command);
    true
}
