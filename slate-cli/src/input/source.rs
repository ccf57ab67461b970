use std::{
    fs::File,
    io::{self, BufRead, BufReader, Chain, Cursor, Read},
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;

use super::{
    Format, Stdin, by_extension, by_name,
    unicode::{Encoding, Utf8, begins_bson},
    zstd::Frames,
};
use crate::{interrupt::Interrupt, progress};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// The first bytes of the types of files that cannot be read, and the descriptions of these types.
const REFUSED: &[(&[u8], &str)] = &[
    (&[0x6d, 0xe2, 0x99, 0x81], "an archive of mongodump: dump again without --archive, into a folder"),
    (b"BZh", "compressed with bzip2: decompress it, or use gzip or zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "compressed with xz: decompress it, or use gzip or zstd"),
    (b"PK\x03\x04", "a ZIP archive: unpack it"),
];

/// Number of bytes that are read to recognize a format.
const HEAD: usize = 512;

const BUFFER: usize = 1 << 16;

/// A file, or standard input: decompressed, and without a byte-order mark.
pub(crate) struct Source {
    /// The file; `None` for standard input.
    path: Option<PathBuf>,
    pub(crate) bar: ProgressBar,
    head: Vec<u8>,
    pub(crate) text: Box<dyn BufRead>,
}

impl Source {
    /// Opens a file; standard input if `path` is `-`. Waiting for standard input ends when the command is cancelled.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub(crate) fn open(path: &Path, interrupt: &Interrupt) -> io::Result<Self> {
        let (path, length, read): (_, _, Box<dyn Read>) = if path == Path::new("-") {
            (None, None, Box::new(Stdin::new(interrupt.clone())))
        } else {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            (Some(path.to_owned()), metadata.is_file().then_some(metadata.len()), Box::new(file))
        };
        let bar = progress::bytes(length, &path.as_ref().map_or("-".into(), |path| path.display().to_string()));
        let (head, text) = decompressed(bar.wrap_read(read))?;
        Ok(Self { path, bar, head, text })
    }

    /// Recognizes the format by the file's name, otherwise by its first bytes.
    pub(crate) fn format(&self) -> Option<&'static Format> {
        let name = self.path.as_ref().and_then(|path| uncompressed_name(path));
        let by_name_of_file = name.as_deref().and_then(|name| by_extension(Path::new(name).extension()?.to_str()?));
        by_name_of_file.or_else(|| by_name(recognized(&self.head)?))
    }

    /// Returns whether there is nothing to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }
}

/// Returns the name of a file without the ending of its compression.
pub(crate) fn uncompressed_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).or_else(|| name.strip_suffix(".zstd"));
    Some(plain.unwrap_or(name).to_owned())
}

/// Decompresses the text of a whole small file.
pub(super) fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    decompressed(File::open(path)?)?.1.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the first bytes of the decompressed `source`, and all of it. The first bytes of `source` determine its
/// compression.
fn decompressed(source: impl Read + 'static) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let (head, source) = begin(source, ZSTD.len())?;
    if head.starts_with(GZIP) {
        unmarked(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, source)))
    } else if head.starts_with(ZSTD) {
        unmarked(Frames::new(BufReader::with_capacity(BUFFER, source)))
    } else {
        unmarked(source)
    }
}

/// Returns the first bytes of a text and all of it, as UTF-8 without byte-order marks. A text can have several, because
/// some programs add one to a text that already has one.
fn unmarked(source: impl Read + 'static) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let (head, mut source) = begin(source, HEAD)?;
    if let Some((encoding, mark)) = Encoding::recognize(&head) {
        source.by_ref().take(mark as u64).read_to_end(&mut Vec::new())?;
        return without_marks(Utf8::new(source, encoding));
    }
    let (head, source) = without_marks(source)?;
    if let Some((_, what)) = REFUSED.iter().find(|(first, _)| head.starts_with(first)) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("this is {what}")));
    }
    Ok((head, source))
}

/// Returns the first bytes of a text in UTF-8 and all of it, without byte-order marks.
fn without_marks(source: impl Read + 'static) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let (mut head, mut source) = begin(source, HEAD)?;
    if !begins_bson(&head) {
        let marks = head.chunks_exact(BYTE_ORDER_MARK.len()).take_while(|bytes| *bytes == BYTE_ORDER_MARK);
        let length = marks.count() * BYTE_ORDER_MARK.len();
        source.by_ref().take(length as u64).read_to_end(&mut Vec::new())?;
        head.drain(..length);
    }
    Ok((head, Box::new(BufReader::with_capacity(BUFFER, source))))
}

/// A source with the first bytes that were read ahead, in front of the rest.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// Returns a copy of the first `length` bytes, and all bytes. A failure after the first byte is left to the reader of
/// all bytes.
fn begin<R: Read>(mut source: R, length: usize) -> io::Result<(Vec<u8>, Whole<R>)> {
    let mut head = Vec::with_capacity(length);
    while head.len() < length {
        let mut rest = source.by_ref().take((length - head.len()) as u64);
        let before = head.len();
        match rest.read_to_end(&mut head) {
            Ok(_) if head.len() == before => break,
            Ok(_) => {}
            Err(error) if head.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    Ok((head.clone(), Cursor::new(head).chain(source)))
}

/// Returns the name of the format that begins with these bytes; `None` if it is not recognized. A NUL among the first
/// four bytes means BSON: they are the length of a document, below 16 MiB.
fn recognized(head: &[u8]) -> Option<&'static str> {
    if head.get(..4).is_some_and(|length| length.contains(&0)) {
        return Some("bson");
    }
    match head.trim_ascii_start() {
        [b'{' | b'[' | b'/', ..] => Some("json"),
        _ => None,
    }
}
