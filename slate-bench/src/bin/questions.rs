//! Prints the input of a program in another language that answers the aggregations: a line of JSON for each question, with its SQL
//! and its answer, then a line for each company, then one for each record of the first user.

use std::io::{BufWriter, Write, stdout};

use serde_json::json;
use slate_bench::{
    Options, Record,
    aggregation::{Company, QUESTIONS, answer},
    options::Request,
};
use slate_bench_harness::Result;

fn main() -> Result<()> {
    let options = match Options::parse("slate-bench-questions", std::env::args_os().skip(1))? {
        Request::Help(text) => {
            print!("{text}");
            return Ok(());
        }
        Request::Run(options) => options,
    };
    let size = options.records.first().copied().unwrap_or_default().cast_signed();
    let records: Vec<Record> = (0..size).map(|id| Record::new(options.shared.seed, 0, id, 0)).collect();
    let mut output = BufWriter::new(stdout().lock());
    for question in QUESTIONS {
        let json = question.sql(
            "(SELECT unnest(from_json(doc -> '$.tags', '[\"VARCHAR\"]')) AS tag FROM records_1)",
            |alias, name| format!("CAST({}doc ->> '$.{name}' AS {})", qualified(alias), sql_type(name)),
        );
        let typed = question
            .sql("(SELECT unnest(tags) AS tag FROM records_1)", |alias, name| format!("{}{name}", qualified(alias)));
        let rows = answer(&question, &records)?;
        let line = json!({ "question": question.name, "json": json, "typed": typed, "answer": rows });
        writeln!(output, "{line}")?;
    }
    for company in Company::all() {
        writeln!(output, "{}", json!({ "company": company.to_json() }))?;
    }
    for record in &records {
        writeln!(output, "{}", json!({ "record": record.to_json() }))?;
    }
    Ok(output.flush()?)
}

fn qualified(alias: &str) -> String {
    if alias.is_empty() { String::new() } else { format!("{alias}.") }
}

fn sql_type(name: &str) -> &'static str {
    match name {
        "contacts_count" | "code" => "INTEGER",
        "last_contacted_at" => "BIGINT",
        _ => "VARCHAR",
    }
}
