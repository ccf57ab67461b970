use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

/// The suffix of a file's name while the file is written.
const INCOMPLETE: &str = ".incomplete";

/// A file that is written, compressed with gzip if its name ends with `.gz`. It gets its name when it is complete.
pub(crate) struct File {
    writer: Writer,
    incomplete: PathBuf,
    path: PathBuf,
}

enum Writer {
    Plain(BufWriter<fs::File>),
    Gzip(GzEncoder<BufWriter<fs::File>>),
}

impl File {
    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// Fails if it exists or cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if path.try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut incomplete = path.as_os_str().to_owned();
        incomplete.push(INCOMPLETE);
        let incomplete = PathBuf::from(incomplete);
        let file = BufWriter::with_capacity(1 << 16, fs::File::create(&incomplete)?);
        let gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let writer =
            if gzip { Writer::Gzip(GzEncoder::new(file, Compression::default())) } else { Writer::Plain(file) };
        Ok(Self { writer, incomplete, path: path.to_owned() })
    }

    /// Writes everything to the device and gives the file its name. After a failure the file is removed.
    ///
    /// # Errors
    /// Fails if the file cannot be written or renamed.
    pub(crate) fn finish(self) -> io::Result<()> {
        let Self { writer, incomplete, path } = self;
        let finished = writer.finish().and_then(|()| fs::rename(&incomplete, path));
        finished.inspect_err(|_| {
            let _ = fs::remove_file(incomplete);
        })
    }

    /// Removes the incomplete file.
    pub(crate) fn discard(self) {
        drop(self.writer);
        // The failure for which it is discarded is the one to report.
        let _ = fs::remove_file(self.incomplete);
    }
}

impl Writer {
    /// Writes everything to the device.
    fn finish(self) -> io::Result<()> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Writer::Plain(file) => file.write(bytes),
            Writer::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Plain(file) => file.flush(),
            Writer::Gzip(encoder) => encoder.flush(),
        }
    }
}
