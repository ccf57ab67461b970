//! Types of `chrono`, `time` and `uuid` in typed documents, filters, sorts and updates.

use bson::{
    RawDocumentBuf, doc,
    serde_helpers::{datetime, uuid_1},
    spec::ElementType,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use slate_core::Index;
use time::OffsetDateTime;
use uuid::Uuid;

use super::common::on_every_store;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Event {
    #[serde(rename = "_id", with = "uuid_1::AsBinary")]
    id: Uuid,
    #[serde(with = "datetime::FromChrono04DateTime")]
    at: DateTime<Utc>,
    #[serde(with = "datetime::FromTime03OffsetDateTime")]
    until: OffsetDateTime,
    seen: Option<bson::DateTime>,
    guests: Vec<bson::Uuid>,
}

fn event(n: i64) -> Event {
    let instant = |millis| DateTime::from_timestamp_millis(millis).unwrap();
    Event {
        id: Uuid::from_u128(n.unsigned_abs().into()),
        at: instant(n * 1_000),
        until: OffsetDateTime::from_unix_timestamp(n + 60).unwrap(),
        seen: (n % 2 == 0).then(|| instant(n * 1_000 + 1).into()),
        guests: vec![Uuid::from_u128(7).into(), Uuid::from_u128(u128::MAX - 1).into()],
    }
}

#[test]
fn dates_and_uuids_round_trip_and_are_queried() {
    on_every_store(|test| {
        // Before and after 1970.
        let all: Vec<Event> = (-5..5)
            .map(|n| event(n * 86_400))
            .enumerate()
            .map(|(n, mut event)| {
                event.id = Uuid::from_u128(n as u128);
                event
            })
            .collect();
        let events = test.db.collection::<Event>("events");
        events.create_index(Index::on(doc! { "at": 1 })).run().unwrap();
        events.insert_many(&all).run().unwrap();
        assert_eq!(events.find(doc! {}).sort(doc! { "at": 1 }).collect().unwrap(), all);

        let stored = test.collection("events").find_one(doc! {}).sort(doc! { "at": 1 }).run().unwrap().unwrap();
        let types = ["_id", "at", "until"].map(|field| stored.get(field).unwrap().unwrap().element_type());
        assert_eq!(types, [ElementType::Binary, ElementType::DateTime, ElementType::DateTime]);

        assert_eq!(events.find_by_id(all[3].id).unwrap().as_ref(), Some(&all[3]));
        let from = doc! { "at": { "$gte": all[7].at } };
        assert_eq!(events.find(from).sort(doc! { "at": 1 }).collect().unwrap(), all[7..]);
        let ends = doc! { "until": { "$lt": all[2].until } };
        assert_eq!(events.count_documents(ends).run().unwrap(), 2);
        assert_eq!(events.count_documents(doc! { "guests": Uuid::from_u128(7) }).run().unwrap(), 10);
        assert_eq!(events.count_documents(doc! { "seen": null }).run().unwrap(), 0);
        assert_eq!(events.find_one(doc! { "seen": all[1].seen }).run().unwrap().as_ref(), Some(&all[1]));

        let moved = events.update_one(doc! { "_id": all[0].id }, doc! { "$set": { "at": all[9].at } });
        assert_eq!(moved.run().unwrap().modified, 1);
        let days: Vec<bson::DateTime> = events.distinct("at", doc! {}).run_as().unwrap();
        assert_eq!(days.last().unwrap().to_chrono(), all[9].at);
        let sum = events.aggregate([doc! { "$match": { "at": all[9].at } }, doc! { "$count": "n" }]);
        assert_eq!(sum.first().unwrap(), Some(doc! { "n": 2 }));
    });
}

#[test]
fn a_uuid_without_the_helper_is_a_binary_of_another_subtype() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Plain {
        #[serde(rename = "_id")]
        id: Uuid,
    }

    on_every_store(|test| {
        let plain = test.db.collection::<Plain>("plain");
        let id = Uuid::from_u128(1 << 100);
        plain.insert_one(&Plain { id }).unwrap();
        assert_eq!(plain.find_one(doc! {}).run().unwrap(), Some(Plain { id }));
        // As the `bson` crate serializes it.
        let stored: RawDocumentBuf = test.collection("plain").find_one(doc! {}).run().unwrap().unwrap();
        assert_eq!(stored.as_bytes(), bson::serialize_to_vec(&Plain { id }).unwrap());
        assert_eq!(stored.get_binary("_id").unwrap().subtype, bson::spec::BinarySubtype::Generic);
        assert_eq!(plain.find_by_id(id).unwrap(), None);
    });
}
