//! Candidates for paths and URLs.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The beginnings of the URLs of the stores in this build.
const SCHEMES: &[&str] = &[
    "memory:",
    #[cfg(feature = "redb")]
    "redb:",
    #[cfg(feature = "rocksdb")]
    "rocksdb:",
    #[cfg(feature = "tikv")]
    "tikv://",
];

/// The characters that can separate folders in a path.
const SEPARATORS: [char; 2] = ['/', std::path::MAIN_SEPARATOR];

/// Returns the files and folders whose paths begin with this text. Folders end with a separator.
pub(super) fn files(prefix: &str) -> Vec<String> {
    let (folder, name) = prefix.split_at(prefix.rfind(SEPARATORS).map_or(0, |at| at + 1));
    let entries = fs::read_dir(listed(folder)).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            // Hidden files are offered only after a dot.
            let is_offered = found.starts_with(name) && (name.starts_with('.') || !found.starts_with('.'));
            let end = if entry.path().is_dir() { "/" } else { "" };
            is_offered.then(|| format!("{folder}{found}{end}"))
        })
        .collect();
    found.sort();
    found
}

/// Returns the folder to list for the beginning of a path: `~/` is the home folder, and no text the current one.
fn listed(folder: &str) -> PathBuf {
    match folder.strip_prefix("~/").zip(env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None if folder.is_empty() => PathBuf::from("."),
        None => Path::new(folder).to_owned(),
    }
}

/// Returns the URLs of databases that begin with this text.
pub(super) fn urls(prefix: &str) -> Vec<String> {
    match SCHEMES.iter().find_map(|scheme| Some((scheme, prefix.strip_prefix(scheme)?))) {
        // Hosts are not completed.
        Some((scheme, _)) if scheme.ends_with("//") => Vec::new(),
        Some((scheme, path)) => files(path).into_iter().map(|path| format!("{scheme}{path}")).collect(),
        None => SCHEMES.iter().filter(|scheme| scheme.starts_with(prefix)).map(|scheme| (*scheme).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_urls_are_found_by_their_beginnings() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display();
        fs::create_dir(folder.path().join("data")).unwrap();
        for name in ["dump.json", ".hidden", "x.csv", "data/a.json"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(files(&format!("{root}/d")), [format!("{root}/data/"), format!("{root}/dump.json")]);
        assert_eq!(files(&format!("{root}/data/")), [format!("{root}/data/a.json")]);
        assert_eq!(files(&format!("{root}/.")), [format!("{root}/.hidden")]);
        assert_eq!(files(&format!("{root}/none/x")), Vec::<String>::new());
        assert_eq!(urls(&format!("memory:{root}/x")), [format!("memory:{root}/x.csv")]);
        assert_eq!(urls("mem"), ["memory:"]);
        assert_eq!(urls("tik"), if cfg!(feature = "tikv") { vec!["tikv://"] } else { Vec::new() });
        assert_eq!(urls("tikv://"), [""; 0]);
    }
}
