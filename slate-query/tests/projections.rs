//! Projections, by example.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use bson::{Document, doc};
use slate_query::{projection::Projection, raw::Doc};

fn project(projection: &Document, document: &Document) -> Document {
    let projection = projection.to_vec().unwrap();
    let document = document.to_vec().unwrap();
    let mut out = Vec::new();
    Projection::parse(Doc::new(&projection), &slate_query::expression::Bindings::default())
        .unwrap()
        .apply(Doc::new(&document), None, &mut out)
        .unwrap();
    slate_query::raw::validate(&out).unwrap();
    Document::from_reader(out.as_slice()).unwrap()
}

fn refusal(projection: &Document) -> i32 {
    let projection = projection.to_vec().unwrap();
    Projection::parse(Doc::new(&projection), &slate_query::expression::Bindings::default()).unwrap_err().code().0
}

#[test]
fn an_inclusion_keeps_the_documents_order_and_shows_the_id() {
    let document = doc! { "_id": 1, "c": 3, "b": 2, "a": 1 };
    assert_eq!(project(&doc! { "a": 1, "c": true }, &document), doc! { "_id": 1, "c": 3, "a": 1 });
    assert_eq!(project(&doc! { "a": 1.5, "_id": 0 }, &document), doc! { "a": 1 });
    assert_eq!(project(&doc! { "_id": 1 }, &document), doc! { "_id": 1 });
    assert_eq!(project(&doc! { "z": 1, "_id": 0 }, &document), doc! {});
}

#[test]
fn an_exclusion_shows_everything_else() {
    let document = doc! { "_id": 1, "a": { "b": 1, "c": 2 }, "d": [{ "e": 1, "f": 2 }, 7, [{ "e": 3 }]] };
    assert_eq!(project(&doc! { "a": 0, "d": 0 }, &document), doc! { "_id": 1 });
    assert_eq!(
        project(&doc! { "a.b": 0, "d.e": 0, "_id": 1 }, &document),
        doc! { "_id": 1, "a": { "c": 2 }, "d": [{ "f": 2 }, 7, [{}]] }
    );
    assert_eq!(project(&doc! { "_id": 0 }, &doc! { "_id": 1, "a": 1 }), doc! { "a": 1 });
}

#[test]
fn paths_within_arrays_include_documents_and_drop_scalars() {
    let document = doc! { "a": [1, { "b": 2, "c": 3 }, [{ "b": 4 }, 5], {}], "d": 6 };
    let expected = doc! { "a": [{ "b": 2 }, [{ "b": 4 }], {}] };
    assert_eq!(project(&doc! { "a.b": 1 }, &document), expected);
    assert_eq!(project(&doc! { "a": { "b": 1 } }, &document), expected);
    assert_eq!(project(&doc! { "d.x": 1 }, &document), doc! {});
}

#[test]
fn nested_and_dotted_forms_meet_in_one_tree() {
    let document = doc! { "a": { "b": 1, "c": 2, "d": { "e": 3, "f": 4 } } };
    let expected = doc! { "a": { "b": 1, "d": { "e": 3 } } };
    assert_eq!(project(&doc! { "a": { "b": 1 }, "a.d.e": 1 }, &document), expected);
    assert_eq!(project(&doc! { "a.d.e": 1, "a": { "b": 1 } }, &document), expected);
    assert_eq!(project(&doc! { "a": { "d.e": 1, "b": 1 } }, &document), expected);
}

#[test]
fn more_than_64_fields_are_found_and_of_one_name_the_first() {
    let name = |number: usize| format!("f{number}");
    let projection: Document = (0..100).map(|number| (name(number), 1.into())).collect();
    let document: Document =
        (0..200).rev().map(|number| (name(number), i32::try_from(number).unwrap().into())).collect();
    let shown: Document = (0..100).rev().map(|number| (name(number), i32::try_from(number).unwrap().into())).collect();
    assert_eq!(project(&projection, &document), shown);
}

#[test]
fn slices_leave_other_fields_and_the_id_decides_what_they_are() {
    let document = doc! { "_id": 1, "a": [1, 2, 3], "b": { "c": [[1, 2], { "d": [4, 5] }] }, "e": 9 };
    assert_eq!(project(&doc! { "a": { "$slice": -1 }, "e": 0, "b": 0 }, &document), doc! { "_id": 1, "a": [3] });
    assert_eq!(project(&doc! { "a": { "$slice": [1, 1] }, "_id": 1 }, &document), doc! { "_id": 1, "a": [2] });
    assert_eq!(project(&doc! { "a": { "$slice": 1 }, "e": 1 }, &document), doc! { "_id": 1, "a": [1], "e": 9 });
    assert_eq!(
        project(&doc! { "b.c.d": { "$slice": 1 }, "a": 0, "e": 0 }, &document),
        doc! { "_id": 1, "b": { "c": [[1, 2], { "d": [4] }] } }
    );
}

#[test]
fn colliding_paths_are_an_error() {
    assert_eq!(refusal(&doc! { "a": 1, "a.b": 1 }), 31249);
    assert_eq!(refusal(&doc! { "a.b": 1, "a": 1 }), 31250);
    assert_eq!(refusal(&doc! { "a": { "b": 1 }, "a.b": 1 }), 31250);
    assert_eq!(refusal(&doc! { "a": 1, "a.b": { "$slice": 1 } }), 31249);
    assert_eq!(refusal(&doc! { "a.b": 1, "a": { "b": { "c": 1 } } }), 31250);
}

#[test]
fn inclusion_and_exclusion_do_not_mix() {
    assert_eq!(refusal(&doc! { "a": 1, "b": 0 }), 31254);
    assert_eq!(refusal(&doc! { "b": 0, "a": 1 }), 31253);
    assert_eq!(refusal(&doc! { "b": 0, "a": "x" }), 31310);
    assert_eq!(refusal(&doc! { "b": 0, "a": { "$add": [1, 2] } }), 31252);
    assert_eq!(refusal(&doc! { "_id.x": 0, "a": 1 }), 31253);
}

#[test]
fn malformed_paths_and_operators_are_an_error() {
    assert_eq!(refusal(&doc! { "": 1 }), 40352);
    assert_eq!(refusal(&doc! { "a.": 1 }), 40353);
    assert_eq!(refusal(&doc! { "a..b": 1 }), 15998);
    assert_eq!(refusal(&doc! { "$a": 1 }), 16410);
    assert_eq!(refusal(&doc! { "$": 1 }), 16410);
    assert_eq!(refusal(&doc! { "a": {} }), 51270);
    assert_eq!(refusal(&doc! { "a": { "$inc": 1 } }), 31325);
    assert_eq!(refusal(&doc! { "a": { "$slice": 1, "b": 1 } }), 16410);
    assert_eq!(refusal(&doc! { "a": { "$meta": "nothing" } }), 17308);
    assert_eq!(refusal(&doc! { "a": "$" }), 16872);
    assert_eq!(refusal(&doc! { "a": "$$nobody" }), 17276);
}

#[test]
fn misplaced_positional_operators_are_an_error() {
    assert_eq!(refusal(&doc! { "a.$.b": 1 }), 31394);
    assert_eq!(refusal(&doc! { "a.$": 0 }), 31395);
    assert_eq!(refusal(&doc! { "a.$": 1, "b.$": 1 }), 31276);
    assert_eq!(refusal(&doc! { ".$": 1 }), 5_392_900);
    assert_eq!(refusal(&doc! { "a": 0, "b.$": 1 }), 31253);
    assert_eq!(refusal(&doc! { "a.$": { "$slice": 1 } }), 31271);
    let in_a_stage = |projection: &Document| {
        let projection = projection.to_vec().unwrap();
        Projection::parse_stage(Doc::new(&projection), &slate_query::expression::Bindings::default())
            .unwrap_err()
            .code()
            .0
    };
    assert_eq!(in_a_stage(&doc! { "a.$": 1 }), 31324);
    assert_eq!(in_a_stage(&doc! { "a.$.b": 1 }), 31394);
}

#[test]
fn unsupported_expressions_fail_by_name_after_other_errors() {
    let unsupported = |projection: Document| {
        let projection = projection.to_vec().unwrap();
        let error =
            Projection::parse(Doc::new(&projection), &slate_query::expression::Bindings::default()).unwrap_err();
        (error.code().0, error.to_string())
    };
    assert_eq!(unsupported(doc! { "a": { "$function": 1 } }), (238, "$function is not supported (at 'a')".into()));
    assert_eq!(refusal(&doc! { "a": { "$function": 1 }, "b": 0 }), 31254);
    assert_eq!(refusal(&doc! { "a": { "$add": [1, 2] }, "b": 0 }), 31254);
}

#[test]
fn computed_fields_are_set_after_the_fields_are_chosen() {
    let shown = |projection: Document, document: Document| {
        let (projection, document) = (projection.to_vec().unwrap(), document.to_vec().unwrap());
        let projection =
            Projection::parse(Doc::new(&projection), &slate_query::expression::Bindings::default()).unwrap();
        let mut out = Vec::new();
        projection.apply(Doc::new(&document), None, &mut out).unwrap();
        Document::from_reader(&*out).unwrap()
    };
    let document = doc! { "_id": 1, "a": [{ "x": 1 }, 5], "b": 2, "c": 3 };
    for (projection, expected) in [
        (doc! { "c": 1, "sum": { "$add": ["$b", "$c"] } }, doc! { "_id": 1, "c": 3, "sum": 5 }),
        (doc! { "b": "$c" }, doc! { "_id": 1, "b": 3 }),
        (doc! { "_id": 0, "d": "$nothing" }, doc! {}),
        (doc! { "a.y": "$b" }, doc! { "_id": 1, "a": [{ "y": 2 }, { "y": 2 }] }),
        (doc! { "b": { "y": "$c" } }, doc! { "_id": 1, "b": { "y": 3 } }),
        (doc! { "d": { "$slice": ["$a", 1] } }, doc! { "_id": 1, "d": [{ "x": 1 }] }),
    ] {
        assert_eq!(shown(projection.clone(), document.clone()), expected, "{projection}");
    }
}

#[test]
fn an_inclusion_of_whole_paths_returns_them() {
    let included = |projection: Document| {
        let projection = projection.to_vec().unwrap();
        let projection =
            Projection::parse(Doc::new(&projection), &slate_query::expression::Bindings::default()).unwrap();
        projection.included().map(|paths| paths.iter().map(|path| path.as_str().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(included(doc! { "a.b": 1, "a.c": 1 }), Some(vec!["a.b".into(), "a.c".into(), "_id".into()]));
    assert_eq!(included(doc! { "a": 1, "_id": 0 }), Some(vec!["a".into()]));
    assert_eq!(included(doc! { "a": 0 }), None);
    assert_eq!(included(doc! { "a": 1, "b": { "$slice": 1 } }), None);
    assert_eq!(included(doc! {}), None);
}
