//! The links between pages, and from pages to files of the repository.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn pages_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Returns the text without blocks of code.
fn prose(text: &str) -> String {
    let parts = text.split("```").step_by(2);
    parts.collect()
}

fn targets(text: &str) -> Vec<String> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|target| !target.starts_with("http")).map(str::to_owned).collect()
}

/// Returns the anchors of the headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).lines().filter_map(|line| line.strip_prefix('#').map(str::to_owned)).collect::<Vec<_>>();
    let anchor = |heading: String| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.into_iter().map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in ["", "docs", "docs/lab", "slate-bench", "slate-bench/peers"].into_iter().flat_map(pages_in) {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&prose(&text)) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let linked = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let leads = linked.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&linked).unwrap()).contains(anchor));
            if !leads {
                broken.push(format!("{}: {target}", page.display()));
            }
            checked += 1;
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(checked > 100);
}

#[test]
fn the_readme_links_to_every_page() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    for page in pages_in("docs") {
        let target = format!("(docs/{}", page.file_name().unwrap().to_str().unwrap());
        assert!(readme.contains(&target), "README.md does not link to {}", page.display());
    }
}

/// Returns the commands of cargo on a page, in blocks and in sentences, as words.
fn cargo_commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let ends = |c: char| matches!(c, '`' | '\n' | '#');
    text.split("cargo ")
        .skip(1)
        .filter_map(move |rest| rest.split(ends).next())
        .map(|line| line.split_whitespace().collect())
}

#[test]
fn commands_name_packages_examples_tests_and_benches_that_exist() {
    let packages = [
        "slate-core",
        "slate-query",
        "slate-store",
        "slate-cli",
        "slate-bench",
        "slate-store-bench",
        "slate-server",
        "slate-store-conformance",
        "slate-trials",
        "examples/axum-service",
    ];
    let packages = packages.map(|package| repository().join(package));
    let exists = |kind: &str, name: &str| {
        let sources = [format!("{kind}/{name}.rs"), format!("{kind}/{name}/main.rs")];
        packages.iter().any(|package| sources.iter().any(|source| package.join(source).exists()))
    };
    let mut checked = 0;
    for page in ["", "docs", "docs/lab", "slate-bench"].into_iter().flat_map(pages_in) {
        let text = fs::read_to_string(&page).unwrap();
        for command in cargo_commands(&text) {
            for pair in command.windows(2).filter(|pair| pair[1] != "NAME") {
                let name = pair[1].trim_end_matches([';', ',', '.']);
                let is_known = match pair[0] {
                    "--example" => exists("examples", name),
                    "--test" => exists("tests", name),
                    "--bench" => exists("benches", name),
                    "-p" => packages.iter().any(|package| package.ends_with(name)),
                    _ => continue,
                };
                assert!(is_known, "{}: cargo {}", page.display(), command.join(" "));
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked}");
}
