use bson::Document;
use slate_bench_harness::Result;

/// A question about the records of the first user.
///
/// The results of the pipeline and of the SQL have the same columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The row's name.
    pub name: &'static str,
    /// The stages as extended JSON. The companies are in the collections `companies`, which has an index on `code`, and
    /// `companies_unindexed`.
    pub pipeline: &'static str,
    /// SQL for SQLite and DuckDB. `{field}` stands for the expression of a record's field, `{r.field}` and `{c.field}` for
    /// those of the tables with these aliases, `{each_tag}` for a table of the records' tags, with the column `tag`.
    pub sql: &'static str,
}

impl Question {
    /// Parses the pipeline.
    ///
    /// # Errors
    /// Fails if it is not an array of documents.
    pub fn stages(&self) -> Result<Vec<Document>> {
        Ok(serde_json::from_str(self.pipeline)?)
    }

    /// Returns the SQL with the expressions of a database: `field` is called with the alias, which may be empty, and the name
    /// of each field.
    pub fn sql(&self, each_tag: &str, field: impl Fn(&str, &str) -> String) -> String {
        let mut sql = String::new();
        for part in self.sql.split('{') {
            match part.split_once('}') {
                None => sql.push_str(part),
                Some(("each_tag", rest)) => sql.extend([each_tag, rest]),
                Some((name, rest)) => {
                    let (alias, name) = name.split_once('.').unwrap_or(("", name));
                    sql.extend([field(alias, name).as_str(), rest]);
                }
            }
        }
        sql
    }
}

/// The questions.
pub const QUESTIONS: [Question; 11] = [
    Question {
        name: "count and sum",
        pipeline: r#"[{"$group": {"_id": null, "n": {"$sum": 1}, "total": {"$sum": "$contacts_count"}}},
                      {"$project": {"_id": 0}}]"#,
        sql: "SELECT count(*), sum({contacts_count}) FROM records_1",
    },
    Question {
        name: "largest contacts_count (indexed)",
        pipeline: r#"[{"$group": {"_id": null, "most": {"$max": "$contacts_count"}}}, {"$project": {"_id": 0}}]"#,
        sql: "SELECT max({contacts_count}) FROM records_1",
    },
    Question {
        name: "group by status (2 groups)",
        pipeline: r#"[{"$group": {"_id": "$status", "n": {"$sum": 1}, "total": {"$sum": "$contacts_count"},
                                  "latest": {"$max": "$last_contacted_at"}}}]"#,
        sql: "SELECT {status}, count(*), sum({contacts_count}), max({last_contacted_at}) FROM records_1 GROUP BY 1",
    },
    Question {
        name: "group by name (nearly unique)",
        pipeline: r#"[{"$group": {"_id": "$name", "n": {"$sum": 1}}}, {"$group": {"_id": "$n", "names": {"$sum": 1}}}]"#,
        sql: "SELECT n, count(*) FROM (SELECT {name} AS name, count(*) AS n FROM records_1 GROUP BY 1) AS names GROUP BY 1",
    },
    Question {
        name: "match status (indexed) + group by contacts_count",
        pipeline: r#"[{"$match": {"status": "active"}},
                      {"$group": {"_id": "$contacts_count", "n": {"$sum": 1}, "first": {"$min": "$name"}}}]"#,
        sql: "SELECT {contacts_count}, count(*), min({name}) FROM records_1 WHERE {status} = 'active' GROUP BY 1",
    },
    Question {
        name: "unwind tags + group",
        pipeline: r#"[{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "n": {"$sum": 1}}}]"#,
        sql: "SELECT tag, count(*) FROM {each_tag} AS tags GROUP BY 1",
    },
    Question {
        name: "lookup of 1,000 by index + group",
        pipeline: r#"[{"$lookup": {"from": "companies", "localField": "contacts_count", "foreignField": "code", "as": "company"}},
                      {"$unwind": "$company"}, {"$group": {"_id": "$company.region", "n": {"$sum": 1}}}]"#,
        sql: "SELECT {c.region}, count(*) FROM records_1 AS r JOIN companies AS c ON {c.code} = {r.contacts_count} GROUP BY 1",
    },
    Question {
        name: "lookup of 1,000 without index + group",
        pipeline: r#"[{"$lookup": {"from": "companies_unindexed", "localField": "contacts_count", "foreignField": "code", "as": "company"}},
                      {"$unwind": "$company"}, {"$group": {"_id": "$company.region", "n": {"$sum": 1}}}]"#,
        sql: "SELECT {c.region}, count(*) FROM records_1 AS r JOIN companies_unindexed AS c \
              ON {c.code} = {r.contacts_count} GROUP BY 1",
    },
    Question {
        name: "top 3 per product",
        pipeline: r#"[{"$group": {"_id": "$product_recommendation1", "top": {"$topN":
                          {"n": 3, "sortBy": {"contacts_count": -1, "_id": 1}, "output": "$name"}}}}, {"$unwind": "$top"}]"#,
        sql: "SELECT product, name FROM (SELECT {product_recommendation1} AS product, {name} AS name, row_number() OVER \
              (PARTITION BY {product_recommendation1} ORDER BY {contacts_count} DESC, _id) AS place FROM records_1) AS placed \
              WHERE place <= 3",
    },
    Question {
        name: "window: running total per status",
        pipeline: r#"[{"$setWindowFields": {"partitionBy": "$status", "sortBy": {"_id": 1}, "output": {"running":
                          {"$sum": "$contacts_count", "window": {"documents": ["unbounded", "current"]}}}}},
                      {"$group": {"_id": "$status", "total": {"$sum": "$running"}}}]"#,
        sql: "SELECT status, sum(running) FROM (SELECT {status} AS status, sum({contacts_count}) OVER \
              (PARTITION BY {status} ORDER BY _id ROWS UNBOUNDED PRECEDING) AS running FROM records_1) AS totals GROUP BY 1",
    },
    Question {
        name: "facet: by status, by product, count",
        pipeline: r#"[{"$facet": {"status": [{"$group": {"_id": "$status", "n": {"$sum": 1}}}],
                                  "product": [{"$group": {"_id": "$product_recommendation1", "n": {"$sum": 1}}}],
                                  "all": [{"$group": {"_id": "all", "n": {"$sum": 1}}}]}},
                      {"$project": {"row": {"$concatArrays": ["$status", "$product", "$all"]}}},
                      {"$unwind": "$row"}, {"$replaceRoot": {"newRoot": "$row"}}]"#,
        sql: "SELECT {status}, count(*) FROM records_1 GROUP BY 1 UNION ALL \
              SELECT {product_recommendation1}, count(*) FROM records_1 GROUP BY 1 UNION ALL \
              SELECT 'all', count(*) FROM records_1",
    },
];
