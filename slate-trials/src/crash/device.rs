//! A device that loses unsynced bytes: records which bytes are synced, and changes the files as a power cut can.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The bytes that a device writes as a whole.
const SECTOR: usize = 512;

const SOURCE: &str = include_str!("../../shim/device.c");

/// Compiles the library that is loaded into the writing process with the system's C compiler `cc`, and returns its path.
pub(super) fn compile(folder: &Path) -> io::Result<PathBuf> {
    let (source, library) = (folder.join("device.c"), folder.join("device.so"));
    fs::write(&source, SOURCE)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
    if !compiler.status()?.success() {
        return Err(io::Error::other("the C compiler failed"));
    }
    Ok(library)
}

/// By inode, the number of bytes at the beginning of the file that are certain to be on the device.
#[derive(Debug, Default)]
pub(super) struct Synced(HashMap<u64, u64>);

impl Synced {
    /// Returns the state in which all bytes of the files in the folder are on the device.
    pub(super) fn all(folder: &Path) -> io::Result<Self> {
        let files = files(folder)?;
        let lengths = files.iter().map(|file| file.metadata().map(|metadata| (metadata.ino(), metadata.len())));
        lengths.collect::<io::Result<_>>().map(Self)
    }

    /// Adds the syncs that the library has written to its log.
    pub(super) fn read(&mut self, log: &Path) -> io::Result<()> {
        for line in fs::read_to_string(log)?.lines() {
            let mut words = line.split(' ');
            let (kind, inode, length) = (words.next(), words.next(), words.next());
            let (Some(Ok(inode)), Some(Ok(length))) = (inode.map(str::parse), length.map(str::parse::<u64>)) else {
                continue;
            };
            match kind {
                Some("S") => {
                    let known = self.0.entry(inode).or_default();
                    *known = length.max(*known);
                }
                _ => drop(self.0.remove(&inode)),
            }
        }
        Ok(())
    }

    /// Changes the files in the folder as a power cut can. Returns the number of unsynced bytes.
    pub(super) fn cut(&self, folder: &Path, random: &mut fastrand::Rng) -> io::Result<u64> {
        let mut at_risk = 0;
        for file in files(folder)? {
            let metadata = file.metadata()?;
            let synced = self.0.get(&metadata.ino()).copied().unwrap_or_default();
            if synced >= metadata.len() {
                continue;
            }
            at_risk += metadata.len() - synced;
            let mut bytes = fs::read(&file)?;
            tear(&mut bytes, usize::try_from(synced).unwrap_or(usize::MAX), random);
            // In place: a copy of the database can have the same file under another name.
            fs::OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&file)
                .and_then(|mut file| io::Write::write_all(&mut file, &bytes))?;
        }
        Ok(at_risk)
    }
}

/// Damages the unsynced bytes of a file as a power cut can: removes all or the last of them, overwrites some sectors with zeros or
/// random bytes, or changes nothing.
fn tear(bytes: &mut Vec<u8>, synced: usize, random: &mut fastrand::Rng) {
    match random.u8(..5) {
        0 => bytes.truncate(synced),
        1 => bytes.truncate(random.usize(synced..=bytes.len())),
        lost @ (2 | 3) => {
            // Sectors begin at multiples of their size. The synced bytes of the first one stay.
            for start in
                (synced / SECTOR * SECTOR..bytes.len()).step_by(SECTOR).filter(|_| random.bool()).collect::<Vec<_>>()
            {
                let end = bytes.len().min(start + SECTOR);
                let sector = bytes.get_mut(start.max(synced)..end).unwrap_or_default();
                sector.fill_with(|| if lost == 2 { 0 } else { random.u8(..) });
            }
        }
        _ => {}
    }
}

/// Returns the files of a database and of its copies, without the messages that RocksDB logs, and without links.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(self::files(&entry.path())?);
        } else if kind.is_file() && !entry.file_name().to_string_lossy().starts_with("LOG") {
            files.push(entry.path());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_synced_stays() {
        let mut random = fastrand::Rng::with_seed(7);
        let whole: Vec<u8> = (0..5_000).map(|_| random.u8(..)).collect();
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let (mut torn, synced) = (whole.clone(), random.usize(..5_000));
            tear(&mut torn, synced, &mut random);
            assert_eq!(torn.get(..synced), whole.get(..synced));
            assert!(torn.len() <= 5_000);
            lengths.insert(torn.len());
        }
        assert!(lengths.len() > 20);
    }
}
