//! Checks that the modules of a crate use only modules below them. `docs/architecture.md` has the order, so that the page and the
//! code cannot differ.

use std::{
    collections::HashMap,
    fs,
    iter::Peekable,
    path::{Path, PathBuf},
    slice,
};

use super::tokens::{Token, without_tests};

/// Asserts that the modules in `CRATE/src` are those that the table in `docs/architecture.md` lists, from top to bottom, and that
/// each of them uses only modules below it. Reports each use that does not, with its file and line.
///
/// `manifest` is the folder of the crate: `env!("CARGO_MANIFEST_DIR")`.
pub(crate) fn assert_layers(manifest: &str) {
    let manifest = PathBuf::from(manifest);
    let name = manifest.file_name().unwrap().to_str().unwrap();
    let page = fs::read_to_string(manifest.join("../docs/architecture.md")).unwrap();
    let root = manifest.join("src");
    let mut files = Vec::new();
    read_files(&root, &root, &mut files);
    let wrong = wrong_uses(&layers(&page, name), &files);
    assert!(wrong.is_empty(), "in {name}/src:\n{}\n", wrong.join("\n"));
}

/// Returns the names of the modules in each row of the crate's table, from top to bottom.
fn layers(page: &str, name: &str) -> Vec<Vec<String>> {
    let title = format!("The modules of `{name}/src`");
    let lines = page.lines().skip_while(|line| !line.starts_with(&title));
    let rows = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    let names =
        |row: &str| row.split('|').nth(1).unwrap_or("").split('`').skip(1).step_by(2).map(String::from).collect();
    rows.map(names).collect()
}

fn read_files(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read_files(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns what contradicts the order of the layers in these files, which have their paths below `src`. Modules of one layer must
/// not use each other.
pub(crate) fn wrong_uses(layers: &[Vec<String>], files: &[(String, String)]) -> Vec<String> {
    let rank = |module: &str| layers.iter().position(|layer| layer.iter().any(|name| name == module));
    let (_, root) = files.iter().find(|(file, _)| file == "lib.rs").unwrap();
    let root = Root::of(root);
    let declared = root.modules.iter().filter(|module| rank(module).is_none());
    let mut wrong: Vec<String> = declared.map(|module| format!("lib.rs: `{module}` has no layer")).collect();
    let listed = layers.iter().flatten().filter(|module| !root.modules.contains(module));
    wrong.extend(listed.map(|module| format!("lib.rs: the layer `{module}` is no module")));
    for (file, text) in files.iter().filter(|(file, _)| file != "lib.rs") {
        let place: Vec<String> = file.trim_end_matches(".rs").split('/').map(String::from).collect();
        let place = place.strip_suffix(&["mod".to_owned()]).unwrap_or(&place);
        let own = &place[0];
        for used in paths(&without_tests(text), place) {
            let Some(first) = used.names.first() else { continue };
            let module = root.names.get(first).unwrap_or(first);
            if module == own || root.foreign.contains(first) {
                continue;
            }
            let line = used.line;
            match rank(module) {
                None => wrong.push(format!("{file}:{line}: `{first}` is no module of the crate")),
                Some(rank_of_used) if Some(rank_of_used) <= rank(own) => {
                    wrong.push(format!("{file}:{line}: `{own}` uses `{module}`, which is not below it"));
                }
                Some(_) => {}
            }
        }
    }
    // A line that uses several items of a module is reported once.
    wrong.dedup();
    wrong
}

/// What `lib.rs` contains.
#[derive(Default)]
struct Root {
    modules: Vec<String>,
    /// The modules of the names that are re-exported at the root.
    names: HashMap<String, String>,
    /// Names at the root that come from other crates, or stand in `lib.rs` itself.
    foreign: Vec<String>,
}

impl Root {
    fn of(text: &str) -> Self {
        let tokens = without_tests(text);
        let mut root = Self::default();
        for part in tokens.windows(3) {
            match (part[0].text.as_str(), part[2].text.as_str()) {
                ("mod", ";") => root.modules.push(part[1].text.clone()),
                ("mod", "{") | ("struct", _) => root.foreign.push(part[1].text.clone()),
                _ => {}
            }
        }
        let uses = tokens.iter().enumerate().filter(|(_, token)| token.text == "use");
        for used in uses.flat_map(|(at, _)| {
            let mut found = Vec::new();
            walk(&mut tokens[at + 1..].iter().peekable(), Vec::new(), &mut found);
            found
        }) {
            let (Some(first), Some(last)) = (used.names.first(), used.names.last()) else { continue };
            if root.modules.contains(first) {
                root.names.insert(last.clone(), first.clone());
            } else {
                root.foreign.push(last.clone());
            }
        }
        root
    }
}

/// A path in the code, from the crate's root.
struct Used {
    names: Vec<String>,
    line: usize,
}

/// Returns the paths that begin with `crate`, `super` or `self`, in `use` items and elsewhere. `place` is the module that contains
/// them.
fn paths(tokens: &[Token], place: &[String]) -> Vec<Used> {
    let mut found = Vec::new();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.peek() {
        if ["crate", "super", "self"].contains(&token.text.as_str()) {
            walk(&mut rest, place.to_vec(), &mut found);
        } else {
            rest.next();
        }
    }
    found
}

/// Reads a path, or a tree of paths in braces, that begins in the module `place`.
fn walk(rest: &mut Peekable<slice::Iter<'_, Token>>, mut place: Vec<String>, found: &mut Vec<Used>) {
    while let Some(token) = rest.next() {
        match token.text.as_str() {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            "self" => {}
            "{" => {
                while rest.peek().is_some_and(|token| token.text != "}") {
                    walk(rest, place.clone(), found);
                    rest.next_if(|token| token.text == ",");
                }
                rest.next();
                return;
            }
            _ => place.push(token.text.clone()),
        }
        if rest.next_if(|next| next.text == "::").is_none() {
            if rest.next_if(|next| next.text == "as").is_some()
                && let (Some(alias), Some(last)) = (rest.next(), place.last_mut())
            {
                last.clone_from(&alias.text);
            }
            found.push(Used { names: place, line: token.line });
            return;
        }
    }
}
