//! What the cookbook says about how its recipes become programs.

const COOKBOOK: &str = include_str!("../../../docs/cookbook.md");

/// Returns the recipes that are programs, without the lines that rustdoc hides.
fn recipes() -> Vec<String> {
    let blocks = COOKBOOK.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let shown = |block: &str| block.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n");
    blocks.filter(|block| !block.contains("block_on")).map(shown).collect()
}

#[test]
fn the_last_line_of_a_recipe_is_the_result_of_main() {
    assert!(recipes().len() > 25);
    for recipe in recipes() {
        let last = recipe.lines().last().unwrap();
        assert!(
            ["Ok::<(), slate_core::Error>(())", "Ok::<(), Box<dyn std::error::Error>>(())"].contains(&last),
            "{recipe}"
        );
    }
}

#[test]
fn the_crates_that_recipes_use_are_named() {
    let introduction = COOKBOOK.split("\n## ").next().unwrap();
    let manifest: toml::Table = toml::from_str(include_str!("../../Cargo.toml")).unwrap();
    let all =
        ["dependencies", "dev-dependencies"].iter().flat_map(|section| manifest[*section].as_table().unwrap().keys());
    for name in all.map(|name| name.replace('-', "_")) {
        let path = format!("{name}::");
        let is_used = |recipe: &String| {
            let before = |at: usize| recipe[..at].chars().next_back();
            let mut places = recipe.match_indices(&path);
            places.any(|(at, _)| before(at).is_none_or(|before| !(before.is_alphanumeric() || "_:".contains(before))))
        };
        let named = introduction.contains(&format!("`{name}`")) || name == "slate_core";
        assert!(named || !recipes().iter().any(is_used), "the introduction does not name {name}");
    }
}

#[test]
fn the_keys_of_a_configuration_are_those_that_it_has() {
    let section = COOKBOOK.split("\n## Settings\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let keys: Vec<_> = rows.map(|row| row.split('`').next().unwrap()).collect();
    // The error for an unknown key lists the known ones.
    let error = toml::from_str::<slate_core::Config>("url = 'memory:'\nunknown = 1").unwrap_err().to_string();
    let known: Vec<_> = error.split("expected one of ").nth(1).unwrap().split('`').skip(1).step_by(2).collect();
    assert_eq!(keys, known);
}
