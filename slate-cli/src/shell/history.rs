use std::{env, path::PathBuf};

/// Returns the file of the lines that were entered: `SLATE_HISTORY`, or `slate/history` in the folder for the state of
/// programs. `None`: there is no such folder, or the variable is empty.
pub(super) fn file() -> Option<PathBuf> {
    if let Some(file) = env::var_os("SLATE_HISTORY") {
        return Some(PathBuf::from(file)).filter(|file| !file.as_os_str().is_empty());
    }
    let state = env::var_os("XDG_STATE_HOME").or_else(|| env::var_os("LOCALAPPDATA")).map(PathBuf::from);
    let folder = state.or_else(|| Some(env::home_dir()?.join(".local/state")))?;
    Some(folder.join("slate").join("history"))
}
