use std::io;

use tokio::task::spawn_blocking;

use super::WireError;

/// The longest message in bytes that a thread of the runtime compresses or decompresses itself. A longer one takes zlib milliseconds, in
/// which that thread would answer no other client, so a thread of the pool for blocking work does it.
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
