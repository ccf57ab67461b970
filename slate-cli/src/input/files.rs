//! Finds what is to be imported: files, and the files of folders.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use super::{METADATA_SUFFIX, by_extension, metadata::file_of, source::uncompressed_name};

/// Deepest folder that is searched: `mongodump` writes `DUMP/DATABASE/COLLECTION.bson`.
const MAX_DEPTH: usize = 2;

/// A file, and the collection that its name states.
#[derive(Debug)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    /// `None` for standard input.
    pub(crate) collection: Option<String>,
    /// The file of `mongodump` that describes the collection. It equals `path` if there are no documents beside it, as
    /// for a view.
    pub(crate) metadata: Option<PathBuf>,
}

/// Returns the files to import from `path`, which is a file or a folder, and the files in the folder whose format is
/// not known.
/// Skips hidden files.
///
/// # Errors
/// Fails if the path cannot be read.
pub(crate) fn find(path: &Path) -> io::Result<(Vec<InputFile>, Vec<PathBuf>)> {
    let (mut inputs, mut ignored) = (Vec::new(), Vec::new());
    if path != Path::new("-") && fs::metadata(path)?.is_dir() {
        search(path, 0, &mut inputs, &mut ignored)?;
    } else {
        inputs.push(input(path));
    }
    Ok((inputs, ignored))
}

fn search(folder: &Path, depth: usize, inputs: &mut Vec<InputFile>, ignored: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        // Hidden files and folders belong to other programs, such as a version control system or a desktop.
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        if path.is_dir() {
            if depth < MAX_DEPTH {
                search(&path, depth + 1, inputs, ignored)?;
            }
            continue;
        }
        let name = uncompressed_name(&path).unwrap_or_default();
        if name == "prelude.json" {
            continue;
        }
        if let Some(stem) = name.strip_suffix(METADATA_SUFFIX) {
            // A view has only this file, and no documents.
            let described = ["", ".gz", ".zst"].iter().any(|end| folder.join(format!("{stem}.bson{end}")).is_file());
            if !described {
                inputs.push(definition(&path, stem));
            }
            continue;
        }
        let known =
            Path::new(&name).extension().and_then(OsStr::to_str).is_some_and(|name| by_extension(name).is_some());
        // Collections of the server itself, and its log of operations.
        let internal = name.starts_with("system.") || name == "oplog.bson";
        if known && !internal { inputs.push(input(&path)) } else { ignored.push(path) }
    }
    Ok(())
}

/// Returns the input for a metadata file without a dump beside it: a view, or a collection without documents.
fn definition(path: &Path, stem: &str) -> InputFile {
    InputFile { path: path.to_owned(), collection: Some(decoded(stem)), metadata: Some(path.to_owned()) }
}

fn input(path: &Path) -> InputFile {
    let name = uncompressed_name(path).filter(|_| path != Path::new("-"));
    let stem =
        name.as_deref().and_then(|name| Path::new(name).file_stem()).map(|stem| stem.to_string_lossy().into_owned());
    let metadata = stem.as_deref().and_then(|stem| file_of(path, stem));
    InputFile { path: path.to_owned(), collection: stem.as_deref().map(decoded), metadata }
}

/// Decodes `%2F` in the name of a file, as `mongodump` writes characters that file names cannot contain.
fn decoded(stem: &str) -> String {
    let mut bytes = Vec::with_capacity(stem.len());
    let mut rest = stem.as_bytes();
    while let [first, tail @ ..] = rest {
        let code =
            (*first == b'%').then(|| tail.get(..2)).flatten().and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| stem.to_owned())
}

/// Encodes a collection's name as the stem of a file's name, which [`find`] decodes.
pub(crate) fn encoded(collection: &str) -> String {
    let mut stem = String::with_capacity(collection.len());
    for (at, character) in collection.char_indices() {
        let hidden = at == 0 && character == '.';
        if hidden || character.is_control() || "%/\\:*?\"<>|$".contains(character) {
            let mut bytes = [0; 4];
            stem.extend(character.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")));
        } else {
            stem.push(character);
        }
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_decode_to_the_collection() {
        for name in ["users", "a/b", "100%", "a%2Fb", "..", "ä$.b", "x\u{1}"] {
            let stem = encoded(name);
            assert!(!stem.contains('/') && !stem.starts_with('.'), "{stem}");
            assert_eq!(decoded(&stem), name);
        }
    }
}
