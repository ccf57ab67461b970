use super::{Stage, stages};
use crate::expression::Bindings;
use crate::{Code, Error, Result, raw::Value};

/// The most stages of a pipeline, MongoDB's limit: it bounds how deeply executors are nested.
const MAX_STAGES: usize = 1_000;

/// Parses the stages of a pipeline, each given as `{ $name: argument }`. An error has the stage's name as its path, or
/// the path within it.
///
/// # Errors
/// MongoDB's codes: `TypeMismatch` (14) for a stage that is not a document, 40323 for one that has not exactly one field,
/// 40324 for an unknown name, 7749501 for more than 1,000 stages, and those of the stages; `NotImplemented` (238) for
/// stages that Slate does not offer.
pub fn parse<'a>(pipeline: impl IntoIterator<Item = Value<'a>>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let mut parsed = Vec::new();
    for (place, stage) in pipeline.into_iter().enumerate() {
        if place == MAX_STAGES {
            let message = format!("a pipeline has at most {MAX_STAGES} stages");
            return Err(Error::new(Code(7_749_501), message));
        }
        let Some(stage) = stage.as_document() else {
            let message = "Each element of the 'pipeline' array must be an object";
            return Err(Error::new(Code::TYPE_MISMATCH, message).at(format!("pipeline.{place}")));
        };
        let mut elements = stage.elements();
        let (Some(only), None) = (elements.next(), elements.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(Code(40_323), message).at(format!("pipeline.{place}")));
        };
        let name = only.display_name();
        let stages = stages::parse(&name, only.value, bindings).map_err(|error| error.at(&*name))?;
        if place > 0 && stages.first().is_some_and(Stage::is_source) {
            return Err(not_first(&name));
        }
        parsed.extend(stages);
    }
    Ok(parsed)
}

/// Checks the name of a collection that a stage names.
///
/// # Errors
/// `InvalidNamespace` (73).
pub(crate) fn check_collection(name: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "must not be empty"
    } else if name.starts_with('.') {
        "must not begin with a dot"
    } else if name.contains(['$', '\0']) {
        "must not contain '$' or NUL"
    } else {
        return Ok(());
    };
    Err(Error::new(Code::INVALID_NAMESPACE, format!("the name of a collection {fault}: {name:?}")))
}

/// Returns the error for a stage that is not the first of its pipeline, but [must be](Stage::is_source).
pub fn not_first(stage: &str) -> Error {
    Error::new(Code(40_602), format!("{stage} is only valid as the first stage in a pipeline")).at(stage)
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson};

    use super::*;
    use crate::raw::with_value;

    fn parsed(pipeline: Bson) -> Result<Vec<String>> {
        with_value(&pipeline, |value| {
            let stages = value.as_array().map(|stages| parse(stages.values(), &Bindings::default()));
            let draw = |stage: &Stage| format!("{} {stage}", stage.name());
            stages.unwrap().map(|stages| stages.iter().map(draw).collect())
        })
    }

    #[test]
    fn stages_are_parsed_and_drawn() {
        for (stage, drawn) in [
            (bson!({"$match": {"a": 1}}), "$match { \"a\": 1 }"),
            (bson!({"$sort": {"a": -1}}), "$sort { a: -1 }"),
            (bson!({"$limit": 5.0}), "$limit 5"),
            (bson!({"$skip": 0}), "$skip 0"),
            (bson!({"$sample": {"size": 3}}), "$sample 3"),
            (bson!({"$count": "n"}), "$count n"),
            (bson!({"$collStats": {"count": {}}}), "$collStats { \"count\": {} }"),
            (bson!({"$indexStats": {}}), "$indexStats {}"),
            (bson!({"$unset": "a.b"}), "$project { \"a.b\": 0 }"),
            (bson!({"$unset": ["a", "b"]}), "$project { \"a\": 0, \"b\": 0 }"),
            (bson!({"$project": {"a": 1}}), "$project { \"a\": 1 }"),
            (bson!({"$unwind": "$a.b"}), "$unwind a.b"),
            (
                bson!({"$unwind": {"path": "$a", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": true}}),
                "$unwind a, index i, preserving empty",
            ),
        ] {
            assert_eq!(parsed(bson!([stage.clone()])).unwrap(), [drawn], "{stage}");
        }
        assert_eq!(parsed(bson!([])).unwrap().len(), 0);
    }

    #[test]
    fn a_stage_with_its_own_documents_comes_first() {
        for stage in [bson!({"$collStats": {}}), bson!({"$indexStats": {}}), bson!({"$documents": []})] {
            assert_eq!(parsed(bson!([stage.clone(), {"$limit": 1}])).unwrap().len(), 2);
            let refused = parsed(bson!([{"$match": {}}, stage.clone()])).unwrap_err();
            assert_eq!(refused.code(), Code(40_602), "{stage}");
        }
    }

    #[test]
    fn refused_stages_have_mongodbs_codes() {
        for (stage, code) in [
            (bson!(7), 14),
            (bson!({}), 40_323),
            (bson!({"$limit": 1, "$skip": 1}), 40_323),
            (bson!({"$nothing": 1}), 40_324),
            (bson!({"limit": 1}), 40_324),
            (bson!({"$geoNear": {}}), 238),
            (bson!({"$collStats": 1}), 5_447_000),
            (bson!({"$collStats": []}), 5_447_000),
            (bson!({"$collStats": {"counts": {}}}), 40_415),
            (bson!({"$collStats": {"count": 1}}), 14),
            (bson!({"$collStats": {"count": {"a": 1}}}), 31_170),
            (bson!({"$collStats": {"queryExecStats": {"a": 1}}}), 31_170),
            (bson!({"$collStats": {"storageStats": []}}), 14),
            (bson!({"$collStats": {"storageStats": {"scale": "a"}}}), 14),
            (bson!({"$collStats": {"storageStats": {"scale": 0}}}), 2),
            (bson!({"$collStats": {"storageStats": {"scale": 0.5}}}), 2),
            (bson!({"$collStats": {"latencyStats": {}}}), 238),
            (bson!({"$indexStats": 1}), 28_803),
            (bson!({"$indexStats": []}), 28_803),
            (bson!({"$indexStats": {"a": 1}}), 28_803),
            (bson!({"$facet": {"a": [{"$collStats": {}}]}}), 40_600),
            (bson!({"$facet": {"a": [{"$indexStats": {}}]}}), 40_600),
            (bson!({"$facet": {"a": [{"$documents": []}]}}), 40_600),
            (bson!({"$facet": {"a": [{"$lookup": {"pipeline": [{"$documents": []}], "as": "b"}}]}}), 40_600),
            (bson!({"$facet": {"a": [{"$unionWith": {"pipeline": [{"$documents": []}]}}]}}), 40_600),
            (bson!({"$unionWith": {"coll": "c", "pipeline": [{"$documents": []}]}}), 9),
            (bson!({"$lookup": {"from": "c", "pipeline": [{"$documents": []}], "as": "a"}}), 9),
            (bson!({"$lookup": {"as": "a", "nothing": 1}}), 9),
            (bson!({"$lookup": {"from": "c", "nothing": 1, "as": "a", "pipeline": []}}), 40_415),
            (bson!({"$lookup": {"from": "c", "pipeline": []}}), 40_414),
            (bson!({"$lookup": {"from": "c", "as": null, "pipeline": []}}), 40_414),
            (bson!({"$lookup": {"from": "c", "as": 1, "pipeline": []}}), 14),
            (bson!({"$lookup": {"from": "c", "as": "a", "localField": 1, "foreignField": "b"}}), 14),
            (bson!({"$lookup": {"from": "c", "as": "a", "let": [], "pipeline": []}}), 14),
            (bson!({"$lookup": {"from": "", "as": "a", "pipeline": []}}), 73),
            (bson!({"$lookup": {"from": "$c", "as": "a", "pipeline": []}}), 73),
            (bson!({"$lookup": {"from": ".c", "as": "a", "pipeline": []}}), 73),
            (bson!({"$lookup": {"from": "c\0", "as": "a", "pipeline": []}}), 73),
            (bson!({"$unionWith": "c$d"}), 73),
            (bson!({"$unionWith": {"coll": ".c"}}), 73),
            (bson!({"$graphLookup": {"from": "$c"}}), 73),
            (bson!({"$group": {"_id": {"a": 1}}}), 17_390),
            (bson!({"$group": {"_id": {"a": "$b", "c": true}}}), 17_390),
            (bson!({"$group": {"_id": {"": "$b"}}}), 15_998),
            (bson!({"$group": {"_id": null, "a": {"$push": {"": "$b"}}}}), 15_998),
            (bson!({"$replaceRoot": {"newRoot": {"": "$b"}}}), 15_998),
            (bson!({"$replaceWith": {"a": {"": 1}}}), 15_998),
            (
                bson!({"$setWindowFields": {"sortBy": {"a": 1, "b": 1}, "output": {"n": {"$documentNumber": {}}}}}),
                5_371_602,
            ),
            (bson!({"$match": 1}), 15_959),
            (bson!({"$match": {"$nothing": 1}}), 2),
            (bson!({"$limit": "a"}), 5_107_201),
            (bson!({"$limit": 1.5}), 5_107_201),
            (bson!({"$limit": 0}), 15_958),
            (bson!({"$limit": -1}), 15_958),
            (bson!({"$skip": true}), 5_107_200),
            (bson!({"$skip": -1}), 5_107_200),
            (bson!({"$sort": 1}), 15_973),
            (bson!({"$sort": {}}), 15_976),
            (bson!({"$sort": {"$natural": 1}}), 16_410),
            (bson!({"$count": 1}), 40_156),
            (bson!({"$count": ""}), 40_157),
            (bson!({"$count": "$a"}), 40_158),
            (bson!({"$count": "a\0."}), 40_159),
            (bson!({"$count": "a.b"}), 40_160),
            (bson!({"$unset": 1}), 31_002),
            (bson!({"$unset": []}), 31_119),
            (bson!({"$unset": [1]}), 31_120),
            (bson!({"$unset": "a\0"}), 9_527_900),
            (bson!({"$unset": ["a", "a.b"]}), 31_249),
            (bson!({"$project": 1}), 15_969),
            (bson!({"$project": {}}), 51_272),
            (bson!({"$project": {"a": {"$elemMatch": {"b": 1}}}}), 168),
            (bson!({"$project": {"a.$": 1}}), 31_324),
            (bson!({"$sample": 1}), 28_745),
            (bson!({"$sample": {"size": "a"}}), 28_746),
            (bson!({"$sample": {"size": -1}}), 28_747),
            (bson!({"$sample": {"n": 1}}), 28_748),
            (bson!({"$sample": {}}), 28_749),
            (bson!({"$unwind": 1}), 15_981),
            (bson!({"$unwind": "a"}), 28_818),
            (bson!({"$unwind": "$"}), 40_352),
            (bson!({"$unwind": {"path": 1}}), 28_808),
            (bson!({"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": 1}}), 28_809),
            (bson!({"$unwind": {"path": "$a", "includeArrayIndex": ""}}), 28_810),
            (bson!({"$unwind": {"path": "$a", "other": ""}}), 28_811),
            (bson!({"$unwind": {}}), 28_812),
            (bson!({"$unwind": {"path": "$a", "includeArrayIndex": "$i"}}), 28_822),
        ] {
            assert_eq!(parsed(bson!([stage.clone()])).unwrap_err().code(), Code(code), "{stage}");
        }
    }
}
