//! The plan that `docs/architecture.md` draws through the layers is the one that the planner makes.

use bson::{Document, doc};
use slate_core::{Database, ExplainVerbosity, Index};

const PAGE: &str = include_str!("../../../docs/architecture.md");

#[test]
fn the_drawn_query_has_the_drawn_plan() {
    let users = Database::open("memory:").unwrap().collection::<Document>("users");
    let cities = ["Bern", "Basel", "Geneva", "Chur"];
    let user = |id: i32| doc! { "_id": id, "city": cities[usize::try_from(id).unwrap() % 4], "age": id % 90, "active": id % 3 > 0 };
    users.insert_many(&(0..3_000).map(user).collect::<Vec<_>>()).run().unwrap();
    users.create_index(Index::on(doc! { "city": 1, "age": -1 })).run().unwrap();

    let filter = doc! { "city": "Bern", "age": { "$gt": 30 }, "active": true };
    assert!(PAGE.contains(r#"users.find(doc! { "city": "Bern", "age": { "$gt": 30 }, "active": true }).run()?"#));
    let drawn = users.find(filter).explain(ExplainVerbosity::QueryPlanner).unwrap().to_string();
    let nodes: Vec<&str> = drawn.lines().filter(|line| !line.starts_with("rules:")).collect();
    assert_eq!(nodes.len(), 3, "{drawn}");
    for node in nodes {
        assert!(PAGE.contains(node), "the page does not draw {node}");
    }
}
