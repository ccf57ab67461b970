use std::io;

use tokio::task::spawn_blocking;

use super::WireError;

/// Messages of more bytes are compressed and decompressed by threads of the pool for blocking work: zlib takes some milliseconds for so
/// many, in which a thread of the runtime would answer no other client.
pub(super) const LONG: usize = 256 << 10;

/// Executes work on this number of bytes: here, or on a thread of the pool if there are more than [`LONG`].
///
/// # Errors
/// Fails if the runtime shuts down.
pub(super) async fn offload<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WireError> {
    if bytes <= LONG {
        return Ok(work());
    }
    Ok(spawn_blocking(work).await.map_err(io::Error::from)?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn work_on_many_bytes_is_done_by_another_thread() {
        let here = thread::current().id();
        let worker = || thread::current().id();
        assert_eq!(offload(LONG, worker).await.unwrap(), here);
        assert_ne!(offload(LONG + 1, worker).await.unwrap(), here);
    }
}
