use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};

/// A file that is written, compressed with gzip if its name ends with `.gz`.
pub(crate) enum File {
    Plain(BufWriter<fs::File>),
    Gzip(GzEncoder<BufWriter<fs::File>>),
}

impl File {
    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// Fails if it exists or cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, fs::File::create_new(path)?);
        let gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        Ok(if gzip { Self::Gzip(GzEncoder::new(file, Compression::default())) } else { Self::Plain(file) })
    }

    /// Writes everything to the device.
    ///
    /// # Errors
    /// Fails if that fails.
    pub(crate) fn finish(self) -> io::Result<()> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}
