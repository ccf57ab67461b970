/// Why bytes are not a valid message. The connection is closed, because the start of the next message is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a message of {0} bytes; messages have from 16 to 48000000")]
    Length(i32),
    #[error("a message of {length} bytes; before the login, messages have at most {most}")]
    BeforeLogin { id: i32, length: usize, most: usize },
    #[error("the messages of all connections have more than {most} bytes")]
    Memory { id: i32, most: usize },
    #[error("a message ends within its {0}")]
    Truncated(&'static str),
    #[error("the op code {0} is not supported")]
    OpCode(i32),
    #[error("the flags {0:#x} contain a required flag that is not known")]
    Flags(u32),
    #[error("the checksum is not that of the message")]
    Checksum,
    #[error("a section of kind {0}")]
    Section(u8),
    #[error("a message without exactly one command")]
    Body,
    #[error("{0} is not valid BSON")]
    Bson(&'static str),
    #[error("the compressor {0} was not negotiated or is not known")]
    Compressor(u8),
    #[error("compressed bytes are damaged")]
    Compressed,
    #[error("the connection failed")]
    Io(#[from] std::io::Error),
}
