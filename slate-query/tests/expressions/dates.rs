//! Dates and time zones.

use bson::{Bson, DateTime, bson, doc};

use super::{check, evaluate, refused};

#[test]
fn dates_of_any_year_have_parts() {
    let date = |millis: i64| Bson::DateTime(DateTime::from_millis(millis));
    let text = |text: &str| Bson::DateTime(DateTime::parse_rfc3339_str(text).unwrap());
    check(
        doc! { "max": date(i64::MAX), "min": date(i64::MIN), "far": text("9999-12-31T23:59:59Z") },
        &[
            (bson!({ "$year": "$max" }), bson!(292_278_994)),
            (bson!({ "$month": "$min" }), bson!(5)),
            (bson!({ "$second": "$max" }), bson!(55)),
            (bson!({ "$isoWeekYear": "$min" }), bson!(-292_275_055_i64)),
            (bson!({ "$dayOfYear": "$far" }), bson!(365)),
            (bson!({ "$dateAdd": { "startDate": "$far", "unit": "second", "amount": 1 } }), date(253_402_300_800_000)),
            (bson!({ "$year": { "$dateAdd": { "startDate": "$far", "unit": "month", "amount": 25 } } }), bson!(10_002)),
            (
                bson!({ "$dateDiff": { "startDate": "$far", "endDate": "$max", "unit": "year" } }),
                bson!(292_268_995_i64),
            ),
            (
                bson!({ "$dateTrunc": { "date": "$max", "unit": "year" } }),
                Bson::DateTime(DateTime::from_millis(9_223_372_017_129_600_000)),
            ),
            (
                bson!({ "$dateFromParts": { "year": 9_999, "month": 13, "timezone": "-99:99" } }),
                date(253_402_300_800_000 + (99 * 60 + 99) * 60_000),
            ),
            (
                bson!({ "$dateFromParts": { "isoWeekYear": 2020, "isoWeek": 53, "isoDayOfWeek": 7 } }),
                text("2021-01-03T00:00:00Z"),
            ),
            (bson!({ "$hour": { "date": text("2024-07-01T00:00:00Z"), "timezone": "Europe/Berlin" } }), bson!(2)),
            (bson!({ "$hour": { "date": date(9_000_014_000_000_000), "timezone": "Europe/Berlin" } }), bson!(17)),
        ],
    );
    refused(
        doc! { "max": date(i64::MAX) },
        &[
            (bson!({ "$dateToString": { "date": "$max" } }), 18_537),
            (bson!({ "$dateAdd": { "startDate": "$max", "unit": "day", "amount": 1 } }), 5_166_406),
            (bson!({ "$dateAdd": { "startDate": "$max", "unit": "month", "amount": i64::MAX } }), 5_976_500),
            (bson!({ "$dateTrunc": { "date": "$max", "unit": "year", "binSize": i64::MAX } }), 5_439_006),
        ],
    );
}

#[test]
fn dates_in_time_zones() {
    let date = |text: &str| Bson::DateTime(DateTime::parse_rfc3339_str(text).unwrap());
    let d =
        || doc! { "d": date("2024-03-10T07:30:15.250Z"), "s": date("2023-12-31T23:00:00Z"), "z": "America/New_York" };
    check(
        d(),
        &[
            (bson!({ "$year": "$d" }), bson!(2024)),
            (bson!({ "$month": ["$d"] }), bson!(3)),
            (bson!({ "$hour": { "date": "$d", "timezone": "$z" } }), bson!(3)),
            (bson!({ "$hour": { "date": "$d", "timezone": "+05:30" } }), bson!(13)),
            (bson!({ "$millisecond": "$d" }), bson!(250)),
            (bson!({ "$dayOfWeek": "$d" }), bson!(1)),
            (bson!({ "$dayOfYear": "$d" }), bson!(70)),
            (bson!({ "$week": "$d" }), bson!(10)),
            (bson!({ "$isoWeek": "$s" }), bson!(52)),
            (bson!({ "$isoWeekYear": "$s" }), bson!(2023_i64)),
            (bson!({ "$isoDayOfWeek": "$d" }), bson!(7)),
            (bson!({ "$year": "$none" }), Bson::Null),
            (bson!({ "$year": { "date": "$d", "timezone": "$none" } }), Bson::Null),
            (bson!({ "$dateToString": { "date": "$d" } }), bson!("2024-03-10T07:30:15.250Z")),
            (
                bson!({ "$dateToString": { "date": "$d", "format": "%d %b %Y %H:%M %z", "timezone": "$z" } }),
                bson!("10 Mar 2024 03:30 -0400"),
            ),
            (bson!({ "$dateToString": { "date": "$none", "onNull": "no" } }), bson!("no")),
            (bson!({ "$dateFromParts": { "year": 2024, "month": 14, "day": -1 } }), date("2025-01-30T00:00:00Z")),
            (
                bson!({ "$dateFromParts": { "isoWeekYear": 2024, "isoWeek": 1, "timezone": "$z" } }),
                date("2024-01-01T05:00:00Z"),
            ),
            (bson!({ "$dateFromString": { "dateString": "2024-02-08" } }), date("2024-02-08T00:00:00Z")),
            (
                bson!({ "$dateFromString": { "dateString": "08/02/2024 13", "format": "%d/%m/%Y %H", "timezone": "$z" } }),
                date("2024-02-08T18:00:00Z"),
            ),
            (bson!({ "$dateFromString": { "dateString": "x", "onError": 1 } }), bson!(1)),
            (bson!({ "$dateAdd": { "startDate": "$s", "unit": "month", "amount": 2 } }), date("2024-02-29T23:00:00Z")),
            (
                bson!({ "$dateAdd": { "startDate": "$d", "unit": "day", "amount": 1, "timezone": "$z" } }),
                date("2024-03-11T07:30:15.250Z"),
            ),
            (
                bson!({ "$dateSubtract": { "startDate": "$d", "unit": "hour", "amount": 8 } }),
                date("2024-03-09T23:30:15.250Z"),
            ),
            (bson!({ "$dateDiff": { "startDate": "$s", "endDate": "$d", "unit": "year" } }), bson!(1_i64)),
            (
                bson!({ "$dateDiff": { "startDate": "$s", "endDate": "$d", "unit": "week", "startOfWeek": "monday" } }),
                bson!(10_i64),
            ),
            (
                bson!({ "$dateDiff": { "startDate": "$s", "endDate": "$d", "unit": "day", "timezone": "Asia/Tokyo" } }),
                bson!(69_i64),
            ),
            (bson!({ "$dateTrunc": { "date": "$d", "unit": "quarter" } }), date("2024-01-01T00:00:00Z")),
            (bson!({ "$dateTrunc": { "date": "$d", "unit": "hour", "binSize": 6 } }), date("2024-03-10T06:00:00Z")),
            (bson!({ "$dateTrunc": { "date": "$d", "unit": "day", "timezone": "$z" } }), date("2024-03-10T05:00:00Z")),
            (
                bson!({ "$dateTrunc": { "date": "$d", "unit": "week", "startOfWeek": "monday" } }),
                date("2024-03-04T00:00:00Z"),
            ),
            (
                bson!({ "$dateToParts": { "date": "$s", "iso8601": true } }),
                bson!({ "isoWeekYear": 2023, "isoWeek": 52, "isoDayOfWeek": 7, "hour": 23, "minute": 0, "second": 0, "millisecond": 0 }),
            ),
            (bson!({ "$dateAdd": { "startDate": "x", "unit": "day", "amount": null } }), Bson::Null),
            (bson!({ "$dateDiff": { "startDate": "x", "endDate": "x", "unit": null } }), Bson::Null),
            (bson!({ "$dateTrunc": { "date": "x", "unit": "week", "startOfWeek": null } }), Bson::Null),
            (bson!({ "$dateTrunc": { "date": "x", "unit": "day", "timezone": null } }), Bson::Null),
            (bson!({ "$dateFromParts": { "year": 1970, "second": 4_000_000_000_i64 } }), date("2096-10-02T07:06:40Z")),
        ],
    );
    refused(
        d(),
        &[
            (bson!({ "$year": "x" }), 16006),
            (bson!({ "$year": {} }), 40539),
            (bson!({ "$dateAdd": { "startDate": "x", "unit": "eon", "amount": null } }), 9),
            (bson!({ "$dateTrunc": { "date": "x", "unit": "eon", "timezone": null } }), 9),
            (bson!({ "$year": { "date": "$d", "timezone": "No/Where" } }), 40485),
            (bson!({ "$year": { "date": "$d", "zone": 1 } }), 40535),
            (bson!({ "$dateToString": { "date": "$d", "format": "%Q" } }), 18536),
            (bson!({ "$dateAdd": { "startDate": "$d", "unit": "eon", "amount": 1 } }), 9),
            (bson!({ "$dateTrunc": { "date": "x", "unit": "day", "startOfWeek": null } }), 5_166_307),
            (bson!({ "$dateFromParts": {} }), 40516),
            (bson!({ "$dateFromParts": { "year": 1970, "second": i64::MAX } }), 5_166_406),
            (bson!({ "$dateFromString": { "dateString": "x" } }), 241),
        ],
    );
}

/// Returns the date that a text means, in UTC.
fn read(text: &str) -> Option<DateTime> {
    let date = evaluate(&bson!({ "$dateFromString": { "dateString": text, "onError": null } }), &doc! {}).unwrap();
    date.and_then(|date| date.as_datetime().copied())
}

fn utc(text: &str) -> DateTime {
    DateTime::parse_rfc3339_str(text).unwrap()
}

#[test]
fn dates_are_read_as_people_write_them() {
    for (text, expected) in [
        ("July 4th, 2017", "2017-07-04T00:00:00"),
        ("Jul 4 2017 11am", "2017-07-04T11:00:00"),
        ("july-04-2017 11:30 P.M.", "2017-07-04T23:30:00"),
        ("July 2017", "2017-07-01T00:00:00"),
        ("4 July 2017 12am", "2017-07-04T00:00:00"),
        ("4th Jul 2017 12pm", "2017-07-04T12:00:00"),
        ("22DEC78", "1978-12-22T00:00:00"),
        ("14 III 1879", "1879-03-14T00:00:00"),
        ("Tue, 4 Jul 2017 noon", "2017-07-04T12:00:00"),
        ("Wed 4 Jul 2017", "2017-07-05T00:00:00"),
        ("2017-Jul-04 12:48:07.5", "2017-07-04T12:48:07.5"),
        ("2017 Jul", "2017-07-01T00:00:00"),
        ("7/4/17", "2017-07-04T00:00:00"),
        ("2017/7/4 1:02", "2017-07-04T01:02:00"),
        ("04-07-2017", "2017-07-04T00:00:00"),
        ("4.7.2017 11.56", "2017-07-04T11:56:00"),
        ("40.7.17", ""),
        ("17-7-4", "2017-07-04T00:00:00"),
        ("2017-7-4", "2017-07-04T00:00:00"),
        ("2017-07", "2017-07-01T00:00:00"),
        ("20170704T11:56", "2017-07-04T11:56:00"),
        ("2017-07-04T11:56.02.81", "2017-07-04T11:56:02.81"),
        ("2017-W27-2", "2017-07-04T00:00:00"),
        ("2017W272", "2017-07-04T00:00:00"),
        ("2017-02-29", ""),
        ("2017-07-04 24:00", ""),
        ("2017-07-04 13pm", ""),
        ("2017-07-04 2018-07-04", ""),
        ("2017-07-04 1:02 3:04", ""),
        ("2017, 12:50:53", ""),
        ("60.Monday1770/06:59", ""),
        ("July 4th", ""),
        ("12:50:53", ""),
        ("Friday", ""),
        ("2017", ""),
        ("", ""),
    ] {
        assert_eq!(read(text), (!expected.is_empty()).then(|| utc(&format!("{expected}Z"))), "{text}");
    }
}

#[test]
fn zones_are_abbreviations_and_offsets() {
    for (zone, expected) in [
        ("", Some(0)),
        ("Z", Some(0)),
        (" GMT", Some(0)),
        ("GMT+02", Some(120)),
        (" UTC-2:30", Some(-150)),
        (" CEST", Some(120)),
        (" pdt", Some(-420)),
        (" A", Some(60)),
        (" L", Some(660)),
        (" P", Some(-180)),
        ("+0545", Some(345)),
        (" -3", Some(-180)),
    ] {
        let noon = utc("2017-07-04T12:00:00Z").timestamp_millis();
        let date = expected.map(|minutes: i64| DateTime::from_millis(noon - minutes * 60_000));
        assert_eq!(read(&format!("4 Jul 2017 12:00{zone}")), date, "{zone}");
    }
    for zone in ["J", "Europe/Amsterdam", "GMT GMT", "+12345", "XYZ"] {
        assert!(read(&format!("4 Jul 2017 12:00 {zone}")).is_none(), "{zone}");
    }
}
