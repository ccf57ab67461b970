//! The file format of a backup of a database in memory.
//!
//! ```text
//! file  = magic (8 bytes), version (u32), entry*, end, checksum (u64)
//! entry = keyspace (u32), length of the key (u32), length of the value (u32), key, value
//! end   = the greatest u32 three times
//! ```
//!
//! All numbers are little-endian. The checksum is FNV-1a over everything before it. It detects accidental damage only.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    ops::ControlFlow,
    path::Path,
};

use super::{MemorySnapshot, key::Key, root::Root, value::Value};
use crate::{
    BackupProgress, Bounds, Context, Error, Keyspace, MAX_KEY, MAX_VALUE, Result,
    files::{self, Draft},
    store::PROGRESS_ENTRIES,
};

const MAGIC: [u8; 8] = *b"SlateMem";
const VERSION: u32 = 1;
const END: [u32; 3] = [u32::MAX; 3];

pub(super) fn write(snapshot: &MemorySnapshot, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
    let draft = Draft::of(to)?;
    let written = write_file(snapshot.root(), draft.path(), progress);
    if written.map_err(|error| files::failed(error, "while writing a backup", to))?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    draft.publish().map(ControlFlow::Continue)
}

fn write_file(root: &Root, path: &Path, progress: BackupProgress<'_>) -> io::Result<ControlFlow<()>> {
    let mut out = Summed::new(BufWriter::new(File::create_new(path)?));
    out.write_all(&MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let all = root.keyspaces.values().map(|tree| tree.count(Bounds::ALL, u64::MAX)).sum();
    let mut copied = 0_u64;
    for (keyspace, tree) in &root.keyspaces {
        for (key, value) in tree.entries() {
            if copied.is_multiple_of(PROGRESS_ENTRIES) && progress(copied, all).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            copied += 1;
            let key = key.as_slice();
            out.head([keyspace.0, length(key)?, length(value)?])?;
            out.write_all(key)?;
            out.write_all(value)?;
        }
    }
    out.head(END)?;
    let Summed { mut inner, sum } = out;
    inner.write_all(&sum.to_le_bytes())?;
    inner.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all().map(ControlFlow::Continue)
}

fn length(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(io::Error::other)
}

pub(super) fn read(from: &Path) -> Result<Root> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::Corrupt(Box::new(Context::new("the backup ends too early").at(from).because(error)))
        }
        _ => files::failed(error, "while reading a backup", from),
    };
    let file = File::open(from).map_err(failed)?;
    let mut file = Summed::new(BufReader::new(file));
    let mut magic = [0; MAGIC.len()];
    let whole = file.read_exact(&mut magic);
    if whole.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::UnexpectedEof) {
        whole.map_err(failed)?;
    } else if whole.is_err() || magic != MAGIC {
        return Err(Error::WrongFormat(Box::new(Context::new("not a backup of a memory store").at(from))));
    }
    let [version] = file.numbers().map_err(failed)?;
    if version > VERSION {
        let detail = format!("the backup has format version {version}, and this version of Slate reads {VERSION}");
        return Err(Error::NewerVersion(Box::new(Context::new(detail).at(from))));
    }
    let damaged = |detail: &'static str| Error::Corrupt(Box::new(Context::new(detail).at(from)));
    let (mut root, mut key, mut value) = (Root::default(), Vec::new(), Vec::new());
    loop {
        let head @ [keyspace, key_len, value_len] = file.numbers().map_err(failed)?;
        if head == END {
            break;
        }
        // The lengths are checked before memory is allocated, because damaged ones could request all of it.
        let lengths = usize::try_from(key_len).ok().zip(usize::try_from(value_len).ok());
        let Some((key_len, value_len)) = lengths.filter(|(key, value)| *key <= MAX_KEY && *value <= MAX_VALUE) else {
            return Err(damaged("an entry exceeds the size limits"));
        };
        key.resize(key_len, 0);
        value.resize(value_len, 0);
        file.read_exact(&mut key).map_err(failed)?;
        file.read_exact(&mut value).map_err(failed)?;
        let tree = root.keyspaces.entry(Keyspace(keyspace)).or_default();
        tree.write(Key::new(&key), Some(Value::new(&value)));
    }
    let expected = file.sum;
    let mut sum = [0; 8];
    file.inner.read_exact(&mut sum).map_err(failed)?;
    if u64::from_le_bytes(sum) != expected {
        return Err(damaged("the backup's checksum does not match"));
    }
    Ok(root)
}

/// A stream that computes the checksum of the bytes that pass through it.
struct Summed<S> {
    inner: S,
    sum: u64,
}

impl<S> Summed<S> {
    fn new(inner: S) -> Self {
        Self { inner, sum: 0xcbf2_9ce4_8422_2325 }
    }

    /// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
    fn add(&mut self, bytes: &[u8]) {
        self.sum = bytes.iter().fold(self.sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

impl<W: Write> Summed<W> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes);
        self.inner.write_all(bytes)
    }

    fn head(&mut self, numbers: [u32; 3]) -> io::Result<()> {
        numbers.iter().try_for_each(|number| self.write_all(&number.to_le_bytes()))
    }
}

impl<R: Read> Summed<R> {
    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.add(bytes);
        Ok(())
    }

    fn numbers<const N: usize>(&mut self) -> io::Result<[u32; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            let mut bytes = [0; 4];
            self.read_exact(&mut bytes)?;
            *number = u32::from_le_bytes(bytes);
        }
        Ok(numbers)
    }
}
