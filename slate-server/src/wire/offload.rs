use std::io;

use tokio::task::spawn_blocking;

use super::WireError;

/// Maximum length in bytes of a message that a thread of the runtime compresses or decompresses itself. A longer one can take zlib milliseconds, in
/// which that thread would serve no other client, so a thread of the pool for blocking work does it.
pub(super) const MAX_INLINE: usize = 256 << 10;

/// Executes work on a thread of the pool.
///
/// # Errors
/// Fails if the runtime shuts down or the work panics.
pub(super) async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, WireError> {
    Ok(spawn_blocking(work).await.map_err(io::Error::from)?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn work_is_done_by_another_thread() {
        let here = thread::current().id();
        assert_ne!(offload(|| thread::current().id()).await.unwrap(), here);
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        assert!(matches!(offload(|| panic!("as a compressor might")).await, Err::<(), _>(WireError::Io(_))));
    }
}
