//! MongoDB's wire protocol: messages as bytes.
//!
//! ```text
//! message   length, request id, response to, op code (int32 each), then by op code
//! 2013      OP_MSG         flags, sections, and a CRC-32C if the flags say so
//!                            section 0: one document, the command
//!                            section 1: length, name, documents: an array of the command
//! 2012      OP_COMPRESSED  op code, length without compression, compressor, compressed bytes
//! 2004      OP_QUERY       the `hello` of old drivers; its reply is OP_REPLY (1)
//! ```

mod compression;
mod error;
mod inbox;
mod memory;
mod message;
mod offload;
mod query;
mod reader;
mod reply;
mod request;

pub(crate) use compression::Compressor;
pub(crate) use error::WireError;
pub(crate) use inbox::Inbox;
pub(crate) use memory::MessageMemory;
pub(crate) use reply::{Encoded, Reply, ReplyHead, ReplyKind};
pub(crate) use request::{Request, RequestKind};

/// Maximum length of a message in bytes, as MongoDB's `maxMessageSizeBytes`.
pub(crate) const MAX_MESSAGE: usize = 48_000_000;

/// Maximum length in bytes of a message before the login, where logins are required; as in MongoDB.
pub(crate) const MAX_BEFORE_LOGIN: usize = 16 << 10;

/// Length of a message's header in bytes.
const HEADER: usize = 16;

const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_COMPRESSED: i32 = 2012;
const OP_MSG: i32 = 2013;
