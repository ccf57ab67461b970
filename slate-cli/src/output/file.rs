use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

/// The suffix of the name of the folder in which a file is written.
const INCOMPLETE: &str = ".incomplete";

/// A file that is written, compressed with gzip if its name ends with `.gz`. It is moved to its path when it is complete; until then it
/// is in a folder that only this user can enter.
pub(crate) struct File {
    writer: Writer,
    folder: PathBuf,
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
        let mut folder = path.as_os_str().to_owned();
        folder.push(INCOMPLETE);
        let folder = PathBuf::from(folder);
        create_private(&folder)?;
        let incomplete = folder.join(path.file_name().unwrap_or_default());
        let file = BufWriter::with_capacity(1 << 16, fs::File::create(&incomplete)?);
        let gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let writer =
            if gzip { Writer::Gzip(GzEncoder::new(file, Compression::default())) } else { Writer::Plain(file) };
        Ok(Self { writer, folder, incomplete, path: path.to_owned() })
    }

    /// Writes everything to the device and gives the file its name. After a failure the file is removed.
    ///
    /// # Errors
    /// Fails if the file cannot be written or renamed.
    pub(crate) fn finish(self) -> io::Result<()> {
        let Self { writer, folder, incomplete, path } = self;
        let finished = writer.finish().and_then(|()| fs::rename(&incomplete, path));
        remove(&folder, &incomplete);
        finished
    }

    /// Removes the incomplete file.
    pub(crate) fn discard(self) {
        drop(self.writer);
        remove(&self.folder, &self.incomplete);
    }
}

/// Creates the folder of an incomplete file, or reuses the one that a killed process has left.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.symlink_metadata()?.is_dir() => {
            // Fails if it is the folder of another user.
            #[cfg(unix)]
            fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            Ok(())
        }
        created => created,
    }
}

/// Removes the folder of an incomplete file, and the file if it was not renamed. Ignores failures: those of writing are reported.
fn remove(folder: &Path, incomplete: &Path) {
    let _ = fs::remove_file(incomplete);
    let _ = fs::remove_dir(folder);
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
