//! The versions and features that README and the page on guarantees state.

const README: &str = include_str!("../../../README.md");
const GUARANTEES: &str = include_str!("../../../docs/guarantees.md");
const WORKFLOW: &str = include_str!("../../../.github/workflows/ci.yml");

fn manifest(text: &str) -> toml::Table {
    toml::from_str(text).unwrap()
}

fn workspace() -> toml::Table {
    manifest(include_str!("../../../Cargo.toml"))
}

#[test]
fn the_minimum_rust_version_is_the_stated_one() {
    let version = workspace()["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    assert!(README.contains(&format!("Rust {version}")), "README.md");
    assert!(GUARANTEES.contains(&format!("The minimum supported Rust version is {version}")), "docs/guarantees.md");
    assert!(WORKFLOW.contains(&format!("cargo +{version} check")), "the public workflow");
}

#[test]
fn the_dependencies_block_is_valid_and_names_the_version_of_bson() {
    let block = README.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dependencies = manifest(block);
    let bson = &dependencies["dependencies"]["bson"];
    assert_eq!(bson, &workspace()["workspace"]["dependencies"]["bson"]);
    assert!(README.contains(&format!("Slate uses bson {}", bson["version"].as_str().unwrap())));
}

#[test]
fn the_features_are_named() {
    let manifest = manifest(include_str!("../../Cargo.toml"));
    let crate_page = include_str!("../../src/lib.rs");
    for feature in manifest["features"].as_table().unwrap().keys().filter(|feature| *feature != "default") {
        assert!(crate_page.contains(&format!("`{feature}`")), "the crate's page does not name {feature}");
        let is_for_tests = matches!(&**feature, "failpoints" | "unstable-testing");
        assert!(is_for_tests || README.contains(feature), "README.md does not name {feature}");
    }
}
