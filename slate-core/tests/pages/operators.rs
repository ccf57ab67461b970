//! The examples of `docs/operators.md`: each is executed, and its result is the one on the page.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Collection, Database, OperatorKind};

const PAGE: &str = include_str!("../../../docs/operators.md");

/// Returns the part of the page below a heading.
fn section(name: &str) -> &'static str {
    let start = PAGE.find(&format!("\n## {name}\n")).unwrap_or_else(|| panic!("{name} is missing"));
    let rest = &PAGE[start + 4..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// Returns the rows of the section's table, cell by cell.
fn rows(section: &'static str) -> Vec<Vec<&'static str>> {
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

fn parse(json: &str) -> Document {
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    match Bson::try_from(value).unwrap() {
        Bson::Document(document) => document,
        other => panic!("{other}"),
    }
}

/// Returns the document in a cell; `None` if the cell is empty.
fn document(cell: &str) -> Option<Document> {
    cell.strip_prefix('`').and_then(|json| json.strip_suffix('`')).map(parse)
}

fn goods() -> (Database, Collection<Document>) {
    let db = Database::open("memory:").unwrap();
    let goods = db.collection("goods");
    let json = PAGE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    goods.insert_one(&parse(json)).unwrap();
    (db, goods)
}

#[test]
fn filters_match() {
    let (_, goods) = goods();
    let rows = rows(section("Filters"));
    for row in &rows {
        let filter = document(row[2]).unwrap();
        let name = row[0].trim_matches('`');
        assert!(row[2].contains(&format!("\"{name}\"")), "{row:?}");
        let expected = u64::from(name != "$alwaysFalse");
        assert_eq!(goods.count_documents(filter).run().unwrap(), expected, "{row:?}");
    }
    assert!(rows.len() > 25);
}

#[test]
fn updates_change_what_the_page_shows() {
    let rows = rows(section("Updates"));
    for row in &rows {
        let (_, goods) = goods();
        let update = document(row[2]).unwrap();
        assert_eq!(update.keys().next().unwrap(), row[0].trim_matches('`'));
        goods.update_one(doc! { "_id": 1 }, update).run().unwrap();
        let after = goods.find_by_id(1).unwrap().unwrap();
        for (field, value) in document(row.get(3).unwrap_or(&"").trim_end_matches(" |")).unwrap_or_default() {
            assert_eq!(after.get(&field), Some(&value), "{row:?}");
        }
        match row[0] {
            "`$unset`" => assert!(!after.contains_key("price")),
            "`$rename`" => assert!(!after.contains_key("qty")),
            "`$currentDate`" => assert!(after.get_datetime("seen").is_ok()),
            _ => assert!(row[3].len() > 2, "{row:?}"),
        }
    }
    assert!(rows.len() > 12);
}

#[test]
fn projections_return_what_the_page_shows() {
    let (_, goods) = goods();
    let rows = rows(section("Projections"));
    for row in &rows {
        let found = goods.find_one(doc! { "tags": "dry" }).projection(document(row[2]).unwrap()).run().unwrap();
        assert_eq!(found, document(row[3]), "{row:?}");
    }
    assert_eq!(rows.len(), 6);
}

#[test]
fn commands_succeed_in_the_order_of_the_page() {
    let (db, _) = goods();
    let rows = rows(section("Commands"));
    for row in &rows {
        let command = document(row[2]).unwrap();
        assert!(row[0].contains(&format!("`{}`", command.keys().next().unwrap())), "{row:?}");
        let reply = db.command(RawDocumentBuf::try_from(&command).unwrap());
        let reply = reply.unwrap_or_else(|error| panic!("{row:?}: {error}"));
        assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{row:?}");
        assert!(reply.get("writeErrors").unwrap().is_none(), "{row:?}: {reply:?}");
    }
    assert!(rows.len() > 15);
}

#[test]
fn every_operator_and_command_is_named() {
    let aggregation = include_str!("../../../docs/aggregation.md");
    for kind in OperatorKind::ALL {
        let page = match kind {
            OperatorKind::Filter => section("Filters"),
            OperatorKind::Update => section("Updates"),
            _ => aggregation,
        };
        let missing: Vec<_> = kind.names().into_iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, [""; 0], "{kind:?}");
    }
    // Operators that are refused by name are in the tables, too.
    let operators = include_str!("../../../docs/operators.md");
    for (source, page) in [
        (include_str!("../../../slate-query/src/filter/operators/mod.rs"), operators),
        (include_str!("../../../slate-query/src/update/operator/mod.rs"), operators),
        (include_str!("../../../slate-query/src/pipeline/stages/mod.rs"), aggregation),
        (include_str!("../../../slate-query/src/expression/operators/mod.rs"), aggregation),
    ] {
        let names = source.lines().filter_map(|line| Some(line.split_once("(\"$")?.1.split_once("\",")?.0));
        let names = names.filter(|name| !name.contains(' '));
        let missing: Vec<_> = names.clone().filter(|name| !page.contains(&format!("`${name}`"))).collect();
        assert_eq!(missing, [""; 0]);
        assert!(names.count() >= 15);
    }
    let source = include_str!("../../src/command/mod.rs");
    let commands = source.lines().filter_map(|line| Some(line.trim().strip_prefix("(\"")?.split_once("\", ")?.0));
    let page = section("Commands");
    let (table, _) = page.split_at(page.rfind("|\n").unwrap());
    let mut count = 0;
    for name in commands {
        // They need the id of a cursor, so no example of the table can show them.
        let part = if matches!(name, "getMore" | "killCursors") { page } else { table };
        assert!(part.contains(&format!("`{name}`")), "{name}");
        count += 1;
    }
    assert!(count > 25);
}
